# A queued query that keeps others waiting is let through: no cycle that leads
# through the queue lasts, and nobody gets an error for it.

use strict;
use warnings;

use PgAdmission;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server(
	'locks',
	'deadlock_timeout' => "'200ms'",
	'pg_admission.queue_timeout' => 0,
	'max_prepared_transactions' => 2);

admin($node)->query(q{
	SET ROLE app;
	CREATE TABLE u AS SELECT i FROM generate_series(1, 10) i;
	CREATE TABLE parent (id int PRIMARY KEY);
	CREATE TABLE child (id int REFERENCES parent);
	INSERT INTO parent VALUES (1), (2);
	RESET ROLE;
});

# Start a statement, and wait until it waits for a lock (or whatever else), or
# has done so already.
sub start_and_wait
{
	my ($client, $sql, $type) = @_;

	$client->start($sql);
	$type ||= 'Lock';
	wait_for($node,
		"SELECT count(*) FROM pg_stat_activity WHERE pid = $client->{pid} AND query LIKE '$sql%'
		 AND (state <> 'active' OR wait_event_type = '$type')", 1)
	  or die "does not wait: $sql";
	return $client;
}

# The queued query ends although nobody who occupies a worker does, and so
# does whoever waited for it.
sub all_end_ok
{
	my ($name, @clients) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	foreach my $client (@clients)
	{
		my $result = $client->finish;

		is($result->{state}, '00000', $name) or diag $result->{err};
	}
	return;
}

my @holders = occupy($node, 2);
my $forced = counter($node, 'forced');

# Count how many were forced since the last call.
sub forced_ok
{
	my ($expected, $name) = @_;
	my $now = counter($node, 'forced');
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	is($now - $forced, $expected, "$name: forced");
	$forced = $now;
	return;
}

# Directly: a queued query holds the table that a superuser wants.
{
	my $queued = queue_up($node, client($node), 'SELECT count(*) FROM u');
	my $ddl = client($node, user => undef)->start('LOCK TABLE u IN ACCESS EXCLUSIVE MODE');

	is($ddl->finish->{state}, '25P01', 'not outside of a transaction');
	$ddl->start('BEGIN; LOCK TABLE u IN ACCESS EXCLUSIVE MODE; COMMIT');
	all_end_ok('a queued query blocks LOCK TABLE', $queued, $ddl);
	forced_ok(1, 'LOCK TABLE');
}

# With a DDL waiter in between: somebody who reads waits behind the DDL.
{
	my $queued = queue_up($node, client($node), 'SELECT count(*) FROM u');
	my $ddl = start_and_wait(client($node, user => undef), 'ALTER TABLE u ADD COLUMN x int');
	my $reader = client($node, user => undef)->start('SELECT count(*) FROM u');

	all_end_ok('behind DDL that waits for a queued query', $reader, $ddl, $queued);
	forced_ok(1, 'DDL in between');
}

# A query that runs waits for a session whose next query is queued.
release($node, pop @holders);
{
	my $locker = client($node);
	my $running = client($node);

	$locker->query('BEGIN; LOCK TABLE u IN SHARE MODE');
	start_and_wait($running, 'INSERT INTO u VALUES (11)');
	$locker->start('SELECT count(*) FROM u; COMMIT');
	all_end_ok('a running query waits for a queued one', $locker, $running);
}

sub fill
{
	push @holders, occupy($node, 2 - status($node, 'workers_used'))
	  if status($node, 'workers_used') < 2;
	$forced = counter($node, 'forced');
	return;
}

# Advisory locks, of a session and of a transaction
fill();
foreach my $kind ('pg_advisory_lock', 'pg_advisory_xact_lock')
{
	my $queued = client($node);
	my $waiter = client($node, user => undef);

	$queued->query("BEGIN; SELECT $kind(7)");
	queue_up($node, $queued, 'SELECT count(*) FROM u');
	$waiter->start('SELECT pg_advisory_xact_lock(7)');
	all_end_ok("$kind: the queued query", $queued);
	forced_ok(1, $kind);
	$queued->query('COMMIT; SELECT pg_advisory_unlock_all()');
	all_end_ok("$kind: the waiter", $waiter);
}

# A foreign-key check waits for who deletes the row.  Who has deleted it has a
# transaction id, so its next query is not made to wait at all.
fill();
{
	my $deleter = client($node);
	my $inserter = client($node, user => undef);

	release($node, pop @holders);
	$deleter->query('BEGIN; DELETE FROM parent WHERE id = 2');
	fill();
	start_and_wait($inserter, 'INSERT INTO child VALUES (2)');
	succeeds_ok($deleter->query('SELECT count(*) FROM u'), 11, 'with a transaction id');
	forced_ok(1, 'transaction id');
	$deleter->query('ROLLBACK');
	all_end_ok('foreign-key check', $inserter);
}

# The same with a lock of the table, taken without an id.
{
	my $locker = client($node);
	my $inserter = client($node, user => undef);

	$locker->query('BEGIN; LOCK TABLE parent IN ACCESS EXCLUSIVE MODE');
	queue_up($node, $locker, 'SELECT count(*) FROM u');
	$inserter->start('INSERT INTO child VALUES (1)');
	all_end_ok('foreign-key check of a locked table', $locker);
	$locker->query('COMMIT');
	all_end_ok('foreign-key check of a locked table', $inserter);
	forced_ok(1, 'foreign-key check');
}

# VACUUM waits for the buffer that a cursor has pinned, and the cursor's session
# waits in the queue.
release($node, @holders);
@holders = ();
admin($node)->query(q{
	SET ROLE app;
	CREATE TABLE pinned AS SELECT i FROM generate_series(1, 10) i;
	RESET ROLE;
});
{
	my $cursor = client($node);
	my $vacuum = client($node, user => undef);

	$cursor->query('BEGIN; DECLARE c CURSOR FOR SELECT * FROM pinned; FETCH 1 FROM c');
	fill();
	queue_up($node, $cursor, 'SELECT count(*) FROM u');
	start_and_wait($vacuum, 'VACUUM (FREEZE, DISABLE_PAGE_SKIPPING) pinned', 'BufferPin');
	all_end_ok('a buffer pinned by a cursor', $cursor);
	forced_ok(1, 'buffer pin');
	$cursor->query('COMMIT');
	all_end_ok('a buffer pinned by a cursor', $vacuum);
}

# Whoever has no cursor open is not let through because of that.
release($node, @holders);
@holders = ();
{
	my $cursor = client($node);
	my $vacuum = client($node, user => undef);
	my $other = client($node);

	admin($node)->query('UPDATE pinned SET i = i');
	$cursor->query('BEGIN; DECLARE c CURSOR FOR SELECT * FROM pinned; FETCH 1 FROM c');
	fill();
	start_and_wait($vacuum, 'VACUUM (FREEZE, DISABLE_PAGE_SKIPPING) pinned', 'BufferPin');
	queue_up($node, $other, 'SELECT count(*) FROM u');
	wait_for($node, "SELECT wait_ms > 1000 FROM pg_admission_queries WHERE pid = $other->{pid}");
	forced_ok(0, 'no cursor open');
	is(status($node, 'queued'), 1, 'no cursor open: still queued');
	$cursor->query('COMMIT');
	all_end_ok('no cursor open: VACUUM', $vacuum);
	release($node, @holders);
	@holders = ();
	all_end_ok('no cursor open: the query', $other);
}

# Two sessions, each with an open cursor, both want memory that is not there.
{
	my @sessions = (client($node), client($node));

	admin($node)->query('GRANT SET ON PARAMETER pg_admission.query_memory TO app');
	reload_with($node, { 'pg_admission.total_memory' => "'12MB'" }, 'memory_total_bytes', 6 << 20);
	foreach my $session (@sessions)
	{
		$session->query(q{
			SET pg_admission.query_memory = '3MB';
			BEGIN;
			DECLARE c CURSOR FOR SELECT * FROM u;
			FETCH 1 FROM c});
	}
	is(status($node, 'memory_used_bytes, workers_used'), (6 << 20) . '|0', 'cursors hold all memory');
	$_->start('SELECT count(*) FROM t') foreach @sessions;
	all_end_ok('two open cursors that want memory', @sessions);
	forced_ok(2, 'two open cursors that want memory');
	$_->query('COMMIT') foreach @sessions;
	reload_with($node, { 'pg_admission.total_memory' => "'2GB'" }, 'memory_total_bytes', 1 << 30);
}

# Somebody waits for a snapshot of a transaction whose next query is queued
{
	my ($locker, $holder, $reader) = map { client($node) } 1 .. 3;

	$_->query("SET pg_admission.query_memory = '600MB'") foreach $holder, $reader;
	$locker->query('SELECT pg_advisory_lock(4)');
	$reader->query('BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT count(*) FROM u');
	start_and_wait($holder, 'SELECT pg_advisory_lock(4) FROM u LIMIT 1');
	$locker->query('BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE');
	start_and_wait($locker, 'SELECT count(*) FROM t', 'IPC');
	$reader->start('SELECT count(*) FROM t');
	all_end_ok('a snapshot that somebody waits for', $reader);
	forced_ok(1, 'a snapshot that somebody waits for');
	$reader->query('COMMIT');
	all_end_ok('a snapshot that somebody waits for', $locker);
	$locker->query('COMMIT; SELECT pg_advisory_unlock(4)');
	all_end_ok('a snapshot that somebody waits for', $holder);
}

# A parallel worker waits for a lock.  Its leader only waits for the worker, but
# the query is lent all the same.
release($node, @holders);
@holders = ();
{
	my ($locker, $parallel, $queued) = map { client($node) } 1 .. 3;

	admin($node)->query(q{CREATE FUNCTION lock_in_worker(int) RETURNS int LANGUAGE sql
		PARALLEL SAFE AS 'SELECT pg_advisory_xact_lock($1); SELECT 1'});
	$locker->query('SELECT pg_advisory_lock(3)');
	$parallel->query(q{
		SET max_parallel_workers_per_gather = 1;
		SET force_parallel_mode = on;
		SET parallel_leader_participation = off;
		SET parallel_setup_cost = 0});
	$parallel->start('SELECT lock_in_worker(3) FROM u LIMIT 1');
	wait_for($node, "SELECT count(*) FROM pg_stat_activity WHERE leader_pid = $parallel->{pid} AND wait_event = 'advisory'", 1);
	is($queued->query('SELECT count(*) FROM t')->{out}, 10, 'a parallel worker that waits for a lock is lent');
	$locker->query('SELECT pg_advisory_unlock(3)');
	succeeds_ok($parallel->finish, 1, 'and goes on');
}

# PostgreSQL finds its own deadlocks, with a running and a lent query in them.
{
	my ($a, $b) = (client($node), client($node));

	$a->query('BEGIN; UPDATE u SET i = i WHERE i = 1');
	$b->query('BEGIN; UPDATE u SET i = i WHERE i = 2');
	start_and_wait($a, 'UPDATE u SET i = i WHERE i = 2');
	$b->start('UPDATE u SET i = i WHERE i = 1');
	my @states = sort map { $_->finish->{state} } $a, $b;

	is("@states", '00000 40P01', 'a deadlock is found');
	$_->query('ROLLBACK') foreach $a, $b;
}

# lock_timeout and NOWAIT, while the queue is full or not
{
	my ($locker, $client) = (client($node), client($node));

	$locker->query('BEGIN; LOCK TABLE u IN ACCESS EXCLUSIVE MODE');
	$client->query(q{SET lock_timeout = '100ms'});
	is($client->query('SELECT * FROM u')->{state}, '55P03', 'lock_timeout');
	is($client->query('BEGIN; LOCK TABLE u IN SHARE MODE NOWAIT')->{state}, '55P03', 'NOWAIT');
	$client->query('ROLLBACK');
	is($client->query('SELECT * FROM t LIMIT 1 FOR UPDATE NOWAIT')->{state}, '00000', 'NOWAIT of a free row');
	$locker->query('COMMIT');

	# It does not count the time in the queue.
	fill();
	queue_up($node, $client, 'SELECT count(*) FROM u');
	wait_for($node, "SELECT wait_ms > 500 FROM pg_admission_queries WHERE pid = $client->{pid}");
	release($node, pop @holders);
	succeeds_ok($client->finish, 11, 'lock_timeout does not end a wait in the queue');
}

release($node, @holders);
server_is_idle($node);

done_testing();
