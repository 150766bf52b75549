#!/usr/bin/env bash
#
# test/bench/run.sh
#		Measures: how loads fare on one server compared with another.
#
# Each load is run on two servers in turn (A B B A ...), since machines are
# noisy: what counts are medians, and the ratio of runs that were neighbours.
# "run.sh -a off -b off" shows how much of a difference is noise.  Nothing here
# passes or fails.
#
# A server is one of
#
#		plain		PostgreSQL without the library
#		off, observe, enforce
#					with it, in that mode, and nothing else set
#		REV:MODE	the same, built from a revision of the repository
#
# A load is a function load_NAME in loads.sh beside this file; it prints lines
# "metric value", of which more is better unless the name ends in _ms.

# shellcheck source-path=SCRIPTDIR source=../lib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/common.sh"
# shellcheck source-path=SCRIPTDIR source=loads.sh
. "$TOP/test/bench/loads.sh"
export LC_ALL=C

pairs=4
seconds=10
first=off
second=enforce
json=
settings=()
export server=					# the current one's data directory

usage()
{
	cat <<EOT
Measures how loads fare on two servers, in alternating runs.

Usage: test/bench/run.sh [OPTION]... LOAD...

  -l          list the loads
  -n PAIRS    runs on each server (default $pairs)
  -d SECONDS  of each run (default $seconds)
  -a, -b      the servers (default $first and $second): plain, off, observe,
		enforce, or REVISION:MODE
  -c SETTING  NAME=VALUE, for both servers; several are allowed
  -j FILE     also write every run there, as lines of JSON
EOT
}

list_loads()
{
	sed -n 's/^# load \([a-z0-9_]*\): /\1\t/p' "$TOP/test/bench/loads.sh"
}

describe_machine()
{
	printf '%s CPUs (%s), %s kB memory, %s, %s\n' "$(nproc)" \
		"$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)" \
		"$(sed -n 's/^MemTotal: *\([0-9]*\).*/\1/p' /proc/meminfo)" \
		"$(uname -sr)" "$("$BINDIR/postgres" --version)"
}

# Build the library of a revision, or of the tree as it is.  Prints its folder.
build_library()
{
	local revision=$1
	local source=$WORK/source-${revision:-tree}

	if [ ! -d "$source" ]; then
		as_user mkdir "$source"
		if [ -n "$revision" ]; then
			git -C "$TOP" -c safe.directory="$TOP" archive "$revision"
		else
			tar -C "$TOP" --exclude=./.git --exclude='*.o' --exclude='*.so' -cf - .
		fi | as_user tar -C "$source" --no-same-owner -xf -
		quietly "build-${revision:-tree}" as_user make -C "$source" \
			-j "$(jobs_of_build)" PG_CONFIG="$PG_CONFIG" with_llvm=no
	fi
	printf '%s\n' "$source"
}

# The configuration of a server.
server_settings()
{
	local kind=$1
	local mode=${kind##*:}
	local revision=

	case $kind in *:*) revision=${kind%:*} ;; esac
	cat <<-EOT
		fsync = off
		max_connections = 400
		shared_buffers = 256MB
		log_checkpoints = off
	EOT
	[ "$kind" = plain ] || cat <<-EOT
		dynamic_library_path = '$(build_library "$revision"):\$libdir'
		shared_preload_libraries = 'pg_admission'
		pg_admission.mode = '$mode'
	EOT
	[ ${#settings[@]} -eq 0 ] || printf '%s\n' "${settings[@]}"
}

# Start the server of a kind, and fill it.
start_server()
{
	local data=$WORK/$1
	local configuration

	configuration=$(server_settings "$2")
	start_cluster "$data" <<<"$configuration"
	server=$data
	sql "CREATE ROLE app LOGIN; GRANT CREATE ON SCHEMA public TO app;
		GRANT pg_read_all_data, pg_write_all_data TO app" >/dev/null
}

# Run SQL on the current server, as its superuser.
sql()
{
	as_user "$BINDIR/psql" -XAqt -v ON_ERROR_STOP=1 -h "$(socket_dir "$server")" \
		-U postgres -d postgres -c "$1"
}

# One run of a load on one server; keeps what it prints.
run_once()
{
	local load=$1
	local side=$2
	local metric value

	server=$WORK/$side
	while read -r metric value; do
		printf '%s %s %s %s\n' "$load" "$side" "$metric" "$value" |
			as_user tee -a "$WORK/results" >/dev/null
		[ -z "$json" ] || printf '{"load":"%s","server":"%s","metric":"%s","value":%s}\n' \
			"$load" "$([ "$side" = a ] && echo "$first" || echo "$second")" \
			"$metric" "$value" >>"$json"
	done < <("load_$load" "$seconds")
}

# A table of medians and of the median ratio of neighbouring runs.
print_results()
{
	awk -v first="$first" -v second="$second" '
	function median(list, n,   i, j, t) {
		for (i = 2; i <= n; i++)
			for (j = i; j > 1 && list[j - 1] > list[j]; j--) {
				t = list[j]; list[j] = list[j - 1]; list[j - 1] = t
			}
		return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
	}
	{
		key = $1 " " $3
		if (!(key in seen)) { seen[key] = 1; keys[++nkeys] = key }
		value[key, $2, ++count[key, $2]] = $4
	}
	END {
		printf "%-24s %-18s %12s %12s %8s %6s\n", "load", "metric", first, second, "ratio", "runs"
		for (k = 1; k <= nkeys; k++) {
			key = keys[k]; n = count[key, "a"]
			if (count[key, "b"] < n) n = count[key, "b"]
			for (i = 1; i <= n; i++) {
				a[i] = value[key, "a", i] + 0; b[i] = value[key, "b", i] + 0
				r[i] = a[i] != 0 ? b[i] / a[i] : 0
			}
			split(key, word, " ")
			ratio = median(r, n)
			printf "%-24s %-18s %12.2f %12.2f %8.3f %6d\n", word[1], word[2], median(a, n), median(b, n), ratio, n
		}
	}' "$WORK/results"
}

measure()
{
	local load i

	for load; do
		for server in "$WORK/a" "$WORK/b"; do
			"prepare_$load" >"$WORK/prepare.log" 2>&1 || die "$(tail -n 5 "$WORK/prepare.log")"
		done
		for ((i = 0; i < pairs; i++)); do
			if ((i % 2 == 0)); then
				run_once "$load" a
				run_once "$load" b
			else
				run_once "$load" b
				run_once "$load" a
			fi
			say "  $load: $((i + 1)) of $pairs" >&2
		done
	done
}

main()
{
	local option load

	while getopts n:d:a:b:c:j:lh option; do
		case $option in
			n) pairs=$OPTARG ;;
			d) seconds=$OPTARG ;;
			a) first=$OPTARG ;;
			b) second=$OPTARG ;;
			c) settings+=("$OPTARG") ;;
			j) json=$OPTARG ;;
			l) list_loads; return ;;
			h) usage; return ;;
			*) usage >&2; return 2 ;;
		esac
	done
	shift $((OPTIND - 1))
	[ $# -gt 0 ] || die "name a load; -l lists them"
	for load; do
		[ "$(type -t "load_$load")" = function ] || die "unknown load \"$load\"; -l lists them"
	done

	make_workdir
	need_postgres
	private_postgres
	as_user touch "$WORK/results"
	start_server a "$first"
	start_server b "$second"
	describe_machine
	measure "$@"
	print_results
}

main "$@"
