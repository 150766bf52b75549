# Utility commands: the heavy ones are admitted once, before they take locks,
# and keep that through all of their transactions; a query inside of one is
# admitted when its executor starts; the rest is not subject to admission.

use strict;
use warnings;

use PgAdmission;
use PgAdmissionKinds;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('utilities',
	'pg_admission.queue_capacity' => 0,
	'maintenance_work_mem' => "'7MB'",
	'max_parallel_maintenance_workers' => 1);
admin($node)->query('GRANT pg_read_server_files TO app; CREATE SCHEMA s AUTHORIZATION app; CREATE TABLE s.x (i int PRIMARY KEY); CREATE TABLE s.y (i int PRIMARY KEY)');
admin($node)->query('ALTER ROLE app CREATEDB');
mkdir $node->basedir . '/space';
admin($node)->query("CREATE TABLESPACE space OWNER app LOCATION '" . $node->basedir . "/space'");
my $app = client($node);
my $blocker = client($node, user => undef);
my $memory = 7 * 1024 * 1024;

sub runs
{
	my ($sql, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $result = $app->query($sql);

	return is($result->{state}, '00000', $name || $sql) || diag $result->{err};
}

runs(
	q{CREATE TABLE u (i int CONSTRAINT pk PRIMARY KEY, j int);
	  INSERT INTO u SELECT i, i FROM generate_series(1, 1000) i;
	  CREATE TABLE empty (i int);
	  CREATE MATERIALIZED VIEW m AS SELECT i FROM u;
	  CREATE UNIQUE INDEX ON m (i);
	  CREATE DOMAIN d AS int;
	  CREATE TABLE domains (d d);
	  CREATE TABLE parts (i int) PARTITION BY RANGE (i);
	  CREATE TABLE part (i int)}, 'set up');

# Commands that are admitted themselves: each waits for a lock on the relation
# that is named first, and is then charged so many workers, and memory or not.

my @gated = (
	[ u => 'CREATE INDEX ON u (j)', 1, 'small' ],
	[ u => 'CREATE INDEX CONCURRENTLY ON u (j)', 1, 'small' ],
	[ u => 'CREATE UNIQUE INDEX ON u (j)', 1, 'small' ],
	[ u => 'REINDEX INDEX pk', 1, 'small' ],
	[ u => 'REINDEX TABLE u', 1, 'small' ],
	[ u => 'REINDEX TABLE CONCURRENTLY u', 1, 'small' ],
	[ u => 'CLUSTER u USING pk', 1, 'small' ],
	[ u => 'CLUSTER', 1, 1 ],
	[ u => 'VACUUM u', 1, 'small' ],
	[ u => 'VACUUM (PARALLEL 0) u', 1, 'small' ],
	[ u => 'VACUUM (PARALLEL 8) u', 1, 'small' ],
	[ u => 'VACUUM FULL u', 1, 'small' ],
	[ u => 'VACUUM (ANALYZE) t, u', 1, 'small' ],
	[ u => 'VACUUM', 2, 1 ],
	[ u => 'ANALYZE u', 1, 'small' ],
	[ u => 'ANALYZE', 1, 1 ],
	[ m => 'REFRESH MATERIALIZED VIEW m', 1, 1 ],
	[ m => 'REFRESH MATERIALIZED VIEW CONCURRENTLY m', 1, 1 ],
	[ u => 'COPY u TO STDOUT', 1, 0 ],
	[ empty => "COPY empty FROM '/dev/null'", 1, 0 ],
	[ u => 'ALTER TABLE u ADD COLUMN k int DEFAULT random()', 1, 1 ],
	[ u => 'ALTER TABLE u ALTER COLUMN j TYPE bigint', 1, 1 ],
	[ u => 'ALTER TABLE u ALTER COLUMN j SET NOT NULL', 1, 1 ],
	[ u => 'ALTER TABLE u ADD CHECK (j > 0)', 1, 1 ],
	[ u => 'ALTER TABLE u ADD COLUMN k2 int DEFAULT 1, ADD COLUMN k3 serial', 1, 1 ],
	[ u => 'ALTER TABLE u ADD COLUMN k4 d DEFAULT 1', 1, 1 ],
	[ u => 'ALTER TABLE u ADD COLUMN k5 int UNIQUE', 1, 1 ],
	[ u => 'ALTER TABLE u ADD FOREIGN KEY (i) REFERENCES u', 1, 1 ],
	[ u => 'ALTER TABLE u VALIDATE CONSTRAINT u_i_fkey', 1, 1 ],
	[ u => 'ALTER TABLE u ADD UNIQUE (j)', 1, 1 ],
	[ u => 'ALTER TABLE u SET UNLOGGED', 1, 1 ],
	[ u => 'ALTER TABLE u SET LOGGED', 1, 1 ],
	[ part => 'ALTER TABLE parts ATTACH PARTITION part FOR VALUES FROM (0) TO (10)', 1, 1 ],
	[ domains => 'ALTER DOMAIN d ADD CHECK (VALUE > 0)', 1, 0 ],
	[ domains => 'ALTER DOMAIN d SET NOT NULL', 1, 0 ]);

foreach my $gated (@gated)
{
	my ($relation, $sql, $workers, $uses_memory) = @$gated;

	once_ok(
		$node,
		sub {
			$blocker->query($relation eq 'm' ?
				'BEGIN; SELECT 1 FROM m LIMIT 1; DROP INDEX m_i_idx' : "BEGIN; LOCK TABLE $relation");
			$app->start($sql);
			my ($held_workers, $held_memory) =
			  split /\|/, held_when_waiting($node, $app->{pid});
			is($held_workers, $workers, "$sql: charged before it has its locks");
			if ($uses_memory eq 'small')
			{
				cmp_ok($held_memory, '<', 2 * 1024 * 1024, "$sql: as much as its table needs");
				cmp_ok($held_memory, '>=', 1024 * 1024, "$sql: or a bit more");
			}
			else
			{
				is($held_memory, $uses_memory ? $memory : 0, "$sql: and memory");
			}
			$blocker->query('ROLLBACK');
			my $result = $app->finish;
			is($result->{state}, '00000', "$sql: runs") or diag $result->{err};
			is(held($node, $app->{pid}), '', "$sql: gives all back");
		},
		$sql);
}

# A larger table, or one that is taken for large, gets workers.

sub claims
{
	my ($sql, $workers, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	is($app->query("SELECT workers FROM pg_admission_estimate('$sql')")->{out}, $workers, $name);
}

runs("SET maintenance_work_mem = '64MB'; SET min_parallel_table_scan_size = 0; SET min_parallel_index_scan_size = 0");
claims('CREATE INDEX ON u (j)', 2, 'index build of a large table');
claims('VACUUM u', 2, 'VACUUM of a table with large indexes');
claims('VACUUM t', 1, 'VACUUM of a table without indexes');
claims('CREATE INDEX ON missing (j)', 2, 'a table that is not there');
claims('CREATE INDEX ON parts (i)', 2, 'a partitioned table');
runs('ALTER TABLE u SET (parallel_workers = 0)');
claims('CREATE INDEX ON u (j)', 1, 'a table that may have no workers');
runs('ALTER TABLE u RESET (parallel_workers); SET max_parallel_workers = 0');
claims('VACUUM u', 1, 'a session that may have none');
runs("SET maintenance_work_mem = '7MB'; RESET max_parallel_workers");
claims('CREATE INDEX ON u (j)', 1, 'too little memory for workers');
runs('RESET ALL');

once_ok($node, sub { runs('REINDEX SCHEMA s') }, 'REINDEX SCHEMA');
foreach my $strategy ('file_copy', 'wal_log')
{
	once_ok($node, sub { runs("CREATE DATABASE $strategy STRATEGY $strategy") }, "CREATE DATABASE, $strategy");
}
once_ok($node, sub { runs('ALTER DATABASE wal_log SET TABLESPACE space') }, 'ALTER DATABASE SET TABLESPACE');
exempt_ok($node, sub { runs('ALTER DATABASE wal_log CONNECTION LIMIT 5') }, 'ALTER DATABASE otherwise');
once_ok($node, sub { runs('ALTER TABLE ALL IN TABLESPACE pg_default OWNED BY app SET TABLESPACE pg_default') },
	'ALTER TABLE ALL IN TABLESPACE');

# Their errors

once_ok(
	$node,
	sub {
		is($app->query('ALTER TABLE u ADD CHECK (i > 1)')->{state}, '23514', 'ALTER TABLE fails');
		is(held($node, $app->{pid}), '', 'and holds nothing');
	},
	'ALTER TABLE that fails');
once_ok(
	$node,
	sub {
		is($app->query('CREATE UNIQUE INDEX CONCURRENTLY ON u ((i / 2))')->{state}, '23505', 'CREATE INDEX fails');
		is(held($node, $app->{pid}), '', 'and holds nothing');
	},
	'CREATE INDEX CONCURRENTLY that fails');
once_ok(
	$node,
	sub {
		is($app->query('BEGIN; VACUUM u')->{state}, '25001', 'VACUUM in a transaction block fails');
		is(held($node, $app->{pid}), '', 'and holds nothing');
		$app->query('ROLLBACK');
	},
	'VACUUM that fails');
once_ok(
	$node,
	sub {
		$blocker->query('BEGIN; LOCK TABLE u');
		$app->start('VACUUM FULL u');
		held_when_waiting($node, $app->{pid});
		admin($node)->query("SELECT pg_cancel_backend($app->{pid})");
		cancelled_ok($app->finish, 'canceling statement due to user request', 'VACUUM cancelled');
		is(held($node, $app->{pid}), '', 'and holds nothing');
		$blocker->query('ROLLBACK');
	},
	'VACUUM that is cancelled');
{
	my $victim = client($node);

	once_ok(
		$node,
		sub {
			$blocker->query('BEGIN; LOCK TABLE u');
			$victim->start('CREATE INDEX CONCURRENTLY ON u (j)');
			held_when_waiting($node, $victim->{pid});
			admin($node)->query("SELECT pg_terminate_backend($victim->{pid})");
			wait_for($node, 'SELECT running = 0 FROM pg_admission_status');
			is(held($node, $victim->{pid}), '', 'terminated, it holds nothing');
			$blocker->query('ROLLBACK');
		},
		'CREATE INDEX CONCURRENTLY that is terminated');
}

# In a queue

reload_with($node, { 'pg_admission.queue_capacity' => 4 }, 'queue_capacity', 4);
{
	my @holders = occupy($node, 2);

	counts_ok(
		$node,
		sub {
			queue_up($node, $app, 'CREATE INDEX CONCURRENTLY ON u (j)');
			is( admin($node)->query("SELECT count(*) FROM pg_locks WHERE pid = $app->{pid} AND relation >= 16384")->{out},
				'0', 'a queued command holds no lock on a relation');
			admin($node)->query("SELECT pg_cancel_backend($app->{pid})");
			cancelled_ok($app->finish, 'canceling statement due to user request', 'cancelled in the queue');
		},
		'command cancelled in the queue',
		cancelled_while_queued => 1);
	queue_up($node, $app, 'VACUUM u');
	release($node, @holders);
	succeeds_ok($app->finish, '', 'a queued command runs in its turn');
}
reload_with($node, { 'pg_admission.queue_capacity' => 0 }, 'queue_capacity', 0);
{
	my @holders = occupy($node, 1);

	overloaded_ok($app->query('VACUUM'), 'queue_full',
		'system overloaded: admission queue is full', 'refused when its workers are not free');
	succeeds_ok($app->query('ANALYZE u'), '', 'while a smaller one runs');
	release($node, @holders);
}

# Inside of other statements

counts_ok($node, sub { runs(q{DO $$ BEGIN EXECUTE 'CREATE INDEX ON u (j)'; ANALYZE u; END $$}) },
	'commands in a DO block are admitted each', admitted => 2);
once_ok(
	$node,
	sub {
		runs(q{CREATE FUNCTION makes_index() RETURNS int LANGUAGE plpgsql AS
				'BEGIN CREATE INDEX ON empty (i); ANALYZE empty; RETURN 1; END';
			   SELECT makes_index() FROM t LIMIT 1});
	},
	'commands inside an admitted query');
once_ok($node, sub { runs('CREATE INDEX ON u (j)') }, 'CREATE INDEX');

# Queries inside of utility commands

runs('PREPARE p AS SELECT count(*) FROM u; PREPARE q(int) AS SELECT 1 / (i - $1) FROM u');
foreach my $sql (
	'CREATE TABLE made AS SELECT i FROM u',
	'CREATE TABLE made2 AS EXECUTE p',
	'SELECT i INTO made3 FROM u',
	'CREATE MATERIALIZED VIEW made4 AS SELECT i FROM u',
	'CREATE TABLE IF NOT EXISTS made5 AS SELECT i FROM u',
	'EXECUTE p',
	'EXPLAIN ANALYZE SELECT count(*) FROM u',
	'EXPLAIN ANALYZE EXECUTE p',
	'EXPLAIN ANALYZE CREATE TABLE made6 AS SELECT i FROM u',
	'EXPLAIN ANALYZE INSERT INTO empty SELECT i FROM u',
	'COPY (SELECT i FROM u) TO STDOUT',
	'COPY (UPDATE u SET j = j RETURNING i) TO STDOUT')
{
	once_ok($node, sub { runs($sql); is(held($node, $app->{pid}), '', "$sql: gives all back") }, $sql);
}
foreach my $failing (
	[ 'EXPLAIN ANALYZE SELECT 1 / (i - 1) FROM u' => '22012' ],
	[ 'EXECUTE q(5)' => '22012' ],
	[ 'CREATE TABLE broken AS SELECT 1 / (i - 1) FROM u' => '22012' ],
	[ 'COPY (SELECT 1 / (i - 1) FROM u) TO STDOUT' => '22012' ])
{
	my ($sql, $state) = @$failing;

	once_ok(
		$node,
		sub {
			is($app->query($sql)->{state}, $state, "$sql: fails");
			is(held($node, $app->{pid}), '', "$sql: gives all back");
		},
		$sql);
}
counts_ok(
	$node,
	sub {
		is($app->query('BEGIN; SAVEPOINT s; EXPLAIN ANALYZE SELECT 1 / (i - 1) FROM u')->{state}, '22012', 'EXPLAIN fails');
		$app->query('ROLLBACK TO s');
		is(held($node, $app->{pid}), '', 'it holds nothing after the savepoint');
		runs('EXPLAIN ANALYZE SELECT i FROM u; COMMIT', 'EXPLAIN goes on');
	},
	'EXPLAIN ANALYZE that fails in a subtransaction',
	admitted => 2);
once_ok($node, sub { runs('EXECUTE p') }, 'EXECUTE') for 1 .. 8;

# Not subject to admission

foreach my $sql (
	'EXPLAIN SELECT count(*) FROM u',
	'EXPLAIN EXECUTE p',
	'EXPLAIN CREATE TABLE nothing AS SELECT i FROM u',
	'PREPARE r AS SELECT count(*) FROM u',
	'DEALLOCATE r',
	'CREATE TABLE n (i int PRIMARY KEY, j int UNIQUE REFERENCES n)',
	'CREATE TABLE n2 (LIKE n INCLUDING ALL)',
	'CREATE TABLE n3 (i int PRIMARY KEY) PARTITION BY RANGE (i)',
	'CREATE TABLE n4 PARTITION OF n3 FOR VALUES FROM (0) TO (10)',
	'CREATE TABLE nothing AS SELECT i FROM u WITH NO DATA',
	'CREATE MATERIALIZED VIEW no_data AS SELECT i FROM u WITH NO DATA',
	'CREATE VIEW v AS SELECT i FROM u',
	'ALTER TABLE n ADD COLUMN a int, ADD COLUMN b text NULL COLLATE "C"',
	'ALTER TABLE n ADD COLUMN c int DEFAULT -1, ADD COLUMN d timestamptz DEFAULT CURRENT_TIMESTAMP',
	"ALTER TABLE n ADD COLUMN e varchar(5) NOT NULL DEFAULT 'x'::varchar(5)",
	'ALTER TABLE n ADD CHECK (i > 1) NOT VALID, ADD FOREIGN KEY (a) REFERENCES n NOT VALID',
	'ALTER TABLE n ALTER COLUMN a SET STATISTICS 10, ALTER COLUMN a SET DEFAULT random()',
	'ALTER TABLE n DISABLE TRIGGER USER, ALTER COLUMN e DROP NOT NULL',
	'ALTER TABLE n OWNER TO app',
	'CREATE TYPE pair AS (a int); ALTER TYPE pair ADD ATTRIBUTE b int',
	'ALTER TABLE n RENAME COLUMN j TO k',
	'ALTER TABLE n SET (fillfactor = 50)',
	'ALTER TABLE n DROP COLUMN k',
	'ALTER TABLE n ENABLE ROW LEVEL SECURITY',
	'BEGIN; LOCK TABLE n; COMMIT',
	'TRUNCATE n CASCADE',
	'COMMENT ON TABLE n IS $$x$$',
	'GRANT SELECT ON n TO PUBLIC',
	'DROP TABLE n CASCADE',
	'CREATE FUNCTION f() RETURNS bigint LANGUAGE sql AS $$SELECT count(*) FROM u$$',
	'SET work_mem = DEFAULT',
	'SHOW work_mem',
	'LISTEN l',
	'NOTIFY l',
	'UNLISTEN *',
	'DISCARD PLANS')
{
	exempt_ok($node, sub { runs($sql) }, $sql);
}

server_is_idle($node);
done_testing();
