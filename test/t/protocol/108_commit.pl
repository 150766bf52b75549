# What runs because a transaction commits is neither refused nor does it wait,
# cursors included.  What runs before a client's statement begins, while its
# constants are analyzed or its parameters are read, is not at commit.

use strict;
use warnings;

use PgAdmission;
use PgAdmissionKinds;
use PgAdmissionWire;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('commit',
	'pg_admission.queue_capacity' => 0,
	'max_prepared_transactions' => 2);
my $app = client($node);

# Each deferred trigger uses cursors in another way.
my %bodies = (
	loop => 'FOR r IN SELECT i FROM t ORDER BY i LOOP n := n + r; END LOOP;',
	opened => 'OPEN c FOR SELECT i FROM t ORDER BY i; FETCH c INTO n; MOVE c; CLOSE c;',
	left_open => 'OPEN c FOR SELECT i FROM t ORDER BY i; FETCH c INTO n;',
	nested => 'FOR r IN SELECT i FROM t LOOP
				FOR n IN SELECT i FROM t LOOP PERFORM count(*) FROM t; END LOOP;
			   END LOOP;',
	by_function => q{SELECT opens('inside') INTO c FROM t LIMIT 1; FETCH c INTO n;},
	dynamic => q{FOR r IN EXECUTE 'SELECT i FROM t' LOOP n := n + r; END LOOP;},
	caught => 'BEGIN FOR r IN SELECT i FROM t LOOP PERFORM 1 / (r - 3); END LOOP;
			   EXCEPTION WHEN division_by_zero THEN
				FOR r IN SELECT i FROM t LOOP n := n + r; END LOOP; END;');

$app->query(
	q{CREATE FUNCTION opens(name refcursor) RETURNS refcursor LANGUAGE plpgsql AS
		'BEGIN OPEN name FOR SELECT i FROM t ORDER BY i; RETURN name; END';
	  CREATE TABLE tiny AS SELECT 1 AS a});
foreach my $name (sort keys %bodies)
{
	succeeds_ok(
		$app->query(
			"CREATE FUNCTION f_$name() RETURNS trigger LANGUAGE plpgsql AS
			 \$\$ DECLARE r int; n int := 0; c refcursor; BEGIN $bodies{$name} RETURN NULL; END \$\$;
			 CREATE TABLE d_$name (i int);
			 CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON d_$name
				DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION f_$name()"),
		'', "trigger $name");
}

# Every way to commit, while the workers are free and while none is.  The INSERT
# itself is admitted before.
my %commits = (
	'COMMIT' => [ 'BEGIN; INSERT INTO %s VALUES (1)', 'COMMIT' ],
	'END AND CHAIN' => [ 'BEGIN; INSERT INTO %s VALUES (1)', 'COMMIT AND CHAIN' ],
	'PREPARE TRANSACTION' =>
	  [ 'BEGIN; INSERT INTO %s VALUES (1)', "PREPARE TRANSACTION 'p'; COMMIT PREPARED 'p'" ]);

{
	my @cases = map { my $trigger = $_; map { [ $trigger, $_, client($node) ] } sort keys %commits }
	  sort keys %bodies;

	foreach (@cases)
	{
		my ($trigger, $way, $client) = @$_;

		$client->query(sprintf $commits{$way}[0], "d_$trigger");
	}
	my @holders = occupy($node, 2);
	my $charged = counter($node, 'admitted, forced');
	foreach (@cases)
	{
		my ($trigger, $way, $client) = @$_;

		next if $trigger eq 'left_open' && $way =~ /PREPARE/;
		succeeds_ok($client->query($commits{$way}[1]), '', "$way, trigger $trigger, no free worker");
		is(counter($node, 'admitted, forced'), $charged, 'nothing is charged');
	}
	release($node, @holders);
	$_->[2]->quit foreach @cases;
}

# The end of a single statement, and a commit inside of a procedure
foreach my $trigger (sort keys %bodies)
{
	counts_ok($node, sub { succeeds_ok($app->query("INSERT INTO d_$trigger VALUES (1)"), '', $trigger) },
		"trigger $trigger, at the end of a statement", admitted => 1);
	next if $trigger eq 'left_open';
	counts_ok(
		$node,
		sub { succeeds_ok($app->query("DO \$\$ BEGIN INSERT INTO d_$trigger VALUES (1); COMMIT; END \$\$"), '', $trigger) },
		"trigger $trigger, at COMMIT in DO",
		admitted => 1);
	$app->query(
		"CREATE PROCEDURE p_$trigger() LANGUAGE plpgsql AS
		 \$\$ BEGIN INSERT INTO d_$trigger VALUES (1); COMMIT; END \$\$");
	counts_ok($node, sub { succeeds_ok($app->query("CALL p_$trigger()"), '', $trigger) },
		"trigger $trigger, at COMMIT in CALL", admitted => 1);
	counts_ok($node, sub { succeeds_ok($app->query("DO \$\$ BEGIN CALL p_$trigger(); END \$\$"), '', $trigger) },
		"trigger $trigger, at COMMIT in CALL in DO", admitted => 1);
}

# A cursor of the session that the trigger fetches from
{
	my $client = client($node);

	$client->query(
		q{CREATE FUNCTION f_fetches() RETURNS trigger LANGUAGE plpgsql AS
			$$ DECLARE n int; c refcursor := 'mine'; BEGIN FETCH c INTO n; RETURN NULL; END $$;
		  CREATE TABLE d_fetches (i int);
		  CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON d_fetches
			DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION f_fetches()});
	$client->query('BEGIN; INSERT INTO d_fetches VALUES (1); DECLARE mine CURSOR FOR SELECT i FROM t ORDER BY i');
	my @holders = occupy($node, 2);
	my $forced = counter($node, 'forced');
	succeeds_ok($client->query('COMMIT'), '', 'a cursor opened before that the trigger fetches from');
	is(counter($node, 'forced'), $forced, 'nothing is charged');
	release($node, @holders);
	$client->quit;
}

# The extended protocol commits at Sync.
{
	my $wire = PgAdmissionWire->new($node);

	$wire->parse('', 'INSERT INTO d_loop VALUES (1)')->bind('', '')->execute('')->flush;
	$wire->until_message('C');
	my @holders = occupy($node, 2);
	my $result = $wire->sync->until_ready;
	is("@{ $result->{errors} } $result->{status}", ' I', 'commit at Sync');
	release($node, @holders);
	$wire->quit;
}

# A cursor WITH HOLD that is declared inside of an admitted statement is charged
# when it is persisted at commit, and forced, even if it claims more than there is.
$app->query(
	q{CREATE FUNCTION declares(name text, setting text, value text) RETURNS int LANGUAGE plpgsql AS
		$$ BEGIN
			PERFORM set_config(setting, value, true);
			EXECUTE format('DECLARE %I CURSOR WITH HOLD FOR SELECT i FROM t ORDER BY i', name);
			RETURN 1;
		   END $$});
admin($node)->query('GRANT SET ON PARAMETER pg_admission.query_workers, pg_admission.query_memory TO app');
foreach my $setting ("'work_mem', '1MB'", "'pg_admission.query_workers', '3'", "'pg_admission.query_memory', '3GB'")
{
	my $client = client($node);

	succeeds_ok($client->query("BEGIN; SELECT declares('h', $setting) FROM t LIMIT 1"), 1,
		'declared in a function');
	my @holders = occupy($node, 2);
	my $forced = counter($node, 'forced');
	succeeds_ok($client->query('COMMIT'), '', "persisted at commit, with $setting");
	is(counter($node, 'forced') - $forced, 1, 'it is forced');
	release($node, @holders);
	succeeds_ok($client->query('FETCH 2 FROM h'), "1\n2", 'and has its rows');
	$client->query('CLOSE ALL');
	is(held($node, $client->{pid}), '', 'it holds nothing any more');
	$client->quit;
}

# Before a statement begins: parameters of Bind and constants
$app->query(
	q{CREATE FUNCTION known(v int) RETURNS boolean LANGUAGE sql AS 'SELECT count(*) > 0 FROM t WHERE i = v';
	  CREATE FUNCTION known_plpgsql(v int) RETURNS boolean LANGUAGE plpgsql AS
		$$ DECLARE r int; BEGIN
			FOR r IN SELECT i FROM t LOOP IF r = v THEN RETURN true; END IF; END LOOP;
			RETURN false;
		   END $$;
	  CREATE DOMAIN known_int AS int CHECK (known(VALUE));
	  CREATE DOMAIN looped_int AS int CHECK (known_plpgsql(VALUE));
	  CREATE TYPE pair AS (a known_int, b int)});
foreach my $type ('known_int', 'looped_int')
{
	my $wire = PgAdmissionWire->new($node);
	my $bind = sub {
		my $result = $wire->bind('', 's', 3)->execute('')->sync->until_ready;

		return "@{ $result->{rows} }|@{ $result->{errors} }";
	};

	$wire->parse('s', "SELECT \$1::$type")->sync->until_ready;
	counts_ok($node, sub { is($bind->(), '3|', "parameter $type") },
		"a query in the check of a parameter's domain: admitted",
		admitted => 1, bypassed_no_relation => 1);

	my @holders = occupy($node, 2);
	counts_ok($node, sub { is($bind->(), '|53A01', "parameter $type, no free worker") },
		'it is refused like any first statement',
		rejected => 1);
	is($wire->query('SELECT 1')->{status}, 'I', 'and the session goes on');
	release($node, @holders);

	# Waiting there, and cancelled there
	reload_with($node, { 'pg_admission.queue_capacity' => 10 }, 'queue_capacity', 10);
	@holders = occupy($node, 2);
	$wire->bind('', 's', 3)->execute('')->sync;
	ok(wait_for($node, "SELECT state FROM pg_admission_queries WHERE pid = $wire->{pid}", 'queued'),
		'it waits in the queue');
	release($node, shift @holders);
	is("@{ $wire->until_ready->{rows} }", '3', 'and is admitted in its turn');
	@holders = (@holders, occupy($node, 1));
	$wire->bind('', 's', 3)->execute('')->sync;
	wait_for($node, "SELECT state FROM pg_admission_queries WHERE pid = $wire->{pid}", 'queued');
	admin($node)->query("SELECT pg_cancel_backend($wire->{pid})");
	is("@{ $wire->until_ready->{errors} }", '57014', 'or cancelled');
	release($node, @holders);
	reload_with($node, { 'pg_admission.queue_capacity' => 0 }, 'queue_capacity', 0);
	$wire->quit;
}
{
	my @holders = occupy($node, 2);

	is($app->query("SELECT '(3,1)'::pair")->{state}, '53A01', 'a constant that is checked by a query');
	release($node, @holders);
	counts_ok($node, sub { succeeds_ok($app->query("SELECT '(3,1)'::pair"), '(3,1)', 'constant') },
		'the same with a free worker: admitted',
		admitted => 1, bypassed_no_relation => 1);
}

server_is_idle($node);
done_testing();
