# A server that calls itself: every worker is held by a caller that waits for a
# query in the queue.  The callers lend their workers, whether PostgreSQL knows
# what they wait for (postgres_fdw, newer versions of dblink) or not (older ones,
# and any other program).

use strict;
use warnings;

use PgAdmission;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('loopback', 'pg_admission.queue_timeout' => 0);
my ($host, $port) = ($node->host, $node->port);

if ($node->safe_psql('postgres',
		q{SELECT count(*) FROM pg_available_extensions WHERE name IN ('dblink', 'postgres_fdw')}) != 2)
{
	$node->stop;
	plan skip_all => 'dblink or postgres_fdw is not installed';
}

$node->safe_psql(
	'postgres', qq{
	CREATE EXTENSION dblink;
	CREATE EXTENSION postgres_fdw;
	CREATE FUNCTION call(query text) RETURNS bigint LANGUAGE sql SECURITY DEFINER AS
	\$\$ SELECT n FROM dblink('host=$host port=$port dbname=postgres user=app', query) AS d (n bigint) \$\$;
	CREATE SERVER self FOREIGN DATA WRAPPER postgres_fdw
		OPTIONS (host '$host', port '$port', dbname 'postgres');
	CREATE USER MAPPING FOR app SERVER self OPTIONS (user 'app', password_required 'false');
	CREATE FOREIGN TABLE far_t (i int) SERVER self OPTIONS (table_name 't');
	CREATE FOREIGN TABLE far_far_t (i int) SERVER self OPTIONS (table_name 'far_t');
	CREATE SERVER async FOREIGN DATA WRAPPER postgres_fdw
		OPTIONS (host '$host', port '$port', dbname 'postgres', async_capable 'true', fetch_size '1');
	CREATE USER MAPPING FOR app SERVER async OPTIONS (user 'app', password_required 'false');
	CREATE TABLE far_parts (i int) PARTITION BY LIST (i);
	CREATE FOREIGN TABLE far_1 PARTITION OF far_parts FOR VALUES IN (1) SERVER async OPTIONS (table_name 't');
	CREATE FOREIGN TABLE far_2 PARTITION OF far_parts FOR VALUES IN (2) SERVER async OPTIONS (table_name 't');
	GRANT SELECT ON far_t, far_far_t, far_parts, far_1, far_2 TO app;
	GRANT pg_execute_server_program TO app;
});

# Three callers at a time, for a budget of two
foreach my $case (
	[ 'dblink', q{SELECT call('SELECT count(*) FROM t') FROM t WHERE i = 1} ],
	[ 'dblink in dblink',
		q{SELECT call('SELECT call(''SELECT count(*) FROM t'') FROM t WHERE i = 1') FROM t WHERE i = 1} ],
	[ 'another program', "COPY t TO PROGRAM 'cat >/dev/null; "
		  . $node->config_data('--bindir') . "/psql -Xq -h $host -p $port -U app "
		  . "-c \"SELECT count(*) FROM t\" postgres >/dev/null'" ],
	[ 'postgres_fdw', 'SELECT count(*) FROM far_t' ],
	[ 'postgres_fdw in postgres_fdw', 'SELECT count(*) FROM far_far_t' ],
	[ 'asynchronous scans', 'SELECT count(i) / 2 FROM far_parts' ])
{
	my ($name, $sql) = @$case;
	my @callers = map { client($node) } 1 .. 3;
	my $lent = counter($node, 'lent');

	# All of them arrive while two run, so that they start together.
	my @holders = occupy($node, 2);
	queue_up($node, $_, $sql) foreach @callers;
	release($node, @holders);
	succeeds_ok($_->finish, $sql =~ /^COPY/ ? '' : 10, $name) foreach @callers;
	cmp_ok(counter($node, 'lent'), '>', $lent, "$name: workers were lent");
	is(counter($node, 'rescued'), 0, "$name: nobody was rescued");
	$_->quit foreach @callers;
}

# Who works is not taken for one that waits, and who has a wait event of its own
# that is of no such class neither.
{
	my $worker = client($node);
	my $sleeper = client($node);
	my $queued = client($node);
	my $lent = counter($node, 'lent');

	$worker->start('SELECT count(*) FROM t a, t b, t c, t d, t e, t f, t g, t h, t i, generate_series(1, 100) j');
	$sleeper->start('SELECT pg_sleep(3600) FROM t LIMIT 1');
	wait_for($node, 'SELECT running FROM pg_admission_status', 2);
	queue_up($node, $queued, 'SELECT count(*) FROM t');
	wait_for($node, "SELECT wait_ms > 1000 FROM pg_admission_queries WHERE pid = $queued->{pid}");
	is(counter($node, 'lent'), $lent, 'neither work nor sleep lends');
	release($node, $worker, $sleeper);
	succeeds_ok($queued->finish, 10, 'and the next goes on');
}

server_is_idle($node);

done_testing();
