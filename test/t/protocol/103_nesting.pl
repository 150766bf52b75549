# Statements inside statements: those in an admitted one pass, those in one
# that was bypassed, or in DO or CALL, are admitted each for itself.

use strict;
use warnings;

use PgAdmission;
use PgAdmissionKinds;
use PgAdmissionWire;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('nesting', 'pg_admission.queue_capacity' => 0,
	'max_prepared_transactions' => 2);
my $app = client($node);

sub runs
{
	my ($sql, $out, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	return succeeds_ok($app->query($sql), $out, $name);
}

runs(
	q{CREATE TABLE parent (id int PRIMARY KEY);
	  CREATE TABLE child (id int, parent int REFERENCES parent ON DELETE CASCADE DEFERRABLE);
	  CREATE TABLE log (i int);
	  INSERT INTO parent SELECT i FROM t;
	  CREATE FUNCTION count_sql() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM t';
	  CREATE FUNCTION rows_sql() RETURNS SETOF int LANGUAGE sql VOLATILE AS 'SELECT i FROM t ORDER BY i';
	  CREATE FUNCTION count_plpgsql() RETURNS bigint LANGUAGE plpgsql AS
		'BEGIN RETURN (SELECT count(*) FROM t); END';
	  CREATE FUNCTION folded() RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS
		'BEGIN RETURN (SELECT count(*) FROM t); END';
	  CREATE FUNCTION recursive(n int) RETURNS bigint LANGUAGE plpgsql AS
		'BEGIN
			IF n = 0 THEN RETURN (SELECT count(*) FROM t); END IF;
			RETURN (SELECT recursive(n - 1) FROM t LIMIT 1);
		 END';
	  CREATE FUNCTION row_trigger() RETURNS trigger LANGUAGE plpgsql AS
		'BEGIN PERFORM count_plpgsql() FROM t; INSERT INTO log VALUES (1); RETURN NULL; END';
	  CREATE TABLE triggered (i int);
	  CREATE TRIGGER after_row AFTER INSERT ON triggered FOR EACH ROW EXECUTE FUNCTION row_trigger();
	  CREATE TABLE deferred (i int);
	  CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON deferred DEFERRABLE INITIALLY DEFERRED
		FOR EACH ROW EXECUTE FUNCTION row_trigger();
	  CREATE FUNCTION ddl_trigger() RETURNS trigger LANGUAGE plpgsql AS
		'BEGIN
			CREATE TEMP TABLE made ON COMMIT DROP AS SELECT i FROM t;
			CREATE INDEX ON made (i);
			RETURN NULL;
		 END';
	  CREATE TABLE ddl (i int);
	  CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON ddl DEFERRABLE INITIALLY DEFERRED
		FOR EACH ROW EXECUTE FUNCTION ddl_trigger()},
	'', 'set up');

# Covered by the outer statement

once_ok($node, sub { runs('SELECT count_sql(), count_plpgsql() FROM t LIMIT 1', '10|10', 'functions') },
	'functions in a query');
once_ok($node, sub { runs('SELECT sum(r) FROM t, rows_sql() r', '550', 'set-returning function') },
	'set-returning SQL function in a query');
once_ok($node, sub { runs('SELECT recursive(20) FROM t LIMIT 1', '10', 'recursion') }, 'recursion');
once_ok($node, sub { runs('INSERT INTO triggered SELECT i FROM t', '', 'AFTER trigger') }, 'AFTER trigger');
once_ok($node, sub { runs('INSERT INTO child SELECT i, i FROM t', '', 'foreign key') }, 'foreign key');
once_ok($node, sub { runs('DELETE FROM parent WHERE id = 1', '', 'cascade') }, 'ON DELETE CASCADE');
once_ok($node,
	sub { is($app->query('INSERT INTO child VALUES (0, 0)')->{state}, '23503', 'foreign key violated') },
	'violated foreign key');
once_ok(
	$node,
	sub {
		runs("WITH x AS (INSERT INTO triggered VALUES (1) RETURNING i) SELECT i, count_plpgsql() FROM x",
			'1|10', 'modifying CTE with a trigger');
	},
	'modifying CTE with a trigger');

# Bypassed outside, admitted inside

counts_ok($node, sub { runs('SELECT count_sql()', '10', 'SQL function') },
	'SQL function in a bypassed query', admitted => 1, bypassed_no_relation => 1);
counts_ok($node, sub { runs('SELECT count_plpgsql(), count_plpgsql()', '10|10', 'PL/pgSQL function') },
	'PL/pgSQL function in a bypassed query', admitted => 2, bypassed_no_relation => 1);
counts_ok($node, sub { runs('SELECT sum(r) FROM (SELECT rows_sql() r) s', '55', 'lazily evaluated function') },
	'lazily evaluated SQL function in a bypassed query',
	admitted => 1, bypassed_no_relation => 1);
counts_ok($node, sub { runs('SELECT rows_sql() LIMIT 2', "1\n2", 'function that is not run to its end') },
	'function that is not run to its end', admitted => 1, bypassed_no_relation => 1);
counts_ok($node, sub { runs('SELECT recursive(20)', '10', 'recursion') },
	'recursion in a bypassed query: the first with a relation covers the rest',
	admitted => 1, bypassed_no_relation => 1);
counts_ok(
	$node,
	sub { is($app->query("SELECT 1 / (count_sql() - 10)")->{state}, '22012', 'error in a bypassed query') },
	'error in a bypassed query',
	admitted => 1, bypassed_no_relation => 1);

# Folded while planning: not admitted, whatever the query around it

counts_ok($node, sub { runs('SELECT folded()', '10', 'folded function') },
	'function folded while planning', bypassed_no_relation => 1);
once_ok($node, sub { runs('SELECT folded() + i FROM t LIMIT 1', '11', 'folded function in a query') },
	'function folded while planning a query');
exempt_ok($node, sub { like($app->query('EXPLAIN SELECT folded()')->{out}, qr/Result/, 'EXPLAIN folds') },
	'function folded in EXPLAIN');

# DO and CALL

runs(
	q{CREATE PROCEDURE commits(n int) LANGUAGE plpgsql AS
		'BEGIN
			FOR j IN 1 .. n LOOP
				INSERT INTO log VALUES (j);
				IF j % 2 = 0 THEN COMMIT; ELSE ROLLBACK; END IF;
			END LOOP;
		 END';
	  CREATE PROCEDURE loops(n int) LANGUAGE plpgsql AS
		'DECLARE r int;
		 BEGIN
			FOR r IN SELECT i FROM t ORDER BY i DESC LOOP
				INSERT INTO log VALUES (r);
				IF r > n THEN COMMIT; END IF;
			END LOOP;
		 END'},
	'', 'procedures');
counts_ok($node, sub { runs('DO $$ BEGIN PERFORM count(*) FROM t; PERFORM i FROM t; END $$', '', 'DO') },
	'DO: its statements are admitted each', admitted => 2);
counts_ok($node, sub { runs('CALL commits(6)', '', 'CALL with COMMIT and ROLLBACK') },
	'CALL with COMMIT and ROLLBACK: its statements are admitted each', admitted => 6);
counts_ok($node, sub { runs('CALL loops(5)', '', 'loop with COMMIT') },
	'loop over a query with COMMIT', admitted => 11);
counts_ok(
	$node,
	sub {
		is($app->query('CALL loops(0); SELECT i / 0 FROM t')->{state}, '22012', 'loop with COMMIT, then an error');
	},
	'loop over a query with COMMIT, then an error',
	admitted => 12);
counts_ok(
	$node,
	sub {
		is($app->query('DO $$ DECLARE r int; BEGIN FOR r IN SELECT i FROM t LOOP COMMIT; PERFORM 1 / (r - 3 + 0 * i) FROM t; END LOOP; END $$')->{state},
			'22012', 'error in a loop with COMMIT');
	},
	'error in a loop with COMMIT',
	admitted => 4);

# At commit nothing is admitted

counts_ok($node, sub { runs('BEGIN; INSERT INTO deferred SELECT i FROM t; COMMIT', '', 'deferred trigger') },
	'deferred trigger at commit, and what its function calls', admitted => 1);
counts_ok($node, sub { runs('INSERT INTO deferred SELECT i FROM t', '', 'deferred trigger, without BEGIN') },
	'deferred trigger at the end of a statement', admitted => 1);
counts_ok($node, sub { runs('DO $$ BEGIN INSERT INTO deferred VALUES (1); COMMIT; PERFORM count(*) FROM t; END $$', '', 'COMMIT in DO') },
	'deferred trigger at a commit inside of DO', admitted => 2);
counts_ok($node, sub { runs('BEGIN; INSERT INTO deferred VALUES (1); SET CONSTRAINTS ALL IMMEDIATE; ROLLBACK', '', 'SET CONSTRAINTS') },
	'deferred trigger that is not at commit', admitted => 3);
counts_ok($node, sub { runs('INSERT INTO ddl VALUES (1)', '', 'deferred trigger with a utility command') },
	'deferred trigger with a utility command', admitted => 1);
counts_ok(
	$node,
	sub {
		runs("BEGIN; INSERT INTO deferred VALUES (1); PREPARE TRANSACTION 'two'; COMMIT PREPARED 'two'",
			'', 'deferred trigger in PREPARE TRANSACTION');
	},
	'deferred trigger at PREPARE TRANSACTION',
	admitted => 1);
counts_ok(
	$node,
	sub { runs('BEGIN; SET CONSTRAINTS ALL DEFERRED; INSERT INTO child VALUES (0, 2); COMMIT', '', 'deferred foreign key') },
	'deferred foreign key',
	admitted => 1);
counts_ok(
	$node,
	sub {
		is($app->query('BEGIN; SET CONSTRAINTS ALL DEFERRED; INSERT INTO child VALUES (0, 0); COMMIT')->{state},
			'23503', 'violated at commit');
	},
	'deferred foreign key violated at commit',
	admitted => 1);
counts_ok(
	$node,
	sub {
		runs('BEGIN; DECLARE h CURSOR WITH HOLD FOR SELECT count_plpgsql(); COMMIT; FETCH h; CLOSE h',
			'10', 'cursor persisted at commit');
	},
	'functions of a bypassed cursor that is persisted at commit',
	bypassed_no_relation => 1);

# The same with a queue that is full: nothing waits or is refused at commit

my @holders = occupy($node, 2);
my $commit = client($node);
counts_ok(
	$node,
	sub {
		succeeds_ok(
			$commit->query('BEGIN; DECLARE h CURSOR WITH HOLD FOR SELECT count_plpgsql(); COMMIT; FETCH h; CLOSE h'),
			'10', 'cursor persisted while no worker is free');
	},
	'cursor persisted while no worker is free',
	bypassed_no_relation => 1);

# EXCEPTION blocks

my $insist = q{DO $$
	DECLARE refused int := 0;
	BEGIN
		FOR j IN 1 .. 3 LOOP
			BEGIN
				BEGIN
					PERFORM count(*) FROM t;
				EXCEPTION WHEN division_by_zero THEN
					RAISE 'wrong handler';
				END;
			EXCEPTION WHEN insufficient_resources THEN
				refused := refused + 1;
			END;
		END LOOP;
		RAISE NOTICE 'refused=%', refused;
	END $$};
counts_ok(
	$node,
	sub { like($app->query($insist)->{err}, qr/refused=3/, 'overload is caught') },
	'overload caught, at two levels and three times',
	submitted => 3, rejected => 3);
counts_ok(
	$node,
	sub {
		is($app->query('SELECT count_plpgsql()')->{state}, '53A01', 'overload in a function');
	},
	'overload in a function of a bypassed query',
	submitted => 1, rejected => 1, bypassed_no_relation => 1);
release($node, @holders);

counts_ok(
	$node,
	sub {
		runs(
			q{DO $$
				BEGIN
					PERFORM count(*) FROM t;
					BEGIN
						PERFORM count(*) FROM t;
						BEGIN
							PERFORM 1 / (i - 3) FROM t;
						EXCEPTION WHEN division_by_zero THEN
							PERFORM count(*) FROM t;
							RAISE unique_violation;
						END;
					EXCEPTION WHEN unique_violation THEN
						PERFORM count(*) FROM t;
					END;
				END $$}, '', 'errors caught at several levels');
	},
	'errors caught at several levels',
	admitted => 5);
once_ok(
	$node,
	sub {
		runs(
			q{CREATE OR REPLACE FUNCTION catches() RETURNS int LANGUAGE plpgsql AS
				'DECLARE r int;
				 BEGIN
					FOR r IN SELECT i FROM t LOOP
						BEGIN
							PERFORM 1 / (i - 3) FROM t;
						EXCEPTION WHEN division_by_zero THEN NULL;
						END;
					END LOOP;
					RETURN (SELECT count(*) FROM t);
				 END';
			  SELECT catches() FROM t LIMIT 1}, '10', 'errors caught inside an admitted query');
	},
	'errors caught inside an admitted query');

# 54A01 is of another class
reload_with($node, { 'pg_admission.total_memory' => "'1MB'" }, 'memory_total_bytes', 512 * 1024);
counts_ok(
	$node,
	sub {
		like(
			$app->query(
				q{DO $$ BEGIN PERFORM i FROM generate_series(1, 100000) s, t ORDER BY s;
					EXCEPTION WHEN program_limit_exceeded THEN RAISE NOTICE 'too large'; END $$})->{err},
			qr/too large/, 'query exceeding the budget is caught');
	},
	'query exceeding the budget, caught',
	submitted => 1, rejected => 1);
reload_with($node, { 'pg_admission.total_memory' => "'2GB'" }, 'memory_total_bytes', 1 << 30);

# A cancel that is caught: while running, and while queued
foreach my $queued (0, 1)
{
	my $victim = client($node);
	my @busy = $queued ? occupy($node, 2) : ();

	reload_with($node, { 'pg_admission.queue_capacity' => 10 }, 'queue_capacity', 10);
	counts_ok(
		$node,
		sub {
			$victim->start(
				q{DO $$ BEGIN
					BEGIN
						PERFORM pg_sleep(3600) FROM t LIMIT 1;
					EXCEPTION WHEN query_canceled THEN NULL;
					END;
					RAISE NOTICE 'caught';
				  END $$});
			wait_for($node, "SELECT state FROM pg_admission_queries WHERE pid = $victim->{pid}",
				$queued ? 'queued' : 'running');
			admin($node)->query("SELECT pg_cancel_backend($victim->{pid})");
			my $result = $victim->finish;
			is($result->{state}, '00000', 'cancel is caught');
			like($result->{err}, qr/caught/, 'and it goes on');
			is(held($node, $victim->{pid}), '', 'it holds nothing');
		},
		'cancel caught while ' . ($queued ? 'queued' : 'running'),
		submitted => 1,
		admitted => 1 - $queued,
		cancelled_while_queued => $queued);
	release($node, @busy);
}

# Snapshots of callers survive a cancel that is caught in a function
{
	my @busy = occupy($node, 2);

	succeeds_ok(
		$app->query(
			q{CREATE OR REPLACE FUNCTION patient() RETURNS text LANGUAGE plpgsql AS
				$$ BEGIN
					SET LOCAL statement_timeout = 0;
					PERFORM count(*) FROM t;
					RETURN 'ran';
				   EXCEPTION WHEN query_canceled THEN
					RETURN 'cancelled ' || (SELECT count(*) FROM pg_class WHERE relname = 't');
				   END $$}),
		'', 'function that catches a cancel');
	my $victim = client($node);
	queue_up($node, $victim, 'SELECT patient(), (SELECT count(*) FROM pg_namespace) > 1');
	admin($node)->query("SELECT pg_cancel_backend($victim->{pid})");
	succeeds_ok($victim->finish, 'cancelled 1|t', "a caller's snapshot survives");
	release($node, @busy);
}

server_is_idle($node);
done_testing();
