# A query leaves the queue, or the server, other than by being admitted or
# ending well.

use strict;
use warnings;

use PgAdmission;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('leaving',
	'restart_after_crash' => 'on',
	'pg_admission.queue_capacity' => 10);
my $count = 'SELECT count(*) FROM t';
my @holders = occupy($node, 2);

sub cancelled
{
	return counter($node, 'cancelled_while_queued');
}

# Cancelled while queued

my $client = queue_up($node, client($node), $count);
admin($node)->query("SELECT pg_cancel_backend($client->{pid})");
cancelled_ok($client->finish, 'canceling statement due to user request',
	'cancelled while queued');
is(status($node, 'queued') . cancelled(), '01', 'it has left the queue');

# Timed out while queued

$client->query("SET statement_timeout = '100ms'");
cancelled_ok($client->query($count), 'canceling statement due to statement timeout',
	'statement_timeout while queued');
is(status($node, 'queued') . cancelled(), '02', 'it has left the queue');
$client->query('RESET statement_timeout');

# Cancelled in a transaction, in a subtransaction and by a handler

$client->query('BEGIN');
queue_up($node, $client, "SAVEPOINT a; $count");
admin($node)->query("SELECT pg_cancel_backend($client->{pid})");
is($client->finish->{state}, '57014', 'cancelled in a subtransaction');
is(status($node, 'queued'), 0, 'it has left the queue');
$client->query('ROLLBACK TO a; COMMIT');
queue_up(
	$node, $client, q{DO $$
	BEGIN
		PERFORM count(*) FROM t;
	EXCEPTION WHEN query_canceled THEN
		PERFORM 1;
	END $$});
admin($node)->query("SELECT pg_cancel_backend($client->{pid})");
is($client->finish->{state}, '00000', 'a handler catches the cancel');
is(status($node, 'queued') . cancelled(), '04', 'the query has left the queue');

# Terminated while queued

queue_up($node, $client, $count);
admin($node)->query("SELECT pg_terminate_backend($client->{pid})");
like($client->finish->{err}, qr/terminating connection due to administrator command/,
	'terminated while queued');
ok(wait_for($node, 'SELECT queued FROM pg_admission_status', 0), 'it has left the queue');
ok(wait_for($node, 'SELECT cancelled_while_queued FROM pg_stat_admission', 5),
	'and is counted');

# Its client is gone

my $gone = queue_up($node, client($node), $count);
my $since = admin($node)->query('SELECT clock_timestamp()')->{out};
$gone->vanish;
ok(wait_for($node, 'SELECT queued FROM pg_admission_status', 0),
	'who has no client any more leaves the queue');
is( admin($node)->query("SELECT clock_timestamp() - '$since' < '10 seconds'")->{out},
	't', 'within a second or so');
ok(wait_for($node, "SELECT count(*) FROM pg_stat_activity WHERE pid = $gone->{pid}", 0),
	'its process is gone');
is(cancelled(), 6, 'it is counted');

# ... with more statements already sent: the server has not read those

$gone = client($node);
$gone->start($count);
$gone->{in} .= "SELECT 1;\nSELECT 2;\n";
$gone->{harness}->pump_nb while length $gone->{in};
wait_for($node, 'SELECT queued FROM pg_admission_status', 1);
$gone->vanish;
ok(wait_for($node, 'SELECT queued FROM pg_admission_status', 0),
	'client gone with statements under way');

# Whoever leaves makes no hole: those behind move up, and a place is free

my ($first, $second) = map { queue_up($node, client($node), $count) } 1, 2;
admin($node)->query("SELECT pg_cancel_backend($first->{pid})");
$first->finish;
is( admin($node)->query(
		"SELECT queue_position FROM pg_admission_queries WHERE pid = $second->{pid}")->{out},
	1, 'who was behind moves up');
release($node, $holders[0]);
succeeds_ok($second->finish, 10, 'and runs');

# A storm of cancels while workers come and go loses no charge and no waiter

my @many = map { client($node) } 1 .. 8;
foreach my $round (1 .. 5)
{
	$_->start('SELECT pg_sleep(0.001) FROM t') for @many;
	my $pids = join ',', map { $_->{pid} } @many;
	for (1 .. 5)
	{
		admin($node)->query(
			"SELECT pg_cancel_backend(pid) FROM unnest('{$pids}'::int[]) pid ORDER BY random() LIMIT 3");
	}
	$_->finish for @many;
}
ok(wait_for($node, 'SELECT running, queued, workers_used FROM pg_admission_status', '1|0|1'),
	'after many cancels only the one query is left');
release($node, $holders[1]);

# Errors of queries that run give the charge back, exactly once

admin($node)->query(q{
	CREATE TABLE p (i int PRIMARY KEY);
	CREATE TABLE f (i int REFERENCES p DEFERRABLE INITIALLY DEFERRED);
	GRANT ALL ON p, f TO app;
	CREATE TABLE secret (i int);
	CREATE VIEW v AS SELECT 1;
	GRANT SELECT ON v TO app;
	CREATE FUNCTION fail(int) RETURNS int LANGUAGE plpgsql AS
		'BEGIN PERFORM count(*) FROM t; RAISE ''failed''; END';
});
my $app = client($node);
sub fails
{
	my ($sql, $state, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is($app->query($sql)->{state}, $state, $name);
	is(status($node, 'running, workers_used, memory_used_bytes'), '0|0|0',
		'... nothing stays charged');
}
fails('SELECT 1 / (i - 5) FROM t ORDER BY i', '22012', 'error while running');
fails('SELECT * FROM secret', '42501', 'error while starting');
fails('SELECT fail(i) FROM t', 'P0001', 'error in a function');
fails('INSERT INTO f VALUES (1)', '23503', 'error at commit');
fails('COPY v TO STDOUT', '42809', 'error in a utility command');
fails('CREATE INDEX ON t ((1 / (i - 5)))', '22012', 'error in CREATE INDEX');
$app->query('BEGIN; SAVEPOINT a; DECLARE c CURSOR FOR SELECT i FROM t ORDER BY i; FETCH c');
fails('SELECT 1/0 FROM t; ROLLBACK TO a', '00000', 'error in a subtransaction with a cursor');
$app->query('DECLARE c CURSOR WITH HOLD FOR SELECT 1 / (11 - i) FROM t ORDER BY i; FETCH c; ROLLBACK');
fails('SELECT 1', '00000', 'cursor rolled back');
$app->query(
	q{DO $$
	BEGIN
		FOR i IN 1 .. 20 LOOP
			BEGIN
				PERFORM fail(1) FROM t;
			EXCEPTION WHEN raise_exception THEN
			END;
		END LOOP;
	END $$});
fails('SELECT 1', '00000', 'errors caught in a loop');

# Terminated while running

my $holder = (occupy($node, 1))[0];
admin($node)->query("SELECT pg_terminate_backend($holder->{pid})");
$holder->finish;
ok(wait_for($node, 'SELECT running, workers_used FROM pg_admission_status', '0|0'),
	'terminated while running');

# Who is terminated with open cursors gives up all of it

my $cursors = client($node);
$cursors->query('BEGIN');
$cursors->query("DECLARE c$_ CURSOR FOR SELECT i FROM t ORDER BY i; FETCH c$_") for 1 .. 8;
is(status($node, 'running, workers_used'), '8|0', 'eight cursors are open');
is( admin($node)->query("SELECT count(*), sum(queries) FROM pg_admission_queries WHERE pid = $cursors->{pid}")->{out},
	'5|8', 'they are shown in a bounded number of rows');
$cursors->query('CLOSE c2; CLOSE c7');
is(status($node, 'running'), '6', 'two are closed');
admin($node)->query("SELECT pg_terminate_backend($cursors->{pid})");
ok(wait_for($node, 'SELECT running, memory_used_bytes FROM pg_admission_status', '0|0'),
	'the others go with their backend');

server_is_idle($node);

# A crash of a backend clears everything

@holders = occupy($node, 2);
queue_up($node, client($node), $count);
kill 'KILL', $holders[0]{pid};
ok($node->poll_query_until('postgres',
		'SELECT running = 0 AND queued = 0 AND workers_used = 0 AND sampler_pid IS NOT NULL FROM pg_admission_status'),
	'after a crash nothing is charged and the sampler runs');
is($node->safe_psql('postgres', 'SELECT submitted = 0 AND workers_total = 2 FROM pg_admission_status, pg_stat_admission'),
	't', 'limits are in force, counters start again');
succeeds_ok(client($node)->query($count), 10, 'queries run again');
server_is_idle($node, 'idle after a crash');

# The postmaster dies while queries wait

@holders = occupy($node, 2);
my @orphans = map { queue_up($node, client($node), $count) } 1 .. 3;
my @pids = map { $_->{pid} } @orphans;
$node->kill9;
ok(wait_until(sub { !kill 0, @pids }, 60), 'those who wait exit when the postmaster has died');
kill 'TERM', map { $_->{pid} } @holders;

done_testing();
