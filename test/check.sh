#!/usr/bin/env bash
#
# test/check.sh
#		Builds the extension and runs every test, or those that are named.
#
# Installs what is missing, copies PostgreSQL and the source to a temporary
# folder, builds and starts a server there, has others run the tests of each
# suite, and ends with one line "N passed, N failed, N skipped":
#
#		build		builds without warnings, by gcc and by clang
#		lint		test/lint.sh
#		unit		test/unit/*_test.c
#		regress		sql/*.sql, by make installcheck
#		isolation	test/isolation/specs/*.spec, likewise
#		pgtap		test/pgtap/*.sql
#		tap			test/t/*/*.pl; $PGADM_LOADGEN is the load generator,
#					$PGADM_CGROUP the name of a control group below which they
#					may make some, or empty
#
# What is there but has not been run, for whatever reason, has failed.  See
# test/README for how to add a test.

# shellcheck source-path=SCRIPTDIR source=lib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"
# shellcheck source=lib/suites.sh
. "$TOP/test/lib/suites.sh"
export LC_ALL=C

# The longest that one test program or a run of pg_regress may take, in seconds.
export TIME_LIMIT=${TIME_LIMIT:-300}

# clang does not know all that PostgreSQL was built with.
CLANG_FLAGS="-Wno-ignored-attributes -Wno-unknown-warning-option"
CLANG_FLAGS+=" -Wno-ignored-optimization-argument -Wno-compound-token-split-by-macro"

files=()
server=
group=
terminal=

usage()
{
	cat <<EOT
Builds pg_admission and runs its tests on servers in a temporary folder.

Usage: test/check.sh [SUITE | SUITE/NAME | FILE | FOLDER]...

Suites: ${SUITES[*]}; by default all of them.  A name is that of
a test without its suffix, or of a folder of tests: tap/basics, unit/host_test.

PG_CONFIG chooses a PostgreSQL.  As root, everything runs as the user
RUN_USER (default postgres).  TIME_LIMIT is what one test program, or a run of
pg_regress, may take, in seconds (default $TIME_LIMIT).
EOT
}

# ---- building -------------------------------------------------------------

# Does it build without a warning?  Arguments: a name, arguments of make.
check_build()
{
	local name=$1
	local log=$WORK/build-$name.log

	shift
	as_user cp -R "$WORK/pristine" "$WORK/build-$name"
	if as_user make -C "$WORK/build-$name" -j "$(jobs_of_build)" \
		PG_CONFIG="$PG_CONFIG" with_llvm=no "$@" >"$log" 2>&1 </dev/null; then
		pass
		say "  passed  $name"
	else
		fail "$name: does not build without warnings"
		show_log "$log"
	fi
	echo "ran build" >>"$TEST_RESULTS"
}

# What the tests run on, with its assertions.  An access that is not aligned as
# its type demands crashes the server.
install_extension()
{
	local folder
	local checks="-fsanitize=alignment -fsanitize-undefined-trap-on-error"

	suite=install
	if ! (build_extension CC=gcc COPT="-Werror $checks" ASSERTIONS=1); then
		fail "the extension cannot be built and installed"
		return 1
	fi
	(build_loadgen) || fail "the load generator cannot be built"
	for folder in "$TOP"/test/modules/*/; do
		(build_module "$(basename "$folder")" CC=gcc COPT=-Werror) ||
			fail "the test module $(basename "$folder") cannot be built"
	done
}

# ---- the shared server ----------------------------------------------------

# Start the server that regression, isolation and pgTAP tests share, unless it
# runs.  It is the default of libpq from then on.
need_server()
{
	[ -z "$server" ] || return 0
	server=$WORK/server
	start_cluster "$server" <<-EOT
		shared_preload_libraries = 'pg_admission'
		fsync = off
		full_page_writes = off
		synchronous_commit = off
		max_prepared_transactions = 10
		log_line_prefix = '%m [%p] %q%a '
		restart_after_crash = on
	EOT
	PGHOST=$(socket_dir "$server")
	export PGHOST PGPORT=5432 PGUSER=postgres
}

# Nothing that a test does may bring down the server.
check_server_log()
{
	[ -n "$server" ] || return 0
	suite=server
	if as_user grep -aE 'TRAP:|PANIC:|terminated by signal|terminating any other active' \
		"$server/server.log" >"$WORK/crashes"; then
		fail "the server has crashed"
		show_log "$WORK/crashes" 20
	else
		pass
	fi
}

# ---- control groups -------------------------------------------------------

# Print folders, in the hierarchies of version 1, where root makes a group.
cgroup_folders()
{
	printf "/sys/fs/cgroup/%s/$(basename "$WORK")\n" cpu cpuacct memory
}

# Make a control group that the ordinary user may make others in.  Prints its
# name, or nothing.
make_cgroup()
{
	local folder

	is_root || return 0
	for folder in $(cgroup_folders); do
		mkdir "$folder" 2>/dev/null &&
			chown "$RUN_USER" "$folder" "$folder/cgroup.procs" || return 0
	done
	basename "$WORK"
}

remove_cgroup()
{
	local folder

	is_root && [ -n "$WORK" ] || return 0
	for folder in $(cgroup_folders); do
		[ ! -d "$folder" ] || find "$folder" -depth -type d -exec rmdir {} + || true
	done
}

# ---- running --------------------------------------------------------------

# Run a command as the ordinary user, in a process group of its own, so that all
# that it has started can be ended with it.  Ctrl-C does not get there, but ends
# wait, and then finish() ends it.
in_group()
{
	local rc=0

	set -m
	as_user env PATH="$BINDIR:$PATH" "$@" </dev/null &
	group=$!
	set +m
	wait "$group" || rc=$?
	end_group
	return "$rc"
}

# End what in_group() runs, or what that has left behind: servers are in groups
# of their own.
end_group()
{
	local pidfile

	if [ -n "$group" ]; then
		kill -KILL -- "-$group" 2>/dev/null || true
		wait "$group" 2>/dev/null || true
		group=
	fi
	[ -d "$WORK/tap" ] || return 0
	while read -r pidfile; do
		stop_cluster "$(dirname "$pidfile")" immediate || true
	done < <(find "$WORK/tap" -name postmaster.pid)
}

# Run each file by prove.
prove_files()
{
	local file before rc

	for file in "${files[@]}"; do
		before=$(failures)
		rc=0
		in_group env PERL5LIB="$WORK/source/test/lib" TEST_SUITE="$suite" \
			prove --norc --formatter TapReport --exec "bash test/lib/run_test.sh" \
			"$file" || rc=$?
		[ "$rc" -eq 0 ] || [ "$(failures)" -gt "$before" ] ||
			fail "$(basename "$file"): prove ended with exit code $rc"
	done
}

run_build()
{
	check_build gcc CC=gcc COPT=-Werror
	if command -v clang >/dev/null; then
		check_build clang CC=clang COPT="-Werror $CLANG_FLAGS"
	else
		skip "clang: not installed"
	fi
}

# A program that does not compile is not there, and fails.
run_unit()
{
	as_user make -s -k -C test/unit PG_CONFIG="$SYSTEM_PG_CONFIG" \
		>"$WORK/unit.log" 2>&1 </dev/null || show_log "$WORK/unit.log"
	prove_files
}

run_on_server()
{
	need_server
	prove_files
}

# These have servers of their own.
run_tap()
{
	unset PGHOST PGPORT PGUSER
	PGADM_CGROUP=$(make_cgroup)
	export PGADM_CGROUP PGADM_LOADGEN=$WORK/loadgen
	prove_files
}

# Arguments: the suite, then its files.
run_suite()
{
	local start=$SECONDS
	local file

	suite=$1
	files=("${@:2}")
	say "$suite"
	cd "$WORK/source"
	case $suite in
		build) run_build ;;
		lint) prove_files ;;
		unit) run_unit ;;
		tap) run_tap ;;
		*) run_on_server ;;
	esac
	cd "$WORK"
	for file in "${files[@]}"; do
		grep -qxF "ran $file" "$TEST_RESULTS" || fail "$file: not run"
	done
	say "  $((SECONDS - start)) s"
}

# ---- all of it ------------------------------------------------------------

# Who may not install goes without those packages that are not needed by all tests,
# which are then shown as skipped.
install_packages()
{
	local -a extra=()

	! is_root || extra=(clang perl libipc-run-perl openssl pgbouncer
		postgresql-%-pgtap postgresql-%-pg-wait-sampling)
	need_postgres "${extra[@]}"
}

# However it ends, it says what came of it: not in the log of the test that a
# signal came in.
finish()
{
	local rc=$?

	set +e
	trap '' HUP INT TERM
	exec >&"$terminal"
	end_group
	if [ -z "$reported" ]; then
		fail "check.sh ended early, with exit code $rc"
		report
	fi
	remove_cgroup
	(exit "$rc")
	cleanup
}

main()
{
	local name
	local -A selected=()
	local -a names=("$@")

	[ $# -gt 0 ] || names=("${SUITES[@]}")
	cd "$TOP"
	for name in "${names[@]}"; do
		is_known "$name" || die "there is no suite or test $name; try --help"
	done
	for suite in "${SUITES[@]}"; do
		selected[$suite]=$(select_files "$suite" "${names[@]}")
	done

	# whatever the caller has set must not get into the tests
	unset MAKEFLAGS MAKELEVEL MFLAGS PERL5OPT
	make_workdir
	export TEST_WORK=$WORK
	exec {terminal}>&1
	begin_results "$WORK/results"
	trap finish EXIT
	suite=setup
	install_packages
	private_postgres
	say "Testing with $("$BINDIR/postgres" --version)"
	copy_source
	as_user cp -R "$WORK/source" "$WORK/pristine"
	if install_extension; then
		for name in "${SUITES[@]}"; do
			# shellcheck disable=SC2086
			[ -z "${selected[$name]}" ] || run_suite "$name" ${selected[$name]}
		done
		check_server_log
	fi
	report
}

case ${1-} in
	-h | --help) usage ;;
	*) main "$@" ;;
esac
