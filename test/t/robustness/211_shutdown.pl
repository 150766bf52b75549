# The server is stopped, or crashes, with a full queue: it stops, and nothing of
# the queue is left when it is up again.

use strict;
use warnings;

use PgAdmission;
use PostgreSQL::Test::Utils;
use Test::More;

my $count = 'SELECT count(*) FROM t';
my $node = new_server('shutdown', 'restart_after_crash' => 'on');

# Two queries run, five wait.
sub fill
{
	my @holders = occupy($node, 2);
	my @queued = map { queue_up($node, client($node), $count) } 1 .. 5;

	return (\@holders, \@queued);
}

sub works_ok
{
	my ($name) = @_;
	my $client = client($node);
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	is(status($node, 'running, queued, workers_used, workers_lent, memory_used_bytes'),
		'0|0|0|0|0', "$name: all gauges are 0");
	is(status($node, 'mode, workers_total'), 'enforce|2', "$name: the limits are in force");
	succeeds_ok($client->query($count), 10, "$name: queries run");
	$client->quit;
	return;
}

sub gone_ok
{
	my ($name, @clients) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	is(join('', map { defined $_->finish->{state} ? 'answered' : '' } @clients), '', "$name: all have been sent away");
	return;
}

foreach my $mode ('fast', 'immediate')
{
	my ($holders, $queued) = fill();

	admin($node)->quit;
	$node->stop($mode);
	gone_ok($mode, @$holders, @$queued);
	$node->start;
	works_ok($mode);
}

# A smart shutdown waits for all clients, so those in the queue are served.
{
	my ($holders, $queued) = fill();

	admin($node)->quit;
	kill 'TERM', $node->{_pid};
	$node->wait_for_log(qr/received smart shutdown request/);
	kill 'INT', $_->{pid} foreach @$holders;
	succeeds_ok($_->finish, 10, 'smart: served') foreach @$queued;
	$_->quit foreach @$holders, @$queued;
	for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		last unless -e $node->data_dir . '/postmaster.pid';
		select(undef, undef, undef, 0.1);
	}
	ok(!-e $node->data_dir . '/postmaster.pid', 'smart: the server is down');
	$node->{_pid} = undef;
	$node->start;
	works_ok('smart');
}

# kill -9: the postmaster makes everybody start anew.
foreach my $victim ('queued', 'running', 'sampler')
{
	my ($holders, $queued) = fill();
	my $pid = $victim eq 'queued' ? $queued->[2]->{pid} :
	  $victim eq 'running' ? $holders->[0]->{pid} : status($node, 'sampler_pid');

	admin($node)->quit;
	kill 'KILL', $pid;
	gone_ok("kill -9 of the $victim", @$holders, @$queued);
	ok($node->poll_query_until('postgres', 'SELECT sampler_pid IS NOT NULL FROM pg_admission_status'),
		"kill -9 of the $victim: the server comes up again");
	works_ok("kill -9 of the $victim");
}

server_is_idle($node);

done_testing();
