# The sampler: what it publishes, how it ends and begins, and what is when it
# does not run.

use strict;
use warnings;

use PgAdmission;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server(
	'sampler',
	'pg_admission.sample_interval' => 200,
	'pg_admission.cpu_busy_time_threshold' => 0,
	'pg_admission.memory_warn_ratio' => '0.0001',
	'pg_admission.memory_clear_ratio' => '0.00005',
	'pg_admission.memory_warn_duration' => 500,
	'pg_admission.queue_warn_duration' => 500);
my $app = client($node);
my $count = 'SELECT count(*) FROM t';

sub log_count
{
	my ($pattern) = @_;
	my $found = () = slurp_file($node->logfile) =~ /$pattern/gm;

	return $found;
}

# The sampler shows what has changed before it logs that.
sub logged_once_ok
{
	my ($pattern, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	wait_until(sub { log_count($pattern) > 0 });
	return is(log_count($pattern), 1, $name);
}

# The history

ok(wait_for($node, 'SELECT count(*) > 5 FROM pg_admission_load'), 'samples are taken');
is( admin($node)->query(
		q{SELECT bool_and(sampled_at > older), bool_and(cpu_wait_us >= wait), bool_and(cpu_busy_us >= busy),
			max(cpu_busy_us) > 0, bool_and(memory_usage BETWEEN 0 AND 1), bool_and(load_average >= 0),
			count(cpu_utilization) >= count(*) - 2, bool_and(cpu_utilization BETWEEN 0 AND 1)
		  FROM (SELECT *, lead(sampled_at) OVER w AS older, lead(cpu_wait_us) OVER w AS wait,
				lead(cpu_busy_us) OVER w AS busy FROM pg_admission_load WINDOW w AS ()) s})->{out},
	't|t|t|t|t|t|t|t', 'newest first, and all of it plausible');
is( admin($node)->query(
		q{SELECT s.sampled_at >= l.sampled_at, s.cpu_wait_ratio IS NOT NULL, s.memory_usage > 0, s.throttle_rate
		  FROM pg_admission_status s, (SELECT * FROM pg_admission_load LIMIT 1) l})->{out},
	't|t|t|0', 'status shows the last');
SKIP:
{
	skip 'this kernel has no pressure information', 1 unless -r '/proc/pressure/cpu';
	ok(wait_for($node, 'SELECT cpu_pressure BETWEEN 0 AND 1 FROM pg_admission_status'), 'CPU pressure is measured');
}

# CPU time of processes that come and go is in the totals

my $before = admin($node)->query('SELECT cpu_busy_us_total FROM pg_stat_admission')->{out};
for (1 .. 3)
{
	$node->safe_psql('postgres', 'SELECT count(*) FROM generate_series(1, 300000)');
}
ok(wait_for($node, "SELECT cpu_busy_us_total > $before + 60000 FROM pg_stat_admission"),
	'the time of processes that have exited counts');

# Warnings

ok(wait_for($node, "SELECT count(*) FROM pg_admission_warnings WHERE name = 'memory'", 1),
	'the memory warning is raised');
is( admin($node)->query(
		"SELECT message LIKE '%; remedy: %', since < now(), value > 0, threshold FROM pg_admission_warnings")->{out},
	't|t|t|0.0001', 'with its remedy');
my ($holder) = occupy($node, 1);
my $number = admin($node)->query('SELECT count(*) FROM pg_admission_load')->{out};
ok(wait_for($node, "SELECT count(*) > $number + 3 FROM pg_admission_load"), 'samples go on');
logged_once_ok(qr/WARNING:  overload warning "memory": memory has been nearly used up/, 'it is logged once');
logged_once_ok(qr/DETAIL:  The value is 0\.\d+, the threshold 0\.0001\. (?:Most memory charged: PID \d+ \(\d+ kB\)|No query has been charged any memory)\./,
	'with who was charged most');
reload_with($node, { 'pg_admission.memory_warn_ratio' => 1, 'pg_admission.memory_clear_ratio' => '0.9999' });
ok(wait_for($node, 'SELECT count(*) FROM pg_admission_warnings', 0), 'it is cleared');
logged_once_ok(qr/overload warning "memory" has been cleared/, 'that is logged once');

# A query that waits all the time keeps the warning up, although none is new

my ($other) = occupy($node, 1);
my $waiter = queue_up($node, client($node), $count);
ok(wait_for($node, "SELECT count(*) FROM pg_admission_warnings WHERE name = 'queue'", 1),
	'the warning of the queue is raised');
logged_once_ok(qr/WARNING:  overload warning "queue"/, 'it is logged once');
logged_once_ok(qr/DETAIL:  The value is \d+, the threshold 1\. Most CPU time since the last sample: (?:PID \d+ \(\d+ ms\)(?:, )?)+\./,
	'with who uses most CPU time');
release($node, $holder, $other);
$waiter->finish;
ok(wait_for($node, 'SELECT count(*) FROM pg_admission_warnings', 0), 'it is cleared');
logged_once_ok(qr/overload warning "queue" has been cleared/, 'that is logged once');

# Stopped: everything turns unknown within three intervals, nothing is refused

reload_with($node, { 'pg_admission.memory_warn_ratio' => '0.0001', 'pg_admission.memory_clear_ratio' => '0.00005',
	'pg_admission.memory_breaker_threshold' => '0.0001' });
ok(wait_for($node, 'SELECT count(*) FROM pg_admission_warnings', 1), 'a warning is up');
ok(wait_for($node, "SELECT tripped FROM pg_admission_breakers WHERE name = 'memory'"), 'a breaker has tripped');
is($app->query($count)->{state}, '53A01', 'and refuses');
my $pid = status($node, 'sampler_pid');
kill 'STOP', $pid;
ok(wait_for($node, 'SELECT now() - sampled_at > interval \'600 ms\' FROM pg_admission_status'),
	'the sampler is stopped for three intervals');
is(status($node, 'cpu_wait_ratio IS NULL, cpu_utilization IS NULL, cpu_pressure IS NULL, memory_usage IS NULL, load_average IS NULL, throttle_rate IS NULL, reject_probability'),
	't|t|t|t|t|t|0', 'all values are unknown');
is( admin($node)->query("SELECT value IS NULL, tripped FROM pg_admission_breakers WHERE name = 'memory'")->{out},
	't|f', 'so is the breaker');
is(admin($node)->query('SELECT name, value IS NULL FROM pg_admission_warnings')->{out}, 'memory|t',
	'and the value of the warning');
succeeds_ok($app->query($count), 10, 'nothing is refused');
kill 'CONT', $pid;
ok(wait_for($node, "SELECT tripped FROM pg_admission_breakers WHERE name = 'memory'"), 'it goes on by itself');
is(status($node, 'sampler_pid'), $pid, 'the same');

# Ended: the postmaster starts another

kill 'TERM', $pid;
ok(wait_for($node, "SELECT sampler_pid <> $pid AND now() - sampled_at < interval '600 ms' FROM pg_admission_status"),
	'after SIGTERM another one is started');
is( admin($node)->query('SELECT bool_and(cpu_busy_us >= busy) FROM (SELECT cpu_busy_us, lead(cpu_busy_us) OVER w AS busy FROM pg_admission_load WINDOW w AS ()) s')->{out},
	't', 'the totals go on');
is(admin($node)->query("SELECT trips FROM pg_admission_breakers WHERE name = 'memory'")->{out} > 0, 1, 'so do the counters');
reload_with($node, { 'pg_admission.memory_breaker_threshold' => 0 });

# Reading a file fills the page cache, which is not memory in use

SKIP:
{
	my $file = $node->data_dir . '/big';
	my $used = sub { admin($node)->query(
		'SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY memory_usage) FROM (SELECT * FROM pg_admission_load LIMIT 5) s')->{out} };
	my ($total) = slurp_file('/proc/meminfo') =~ /^MemTotal:\s+(\d+) kB/m;
	my $mb = 400;

	skip 'the size of memory is unknown', 1 unless $total;
	run_log([ 'dd', 'if=/dev/zero', "of=$file", 'bs=1M', "count=$mb", 'conv=fsync' ], '2>', '/dev/null')
	  or skip 'no room for a file', 1;
	run_log([ 'dd', "if=$file", 'iflag=nocache', 'count=0' ], '2>', '/dev/null');

	# Others may take memory meanwhile: a rise must show every time.
	my $rises = 0;
	for (1 .. 3)
	{
		my $was = $used->();

		run_log([ 'dd', "if=$file", 'of=/dev/null', 'bs=1M' ], '2>', '/dev/null');
		my $seen = admin($node)->query('SELECT count(*) FROM pg_admission_load')->{out};
		wait_for($node, "SELECT count(*) >= $seen + 5 FROM pg_admission_load");
		$rises++ if ($used->() - $was) * $total / 1024 > $mb / 2;
		run_log([ 'dd', "if=$file", 'iflag=nocache', 'count=0' ], '2>', '/dev/null');
	}
	cmp_ok($rises, '<', 3, 'a sequential read does not raise memory usage');
	unlink $file;
}

# An interval that is changed is in force at once

reload_with($node, { 'pg_admission.sample_interval' => 60000 });
ok(wait_for($node, 'SELECT now() - sampled_at > interval \'1 s\' AND memory_usage IS NOT NULL FROM pg_admission_status'),
	'a sample holds as long as the interval says');
reload_with($node, { 'pg_admission.sample_interval' => 100 });
ok(wait_for($node, 'SELECT now() - sampled_at < interval \'200 ms\' FROM pg_admission_status'), 'a shorter one, too');

server_is_idle($node);

# It stops at once on shutdown

$pid = status($node, 'sampler_pid');
admin($node)->quit;
$node->stop('fast');
is(kill(0, $pid), 0, 'it ends with the server');
is(log_count(qr/PANIC|terminated by signal/), 0, 'in peace');

done_testing();
