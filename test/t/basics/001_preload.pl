# The library must be preloaded: otherwise there is a clear error.

use strict;
use warnings;

use PgAdmission;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $must = qr/ERROR:  pg_admission must be loaded via shared_preload_libraries\nHINT:  Add pg_admission to "shared_preload_libraries" and restart the server\./;

my $node = PostgreSQL::Test::Cluster->new('preload');
$node->init;
$node->start;

sub fails_without
{
	my ($sql, $name) = @_;
	my ($ret, $out, $err) = $node->psql('postgres', $sql);

	isnt($ret, 0, "$name fails");
	$err =~ s/^psql:<stdin>:\d+: //mg;
	like($err, $must, "$name: the error says what to do");
	return;
}

fails_without('CREATE EXTENSION pg_admission', 'CREATE EXTENSION');
fails_without("LOAD 'pg_admission'", 'LOAD');

# Settings in the file do no harm without the library.

$node->append_conf('postgresql.conf', "pg_admission.mode = enforce\n");
$node->restart;
is($node->safe_psql('postgres', 'SHOW pg_admission.mode'), 'enforce',
	'settings are kept for later');

# With it

$node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_admission'\n");
$node->restart;
$node->safe_psql('postgres', 'CREATE EXTENSION pg_admission');
is($node->safe_psql('postgres', 'SELECT mode FROM pg_admission_status'), 'enforce',
	'they are in force with it');
$node->safe_psql('postgres', "LOAD 'pg_admission'");

# A standalone backend has no one to wait for.

$node->safe_psql('postgres', 'CREATE TABLE t (i int)');
$node->stop;
my ($out, $err);
IPC::Run::run([ 'postgres', '--single', '-D', $node->data_dir, 'postgres' ],
	'<', \"INSERT INTO t VALUES (1)\nSELECT count(*) FROM t\nSELECT running FROM pg_admission_status\n",
	'>', \$out, '2>', \$err);
like($out, qr/count = "1"/, 'a standalone backend runs queries');
like($out, qr/running = "0"/, 'the views work there');

# The objects without the library

$node->adjust_conf('postgresql.conf', 'shared_preload_libraries', "''");

# In a binary upgrade the library can be loaded, so that objects can be made.

my @calls = qw(pg_admission_status() pg_admission_queries() pg_stat_admission()
  pg_stat_admission_roles() pg_stat_admission_memory() pg_admission_load()
  pg_admission_breakers() pg_admission_warnings() pg_admission_estimate('')
  pg_admission_trip('a','b','1h') pg_admission_untrip('a') pg_admission_reset());
IPC::Run::run([ 'postgres', '--single', '-b', '-D', $node->data_dir, 'postgres' ],
	'<', \join('', map { "SELECT * FROM $_\n" } @calls, 'generate_series(7, 7)'),
	'>', \$out, '2>', \$err);
is(scalar(() = $err =~ /ERROR:  pg_admission must be loaded via/g), scalar(@calls),
	'every function says so in a binary upgrade');
like($out, qr/ = "7"/, 'and the server goes on');

$node->start;
fails_without("SELECT * FROM $_", $_)
  for qw(pg_admission_status pg_admission_queries pg_stat_admission);
fails_without('SELECT pg_admission_reset()', 'pg_admission_reset');
is($node->safe_psql('postgres', 'SELECT count(*) FROM t'), 1, 'queries run as ever');
$node->safe_psql('postgres', 'DROP EXTENSION pg_admission');

$node->stop;
done_testing();
