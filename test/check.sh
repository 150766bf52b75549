#!/usr/bin/env bash
#
# test/check.sh
#		Builds the extension and runs every test.
#
# Installs what is missing, builds in a temporary folder, starts PostgreSQL
# servers of its own there, runs what it finds in these folders, and ends
# with one line "N passed, N failed, N skipped":
#
#		src/						builds, and the rules about includes
#		test/unit/*_test.c			programs that print TAP; linked with src/*.c
#									of their name, or with what a line
#									"Links: src/a.c src/b.c" says, if that
#									names any
#		sql/*.sql, expected/		pg_regress, in the order of the Makefile
#		test/isolation/specs/		isolation tests, likewise
#		test/pgtap/*.sql			pgTAP, each in a database of its own
#		test/t/*.pl					PostgreSQL::Test, servers of their own;
#									$PGADM_LOADGEN is the load generator,
#									$PGADM_CGROUP the name of a control group
#									below which they may make some, or empty
#		test/modules/*/				libraries that those tests load
#
# What is there but has not been run, for whatever reason, has failed.

# shellcheck source-path=SCRIPTDIR source=lib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"
export LC_ALL=C

SUITES=(build structure unit regress isolation pgtap tap)

# The longest that one test program or a run of pg_regress may take, in
# seconds.
TIME_LIMIT=${TIME_LIMIT:-300}

# clang does not know all that PostgreSQL was built with.
CLANG_FLAGS="-Wno-ignored-attributes -Wno-unknown-warning-option"
CLANG_FLAGS+=" -Wno-ignored-optimization-argument"
CLANG_FLAGS+=" -Wno-compound-token-split-by-macro"

suite=
passed=0
failures=()
skips=()
server=
group=
terminal=
reported=

usage()
{
	cat <<EOT
Builds pg_admission and runs its tests on servers in a temporary folder.

Usage: test/check.sh [SUITE]...

Suites: ${SUITES[*]}; by default all of them.

PG_CONFIG chooses a PostgreSQL.  As root, everything runs as the user
RUN_USER (default postgres).  TIME_LIMIT is what one test program, or a run of
pg_regress, may take, in seconds (default $TIME_LIMIT).
EOT
}

# ---- results --------------------------------------------------------------

pass()
{
	passed=$((passed + ${1:-1}))
}

fail()
{
	failures+=("$suite: $*")
	say "  FAILED  $*"
}

skip()
{
	skips+=("$suite: $*")
	say "  skipped $*"
}

# Print the last lines of a log, set off.
show_log()
{
	[ ! -s "$1" ] || tail -n "${2:-40}" "$1" | sed 's/^/  | /'
}

# Count what a program that prints TAP has said.  Arguments: its name, its
# output, its exit code.
count_tap()
{
	local name=$1
	local output=$2
	local failed_before=${#failures[@]}
	local word text count=0

	while read -r word text; do
		case $word in
			pass) count=$text ;;
			fail) fail "$name: $text" ;;
			skip) skip "$name: $text" ;;
		esac
	done < <(perl "$TOP/test/lib/tap_summary.pl" "$3" <"$output" ||
		echo "fail its output cannot be read")
	pass "$count"
	if [ ${#failures[@]} -gt "$failed_before" ]; then
		show_log "$output"
		return 1
	fi
	[ "$count" -eq 0 ] || say "  passed  $name ($count)"
}

# Run a command as the ordinary user, for no longer than it may take.  It is a
# process group of its own, so that all that it has started can be ended with
# it; Ctrl-C does not get there, but ends wait, and then finish() ends it.
limited()
{
	local rc=0

	set -m
	as_user timeout --foreground -k 10 "$TIME_LIMIT" "$@" </dev/null &
	group=$!
	set +m
	wait "$group" || rc=$?
	end_limited
	return "$rc"
}

# End what limited() runs, or what that has left behind.
end_limited()
{
	[ -z "$group" ] || kill -KILL -- "-$group" 2>/dev/null || true
	group=
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
		grep -E '(error|warning):' "$log" | head -n 20 | sed 's/^/  | /' || true
		show_log "$log" 5
	fi
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

# What the tests run on, with its assertions.  An access that is not aligned as
# its type demands crashes the server.
install_extension()
{
	local folder
	local checks="-fsanitize=alignment -fsanitize-undefined-trap-on-error"

	if ! (build_extension CC=gcc COPT="-Werror $checks" ASSERTIONS=1); then
		fail "the extension cannot be built and installed"
		return 1
	fi
	if [ -f "$TOP/test/loadgen.c" ] && ! (build_loadgen); then
		fail "the load generator cannot be built"
	fi
	for folder in "$TOP"/test/modules/*/; do
		if ! (build_module "$(basename "$folder")" CC=gcc COPT=-Werror); then
			fail "the test module $(basename "$folder") cannot be built"
		fi
	done
}

# ---- the rules of the source ----------------------------------------------

# Print all headers of ours that a file includes, directly or not.
own_includes()
{
	local header
	local -a found=("$1")
	local i

	for ((i = 0; i < ${#found[@]}; i++)); do
		while read -r header; do
			case " ${found[*]:1} " in
				*" src/$header "*) ;;
				*) [ ! -f "src/$header" ] || found+=("src/$header") ;;
			esac
		done < <(sed -n 's/^#include "\(.*\)".*/\1/p' "${found[i]}")
	done
	printf '%s\n' "${found[@]:1}"
}

# grep, for which to find nothing is no failure.
search()
{
	grep "$@" || [ $? -eq 1 ]
}

# Fail if the rest of the command line prints anything, be it an error, or if it
# does not work.
prints_nothing()
{
	local name=$1
	local output rc=0

	shift
	output=$("$@" 2>&1) || rc=$?
	if [ -z "$output" ] && [ "$rc" -eq 0 ]; then
		pass
		say "  passed  $name"
	else
		[ "$rc" -eq 0 ] || output+="${output:+$'\n'}exit code $rc"
		fail "$name"
		printf '%s\n' "$output" | sed 's/^/  | /'
	fi
}

# These get what they need as arguments, so that they can be tested by table.
impure_includes()
{
	local module file

	for module in cgroup procfs textfile load plan_memory policy pool order; do
		for file in "src/$module.c" "src/$module.h"; do
			own_includes "$file" | search -E '/(shared|settings)\.h$' |
				sed "s|^|$file: |" || return
			search -HE '^#include "(storage/(ipc|lwlock|shmem|spin|proc|latch|condition_variable)|port/atomics|utils/guc)' "$file" ||
				return
		done
	done
}

include_circles()
{
	local header

	for header in src/*.h; do
		own_includes "$header" | search -xF "$header" || return
	done
}

# Arguments: a file, a pattern that no other file may have.
found_outside()
{
	search -nE "$2" src/*.[ch] | search -v "^$1:"
}

run_structure()
{
	cd "$TOP" || return
	prints_nothing "cgroup, procfs, textfile, load, plan_memory, policy, pool, order: no shared memory, lock, setting" \
		impure_includes
	prints_nothing "no circles of includes" include_circles
	prints_nothing "versions of PostgreSQL are told apart in compat.h only" \
		found_outside src/compat.h '\<PG_VERSION_NUM\>'
	prints_nothing "previous hooks are called in hooks.c only" \
		found_outside src/hooks.c '\<prev_'
	cd "$WORK" || return
}

# ---- unit programs --------------------------------------------------------

# Print flags for a sanitizer, if the compiler has it.
sanitizer_flags()
{
	local flags="-fsanitize=address,undefined -fno-sanitize-recover=all"

	# shellcheck disable=SC2086
	if echo 'int main(void) { return 0; }' |
		as_user gcc $flags -x c -o "$WORK/sanitized" - 2>/dev/null &&
		as_user "$WORK/sanitized" 2>/dev/null; then
		echo "$flags"
	fi
}

run_unit()
{
	local file name sources flags rc
	local -a compile

	flags=$(sanitizer_flags)
	as_user mkdir -p "$WORK/unit"
	cd "$WORK/source" || return
	for file in test/unit/*_test.c; do
		name=$(basename "$file" .c)
		sources=src/${name%_test}.c
		if grep -q 'Links:' "$file"; then
			sources=$(sed -n 's/.*Links://p' "$file" | search -oE 'src/[a-z_]+\.c')
		fi
		# src has a limits.h, which is not for those who want the system's
		# shellcheck disable=SC2206
		compile=(gcc -std=gnu99 -g -O1 -Wall -Werror -D_GNU_SOURCE $flags
			-isystem "$("$PG_CONFIG" --includedir-server)"
			-isystem "$("$SYSTEM_PG_CONFIG" --includedir)" -iquote src -Itest/unit
			-o "$WORK/unit/$name" "$file" $sources -lm)
		if ! as_user "${compile[@]}" >"$WORK/unit-$name.log" 2>&1; then
			fail "$name: does not compile"
			show_log "$WORK/unit-$name.log"
			continue
		fi
		rc=0
		limited env ASAN_OPTIONS=detect_leaks=0 "$WORK/unit/$name" \
			>"$WORK/unit-$name.log" 2>&1 || rc=$?
		count_tap "$name" "$WORK/unit-$name.log" "$rc" || true
	done
	cd "$WORK" || return
}

# ---- the shared server ----------------------------------------------------

# The settings of the server that regression, isolation and pgTAP tests share.
server_settings()
{
	cat <<-EOT
		shared_preload_libraries = 'pg_admission'
		fsync = off
		full_page_writes = off
		synchronous_commit = off
		max_prepared_transactions = 10
		log_line_prefix = '%m [%p] %q%a '
		restart_after_crash = on
	EOT
	[ ! -f "$TOP/test/postgresql.conf" ] || cat "$TOP/test/postgresql.conf"
}

# Start it, unless it runs.
need_server()
{
	[ -z "$server" ] || return 0
	server=$WORK/server
	start_cluster "$server" < <(server_settings)
}

# Run a command with the shared server as the default of libpq.
with_server()
{
	limited env PATH="$BINDIR:$PATH" PGHOST="$(socket_dir "$server")" \
		PGPORT=5432 PGUSER=postgres "$@"
}

# Nothing that a test does may bring down the server.
check_server_log()
{
	local found

	suite=server
	[ -n "$server" ] || return 0
	found=$(as_user grep -aE 'TRAP:|PANIC:|terminated by signal|terminating any other active' \
		"$server/server.log" | head -n 20) || true
	if [ -n "$found" ]; then
		fail "the server has crashed"
		printf '%s\n' "$found" | sed 's/^/  | /'
	else
		pass
	fi
}

# ---- pg_regress and isolation tests ---------------------------------------

# Print "ok <name>" or "failed <name>" for each test in pg_regress' output,
# as it was before PostgreSQL 16 and as it is since.
regress_results()
{
	sed -nE \
		-e 's/^(test|  *) *([^ ]+) +\.\.\. ok .*/ok \2/p' \
		-e 's/^(test|  *) *([^ ]+) +\.\.\. (FAILED|failed).*/failed \2/p' \
		-e 's/^ok +[0-9]+ +[-+] ([^ ]+) .*/ok \1/p' \
		-e 's/^not ok +[0-9]+ +[-+] ([^ ]+) .*/failed \1/p' "$1"
}

# Run tests with make installcheck.  Arguments: where pg_regress leaves its
# differences, then the files that must have been tested, a --, and arguments
# of make.
run_installcheck()
{
	local output=$WORK/source/$1
	local log=$WORK/$suite.log
	local file name result seen=' ' count=0 rc=0
	local -a files=()

	shift
	while [ "$1" != -- ]; do
		files+=("$1")
		shift
	done
	shift
	need_server
	with_server make -C "$WORK/source" installcheck PG_CONFIG="$PG_CONFIG" \
		with_llvm=no "$@" >"$log" 2>&1 || rc=$?

	while read -r result name; do
		seen+="$name "
		if [ "$result" = ok ]; then
			count=$((count + 1))
		else
			fail "$name"
		fi
	done < <(regress_results "$log")
	pass "$count"
	for file in "${files[@]}"; do
		name=$(basename "${file%.*}")
		case $seen in
			*" $name "*) ;;
			*) fail "$name: not run; does the Makefile have it?" ;;
		esac
	done
	if [ "$rc" -ne 0 ]; then
		case ${failures[*]-} in
			*"$suite: "*) ;;
			*) fail "make installcheck ended with exit code $rc" ;;
		esac
		show_log "$log" 20
		if as_user test -s "$output/regression.diffs"; then
			show_log "$output/regression.diffs" 200
		fi
	fi
	[ "$count" -eq 0 ] || say "  passed  $count"
}

run_regress()
{
	run_installcheck . "$TOP"/sql/*.sql -- ISOLATION= TAP_TESTS=
}

run_isolation()
{
	run_installcheck output_iso "$TOP"/test/isolation/specs/*.spec -- \
		REGRESS= TAP_TESTS=
}

# ---- pgTAP ----------------------------------------------------------------

run_pgtap()
{
	local file name log rc

	need_server
	cd "$WORK/source" || return
	for file in test/pgtap/*.sql; do
		name=$(basename "$file" .sql)
		log=$WORK/pgtap-$name.log
		if [ ! -f "$("$PG_CONFIG" --sharedir)/extension/pgtap.control" ]; then
			skip "$name: pgTAP is not installed"
			continue
		fi
		rc=0
		{
			with_server createdb "pgtap_$name" &&
				with_server psql -XAqt -v ON_ERROR_STOP=1 -d "pgtap_$name" \
					-c "CREATE EXTENSION pgtap" \
					-c "CREATE EXTENSION pg_admission" &&
				with_server psql -XAqt -v ON_ERROR_STOP=1 -d "pgtap_$name" \
					-f "$file"
		} >"$log" 2>&1 || rc=$?
		count_tap "$name" "$log" "$rc" || true
	done
	cd "$WORK" || return
}

# ---- PostgreSQL::Test -----------------------------------------------------

# The controllers of version 1 in whose hierarchy root makes a group for tests.
CGROUP_CONTROLLERS=(cpu cpuacct memory)

cgroup_folder()
{
	printf '/sys/fs/cgroup/%s/%s\n' "$1" "$(basename "$WORK")"
}

# Make a control group that the ordinary user may make others in.  Prints its
# name, or nothing.
make_cgroup()
{
	local controller folder

	is_root || return 0
	for controller in "${CGROUP_CONTROLLERS[@]}"; do
		folder=$(cgroup_folder "$controller")
		mkdir "$folder" 2>/dev/null &&
			chown "$RUN_USER" "$folder" "$folder/cgroup.procs" || return 0
	done
	basename "$WORK"
}

remove_cgroup()
{
	local controller folder

	is_root && [ -n "$WORK" ] || return 0
	for controller in "${CGROUP_CONTROLLERS[@]}"; do
		folder=$(cgroup_folder "$controller")
		[ ! -d "$folder" ] || find "$folder" -depth -type d -exec rmdir {} + || true
	done
}

# A test that was ended leaves its servers behind.
stop_leftovers()
{
	local pidfile

	[ -d "$WORK/tap" ] || return 0
	while read -r pidfile; do
		stop_cluster "$(dirname "$pidfile")" immediate || true
	done < <(find "$WORK/tap" -name postmaster.pid)
}

# Print why tests in Perl cannot be run, if so.
why_no_perl_tests()
{
	[ -f "$1/PostgreSQL/Test/Cluster.pm" ] ||
		echo "this PostgreSQL has no PostgreSQL::Test"
	perl -MIPC::Run -e 1 2>/dev/null || echo "Perl has no IPC::Run"
}

run_tap()
{
	local file name log rc pgxs why cgroup

	cgroup=$(make_cgroup)
	pgxs=$(dirname "$("$PG_CONFIG" --pgxs)")/../..
	why=$(why_no_perl_tests "$pgxs/src/test/perl" | head -n 1)
	as_user mkdir -p "$WORK/tap" "$WORK/tmp"
	cd "$WORK/source/test" || return
	for file in t/*.pl; do
		name=$(basename "$file" .pl)
		log=$WORK/tap-$name.log
		if [ -n "$why" ]; then
			skip "$name: $why"
			continue
		fi
		as_user mkdir -p "$WORK/tap/$name"
		rc=0
		limited env PATH="$BINDIR:$PATH" TESTDIR="$WORK/tap/$name" \
			TMPDIR="$WORK/tmp" PGADM_LOADGEN="$WORK/loadgen" \
			PGADM_CGROUP="$cgroup" \
			PG_REGRESS="$pgxs/src/test/regress/pg_regress" \
			perl -I "$pgxs/src/test/perl" -I "$PWD/perl" "$file" \
			>"$log" 2>&1 || rc=$?
		if ! count_tap "$name" "$log" "$rc"; then
			show_log "$WORK/tap/$name/tmp_check/log/regress_log_$name" 60
		fi
		stop_leftovers
	done
	cd "$WORK" || return
}

# ---- all of it ------------------------------------------------------------

# Are there tests of this suite?
suite_has_files()
{
	case $1 in
		build | structure) true ;;
		unit) compgen -G "$TOP/test/unit/*_test.c" ;;
		regress) compgen -G "$TOP/sql/*.sql" ;;
		isolation) compgen -G "$TOP/test/isolation/specs/*.spec" ;;
		pgtap) compgen -G "$TOP/test/pgtap/*.sql" ;;
		tap) compgen -G "$TOP/test/t/*.pl" ;;
	esac >/dev/null
}

run_suite()
{
	local start=$SECONDS
	local before

	suite=$1
	suite_has_files "$suite" || return 0
	say "$suite"
	before=$((passed + ${#failures[@]} + ${#skips[@]}))
	"run_$suite"
	[ $((passed + ${#failures[@]} + ${#skips[@]})) -gt "$before" ] ||
		fail "no test was run"
	say "  $((SECONDS - start)) s"
}

# Packages: compilers and test frameworks.  Who may not install goes without
# those that are not needed by all tests, which are then shown as skipped.
install_packages()
{
	local major
	local -a extra=()

	if is_root; then
		extra=(clang perl libipc-run-perl openssl pgbouncer)
		major=$(newest_major)
		case ${PG_CONFIG:-/usr/lib/postgresql/} in
			/usr/lib/postgresql/*/bin/pg_config)
				major=${PG_CONFIG#/usr/lib/postgresql/}
				major=${major%%/*}
				extra+=("postgresql-$major-pgtap" "postgresql-$major-pg-wait-sampling")
				;;
			/usr/lib/postgresql/)
				extra+=("postgresql-${major:-$DEFAULT_MAJOR}-pgtap"
					"postgresql-${major:-$DEFAULT_MAJOR}-pg-wait-sampling")
				;;
		esac
	fi
	need_postgres "${extra[@]}"
}

report()
{
	local text

	reported=yes
	say ""
	for text in ${skips[@]+"${skips[@]}"}; do
		say "skipped  $text"
	done
	for text in ${failures[@]+"${failures[@]}"}; do
		say "FAILED   $text"
	done
	[ "$passed" -gt 0 ] || [ ${#failures[@]} -gt 0 ] || failures+=("nothing was tested")
	say "$passed passed, ${#failures[@]} failed, ${#skips[@]} skipped"
	[ ${#failures[@]} -eq 0 ]
}

# However it ends, it says what came of it: not in the log of the test that a
# signal came in.
finish()
{
	local rc=$?

	set +e
	trap '' HUP INT TERM
	exec >&"$terminal"
	end_limited
	if [ -z "$reported" ]; then
		fail "check.sh ended early, with exit code $rc"
		report
	fi
	stop_leftovers
	remove_cgroup
	(exit "$rc")
	cleanup
}

main()
{
	local wanted
	local -a suites=("$@")

	[ $# -gt 0 ] || suites=("${SUITES[@]}")
	for wanted in "${suites[@]}"; do
		case " ${SUITES[*]} " in
			*" $wanted "*) ;;
			*) die "unknown suite $wanted; try --help" ;;
		esac
	done

	# whatever the caller has set must not get into the tests
	unset MAKEFLAGS MAKELEVEL MFLAGS PGDATABASE PGDATA PGHOST PGHOSTADDR \
		PGOPTIONS PGPASSFILE PGPASSWORD PGPORT PGSERVICE PGSSLMODE PGUSER
	make_workdir
	exec {terminal}>&1
	trap finish EXIT
	install_packages
	private_postgres
	say "Testing with $("$BINDIR/postgres" --version)"
	copy_source
	as_user cp -R "$WORK/source" "$WORK/pristine"
	suite=install
	if install_extension; then
		for wanted in "${suites[@]}"; do
			run_suite "$wanted"
		done
		check_server_log
	fi
	report
}

case ${1-} in
	-h | --help) usage ;;
	*) main "$@" ;;
esac
