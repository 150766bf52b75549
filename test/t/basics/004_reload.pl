# Settings change while queries wait.

use strict;
use warnings;

use PgAdmission;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('reload', 'pg_admission.queue_capacity' => 10);
my $count = 'SELECT count(*) FROM t';

# Raising the budget wakes who waits

my @holders = occupy($node, 2);
my @waiting = map { client($node) } 1 .. 4;
queue_up($node, $_, 'SELECT pg_sleep(3600) FROM t LIMIT 1') for @waiting;
reload_with($node, { 'pg_admission.cores_multiplier' => 4 }, 'workers_total', 4);
ok(wait_for($node, 'SELECT running, queued FROM pg_admission_status', '4|2'),
	'two more workers admit two more queries');
is( admin($node)->query(
		"SELECT array_agg(pid ORDER BY enqueued_at) FROM pg_admission_queries WHERE enqueued_at IS NOT NULL AND state = 'running'")->{out},
	"{$waiting[0]{pid},$waiting[1]{pid}}", 'those that came first');

# Lowering it ends nothing that runs, and admits nobody until it is met

reload_with($node, { 'pg_admission.cores_multiplier' => 1 }, 'workers_total', 1);
is(status($node, 'running, queued, workers_used'), '4|2|4',
	'lowering the budget ends no query');
release($node, @holders, $waiting[0]);
is(status($node, 'running, queued, workers_used'), '1|2|1',
	'nobody is admitted while it is exceeded or used up');
release($node, $waiting[1]);
ok(wait_for($node, 'SELECT running, queued FROM pg_admission_status', '1|1'),
	'then the next is');
release($node, $waiting[2]);
ok(wait_for($node, 'SELECT running, queued FROM pg_admission_status', '1|0'),
	'and the last');
release($node, $waiting[3]);

# Lowering the queue's capacity refuses nobody who is already there

reload_with($node, { 'pg_admission.cores_multiplier' => 2 }, 'workers_total', 2);
@holders = occupy($node, 2);
queue_up($node, $_, $count) for @waiting;
reload_with($node, { 'pg_admission.queue_capacity' => 1 }, 'queue_capacity', 1);
is(status($node, 'queued'), 4, 'a smaller queue refuses nobody who waits');
my $late = client($node);
is($late->query($count)->{state}, '53A01', 'but who arrives now');
reload_with($node, { 'pg_admission.queue_capacity' => 5 }, 'queue_capacity', 5);
queue_up($node, $late, $count);
is(status($node, 'queued'), 5, 'a larger queue takes more at once');
release($node, $holders[0]);
succeeds_ok($_->finish, 10, 'all run') for @waiting, $late;
release($node, $holders[1]);

# What can never fit any more is refused

admin($node)->query(q{
	CREATE ROLE wide LOGIN;
	GRANT SELECT ON t TO wide;
	ALTER ROLE wide SET pg_admission.query_workers = 2;
	CREATE ROLE fat LOGIN;
	GRANT SELECT ON t TO fat;
	ALTER ROLE fat SET pg_admission.query_memory = '600MB';
});
@holders = occupy($node, 2);
my ($wide, $fat) = (client($node, user => 'wide'), client($node, user => 'fat'));
queue_up($node, $wide, $count);
queue_up($node, $fat, $count);
reload_with($node, { 'pg_admission.cores_multiplier' => 1 }, 'workers_total', 1);
exceeds_ok($wide->finish, 'workers', 'query exceeds the worker budget',
	'a waiting query that needs more workers than there are any more');
is(status($node, 'queued'), 1, 'others wait on');
reload_with($node, { 'pg_admission.memory_fraction' => 0.25 }, 'memory_total_bytes', 536870912);
exceeds_ok($fat->finish, 'memory', 'query exceeds the memory budget',
	'a waiting query that needs more memory than there is any more');
release($node, @holders);
reload_with($node,
	{ 'pg_admission.cores_multiplier' => 2, 'pg_admission.memory_fraction' => 0.5 },
	'workers_total', 2);

# Switching it off, or to observing, lets everybody through at once

foreach my $mode ('off', 'observe')
{
	@holders = occupy($node, 2);
	queue_up($node, $_, 'SELECT pg_sleep(3600) FROM t LIMIT 1') for @waiting;
	reload_with($node, { 'pg_admission.mode' => $mode }, 'mode', $mode);
	ok(wait_for($node, 'SELECT running, queued FROM pg_admission_status', '6|0'),
		"mode = $mode admits all who wait");
	my $more = client($node);
	succeeds_ok($more->query($count), 10, "mode = $mode: who arrives now runs");
	release($node, @holders, @waiting);
	reload_with($node, { 'pg_admission.mode' => 'enforce' }, 'mode', 'enforce');
}

# Which does not change the mode that a session has of its own

admin($node)->query(q{
	CREATE ROLE strict LOGIN;
	GRANT SELECT ON t TO strict;
	ALTER ROLE strict SET pg_admission.mode = enforce;
});
@holders = occupy($node, 2);
my $strict = client($node, user => 'strict');
queue_up($node, $strict, $count);
reload_with($node, { 'pg_admission.mode' => 'off' }, 'mode', 'off');
succeeds_ok($late->query($count), 10, 'mode = off for the server');
is(status($node, 'queued'), 1, 'a role with a mode of its own waits on');
release($node, $holders[0]);
succeeds_ok($strict->finish, 10, 'and runs in its turn');
release($node, $holders[1]);
reload_with($node, { 'pg_admission.mode' => 'enforce' }, 'mode', 'enforce');

# Shedding: a queue that had no timeout gets one, and the other way round

reload_with($node,
	{ 'pg_admission.load_shedding' => 'off', 'pg_admission.queue_timeout' => '100ms' },
	'load_shedding', 'off');
@holders = occupy($node, 2);
queue_up($node, $_, $count) for @waiting;
wait_for($node, "SELECT min(wait_ms) > 200 FROM pg_admission_queries WHERE state = 'queued'");
is(status($node, 'queued, queue_capacity'), '4|', 'nobody is refused without load shedding');
reload_with($node, { 'pg_admission.load_shedding' => 'managed' }, 'load_shedding', 'on');
overloaded_ok($_->finish, 'queue_timeout',
	'system overloaded: query waited too long for admission',
	'with it, who has waited too long is refused') for @waiting;

# A new queue timeout holds for those who wait, but not for who has its own.  It
# is in force when the capacity is that was changed with it.

reload_with($node, { 'pg_admission.queue_timeout' => '1h', 'pg_admission.queue_capacity' => 6 },
	'queue_capacity', 6);
queue_up($node, $_, $count) for @waiting[0, 1];
$waiting[2]->query("SET pg_admission.queue_timeout = '1d'");
queue_up($node, $waiting[2], $count);
reload_with($node, { 'pg_admission.queue_timeout' => '50ms' });
overloaded_ok($_->finish, 'queue_timeout',
	'system overloaded: query waited too long for admission',
	'a queue timeout that is lowered ends waits') for @waiting[0, 1];
is(status($node, 'queued'), 1, "not those of a session with a timeout of its own");
release($node, $holders[0]);
succeeds_ok($waiting[2]->finish, 10, 'it runs in its turn');

($holders[0]) = occupy($node, 1);
reload_with($node, { 'pg_admission.queue_timeout' => '1h', 'pg_admission.queue_capacity' => 7 },
	'queue_capacity', 7);
queue_up($node, $waiting[0], $count);
reload_with($node, { 'pg_admission.queue_timeout' => 0, 'pg_admission.queue_capacity' => 5 },
	'queue_capacity', 5);
is(status($node, 'queued'), 1, 'raising the timeout keeps who waits');
release($node, @holders);
succeeds_ok($waiting[0]->finish, 10, 'it runs in its turn');

server_is_idle($node);
done_testing();
