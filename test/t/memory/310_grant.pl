# A query whose claim is lowered really gets less, and only that query.

use strict;
use warnings;

use PgAdmission;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('grant', 'work_mem' => "'64MB'",
	'min_parallel_table_scan_size' => 0, 'jit' => 'off');
$node->safe_psql(
	'postgres', q{
	SET ROLE app;
	CREATE TABLE big (i int, filler text);
	INSERT INTO big
		SELECT i * 7919 % 100003, md5(i::text)
		FROM generate_series(0, 49999) i;
	CREATE TABLE big2 AS SELECT i, filler AS other FROM big;
	ANALYZE big, big2;

	CREATE FUNCTION row_fingerprint(query text) RETURNS text LANGUAGE plpgsql AS $$
	DECLARE
		r text;
		hash text := '';
		n int := 0;
	BEGIN
		FOR r IN EXECUTE query LOOP
			hash := md5(hash || r);
			n := n + 1;
		END LOOP;
		RETURN n || ' ' || hash;
	END $$;

	-- What the operators get in the process that computes the row
	CREATE FUNCTION given() RETURNS text LANGUAGE plpgsql PARALLEL SAFE AS
		$$ BEGIN RETURN current_setting('work_mem'); END $$;
	CREATE FUNCTION give(value text, is_local boolean) RETURNS text LANGUAGE plpgsql AS
		$$ BEGIN RETURN set_config('work_mem', value, is_local); END $$;
	CREATE FUNCTION give_inside() RETURNS text LANGUAGE plpgsql
		SET work_mem = '5MB' AS $$ BEGIN RETURN given(); END $$;
	CREATE FUNCTION fails() RETURNS int LANGUAGE plpgsql AS
		$$ BEGIN RETURN 1 / 0; END $$;
});

my $app = client($node);
my $sort = 'SELECT i, filler FROM big ORDER BY filler, i';

sub set_limit
{
	my ($value) = @_;

	$app->query("SET pg_admission.query_memory_limit = '$value'");
	return;
}

# The EXPLAIN ANALYZE of a query, and a fingerprint of its rows in order.
sub analyzed
{
	my ($sql) = @_;
	my $result =
	  $app->query("EXPLAIN (ANALYZE, COSTS off, TIMING off, SUMMARY off) $sql");

	diag $result->{err} if $result->{state} ne '00000';
	return $result->{out};
}

sub fingerprint
{
	my ($sql) = @_;
	my $result = $app->query("COPY ($sql) TO STDOUT");

	diag $result->{err} if $result->{state} ne '00000';
	return $result->{out};
}

sub untouched
{
	my ($name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is($app->query('SHOW work_mem')->{out}, '64MB', "work_mem after $name");
	return;
}

# Each operator spills, and gives the same rows

sub shrinks
{
	my ($name, $settings, $query, $unlimited, $limited) = @_;
	my @settings = split /;\s*/, $settings;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$app->query("SET $_") for @settings;
	subtest $name => sub {
		set_limit(0);
		like(analyzed($query), $unlimited, 'without a limit');
		my $expected = fingerprint("$query ORDER BY 1, 2");
		set_limit('1MB');
		like(analyzed($query), $limited, 'limited');
		is(fingerprint("$query ORDER BY 1, 2") eq $expected, 1, 'same rows');
		untouched($name);
	};
	set_limit(0);
	$app->query('RESET ' . (split / /, $_)[0]) for @settings;
	return;
}

shrinks('sort', 'enable_indexscan = on',
	'SELECT i, filler FROM (SELECT i, filler FROM big ORDER BY filler, i) s',
	qr/Sort Method: quicksort/, qr/Sort Method: external merge/);
shrinks('hash join', 'enable_mergejoin = off',
	'SELECT filler, other FROM big JOIN big2 USING (i)',
	qr/Batches: 1 /, qr/Batches: \d{2,} \(originally|Batches: (?!1 )\d+/);
shrinks('hash aggregate', 'enable_sort = off',
	'SELECT filler, count(*) FROM big GROUP BY filler',
	qr/HashAggregate.*Batches: 1 /s, qr/HashAggregate.*Batches: (?!1 )\d+/s);
shrinks(
	'parallel hash join',
	'max_parallel_workers_per_gather = 2; parallel_setup_cost = 0; parallel_tuple_cost = 0; enable_mergejoin = off',
	'SELECT filler, other FROM big JOIN big2 USING (i)',
	qr/Workers Launched: [12].*Parallel Hash .*Batches: 1 /s,
	qr/Workers Launched: [12].*Parallel Hash .*Batches: (?!1 )\d+/s);
shrinks(
	'parallel sort',
	'max_parallel_workers_per_gather = 2; parallel_setup_cost = 0; parallel_tuple_cost = 0',
	'SELECT i, filler FROM (SELECT i, filler FROM big ORDER BY filler, i) s',
	qr/Workers Launched: [12].*Sort Method: quicksort/s,
	qr/Workers Launched: [12].*Sort Method: external merge/s);

# What is charged is what it gets, in the workers of a parallel query, too

sub charged
{
	my ($limit) = @_;

	set_limit($limit);
	$app->start('SELECT i, filler, pg_sleep(3600) FROM big ORDER BY filler, i');
	wait_for($node, "SELECT count(*) FROM pg_admission_queries WHERE pid = $app->{pid}", 1);
	my $charged = admin($node)->query(
		"SELECT memory_bytes FROM pg_admission_queries WHERE pid = $app->{pid}")->{out};
	admin($node)->query("SELECT pg_cancel_backend($app->{pid})");
	is($app->finish->{state}, '57014', "query with limit $limit was running");
	return $charged;
}

my $full = charged(0);
cmp_ok($full, '>', 4 << 20, 'without a limit it is charged what it needs');
my $limited = charged('2MB');
cmp_ok($limited, '<=', 2 << 20, 'it is charged no more than the limit');
cmp_ok($limited, '>', 1 << 20, 'but nearly that');
is(charged('1GB'), $full, 'a limit raises no claim');
my $least = charged('64kB');
cmp_ok($least, '>', 64 << 10, 'what needs more than the limit is charged that');
cmp_ok($least, '<', 1 << 20, 'with as little as can be');
untouched('cancelled queries');

set_limit('2MB');
my $given = $app->query('SELECT DISTINCT given() FROM (SELECT * FROM big ORDER BY filler) s')->{out};
like($given, qr/^\d+kB$/, 'a query sees what it was given');
is( $app->query(
		q{SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET max_parallel_workers_per_gather = 2;
		  SELECT count(DISTINCT g), min(g) ~ '^\d+kB$' FROM (SELECT given() AS g FROM big GROUP BY filler, given() ORDER BY filler) s})->{out},
	'1|t', 'so do the workers of a parallel query');
$app->query('RESET parallel_setup_cost; RESET parallel_tuple_cost; RESET max_parallel_workers_per_gather');
untouched('these');

# The operator's word is lowered as well

$node->safe_psql('postgres', "ALTER ROLE app SET pg_admission.query_memory = '500MB'");
my $other = client($node);
$other->query("SET pg_admission.query_memory_limit = '2MB'");
is($other->query('SELECT DISTINCT given() FROM (SELECT * FROM big ORDER BY filler) s')->{out},
	$given, 'the operators get the same whatever the operator claims');
$other->start('SELECT *, pg_sleep(3600) FROM big ORDER BY filler');
wait_for($node, "SELECT memory_bytes FROM pg_admission_queries WHERE pid = $other->{pid}", 2 << 20);
release($node, $other);
$node->safe_psql('postgres', 'ALTER ROLE app RESET pg_admission.query_memory');

# A SET inside of the query wins, and lasts as long as it would have

my $set = 'FROM (SELECT count(*) FROM (SELECT DISTINCT filler FROM big) s) t';
$app->query("SELECT give('7MB', false) $set");
is($app->query('SHOW work_mem')->{out}, '7MB', 'SET inside of a query lasts');
$app->query("SET work_mem = '64MB'; BEGIN; SELECT give('7MB', false) $set");
is($app->query('SHOW work_mem')->{out}, '7MB', 'also in a transaction');
$app->query('ROLLBACK');
untouched('rollback');
$app->query("BEGIN; SELECT give('7MB', true) $set");
is($app->query('SHOW work_mem')->{out}, '7MB', 'SET LOCAL lasts to the end of the transaction');
$app->query('COMMIT');
untouched('commit');
$app->query("BEGIN; SET LOCAL work_mem = '63MB'; SELECT give('7MB', true) $set");
is($app->query('SHOW work_mem')->{out}, '7MB', 'SET LOCAL after another one');
$app->query('COMMIT');
untouched('commit');
set_limit('2MB');
like($app->query("SELECT given(), give_inside(), given() $set")->{out},
	qr/^(\d+kB)\|5MB\|\1$/, 'a function with a setting of its own');
like( $app->query("SELECT given(), give('7MB', true), given() $set")->{out},
	qr/^\d+kB\|7MB\|7MB$/, 'SET inside wins for the rest of the query');
untouched('these');

# Cursors interleave

sub given_rows
{
	my ($cursor) = @_;

	return $app->query("FETCH 1 FROM $cursor")->{out};
}

set_limit('2MB');
my $cursor = 'CURSOR FOR SELECT given() FROM (SELECT * FROM big ORDER BY filler) s';
$app->query('BEGIN');
$app->query("DECLARE a $cursor");
set_limit(0);
$app->query("DECLARE b $cursor");
set_limit('1MB');
$app->query("DECLARE c $cursor");
my $given_a = given_rows('a');
like($given_a, qr/^\d+kB$/, 'first cursor is limited');
is(given_rows('b'), '64MB', 'second is not');
my $given_c = given_rows('c');
isnt($given_c, $given_a, 'third is limited to something else');
is(given_rows('a'), $given_a, 'first cursor once more');
untouched('interleaved cursors');
$app->query("SET work_mem = '32MB'");
is(given_rows('b'), '32MB', 'SET between fetches: for a cursor without a limit');
is(given_rows('a'), $given_a, 'not for a limited one');
is(given_rows('c'), $given_c, 'nor the other');
$app->query("SET work_mem = '64kB'");
is(given_rows('a'), '64kB', 'never more than the session has');
$app->query('CLOSE a');
$app->query('COMMIT');
is($app->query('SHOW work_mem')->{out}, '64kB', 'SET between fetches lasts');
$app->query("SET work_mem = '64MB'");

$app->query("DO \$\$ DECLARE a refcursor; b text; BEGIN
	OPEN a FOR SELECT given() FROM (SELECT * FROM big ORDER BY filler) s;
	FETCH a INTO b;
	PERFORM set_config('app.seen', b, false);
END \$\$");
is($app->query("SHOW app.seen")->{out}, $given_c, 'a cursor of a DO block');
untouched('DO');

$app->query("BEGIN; DECLARE held CURSOR WITH HOLD FOR SELECT given() FROM (SELECT * FROM big ORDER BY filler) s; COMMIT");
is(given_rows('held'), $given_c, 'a held cursor is limited when it is persisted');
$app->query('CLOSE held');
untouched('a held cursor');

# Errors

my $fail = 'SELECT fails() FROM (SELECT * FROM big ORDER BY filler) s';
is($app->query($fail)->{state}, '22012', 'query fails');
untouched('an error');
$app->query("BEGIN; SET LOCAL work_mem = '33MB'; SAVEPOINT s");
is($app->query($fail)->{state}, '22012', 'query fails in a subtransaction');
$app->query('ROLLBACK TO s');
is($app->query('SHOW work_mem')->{out}, '33MB', 'work_mem after an error in a subtransaction');
$app->query("DECLARE d CURSOR FOR $fail; SAVEPOINT t");
is($app->query('FETCH d')->{state}, '22012', 'fetch fails');
$app->query('ROLLBACK TO t');
is($app->query('SHOW work_mem')->{out}, '33MB', 'work_mem after a fetch has failed');
$app->query("DECLARE e $cursor");
is(given_rows('e'), $given_c, 'a cursor after that');
$app->query('COMMIT');
untouched('commit');
$app->query(
	"DO \$\$ BEGIN
		BEGIN PERFORM fails() FROM (SELECT * FROM big ORDER BY filler) s;
		EXCEPTION WHEN division_by_zero THEN NULL; END;
		PERFORM set_config('app.seen', current_setting('work_mem'), false);
	END \$\$");
is($app->query('SHOW app.seen')->{out}, '64MB', 'work_mem after an error that is caught');
untouched('that');

# Utility commands

set_limit('4MB');
$app->query("SET maintenance_work_mem = '64MB'; SET max_parallel_maintenance_workers = 0");
$app->query(q{
	CREATE FUNCTION reveals(text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS
	$$ BEGIN RAISE 'it gets %', current_setting('maintenance_work_mem'); END $$});
like($app->query('CREATE INDEX ON big (reveals(filler))')->{err}, qr/it gets 4MB$/m,
	'CREATE INDEX gets less');
is($app->query('CREATE INDEX ON big2 (other)')->{state}, '00000', 'also one that succeeds');
is($app->query('SHOW maintenance_work_mem')->{out}, '64MB', 'maintenance_work_mem after it');
is($app->query('VACUUM big')->{state}, '00000', 'VACUUM commits inside');
is($app->query('REINDEX TABLE CONCURRENTLY big')->{state}, '00000', 'REINDEX CONCURRENTLY as well');
is($app->query('SHOW maintenance_work_mem')->{out}, '64MB', 'maintenance_work_mem after them');
$app->query('SET max_parallel_maintenance_workers = 2');
is( $app->query(
		"SELECT memory_bytes >> 20, lowered_to_kb >> 10 FROM pg_admission_estimate('CREATE INDEX ON big (filler)')")->{out},
	'4|4', 'parallel workers share it');
set_limit(0);

# A budget that is too small for the plan: shrink or be alone

$node->safe_psql('postgres', "ALTER ROLE app SET pg_admission.oversize = 'shrink'");
reload_with($node, { 'pg_admission.total_memory' => "'4MB'" }, 'memory_total_bytes', 2 << 20);
my $refused = $app->query($sort);
exceeds_ok($refused, 'memory', 'query exceeds the memory budget', 'refused with oversize = reject');
like($refused->{err}, qr/HINT: .*"pg_admission\.query_memory_limit"/, 'the error tells what helps');
my $shrunk = client($node);
like($shrunk->query('SELECT DISTINCT given() FROM (SELECT * FROM big ORDER BY filler) s')->{out},
	qr/^\d+kB$/, 'runs within the budget with oversize = shrink');
like($shrunk->query("EXPLAIN (ANALYZE, COSTS off, TIMING off, SUMMARY off) $sort")->{out},
	qr/Sort Method: external merge/, 'its sort spills');
is($shrunk->query('SHOW work_mem')->{out}, '64MB', 'work_mem after it');
is( $shrunk->query("SET work_mem = '2GB'; SELECT count(DISTINCT given()) FROM (SELECT * FROM big ORDER BY filler) s; RESET work_mem")->{out},
	1, 'however large work_mem is');
reload_with($node, { 'pg_admission.total_memory' => "'64kB'" }, 'memory_total_bytes', 32 << 10);
$refused = $shrunk->query($sort);
exceeds_ok($refused, 'memory', 'query exceeds the memory budget',
	'what cannot be shrunk that far is refused');
unlike($refused->{err}, qr/query_memory_limit/, 'and the error names no setting that would not help');

# A queued query shrinks with the budget

reload_with($node, { 'pg_admission.total_memory' => "'8MB'" }, 'memory_total_bytes', 4 << 20);
my @holders = occupy($node, 2);
my $queued = queue_up($node, $shrunk,
	'SELECT DISTINCT given() FROM (SELECT * FROM big ORDER BY filler) s');
my $claimed = admin($node)->query(
	"SELECT memory_bytes FROM pg_admission_queries WHERE pid = $queued->{pid}")->{out};
cmp_ok($claimed, '>', 2 << 20, 'queued query claims most of the budget');
reload_with($node, { 'pg_admission.total_memory' => "'4MB'" }, 'memory_total_bytes', 2 << 20);
is( admin($node)->query(
		"SELECT memory_bytes FROM pg_admission_queries WHERE pid = $queued->{pid}")->{out},
	2 << 20, 'its claim shrinks with the budget');
release($node, @holders);
my $got = $queued->finish;
like($got->{out}, qr/^\d+kB$/, 'it is given what it is charged');
cmp_ok(substr($got->{out}, 0, -2), '<=', 2 << 10, 'which is less');

# Alone: it is charged the whole budget, and runs when nothing else holds memory

$node->safe_psql('postgres', "ALTER ROLE app SET pg_admission.oversize = 'alone'");
my ($small, $alone, $after) = map { client($node) } 1 .. 3;
$small->query("SET work_mem = '256kB'");
$small->start('SELECT *, pg_sleep(3600) FROM big ORDER BY filler');
wait_for($node, "SELECT memory_used_bytes > 0 FROM pg_admission_status");
queue_up($node, $alone, 'SELECT given(), pg_sleep(3600) FROM (SELECT * FROM big ORDER BY filler) s');
is( admin($node)->query(
		"SELECT memory_bytes FROM pg_admission_queries WHERE pid = $alone->{pid}")->{out},
	2 << 20, 'oversize = alone: it claims the whole budget, and waits');
succeeds_ok(client($node)->query('SELECT count(*) FROM t'), 10,
	'who needs no memory passes');
release($node, $small);
wait_for($node, "SELECT state FROM pg_admission_queries WHERE pid = $alone->{pid}", 'running');
is(status($node, 'memory_used_bytes'), 2 << 20, 'it runs alone');
$after->query("SET work_mem = '256kB'");
queue_up($node, $after, 'SELECT count(*) FROM (SELECT DISTINCT filler FROM big) s');
release($node, $alone);
succeeds_ok($after->finish, 50000, 'then the next runs');

# Observe mode leaves the operators alone

$node->safe_psql('postgres', "ALTER ROLE app SET pg_admission.mode = 'observe'");
my $observed = client($node);
$observed->query("SET pg_admission.query_memory_limit = '1MB'");
is($observed->query('SELECT DISTINCT given() FROM (SELECT * FROM big ORDER BY filler) s')->{out},
	'64MB', 'mode "observe" takes nothing away');

server_is_idle($node);
done_testing();
