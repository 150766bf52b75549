# Big queries do not starve, and small ones do not wait for nothing.

use strict;
use warnings;

use IPC::Run;
use PgAdmission;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('fairness', 'pg_admission.queue_capacity' => 50,
	'pg_admission.cores_multiplier' => 4,
	# a query that waits for an idle cursor's memory is to be seen waiting
	'deadlock_timeout' => "'1h'");
my $count = 'SELECT count(*) FROM t';

admin($node)->query(q{
	CREATE ROLE big LOGIN;
	GRANT SELECT ON t TO big;
	ALTER ROLE big SET pg_admission.query_workers = 4;
	CREATE ROLE fat LOGIN;
	GRANT SELECT ON t TO fat;
	GRANT SELECT ON held TO fat;
	ALTER ROLE fat SET pg_admission.query_memory = '800MB';
});

# A small query passes a big one that does not fit

my ($holder) = occupy($node, 1);
my $big = queue_up($node, client($node, user => 'big'), $count);
my $small = client($node);
succeeds_ok($small->query($count), 10, 'a small query passes a big one');
is( admin($node)->query("SELECT queue_position FROM pg_admission_queries WHERE pid = $big->{pid}")->{out},
	1, 'which stays at the head of the queue');

# But not for ever

ok(wait_for($node, "SELECT wait_ms > 1500 FROM pg_admission_queries WHERE pid = $big->{pid}"),
	'after a while');
queue_up($node, $small, $count);
is(status($node, 'workers_used, queued'), '1|2', 'what is free is saved up for it');
release($node, $holder);
succeeds_ok($big->finish, 10, 'so it runs');
succeeds_ok($small->finish, 10, 'and then the small one');

# If it gives up, the others go on at once

($holder) = occupy($node, 1);
queue_up($node, $big, $count);
wait_for($node, "SELECT wait_ms > 1500 FROM pg_admission_queries WHERE pid = $big->{pid}");
queue_up($node, $small, $count);
admin($node)->query("SELECT pg_cancel_backend($big->{pid})");
$big->finish;
succeeds_ok($small->finish, 10, 'if the big one gives up, the small one runs');
release($node, $holder);

# Under a constant stream of small ones

my $script = PostgreSQL::Test::Utils::tempdir() . '/small.sql';
append_to_file($script, "SELECT pg_sleep(0.002) FROM t LIMIT 1;\n");
my ($in, $out, $err) = ('', '', '');
my $stream = IPC::Run::start(
	[ 'pgbench', '-n', '-c', '6', '-T', '600', '-f', $script, '-h', $node->host,
		'-p', $node->port, '-U', 'app', 'postgres' ],
	'<', \$in, '>', \$out, '2>', \$err);
ok(wait_for($node, 'SELECT workers_used = workers_total AND queued > 0 FROM pg_admission_status'),
	'small queries keep all workers busy');
succeeds_ok($big->query($count), 10, 'a big query runs although they keep coming');
ok($stream->pumpable, 'while they still do');
$stream->signal('KILL');
ok(wait_for($node, 'SELECT running + queued FROM pg_admission_status', 0), 'they stop');

# Queries that go ahead, because their transactions have begun, do not keep all
# others out.  There are always more of them than workers.

my $statements = q{
DO $$
BEGIN
	LOOP
		PERFORM pg_sleep(0.01) FROM t LIMIT 1;
	END LOOP;
END $$};
my @loops = map { client($node) } 1 .. 8;
$_->start($statements) for @loops;
ok(wait_for($node, 'SELECT workers_used = workers_total AND queued > 2 FROM pg_admission_status'),
	'eight loops share four workers');
my @others = map { queue_up($node, client($node), $count) } 1 .. 3;
succeeds_ok($_->finish, 10, 'a query that comes to them is admitted') for @others;
admin($node)->query("SELECT pg_cancel_backend($_->{pid})") for @loops;
$_->finish for @loops;

# Memory that nobody is about to give back is not waited for by others

my $cursor = client($node, user => 'fat');
$cursor->query("BEGIN; DECLARE c CURSOR FOR $count; FETCH c");
my $fat = queue_up($node, client($node, user => 'fat'), $count);
wait_for($node, "SELECT wait_ms > 1500 FROM pg_admission_queries WHERE pid = $fat->{pid}");
succeeds_ok($small->query($count), 10, 'an open cursor holds memory: only who needs it waits');
$cursor->query('COMMIT');
succeeds_ok($fat->finish, 10, 'until it is closed');

# What is saved up for a later query of a transaction is the memory that it lacks,
# and one worker: others that need no memory have the rest

my $later = client($node, user => 'fat');
succeeds_ok($later->query("BEGIN; $count"), 10, 'a transaction has begun');
($holder) = occupy($node, 1, user => 'fat');
queue_up($node, $later, $count);
ok(wait_for($node, "SELECT wait_ms > 1500 FROM pg_admission_queries WHERE pid = $later->{pid}"),
	'it waits for memory');
succeeds_ok($_->query($count), 10, 'those that need none pass') for @others;
my $also_fat = queue_up($node, client($node, user => 'fat'), $count);
is(status($node, 'queued'), 2, 'but none that needs any');
release($node, $holder);
succeeds_ok($_->finish, 10, 'which are let in when there is room') for $later, $also_fat;
$later->query('COMMIT');

server_is_idle($node);
done_testing();
