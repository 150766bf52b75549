#!/usr/bin/env bash
#
# test/demo.sh
#		Shows what pg_admission does: an overload, without it and with it.
#
# Builds the extension, starts a PostgreSQL server of its own in a temporary
# folder, measures how many queries a second this machine can answer, and
# then offers it half of that up to ten times that, first with
# pg_admission.mode = off, then with enforce, all else by default.  Prints a
# table and draws a picture.  Nothing is left behind but the picture (and
# packages, if some had to be installed).

# shellcheck source-path=SCRIPTDIR source=lib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"
export LC_ALL=C

MULTIPLES=(0.5 1 2 4 10)
QUERY_MS=25
ACCOUNTS=400000					# pgbench makes 100,000 at scale 1

output=pg_admission-demo.png
connections=200
deadline=1000
duration=8
warmup=2
drift=

usage()
{
	cat <<EOT
Shows an overload of PostgreSQL without and with pg_admission, in under
three minutes, on a server of its own in a temporary folder.

Usage: test/demo.sh [OPTION]...

  -o, --output FILE       the picture (default $output, in this folder)
  -c, --connections NUM   connections of the clients (default $connections)
  -d, --deadline MS       clients give up after this long (default $deadline)
  -t, --duration SEC      time measured at each load (default $duration)
  -h, --help              show this help, then exit

PG_CONFIG chooses a PostgreSQL.  As root, the server runs as the user
RUN_USER (default postgres).
EOT
}

parse_options()
{
	local number

	while [ $# -gt 0 ]; do
		case $1 in
			-h | --help)
				usage
				exit 0
				;;
			-o | --output | -c | --connections | -d | --deadline | -t | --duration)
				[ $# -gt 1 ] || die "$1 needs a value"
				;;
			*) die "unknown option $1; try --help" ;;
		esac
		case $1 in
			-o | --output) output=$2 ;;
			-c | --connections) connections=$2 ;;
			-d | --deadline) deadline=$2 ;;
			-t | --duration) duration=$2 ;;
		esac
		shift 2
	done
	for number in "$connections" "$deadline" "$duration"; do
		[[ $number =~ ^[1-9][0-9]{0,5}$ ]] || die "not a number: $number"
	done
	case $output in
		/*) ;;
		*) output=$PWD/$output ;;
	esac
	: >>"$output" || die "cannot write the picture to $output"
	[ -s "$output" ] || rm -f -- "$output"
}

# One line that says what goes on; on a terminal it stays one.
progress()
{
	if [ -t 1 ]; then
		printf '\r\033[K[%3d s] %s' "$SECONDS" "$*"
	else
		printf '[%3d s] %s\n' "$SECONDS" "$*"
	fi
}

end_progress()
{
	if [ -t 1 ]; then
		printf '\r\033[K'
	fi
}

# Say so when this machine has other things to do.
warn_if_busy()
{
	local busy

	[ -r /proc/stat ] || return 0
	busy=$(
		{
			head -n 1 /proc/stat
			sleep 1
			head -n 1 /proc/stat
		} | awk '{
			idle = $5 + $6 - idle
			total = $2 + $3 + $4 + $5 + $6 + $7 + $8 + $9 - total
		}
		END { printf "%d", 100 * (1 - idle / total) }'
	)
	[ "$busy" -le 20 ] ||
		say "Note: other programs use $busy % of the CPUs; the figures will not be steady."
}

# Arithmetic with fractions.
calculate()
{
	awk "BEGIN { printf \"%.4g\", $1 }"
}

# ---- the server -----------------------------------------------------------

run_psql()
{
	as_user "$BINDIR/psql" -Xqt -v ON_ERROR_STOP=1 \
		-h "$(socket_dir "$WORK/data")" -U postgres -d demo "$@" </dev/null
}

# The query is to run in one process, so that its cost is simple to see, and
# to sort in memory.  All of pg_admission is by default but the mode.
start_server()
{
	start_cluster "$WORK/data" <<-EOT
		shared_preload_libraries = 'pg_admission'
		pg_admission.mode = off
		max_connections = $((connections + 20))
		max_parallel_workers_per_gather = 0
		work_mem = 16MB
		fsync = off
	EOT
	quietly createdb as_user "$BINDIR/createdb" \
		-h "$(socket_dir "$WORK/data")" -U postgres demo
	quietly pgbench as_user "$BINDIR/pgbench" -i -q -s $((ACCOUNTS / 100000)) \
		-h "$(socket_dir "$WORK/data")" -U postgres demo
	# The clients are an ordinary role: superusers are exempt.
	run_psql -c "CREATE ROLE client LOGIN" \
		-c "GRANT SELECT ON ALL TABLES IN SCHEMA public TO client" \
		-c "CREATE EXTENSION pg_admission"
}

set_mode()
{
	run_psql -c "ALTER SYSTEM SET pg_admission.mode = $1" \
		-c "SELECT pg_reload_conf()" >/dev/null
	sleep 0.5
}

# ---- the load -------------------------------------------------------------

# The clients stand for other machines, so they must not wait for a CPU
# behind the server they overload: they get real-time priority, if allowed.
find_priority()
{
	priority=()
	if is_root && chrt -f 1 true 2>/dev/null; then
		priority=(chrt -f 1 runuser -u "$RUN_USER" --)
	elif is_root; then
		priority=(runuser -u "$RUN_USER" --)
	fi
}

# Run the load generator.  Prints a line of tab-separated values.
run_load()
{
	${priority[@]+"${priority[@]}"} "$WORK/loadgen" --format=tsv \
		--query "SELECT count(*) FROM (SELECT aid FROM pgbench_accounts WHERE aid <= $rows ORDER BY md5(aid::text)) s" \
		"$@" "host=$(socket_dir "$WORK/data") user=client dbname=demo" </dev/null
}

# Find how many rows take QUERY_MS alone.  The column is the median latency.
calibrate_query()
{
	local median

	rows=15000
	for _ in 1 2 3; do
		median=$(run_load --calibrate -c 1 -w 0.3 -t 1.2 | cut -f 6)
		[ "$median" != - ] || die "the query fails: see its message with psql"
		rows=$(awk "BEGIN { print int($rows * $QUERY_MS / $median) }")
		rows=$((rows < 100 ? 100 : rows > ACCOUNTS ? ACCOUNTS : rows))
	done
}

# Print how many a second the machine can answer: kept busy by a few clients,
# as many as pg_admission lets run by default.
measure_capacity()
{
	run_load --calibrate -c $((3 * $(nproc))) -w 1 -t "$1" | cut -f 2
}

# Note it when that has changed since, as it does where machines share a host.
note_drift()
{
	local after

	set_mode off
	after=$(measure_capacity 4)
	awk "BEGIN { exit $after > 0.9 * $capacity && $after < 1.1 * $capacity }" || return 0
	drift="Note: after all this it could answer $after/s; the figures are not steady."
}

# Offer all the loads in one mode; lines go to $WORK/results.
offer_loads()
{
	local mode=$1
	local multiple rate

	set_mode "$mode"
	for multiple in "${MULTIPLES[@]}"; do
		rate=$(calculate "$capacity * $multiple")
		progress "mode = $mode, offering $multiple x capacity, $rate/s"
		printf '%s\t%s\t%s\n' "$mode" "$multiple" "$(
			run_load --rate "$rate" --duration "$duration" --warmup "$warmup" \
				--connections "$connections" --deadline "$deadline"
		)" >>"$WORK/results"
	done
}

# ---- the result -----------------------------------------------------------

# Columns of $WORK/results: mode, multiple, then those of loadgen --help.
print_table()
{
	awk -F '\t' -v duration="$duration" '
	function ms(text, format)
	{
		return text == "-" ? text : sprintf(format " ms", text)
	}
	function rate(count)
	{
		return sprintf("%.1f/s", count / duration)
	}
	function line(a, b, c, d, e, f, g, h, i, j, k)
	{
		printf "| %-7s | %7s | %7s | %7s | %8s | %7s | %7s | %7s | %8s | %8s | %8s |\n",
			a, b, c, d, e, f, g, h, i, j, k
	}
	{
		answers[$1, $2] = sprintf("%.1f/s", $4)
		median[$1, $2] = ms($8, "%.0f")
		p99[$1, $2] = ms($9, "%.0f")
		refused[$1, $2] = rate($10)
		cost[$1, $2] = ms($11, "%.2f")
		timeouts[$1, $2] = rate($13)
	}
	!($2 in seen) {
		seen[$2] = 1
		order[++n] = $2
	}
	END {
		printf "%9s | %-38s | %s\n", "", "plain PostgreSQL: mode = off", "pg_admission: mode = enforce"
		line("offered", "in time", "median", "99 %", "timeouts", "in time", "median",
			"99 %", "refused", "its cost", "timeouts")
		line("---", "--:", "--:", "--:", "--:", "--:", "--:", "--:", "--:", "--:", "--:")
		for (i = 1; i <= n; i++) {
			m = order[i]
			line(m " x", answers["off", m], median["off", m], p99["off", m],
				timeouts["off", m], answers["enforce", m], median["enforce", m],
				p99["enforce", m], refused["enforce", m], cost["enforce", m],
				timeouts["enforce", m])
		}
	}' "$WORK/results"
}

# How much is left of the best of the first two loads.
print_summary()
{
	awk -F '\t' '
	$2 <= 1 && $4 > best[$1] { best[$1] = $4 }
	$2 > 1 && best[$1] > 0 {
		kept[$1] = kept[$1] sprintf("%s %.0f %% at %s x", kept[$1] ? "," : "",
			100 * $4 / best[$1], $2)
	}
	$16 + 0 > 20 { late = late " " $1 " " $2 " x (" $16 " ms)" }
	END {
		print "Of its best at 0.5 and 1 x, plain PostgreSQL still answers" kept["off"] ","
		print "pg_admission" kept["enforce"] "."
		if (late)
			print "The load generator itself was short of CPU time:" late
	}' "$WORK/results"
	awk -F '\t' '$15 > 0 {
		print "Other errors with mode = " $1 " at " $2 " x: " $17
	}' "$WORK/results"
}

draw_picture()
{
	awk -F '\t' '
	{ value[$1, $2] = $4 }
	!($2 in seen) { seen[$2] = 1; order[++n] = $2 }
	END {
		for (i = 1; i <= n; i++)
			print order[i], value["off", order[i]], value["enforce", order[i]]
	}' "$WORK/results" >"$WORK/picture.data"
	quietly gnuplot gnuplot -e "data = '$WORK/picture.data'" \
		-e "output = '$WORK/picture.png'" -e "capacity = $capacity" \
		-e "deadline = $deadline" -e "query = $QUERY_MS" \
		-e "machine = '$(nproc) cores'" "$TOP/test/lib/demo.gp"
	cat "$WORK/picture.png" >"$output"
}

main()
{
	local gnuplot=()

	parse_options "$@"
	SECONDS=0
	make_workdir
	command -v gnuplot >/dev/null || gnuplot=(gnuplot-nox)
	need_postgres ${gnuplot[@]+"${gnuplot[@]}"}

	warn_if_busy
	progress "building pg_admission"
	private_postgres
	build_extension with_llvm=no
	build_loadgen
	progress "starting a server in $WORK"
	start_server

	find_priority
	progress "measuring the capacity of this machine"
	calibrate_query
	capacity=$(measure_capacity 6)
	offer_loads off
	offer_loads enforce
	progress "measuring the capacity again"
	note_drift
	end_progress

	say "A query of $QUERY_MS ms, $connections connections, clients that give up after" \
		"$deadline ms."
	say "This machine, $(nproc) cores, can answer $capacity/s.  Offered are multiples of that."
	[ -z "$drift" ] || say "$drift"
	say
	print_table
	say
	print_summary
	draw_picture
	say "Picture: $output ($SECONDS s in all)"
}

main "$@"
