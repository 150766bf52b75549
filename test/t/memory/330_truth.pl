# What queries really had allocated is compared with their charge.

use strict;
use warnings;

use PgAdmission;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server(
	'truth',
	'pg_admission.cores' => 8,
	'pg_admission.total_memory' => "'8GB'",
	'work_mem' => "'64MB'",
	'compute_query_id' => 'on',
	'min_parallel_table_scan_size' => 0,
	'parallel_setup_cost' => 0,
	'parallel_tuple_cost' => 0,
	'jit' => 'off');

$node->safe_psql('postgres', q{
	SET ROLE app;
	CREATE TABLE big (i int PRIMARY KEY, filler text);
	INSERT INTO big SELECT i, md5(i::text) FROM generate_series(1, 100000) i;
	CREATE TABLE big2 AS SELECT i, filler AS other FROM big;
	-- half a million rows that the planner takes for ten
	CREATE FUNCTION many() RETURNS SETOF int LANGUAGE sql ROWS 10 AS
		'SELECT generate_series(1, 500000)';
	ANALYZE big, big2;
});

my $app = client($node);

sub memory
{
	my ($columns) = @_;

	return admin($node)->query("SELECT $columns FROM pg_stat_admission_memory")->{out};
}

# Run a query on clean statistics.
sub measure
{
	my ($sql) = @_;

	admin($node)->query('SELECT pg_admission_reset()');
	my $result = $app->query($sql);
	is($result->{state}, '00000', "runs: $sql") or diag $result->{err};
	return $result->{out};
}

# A sort, with and without a portal that is run in parts

for my $sql ('SELECT count(*) FROM (SELECT * FROM big ORDER BY filler OFFSET 0) s',
	'BEGIN; DECLARE c CURSOR FOR SELECT * FROM big ORDER BY filler; MOVE 10 IN c; MOVE 10 IN c; COMMIT')
{
	measure($sql);
	is(memory('queries, underestimated, overestimated'), '1|0|0', 'one query, well estimated');
	is(memory('allocated_bytes > 8000000 AND charged_bytes BETWEEN allocated_bytes AND 4 * allocated_bytes'),
		't', 'it had what it was charged, nearly');
	is(memory('worst_underestimate_query_id IS NULL AND worst_underestimate_charged_bytes IS NULL
		AND worst_overestimate_charged_bytes = charged_bytes AND worst_overestimate_allocated_bytes = allocated_bytes'),
		't', 'it is the worst overestimate');
}
measure('SELECT count(*) FROM (SELECT * FROM big ORDER BY filler OFFSET 0) s');
is(memory('worst_overestimate_query_id <> 0'), 't', 'its identifier is known');
is($app->query('SELECT worst_overestimate_query_id IS NULL, worst_overestimate_charged_bytes > 0 FROM pg_stat_admission_memory')->{out},
	't|t', 'but not shown to everybody');

# Batches that were given back count as well

$app->query("SET enable_mergejoin = off; SET max_parallel_workers_per_gather = 0; SET work_mem = '1MB'");
measure('SELECT count(filler || other) FROM big JOIN big2 USING (i)');
is(memory('allocated_bytes > 1200000'), 't', 'a hash join in batches');
$app->query("RESET work_mem");

# Parallel workers, and the hash table that they share

sub allocated
{
	my ($workers, $sql) = @_;

	$app->query("SET max_parallel_workers_per_gather = $workers");
	measure($sql);
	is(memory('queries'), 1, 'one query');
	is(memory('underestimated'), 0, 'charged what it had');
	return memory('allocated_bytes');
}

my $join = 'SELECT count(filler || other) FROM big JOIN big2 USING (i)';
my $one = allocated(0, $join);
my $plan = $app->query("SET max_parallel_workers_per_gather = 2; EXPLAIN (ANALYZE, COSTS off, TIMING off) $join")->{out};
like($plan, qr/Parallel Hash\b/, 'plan has a Parallel Hash');
my ($launched) = $plan =~ /Workers Launched: (\d)/;
cmp_ok($launched, '>', 0, 'workers are launched');
cmp_ok(allocated(2, $join), '>', 0.7 * $one, 'its table is seen, although it is shared');

my $sort = 'SELECT count(*) FROM (SELECT i, filler FROM big ORDER BY filler, i OFFSET 0) s';
$app->query('SET parallel_leader_participation = off');
my $sorted = allocated(2, $sort);
cmp_ok($sorted, '>', 8000000, 'what workers sorted is seen, although the leader has none of it');
$app->query('RESET parallel_leader_participation; SET max_parallel_workers_per_gather = 0');

# Misestimates

measure('SELECT count(*) FROM (SELECT m, filler FROM many() m, (SELECT filler FROM big LIMIT 1) b ORDER BY m OFFSET 0) s');
is(memory('queries, underestimated, worst_underestimate_allocated_bytes - worst_underestimate_charged_bytes = underestimated_bytes'),
	'1|1|t', 'a query that the planner is wrong about');
is(memory('worst_underestimate_allocated_bytes > 4000000'), 't', 'how much it had');
my $worst = memory('worst_underestimate_query_id');
$app->query('SELECT count(*) FROM (SELECT * FROM big ORDER BY filler OFFSET 0) s');
is(memory('queries, underestimated'), '2|1', 'another query');
is(memory('worst_underestimate_query_id'), $worst, 'the worst one stays');

# An estimate that is too high: few rows have so much that the limit is expected

$node->safe_psql('postgres', q{
	UPDATE pg_class SET reltuples = 1e7 WHERE oid = 'big2'::regclass});
$app->query('SET enable_indexscan = off; SET enable_bitmapscan = off');
measure("SELECT count(*) FROM (SELECT * FROM big2 WHERE other || i = 'none' OR length(other) < 5 ORDER BY other OFFSET 0) s");
is(memory('queries, underestimated, overestimated'), '1|0|1', 'a query that is charged too much');
$app->query('RESET enable_indexscan; RESET enable_bitmapscan; ANALYZE big2');

# Not counted

measure('SELECT count(*) FROM t');
is(memory('queries'), 0, 'who is charged nothing is not counted');
measure('INSERT INTO t VALUES (11)');
is(memory('queries'), 0, 'also for a change');
measure('BEGIN; SELECT filler FROM big WHERE i = 5; COMMIT');
is(memory('queries'), 0, 'nor in a transaction');
measure("SELECT length(string_agg(repeat(i::text, 300000), '')) FROM t");
is(memory('queries, underestimated'), '1|1', 'unless it takes much');
admin($node)->query('SELECT pg_admission_reset()');
$app->query('SELECT 1 / (count(*) - 100000) FROM (SELECT * FROM big ORDER BY filler OFFSET 0) s');
is(memory('queries'), 0, 'nor is who fails');

# The operator's word is compared, too; mode "observe" measures

$node->safe_psql('postgres', "ALTER ROLE app SET pg_admission.query_memory = '1MB'; ALTER ROLE app SET pg_admission.mode = 'observe'");
$app->quit;
$app = client($node);
measure('SELECT count(*) FROM (SELECT * FROM big ORDER BY filler OFFSET 0) s');
is(memory('queries, underestimated, charged_bytes'), '1|1|1048576', "the operator's word is compared");
is($app->query('SELECT pg_admission_reset()')->{state}, '42501', 'not everybody may reset');
admin($node)->query('SELECT pg_admission_reset()');
is(memory('queries, charged_bytes, allocated_bytes, underestimated, underestimated_bytes, overestimated, worst_underestimate_charged_bytes IS NULL, worst_overestimate_charged_bytes IS NULL'),
	'0|0|0|0|0|0|t|t', 'reset');

server_is_idle($node);
done_testing();
