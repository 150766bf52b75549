# Every way in which a client can send a statement: it is admitted once, is
# charged while it runs, and gives back what it holds.

use strict;
use warnings;

use PgAdmission;
use PgAdmissionKinds;
use PgAdmissionWire;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('protocol', 'pg_admission.queue_capacity' => 0);
my $count = 'SELECT count(*) FROM t';
my $sort = 'SELECT i FROM t ORDER BY i DESC';

admin($node)->query(
	q{CREATE TABLE c (i int);
	  GRANT ALL ON c TO app;
	  CREATE FUNCTION fast(n int) RETURNS bigint LANGUAGE plpgsql AS
		'BEGIN INSERT INTO c VALUES (n); RETURN (SELECT count(*) FROM t); END'});
my $wire = PgAdmissionWire->new($node);

sub is_result
{
	my ($result, $expected, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	return is(
		join(' ', @{ $result->{rows} }, @{ $result->{tags} }, @{ $result->{errors} }),
		$expected, $name);
}

# Simple query

once_ok($node, sub { is_result($wire->query($count), '10 SELECT 1', 'simple query') },
	'simple query');
counts_ok($node, sub { $wire->query('SELECT 1') },
	'one without a relation is exempt', bypassed_no_relation => 1);
counts_ok(
	$node,
	sub {
		is_result(
			$wire->query("$count; INSERT INTO c VALUES (1); UPDATE c SET i = 2; $count; DELETE FROM c"),
			'10 10 SELECT 1 INSERT 0 1 UPDATE 1 SELECT 1 DELETE 1',
			'several statements in one message');
	},
	'several statements in one message are admitted each',
	admitted => 5);
counts_ok(
	$node,
	sub {
		is_result($wire->query("$count; SELECT 1 / (i - i) FROM t; $count"),
			'10 SELECT 1 22012', 'error in one of several statements');
	},
	'those after an error are not',
	admitted => 2);
exempt_ok($node,
	sub { $wire->query("SET work_mem = '1MB'; SHOW work_mem; RESET work_mem; BEGIN; SAVEPOINT s; ROLLBACK TO s; COMMIT; LISTEN x; UNLISTEN x") },
	'SET, SHOW, transaction control');
exempt_ok($node, sub { is_result($wire->query(''), '', 'empty query') }, 'empty query');
exempt_ok($node, sub { is_result($wire->query('SELECT FROM nothing'), '42P01', 'error in analysis') },
	'error in analysis');

# Extended query

once_ok(
	$node,
	sub {
		$wire->parse('', $count)->bind('', '')->describe_portal('')->execute('')->sync;
		is_result($wire->until_ready, '10 SELECT 1', 'unnamed statement');
	},
	'unnamed statement');
once_ok(
	$node,
	sub {
		$wire->parse('', 'INSERT INTO c SELECT i FROM t WHERE i < $1')->bind('', '', 4)->execute('')->sync;
		is_result($wire->until_ready, 'INSERT 0 3', 'INSERT with a parameter');
	},
	'INSERT with a parameter');
once_ok(
	$node,
	sub {
		$wire->parse('', 'INSERT INTO c VALUES (8), (9) RETURNING i')->bind('', '')->execute('')->sync;
		is_result($wire->until_ready, '8 9 INSERT 0 2', 'RETURNING');
	},
	'RETURNING');
once_ok(
	$node,
	sub {
		$wire->parse('', 'INSERT INTO c VALUES (8), (9) RETURNING i')->bind('p', '')->execute('p', 1)
		  ->execute('p', 1)->execute('p', 1)->sync;
		is_result($wire->until_ready, '8 9 suspended suspended INSERT 0 0', 'RETURNING in parts');
	},
	'RETURNING in parts');
once_ok(
	$node,
	sub {
		$wire->parse('', 'WITH d AS (DELETE FROM c RETURNING i) SELECT count(*) FROM d')
		  ->bind('', '')->execute('')->sync;
		is_result($wire->until_ready, '7 SELECT 1', 'modifying CTE');
	},
	'modifying CTE');

exempt_ok(
	$node,
	sub {
		$wire->parse('named', 'SELECT count(*) FROM t WHERE i <= $1')->describe_statement('named')->sync;
		is_result($wire->until_ready, '', 'Parse and Describe');
	},
	'Parse and Describe');
counts_ok(
	$node,
	sub {
		# The sixth has a generic plan, for which the planner is not called.
		$wire->bind('', 'named', $_)->execute('')->sync for 1 .. 8;
		is_result($wire->until_ready, "$_ SELECT 1", "named statement, execution $_") for 1 .. 8;
	},
	'named statement: once for each execution, with a generic plan too',
	admitted => 8);

# The portal is not executed

once_ok(
	$node,
	sub {
		$wire->parse('', $sort)->bind('', '')->sync;
		is_result($wire->until_ready, '', 'Bind without Execute');
	},
	'Bind without Execute');
$wire->query('BEGIN');
counts_ok(
	$node,
	sub {
		$wire->parse('', $sort)->bind('p', '')->sync;
		is_result($wire->until_ready, '', 'Bind without Execute in a transaction');
		like(held($node, $wire->{pid}), qr/^(?:running|lent)\|1\|[1-9]\d+$/, 'keeps its charge');
		$wire->close_portal('p')->sync;
		is_result($wire->until_ready, '', 'Close');
		is(held($node, $wire->{pid}), '', 'Close gives it back');
	},
	'Bind without Execute in a transaction: admitted once',
	admitted => 1);
$wire->query('COMMIT');

# The portal is executed in parts

$wire->query('BEGIN');
counts_ok(
	$node,
	sub {
		$wire->parse('', $sort)->bind('p', '')->execute('p', 3)->sync;
		is_result($wire->until_ready, '10 9 8 suspended', 'Execute with a row limit');
		like(held($node, $wire->{pid}), qr/^suspended\|0\|[1-9]\d+$/, 'keeps its memory only');
		$wire->execute('p', 3)->sync;
		is_result($wire->until_ready, '7 6 5 suspended', 'once more');
		like(held($node, $wire->{pid}), qr/^suspended\|0\|[1-9]\d+$/, 'gives the worker back again');
		$wire->execute('p')->sync;
		is_result($wire->until_ready, '4 3 2 1 SELECT 4', 'to the end');
		like(held($node, $wire->{pid}), qr/^suspended\|0\|[1-9]\d+$/, 'keeps its memory until it is closed');
		is_result($wire->query('COMMIT'), 'COMMIT', 'COMMIT');
		is(held($node, $wire->{pid}), '', 'which the end of the transaction does');
	},
	'Execute with a row limit: admitted once',
	admitted => 1);

$wire->query('BEGIN');
counts_ok(
	$node,
	sub {
		$wire->parse('', $sort)->bind('p', '')->bind('q', '')->bind('r', '');
		$wire->execute($_, 1) for qw(p q r q p p);
		$wire->sync;
		is_result($wire->until_ready, '10 10 10 9 9 8' . ' suspended' x 6, 'portals executed alternately');
		is(admin($node)->query("SELECT count(*), sum(workers) FROM pg_admission_queries WHERE pid = $wire->{pid}")->{out},
			'3|0', 'each has its charge');
		$wire->close_portal('q')->sync;
		$wire->until_ready;
		is(admin($node)->query("SELECT count(*) FROM pg_admission_queries WHERE pid = $wire->{pid}")->{out},
			'2', 'which goes with it');
		$wire->query('ROLLBACK');
		is(held($node, $wire->{pid}), '', 'or with the transaction');
	},
	'portals executed alternately: admitted each',
	admitted => 3,
	forced => 1);    # all three are bound before the first is executed

# More portals than are kept apart
$wire->query('BEGIN');
counts_ok(
	$node,
	sub {
		$wire->parse('', $sort);
		$wire->bind("p$_", '')->execute("p$_", 1) for 1 .. 12;
		$wire->sync;
		$wire->until_ready;
		is(admin($node)->query("SELECT sum(queries), sum(workers) FROM pg_admission_queries WHERE pid = $wire->{pid}")->{out},
			'12|0', 'many portals');
		$wire->close_portal("p$_") for reverse 1 .. 12;
		$wire->sync;
		$wire->until_ready;
		is(held($node, $wire->{pid}), '', 'and they are gone');
	},
	'many portals: admitted each',
	admitted => 12);
$wire->query('COMMIT');

# Errors

counts_ok(
	$node,
	sub {
		$wire->parse('', 'SELECT 1 / (i - $1) FROM t')->bind('', '', 3)->execute('')->sync;
		is_result($wire->until_ready, '0 -1 22012', 'error in Execute');
		is(held($node, $wire->{pid}), '', 'gives all back');
	},
	'error in Execute: admitted once',
	admitted => 1);
exempt_ok(
	$node,
	sub {
		$wire->parse('', 'SELECT i FROM t WHERE i = $1')->bind('', '', 'x')->execute('')->sync;
		is_result($wire->until_ready, '22P02', 'error in Bind');
	},
	'error in Bind');

# Pipelines

counts_ok(
	$node,
	sub {
		for my $n (1 .. 5)
		{
			$wire->parse('', $count)->bind('', '')->execute('');
			$wire->parse('', 'INSERT INTO c VALUES ($1)')->bind('', '', $n)->execute('');
		}
		$wire->sync;
		is_result($wire->until_ready, join(' ', (10) x 5, ('SELECT 1', 'INSERT 0 1') x 5), 'pipeline');
		is(held($node, $wire->{pid}), '', 'holds nothing afterwards');
	},
	'pipeline: each is admitted',
	admitted => 10);
counts_ok(
	$node,
	sub {
		$wire->parse('', $count)->bind('', '')->execute('');
		$wire->parse('', 'SELECT 1 / (i - i) FROM t')->bind('', '')->execute('');
		$wire->parse('', $count)->bind('', '')->execute('')->sync;
		$wire->parse('', $count)->bind('', '')->execute('')->sync;
		is_result($wire->until_ready, '10 SELECT 1 22012', 'error in a pipeline');
		is_result($wire->until_ready, '10 SELECT 1', 'after it');
	},
	'error in a pipeline: what is skipped is not admitted',
	admitted => 3);

# libpq's pipeline mode, by way of pgbench
my $script = $node->basedir . '/pipeline.sql';
append_to_file($script, "\\startpipeline\n" . "SELECT i FROM t WHERE i = :client_id + 1;\n" x 4 . "\\endpipeline\n");
counts_ok(
	$node,
	sub {
		foreach my $mode (qw(extended prepared))
		{
			command_ok(
				[
					'pgbench', '-n', '-M', $mode, '-c', 2, '-t', 10, '-f', $script,
					'-U', 'app', '-h', $node->host, '-p', $node->port, 'postgres'
				],
				"pgbench with a pipeline, $mode");
		}
	},
	'pgbench with a pipeline',
	admitted => 2 * 2 * 10 * 4);

# COPY

once_ok(
	$node,
	sub {
		$wire->send_query('COPY c FROM STDIN');
		$wire->until_message('G');
		like(held($node, $wire->{pid}), qr/^(?:running|lent)\|1\|0$/, 'COPY FROM holds a worker');
		$wire->copy_data("1\n2\n")->copy_done;
		is_result($wire->until_ready, 'COPY 2', 'COPY FROM STDIN');
	},
	'COPY FROM STDIN');
once_ok($node, sub { is($wire->query('COPY t TO STDOUT')->{copied}, join("\n", 1 .. 10, ''), 'COPY TO STDOUT') },
	'COPY TO STDOUT');
once_ok($node, sub { is($wire->query("COPY ($count) TO STDOUT")->{copied}, "10\n", 'COPY of a query') },
	'COPY of a query');
once_ok(
	$node,
	sub {
		is($wire->query('COPY (DELETE FROM c RETURNING 1) TO STDOUT')->{copied}, "1\n" x 7, 'COPY of a DELETE');
	},
	'COPY of a DELETE');
once_ok(
	$node,
	sub {
		$wire->parse('', 'COPY t TO STDOUT')->bind('', '')->execute('')->sync;
		is($wire->until_ready->{copied}, join("\n", 1 .. 10, ''), 'COPY in the extended protocol');
	},
	'COPY in the extended protocol');
once_ok(
	$node,
	sub {
		$wire->send_query('COPY c FROM STDIN');
		$wire->until_message('G');
		$wire->copy_data("x\n")->copy_done;
		is_result($wire->until_ready, '22P02', 'error in COPY FROM');
		is(held($node, $wire->{pid}), '', 'gives all back');
	},
	'error in COPY FROM');
counts_ok($node, sub { $wire->query('COPY (SELECT 1) TO STDOUT') },
	'COPY of a query without a relation is exempt', bypassed_no_relation => 1);

# Function call

my $oid = admin($node)->query("SELECT 'fast'::regproc::oid")->{out};
counts_ok(
	$node,
	sub {
		is_result($wire->function_call($oid, 7)->until_ready, '10', 'function call');
		is(held($node, $wire->{pid}), '', 'holds nothing afterwards');
	},
	'function call: its statements are admitted each',
	admitted => 2);
$wire->query('BEGIN');
counts_ok(
	$node,
	sub { is_result($wire->function_call($oid, 7)->until_ready, '10', 'function call in a transaction') },
	'function call in a transaction',
	admitted => 2);
$wire->query('COMMIT');

admin($node)->query(q{
	CREATE FUNCTION later() RETURNS trigger LANGUAGE plpgsql AS
		'BEGIN PERFORM count(*) FROM t; RETURN NULL; END';
	CREATE TABLE deferred (i int);
	GRANT ALL ON deferred TO app;
	CREATE CONSTRAINT TRIGGER later AFTER INSERT ON deferred DEFERRABLE INITIALLY DEFERRED
		FOR EACH ROW EXECUTE FUNCTION later();
	CREATE FUNCTION fill(n int) RETURNS int LANGUAGE plpgsql AS
		'BEGIN INSERT INTO deferred VALUES (n); RETURN n; END'});
$oid = admin($node)->query("SELECT 'fill'::regproc::oid")->{out};
counts_ok(
	$node,
	sub { is_result($wire->function_call($oid, 7)->until_ready, '7', 'function call with a deferred trigger') },
	'function call: its commit is not subject to admission',
	admitted => 1);

admin($node)->query('ALTER ROLE app SET track_activities = off');
my $unseen = PgAdmissionWire->new($node);
admin($node)->query('ALTER ROLE app RESET track_activities');
counts_ok(
	$node,
	sub { is_result($unseen->function_call($oid, 7)->until_ready, '7', 'function call that is not shown') },
	'function call that is not shown',
	admitted => 1);
$unseen->quit;

# Clients that go away

foreach my $sql ('BEGIN', "BEGIN; DECLARE x CURSOR FOR $sort; FETCH x")
{
	my $gone = PgAdmissionWire->new($node);

	$gone->query($sql);
	$gone->parse('', $sort)->bind('p', '')->execute('p', 1)->flush;
	$gone->until_message('s');
	$gone->{socket}->close;
	wait_for($node, "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $gone->{pid})");
	is(held($node, $gone->{pid}), '', "client gone with an open portal after $sql");
}

$wire->quit;
server_is_idle($node);
done_testing();
