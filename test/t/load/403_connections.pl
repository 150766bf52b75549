# New connections are refused while the server is overloaded.
#
# Every process waits for a CPU now and then, so that with a maximum near 0
# all are refused, and with a minimum far away none.

use strict;
use warnings;

use PgAdmission;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server(
	'connections',
	'listen_addresses' => "'127.0.0.1'",
	'max_wal_senders' => 2,
	'wal_level' => 'replica',
	'pg_admission.sample_interval' => 200,
	'pg_admission.cpu_busy_time_threshold' => 0);
my $port = $node->port;

$node->safe_psql('postgres', q{
	CREATE ROLE helper LOGIN;
	GRANT pg_monitor TO helper;
	CREATE ROLE streamer LOGIN REPLICATION;
	CREATE ROLE owner LOGIN;
	CREATE DATABASE owned OWNER owner;
	ALTER ROLE owner SET pg_admission.bypass = on;
	CREATE ROLE observer LOGIN;
	ALTER ROLE observer SET pg_admission.mode = off;
});
$node->append_conf('pg_hba.conf',
	"host all all 127.0.0.1/32 trust\nhost replication all 127.0.0.1/32 trust\n");
$node->reload;

# Keep the server waiting for a CPU: more processes than CPUs.
my @spinners = map { client($node) } 1 .. 6;
$_->start('DO $$ BEGIN LOOP END LOOP; END $$') for @spinners;
ok(wait_for($node, 'SELECT cpu_wait_ratio > 0.5 FROM pg_admission_status'), 'the server waits for a CPU');

sub connect_as
{
	my ($user, $params) = @_;
	my ($stdout, $stderr);
	my @command = ('psql', '-XAtq', '-v', 'VERBOSITY=verbose', '-d',
		($params || "host=127.0.0.1 port=$port") . " user=$user dbname=postgres");

	local %ENV = (%ENV, PGCONNECT_TIMEOUT => 30);
	IPC::Run::run([ @command, '-c', 'SELECT 42' ], '>', \$stdout, '2>', \$stderr);
	chomp $stdout;
	return ($stdout, $stderr);
}

sub refused_ok
{
	my ($name, @args) = @_;
	my ($stdout, $stderr) = connect_as(@args);

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return like($stderr, qr/FATAL: .*system overloaded: no new sessions are accepted for the moment/, $name);
}

sub accepted_ok
{
	my ($name, @args) = @_;
	my ($stdout, $stderr) = connect_as(@args);

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is($stdout, 42, $name) || diag $stderr;
}

sub dropped
{
	return counter($node, 'dropped_connections');
}

my $roles = q{SELECT substring(message from 'refused: (.*); remedy') FROM pg_admission_warnings WHERE name = 'connection_roles'};
admin($node)->query(q{
	CREATE ROLE pgpool_check LOGIN;
	CREATE ROLE exempt_backup LOGIN IN ROLE pg_monitor;
	CREATE ROLE backups;
	CREATE ROLE checkout LOGIN});

accepted_ok('off by default', 'app');
is(admin($node)->query($roles)->{out}, '', 'so no role is in danger');
reload_with($node, {
	'pg_admission.min_cpu_wait_ratio_to_drop_connection' => 100000,
	'pg_admission.max_cpu_wait_ratio_to_drop_connection' => 100001 });
accepted_ok('under the minimum all get in', 'app');
is(dropped(), 0, 'none is refused');

reload_with($node, {
	'pg_admission.min_cpu_wait_ratio_to_drop_connection' => 0,
	'pg_admission.max_cpu_wait_ratio_to_drop_connection' => '0.000001' });
my ($stdout, $stderr) = connect_as('app', "host=127.0.0.1 port=$port sslmode=disable");
like($stderr, qr/FATAL: .*system overloaded: no new sessions are accepted for the moment/, 'over the maximum none does');
like($stderr,
	qr/^DETAIL:  label=SystemOverloadedError retryable=no reason=connection running=\d+ queued=\d+ queue_capacity=-?\d+ retry_after_ms=\d+ [A-Z]/m,
	'DETAIL');
like($stderr, qr/^HINT:  reason=connection retry_after_ms=\d+ /m, 'HINT');
is(dropped(), 1, 'it is counted');
is( admin($node)->query(q{SELECT usename, datname, submitted, dropped_connections FROM pg_stat_admission_roles WHERE dropped_connections > 0})->{out} =~ s/\|\d+\|/|n|/r,
	'app|postgres|n|1', 'for its role and database, too');
like(admin($node)->query($roles)->{out}, qr/^(?:"streamer", "pgpool_check"|"pgpool_check", "streamer")$/,
	'a warning names the roles that look after the server and may be refused');
is(counter($node, 'rejected'), 0, 'not as a query');
unlike(slurp_file($node->logfile), qr/FATAL:.*no new sessions/, 'it does not flood the log');
refused_ok('nor over a local socket', 'app', $node->connstr);

accepted_ok('superusers get in', scalar getpwuid($<), $node->connstr);
accepted_ok('exempt roles get in', 'helper');
refused_ok('a setting of the role does not count', 'owner');
refused_ok('nor does its mode', 'observer');
ok(run_log([ 'psql', '-XAtq', '-d', "host=127.0.0.1 port=$port user=streamer replication=true",
			'-c', 'IDENTIFY_SYSTEM' ], '>', \my $dummy), 'replication gets in');
like((connect_as('nobody'))[1], qr/role "nobody" does not exist/, 'who does not exist is told so');

# Memberships looked up for the connection are not taken for complete later

reload_with($node, {
	'pg_admission.min_cpu_wait_ratio_to_drop_connection' => 100000,
	'pg_admission.max_cpu_wait_ratio_to_drop_connection' => 100001 });
{
	my $owner = client($node, user => 'owner', dbname => 'owned');
	succeeds_ok($owner->query('SET ROLE pg_database_owner; SELECT current_user'),
		'pg_database_owner', 'an owner is a member of pg_database_owner');
	$owner->quit;
}
reload_with($node, { 'pg_admission.min_cpu_wait_ratio_to_drop_connection' => 0,
	'pg_admission.max_cpu_wait_ratio_to_drop_connection' => '0.000001' });

# Several hosts: libpq does not try the next

my $second = PostgreSQL::Test::Cluster->new('second');
$second->init;
$second->append_conf('postgresql.conf', "listen_addresses = '127.0.0.1'\n");
$second->append_conf('pg_hba.conf', "host all all 127.0.0.1/32 trust\n");
$second->start;
$second->safe_psql('postgres', 'CREATE ROLE app LOGIN');
my $hosts = 'host=127.0.0.1,127.0.0.1 port=' . $port . ',' . $second->port;
refused_ok('with several hosts, the next is not tried', 'app', $hosts);
$second->stop;

# sslmode=prefer: tried again without encryption, with the same answer

SKIP:
{
	my $data = $node->data_dir;

	skip 'openssl cannot make a certificate', 4
	  unless run_log([ 'openssl', 'req', '-new', '-x509', '-nodes', '-days', 2,
			'-subj', '/CN=localhost', '-out', "$data/server.crt", '-keyout', "$data/server.key" ],
		'>', '/dev/null', '2>', '/dev/null');
	chmod 0600, "$data/server.key";
	reload_with($node, { 'ssl' => 'on' });

	my $before = dropped();
	refused_ok('refused with sslmode=require', 'app', "host=127.0.0.1 port=$port sslmode=require");
	is(dropped() - $before, 1, 'once');
	refused_ok('refused with sslmode=prefer', 'app', "host=127.0.0.1 port=$port sslmode=prefer");
	is(dropped() - $before, 3, 'twice, for libpq tries again in plain text');
}

# Mode observe only counts

my $before = dropped();
reload_with($node, { 'pg_admission.mode' => 'observe' }, 'mode', 'observe');
accepted_ok('mode observe refuses none', 'app');
is(counter($node, "dropped_connections - $before, would_have_dropped_connections > 0"), '0|t',
	'but counts them');
reload_with($node, { 'pg_admission.mode' => 'off' }, 'mode', 'off');
$before = counter($node, 'would_have_dropped_connections');
accepted_ok('mode off refuses none', 'app');
is(counter($node, "would_have_dropped_connections - $before"), 0, 'nor counts any');
reload_with($node, { 'pg_admission.mode' => 'enforce' }, 'mode', 'enforce');

# PgBouncer

SKIP:
{
	my $pgbouncer = (grep { -x } map { "$_/pgbouncer" } split(/:/, $ENV{PATH}), '/usr/sbin')[0];
	my $folder = $node->basedir;
	my $bouncer_port = PostgreSQL::Test::Cluster::get_free_port();

	skip 'there is no pgbouncer', 5 unless $pgbouncer;
	append_to_file("$folder/users", qq{"app" ""\n"helper" ""\n});
	append_to_file("$folder/pgbouncer.ini", <<EOT);
[databases]
postgres = host=127.0.0.1 port=$port
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = $bouncer_port
unix_socket_dir =
auth_type = trust
auth_file = $folder/users
pool_mode = transaction
server_login_retry = 2
logfile = $folder/pgbouncer.log
pidfile = $folder/pgbouncer.pid
EOT
	my $through = "host=127.0.0.1 port=$bouncer_port";
	my $bouncer = IPC::Run::start([ $pgbouncer, '-q', "$folder/pgbouncer.ini" ], '<', '/dev/null', '>&', \my $out);
	my $gets_in = sub { (connect_as($_[0], $through))[0] eq '42' };
	wait_until(sub { $gets_in->('helper') });
	accepted_ok('through PgBouncer an exempt role gets in', 'helper', $through);

	my ($stdout, $stderr) = connect_as('app', $through);
	unlike($stdout, qr/42/, 'through PgBouncer others do not');
	like($stderr, qr/(system overloaded|server login)/, "they are told: $stderr");
	reload_with($node, { 'pg_admission.max_cpu_wait_ratio_to_drop_connection' => 0 });
	wait_until(sub { $gets_in->('app') });
	accepted_ok('PgBouncer comes back when connections are accepted again', 'app', $through);
	reload_with($node, { 'pg_admission.max_cpu_wait_ratio_to_drop_connection' => '0.000001' });
	accepted_ok('connections that it has are not refused', 'app', $through);
	$bouncer->signal('TERM');
	IPC::Run::finish($bouncer);
}

# When the sampler is stopped, nobody is refused

my $pid = status($node, 'sampler_pid');
refused_ok('refused while the sampler runs', 'app');
kill 'STOP', $pid;
ok(wait_for($node, 'SELECT cpu_wait_ratio IS NULL FROM pg_admission_status'), 'the sampler is stopped');
accepted_ok('all get in', 'app');
kill 'CONT', $pid;
ok(wait_for($node, 'SELECT cpu_wait_ratio > 0 FROM pg_admission_status'), 'the sampler goes on');
refused_ok('refused again', 'app');

admin($node)->query("SELECT pg_cancel_backend($_->{pid})") for @spinners;
server_is_idle($node);
done_testing();
