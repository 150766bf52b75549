# Transactions, roles, parallel queries, and how settings reach a session.

use strict;
use warnings;

use PgAdmission;
use PgAdmissionKinds;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('transactions',
	'pg_admission.queue_capacity' => 0,
	'max_prepared_transactions' => 2,
	'max_worker_processes' => 8,
	'max_parallel_workers' => 4);
my $count = 'SELECT count(*) FROM t';
my $app = client($node);

sub runs
{
	my ($sql, $out, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	return succeeds_ok($app->query($sql), $out, $name);
}

sub is_refused
{
	my ($sql, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	return is($app->query($sql)->{state}, '53A01', $name);
}

runs('CREATE TABLE c (i int)', '', 'set up');

# Transactions

once_ok($node, sub { runs("BEGIN; SAVEPOINT a; SAVEPOINT b; $count; ROLLBACK TO a; RELEASE a; COMMIT", '10', 'savepoints') },
	'query in a savepoint');
counts_ok(
	$node,
	sub {
		runs("BEGIN; $count; SAVEPOINT a; INSERT INTO c VALUES (1); ROLLBACK TO a; $count; COMMIT", "10\n10", 'rollback');
		is(held($node, $app->{pid}), '', 'holds nothing');
	},
	'queries around a savepoint that is rolled back',
	admitted => 3);
counts_ok(
	$node,
	sub {
		is($app->query('BEGIN; SAVEPOINT a; SELECT 1 / (i - 1) FROM t')->{state}, '22012', 'error in a savepoint');
		is(held($node, $app->{pid}), '', 'holds nothing');
		runs("ROLLBACK TO a; $count; COMMIT", '10', 'and goes on');
	},
	'error in a subtransaction',
	admitted => 2);
counts_ok(
	$node,
	sub {
		runs("BEGIN; INSERT INTO c VALUES (1); DECLARE x CURSOR FOR SELECT i FROM t ORDER BY i; FETCH x; PREPARE TRANSACTION 'p'",
			'1', 'PREPARE TRANSACTION');
		is(held($node, $app->{pid}), '', 'holds nothing once prepared');
		runs("COMMIT PREPARED 'p'", '', 'COMMIT PREPARED');
		runs("BEGIN; INSERT INTO c VALUES (1); PREPARE TRANSACTION 'p'; ROLLBACK PREPARED 'p'", '', 'ROLLBACK PREPARED');
	},
	'two-phase commit',
	admitted => 3);

# Later queries of a transaction are not refused, and wait at the head.

{
	my ($late, $new) = (client($node), client($node));

	succeeds_ok($late->query("BEGIN; $count"), '10', 'first query of a transaction');
	my @holders = occupy($node, 2);

	is($new->query("BEGIN; $count")->{state}, '53A01', 'the first may be refused');
	$new->query('ROLLBACK');
	counts_ok(
		$node,
		sub { succeeds_ok($late->query($count), '10', 'later ones are not') },
		'without a queue, it is forced',
		admitted => 1, forced => 1);

	reload_with($node, { 'pg_admission.queue_capacity' => 1 }, 'queue_capacity', 1);
	queue_up($node, $new, $count);
	queue_up($node, $late, $count);
	is( admin($node)->query("SELECT pid, queue_position FROM pg_admission_queries WHERE state = 'queued' ORDER BY 2")->{out},
		"$late->{pid}|1\n$new->{pid}|2", 'it waits at the head of a full queue');
	is($app->query($count)->{state}, '53A01', 'from which others are refused');
	release($node, @holders);
	succeeds_ok($late->finish, '10', 'it runs');
	succeeds_ok($new->finish, '10', 'and so does the other');

	# With a transaction id it does not wait.
	succeeds_ok($late->query('INSERT INTO c VALUES (1)'), '', 'it takes a transaction id');
	@holders = occupy($node, 2);
	counts_ok(
		$node,
		sub { succeeds_ok($late->query($count), '10', 'a transaction with an id') },
		'does not wait',
		admitted => 1, forced => 1);
	$late->query('COMMIT');

	# Nor does one that holds memory wait for more.
	admin($node)->query(q{CREATE ROLE fat LOGIN; GRANT SELECT ON t TO fat;
		ALTER ROLE fat SET pg_admission.query_memory = '600MB'});
	my $fat = client($node, user => 'fat');
	release($node, shift @holders);
	$fat->query("BEGIN; DECLARE x CURSOR FOR $count");
	counts_ok(
		$node,
		sub { succeeds_ok($fat->query($count), '10', 'a transaction that holds memory') },
		'does not wait for more',
		admitted => 1, forced => 1);
	$fat->query('COMMIT');
	push @holders, occupy($node, 1);

	# Whoever was let in because nothing was refused is refused again later.
	queue_up($node, $new, $count);
	is($late->query("BEGIN; $count")->{state}, '53A01', 'the next transaction begins anew');
	$late->query('ROLLBACK');

	# Neither a bypassed query nor a command that is not subject counts.
	is($late->query("BEGIN; SELECT 1; SET LOCAL work_mem = '1MB'; $count")->{state}, '53A01',
		'a bypassed query is not the first');
	$late->query('ROLLBACK');
	release($node, @holders);
	$new->finish;
}

# Parallel query

reload_with($node, { 'pg_admission.cores_multiplier' => 4, 'pg_admission.queue_capacity' => 0 },
	'workers_total, queue_capacity', '4|0');
admin($node)->query(
	q{CREATE FUNCTION wait_for_lock(i int) RETURNS int LANGUAGE plpgsql PARALLEL SAFE AS
		'BEGIN PERFORM pg_advisory_xact_lock_shared(77); RETURN i; END';
	  CREATE TABLE p AS SELECT i FROM generate_series(1, 50000) i; ANALYZE p; GRANT ALL ON p TO app});
my $parallel = q{SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0;
	SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0};
runs($parallel, '', 'make plans parallel');
my $planned = () = $app->query('EXPLAIN SELECT sum(i) FROM p')->{out} =~ /Workers Planned: 2/g;
is($planned, 1, 'a parallel plan');
once_ok($node, sub { runs('SELECT sum(i) FROM p', '1250025000', 'parallel query') },
	'parallel query, whose workers do not ask');
{
	my $blocker = client($node, user => undef);

	$blocker->query('BEGIN; SELECT pg_advisory_xact_lock(77)');
	once_ok(
		$node,
		sub {
			$app->start('SELECT count(*) FROM p WHERE wait_for_lock(i) > 0 AND i <= 3');
			wait_for($node, "SELECT count(*) > 0 FROM pg_stat_activity WHERE leader_pid = $app->{pid} OR pid = $app->{pid} AND wait_event_type = 'Lock'");
			is(admin($node)->query("SELECT workers FROM pg_admission_queries WHERE pid = $app->{pid}")->{out},
				'3', 'the leader is charged for its workers');
			$blocker->query('ROLLBACK');
			is($app->finish->{out}, '3', 'and runs');
		},
		'parallel query with functions that run statements');
}

# Only workers that can be launched, and then those that were, are charged.

sub charged_ok
{
	my ($sql, $workers, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	$app->start($sql);
	ok( wait_for(
			$node,
			"SELECT workers FROM pg_admission_queries WHERE pid = $app->{pid}
			   AND state IN ('running', 'lent') AND EXISTS (SELECT FROM pg_stat_activity WHERE pid = $app->{pid} AND wait_event_type = 'Lock')",
			$workers),
		$name);
	admin($node)->query("SELECT pg_cancel_backend($app->{pid})");
	is($app->finish->{state}, '57014', "$name: ends");
	is(held($node, $app->{pid}), '', "$name: gives all back");
}
{
	my $slow = 'SELECT count(*) FROM p WHERE wait_for_lock(i) > 0 AND i <= 3';
	my $claimed = "SELECT workers FROM pg_admission_estimate('$slow')";

	is($app->query($claimed)->{out}, '3', 'claims its workers');
	foreach my $max (0, 1)
	{
		runs("SET max_parallel_workers = $max", '', "max_parallel_workers $max");
		is($app->query($claimed)->{out}, $max + 1, 'claims no more than can be launched');
	}
	runs('RESET max_parallel_workers', '', 'reset');

	# Others have taken the workers that all share.
	reload_with($node, { 'max_parallel_workers' => 2 });
	my $other = client($node, user => undef);
	my $blocker = client($node, user => undef);
	$blocker->query('BEGIN; SELECT pg_advisory_xact_lock(77)');
	$other->query($parallel);
	$other->start('SELECT count(*) FROM p WHERE wait_for_lock(i) > 0');
	wait_for($node, "SELECT count(*) FROM pg_stat_activity WHERE leader_pid = $other->{pid} AND wait_event_type = 'Lock'", 2);
	is($app->query($claimed)->{out}, '3', 'claims workers that others have');
	foreach my $query ($slow, "EXPLAIN ANALYZE $slow",
		'SELECT count(*) FROM p JOIN p q USING (i) WHERE wait_for_lock(i) > 0 AND i <= 3')
	{
		charged_ok($query, 1, "gives back what it has not launched: $query");
	}
	charged_ok('SELECT * FROM (SELECT count(*) FROM p WHERE wait_for_lock(i) > 0 AND i <= 3) a, (SELECT sum(i) FROM p) b',
		3, 'keeps those of a Gather that is still to come');
	admin($node)->query("SELECT pg_cancel_backend($other->{pid})");
	$other->finish;
	$blocker->query('ROLLBACK');
	runs('SELECT sum(i) FROM p', '1250025000', 'again with workers');
	reload_with($node, { 'max_parallel_workers' => 4 });
}
reload_with($node, { 'pg_admission.cores_multiplier' => 2 }, 'workers_total', '2');
once_ok($node, sub { runs('SELECT sum(i) FROM p', '1250025000', 'with a smaller budget') },
	'parallel query that plans more workers than there are');
once_ok($node, sub { like($app->query('EXPLAIN ANALYZE SELECT sum(i) FROM p')->{out}, qr/Workers Launched/, 'EXPLAIN ANALYZE') },
	'EXPLAIN ANALYZE of a parallel query');
runs('RESET ALL', '', 'reset');

# Roles: the session user counts

admin($node)->query(
	q{CREATE ROLE boss SUPERUSER LOGIN;
	  CREATE ROLE monitor LOGIN IN ROLE pg_monitor;
	  CREATE ROLE member IN ROLE pg_monitor;
	  GRANT app TO monitor;
	  GRANT SELECT ON t TO monitor, member;
	  CREATE FUNCTION as_boss() RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS 'BEGIN RETURN (SELECT count(*) FROM t); END';
	  ALTER FUNCTION as_boss() OWNER TO boss;
	  CREATE FUNCTION as_app() RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS 'BEGIN RETURN (SELECT count(*) FROM t); END';
	  ALTER FUNCTION as_app() OWNER TO app});
counts_ok($node, sub { runs('SELECT as_boss()', '10', 'SECURITY DEFINER') },
	'a function of a superuser is not exempt', admitted => 1, bypassed_no_relation => 1);
{
	my ($boss, $monitor) = (client($node, user => 'boss'), client($node, user => 'monitor'));
	my $bypassed = sub { counter($node, 'bypassed_role') };
	my $before = $bypassed->();

	exempt_ok(
		$node,
		sub {
			succeeds_ok($boss->query("SELECT as_app(); SET ROLE app; $count; SELECT as_app(); RESET ROLE"),
				"10\n10\n10", 'superuser as another role');
		},
		'a superuser who has set a role');
	exempt_ok(
		$node,
		sub { succeeds_ok($monitor->query("$count; SET ROLE app; $count; SELECT as_app()"), "10\n10\n10", 'exempt role') },
		'a member of an exempt role who has set another');
	is($bypassed->() - $before, 4, 'the statements of the exempt role are counted');
}
admin($node)->query('GRANT member TO app');
exempt_ok($node, sub { runs($count, '10', 'a member') }, 'a member of an exempt role, by another role');
admin($node)->query('REVOKE member FROM app');
once_ok($node, sub { runs($count, '10', 'no longer a member') }, 'no longer a member of an exempt role');
{
	my $boss = client($node, user => 'boss');

	once_ok($node, sub { succeeds_ok($boss->query("SET SESSION AUTHORIZATION app; $count"), '10', 'SET SESSION AUTHORIZATION') },
		'SET SESSION AUTHORIZATION changes the session user');
}

# Settings: reload, ALTER SYSTEM, SET LOCAL, RESET, connection options, roles

my $holder = (occupy($node, 1))[0];
$node->safe_psql('postgres', 'ALTER SYSTEM SET pg_admission.cores_multiplier = 1');
$node->reload;
ok(wait_for($node, 'SELECT workers_total FROM pg_admission_status', 1), 'ALTER SYSTEM');
is_refused($count, 'is in force');
$node->safe_psql('postgres', 'ALTER SYSTEM RESET ALL');
$node->reload;
ok(wait_for($node, 'SELECT workers_total FROM pg_admission_status', 2), 'ALTER SYSTEM RESET');
runs($count, '10', 'is in force');
push my @more, occupy($node, 1);

is($app->query("SET pg_admission.bypass = on")->{state}, '42501', 'bypass is not for everybody');
is($app->query("SET pg_admission.mode = off")->{state}, '42501', 'nor is mode');
is($app->query("SET pg_admission.cores = 5")->{state}, '55P02', 'a limit cannot be set in a session');
is($app->query("SET pg_admission.unknown = 5")->{state}, '42602', 'an unknown setting is an error');
is_refused($count, 'still refused');

admin($node)->query('ALTER ROLE app SET pg_admission.mode = observe');
{
	my $observer = client($node);
	counts_ok($node, sub { succeeds_ok($observer->query($count), '10', 'ALTER ROLE SET mode') },
		'mode of a role: observed only', admitted => 1);
}
admin($node)->query('ALTER ROLE app RESET ALL; ALTER DATABASE postgres SET pg_admission.bypass = on');
{
	my $bypassing = client($node);
	exempt_ok($node, sub { succeeds_ok($bypassing->query($count), '10', 'ALTER DATABASE SET bypass') }, 'bypass of a database');
}
admin($node)->query('ALTER DATABASE postgres RESET ALL; GRANT SET ON PARAMETER pg_admission.mode, pg_admission.bypass TO app');
{
	my $client = client($node, options => '-c pg_admission.mode=observe');
	succeeds_ok($client->query($count), '10', 'mode by connection options');
	is($client->query("SET pg_admission.mode = enforce; $count")->{state}, '53A01', 'SET mode');
	succeeds_ok($client->query("RESET pg_admission.mode; $count"), '10', 'RESET mode');
	is($client->query("SET pg_admission.mode = enforce; BEGIN; SET LOCAL pg_admission.bypass = on; $count; COMMIT; $count")->{state},
		'53A01', 'SET LOCAL bypass ends with its transaction');
	is($client->query("BEGIN; SAVEPOINT a; SET LOCAL pg_admission.bypass = on; ROLLBACK TO a; $count")->{state},
		'53A01', 'and with a savepoint');
	$client->query('ROLLBACK');
	succeeds_ok($client->query("SET pg_admission.mode = off; $count"), '10', 'mode off');
}
release($node, $holder, @more);

# A mode that changes while cursors are open
counts_ok(
	$node,
	sub {
		runs("BEGIN; DECLARE x CURSOR FOR SELECT i FROM t ORDER BY i; FETCH x; SET LOCAL pg_admission.mode = off; FETCH x; $count; SET LOCAL pg_admission.mode = enforce; FETCH x; COMMIT",
			"1\n2\n10\n3", 'mode changes while a cursor is open');
		is(held($node, $app->{pid}), '', 'and it holds nothing afterwards');
	},
	'cursor while the mode changes',
	admitted => 1);

# psql's ways

once_ok($node, sub { runs('CREATE TEMP TABLE tt AS SELECT i FROM t; DROP TABLE tt', '', 'temporary table') }, 'temporary table');
counts_ok($node, sub { runs("$count \\gdesc\n;", 'count|bigint', '\gdesc') }, '\gdesc', bypassed_no_relation => 1);
counts_ok($node, sub { runs("$count \\gset\n\\echo :count\n;", '10', '\gset') }, '\gset', admitted => 1);
counts_ok($node, sub { runs("SELECT 'SELECT count(*) FROM t' FROM t LIMIT 2 \\gexec\n;", "10\n10", '\gexec') }, '\gexec', admitted => 3);
counts_ok($node, sub { runs("\\set FETCH_COUNT 3\nSELECT i FROM t ORDER BY i;\n\\set FETCH_COUNT 0\n;", join("\n", 1 .. 10), 'FETCH_COUNT') },
	'FETCH_COUNT', admitted => 1);
my $file = $node->basedir . '/script.sql';
append_to_file($file, "$count;\nINSERT INTO c SELECT i FROM t;\n\\copy t to '/dev/null'\n$count;\n");
counts_ok(
	$node,
	sub {
		command_ok([ 'psql', '-X', '-1', '-f', $file, '-d', $node->connstr('postgres') . ' user=app' ], 'psql -1 -f');
	},
	'psql -1 -f with \copy',
	admitted => 4);
counts_ok(
	$node,
	sub { command_ok([ 'psql', '-X', '-c', "\\copy t to '/dev/null'", '-d', $node->connstr('postgres') . ' user=app' ], '\copy') },
	'\copy',
	admitted => 1);
{
	my $watcher = client($node);
	my $before = counter($node, 'admitted');

	$watcher->start("$count \\watch 0.01\n;");
	ok(wait_for($node, "SELECT admitted >= $before + 3 FROM pg_stat_admission"), '\watch');
	$watcher->vanish;
	wait_for($node, "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $watcher->{pid})");
}

server_is_idle($node);
done_testing();
