# Other extensions with hooks of their own, loaded before and after: each sees
# every statement, and what they do is not taken for the client's.

use strict;
use warnings;

use PgAdmission;
use PgAdmissionKinds;
use PostgreSQL::Test::Utils;
use Test::More;

# pg_wait_sampling is a package of its own
chomp(my $libdir = `pg_config --pkglibdir`);
my $sampling = -e "$libdir/pg_wait_sampling.so";
my @others = ('pg_stat_statements', 'auto_explain', $sampling ? 'pg_wait_sampling' : ());

my @orders = (
	[ 'outside', "'" . join(', ', 'pg_admission', @others) . "'" ],
	[ 'inside', "'" . join(', ', reverse('pg_admission', @others)) . "'" ]);

foreach my $order (@orders)
{
	my ($where, $libraries) = @$order;
	my $node = new_server(
		"others_$where",
		'shared_preload_libraries' => $libraries,
		'pg_admission.queue_capacity' => 4,
		'compute_query_id' => 'on',
		'pg_stat_statements.track' => 'all',
		'auto_explain.log_min_duration' => 0,
		'auto_explain.log_analyze' => 'on',
		'auto_explain.log_buffers' => 'on',
		'auto_explain.log_nested_statements' => 'on');
	my $app = client($node);
	my $count = 'SELECT count(*) FROM t';

	admin($node)->query(
		q{CREATE EXTENSION pg_stat_statements;
		  CREATE FUNCTION f() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN (SELECT count(*) FROM t); END'});

	once_ok($node, sub { succeeds_ok($app->query($count), '10', 'query') }, "$where: query");
	once_ok($node, sub { succeeds_ok($app->query('SELECT f() FROM t LIMIT 1'), '10', 'nested') }, "$where: nested statement");
	counts_ok($node, sub { succeeds_ok($app->query('SELECT f()'), '10', 'nested in a bypassed one') },
		"$where: nested in a bypassed one", admitted => 1, bypassed_no_relation => 1);
	once_ok($node, sub { succeeds_ok($app->query('BEGIN; DECLARE c CURSOR FOR SELECT i FROM t ORDER BY i; FETCH 2 FROM c; FETCH c; COMMIT'), "1\n2\n3", 'cursor') },
		"$where: cursor");
	once_ok($node, sub { is($app->query('SELECT 1 / (i - 1) FROM t')->{state}, '22012', 'error') }, "$where: error");
	once_ok($node, sub { succeeds_ok($app->query('CREATE TABLE made AS SELECT i FROM t; DROP TABLE made'), '', 'CREATE TABLE AS') },
		"$where: CREATE TABLE AS");
	once_ok($node, sub { succeeds_ok($app->query('ANALYZE t'), '', 'utility command') }, "$where: utility command");
	once_ok($node, sub { is($app->query('EXPLAIN ANALYZE SELECT 1 / (i - 1) FROM t')->{state}, '22012', 'EXPLAIN') },
		"$where: EXPLAIN ANALYZE that fails");

	# A wait of a second and more is not execution time of a query.
	my @holders = occupy($node, 2);
	admin($node)->query('SELECT pg_stat_statements_reset()');
	queue_up($node, $app, $count);
	wait_for($node, "SELECT wait_ms > 1000 FROM pg_admission_queries WHERE state = 'queued'");
	release($node, @holders);
	succeeds_ok($app->finish, '10', "$where: queued query");
	is( admin($node)->query(
			"SELECT calls, rows, total_exec_time < 1000 FROM pg_stat_statements WHERE query = 'SELECT count(*) FROM t'")->{out},
		'1|1|t', "$where: pg_stat_statements counts it once, without its wait");
	is( admin($node)->query(
			"SELECT count(*) FROM pg_stat_statements WHERE query LIKE 'SELECT count%FROM t'")->{out},
		'1', "$where: and only once");

	# The wait of a utility command is, if pg_stat_statements is outside.
	@holders = occupy($node, 2);
	queue_up($node, $app, 'ANALYZE t');
	wait_for($node, "SELECT wait_ms > 1000 FROM pg_admission_queries WHERE state = 'queued'");
	release($node, @holders);
	succeeds_ok($app->finish, '', "$where: queued utility command");
	is( admin($node)->query(
			"SELECT calls, total_exec_time > 1000 FROM pg_stat_statements WHERE query = 'ANALYZE t'")->{out},
		$where eq 'outside' ? '1|t' : '1|f',
		"$where: its wait is " . ($where eq 'outside' ? '' : 'not ') . 'part of its time');

	# Samples of waits show that of a query in the queue.
  SKIP:
	{
		skip 'pg_wait_sampling is not installed', 2 unless $sampling;

		admin($node)->query('CREATE EXTENSION pg_wait_sampling');
		@holders = occupy($node, 2);
		queue_up($node, $app, $count);
		ok(wait_for($node,
				"SELECT count(*) > 0 FROM pg_wait_sampling_profile WHERE pid = $app->{pid} AND event_type = 'Extension'"),
			"$where: pg_wait_sampling sees the wait in the queue");
		release($node, @holders);
		succeeds_ok($app->finish, '10', "$where: which ends as ever");
	}

	# The same identifier in both
	my $holder = (occupy($node, 1))[0];
	is( admin($node)->query(
			"SELECT q.query_id = a.query_id AND a.query_id <> 0 FROM pg_admission_queries q JOIN pg_stat_activity a USING (pid) WHERE pid = $holder->{pid}")->{out},
		't', "$where: query identifier");
	release($node, $holder);

	# A refused query is nobody's.
	reload_with($node, { 'pg_admission.queue_capacity' => 0 }, 'queue_capacity', 0);
	@holders = occupy($node, 2);
	admin($node)->query('SELECT pg_stat_statements_reset()');
	is($app->query($count)->{state}, '53A01', "$where: refused query");
	is( admin($node)->query("SELECT count(*) FROM pg_stat_statements WHERE query = 'SELECT count(*) FROM t'")->{out},
		'0', "$where: is not counted by pg_stat_statements");
	release($node, @holders);

	$app->quit;
	like(slurp_file($node->logfile),
		qr/plan:\s+Query Text: SELECT count\(\*\) FROM t.*?Aggregate .*?actual time=/s,
		"$where: auto_explain logs plans with their times");
	server_is_idle($node, "$where: server is idle");
	$node->stop;
}

done_testing();
