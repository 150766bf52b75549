#!/usr/bin/env bash
#
# test/lib/run_test.sh
#		Runs one test file and prints its TAP; for "prove --exec":
#
#			*_test.c		the program that test/unit/Makefile has made of it
#			test/pgtap/*	in a database of its own of libpq's default server
#			*.sql, *.spec	make installcheck, on that server
#			*.pl			PostgreSQL::Test, with servers of its own
#			*.sh			a script
#
# PG_CONFIG chooses a PostgreSQL.  The test may take TIME_LIMIT seconds, and
# writes to folders in TEST_WORK.  Exit codes are those of the test; 124 if it
# took too long.

set -euo pipefail

file=$1
name=$(basename "${file%.*}")
PG_CONFIG=${PG_CONFIG:-pg_config}

skip_all()
{
	echo "1..0 # SKIP $1"
	exit 0
}

run_pgtap()
{
	[ -f "$("$PG_CONFIG" --sharedir)/extension/pgtap.control" ] ||
		skip_all "pgTAP is not installed"
	createdb "pgtap_$name"
	psql -XAqt -v ON_ERROR_STOP=1 -d "pgtap_$name" -c "CREATE EXTENSION pgtap" \
		-c "CREATE EXTENSION pg_admission"
	exec psql -XAqt -v ON_ERROR_STOP=1 -d "pgtap_$name" -f "$file"
}

# Arguments: the variables of the Makefile that name these tests, and the others.
run_installcheck()
{
	local result=ok

	make installcheck "$1=$name" "$2=" TAP_TESTS= PG_CONFIG="$PG_CONFIG" \
		with_llvm=no 2>&1 || result="not ok"
	if [ "$result" != ok ]; then
		cat ./regression.diffs output_iso/regression.diffs 2>/dev/null || true
	fi | sed 's/^/#   /'
	echo "$result 1 - $name"
	echo 1..1
}

run_perl()
{
	local pgxs

	pgxs=$(dirname "$("$PG_CONFIG" --pgxs)")/../..
	[ -f "$pgxs/src/test/perl/PostgreSQL/Test/Cluster.pm" ] ||
		skip_all "this PostgreSQL has no PostgreSQL::Test"
	perl -MIPC::Run -e 1 2>/dev/null || skip_all "Perl has no IPC::Run"
	export PG_REGRESS=$pgxs/src/test/regress/pg_regress
	export TESTDIR=$TEST_WORK/tap/$name
	export TMPDIR=$TEST_WORK/tmp
	mkdir -p "$TESTDIR" "$TMPDIR"
	exec perl -I "$pgxs/src/test/perl" -I test/perl "$file"
}

run_unit()
{
	export ASAN_OPTIONS=detect_leaks=0
	exec "$(dirname "$file")/build/$name"
}

# The end of the log that a test in Perl keeps, as comments.
show_log()
{
	local log=$TEST_WORK/tap/$name/tmp_check/log/regress_log_$name

	if [ -f "$log" ]; then
		echo "# the end of $(basename "$log"):"
		tail -n 60 "$log" | sed 's/^/#   /'
	fi
}

# In the process that timeout(1) watches.
if [ "${2-}" = --now ]; then
	case $file in
		*_test.c) run_unit ;;
		test/pgtap/*) run_pgtap ;;
		*.sql) run_installcheck REGRESS ISOLATION ;;
		*.spec) run_installcheck ISOLATION REGRESS ;;
		*.pl) run_perl ;;
		*.sh) exec bash "$file" ;;
		*) echo "Bail out! cannot run $file" && exit 1 ;;
	esac
	exit
fi

if [ -z "${TEST_WORK-}" ]; then
	TEST_WORK=$(mktemp -d)
	trap 'rm -rf -- "$TEST_WORK"' EXIT
fi
export TEST_WORK

# Into a file first: a process that a test leaves behind may keep a pipe open
# for ever.  A test that gives up is not to end prove, but has failed.
rc=0
mkdir -p "$TEST_WORK/output"
timeout --foreground -k 10 "${TIME_LIMIT:-300}" \
	bash "${BASH_SOURCE[0]}" "$file" --now \
	</dev/null >"$TEST_WORK/output/$name" 2>&1 || rc=$?
sed 's/^Bail out!/not ok - it bailed out:/' "$TEST_WORK/output/$name"
[ "$rc" -eq 0 ] || show_log
exit "$rc"
