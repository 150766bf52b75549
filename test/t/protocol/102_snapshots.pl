# A query that waits holds back nothing it need not, and its result is as of
# when it runs; where a snapshot has to be kept, it is.

use strict;
use warnings;

use PgAdmission;
use PgAdmissionKinds;
use PgAdmissionWire;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('snapshots', 'pg_admission.queue_capacity' => 20);
my $writer = client($node, user => undef);

admin($node)->query(
	q{CREATE TABLE s (i int); GRANT ALL ON s TO app;
	  CREATE TABLE target (i int); GRANT ALL ON target TO app; ALTER TABLE target OWNER TO app;
	  CREATE FUNCTION count_s() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN (SELECT count(*) FROM s); END';
	  CREATE FUNCTION count_sql() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM s'});

# Queue a statement, commit a row meanwhile, and see what the waiter holds
# while it is queued and what it returns: the number of rows that it saw.
sub try_kind
{
	my ($kind, %params) = @_;
	my $client = PgAdmissionWire->new($node);
	my @holders = occupy($node, 2);
	my $seen = admin($node)->query('SELECT count(*) FROM s')->{out};

	$client->query($params{before}) if defined $params{before};
	if ($params{extended})
	{
		$client->parse('', $params{sql})->bind('', '', @{ $params{values} || [] })->execute('')->sync;
	}
	else
	{
		$client->send_query($params{sql});
	}
	wait_for($node, "SELECT state = 'queued' FROM pg_admission_queries WHERE pid = $client->{pid}");
	my $xmin = admin($node)->query(
		"SELECT backend_xmin IS NOT NULL FROM pg_stat_activity WHERE pid = $client->{pid}")->{out};
	$writer->query('INSERT INTO s VALUES (1)');
	release($node, @holders);

	my $result = $client->until_ready;
	my $tag = @{ $result->{tags} } ? $result->{tags}[-1] : '';
	my $rows =
	    $params{counts_tag} && $tag =~ /(\d+)$/ ? $1
	  : length $result->{copied} ? $result->{copied} + 0
	  : @{ $result->{rows} } && $result->{rows}[0] =~ /^\d+$/ ? $result->{rows}[0]
	  : $tag =~ /(\d+)$/ ? $1
	  : '';
	$result = $client->query($params{after}) if defined $params{after};
	$rows = $result->{rows}[0] if defined $params{after};
	my $state = @{ $result->{errors} } ? "failed with @{ $result->{errors} }" : 'ran';

	$client->quit;
	$writer->query('DELETE FROM target');
	return ($xmin eq 't' ? 'kept' : 'given up', $rows - $seen, $state);
}

sub gives_up
{
	my ($kind, %params) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	return is_deeply([ try_kind($kind, %params) ], [ 'given up', 1, 'ran' ],
		"$kind: gives its snapshot up and sees what was committed meanwhile");
}

sub keeps
{
	my ($kind, %params) = @_;
	my $sees = delete $params{sees};
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	return is_deeply([ try_kind($kind, %params) ], [ 'kept', $sees || 0, 'ran' ],
		"$kind: keeps its snapshot");
}

my $count = 'SELECT count(*) FROM s';

gives_up('SELECT', sql => $count);
gives_up('SELECT, extended', sql => $count, extended => 1);
gives_up('SELECT with a parameter', sql => 'SELECT count(*) FROM s WHERE i = $1', values => [1], extended => 1);
gives_up('SELECT in a transaction', sql => $count, before => 'BEGIN');
gives_up('later SELECT of a transaction', sql => $count, before => 'BEGIN; SELECT relname FROM pg_class LIMIT 1; SAVEPOINT s');
gives_up('SELECT FOR UPDATE', sql => 'SELECT i FROM s FOR UPDATE', counts_tag => 1);
gives_up('INSERT', sql => 'INSERT INTO target SELECT i FROM s', after => 'SELECT count(*) FROM target');
gives_up('INSERT, extended', sql => 'INSERT INTO target SELECT i FROM s', extended => 1,
	after => 'SELECT count(*) FROM target');
gives_up('UPDATE', sql => 'UPDATE s SET i = i');
gives_up('MERGE',
	sql => 'MERGE INTO s USING (SELECT 1 AS one) x ON true WHEN MATCHED THEN UPDATE SET i = i');
gives_up('one of several statements', sql => "SET work_mem = '1MB'; $count");
gives_up('COPY TO', sql => 'COPY s TO STDOUT', counts_tag => 1);

# Utility commands see what is there when they run, so only what they hold
# back matters.
admin($node)->query('CREATE TABLE u (i int PRIMARY KEY); CREATE MATERIALIZED VIEW m AS SELECT count(*) FROM s; ALTER TABLE u OWNER TO app; ALTER MATERIALIZED VIEW m OWNER TO app');
foreach my $utility ('VACUUM u', 'ANALYZE u', 'CREATE INDEX ON u (i)', 'CREATE INDEX CONCURRENTLY ON u (i)',
	'REINDEX TABLE u', 'CLUSTER u USING u_pkey', 'ALTER TABLE u ADD CHECK (i > 0)')
{
	my $client = PgAdmissionWire->new($node);
	my @holders = occupy($node, 2);

	$client->send_query($utility);
	wait_for($node, "SELECT state = 'queued' FROM pg_admission_queries WHERE pid = $client->{pid}");
	is(admin($node)->query("SELECT backend_xmin IS NULL FROM pg_stat_activity WHERE pid = $client->{pid}")->{out},
		't', "$utility: holds no snapshot while queued");
	release($node, @holders);
	is_deeply($client->until_ready->{errors}, [], "$utility: runs");
	$client->quit;
}
gives_up('REFRESH', sql => 'REFRESH MATERIALIZED VIEW m', after => 'SELECT count FROM m');

# Where it is kept, see src/README

keeps('RETURNING', sql => 'INSERT INTO target SELECT i FROM s RETURNING i', counts_tag => 1);
keeps('EXPLAIN ANALYZE', sql => 'EXPLAIN ANALYZE INSERT INTO target SELECT i FROM s',
	after => 'SELECT count(*) FROM target');
keeps('RETURNING in WITH', sql => 'WITH x AS (UPDATE s SET i = i RETURNING i) SELECT count(*) FROM x');
keeps('EXECUTE', sql => 'EXECUTE e', before => "PREPARE e AS $count");
keeps('DECLARE', sql => "DECLARE c CURSOR FOR $count", before => 'BEGIN', after => 'FETCH c');
keeps('COPY of a query', sql => "COPY ($count) TO STDOUT");
keeps('CREATE TABLE AS', sql => "CREATE TABLE made1 AS $count", after => 'SELECT count FROM made1');
keeps('SELECT INTO', sql => 'SELECT count(*) INTO made2 FROM s', after => 'SELECT count FROM made2');
keeps('SQL function', sql => 'SELECT count_sql()');
keeps('PL/pgSQL function', sql => 'SELECT count_s()');
keeps('statement of a DO block',
	sql => q{DO $$ BEGIN INSERT INTO target SELECT i FROM s; END $$}, after => 'SELECT count(*) FROM target');

# A snapshot that holds for a whole transaction stays as it is.
foreach my $begin (
	'BEGIN ISOLATION LEVEL REPEATABLE READ',
	'BEGIN ISOLATION LEVEL SERIALIZABLE',
	'BEGIN ISOLATION LEVEL SERIALIZABLE, READ ONLY, DEFERRABLE')
{
	keeps($begin, sql => $count, before => $begin);
	keeps("$begin, later query", sql => $count, before => "$begin; SELECT relname FROM pg_class LIMIT 1");
}

# An open cursor's snapshot is its own.
keeps('SELECT while a cursor is open', sql => $count, sees => 1,
	before => 'BEGIN; DECLARE c CURSOR FOR SELECT relname FROM pg_class; FETCH c');

# Errors while the snapshot is given up

{
	my @holders = occupy($node, 2);
	my $client = client($node);

	foreach my $sql ($count, 'INSERT INTO target SELECT i FROM s')
	{
		queue_up($node, $client, $sql);
		admin($node)->query("SELECT pg_cancel_backend($client->{pid})");
		cancelled_ok($client->finish, 'canceling statement due to user request', "cancelled: $sql");
		queue_up($node, $client, "BEGIN; SAVEPOINT a; $sql");
		admin($node)->query("SELECT pg_cancel_backend($client->{pid})");
		cancelled_ok($client->finish, 'canceling statement due to user request', "cancelled in a subtransaction: $sql");
		$client->query('ROLLBACK TO a');
		$client->query("SET LOCAL statement_timeout = '50ms'");
		cancelled_ok($client->query($sql), 'canceling statement due to statement timeout', "timed out: $sql");
		$client->query('ROLLBACK');
	}
	release($node, @holders);
	succeeds_ok($client->query('SELECT count(*) FROM t'), '10', 'the session goes on');
}

server_is_idle($node);
done_testing();
