# However a query ends, in whichever state, nothing is left of it.

use strict;
use warnings;

use PgAdmission;
use PostgreSQL::Test::Utils;
use Test::More;

my $count = 'SELECT count(*) FROM t';
my $node = new_server(
	'exits',
	'pg_admission.queue_timeout' => 0,
	'client_connection_check_interval' => "'100ms'",
	'deadlock_timeout' => "'10s'",
	'max_connections' => 40,
	'pg_admission.queue_capacity' => 100);

sub gauges_ok
{
	my ($name, $running) = @_;
	my $expected = ($running || 0) . '|0|' . ($running || 0) . '|0|0';
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	return ok(wait_for($node,
		'SELECT running, queued, workers_used, workers_lent, memory_used_bytes FROM pg_admission_status',
		$expected), "$name: nothing is left");
}

# ---- the states that a query may be in ------------------------------------

my @locker;

my %states = (
	running => sub {
		my ($client) = @_;

		$client->start('SELECT pg_sleep(3600), i FROM t ORDER BY i');
		wait_for($node, "SELECT state FROM pg_admission_queries WHERE pid = $client->{pid}", 'running');
	},
	lent => sub {
		my ($client) = @_;

		# Somebody must be queued for anything to be lent.
		my ($locker, $holder, $queued) = map { client($node) } 1 .. 3;
		$locker->query('SELECT pg_advisory_lock(1)');
		$client->start('SELECT pg_advisory_lock(1), i FROM t ORDER BY i');
		wait_for($node, 'SELECT running FROM pg_admission_status', 1);
		$holder->start('SELECT pg_sleep(3600) FROM t');
		wait_for($node, 'SELECT running FROM pg_admission_status', 2);
		$queued->query($count);
		wait_for($node, "SELECT state FROM pg_admission_queries WHERE pid = $client->{pid}", 'lent')
		  or die 'was not lent';
		release($node, $holder);
		push @locker, $locker, $holder, $queued;
	},
	suspended => sub {
		my ($client) = @_;

		$client->query('BEGIN; DECLARE c CURSOR FOR SELECT i FROM t ORDER BY i; FETCH 1 FROM c');
		wait_for($node, "SELECT state FROM pg_admission_queries WHERE pid = $client->{pid}", 'suspended');
	},
	queued => sub {
		my ($client) = @_;

		push @locker, occupy($node, 2);
		queue_up($node, $client, $count);
	},
	'queued again' => sub {
		my ($client) = @_;

		$client->query('BEGIN; DECLARE c CURSOR FOR SELECT i FROM t ORDER BY i; FETCH 1 FROM c');
		push @locker, occupy($node, 2);
		queue_up($node, $client, 'FETCH 1 FROM c');
	});

# ---- and what may happen to it --------------------------------------------

my %exits = (
	cancel => sub {
		my ($client, $state) = @_;

		admin($node)->query("SELECT pg_cancel_backend($client->{pid})");
		return '57014';
	},
	terminate => sub {
		my ($client) = @_;

		admin($node)->query("SELECT pg_terminate_backend($client->{pid})");
		return undef;
	},
	vanish => sub {
		my ($client) = @_;

		$client->vanish;
		return 'vanished';
	},
	timeout => sub {
		return '57014';
	},
	'client terminates' => sub {
		my ($client) = @_;

		kill 'TERM', $client->{pid};
		return undef;
	});

foreach my $state (sort keys %states)
{
	foreach my $exit (sort keys %exits)
	{
		my $name = "$state, $exit";
		my $client = client($node);

		next if $state eq 'suspended' && $exit eq 'cancel';
		$client->query(
			$state eq 'suspended' ? q(SET idle_in_transaction_session_timeout = '1s') :
			q(SET statement_timeout = '1s')) if $exit eq 'timeout';
		$states{$state}->($client);
		my $expected = $exits{$exit}->($client);

		if ($state eq 'suspended' && $exit ne 'vanish')
		{
			wait_for($node, "SELECT count(*) FROM pg_stat_activity WHERE pid = $client->{pid}", 0);
		}
		elsif ($exit ne 'vanish')
		{
			is($client->finish->{state}, $expected, $name);
		}
		else
		{
			wait_for($node, "SELECT count(*) FROM pg_stat_activity WHERE pid = $client->{pid}", 0);
		}
		if ($exit ne 'terminate' && $client->is_alive)
		{
			$client->query('ROLLBACK');
			$client->quit;
		}
		my @holders = $state =~ /queued/ ? splice @locker : ();
		release($node, @holders);
		if (@locker)
		{
			$_->quit foreach splice @locker;
		}
		gauges_ok($name);
		$_->quit foreach @holders;
	}
}

# ---- the session as a whole -----------------------------------------------

# Temporary tables are dropped when a backend exits, also from the queue.
{
	my $client = client($node);

	$client->query("CREATE TEMP TABLE mine AS SELECT * FROM t; CREATE INDEX ON mine (i)");
	my @holders = occupy($node, 2);
	queue_up($node, $client, 'SELECT count(*) FROM mine');
	admin($node)->query("SELECT pg_terminate_backend($client->{pid})");
	$client->finish;
	ok(wait_for($node, q(SELECT count(*) FROM pg_class WHERE relname = 'mine'), 0),
		'temporary tables are dropped');
	release($node, @holders);
	gauges_ok('temporary tables');
}

# No more connections
{
	my @clients;

	my @holders = occupy($node, 2);
	for (1 .. 60)
	{
		my $client = client($node, fails => 1);

		last unless $client->{pid} =~ /^\d+$/;
		push @clients, $client;
	}
	cmp_ok(scalar @clients, '>', 10, 'clients until there are no more connections');
	like(client($node, fails => 1)->{connect_error}, qr/too many clients|reserved/, 'no more connections');
	queue_up($node, $_, $count) foreach @clients[ 0 .. 4 ];
	release($node, @holders);
	succeeds_ok($_->finish, 10, 'the queue goes on') foreach @clients[ 0 .. 4 ];
	$_->quit foreach @clients;
	gauges_ok('no more connections');
}

# A storm of reloads, with the limits changing, and a full queue
{
	my @clients = map { client($node) } 1 .. 10;
	my @holders = occupy($node, 2);

	queue_up($node, $_, $count) foreach @clients;
	for my $i (1 .. 100)
	{
		admin($node)->query("ALTER SYSTEM SET pg_admission.cores_multiplier = " . (1 + $i % 3))
		  if $i % 5 == 0;
		admin($node)->query('SELECT pg_reload_conf()');
	}
	admin($node)->query('ALTER SYSTEM RESET ALL');
	admin($node)->query('SELECT pg_reload_conf()');
	release($node, @holders);
	succeeds_ok($_->finish, 10, 'served after a storm of reloads') foreach @clients;
	gauges_ok('a storm of reloads');
	wait_for($node, 'SELECT workers_total FROM pg_admission_status', 2);
}

# ---- the sampler ----------------------------------------------------------

{
	my $sampler = status($node, 'sampler_pid');
	my @holders = occupy($node, 2);
	my $client = queue_up($node, client($node), $count);

	kill 'TERM', $sampler;
	ok(wait_for($node, "SELECT sampler_pid <> $sampler FROM pg_admission_status"),
		'a sampler that was terminated is started again');
	release($node, @holders);
	succeeds_ok($client->finish, 10, 'the queue does not mind');
	gauges_ok('SIGTERM of the sampler');
}

server_is_idle($node);

done_testing();
