# A queued query holds locks: nobody waits for it longer than a moment.  And
# who waits for somebody else lends its workers to the queue.

use strict;
use warnings;

use PgAdmission;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('locks', 'pg_admission.queue_capacity' => 50,
	'deadlock_timeout' => '500ms', 'wal_level' => 'replica', 'max_wal_senders' => 1);
my $count = 'SELECT count(*) FROM t';

admin($node)->query('CREATE TABLE other AS SELECT i FROM t; GRANT SELECT ON other TO app;
	CREATE ROLE lazy LOGIN; GRANT SELECT ON t TO lazy;');

# Who is queued behind what: DDL waits for the queued query's table lock

my @holders = occupy($node, 2);
my $queued = queue_up($node, client($node), $count);
my $forced = counter($node, 'forced');
my $ddl = client($node, user => undef);
$ddl->start('ALTER TABLE t ADD COLUMN a int');
succeeds_ok($queued->finish, 10, 'a queued query that blocks DDL is let through');
succeeds_ok($ddl->finish, '', 'and so the DDL goes on');
is(counter($node, 'forced') - $forced, 1, 'the query is counted as forced');

# A superuser behind that DDL

$queued = queue_up($node, client($node), $count);
$ddl->start('ALTER TABLE t DROP COLUMN a');
my $super = client($node, user => undef);
wait_for($node, "SELECT wait_event_type = 'Lock' OR state = 'idle' FROM pg_stat_activity WHERE pid = $ddl->{pid}");
$super->start($count);
succeeds_ok($super->finish, 10, 'a superuser behind that DDL goes on');
$queued->finish;
$ddl->finish;

# A running query that waits for a lock of the queued query's session: of a
# transaction that has read another table, and an advisory lock

my $session = client($node);
release($node, $holders[0]);
$session->query('BEGIN');
succeeds_ok($session->query('SELECT count(*), pg_advisory_xact_lock(1) FROM other'), '10|',
	'a transaction takes a lock');
($holders[0]) = occupy($node, 1);
queue_up($node, $session, $count);
my $locker = client($node, user => undef);
$locker->start('SELECT pg_advisory_lock(1)');
succeeds_ok($session->finish, 10, 'who blocks a running query is let through');
$session->query('COMMIT');
$locker->finish;

# Holding no lock that anybody wants, it waits on

queue_up($node, $queued, $count);
wait_for($node, "SELECT wait_ms > 1500 FROM pg_admission_queries WHERE pid = $queued->{pid}");
is(status($node, 'queued'), 1, 'who blocks nobody waits on');
release($node, @holders);
succeeds_ok($queued->finish, 10, 'until it is its turn');

# Lending: an idle transaction holds a row, ten clients wait for it, two
# workers; others run all the same

$session->query('BEGIN; UPDATE t SET i = i WHERE i = 1');
my @stuck = map { client($node) } 1 .. 10;
$_->start('UPDATE t SET i = i WHERE i = 1') for @stuck;
my $elsewhere = client($node);
succeeds_ok($elsewhere->query('SELECT count(*) FROM other'), 10, 'others run meanwhile')
  for 1 .. 3;
ok(wait_for($node,
		"SELECT count(*) FILTER (WHERE state = 'lent') > 0 AND sum(workers) FILTER (WHERE state = 'lent') = (SELECT workers_lent FROM pg_admission_status) FROM pg_admission_queries"),
	'workers are lent');
ok(wait_for($node, 'SELECT running, queued FROM pg_admission_status', '10|0'),
	'all ten wait for the row, none in the queue');
ok(wait_for($node, 'SELECT workers_used FROM pg_admission_status', 0), 'and no worker is in use');
$session->query('COMMIT');
is($_->finish->{state}, '00000', 'the row is free: each goes on') for @stuck;
is(status($node, 'workers_lent'), 0, 'nothing is lent any more');

# A slow reader lends as well: one whose psql is stopped, once its query runs

@holders = occupy($node, 1);
admin($node)->query(q{
	CREATE TABLE wide AS SELECT repeat('x', 8000) FROM generate_series(1, 4000);
	GRANT SELECT ON wide TO app;
	SELECT pg_advisory_lock(7)});
my $reader = client($node);
$reader->start('SELECT * FROM (SELECT pg_advisory_xact_lock_shared(7) OFFSET 0) wait, wide');
wait_for($node, "SELECT wait_event_type FROM pg_stat_activity WHERE pid = $reader->{pid}", 'Lock');
$reader->{harness}->signal('STOP');
admin($node)->query('SELECT pg_advisory_unlock(7)');
ok(wait_for($node, "SELECT wait_event FROM pg_stat_activity WHERE pid = $reader->{pid}", 'ClientWrite'),
	'a query waits for its client to read');
push @holders, occupy($node, 1) if status($node, 'workers_used') == 1;
succeeds_ok($queued->query($count), 10, 'it keeps nobody waiting') if @holders == 1;
ok(wait_for($node, "SELECT state FROM pg_admission_queries WHERE pid = $reader->{pid}", 'lent'),
	'it has lent its worker');
$reader->{harness}->signal('KILL');
$reader->{dead} = 1;
release($node, @holders);
ok(wait_for($node, 'SELECT running FROM pg_admission_status', 0), 'its query ends with it');

# Nobody need be queued for that: not where nobody can be, nor in mode observe,
# nor while there are workers left

reload_with($node, { 'pg_admission.queue_capacity' => 0 }, 'queue_capacity', 0);
$session->query('BEGIN; UPDATE t SET i = i WHERE i = 1');
$_->start('UPDATE t SET i = i WHERE i = 1') for @stuck[0, 1];
ok(wait_for($node, 'SELECT workers_lent, workers_used FROM pg_admission_status', '2|0'),
	'without a queue, workers are lent as well');
succeeds_ok($elsewhere->query('SELECT count(*) FROM other'), 10, 'so others are not refused');
reload_with($node, { 'pg_admission.mode' => 'observe' }, 'mode', 'observe');
my $would = counter($node, 'would_have_rejected');
succeeds_ok($elsewhere->query('SELECT count(*) FROM other'), 10, 'in mode observe');
is(counter($node, 'would_have_rejected') - $would, 0, 'nor would they have been');
$session->query('COMMIT');
is($_->finish->{state}, '00000', 'both go on') for @stuck[0, 1];
reload_with($node, { 'pg_admission.mode' => 'enforce', 'pg_admission.queue_capacity' => 50 },
	'mode, queue_capacity', 'enforce|50');

$session->query('BEGIN; UPDATE t SET i = i WHERE i = 1');
$stuck[0]->start('UPDATE t SET i = i WHERE i = 1');
ok(wait_for($node, 'SELECT workers_lent, workers_used FROM pg_admission_status', '1|0'),
	'a worker that nobody needs is lent');
$session->query('COMMIT');
$stuck[0]->finish;

# Who waits for a standby that is not there lends as well

reload_with($node, { 'synchronous_standby_names' => "'nobody'" });
$elsewhere->start('CREATE INDEX CONCURRENTLY ON t (i)');
ok(wait_for($node, "SELECT state FROM pg_admission_queries WHERE pid = $elsewhere->{pid}", 'lent'),
	'a command that waits for a standby');
reload_with($node, { 'synchronous_standby_names' => "''" });
succeeds_ok($elsewhere->finish, '', 'goes on without it');

# Sleeping is not waiting for somebody else

@holders = occupy($node, 2);
queue_up($node, $queued, $count);
wait_for($node, "SELECT wait_ms > 500 FROM pg_admission_queries WHERE state = 'queued'");
is(status($node, 'queued, workers_lent, workers_used'), '1|0|2', 'a sleeping query lends nothing');
release($node, @holders);
succeeds_ok($queued->finish, 10, 'the next runs when it has ended');

server_is_idle($node);
done_testing();
