# Copyright (c) 2026, pg_admission contributors

# Everything at once, at random: see test/torture/torture.c.
#
#	TORTURE_SECONDS=3600 TORTURE_SEED=1 TORTURE_CLIENTS=50 prove ... 290_torture.pl
#
# and once more with so little memory that most queries wait for it, for half of
# the time.  TORTURE_PROFILES="scarce" runs only that.

use strict;
use warnings;

use File::Basename;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $folder = dirname(__FILE__) . '/../../torture';
my $seconds = $ENV{TORTURE_SECONDS} // 60;
my $clients = $ENV{TORTURE_CLIENTS} // 50;
my $pg_config = $ENV{PG_CONFIG} // 'pg_config';

# Is that a line that must not be in the server log?  Errors are judged by the
# driver, by their SQLSTATE, so that only what no client gets to see is looked
# for here.
sub unexpected
{
	my $line = shift;

	return 1 if $line =~ /PANIC|TRAP|was terminated by signal|leak|not closed/;
	if ($line =~ /WARNING:/)
	{
		return 0 if $line =~ /there is no transaction|there is already a transaction/;
		return 0 if $line =~ /you don't own a lock|skipping |autovacuum worker|is not a PostgreSQL|no connection to the server/;
		return 0 if $line =~ /08006: +FATAL:  terminating connection/;	# of postgres_fdw's
		return 1;
	}
	if ($line =~ /(ERROR|FATAL):  XX/)
	{
		return 0 if $line =~ /tuple concurrently|could not open relation/;
		return 0 if $line =~ /cache lookup failed|could not find/;
		return 1;
	}
	return 0;
}

my $driver = PostgreSQL::Test::Utils::tempdir() . '/torture';
my $libdir = `$pg_config --libdir`;
my $includedir = `$pg_config --includedir`;
chomp($libdir, $includedir);
system_or_bail($ENV{CC} // 'cc', '-std=gnu99', '-O2', '-pthread',
	"-I$includedir", '-o', $driver, "$folder/torture.c",
	"-L$libdir", "-Wl,-rpath,$libdir", '-lpq');

# Start a server, torture it, and see what is left.
sub torture
{
	my ($profile, $settings, @options) = @_;
	my $node = PostgreSQL::Test::Cluster->new("torture_$profile");
	$node->init;
	$node->append_conf('postgresql.conf', qq(
shared_preload_libraries = 'pg_admission'
pg_admission.mode = enforce
pg_admission.cores = 1
pg_admission.queue_capacity = 100
pg_admission.queue_timeout = 5s
max_connections = 300
max_prepared_transactions = 100
max_worker_processes = 16
autovacuum_naptime = 1s
deadlock_timeout = 200ms
client_connection_check_interval = 1s
idle_in_transaction_session_timeout = 10s
min_parallel_table_scan_size = 0
parallel_setup_cost = 100
log_statement = none
log_error_verbosity = verbose
log_min_messages = warning
$settings));
	$node->start;
	$node->safe_psql('postgres', PostgreSQL::Test::Utils::slurp_file("$folder/setup.sql"));

	my @command = ($driver, '--connect=' . $node->connstr('postgres'),
		'--stop-processes', "--clients=$clients", @options);
	push @command, '--verbose' if $ENV{TORTURE_VERBOSE};
	push @command, "--seed=$ENV{TORTURE_SEED}" if $ENV{TORTURE_SEED};
	my $output = `@{[ map { "'" . s{'}{'\\''}gr . "'" } @command ]}`;
	is($? >> 8, 0, "$profile: nothing is leaked and nothing hangs");
	diag($output) if $?;
	note($output);

	$node->poll_query_until('postgres',
		q(SELECT count(*) = 0 FROM pg_stat_activity WHERE usename LIKE 'torture%'))
	  or diag('somebody is still connected');
	is($node->safe_psql('postgres', q(
		SELECT running + queued + workers_used + workers_lent + memory_used_bytes
		FROM pg_admission_status)),
		'0', "$profile: with nobody connected all gauges are 0");
	is($node->safe_psql('postgres', 'SELECT rescued FROM pg_stat_admission'),
		'0', "$profile: nobody had to be rescued");

	$node->stop;
	my @lines = grep { unexpected($_) } split /\n/, PostgreSQL::Test::Utils::slurp_file($node->logfile);
	is(join("\n", @lines[0 .. ($#lines < 20 ? $#lines : 19)]), '',
		"$profile: the server log has expected messages only");
}

my %profiles = (
	all => [ '', "--seconds=$seconds" ],
	scarce => [ "pg_admission.total_memory = '16MB'\n", '--scarce', '--seconds=' . int($seconds / 2) ]);

torture($_, @{ $profiles{$_} }) foreach split ' ', $ENV{TORTURE_PROFILES} // 'all scarce';

done_testing();
