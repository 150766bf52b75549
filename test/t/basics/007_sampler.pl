# The sampler: seen, killed, restarted, and not needed for anything to run.

use strict;
use warnings;

use PgAdmission;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('sampler', 'pg_admission.sample_interval' => '100ms');
my $count = 'SELECT count(*) FROM t';

my $pid = status($node, 'sampler_pid');
like($pid, qr/^\d+$/, 'the sampler runs');
my $sampled = status($node, 'sampled_at');
ok(wait_for($node, "SELECT sampled_at > '$sampled' FROM pg_admission_status"),
	'it takes samples');

# A SIGTERM ends it, and it comes back

my $offset = -s $node->logfile;
kill 'TERM', $pid;
ok(wait_for($node, "SELECT sampler_pid <> $pid FROM pg_admission_status"),
	'after a SIGTERM there is a new one');
like(slurp_file($node->logfile, $offset), qr/FATAL:  terminating background worker "pg_admission sampler" due to administrator command/,
	'which is logged');

# Limits change while there is none: the new one puts them in force.  Queries
# come and go meanwhile.

my @holders = occupy($node, 2);
my $waiting = queue_up($node, client($node), $count);
$pid = status($node, 'sampler_pid');
$node->append_conf('postgresql.conf', "pg_admission.cores_multiplier = 3\n");
kill 'TERM', $pid;
$node->reload;
succeeds_ok($waiting->finish, 10, 'the new sampler publishes the new limits');
is(status($node, 'workers_total'), 3, 'as the status shows');

# Without the sampler, whoever leaves wakes the next

push @holders, occupy($node, 1);
foreach my $round (1 .. 3)
{
	queue_up($node, $waiting, $count);
	$pid = status($node, 'coalesce(sampler_pid, 0)');
	kill 'TERM', $pid if $pid;
	release($node, $holders[0]);
	succeeds_ok($waiting->finish, 10, "queue moves on without the sampler ($round)");
	$holders[0] = (occupy($node, 1))[0];
}
release($node, @holders);

# It is no client: no session, no slot of max_connections

is( admin($node)->query(
		"SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid IN (SELECT sampler_pid FROM pg_admission_status)")->{out},
	0, 'it is no client backend');

# The statistics can be reset at any time

@holders = occupy($node, 3);
queue_up($node, $waiting, $count);
admin($node)->query('SELECT pg_admission_reset()');
is(counter($node, 'submitted, admitted, rejected, cancelled_while_queued, waited, throttled'),
	'1|0|0|0|0|0', 'after a reset, those queued count as submitted');
is(status($node, 'running, queued'), '3|1', 'and nothing else has changed');
release($node, @holders);
succeeds_ok($waiting->finish, 10, 'who was queued runs');
is(counter($node, 'submitted, admitted, waited'), '1|1|1', 'and is counted');
admin($node)->query('SELECT pg_admission_reset()');

# An orderly stop takes no time because of it

server_is_idle($node);
$node->stop('fast');
$node->start;
ok(wait_for($node, 'SELECT sampler_pid IS NOT NULL FROM pg_admission_status'),
	'it runs after a restart');
server_is_idle($node, 'idle after a restart');
done_testing();
