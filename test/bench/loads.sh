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

# load select_300: pgbench -S -M prepared, 300 clients
prepare_select_300() { fill_pgbench; }
load_select_300()
{
	printf 'tps %s\n' "$(bench -S -M prepared -c 300 -j 2 -T "$1" | tps)"
}

# load select_64: the same with 64 clients
prepare_select_64() { fill_pgbench; }
load_select_64()
{
	printf 'tps %s\n' "$(bench -S -M prepared -c 64 -j 2 -T "$1" | tps)"
}

# load select_2: the same with 2 clients
prepare_select_2() { fill_pgbench; }
load_select_2()
{
	printf 'tps %s\n' "$(bench -S -M prepared -c 2 -j 1 -T "$1" | tps)"
}

# load tpcb_16: TPC-B, 16 clients
prepare_tpcb_16() { fill_pgbench; }
load_tpcb_16()
{
	printf 'tps %s\n' "$(bench -c 16 -j 2 -T "$1" | tps)"
}

# load tpcb_64: TPC-B, 64 clients
prepare_tpcb_64() { fill_pgbench; }
load_tpcb_64()
{
	printf 'tps %s\n' "$(bench -c 64 -j 2 -T "$1" | tps)"
}

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
