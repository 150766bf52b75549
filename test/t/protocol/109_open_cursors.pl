# Many open cursors, the work_mem that they keep to, and counters that end equal
# whatever becomes of a query.

use strict;
use warnings;

use PgAdmission;
use PgAdmissionKinds;
use PgAdmissionWire;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

my $node = new_server('open_cursors',
	'pg_admission.queue_capacity' => 10,
	'log_temp_files' => 0);
my $app = client($node);
my $sort = 'SELECT i FROM big ORDER BY x';

$app->query(
	q{CREATE TABLE big AS SELECT i, repeat(md5(i::text), 3) AS x FROM generate_series(1, 200000) i;
	  CREATE TABLE tiny AS SELECT 1 AS a;
	  CREATE FUNCTION raises() RETURNS int LANGUAGE plpgsql AS
		$$ BEGIN PERFORM set_config('work_mem', '512MB', false); RETURN 1; END $$;
	  ANALYZE big});

admin($node)->query('GRANT pg_read_all_stats TO app');

# The memory that a client's backend has at the moment
sub used_mb
{
	return $app->query('SELECT sum(total_bytes) / 1024 / 1024 FROM pg_backend_memory_contexts')->{out};
}

# What is raised between two runs does not count for a query that has been
# charged, of sorts as of hashes; the session's settings stay.
$app->query("SET work_mem = '4MB'; SET hash_mem_multiplier = 1");
foreach my $case (
	[ $sort, "SET work_mem = '512MB'" ],
	[ 'SELECT x, count(*) FROM big GROUP BY x', "SET work_mem = '512MB'" ],
	[ 'SELECT x, count(*) FROM big GROUP BY x', 'SET hash_mem_multiplier = 100' ],
	[ 'SELECT count(*) FROM big a JOIN big b USING (x)', "SET work_mem = '512MB'; SET hash_mem_multiplier = 10" ])
{
	my ($query, $raise) = @$case;
	my $shown;

	$app->query("SET enable_sort = off; SET enable_mergejoin = off; BEGIN; DECLARE c CURSOR FOR $query; $raise");
	$shown = $app->query('SHOW work_mem; SHOW hash_mem_multiplier')->{out};
	$app->query('FETCH c');
	cmp_ok(used_mb(), '<', 20, "keeps to its charge: $query, $raise");
	is($app->query('SHOW work_mem; SHOW hash_mem_multiplier')->{out}, $shown, "the session's settings are as before");
	$app->query('ROLLBACK; RESET enable_sort; RESET enable_mergejoin');
}
$app->query('BEGIN');
$app->query("DECLARE c CURSOR FOR $sort; SET work_mem = '1MB'; FETCH c");
cmp_ok(used_mb(), '<', 5, 'what is lowered counts');
$app->query('ROLLBACK');

# A portal of the extended protocol
{
	my $wire = PgAdmissionWire->new($node);

	$wire->query("SET work_mem = '4MB'");
	$wire->query('BEGIN');
	$wire->parse('', $sort)->bind('p', '')->flush;
	$wire->until_message('2');
	$wire->parse('set', "SET work_mem = '512MB'")->bind('', 'set')->execute('')->execute('p', 1);
	$wire->parse('mb', 'SELECT sum(total_bytes) / 1024 / 1024 < 20 FROM pg_backend_memory_contexts')
	  ->bind('', 'mb')->execute('')->sync;
	is($wire->until_ready->{rows}[1], 't', 'a portal keeps to its charge');
	$wire->quit;
}

# A SET inside of the query still wins, whether the session's is in force or not.
foreach my $raise ('', "SET work_mem = '6MB';")
{
	$app->query("SET work_mem = '4MB'; BEGIN; DECLARE c CURSOR FOR SELECT raises() FROM ($sort) s; $raise FETCH c");
	is($app->query('SHOW work_mem')->{out}, '512MB', "a SET inside of the query counts, after: $raise");
	$app->query('FETCH c');
	is($app->query('SHOW work_mem')->{out}, '512MB', 'and stays');
	$app->query('ROLLBACK');
}

# Mode "observe" leaves a query alone.
reload_with($node, { 'pg_admission.mode' => 'observe' }, 'mode', 'observe');
$app->query("SET work_mem = '4MB'; BEGIN; DECLARE c CURSOR FOR $sort; SET work_mem = '512MB'; FETCH c");
cmp_ok(used_mb(), '>', 20, 'one that is only observed is left alone');
$app->query('ROLLBACK');
reload_with($node, { 'pg_admission.mode' => 'enforce' }, 'mode', 'enforce');

# Many cursors, found when they end in any order
$app->query("SET work_mem = '4MB'");
foreach my $end ('COMMIT', 'ROLLBACK', 'CLOSE ALL; COMMIT', 'ROLLBACK TO a; COMMIT')
{
	my $declare = join '', map { "DECLARE c$_ CURSOR FOR SELECT i FROM t ORDER BY i; " } 1 .. 200;

	$app->query("BEGIN; SAVEPOINT a; $declare");
	is(status($node, 'running'), 200, 'many cursors are charged');
	$app->query('CLOSE c7; CLOSE c150; FETCH c8; MOVE c9');
	is(status($node, 'running'), 198, 'some are closed');
	succeeds_ok($app->query($end), '', $end);
	is(status($node, 'running, memory_used_bytes'), '0|0', 'all are released');
}

# The time that COMMIT takes does not grow with the square of their number.
{
	my @seconds;

	foreach my $n (3000, 12000)
	{
		$app->query(
			"BEGIN; DO \$\$ BEGIN FOR j IN 1 .. $n LOOP
				EXECUTE format('DECLARE c%s CURSOR FOR SELECT i FROM t', j); END LOOP; END \$\$");
		my $start = time();
		$app->query('COMMIT');
		push @seconds, time() - $start;
	}
	note "COMMIT took @seconds s";
	cmp_ok($seconds[1], '<', 10 * $seconds[0] + 0.5, 'COMMIT of many cursors');
}

# Counters end equal
$app->quit;
my $idle = sub {
	my ($name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	ok( wait_for($node, 'SELECT running + queued FROM pg_admission_status', 0)
		  && wait_for($node, 'SELECT admitted = completed AND submitted = admitted + rejected + cancelled_while_queued FROM pg_stat_admission'),
		"counters are equal: $name");
};

# What becomes of a client whose fetch waits, or that is queued otherwise
my %ends = (
	'cancelled' => sub { admin($node)->query("SELECT pg_cancel_backend($_[0]{pid})"); $_[0]->finish; $_[0]->query('ROLLBACK') },
	'terminated' => sub { admin($node)->query("SELECT pg_terminate_backend($_[0]{pid})"); $_[0]->finish },
	'vanished' => sub { $_[0]->vanish },
	'admitted' => sub { release($node, @{ $_[1] }); $_[0]->finish; $_[0]->query('COMMIT') },
	'admitted, then rolled back to a savepoint' =>
	  sub { release($node, @{ $_[1] }); $_[0]->finish; $_[0]->query('ROLLBACK TO a; COMMIT') },
	'cancelled as it is admitted' => sub {
		admin($node)->query("SELECT pg_cancel_backend(pid) FROM unnest(ARRAY["
			  . join(', ', map { $_->{pid} } @{ $_[1] }, $_[0]) . ']) pid');
		$_->finish foreach @{ $_[1] }, $_[0];
		$_[0]->query('ROLLBACK');
	},
	'terminated as it is admitted' => sub {
		admin($node)->query("SELECT pg_cancel_backend($_[1][0]{pid}), pg_terminate_backend($_[0]{pid}), pg_cancel_backend($_[1][1]{pid})");
		$_->finish foreach @{ $_[1] }, $_[0];
	});
my %waits = (
	'a fetch' => [ "BEGIN; SAVEPOINT a; DECLARE c CURSOR FOR SELECT i FROM t ORDER BY i; FETCH c", 'FETCH c' ],
	'an exception block' => [ 'SELECT 1',
		'BEGIN; SAVEPOINT a; DO $$ BEGIN PERFORM i FROM t; EXCEPTION WHEN query_canceled THEN PERFORM 1 / 0; END $$' ],
	'a failing query' => [ 'BEGIN; SAVEPOINT a; DECLARE c CURSOR FOR SELECT 1 / (i - 1) FROM t', 'FETCH 5 c' ]);

foreach my $wait (sort keys %waits)
{
	foreach my $end (sort keys %ends)
	{
		my $client = client($node);
		$client->query($waits{$wait}[0]);
		my @holders = occupy($node, 2);

		queue_up($node, $client, $waits{$wait}[1]);
		$ends{$end}->($client, \@holders);
		release($node, grep { $_->{busy} } @holders);
		$_->quit foreach $client, @holders;
		$idle->("$wait, $end");
	}
}

# A portal that is dropped while another of its session waits
{
	my $wire = PgAdmissionWire->new($node);

	$wire->query('BEGIN');
	$wire->parse('s', 'SELECT i FROM t ORDER BY i')->bind('p', 's')->execute('p', 1)->bind('q', 's')->flush;
	$wire->until_message('s');
	$wire->until_message('2');
	my @holders = occupy($node, 1);
	push @holders, occupy($node, 1) if status($node, 'workers_used') < 2;
	$wire->execute('p', 1)->close_portal('p')->close_portal('q')->sync;
	release($node, @holders);
	$wire->until_ready;
	$wire->query('ROLLBACK');
	$wire->quit;
	$_->quit foreach @holders;
	$idle->('portals dropped');
}

# A client that has only closed its sending side gets its answer; one that is
# gone leaves the queue.
foreach my $how (1, 2)
{
	my $wire = PgAdmissionWire->new($node);
	my @holders = occupy($node, 2);
	my $alive = "SELECT wait_ms > 2500 FROM pg_admission_queries WHERE pid = $wire->{pid}";

	$wire->send_query('SELECT count(*) FROM t');
	wait_for($node, "SELECT state FROM pg_admission_queries WHERE pid = $wire->{pid}", 'queued');
	shutdown($wire->{socket}, $how);
	if ($how == 1)
	{
		ok(wait_for($node, $alive), 'a client that sends no more still waits');
		release($node, @holders);
		is("@{ $wire->until_message('Z')->{rows} }", '10', 'and gets its answer');
	}
	else
	{
		ok(wait_for($node, 'SELECT queued FROM pg_admission_status', 0), 'a client that is gone does not');
		release($node, @holders);
	}
	$_->quit foreach @holders;
	$idle->('closed by the client');
}

server_is_idle($node);
done_testing();
