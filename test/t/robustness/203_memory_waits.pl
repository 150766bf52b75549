# Waits for memory: what they hold back, and that they end.  Memory may be held
# by a query that itself waits for the one in the queue.

use strict;
use warnings;

use PgAdmission;
use PostgreSQL::Test::Utils;
use Test::More;

# 32 MB for queries.  A query of the role "fat" claims 20 MB, "all" claims all,
# the others none.
my $node = new_server('memory',
	'pg_admission.queue_timeout' => 0,
	'pg_admission.cores' => 1,
	'pg_admission.cores_multiplier' => 6,
	'pg_admission.total_memory' => "'64MB'",
	'deadlock_timeout' => "'500ms'");
my ($host, $port) = ($node->host, $node->port);
my $count = 'SELECT count(*) FROM t';

# Claims about 20 MB, if work_mem allows
my $rows = 200000;
my $sort = 'SELECT count(*) FROM (SELECT x FROM big ORDER BY x OFFSET 0) s';

$node->safe_psql(
	'postgres', qq{
	CREATE ROLE fat LOGIN;
	CREATE ROLE everything LOGIN;
	GRANT SELECT ON ALL TABLES IN SCHEMA public TO fat, everything;
	ALTER ROLE fat SET pg_admission.query_memory = '20MB';
	ALTER ROLE everything SET pg_admission.query_memory = '31MB';
	CREATE TABLE big AS SELECT i, repeat(i::text, 10) AS x FROM generate_series(1, 200000) i;
	CREATE TABLE tiny AS SELECT 1 AS a;
	ANALYZE;
	GRANT SELECT ON big, tiny TO app, fat, everything;
});

sub waits_for_long
{
	my ($client) = @_;

	return ok(
		wait_for($node, "SELECT wait_ms > 1500 FROM pg_admission_queries WHERE pid = $client->{pid}"),
		'a query waits for memory, and for longer than its patience');
}

# A waiter for memory holds back none that takes no memory, and one that takes
# some only as long as it waits.
{
	my ($holder) = occupy($node, 1, user => 'fat');
	my @waiters = map { client($node, user => 'fat') } 1 .. 4;
	my $small = client($node);

	queue_up($node, $_, $count) foreach @waiters;
	waits_for_long($waiters[0]);
	succeeds_ok($small->query($count), 10, 'one that needs none passes');
	my @others = occupy($node, 4);
	queue_up($node, $small, $count);
	is(status($node, 'workers_used'), 5, 'but the worker that the waiter needs is kept');
	release($node, @others);
	succeeds_ok($small->finish, 10, 'and the others are for all');
	release($node, $holder);
	succeeds_ok($_->finish, 10, 'the waiters follow') foreach @waiters;
	$_->quit foreach @waiters, $small;
}

# A big claim is admitted although small ones keep coming, which suspend before
# they end.
{
	my $script = PostgreSQL::Test::Utils::tempdir() . '/small.sql';
	my ($in, $out, $err) = ('', '', '');
	my $big = client($node, user => 'everything');

	append_to_file($script,
		"SELECT DISTINCT x FROM big WHERE i < 5000 ORDER BY x OFFSET 4999;\n");
	my $stream = IPC::Run::start(
		[ 'pgbench', '-n', '-c', '5', '-T', '600', '-f', $script, '-h', $host, '-p', $port,
			'-U', 'app', 'postgres' ],
		'<', \$in, '>', \$out, '2>', \$err);
	ok(wait_for($node, "SELECT memory_used_bytes > 1000000 FROM pg_admission_status"),
		'a stream of small claims');
	succeeds_ok($big->query($count), 10, 'a claim of nearly everything is admitted');
	is(counter($node, 'forced'), 0, 'in its turn');
	ok($stream->pumpable, 'while the stream goes on');
	$stream->signal('KILL');
	$stream->finish;
	wait_for($node, 'SELECT running + queued FROM pg_admission_status', 0);
	$big->quit;
}

# One client with two connections wants an answer on the second before it
# closes its cursor on the first.
{
	my ($first, $second, $third) = map { client($node, user => 'fat') } 1 .. 3;
	my $forced = counter($node, 'forced');

	$first->query("BEGIN; DECLARE c CURSOR FOR $count; FETCH c");
	queue_up($node, $second, $count);
	succeeds_ok($second->finish, 10, 'a query behind an idle cursor of its own client goes ahead');
	is(counter($node, 'forced') - $forced, 1, 'as forced');

	# The later query of a transaction, too
	$third->query('BEGIN; SELECT 1 FROM tiny');
	succeeds_ok($third->query($count), 10, 'and the later query of a transaction');
	$third->query('COMMIT');

	# Each in its turn
	my @more = map { client($node, user => 'fat') } 1 .. 3;
	$_->start($count) foreach @more;
	succeeds_ok($_->finish, 10, 'several go one after the other') foreach @more;
	$first->query('COMMIT');
	$_->quit foreach $first, $second, $third, @more;
}

# A cursor that is charged no memory does not exempt its session from the memory
# budget; nor does a loop over one.
foreach my $case (
	[ 'BEGIN; DECLARE c CURSOR FOR SELECT a FROM tiny; FETCH c', $sort, $rows ],
	[ 'BEGIN', "DO \$\$ DECLARE r record; BEGIN FOR r IN SELECT a FROM tiny LOOP PERFORM 1 FROM ($sort) s; END LOOP; END \$\$", '' ])
{
	my ($begin, $hungry, $result) = @$case;
	my ($holder) = occupy($node, 1, user => 'fat');
	my $client = client($node);

	$client->query("SET work_mem = '20MB'; SET max_parallel_workers_per_gather = 0");
	$client->query($begin);
	queue_up($node, $client, $hungry);
	pass('a sort after it waits for memory');
	release($node, $holder);
	succeeds_ok($client->finish, $result, 'and is admitted in its turn');
	$client->query('COMMIT');
	$client->quit;
}

SKIP:
{
	skip 'dblink or postgres_fdw is not installed', 4
	  if $node->safe_psql('postgres',
		q{SELECT count(*) FROM pg_available_extensions WHERE name IN ('dblink', 'postgres_fdw')}) != 2;

	$node->safe_psql(
		'postgres', qq{
		CREATE EXTENSION postgres_fdw;
		CREATE SERVER self FOREIGN DATA WRAPPER postgres_fdw
			OPTIONS (host '$host', port '$port', dbname 'postgres');
		CREATE USER MAPPING FOR fat SERVER self OPTIONS (user 'fat', password_required 'false');
		CREATE FOREIGN TABLE far_t (i int) SERVER self OPTIONS (table_name 't');
		GRANT SELECT ON far_t TO fat;
	});

	# Both halves of a query claim memory that is there only once, with the
	# sampler and without it.
	my $client = client($node, user => 'fat');
	my $forced = counter($node, 'forced');

	succeeds_ok($client->query('SELECT count(*) FROM far_t'), 10,
		'a server that calls itself, both sides with memory');
	is(counter($node, 'forced') - $forced, 1, 'the inner half was forced');

	my $sampler = status($node, 'sampler_pid');
	kill 'STOP', $sampler;
	succeeds_ok($client->query('SELECT count(*) FROM far_t'), 10, 'also while the sampler is stopped');
	kill 'CONT', $sampler;
	$client->quit;
}

# With nothing running, what was admitted is completed, also fetches that waited
{
	my $client = client($node);

	$client->query("BEGIN; DECLARE c CURSOR FOR SELECT i FROM t; FETCH c");
	my @holders = occupy($node, 6);
	queue_up($node, $client, 'FETCH c');
	release($node, @holders);
	succeeds_ok($client->finish, 2, 'a fetch that waited');
	$client->query('COMMIT');
	$client->quit;
	ok(wait_for($node, 'SELECT running + queued FROM pg_admission_status', 0), 'nothing runs');
	is(counter($node, 'admitted - completed'), 0, 'all that was admitted is completed');
}

server_is_idle($node);

done_testing();
