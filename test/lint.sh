#!/usr/bin/env bash
#
# test/lint.sh
#		Checks the rules of the source that a compiler does not know.
#
# Prints TAP; needs no server, and no build but for the names that the library
# exports.  It reads the section "Files" of src/README, in which each entry is a
# line
#
#		 name.c    description
#
# or " a.c, b.c    description", begun with a single blank, and may go on in lines
# that begin with more.  An entry for name.c is one for name.h too, if that has
# none of its own.  The entries are in the order in which files may include each
# other, and one whose description has ", pure" in it is that of a pure file.

set -euo pipefail
export LC_ALL=C
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

declare -A rank=()
declare -A is_pure=()
declare -A includes=()
found=
place=
tests=0
failures=0

# Of our own, and of PostgreSQL, what pure files may not include.
IMPURE_OWN='(shared|settings)\.h'
IMPURE_POSTGRES='(storage/(buf|condition_variable|dsm|ipc|latch|lmgr|lock|lwlock'
IMPURE_POSTGRES+='|pmsignal|proc|s_lock|shm|sinval|spin)[a-z_]*|port/atomics|utils/guc[a-z_]*)\.h'

# ---- results --------------------------------------------------------------

# One test: it passes if the rest of the command line works and prints nothing.
# Argument: the test's name.
check()
{
	local name=$1
	local output rc=0

	shift
	tests=$((tests + 1))
	output=$("$@" 2>&1) || rc=$?
	if [ -z "$output" ] && [ "$rc" -eq 0 ]; then
		echo "ok $tests - $name"
		return
	fi
	failures=$((failures + 1))
	echo "not ok $tests - $name"
	[ -z "$output" ] || printf '%s\n' "$output" | sed 's/^/#   /'
	[ "$rc" -eq 0 ] || echo "#   exit code $rc"
}

skip()
{
	tests=$((tests + 1))
	echo "ok $tests - $1 # SKIP $2"
}

# grep, for which to find nothing is no failure.
search()
{
	grep "$@" || [ $? -eq 1 ]
}

# ---- what there is --------------------------------------------------------

# Print "name.c" or "name.c pure" for each file that src/README lists.
listed_files()
{
	awk '
		function finish(	i)
		{
			for (i = 1; i <= count; i++)
				print names[i] (text ~ /, pure($|[^a-z])/ ? " pure" : "")
			count = 0
		}
		/^-+$/ && before == "Files" { inside = 1; next }
		/^-+$/ && inside { exit }
		{ before = $0 }
		!inside { next }
		/^ [a-z0-9_]+\.[ch]/ {
			finish()
			text = substr($0, 2)
			while (match(text, /^[a-z0-9_]+\.[ch]/)) {
				names[++count] = substr(text, 1, RLENGTH)
				text = substr(text, RLENGTH + 1)
				sub(/^, */, "", text)
			}
			next
		}
		/^  / { text = text " " $0; next }
		{ finish() }
		END { finish() }' src/README
}

read_list()
{
	local file pure

	while read -r file pure; do
		rank[$file]=${#rank[@]}
		[ -z "$pure" ] || is_pure[$file]=yes
	done < <(listed_files)
}

# Set "place" to that of a file in the list, or of the entry that it belongs to.
find_place()
{
	place=${rank[$1]-${rank[${1%.h}.c]-}}
}

# Note which headers of ours each file of src includes itself.  PostgreSQL has some
# of the same names, in folders.
read_includes()
{
	local file header

	for file in src/*.[ch]; do
		includes[${file##*/}]=
		while read -r header; do
			[ ! -f "src/$header" ] || includes[${file##*/}]+=" $header"
		done < <(sed -nE 's|^\s*#\s*include\s*"(\.\.?/)*(src/)?([^"/]+)".*|\3|p' "$file")
	done
}

# Set "found" to those that it includes, directly or not.
find_includes()
{
	local file header next
	local queue=$1

	found=' '
	while [ -n "$queue" ]; do
		next=
		for file in $queue; do
			for header in ${includes[$file]-}; do
				[[ $found = *" $header "* ]] && continue
				found+="$header "
				next+=" $header"
			done
		done
		queue=$next
	done
}

# A file without its comments, each line with its number before it.
without_comments()
{
	perl -0777 -pe 's{/\*.*?\*/}{$& =~ s/[^\n]//gr}gse; my $n = 0; s/^/++$n . ":"/gme' "$1"
}

# ---- includes -------------------------------------------------------------

unlisted_files()
{
	local file

	[ ${#rank[@]} -gt 0 ] || echo "src/README has no list of files"
	for file in src/*.[ch]; do
		find_place "${file##*/}"
		[ -n "$place" ] || echo "$file is not listed in src/README"
	done
}

missing_files()
{
	local file

	for file in "${!rank[@]}"; do
		[ -f "src/$file" ] || echo "src/$file is listed in src/README, but does not exist"
	done
}

# shared.h is composed of other modules' structs, so its includes point anywhere.
includes_that_point_up()
{
	local file header from

	for file in "${!includes[@]}"; do
		[ "$file" != shared.h ] || continue
		find_place "$file"
		from=$place
		for header in ${includes[$file]}; do
			find_place "$header"
			[ -z "$from" ] || [ -z "$place" ] || [ "$place" -ge "$from" ] ||
				echo "src/$file includes $header, which src/README lists above it"
		done
	done
}

include_circles()
{
	local header

	for header in src/*.h; do
		find_includes "${header##*/}"
		[[ $found != *" ${header##*/} "* ]] || echo "$header includes itself"
	done
}

# Pure files get what they need as arguments, so that they are tested by table.
impure_includes()
{
	local entry file included

	[ ${#is_pure[@]} -gt 0 ] || echo "src/README calls no file pure"
	for entry in "${!is_pure[@]}"; do
		for file in "$entry" "${entry%.c}.h"; do
			[ -f "src/$file" ] || continue
			find_includes "$file"
			for included in "$file" $found; do
				[[ ! $included =~ ^$IMPURE_OWN$ ]] || echo "src/$file includes $included"
				search -oE "^\s*#\s*include\s*[\"<]$IMPURE_POSTGRES" "src/$included" |
					sed "s|^|src/$file, in $included: |"
			done
		done
	done
}

# ---- who may do what ------------------------------------------------------

# Arguments: a pattern, the names of the only files that may have it.
found_outside()
{
	local pattern=$1
	local file

	shift
	for file in src/*.[ch]; do
		case " $* " in
			*" ${file##*/} "*) ;;
			*) search -nHE "$pattern" "$file" ;;
		esac
	done
}

# The admission lock, by whatever name: taken, released, asked for, or its address
# taken.  That it is made, in shared.c, is no use of it.
admission_lock_outside_gate()
{
	local file

	for file in src/*.c src/*.h; do
		[ "$file" != src/gate.c ] || continue
		without_comments "$file" |
			search -E '\<LWLock[A-Za-z]* *\([^;]*(->|\.) *lock\>|\<(pgadm_)?shared *\)* *(->|\.) *lock\>' |
			search -vE '\<LWLockInitialize\>|\<history *(->|\.) *lock\>' |
			sed "s|^|$file:|"
	done
}

# ---- form -----------------------------------------------------------------

c_files()
{
	find src test \( -name build -o -name tmp_check \) -prune -o -name '*.[ch]' -print | sort
}

bad_headers()
{
	local file

	for file in $(c_files); do
		FILE=$file perl -0777 -ne '
			my $path = $ENV{FILE};
			my ($name) = $path =~ m{([^/]+)$};
			my ($comment) = m{\A/\*-{60,}\n( \*.*?\n) \*/\n}s;
			my $wrong =
			    !defined $comment ? "does not begin with a comment of the standard form"
			  : $comment !~ m{\A \*\n \* \Q$name\E\n} ? "has another name in its first comment"
			  : $comment !~ m{\n \* Copyright} ? "has no copyright in its first comment"
			  : $comment !~ m{\n \* IDENTIFICATION\n \*\t  \Q$path\E\n \*\n \*-{60,}\n\z} ?
			    "has another path, or none, below IDENTIFICATION" : "";
			print "$path $wrong\n" if $wrong;' "$file"
	done
}

# All text but what others have written: recorded files, and output of psql.
text_files()
{
	find src sql test .ci Makefile ./*.md ./*.sql ./*.control \
		\( -path test/data -o -path '*/expected' -o -name build -o -name tmp_check \) -prune -o \
		-type f ! -name '*.o' ! -name '*.so' ! -name '*.bc' ! -name '*.png' -print0
}

trailing_whitespace()
{
	text_files | xargs -0 grep -nHP '[ \t]+$' || [ $? -eq 123 ]
}

# Tabs are four wide.  In C up to three blanks may follow them, to align something;
# a script may have a text in some other language that is aligned as it likes.
blanks_for_tabs()
{
	text_files | grep -zE '\.[ch]$' | xargs -0 grep -nHP '^\t* +(\t|   )' || [ $? -eq 123 ]
	text_files | grep -zE '\.(p[lm]|sh)$' | xargs -0 grep -nHP '^ +(\t|   )' || [ $? -eq 123 ]
}

# What the library exports could clash with a name of another library.
foreign_exports()
{
	local object

	for object in src/*.o; do
		[ -f "${object%.o}.c" ] || continue
		nm -g --defined-only "$object" | awk '{ print $NF }' |
			search -vE '^(pgadm_|pg_finfo_pgadm_|_PG_|Pg_magic_func$)' | sed "s|^|${object%.o}.c exports |"
	done
}

# ---- tests ----------------------------------------------------------------

# "make installcheck" runs what the Makefile names, not what there is.  Arguments:
# its variable, then the files.
not_in_makefile()
{
	local variable=$1
	local file named

	shift
	named=$(sed -nE "/^$variable =/,/[^\\]\$/s/^$variable =|\\\\\$//gp" Makefile | xargs)
	for file; do
		file=${file##*/}
		[[ " $named " = *" ${file%.*} "* ]] || echo "$file is not in $variable of the Makefile"
	done
}

# ---- all of it ------------------------------------------------------------

main()
{
	read_list
	read_includes
	check "every file of src is listed in src/README" unlisted_files
	check "every file that src/README lists is there" missing_files
	check "files include those further down the list only" includes_that_point_up
	check "no circles of includes" include_circles
	check "pure files: no shared memory, lock, atomics, setting" impure_includes
	check "versions of PostgreSQL are told apart in compat.h and compat_plan.h only" \
		found_outside '\<PG_(VERSION|MAJORVERSION)(_NUM)?\>' compat.h compat_plan.h
	check "previous hooks are called in hooks.c only" found_outside '\<prev_' hooks.c
	if [ -f src/gate.c ]; then
		check "the admission lock is taken and released in gate.c only" admission_lock_outside_gate
	fi
	check "first comments have the standard form" bad_headers
	check "no whitespace at the end of a line" trailing_whitespace
	check "lines are indented with tabs" blanks_for_tabs
	if compgen -G 'src/*.o' >/dev/null; then
		check "all that is exported has the prefix pgadm_" foreign_exports
	else
		skip "all that is exported has the prefix pgadm_" "nothing has been built here"
	fi
	check "the Makefile names every regression test" not_in_makefile REGRESS sql/*.sql
	check "the Makefile names every isolation test" \
		not_in_makefile ISOLATION test/isolation/specs/*.spec
	echo "1..$tests"
	[ "$failures" -eq 0 ]
}

main
