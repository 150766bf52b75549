# Something fails in the middle of a query's admission: nothing is left of it.
# Needs a build with assertions.

use strict;
use warnings;

use PgAdmission;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('failures', 'pg_admission.queue_timeout' => 0);
my $count = 'SELECT count(*) FROM t';

if (admin($node)->query('SHOW pg_admission.fail_at')->{state} ne '00000')
{
	admin($node)->quit;
	$node->stop;
	plan skip_all => 'not a build with assertions';
}
admin($node)->query('GRANT SET ON PARAMETER pg_admission.fail_at TO app');

my %statements = (
	'a query' => $count,
	'a cursor' => 'FETCH 1 FROM c',
	'a utility command' => 'ANALYZE t',
	'COPY' => 'COPY t TO STDOUT',
	'a caught error' => qq{DO \$\$ BEGIN
		BEGIN PERFORM count(*) FROM t; EXCEPTION WHEN out_of_memory THEN NULL; END;
		PERFORM count(*) FROM t; END \$\$});

foreach my $place ('record', 'charged', 'queued', 'waiting')
{
	my $queues = $place eq 'queued' || $place eq 'waiting';

	foreach my $statement (sort keys %statements)
	{
		my $name = "$place, $statement";
		my ($client, $next) = (client($node), client($node));
		my $in_transaction = $statement eq 'a cursor';

		$client->query('BEGIN; DECLARE c CURSOR FOR SELECT i FROM t; FETCH 1 FROM c') if $in_transaction;
		my @holders = $queues ? occupy($node, 2) : ();

		$client->query("SET pg_admission.fail_at = '$place'");
		my $state = $client->query($statements{$statement})->{state};

		# A cursor has its record since it was declared.
		is($state, $place eq 'record' && $in_transaction ? '00000' : '53200', $name);
		$client->query('ROLLBACK') if $in_transaction;
		is(status($node, 'running, queued, workers_used, memory_used_bytes'),
			scalar(@holders) . '|0|' . scalar(@holders) . '|0', "$name: nothing is left");

		# The same backend and others go on.
		$client->query('SET pg_admission.fail_at = never');
		queue_up($node, $next, $count) if $queues;
		release($node, @holders);
		succeeds_ok($queues ? $next->finish : $next->query($count), 10, "$name: others go on");
		succeeds_ok($client->query($count), 10, "$name: so does the backend");
		$_->quit foreach $client, $next, @holders;
	}
}

server_is_idle($node);

done_testing();
