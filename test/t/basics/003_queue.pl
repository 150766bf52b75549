# Queries run, wait their turn, or are refused: every state of the queue.

use strict;
use warnings;

use PgAdmission;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('queue', 'pg_admission.queue_capacity' => 2);
my $count = 'SELECT count(*) FROM t';

admin($node)->query('CREATE ROLE other LOGIN');

# What the views show of queries that run and wait

is(status($node, 'mode, load_shedding, queue_capacity, workers_total, memory_total_bytes'),
	'enforce|on|2|2|1073741824', 'status shows the limits');

my $app = client($node);
succeeds_ok($app->query($count), 10, 'query runs while workers are free');
succeeds_ok($app->query($count), 10, 'so does the next');

my @holders = occupy($node, 2);
my @pids = sort { $a <=> $b } map { $_->{pid} } @holders;
my ($first, $second, $third) = map { client($node) } 1 .. 3;

queue_up($node, $first, $count);
queue_up($node, $second, $count);
is(status($node, 'running, queued, workers_used'), '2|2|2',
	'status shows what is running and queued');
is( admin($node)->query(
		q{SELECT usename, datname, state, queries, queue_position, workers,
		         plan_cost > 0, enqueued_at IS NOT NULL, admitted_at IS NULL, wait_ms > 0
		  FROM pg_admission_queries WHERE state = 'queued' ORDER BY queue_position}
	)->{out},
	"app|postgres|queued|1|1|1|t|t|t|t\napp|postgres|queued|1|2|1|t|t|t|t",
	'queued queries are shown in order');
is( admin($node)->query(
		"SELECT pid FROM pg_admission_queries WHERE queue_position = 1")->{out},
	$first->{pid}, 'first come, first in the queue');
is( admin($node)->query(
		q{SELECT state, queries, queue_position IS NULL, workers, enqueued_at IS NULL, admitted_at IS NOT NULL, wait_ms
		  FROM pg_admission_queries WHERE state <> 'queued'})->{out},
	"running|1|t|1|t|t|0\nrunning|1|t|1|t|t|0",
	'running queries are shown');
is( admin($node)->query(
		qq{SELECT pid, waits_for, (SELECT array_agg(h ORDER BY h) FROM unnest(held_by) h)
		   FROM pg_admission_queries ORDER BY queue_position, pid})->{out},
	join("\n",
		(map { "$_->{pid}|workers|{" . join(',', @pids) . '}' } $first, $second),
		map { "$_||" } @pids),
	'queued queries tell what they wait for, and who has it');
is( $third->query(
		"SELECT count(*), count(waits_for), count(held_by) FROM pg_admission_queries WHERE state = 'queued'")->{out},
	'2|2|2', 'to their own role');
is( client($node, user => 'other')->query(
		'SELECT count(*), count(waits_for), count(held_by) FROM pg_admission_queries')->{out},
	'4|0|0', 'and to no other');
is( admin($node)->query(
		"SELECT state, wait_event_type IN ('Extension', 'LWLock') FROM pg_stat_activity WHERE pid = $first->{pid}")->{out},
	'active|t', 'a queued query shows a wait event');
is( admin($node)->query(
		"SELECT backend_xmin IS NULL FROM pg_stat_activity WHERE pid = $first->{pid}")->{out},
	't', 'a queued query holds no snapshot');

# What a client's query waits for, and who has that
sub waits_for
{
	my ($client) = @_;

	return admin($node)->query(
		"SELECT waits_for, held_by FROM pg_admission_queries WHERE pid = $client->{pid} AND state = 'queued'")->{out};
}

# The queue is full

my $refused = $third->query($count);
overloaded_ok($refused, 'queue_full', 'system overloaded: admission queue is full',
	'refused when the queue is full');
like($refused->{err}, qr/running=2 queued=2 queue_capacity=2 /,
	'error tells the state of the queue');
like($refused->{err}, qr/ Too few query workers are free, and no place is left in the queue\./,
	'and what is short');
is(counter($node, 'rejected, rejected_queue_full'), '1|1',
	'refusal is counted');
overloaded_ok($third->query("PREPARE p AS $count; EXECUTE p"), 'queue_full',
	'system overloaded: admission queue is full', 'so is a prepared statement');
overloaded_ok($third->query('COPY t TO STDOUT'), 'queue_full',
	'system overloaded: admission queue is full', 'so is a utility command');
succeeds_ok($third->query('SELECT 1'), 1, 'what is exempt passes');
succeeds_ok($third->query("BEGIN; SET LOCAL work_mem = '1MB'; SHOW work_mem; ROLLBACK"),
	'1MB', 'what is not subject to admission passes');
like($third->query("EXPLAIN $count")->{out}, qr/^Aggregate/,
	'EXPLAIN passes');

# Refused in a transaction, which then fails like after any error

overloaded_ok($third->query("BEGIN; $count"), 'queue_full',
	'system overloaded: admission queue is full', 'refused in a transaction');
is($third->query($count)->{state}, '25P02', 'its transaction has failed');
$third->query('ROLLBACK');

# A PL/pgSQL block can catch the error by its class

my $caught = $third->query(
	q{DO $$
	BEGIN
		PERFORM count(*) FROM t;
	EXCEPTION WHEN insufficient_resources THEN
		RAISE division_by_zero USING MESSAGE = 'caught ' || SQLSTATE;
	END $$});
is($caught->{state}, '22012', 'insufficient_resources catches it');
like($caught->{err}, qr/caught 53A01/, 'its SQLSTATE is known there');

# They are let in one by one, in order

release($node, $holders[0]);
succeeds_ok($first->finish, 10, 'the first in the queue runs');
succeeds_ok($second->finish, 10, 'and then the second');
is(counter($node, 'waited'), 2, 'waits are counted');
is(counter($node, 'wait_ms_max > 0 AND wait_ms_total >= wait_ms_max'), 't',
	'waits are measured');
release($node, $holders[1]);

# The order of a longer queue

reload_with($node, { 'pg_admission.queue_capacity' => 10 }, 'queue_capacity', 10);
$node->safe_psql('postgres', q{
	CREATE TABLE arrivals (n serial, name text);
	CREATE FUNCTION arrived(name text) RETURNS void SECURITY DEFINER
		LANGUAGE sql AS 'INSERT INTO public.arrivals (name) VALUES (name)';
});
@holders = occupy($node, 2);
my @queue = map { client($node) } 1 .. 6;
queue_up($node, $queue[$_], "SELECT arrived('$_') FROM t LIMIT 1") for 0 .. 5;
is( admin($node)->query('SELECT array_agg(pid ORDER BY queue_position) FROM pg_admission_queries WHERE queue_position IS NOT NULL')->{out},
	'{' . join(',', map { $_->{pid} } @queue) . '}',
	'six queries queue in order of arrival');
release($node, $holders[0]);
is($_->finish->{state}, '00000', 'queued query runs') for @queue;
is( admin($node)->query('SELECT string_agg(name, NULL ORDER BY n) FROM arrivals')->{out},
	'012345', 'with one worker they run in order');
release($node, $holders[1]);

# Who may not be refused waits ahead of the others

@holders = occupy($node, 2);
my $in_transaction = client($node);
release($node, $holders[0]);
succeeds_ok($in_transaction->query("BEGIN; $count"), 10,
	'first query of a transaction runs');
($holders[0]) = occupy($node, 1);
my $waiting = queue_up($node, client($node), $count);
queue_up($node, $in_transaction, $count);
is( admin($node)->query("SELECT queue_position FROM pg_admission_queries WHERE pid = $in_transaction->{pid} AND state = 'queued'")->{out},
	1, "a transaction's second query is the first in the queue");
release($node, $holders[0]);
succeeds_ok($in_transaction->finish, 10, 'it runs');
succeeds_ok($waiting->finish, 10, 'then the other');
$in_transaction->query('COMMIT');
release($node, $holders[1]);

# A transaction with an id never waits

$in_transaction->query('BEGIN; INSERT INTO t VALUES (11)');
@holders = occupy($node, 2);
my $forced = counter($node, 'forced');
succeeds_ok($in_transaction->query('DELETE FROM t WHERE i = 11 RETURNING i'), 11,
	'a transaction with an id does not wait');
is(counter($node, 'forced') - $forced, 1, 'it is counted as forced');
$in_transaction->query('COMMIT');

# Capacity 0: nothing waits

reload_with($node, { 'pg_admission.queue_capacity' => 0 }, 'queue_capacity', 0);
$refused = $third->query($count);
overloaded_ok($refused, 'queue_full', 'system overloaded: admission queue is full',
	'capacity 0: refused at once');
like($refused->{err}, qr/running=2 queued=0 queue_capacity=0 /,
	'capacity 0: the queue is empty');
release($node, $holders[0]);
succeeds_ok($third->query($count), 10, 'capacity 0: runs when a worker is free');
succeeds_ok($third->query("BEGIN; $count"), 10, 'capacity 0: a transaction begins');
($holders[0]) = occupy($node, 1);
succeeds_ok($third->query($count), 10,
	'capacity 0: a query that may not be refused runs at once');
$third->query('COMMIT');

# Managed capacity

reload_with($node, { 'pg_admission.queue_capacity' => -1 }, 'queue_capacity', 8);

# No shedding: no bound and no timeout

reload_with($node,
	{ 'pg_admission.load_shedding' => 'off', 'pg_admission.queue_capacity' => 1,
		'pg_admission.queue_timeout' => '10ms' },
	'load_shedding, queue_capacity', 'off|');
my @many = map { client($node) } 1 .. 5;
queue_up($node, $_, $count) for @many;
wait_for($node, "SELECT min(wait_ms) > 100 FROM pg_admission_queries WHERE state = 'queued'");
is(status($node, 'queued'), 5, 'load_shedding = off: any number waits, however long');
release($node, $holders[0]);
succeeds_ok($_->finish, 10, 'load_shedding = off: all run at last') for @many;

# Timeout

reload_with($node,
	{ 'pg_admission.load_shedding' => 'on', 'pg_admission.queue_capacity' => 10,
		'pg_admission.queue_timeout' => '100ms' },
	'load_shedding, queue_capacity', 'on|10');
($holders[0]) = occupy($node, 1);
my $throttled = counter($node, 'throttled');
$refused = $third->query($count);
overloaded_ok($refused, 'queue_timeout',
	'system overloaded: query waited too long for admission', 'refused after the queue timeout');
like($refused->{err}, qr/ Too few query workers became free within /, 'the error tells what is short');
is(counter($node, 'rejected_queue_timeout'), 1, 'it is counted');
is(counter($node, 'throttled') - $throttled, 1, 'and throttled once, not twice');
$third->query('SET pg_admission.queue_timeout = 0');
queue_up($node, $third, $count);
wait_for($node, "SELECT wait_ms > 300 FROM pg_admission_queries WHERE state = 'queued'");
is(status($node, 'queued'), 1, 'queue_timeout = 0: waits on');
release($node, $holders[0]);
succeeds_ok($third->finish, 10, 'queue_timeout = 0: runs at last');
succeeds_ok($third->query("BEGIN; $count"), 10, 'first query of a transaction runs');
($holders[0]) = occupy($node, 1);
$third->query("SET pg_admission.queue_timeout = '10ms'");
queue_up($node, $third, $count);
wait_for($node, "SELECT wait_ms > 200 FROM pg_admission_queries WHERE state = 'queued'");
release($node, $holders[0]);
succeeds_ok($third->finish, 10, 'a later query of a transaction is not refused for its wait');
$third->query('COMMIT');

# What can never fit

admin($node)->query(q{
	CREATE ROLE big LOGIN;
	GRANT SELECT ON t TO big;
	ALTER ROLE big SET pg_admission.query_workers = 3;
	CREATE ROLE huge LOGIN;
	GRANT SELECT ON t TO huge;
	ALTER ROLE huge SET pg_admission.query_memory = '1048577kB';
});
my $big = client($node, user => 'big');
my $exceeds = $big->query($count);
exceeds_ok($exceeds, 'workers', 'query exceeds the worker budget',
	'more workers than the budget has');
like($exceeds->{err}, qr/set by "pg_admission\.query_workers", which an administrator can lower/,
	'error tells which setting is why');
my $huge = client($node, user => 'huge');
$exceeds = $huge->query($count);
exceeds_ok($exceeds, 'memory', 'query exceeds the memory budget',
	'more memory than the budget has');
like($exceeds->{err},
	qr/required_memory_kb=1048577 memory_budget_kb=1048576 required_workers=1 worker_budget=2 /,
	'error tells the claim and the budget');
like($exceeds->{err}, qr/set by "pg_admission\.query_memory", which an administrator can lower/,
	'and which setting is why');
$exceeds = client($node)->query('SET maintenance_work_mem = \'2GB\'; ANALYZE');
exceeds_ok($exceeds, 'memory', 'query exceeds the memory budget', 'a command that needs more');
like($exceeds->{err}, qr/lower "maintenance_work_mem"/, 'error tells what helps');
is(counter($node, 'rejected_workers, rejected_memory'), '1|2', 'both are counted');
is($huge->query(q{DO $$ BEGIN PERFORM count(*) FROM t; EXCEPTION WHEN program_limit_exceeded THEN RAISE division_by_zero; END $$;})->{state},
	'22012', 'program_limit_exceeded catches it');

# It is told that also when any other query would be refused

my $capacity = status($node, 'queue_capacity');
($holders[0]) = occupy($node, 1);
reload_with($node, { 'pg_admission.queue_capacity' => 0 }, 'queue_capacity', 0);
is($app->query($count)->{state}, '53A01', 'no place is left');
is($_->query($count)->{state}, '54A01', 'which is not why an oversized query is refused') for $big, $huge;
reload_with($node, { 'pg_admission.queue_capacity' => $capacity }, 'queue_capacity', $capacity);
release($node, @holders);

# Memory is a budget as well

admin($node)->query(q{
	ALTER ROLE huge SET pg_admission.query_memory = '600MB';
	ALTER ROLE huge SET deadlock_timeout = '5min';
	ALTER ROLE huge SET pg_admission.queue_timeout = '1h';
});
my ($half, $other) = map { client($node, user => 'huge') } 1 .. 2;
$half->query("BEGIN; DECLARE c CURSOR FOR SELECT i FROM t ORDER BY i");
succeeds_ok($half->query('FETCH c'), 1, 'a cursor is opened');
is(status($node, 'workers_used, memory_used_bytes'), '0|629145600',
	'between two fetches it holds memory, but no worker');
is( admin($node)->query("SELECT state, memory_bytes FROM pg_admission_queries WHERE pid = $half->{pid}")->{out},
	'suspended|629145600', 'it is shown as suspended');
queue_up($node, $other, $count);
is(waits_for($other), "memory|{$half->{pid}}", 'a query waits for that');
succeeds_ok($app->query($count), 10, 'a query that needs less passes it');
$refused = client($node, user => 'huge', options => '-c pg_admission.queue_timeout=300ms')->query($count);
overloaded_ok($refused, 'queue_timeout', 'system overloaded: query waited too long for admission',
	'one that needs as much waits too long');
like($refused->{err}, qr/ since queries that are idle hold it\./, 'the error tells who has what is short');
succeeds_ok($half->query('FETCH c; CLOSE c; COMMIT'), 2, 'the cursor is closed');
succeeds_ok($other->finish, 10, 'then the waiting query runs');

server_is_idle($node);
done_testing();
