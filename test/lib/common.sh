# shellcheck shell=bash
#
# test/lib/common.sh
#		What the scripts of this folder share.  Source it, do not run it:
#
#			. "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"
#			make_workdir				# $WORK, removed again at exit
#			need_postgres gnuplot-nox	# packages; then $PG_CONFIG and $BINDIR
#			private_postgres			# $PG_CONFIG and $BINDIR become a copy
#			build_extension				# make and make install, into the copy
#			start_cluster "$WORK/data" <<< "shared_preload_libraries = 'pg_admission'"
#			as_user psql -X -h "$(socket_dir "$WORK/data")" -U postgres
#
# Nothing outside $WORK is written, except by apt-get.  The extension is
# installed into a copy of PostgreSQL in $WORK, not into the system's:
# PostgreSQL finds its own files relative to its executable, so a copy of
# the executables with links to all the rest is a whole installation.  So
# nobody needs to be root to install, two runs do not disturb each other,
# and the servers of the machine are never touched.
#
# PostgreSQL does not run as root: as root everything but apt-get runs as
# the user in $RUN_USER, by default postgres.

set -euo pipefail

TOP=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
RUN_USER=${RUN_USER:-postgres}
WORK=
BINDIR=
SYSTEM_PG_CONFIG=
CLUSTERS=()

# The environment of whoever calls is for their servers, not for ours.
for variable in "${!PG@}"; do
	case $variable in
		PG[A-Z]*) unset "$variable" ;;
	esac
done
unset variable

# The version to install where there is no PostgreSQL yet.
DEFAULT_MAJOR=15

# ---- telling --------------------------------------------------------------

say()
{
	printf '%s\n' "$*"
}

die()
{
	printf '%s: %s\n' "${0##*/}" "$*" >&2
	exit 1
}

# Run a command with its output in a log file, and show that only on failure.
quietly()
{
	local log=$WORK/$1.log
	local rc=0

	shift
	"$@" >"$log" 2>&1 </dev/null || rc=$?
	if [ "$rc" -ne 0 ]; then
		tail -n 40 "$log" >&2
		die "failed: $*"
	fi
}

is_root()
{
	[ "$(id -u)" -eq 0 ]
}

# Run a command as an ordinary user.
as_user()
{
	if is_root; then
		runuser -u "$RUN_USER" -- "$@"
	else
		"$@"
	fi
}

# ---- the temporary folder -------------------------------------------------

# Make $WORK, and see to it that it goes, whichever way the script ends.  Neither
# make, which includes PostgreSQL's makefiles from there, nor PostgreSQL::Test
# can quote a name, so none is taken that would have to be quoted anywhere.
make_workdir()
{
	local parent=${TMPDIR:-/tmp}

	case $parent in
		*[![:alnum:]/._+-]*)
			die "cannot work in \"$parent\": set TMPDIR to a folder without" \
				"blanks, quotes and the like in its name"
			;;
	esac
	WORK=$(mktemp -d "$parent/pg_admission.XXXXXX")
	trap cleanup EXIT
	trap 'exit 129' HUP
	trap 'exit 130' INT
	trap 'exit 143' TERM
}

# In a trap: must get to its end whatever fails on the way.
cleanup()
{
	local rc=$?
	local data

	trap '' HUP INT TERM
	for data in ${CLUSTERS[@]+"${CLUSTERS[@]}"}; do
		stop_cluster "$data" immediate || true
	done
	if [ -n "$WORK" ]; then
		cd /
		rm -rf -- "$WORK" || true
	fi
	exit "$rc"
}

# The folder belongs to whom the servers run as.  That user may be made by
# the packages, so this comes after them.
give_workdir()
{
	if is_root; then
		id "$RUN_USER" >/dev/null 2>&1 ||
			die "there is no user $RUN_USER; set RUN_USER to an ordinary user"
		chown "$RUN_USER" "$WORK"
	fi
	cd "$WORK"
	as_user test -w . ||
		die "$RUN_USER cannot use $WORK; set TMPDIR to a folder open to all"
}

# ---- packages -------------------------------------------------------------

# Print those of the named Debian packages that are not installed.
missing_packages()
{
	local package

	for package; do
		dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null |
			grep -qx installed || printf '%s\n' "$package"
	done
}

apt_install()
{
	DEBIAN_FRONTEND=noninteractive apt-get install -y -q \
		--no-install-recommends "$@" >"$WORK/apt.log" 2>&1 </dev/null
}

# Install Debian packages by name, where they are missing.  Elsewhere than
# on Debian and its kin the build says what is missing.
need_packages()
{
	local missing

	command -v dpkg-query >/dev/null && command -v apt-get >/dev/null || return 0
	mapfile -t missing < <(missing_packages "$@")
	[ ${#missing[@]} -gt 0 ] || return 0

	is_root || die "these packages are missing, install them first:" \
		"apt-get install ${missing[*]}"
	say "Installing with apt-get: ${missing[*]}"
	apt_install "${missing[@]}" && return 0
	apt-get update -q >"$WORK/apt.log" 2>&1 </dev/null || true
	apt_install "${missing[@]}" && return 0
	tail -n 20 "$WORK/apt.log" >&2
	die "could not install: ${missing[*]}"
}

# Print the newest PostgreSQL that Debian's packages have put here.
newest_major()
{
	local postgres

	for postgres in /usr/lib/postgresql/*/bin/postgres; do
		[ -x "$postgres" ] || continue
		postgres=${postgres%/bin/postgres}
		printf '%s\n' "${postgres##*/}"
	done | sort -n | tail -n 1
}

# Print packages, with the major version for a %, if it is Debian's PostgreSQL that
# is used; others have nothing to do with such packages.
versioned_packages()
{
	local package major

	major=$(sed -nE 's|^/usr/lib/postgresql/([^/]+)/bin/.*|\1|p' <<<"$PG_CONFIG")
	for package; do
		[[ $package = *%* && -z $major ]] || printf '%s\n' "${package/\%/$major}"
	done
}

# Find PostgreSQL, or install it: $PG_CONFIG if it is set, or the newest of
# Debian's packages, or what is in the PATH.  Arguments: more packages, with a %
# where their names have PostgreSQL's major version.
need_postgres()
{
	local major
	local -a packages

	if [ -z "${PG_CONFIG:-}" ]; then
		major=$(newest_major)
		if [ -n "$major" ] || ! command -v pg_config >/dev/null; then
			major=${major:-$DEFAULT_MAJOR}
			set -- "postgresql-$major" "postgresql-server-dev-$major" "$@"
			PG_CONFIG=/usr/lib/postgresql/$major/bin/pg_config
		else
			PG_CONFIG=$(command -v pg_config)
		fi
	fi
	mapfile -t packages < <(versioned_packages "$@")
	need_packages gcc make libpq-dev libkrb5-dev ${packages[@]+"${packages[@]}"}
	[ -x "$PG_CONFIG" ] || die "no pg_config at $PG_CONFIG; set PG_CONFIG"
	BINDIR=$("$PG_CONFIG" --bindir)
	[ -x "$BINDIR/postgres" ] || die "no PostgreSQL server in $BINDIR"
	SYSTEM_PG_CONFIG=$PG_CONFIG
	export PG_CONFIG
	give_workdir
}

# ---- building -------------------------------------------------------------

# Print the longest folder that holds all the named ones.
common_folder()
{
	local common=$1
	local path

	for path; do
		while [ "${path#"$common"/}" = "$path" ]; do
			common=${common%/*}
		done
	done
	printf '%s\n' "$common"
}

# Put a copy of PostgreSQL into $WORK: executables copied, the rest linked.
private_postgres()
{
	local pkglib share include common folder
	local copy=$WORK/postgres

	pkglib=$("$PG_CONFIG" --pkglibdir)
	share=$("$PG_CONFIG" --sharedir)
	include=$("$PG_CONFIG" --pkgincludedir)
	common=$(common_folder "$BINDIR" "$pkglib" "$share" "$include")

	for folder in "$BINDIR" "$pkglib" "$share" "$include"; do
		as_user mkdir -p "$(dirname "$copy${folder#"$common"}")"
	done
	as_user cp -RL "$BINDIR" "$copy${BINDIR#"$common"}"
	as_user cp -Rs "$pkglib" "$copy${pkglib#"$common"}"
	as_user cp -Rs "$share" "$copy${share#"$common"}"
	as_user cp -Rs "$include" "$copy${include#"$common"}"

	PG_CONFIG=$copy${BINDIR#"$common"}/pg_config
	BINDIR=$copy${BINDIR#"$common"}
	[ "$(as_user "$PG_CONFIG" --pkglibdir)" = "$copy${pkglib#"$common"}" ] ||
		die "this PostgreSQL cannot be copied: $("$PG_CONFIG" --version)"

	# An older version of ours that is installed here is not the one to test.
	as_user find "$copy" -depth -name 'pg_admission*' -exec rm -rf {} +
}

# Print the number of processes a build may use.
jobs_of_build()
{
	nproc 2>/dev/null || echo 2
}

# Copy the source tree to $WORK/source, without what was built in it.
copy_source()
{
	as_user mkdir -p "$WORK/source"
	tar -C "$TOP" --exclude=./.git --exclude='*.o' --exclude='*.so' \
		--exclude='*.bc' --exclude=tmp_check --exclude=results --exclude=./test/unit/build \
		-cf - . | as_user tar -C "$WORK/source" --no-same-owner -xf -
}

# Build a copy of the source tree, and install into the copy of PostgreSQL.
# Arguments go to make: with_llvm=no for one that does without clang.
build_extension()
{
	copy_source
	quietly build as_user make -C "$WORK/source" -j "$(jobs_of_build)" \
		PG_CONFIG="$PG_CONFIG" "$@"
	quietly install as_user make -C "$WORK/source" install \
		PG_CONFIG="$PG_CONFIG" "$@"
}

# Build a library that only tests load, and install it likewise.  Arguments: its
# folder in test/modules, then what make gets.
build_module()
{
	local name=$1

	shift
	quietly "module-$name" as_user make -C "$WORK/source/test/modules/$name" \
		install PG_CONFIG="$PG_CONFIG" with_llvm=no "$@"
}

# Compile the load generator to $WORK/loadgen.
build_loadgen()
{
	local libdir

	libdir=$("$SYSTEM_PG_CONFIG" --libdir)
	as_user mkdir -p "$WORK/source/test"
	as_user tee "$WORK/source/test/loadgen.c" <"$TOP/test/loadgen.c" >/dev/null
	quietly loadgen as_user "${CC:-gcc}" -std=gnu99 -O2 -Wall -Wextra \
		-I"$("$SYSTEM_PG_CONFIG" --includedir)" \
		-o "$WORK/loadgen" "$WORK/source/test/loadgen.c" \
		-L"$libdir" -Wl,-rpath,"$libdir" -lpq -lm -lpthread
}

# ---- throwaway servers ----------------------------------------------------

# Print the folder of a cluster's socket.  (A socket's path is limited to
# about 100 bytes, so it is kept short.)
socket_dir()
{
	printf '%s/s\n' "$1"
}

# Make and start a cluster in the named folder, which must not exist.  It
# listens on a Unix socket only; lines on standard input go to its
# configuration.  The superuser is postgres, without a password.
start_cluster()
{
	local data=$1

	quietly initdb as_user "$BINDIR/initdb" -D "$data" -U postgres -A trust \
		-E UTF8 --locale=C --no-sync --no-instructions
	as_user mkdir -m 700 "$(socket_dir "$data")"
	{
		printf "listen_addresses = ''\n"
		printf "unix_socket_directories = '%s'\n" "$(socket_dir "$data")"
		cat
	} | as_user tee -a "$data/postgresql.conf" >/dev/null
	CLUSTERS+=("$data")
	restart_cluster "$data" start
}

# Start it again.  Says why when it does not start.
restart_cluster()
{
	local data=$1

	as_user "$BINDIR/pg_ctl" "${2:-restart}" -D "$data" -s -w -t 60 -m fast \
		-l "$data/server.log" </dev/null || {
		as_user tail -n 20 "$data/server.log" >&2
		die "the server in $data did not start"
	}
}

stop_cluster()
{
	local data=$1

	[ -f "$data/postmaster.pid" ] || return 0
	as_user "$BINDIR/pg_ctl" stop -D "$data" -s -w -t 60 -m "${2:-fast}" </dev/null
}
