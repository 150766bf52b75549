# The verdict of pg_admission_estimate() is that of this session at this moment.

use strict;
use warnings;

use PgAdmission;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('estimate', 'pg_admission.queue_capacity' => 1);
my $app = client($node);
my $ask = q{SELECT verdict, reason FROM pg_admission_estimate('SELECT count(*) FROM t')};

sub verdict_is
{
	my ($expected, $name) = @_;
	my $counted = 'submitted, rejected, rejected_breaker, forced';
	my $before = counter($node, $counted);

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	succeeds_ok($app->query($ask), $expected, $name);
	is(counter($node, $counted), $before, "$name: nothing is counted");
	return;
}

verdict_is('run|', 'idle server');

my @holders = occupy($node, 2);
verdict_is('queue|', 'all workers are busy');

my $queued = queue_up($node, client($node), 'SELECT count(*) FROM t');
verdict_is('reject|queue_full', 'the queue is full');
is( $app->query("EXPLAIN (COSTS off) $ask")->{state},
	'00000', 'nor is the statement that asks refused');
succeeds_ok(
	$app->query(q{DO $$ BEGIN PERFORM set_config('app.verdict', verdict, false) FROM pg_admission_estimate('SELECT count(*) FROM t'); END $$; SHOW app.verdict}),
	'reject', 'it may be asked in a function');
overloaded_ok($app->query('SELECT count(*) FROM t'), 'queue_full',
	'system overloaded: admission queue is full', 'the query itself');

# A transaction that may not be refused, and one that may not wait

$app->query('BEGIN; SAVEPOINT s; CREATE TEMPORARY TABLE mine (i int)');
succeeds_ok($app->query($ask), 'run|forced', 'a transaction with an id does not wait');
$app->query('ROLLBACK');

release($node, @holders);
succeeds_ok($queued->finish, 10, 'queued query runs');

$app->query('BEGIN; SELECT count(*) FROM t');
@holders = occupy($node, 2);
$queued = queue_up($node, client($node), 'SELECT count(*) FROM t');
succeeds_ok($app->query($ask), 'queue|', "a transaction's later query is not refused");
$app->query('COMMIT');
verdict_is('reject|queue_full', 'the next one is');

# Within an admitted query, that is judged as if it came by itself

release($node, @holders);
succeeds_ok($queued->finish, 10, 'queued query runs');
succeeds_ok(
	$app->query(q{SELECT DISTINCT verdict FROM t, pg_admission_estimate('SELECT count(*) FROM t')}),
	'run', 'asked by an admitted query');

# Breakers

admin($node)->query("SELECT pg_admission_trip('by hand', 'test', interval '1 hour')");
verdict_is('reject|breaker', 'a breaker has tripped');
admin($node)->query("SELECT pg_admission_untrip('by hand')");
verdict_is('run|', 'it has been cleared');

# Mode "observe": what "enforce" would do

@holders = occupy($node, 2);
admin($node)->query("ALTER ROLE app SET pg_admission.mode = 'observe'");
$app->quit;
$app = client($node);
verdict_is('queue|', 'mode "observe"');
succeeds_ok($app->query('SELECT count(*) FROM t'), 10, 'the query itself runs');
release($node, @holders);

server_is_idle($node);
done_testing();
