# Without a sampler the server still follows its settings, fails open otherwise,
# and says so.

use strict;
use warnings;

use PgAdmission;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('no_sampler', 'max_worker_processes' => 1);
my $count = 'SELECT count(*) FROM t';

# Change settings of the server while no session has a statement
sub reload
{
	my ($n, %settings) = @_;

	$n->append_conf('postgresql.conf', join '', map { "pg_admission.$_ = $settings{$_}\n" } sort keys %settings);
	$n->reload;
	return;
}

sub lines
{
	my ($n) = @_;
	my @lines = slurp_file($n->logfile) =~ /LOG:  the sampler of pg_admission is not running/g;

	return scalar @lines;
}

is(status($node, 'sampler_pid'), '', 'there is no sampler');
is(status($node, 'mode, workers_total'), 'enforce|2', 'the settings at the start are in force');

# Queued queries follow within a second or two, though no session has a statement

my @holders = occupy($node, 2);
my $waiting = queue_up($node, client($node), $count);
reload($node, cores_multiplier => 3);
succeeds_ok($waiting->finish, 10, 'a queued query follows the new limits by itself');
is(status($node, 'workers_total'), 3, 'and has put them in force');

# So does the next statement of any session, exempt or not

reload_with($node, { 'pg_admission.cores_multiplier' => 2 }, 'workers_total', 2);
queue_up($node, $waiting, $count);
reload_with($node, { 'pg_admission.mode' => 'off' }, 'mode', 'off');
succeeds_ok($waiting->finish, 10, 'mode off lets the queue go');
reload_with($node, { 'pg_admission.mode' => 'enforce' }, 'mode', 'enforce');

# A session with a mode of its own does not take that for the server's

my $own = client($node, options => '-c pg_admission.queue_timeout=123456');
admin($node)->query('ALTER ROLE app SET pg_admission.mode = observe');
my $observer = client($node);
reload($node, queue_capacity => 7);
ok(wait_until(sub { $observer->query('SELECT 1'); $own->query('SELECT 1'); status($node, 'queue_capacity') eq 7 }),
	'what only the server has is followed');
is(status($node, 'mode'), 'enforce', 'a mode of its own is not the server\'s');
admin($node)->query('ALTER ROLE app RESET pg_admission.mode');
reload_with($node, { 'pg_admission.queue_timeout' => 1 });
is($waiting->query($count)->{state}, '53A01', 'nor is a queue timeout');
reload_with($node, { 'pg_admission.queue_timeout' => '30s' });

# The switch

queue_up($node, $waiting, $count);
admin($node)->query('ALTER SYSTEM SET pg_admission.enabled = off');
admin($node)->query('SELECT pg_reload_conf()');
succeeds_ok($waiting->finish, 10, 'all can be switched off');
admin($node)->query('ALTER SYSTEM RESET pg_admission.enabled');
admin($node)->query('SELECT pg_reload_conf()');
ok(wait_for($node, 'SELECT mode FROM pg_admission_status', 'enforce'), 'and on again');
release($node, @holders);

# A breaker that was tripped by hand clears in time, and makes room for others

admin($node)->query(q{SELECT pg_admission_trip('by hand', 'test', '1 second')});
is($waiting->query($count)->{state}, '53A01', 'a breaker refuses');
ok(wait_until(sub { $waiting->query($count)->{state} eq '00000' }), 'until its time is over');
admin($node)->query(q{SELECT pg_admission_trip('breaker ' || i, 'test', '1 ms') FROM generate_series(1, 8) i});
ok(wait_until(sub {
		admin($node)->query(q{SELECT pg_admission_trip('the last', 'test', '1 ms')})->{state} eq '00000' }),
	'it makes room for others');

# It is said, but not again and again

ok(wait_for($node, q{SELECT count(*) FROM pg_admission_warnings WHERE name = 'sampler'}, 1), 'a warning says so');
like(admin($node)->query('SELECT message FROM pg_admission_warnings')->{out},
	qr/^The sampler of pg_admission is not running\. .* Raise max_worker_processes/, 'with what to do');
ok(wait_until(sub { $waiting->query('SELECT 1'); lines($node) > 0 }), 'and the server log');
$waiting->query('SELECT 1'), client($node) for 1 .. 3;
is(lines($node), 1, 'once');
server_is_idle($node);
$node->stop;

# A sampler that is stopped is missing, too

$node = new_server('stopped_sampler');
my $pid = status($node, 'sampler_pid');
is(admin($node)->query(q{SELECT count(*) FROM pg_admission_warnings})->{out}, 0, 'with a sampler nothing is said');
@holders = occupy($node, 2);
$waiting = queue_up($node, client($node), $count);
kill 'STOP', $pid;
reload($node, cores_multiplier => 3);
succeeds_ok($waiting->finish, 10, 'a queued query follows while the sampler is stopped');
reload($node, cores_multiplier => 2);
ok(wait_for($node, 'SELECT workers_total FROM pg_admission_status', 2), 'so does the next statement');
ok(wait_for($node, q{SELECT message ~ 'SIGCONT' FROM pg_admission_warnings}), 'a warning says so');
ok(wait_until(sub { $waiting->query('SELECT 1'); lines($node) > 0 }), 'and the server log');
kill 'CONT', $pid;
ok(wait_for($node, q{SELECT count(*) FROM pg_admission_warnings}, 0), 'until it goes on');
is(status($node, 'workers_total'), 2, 'the settings stay in force');
release($node, @holders);
server_is_idle($node);
done_testing();
