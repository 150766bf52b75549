# Every waiter is served in the end: a big query is not passed for ever, nor is
# anybody held up by a waiter that does not answer.

use strict;
use warnings;

use PgAdmission;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('waiters', 'pg_admission.queue_timeout' => 0);
my $count = 'SELECT count(*) FROM t';

my @stopped;

# A server with a stopped process does not shut down.
END { kill 'CONT', @stopped if @stopped; }

admin($node)->query('GRANT SET ON PARAMETER pg_admission.query_workers TO app');
$node->safe_psql('postgres', 'CREATE TABLE u AS SELECT 1; GRANT SELECT ON u TO app');

sub wait_for_a_second
{
	my ($client) = @_;

	return wait_for($node,
		"SELECT wait_ms > 1100 FROM pg_admission_queries WHERE pid = $client->{pid} AND state = 'queued'");
}

# In a transaction, the first query of which has run
sub client_in_transaction
{
	my $client = client($node);

	succeeds_ok($client->query("BEGIN; $count"), 10, 'first query');
	return $client;
}

# A worker is free, but what has waited at the head of the queue for a second
# needs both: then who goes ahead of the queue as well must not take it.
{
	my ($big, $small) = (client_in_transaction(), client_in_transaction());
	my @holders = occupy($node, 1);

	$big->query('SET pg_admission.query_workers = 2');
	queue_up($node, $big, $count);
	succeeds_ok($small->query($count), 10, 'a small one passes');
	wait_for_a_second($big);
	queue_up($node, $small, $count);
	release($node, @holders);
	succeeds_ok($_->finish, 10, 'both are served') foreach $big, $small;
	$_->query('COMMIT') foreach $big, $small;
}

# The same if another one comes to the front of the queue meanwhile.
{
	my ($big, $bigger, $small) = (client($node), client_in_transaction(), client($node));
	my @holders = occupy($node, 1);

	$_->query('SET pg_admission.query_workers = 2') foreach $big, $bigger;
	queue_up($node, $big, $count);
	wait_for_a_second($big);
	queue_up($node, $bigger, $count);
	queue_up($node, $small, $count);
	is(status($node, 'workers_used, queued'), '1|3', 'what is saved up stays saved up');
	release($node, @holders);
	succeeds_ok($_->finish, 10, 'all are served') foreach $big, $bigger, $small;
	$bigger->query('COMMIT');
}

# A cursor is never refused what it has had, however small the budget is now.
{
	my ($client, $other) = (client($node), client($node));

	$_->query('SET pg_admission.query_workers = 2') foreach $client, $other;
	succeeds_ok($client->query('BEGIN; DECLARE c CURSOR FOR SELECT i FROM t ORDER BY i; FETCH c'),
		1, 'first fetch');
	reload_with($node, { 'pg_admission.cores_multiplier' => 1 }, 'workers_total', 1);
	exceeds_ok($other->query($count), 'workers', 'query exceeds the worker budget',
		'a new query is refused');
	succeeds_ok($client->query('FETCH c'), 2, 'a later fetch is not');
	$client->query('COMMIT');
	reload_with($node, { 'pg_admission.cores_multiplier' => 2 }, 'workers_total', 2);
}

# A waiter that is woken, or granted a worker, and is stopped
{
	my @waiters = map { client($node) } 1 .. 3;
	my @holders = occupy($node, 2);

	queue_up($node, $_, $count) foreach @waiters;
	kill 'STOP', $waiters[0]->{pid};
	push @stopped, $waiters[0]->{pid};
	release($node, @holders);
	succeeds_ok($_->finish, 10, 'the others go on') foreach @waiters[ 1, 2 ];
	kill 'CONT', $waiters[0]->{pid};
	succeeds_ok($waiters[0]->finish, 10, 'the one that was stopped, too');
}

# A waiter that is granted the worker for its cursor again, and terminated before
# it finds out
{
	my ($client, $next) = map { client($node) } 1 .. 2;
	my $states = "SELECT string_agg(state, ',') FROM pg_admission_queries WHERE pid = $client->{pid}";

	$client->query('BEGIN; DECLARE c CURSOR FOR SELECT i FROM t ORDER BY i; FETCH c');
	my @holders = occupy($node, 2);
	queue_up($node, $client, 'FETCH c');
	kill 'STOP', $client->{pid};
	push @stopped, $client->{pid};
	admin($node)->query("SELECT pg_terminate_backend($client->{pid})");
	release($node, @holders);
	ok(wait_for($node, $states, 'running'), 'a stopped waiter is granted a worker');
	kill 'CONT', $client->{pid};
	like($client->finish->{err}, qr/57P01/, 'and terminated');
	ok(wait_for($node, $states, ''), 'what it held is gone');
	succeeds_ok($next->query($count), 10, 'the server goes on');
}

# Nobody needs the sampler to be admitted, and a waiter sees to its locks by
# itself.
{
	my @holders = occupy($node, 2);
	my ($first, $second, $third) = map { client($node) } 1 .. 3;
	my $ddl = client($node, user => undef);
	my $sampler = status($node, 'sampler_pid');

	queue_up($node, $first, $count);
	queue_up($node, $second, $count);
	kill 'STOP', $sampler;
	push @stopped, $sampler;
	release($node, pop @holders);
	succeeds_ok($_->finish, 10, 'without a sampler: admitted') foreach $first, $second;
	push @holders, occupy($node, 1);
	queue_up($node, $third, 'SELECT count(*) FROM u');
	$ddl->start('ALTER TABLE u ADD COLUMN x int');
	succeeds_ok($third->finish, 1, 'without a sampler: forced');
	succeeds_ok($ddl->finish, '', 'without a sampler: who waited for it');
	kill 'CONT', $sampler;
	release($node, @holders);
}

server_is_idle($node);

done_testing();
