# Memory and worker budget on a machine of 24 cores and 48 GB: the worked cases
# that the budget is designed by.

use strict;
use warnings;

use PgAdmission;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server(
	'worked_cases',
	'pg_admission.cores' => 24,
	'pg_admission.cores_multiplier' => 3,
	'pg_admission.total_memory' => "'48GB'",
	'pg_admission.memory_fraction' => 1,
	'max_parallel_workers' => 0);

# What each query of the ordinary role claims, by the operator's word
sub claim
{
	my ($memory, $workers) = @_;

	admin($node)->query(
		"ALTER ROLE app SET pg_admission.query_memory = '$memory';
		 ALTER ROLE app SET pg_admission.query_workers = $workers");
	return;
}

sub state_is
{
	my ($running, $queued, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	ok( wait_for($node, 'SELECT running, queued FROM pg_admission_status',
			"$running|$queued"),
		"$name: $running run, $queued are queued");
	return;
}

sub start_all
{
	my ($sql, @clients) = @_;

	$_->start($sql) for @clients;
	return @clients;
}

# Those clients whose queries run, and those whose queries wait
sub running
{
	my (@clients) = @_;
	my %state = map { split /\|/ } split /\n/,
	  admin($node)->query('SELECT pid, state FROM pg_admission_queries')->{out};

	return grep { ($state{ $_->{pid} } || '') eq 'running' } @clients;
}

# Let one of them end; exactly so many more must run, and the others wait.
sub one_ends
{
	my ($more, $running, $queued, $name, @clients) = @_;
	my @before = running(@clients);

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	release($node, $before[0]);
	state_is($running, $queued, "$name, when one has ended");

	my %before = map { $_->{pid} => 1 } @before;
	is(scalar(grep { !$before{ $_->{pid} } } running(@clients)),
		$more, "$name: exactly $more more");
	return;
}

my $sleep = 'SELECT pg_sleep(3600) FROM t LIMIT 1';
my @clients;

# Five queries of 2 GB and 24 workers, of 72 workers

claim('2GB', 24);
@clients = start_all($sleep, map { client($node) } 1 .. 5);
state_is(3, 2, 'five of 2 GB and 24 workers, 72 workers');
is(status($node, 'workers_used, workers_total, memory_used_bytes >> 30'), '72|72|6',
	'what is charged');
one_ends(1, 3, 1, 'five of 2 GB and 24 workers', @clients);
one_ends(1, 3, 0, 'five of 2 GB and 24 workers', @clients);
one_ends(0, 2, 0, 'five of 2 GB and 24 workers', @clients);
release($node, running(@clients));
state_is(0, 0, 'all have ended');
$_->quit for @clients;

# Three queries of 20 GB

claim('20GB', 24);
@clients = start_all($sleep, map { client($node) } 1 .. 3);
state_is(2, 1, 'three of 20 GB and 24 workers');
is(status($node, 'workers_used, memory_used_bytes >> 30'), '48|40',
	'workers are free, memory is not');
one_ends(1, 2, 0, 'three of 20 GB and 24 workers', @clients);
release($node, running(@clients));
$_->quit for @clients;

# One of 50 GB

claim('50GB', 24);
my $huge = client($node);
my $refused = $huge->query($sleep);
exceeds_ok($refused, 'memory', 'query exceeds the memory budget', '50 GB do not fit 48 GB');
like(
	$refused->{err},
	qr/required_memory_kb=52428800 memory_budget_kb=50331648 required_workers=24 worker_budget=72 /,
	'error tells what was required, and what there is');
$huge->query("SET pg_admission.query_memory_limit = '40GB'");
$huge->start($sleep);
state_is(1, 0, 'with a limit of 40 GB');
is(status($node, 'memory_used_bytes >> 30'), 40, 'it is charged 40 GB');
release($node, $huge);
$huge->query('RESET pg_admission.query_memory_limit');
exceeds_ok($huge->query($sleep), 'memory', 'query exceeds the memory budget',
	'refused without the limit');
reload_with($node, { 'pg_admission.total_memory' => "'64GB'" }, 'memory_total_bytes >> 30', 64);
$huge->start($sleep);
state_is(1, 0, 'with total_memory raised by a reload');
release($node, $huge);
$huge->quit;

# Queued queries that cannot fit any more when the budget shrinks

claim('40GB', 1);
@clients = map { client($node) } 1 .. 2;
start_all($sleep, $clients[0]);
state_is(1, 0, 'one of 40 GB');
start_all($sleep, $clients[1]);
state_is(1, 1, 'two of 40 GB of 64 GB');
reload_with($node, { 'pg_admission.total_memory' => "'32GB'" }, 'memory_total_bytes >> 30', 32);
exceeds_ok($clients[1]->finish, 'memory', 'query exceeds the memory budget',
	'refused while queued, when the budget has become too small');
state_is(1, 0, 'who runs goes on');
release($node, $clients[0]);
$_->quit for @clients;
reload_with($node, { 'pg_admission.total_memory' => "'48GB'" }, 'memory_total_bytes >> 30', 48);

# Five of 2 GB and 24 workers, of 120 workers

claim('2GB', 24);
reload_with($node, { 'pg_admission.cores_multiplier' => 5 }, 'workers_total', 120);
@clients = start_all($sleep, map { client($node) } 1 .. 5);
state_is(5, 0, 'five of 2 GB and 24 workers, 120 workers');
is(status($node, 'workers_used, memory_used_bytes >> 30'), '120|10', 'all are charged');
release($node, @clients);
$_->quit for @clients;

# The same with real plans: rows two and three.  The table is small, but its
# statistics say that each of its pages has a hundred million rows.

admin($node)->query(
	'ALTER ROLE app RESET pg_admission.query_memory;
	 ALTER ROLE app SET pg_admission.query_workers = 24');
reload_with($node, { 'pg_admission.cores_multiplier' => 3 }, 'workers_total', 72);
admin($node)->query(
	"SET ROLE app;
	 CREATE TABLE vast (i int, filler text) WITH (autovacuum_enabled = off);
	 INSERT INTO vast SELECT i, md5(i::text) FROM generate_series(1, 1000) i;
	 ANALYZE vast;
	 RESET ROLE;
	 UPDATE pg_class SET reltuples = 1e9, relpages = 10 WHERE oid = 'vast'::regclass");
my $sort = 'SELECT i, filler, pg_sleep(3600) FROM vast ORDER BY filler, i';

@clients = map { client($node) } 1 .. 3;
$_->query("SET work_mem = '20GB'") for @clients;
is($clients[0]->query("SELECT memory_bytes >> 30, verdict FROM pg_admission_estimate('$sort')")->{out},
	'20|run', 'a sort that needs 20 GB');
start_all($sort, @clients);
state_is(2, 1, 'three sorts of 20 GB');
is(status($node, 'memory_used_bytes >> 30'), 40, 'their need is charged');
is( admin($node)->query(
		"SET SESSION AUTHORIZATION app; SET work_mem = '20GB';
		 SELECT verdict, reason FROM pg_admission_estimate('$sort');
		 RESET work_mem; RESET SESSION AUTHORIZATION")->{out},
	'queue|', 'the next would be queued');
one_ends(1, 2, 0, 'three sorts of 20 GB', @clients);
release($node, running(@clients));
$_->quit for @clients;

$huge = client($node);
$huge->query("SET work_mem = '50GB'");
is($huge->query("SELECT verdict, reason FROM pg_admission_estimate('$sort')")->{out},
	'reject|memory', 'a sort that needs 50 GB would be refused');
exceeds_ok($huge->query($sort), 'memory', 'query exceeds the memory budget',
	'and it is');
$huge->query("SET pg_admission.query_memory_limit = '40GB'");
$huge->start($sort);
state_is(1, 0, 'with a limit of 40 GB');
ok( wait_for($node,
		'SELECT memory_used_bytes BETWEEN 39::bigint << 30 AND 40::bigint << 30 FROM pg_admission_status'),
	'it is charged no more than that');
release($node, $huge);
$huge->query('RESET pg_admission.query_memory_limit');
reload_with($node, { 'pg_admission.total_memory' => "'64GB'" }, 'memory_total_bytes >> 30', 64);
$huge->start($sort);
state_is(1, 0, 'with total_memory raised by a reload');
release($node, $huge);

# Sums of what no machine has.  Mode "observe" charges them all, and a cursor
# has not read a row yet.
reload_with($node, { 'pg_admission.mode' => 'observe' }, 'mode', 'observe');
my $endless = 'SELECT array_agg(t1.i) FROM t t1'
  . join('', map { " CROSS JOIN t t$_" } 2 .. 20);
my ($claim) = admin($node)->query(
	"SELECT memory_bytes FROM pg_admission_estimate('$endless')")->{out};
cmp_ok($claim, '>', 1e14, 'an endless query claims more than any machine has');
my @observed = map { client($node) } 1 .. 4;
$_->query("SET join_collapse_limit = 1; BEGIN; DECLARE c CURSOR FOR $endless") for @observed;
is(admin($node)->query('SELECT running, memory_used_bytes FROM pg_admission_status')->{out},
	join('|', 4, 4 * $claim), 'four of them are charged four times that');
$_->query('ROLLBACK') for @observed;

server_is_idle($node);
done_testing();
