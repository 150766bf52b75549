# In a control group utilization is that of the group's quota, and memory usage
# that of its limit, without the page cache.

use strict;
use warnings;

use PgAdmission;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

my $group = $ENV{PGADM_CGROUP};
my $limit = 400 * 1024 * 1024;
my $quota = 0.5;

plan skip_all => 'no control group can be made here (needs root, and version 1 with cpu, cpuacct and memory)'
  unless $group;

sub folder
{
	my ($controller) = @_;

	return "/sys/fs/cgroup/$controller/$group/half";
}

sub write_to
{
	my ($file, $text) = @_;

	open my $handle, '>', $file or die "could not open $file: $!";
	syswrite($handle, $text) or die "could not write to $file: $!";
	close $handle;
	return;
}

foreach my $controller (qw(cpu cpuacct memory))
{
	mkdir folder($controller) or die 'could not make ' . folder($controller) . ": $!";
}
write_to(folder('cpu') . '/cpu.cfs_period_us', 100000);
write_to(folder('cpu') . '/cpu.cfs_quota_us', 100000 * $quota);
write_to(folder('memory') . '/memory.limit_in_bytes', $limit);

# The server starts there, and stays; this process leaves again.
write_to(folder($_) . '/cgroup.procs', $$) for qw(cpu cpuacct memory);
my $node = new_server(
	'cgroup',
	'pg_admission.sample_interval' => 500,
	'pg_admission.cores' => 0,
	'pg_admission.cores_multiplier' => 4,
	'pg_admission.total_memory' => 0,
	'shared_buffers' => '16MB');
write_to("/sys/fs/cgroup/$_/$group/cgroup.procs", $$) for qw(cpu cpuacct memory);

is(status($node, 'workers_total'), 4 * $quota, 'half a CPU, four workers each: two');
is(status($node, 'memory_total_bytes'), ($limit - 16 * 1024 * 1024) / 2, 'half of the limit without the buffers');

# Utilization

my @spinners = map { client($node) } 1 .. 2;
$_->start('DO $$ BEGIN LOOP END LOOP; END $$') for @spinners;
wait_for_samples($node, 8);
my ($start, $used) = (time(), slurp_file(folder('cpuacct') . '/cpuacct.usage'));
wait_for_samples($node, 12);
my $share = (slurp_file(folder('cpuacct') . '/cpuacct.usage') - $used) / 1e9 / (time() - $start);
my $seen = admin($node)->query(
	'SELECT avg(cpu_utilization) FROM (SELECT * FROM pg_admission_load LIMIT 12) s')->{out};
ok(abs($seen - $share / $quota) < 0.15,
	sprintf('the group used %.2f CPUs of %.2f: utilization is %.2f', $share, $quota, $seen));
admin($node)->query("SELECT pg_cancel_backend($_->{pid})") for @spinners;
$_->finish for @spinners;

# Reading a file that is larger than what is free fills the page cache

my $file = $node->data_dir . '/big';
run_log([ 'dd', 'if=/dev/zero', "of=$file", 'bs=1M', 'count=300', 'conv=fsync' ], '2>', '/dev/null')
  or die 'could not write a file';
run_log([ 'dd', "if=$file", 'iflag=nocache', 'count=0' ], '2>', '/dev/null');
wait_for_samples($node, 2);
my $before = status($node, 'memory_usage');
my $usage = slurp_file(folder('memory') . '/memory.usage_in_bytes');
is(admin($node)->query("SELECT length(pg_read_binary_file('big', i * 10::bigint * 1024 * 1024, 10 * 1024 * 1024)) FROM generate_series(0, 29) i OFFSET 29")->{out},
	10 * 1024 * 1024, 'the server has read a big file');
my $cached = slurp_file(folder('memory') . '/memory.usage_in_bytes') - $usage;
wait_for_samples($node, 2);
cmp_ok($cached, '>', 150 * 1024 * 1024, 'the page cache of the group has grown');
my $after = status($node, 'memory_usage');
cmp_ok($after - $before, '<', 0.15, sprintf('memory usage has not: %.3f, %.3f', $before, $after));
unlink $file;

server_is_idle($node);
$node->stop;
rmdir folder($_) for qw(cpu cpuacct memory);

done_testing();
