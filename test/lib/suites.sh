# shellcheck shell=bash
#
# test/lib/suites.sh
#		Which tests there are, which of them are wanted, and what came of them.
#		Source it after common.sh.
#
# Results are lines of a file, $TEST_RESULTS; test/lib/TapReport.pm, which adds to
# it what came of tests that print TAP, says what they look like.

SUITES=(build lint unit regress isolation pgtap tap)

# The suite that is being run.
suite=

# Has everything been said?  For who calls report().
reported=

# ---- which tests ----------------------------------------------------------

files_of()
{
	case $1 in
		build) echo build ;;
		lint) echo test/lint.sh ;;
		unit) compgen -G 'test/unit/*_test.c' ;;
		regress) compgen -G 'sql/*.sql' ;;
		isolation) compgen -G 'test/isolation/specs/*.spec' ;;
		pgtap) compgen -G 'test/pgtap/*.sql' ;;
		tap) find test/t -name '*.pl' ;;
	esac | sort
}

# Does the last argument, one of the command line, name this file of a suite?  It
# is the suite, or any part of the path, with or without the suffix, and may have
# the suite before it.
is_named()
{
	local suite=$1
	local file=$2
	local name=${3#"$TOP"/}

	name=${name%/}
	[ "$name" != structure ] || name=lint # its former name
	[ "$name" = "$suite" ] && return
	name=${name#"$suite"/}
	[[ /$file/ = */"$name"/* || /${file%.*}/ = */"$name"/* ]]
}

# Print the files of a suite that any of the other arguments names.
select_files()
{
	local file name

	while read -r file; do
		for name in "${@:2}"; do
			if is_named "$1" "$file" "$name"; then
				echo "$file"
				break
			fi
		done
	done < <(files_of "$1")
}

is_known()
{
	local suite

	for suite in "${SUITES[@]}"; do
		[ -z "$(select_files "$suite" "$1")" ] || return 0
	done
	return 1
}

# ---- results --------------------------------------------------------------

# Also the ordinary user adds to that file.
begin_results()
{
	export TEST_RESULTS=$1
	(umask 0 && : >"$TEST_RESULTS")
}

pass()
{
	echo "pass 1" >>"$TEST_RESULTS"
}

fail()
{
	echo "fail $suite: $*" >>"$TEST_RESULTS"
	say "  FAILED  $*"
}

skip()
{
	echo "skip $suite: $*" >>"$TEST_RESULTS"
	say "  skipped $*"
}

failures()
{
	grep -c '^fail ' "$TEST_RESULTS" || true
}

# Print the last lines of a log, set off.
show_log()
{
	[ ! -s "$1" ] || tail -n "${2:-40}" "$1" | sed 's/^/  | /'
}

report()
{
	local passed failed

	# shellcheck disable=SC2034
	reported=yes
	grep -q '^\(pass [1-9]\|fail\)' "$TEST_RESULTS" || fail "nothing was tested"
	say ""
	sed -n 's/^skip /skipped  /p' "$TEST_RESULTS"
	sed -n 's/^fail /FAILED   /p' "$TEST_RESULTS"
	passed=$(awk '$1 == "pass" { n += $2 } END { print n + 0 }' "$TEST_RESULTS")
	failed=$(failures)
	say "$passed passed, $failed failed, $(grep -c '^skip ' "$TEST_RESULTS" || true) skipped"
	[ "$failed" -eq 0 ]
}
