# Cursors: declared, fetched from in parts, held, scrolled, opened inside other
# statements, and many of them at once.

use strict;
use warnings;

use PgAdmission;
use PgAdmissionKinds;
use PgAdmissionWire;
use PostgreSQL::Test::Utils;
use Test::More;

my $clients = 300;
my $node = new_server('cursors',
	'max_connections' => $clients + 20,
	'pg_admission.queue_capacity' => 0);
my $app = client($node);
my $sort = 'SELECT i FROM t ORDER BY i';
my $suspended = qr/^suspended\|0\|[1-9]\d+$/;

sub runs
{
	my ($sql, $out, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	return succeeds_ok($app->query($sql), $out, $name);
}

sub fails
{
	my ($sql, $state, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	return is($app->query($sql)->{state}, $state, $name);
}

sub holds
{
	my ($expected, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $held = held($node, $app->{pid});

	return ref $expected ? like($held, $expected, $name) : is($held, $expected, $name);
}

runs(
	q{CREATE FUNCTION open_sort(name refcursor) RETURNS refcursor LANGUAGE plpgsql AS
		'BEGIN OPEN name FOR SELECT i FROM t ORDER BY i; RETURN name; END';
	  CREATE FUNCTION open_catalog(name refcursor) RETURNS refcursor LANGUAGE plpgsql AS
		$$ BEGIN OPEN name FOR SELECT relname FROM pg_class WHERE relname = 't'; RETURN name; END $$;
	  CREATE FUNCTION fetches(name refcursor) RETURNS int LANGUAGE plpgsql AS
		'DECLARE r int; BEGIN FETCH name INTO r; RETURN r; END';
	  CREATE FUNCTION loops() RETURNS bigint LANGUAGE plpgsql AS
		'DECLARE r record; n bigint := 0;
		 BEGIN FOR r IN SELECT i FROM t LOOP n := n + r.i; END LOOP; RETURN n; END'},
	'', 'set up');

# One cursor's life

$app->query('BEGIN');
once_ok(
	$node,
	sub {
		runs("DECLARE c CURSOR FOR $sort", '', 'DECLARE');
		holds($suspended, 'holds memory only');
		runs('FETCH 3 FROM c', "1\n2\n3", 'FETCH');
		holds($suspended, 'gives the worker back');
		runs('MOVE 2 IN c', '', 'MOVE');
		runs('FETCH ALL FROM c', join("\n", 6 .. 10), 'FETCH ALL');
		runs('FETCH c', '', 'FETCH behind the end');
		holds($suspended, 'holds memory until it is closed');
		runs('CLOSE c', '', 'CLOSE');
		holds('', 'gives that back');
	},
	'DECLARE, FETCH, MOVE, CLOSE');
once_ok(
	$node,
	sub {
		runs("DECLARE c SCROLL CURSOR FOR $sort", '', 'DECLARE SCROLL');
		runs('FETCH LAST FROM c; FETCH PRIOR FROM c; FETCH FIRST FROM c; FETCH ABSOLUTE 5 FROM c; FETCH BACKWARD 2 FROM c; FETCH RELATIVE 0 FROM c; MOVE BACKWARD ALL IN c; FETCH c',
			"10\n9\n1\n5\n4\n3\n3\n1", 'FETCH in all directions');
		holds($suspended, 'holds memory only');
		runs('COMMIT', '', 'COMMIT');
		holds('', 'gives that back');
	},
	'DECLARE SCROLL');
once_ok(
	$node,
	sub {
		runs("BEGIN; DECLARE c CURSOR FOR $sort; COMMIT", '', 'never fetched from');
		holds('', 'holds nothing afterwards');
	},
	'cursor that is never fetched from');
counts_ok(
	$node,
	sub {
		runs("BEGIN; DECLARE a CURSOR FOR $sort; DECLARE b CURSOR FOR SELECT i FROM t ORDER BY i DESC; FETCH a; FETCH b; FETCH 2 FROM a; FETCH b; SELECT count(*) FROM t; FETCH a; FETCH b",
			"1\n10\n2\n3\n9\n10\n4\n8", 'two cursors fetched from alternately');
		is(scalar(split /\n/, held($node, $app->{pid})), 2, 'each holds its memory');
		runs('ROLLBACK', '', 'ROLLBACK');
		holds('', 'gives that back');
	},
	'two cursors and a query',
	admitted => 3);
counts_ok($node, sub { runs("BEGIN; DECLARE c CURSOR FOR SELECT 1; FETCH c; COMMIT", '1', 'without a relation') },
	'cursor without a relation is exempt', bypassed_no_relation => 1);

# WITH HOLD

once_ok(
	$node,
	sub {
		runs("BEGIN; DECLARE h CURSOR WITH HOLD FOR $sort; FETCH h", '1', 'DECLARE WITH HOLD');
		holds($suspended, 'holds memory only');
		runs('COMMIT', '', 'COMMIT');
		holds('', 'a held cursor holds nothing');
		runs('FETCH 2 FROM h; BEGIN; FETCH h; ROLLBACK; FETCH h', "2\n3\n4\n5", 'FETCH after COMMIT');
		holds('', 'nor does it when fetched from');
		runs('CLOSE h', '', 'CLOSE');
	},
	'WITH HOLD across COMMIT');
once_ok(
	$node,
	sub {
		runs("BEGIN; DECLARE h CURSOR WITH HOLD FOR $sort; FETCH h; ROLLBACK", '1', 'WITH HOLD and ROLLBACK');
		holds('', 'holds nothing');
	},
	'WITH HOLD across ROLLBACK');
once_ok(
	$node,
	sub {
		fails("BEGIN; DECLARE h CURSOR WITH HOLD FOR SELECT 1 / (i - 5) FROM t; FETCH h; COMMIT; FETCH h",
			'34000', 'error when the cursor is persisted');
		holds('', 'holds nothing');
	},
	'WITH HOLD that fails at COMMIT');
once_ok($node, sub { runs("DECLARE h CURSOR WITH HOLD FOR $sort; FETCH h; CLOSE h", '1', 'WITH HOLD outside a transaction') },
	'WITH HOLD outside of a transaction');

# Cursors opened inside of other statements

counts_ok(
	$node,
	sub {
		runs("BEGIN; SELECT open_sort('rc') FROM t LIMIT 1", 'rc', 'opened inside an admitted query');
		holds('', 'is not charged yet');
		runs('FETCH 2 FROM rc', "1\n2", 'FETCH outside of it');
		holds($suspended, 'is charged now');
		runs('FETCH rc', '3', 'once more');
		runs('CLOSE rc; COMMIT', '', 'CLOSE');
		holds('', 'gives it back');
	},
	'cursor opened inside an admitted query, fetched from outside: charged by itself',
	admitted => 2);
once_ok(
	$node,
	sub {
		runs("BEGIN; SELECT open_sort('rc') FROM t LIMIT 1; COMMIT", 'rc', 'not fetched from outside');
		holds('', 'holds nothing');
	},
	'cursor opened inside an admitted query, not fetched from outside');
once_ok(
	$node,
	sub {
		runs("BEGIN; SELECT open_catalog('rc') FROM t LIMIT 1; FETCH rc; COMMIT", "rc\nt", 'exempt plan');
	},
	'cursor with an exempt plan, opened inside an admitted query');
counts_ok(
	$node,
	sub {
		runs("BEGIN; SELECT open_sort('rc'); FETCH rc; COMMIT", "rc\n1", 'opened inside a bypassed query');
		holds('', 'holds nothing');
	},
	'cursor opened inside a bypassed query: admitted when opened',
	admitted => 1, bypassed_no_relation => 1);
counts_ok(
	$node,
	sub {
		runs("BEGIN; DECLARE c CURSOR FOR $sort; SELECT fetches('c') FROM t LIMIT 2; FETCH c; COMMIT", "1\n2\n3",
			'fetched from inside an admitted query');
	},
	'cursor fetched from inside an admitted query',
	admitted => 2);
once_ok($node, sub { runs('SELECT loops() FROM t LIMIT 1', '55', 'loop inside an admitted query') },
	'loop over a query inside an admitted one');
counts_ok($node, sub { runs('SELECT loops()', '55', 'loop inside a bypassed query') },
	'loop over a query inside a bypassed one', admitted => 1, bypassed_no_relation => 1);

# Errors in a fetch

once_ok(
	$node,
	sub {
		fails("BEGIN; DECLARE c CURSOR FOR SELECT 1 / (i - 2) FROM t; FETCH c; FETCH c", '22012', 'error in FETCH');
		holds('', 'gives all back at once');
		$app->query('ROLLBACK');
	},
	'error in a fetch');
once_ok(
	$node,
	sub {
		fails("BEGIN; DECLARE c CURSOR FOR SELECT 1 / (i - 2) FROM t; FETCH c; SAVEPOINT s; FETCH c", '22012', 'error in FETCH after a savepoint');
		$app->query('ROLLBACK TO s');
		holds('', 'gives all back with the savepoint');
		fails('FETCH c', '55000', 'the cursor is unusable');
		$app->query('ROLLBACK');
	},
	'error in a fetch after a savepoint');
once_ok(
	$node,
	sub {
		runs("BEGIN; SAVEPOINT s; DECLARE c CURSOR FOR $sort; FETCH c; ROLLBACK TO s", '1', 'cursor of a savepoint');
		holds('', 'goes with it');
		fails('FETCH c', '34000', 'the cursor is gone');
		$app->query('ROLLBACK');
	},
	'subtransaction aborted with an open cursor of its own');
once_ok(
	$node,
	sub {
		runs("BEGIN; DECLARE c CURSOR FOR $sort; SAVEPOINT s; FETCH c; ROLLBACK TO s; FETCH c", "1\n2", 'cursor from before a savepoint');
		holds($suspended, 'stays');
		runs('RELEASE s; FETCH c; COMMIT', '3', 'and goes on');
		holds('', 'until the end');
	},
	'subtransaction aborted with an older open cursor');
once_ok(
	$node,
	sub {
		runs("BEGIN; SAVEPOINT s; DECLARE c CURSOR FOR $sort; FETCH c; RELEASE s; FETCH c; COMMIT", "1\n2", 'savepoint released');
		holds('', 'holds nothing');
	},
	'subtransaction committed with an open cursor');

# Cancelled in the queue before a fetch

reload_with($node, { 'pg_admission.queue_capacity' => 1 }, 'queue_capacity', 1);
counts_ok(
	$node,
	sub {
		runs("BEGIN; DECLARE c CURSOR FOR $sort; FETCH c; SAVEPOINT s", '1', 'cursor');
		my @holders = occupy($node, 2);
		queue_up($node, $app, 'FETCH c');
		admin($node)->query("SELECT pg_cancel_backend($app->{pid})");
		cancelled_ok($app->finish, 'canceling statement due to user request', 'cancelled in the queue');
		$app->query('ROLLBACK TO s');
		holds('', 'nothing is left of it');
		fails('FETCH c', '55000', 'the cursor is unusable');
		$app->query('ROLLBACK');
		release($node, @holders);
	},
	'cancelled in the queue before a fetch',
	admitted => 3,
	cancelled_while_queued => 1,
	bypassed_no_relation => 2);    # the holders connect

# A fetch waits at the head of the queue, even of a full one

{
	my @holders = occupy($node, 1);
	runs("BEGIN; DECLARE c CURSOR FOR $sort; FETCH c", '1', 'cursor');
	push @holders, occupy($node, 1);
	my ($other, $third) = (client($node), client($node));

	queue_up($node, $other, 'SELECT count(*) FROM t');
	queue_up($node, $app, 'FETCH c');
	is( admin($node)->query(
			"SELECT pid, queue_position FROM pg_admission_queries WHERE state = 'queued' ORDER BY queue_position")->{out},
		"$app->{pid}|1\n$other->{pid}|2", 'a fetch waits ahead of those that came before it');
	is($third->query('SELECT count(*) FROM t')->{state}, '53A01', 'while others are refused');
	release($node, @holders);
	succeeds_ok($app->finish, '2', 'it goes on');
	succeeds_ok($other->finish, '10', 'and so does the other');
	$app->query('COMMIT');
}

# Left open by clients that sleep

reload_with($node, { 'pg_admission.queue_capacity' => 2 * $clients }, 'queue_capacity', 2 * $clients);
{
	my @sleepers = map { PgAdmissionWire->new($node) } 1 .. 2;

	foreach my $sleeper (@sleepers)
	{
		$sleeper->query('BEGIN');
		$sleeper->parse('', $sort)->bind('p', '')->sync;
		$sleeper->until_ready;
	}
	is(status($node, 'workers_used'), '2', 'portals that are not executed hold workers');
	runs('SELECT count(*) FROM t', '10', 'which are lent to whoever needs them');
	ok(wait_for($node, 'SELECT workers_lent FROM pg_admission_status', 2), 'as the status says');

	# All at once, they need the budget that they have lent.
	push @sleepers, map { PgAdmissionWire->new($node) } 1 .. 8;
	foreach my $sleeper (@sleepers[2 .. $#sleepers])
	{
		$sleeper->query('BEGIN');
		$sleeper->parse('', $sort)->bind('p', '')->sync;
		$sleeper->until_ready;
	}
	my @holders = occupy($node, 2);
	ok(wait_for($node, 'SELECT workers_used, workers_lent FROM pg_admission_status', '2|10'),
		'all portals have lent their workers');
	$_->execute('p')->sync for @sleepers;
	wait_for($node, 'SELECT queued = 10 FROM pg_admission_status');
	is(status($node, 'workers_used, workers_lent, queued'), '2|0|10',
		'executed, they wait for workers');
	release($node, @holders);
	is_deeply([ map { scalar @{ $_->until_ready->{rows} } } @sleepers ], [ (10) x 10 ], 'and all get their rows');
	$_->quit for @sleepers;
}

# Many clients declare, then fetch together

my ($budget, $forced) = split /\|/,
  admin($node)->query('SELECT workers_total, forced FROM pg_admission_status, pg_stat_admission')->{out};
my @crowd = map { PgAdmissionWire->new($node) } 1 .. $clients;
$_->send_query("BEGIN; DECLARE c CURSOR FOR SELECT count(*) FROM t a, t b, t c, t d, t e") for @crowd;
$_->until_ready for @crowd;
is(status($node, 'running, workers_used, workers_lent'), "$clients|0|0",
	"$clients clients have declared a cursor");

$_->send_query('FETCH c') for @crowd;
my ($most, $samples) = (0, 0);
for (;;)
{
	my ($used, $lent, $queued) = split /\|/, status($node, 'workers_used, workers_lent, queued');

	$most = $used + $lent if $used + $lent > $most;
	$samples++;
	last if $queued == 0;
}
is(scalar(grep { my $r = $_->until_ready; "@{ $r->{rows} }" eq '100000' } @crowd),
	$clients, 'all have fetched');
cmp_ok($most, '<=', $budget, 'they stayed within the worker budget');
cmp_ok($samples, '>', 1, 'which was watched');
is(counter($node, 'forced'), $forced, 'none was forced');
$_->quit for @crowd;

server_is_idle($node);
done_testing();
