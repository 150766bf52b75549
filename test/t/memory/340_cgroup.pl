# In a control group with 1.5 GB: clients that hash about 130 MB each bring the
# server down, or wait for each other.
#
# The environment variable PGADM_CGROUP names a control group below which this
# user may make others, and move processes of its own into them; of version 1
# or 2.

use strict;
use warnings;

use PgAdmission;
use PostgreSQL::Test::Utils;
use Test::More;

my $name = $ENV{PGADM_CGROUP} || '';
plan skip_all => 'no control group: PGADM_CGROUP is not set' if $name eq '';

my ($cgroup) = map { "$_/$name/server" }
  grep { -d "$_/$name" } '/sys/fs/cgroup/memory', '/sys/fs/cgroup';
plan skip_all => "control group $name has no memory"
  if !defined $cgroup || !mkdir $cgroup;

my ($limit_file) = grep { -w $_ } "$cgroup/memory.max", "$cgroup/memory.limit_in_bytes";
if (!defined $limit_file)
{
	rmdir $cgroup;
	plan skip_all => "control group $name does not limit memory";
}

my $limit = 1536 << 20;

sub put
{
	my ($file, $text) = @_;

	open my $handle, '>', $file or die "could not open $file: $!";
	print {$handle} "$text\n" or die "could not write to $file: $!";
	close $handle or die "could not write to $file: $!";
	return;
}

put($limit_file, $limit);
eval { put("$cgroup/memory.memsw.limit_in_bytes", $limit) };    # if there is swap
eval { put("$cgroup/memory.swap.max", 0) };

my $node = new_server(
	'cgroup',
	'pg_admission.total_memory' => 0,
	'pg_admission.cores' => 24,
	'pg_admission.queue_capacity' => 100,
	'pg_admission.queue_timeout' => 0,
	'shared_buffers' => "'64MB'",
	'work_mem' => "'256MB'",
	'enable_sort' => 'off',
	'autovacuum' => 'off',
	'fsync' => 'off',
	'jit' => 'off',
	'max_connections' => 100,
	'restart_after_crash' => 'on');
$node->safe_psql('postgres',
	'SET ROLE app; CREATE TABLE big AS SELECT md5(i::text) AS filler FROM generate_series(1, 900000) i; ANALYZE big');

# Move the server into the group, and see that it finds out.

my $before = status($node, 'memory_total_bytes');

my ($postmaster) = slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)$/m;

put("$cgroup/cgroup.procs", $postmaster);
for my $pid (split /\n/, admin($node)->query(
		q{SELECT pid FROM pg_stat_activity WHERE backend_type <> 'client backend'
		  UNION SELECT sampler_pid FROM pg_admission_status})->{out})
{
	put("$cgroup/cgroup.procs", $pid);
}
cmp_ok($before, '>', $limit, 'outside of the group, the machine counts');

my $expected = ($limit - (64 << 20)) / 2;
ok(wait_for($node, 'SELECT memory_total_bytes FROM pg_admission_status', $expected),
	'in the group, its limit counts');
my $hash = 'SELECT count(*) FROM (SELECT DISTINCT filler FROM big) s';
my $client = client($node);
my $need = $client->query("SELECT memory_bytes FROM pg_admission_estimate('$hash')")->{out};
cmp_ok($need, '>', 100 << 20, 'a query is charged more than 100 MB');
cmp_ok($need, '<', 350 << 20, 'and less than 350 MB');
succeeds_ok($client->query($hash), 900000, 'one query runs');
cmp_ok(admin($node)->query('SELECT allocated_bytes FROM pg_stat_admission_memory')->{out},
	'>', 100 << 20, 'it had more than 100 MB');

# With the budget, all complete

sub all_complete
{
	my ($n) = @_;
	my @clients = map { client($node) } 1 .. $n;
	my $log_before = -s $node->logfile;

	$_->start($hash) for @clients;
	my @results = map { $_->finish } @clients;

	is( scalar(grep { defined $_->{state} && "$_->{state} $_->{out}" eq '00000 900000' } @results),
		$n, "all of $n queries complete");
	unlike(slurp_file($node->logfile, $log_before),
		qr/was terminated by signal|out of memory/, 'nothing is killed');
	$_->quit for @clients;
	return;
}

all_complete(16);
ok(wait_for($node, 'SELECT running + queued FROM pg_admission_status', 0),
	'nothing is left');
SKIP:
{
	skip '64 clients take long; PG_TEST_EXTRA does not contain "cgroup"', 2
	  unless ($ENV{PG_TEST_EXTRA} || '') =~ /\bcgroup\b/;
	all_complete(64);
}
cmp_ok(counter($node, 'waited'), '>', 0, 'some have waited');

# The limit is lowered while the server runs

my $holder = client($node);
$holder->start('SELECT filler, pg_sleep(3600) FROM (SELECT DISTINCT filler FROM big) s');
wait_for($node, 'SELECT memory_used_bytes > 0 FROM pg_admission_status');
$node->safe_psql('postgres', "ALTER ROLE app SET pg_admission.query_memory = '700MB'");
my $big = client($node);
queue_up($node, $big, 'SELECT count(*) FROM t');
put($limit_file, 1000 << 20);
exceeds_ok($big->finish, 'memory', 'query exceeds the memory budget',
	'a queued query is refused when the machine has become too small');
is(status($node, 'memory_total_bytes'), ((1000 - 64) << 20) / 2, 'budget of the smaller group');
put($limit_file, $limit);
ok(wait_for($node, 'SELECT memory_total_bytes FROM pg_admission_status', $expected),
	'and of the larger one again');
release($node, $holder);
$node->safe_psql('postgres', 'ALTER ROLE app RESET pg_admission.query_memory');
server_is_idle($node);

# Without it, the kernel kills a backend, and the server restarts.

$node->append_conf('postgresql.conf', 'pg_admission.mode = off');
$node->reload;
ok(wait_for($node, 'SELECT mode FROM pg_admission_status', 'off'), 'mode is off');
my @clients = map { client($node) } 1 .. 16;
$_->start('SELECT filler, pg_sleep(3600) FROM (SELECT DISTINCT filler FROM big) s')
  for @clients;
$node->wait_for_log(qr/was terminated by signal 9: Killed/);
pass('with mode = off the server is killed');
is(scalar(grep { defined $_->finish->{state} } @clients), 0, 'no query completes');
$node->wait_for_log(qr/all server processes terminated; reinitializing/);
ok($node->poll_query_until('postgres', 'SELECT 1', '1'), 'the server restarts');

$node->stop('immediate');
ok(rmdir $cgroup, 'nobody is left in the group');
done_testing();
