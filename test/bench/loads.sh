# shellcheck shell=bash
#
# test/bench/loads.sh
#		The loads of run.sh.
#
# prepare_NAME makes what a load needs, once on each server; load_NAME runs it
# for so many seconds on the current server, $server, and prints lines
# "metric value".  Loads run as the role app, which is not exempt.

# The application's sessions connect as that role.
bench()
{
	as_user "$BINDIR/pgbench" -h "$(socket_dir "$server")" -U app -n "$@" postgres 2>&1
}

# Print the transactions per second of what pgbench said.
tps()
{
	sed -n 's/^tps = \([0-9.]*\) (without.*/\1/p'
}

# A file with a script for pgbench.
script()
{
	local file=$WORK/script-$1

	as_user tee "$file" >/dev/null
	printf '%s\n' "$file"
}

fill_pgbench()
{
	[ "$(sql "SELECT count(*) FROM pg_class WHERE relname = 'pgbench_accounts'")" = 1 ] ||
		as_user "$BINDIR/pgbench" -h "$(socket_dir "$server")" -U app -q -i -s 10 postgres
}

# Run pgbench on its own tables.  Arguments: the seconds, then its options.
pgbench_tps()
{
	local seconds=$1

	shift
	printf 'tps %s\n' "$(bench "$@" -T "$seconds" | tps)"
}

# load select_300: pgbench -S -M prepared, 300 clients (use -c pg_admission.queue_capacity=1000)
prepare_select_300() { fill_pgbench; }
load_select_300() { pgbench_tps "$1" -S -M prepared -c 300 -j 2; }

# load select_64: the same with 64 clients
prepare_select_64() { fill_pgbench; }
load_select_64() { pgbench_tps "$1" -S -M prepared -c 64 -j 2; }

# load select_2: the same with 2 clients
prepare_select_2() { fill_pgbench; }
load_select_2() { pgbench_tps "$1" -S -M prepared -c 2 -j 1; }

# load tpcb_16: TPC-B, 16 clients
prepare_tpcb_16() { fill_pgbench; }
load_tpcb_16() { pgbench_tps "$1" -c 16 -j 2; }

# load tpcb_64: TPC-B, 64 clients
prepare_tpcb_64() { fill_pgbench; }
load_tpcb_64() { pgbench_tps "$1" -c 64 -j 2; }

# load hot_row: 300 clients that update one row
prepare_hot_row()
{
	sql "DROP TABLE IF EXISTS hot; CREATE TABLE hot (i int); INSERT INTO hot VALUES (0)"
}
load_hot_row()
{
	local file

	file=$(script hot <<<"UPDATE hot SET i = i + 1;")
	printf 'tps %s\n' "$(bench -f "$file" -c 300 -j 2 -T "$1" | tps)"
}

# load sleepers: 100 clients whose query sleeps 20 ms
prepare_sleepers()
{
	sql "DROP TABLE IF EXISTS tiny; CREATE TABLE tiny AS SELECT 1 AS a"
}
load_sleepers()
{
	local file

	file=$(script sleepers <<<"SELECT pg_sleep(0.02), a FROM tiny;")
	printf 'tps %s\n' "$(bench -f "$file" -c 100 -j 2 -T "$1" | tps)"
}

# A table, and a query over it that sorts for about 1.4 s on one CPU.
prepare_analysts()
{
	[ "$(sql "SELECT count(*) FROM pg_class WHERE relname = 'facts'")" = 1 ] ||
		sql "CREATE TABLE facts AS SELECT i, md5(i::text) AS x FROM generate_series(1, 700000) i;
			ANALYZE facts"
}
start_analysts()
{
	local file

	file=$(script analysts <<<"SELECT count(*) FROM (SELECT x FROM facts ORDER BY x OFFSET 0) s;")
	bench -f "$file" -c 12 -j 1 -T "$1" >"$WORK/analysts.log" &
}

# load mixed: TPC-B, 32 clients, beside 12 analysts with sorts of 1.4 s
prepare_mixed() { fill_pgbench; prepare_analysts; }
load_mixed()
{
	start_analysts "$1"
	printf 'tpcb %s\n' "$(bench -c 32 -j 2 -T "$1" | tps)"
	wait
	printf 'analysts %s\n' "$(tps <"$WORK/analysts.log")"
}

# A table of 200,000 rows of 100 bytes, and one of one row.
prepare_rows()
{
	sql "DROP TABLE IF EXISTS t, tiny;
		CREATE TABLE t (id int PRIMARY KEY, x text);
		INSERT INTO t SELECT i, rpad(md5(i::text), 100) FROM generate_series(1, 200000) i;
		CREATE TABLE tiny AS SELECT 1 AS a;
		ANALYZE t, tiny"
}

# Run a query that claims some 48 MB, for so many seconds and more, as the role
# app, in the background.
big_query()
{
	as_user env PGOPTIONS="-c work_mem=90MB -c max_parallel_workers_per_gather=0" \
		"$BINDIR/psql" -XAqt -h "$(socket_dir "$server")" -U app -d postgres \
		-c "SELECT count(*), pg_sleep($1) FROM (SELECT x FROM t ORDER BY x OFFSET 0) s" \
		>"$WORK/big-$2.log" 2>&1 &
}

# load memory_waiter: SELECT count(*) FROM tiny, without and with a query that waits for memory (use -c pg_admission.cores=1 -c pg_admission.cores_multiplier=10 -c pg_admission.total_memory=120MB)
prepare_memory_waiter() { prepare_rows; }
load_memory_waiter()
{
	local file alone beside

	file=$(script tiny <<<"SELECT count(*) FROM tiny;")
	big_query $((2 * $1 + 6)) first
	sleep 1
	alone=$(bench -f "$file" -c 4 -j 1 -T "$1" | tps)
	big_query 0 second
	sleep 3
	beside=$(bench -f "$file" -c 4 -j 1 -T "$1" | tps)
	wait
	printf 'alone %s\nbeside_waiter %s\nbeside_by_alone %s\n' "$alone" "$beside" \
		"$(awk "BEGIN { print $beside / $alone }")"
}

# load memory_stream: 5 clients with small claims, then a sort that claims nearly everything (use -c pg_admission.cores=2 -c pg_admission.cores_multiplier=8 -c pg_admission.total_memory=66MB -c pg_admission.memory_fraction=0.5)
prepare_memory_stream() { prepare_rows; }
load_memory_stream()
{
	local file alone before after

	file=$(script stream <<<"SELECT DISTINCT x FROM t WHERE id < 20000 ORDER BY x OFFSET 19998;")
	alone=$(bench -f "$file" -c 5 -j 1 -T "$1" | tps)
	bench -f "$file" -c 5 -j 1 -T "$1" >"$WORK/stream.log" &
	sleep 2
	before=$(date +%s%N)
	as_user env PGOPTIONS="-c work_mem=23MB -c max_parallel_workers_per_gather=0" \
		"$BINDIR/psql" -XAqt -h "$(socket_dir "$server")" -U app -d postgres \
		-c "SELECT count(*) FROM (SELECT x FROM t ORDER BY x OFFSET 0) s" >"$WORK/sort.log" 2>&1 ||
		tail -n 1 "$WORK/sort.log" >&2
	after=$(date +%s%N)
	wait
	printf 'sort_ms %s\nalone %s\nbeside_sort %s\nbeside_by_alone %s\n' \
		$(((after - before) / 1000000)) "$alone" "$(tps <"$WORK/stream.log")" \
		"$(awk "BEGIN { print $(tps <"$WORK/stream.log") / $alone }")"
}
