# Circuit breakers: built-in, of another extension, and tripped by hand.
#
# The other extension is test/modules/monitors, loaded from where it is built.

use strict;
use warnings;

use Cwd 'abs_path';
use File::Basename;
use PgAdmission;
use PostgreSQL::Test::Utils;
use Test::More;

my $monitors = abs_path(dirname(__FILE__) . '/../../modules/monitors') . '/pgadm_test_monitors';

plan skip_all => 'test/modules/monitors is not built; "make installcheck" does that'
  unless -f "$monitors.so";

my $node = new_server(
	'breakers',
	'shared_preload_libraries' => qq('pg_admission, "$monitors"'),
	'pg_admission.sample_interval' => 100,
	'autovacuum' => 'off',
	'wal_level' => 'replica',
	'max_wal_senders' => 2);
my $app = client($node);
my $read = 'SELECT count(*) FROM t';
my $write = 'INSERT INTO t SELECT 1 WHERE false';

sub breaker
{
	my ($name, $columns) = @_;

	return admin($node)->query(
		"SELECT $columns FROM pg_admission_breakers WHERE name = '$name'")->{out};
}

sub wait_for_breaker
{
	my ($name, $columns, $expected) = @_;

	return wait_for($node,
		"SELECT $columns FROM pg_admission_breakers WHERE name = '$name'",
		$expected);
}

# The error, with the breakers that it names
sub broken_ok
{
	my ($result, $breakers, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	subtest $name => sub {
		is($result->{state}, '53A01', 'SQLSTATE');
		like(
			$result->{err},
			qr/ERROR:  53A01: system overloaded: a circuit breaker has tripped$/m,
			'MESSAGE');
		like(
			$result->{err},
			qr/^DETAIL:  label=SystemOverloadedError retryable=no reason=breaker running=\d+ queued=\d+ queue_capacity=-?\d+ retry_after_ms=\d+ Tripped: $breakers\.$/m,
			'DETAIL');
		like($result->{err}, qr/^HINT:  reason=breaker retry_after_ms=\d+ /m, 'HINT');
	};
	return;
}

sub log_has
{
	my ($pattern, $times, $name) = @_;
	my @found;

	# The sampler shows what has changed before it logs that.
	wait_until(
		sub {
			@found = slurp_file($node->logfile) =~ /$pattern/gm;
			return @found >= $times;
		});
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is(scalar @found, $times, $name);
	return;
}

# What there is

is( admin($node)->query(
		'SELECT name, threshold, tripped, warn_only, statements, trips FROM pg_admission_breakers ORDER BY name')->{out},
	join("\n",
		'connections|0|f|f|{read,write}|0',
		'cpu|0|f|f|{read}|0',
		'fed|10|f|f|{read}|0',
		'load_average|0|f|f|{read}|0',
		'memory|0|f|f|{read}|0',
		'replication_lag|0|f|f|{write}|0'),
	'built-in breakers and monitors are shown');
log_has(qr/monitor "memory" is ignored: its name is that of a built-in/, 1,
	'a monitor with a built-in name is ignored, and said to be');
log_has(qr/monitor "a name that is longer.*" is ignored: its name is missing or too long/, 1,
	'likewise one whose name is too long');
log_has(qr/monitor "idle" is ignored: it has no callback/, 1,
	'likewise one without a callback');

# The values of a monitor

my $fed = $node->data_dir . '/fed';

sub feed
{
	my ($text) = @_;

	append_to_file("$fed.new", $text);
	rename "$fed.new", $fed or die "could not rename: $!";
	return;
}

is(breaker('fed', 'value IS NULL, tripped'), 't|f',
	'a monitor without a value is unknown, and does not trip');
feed(9.5);
ok(wait_for_breaker('fed', 'value, tripped', '9.5|f'), 'under the threshold');
succeeds_ok($app->query($read), 10, 'queries run');
feed(10);
ok(wait_for_breaker('fed', 'value, tripped, trips, last_tripped_at IS NOT NULL', '10|t|1|t'),
	'it trips at the threshold');
broken_ok($app->query($read), '"fed" \(value 10, threshold 10\)', 'a read is refused');
succeeds_ok($app->query($write), '', 'a write is not');
succeeds_ok($app->query('SELECT i FROM t WHERE false FOR UPDATE'), '', 'SELECT FOR UPDATE is a write');
succeeds_ok($app->query('SELECT * FROM (SELECT i FROM t WHERE false FOR UPDATE) s'), '',
	'so is one that does so below its top level');
succeeds_ok($app->query('WITH w AS (DELETE FROM t WHERE false RETURNING i) SELECT * FROM w'), '',
	'so is a modifying WITH');
succeeds_ok($app->query('CREATE TEMP TABLE made AS SELECT i FROM t WHERE false'), '',
	'so is a query whose rows go into a new table');
is( $app->query(
		"SELECT verdict FROM pg_admission_estimate('EXPLAIN ANALYZE CREATE TABLE made AS SELECT i FROM t')")->{out},
	'run', 'and estimated as such');
is($app->query('COPY t TO STDOUT')->{state}, '53A01', 'COPY TO is a read');
is($app->query("PREPARE p AS $read; EXECUTE p")->{state}, '53A01', 'so is a prepared one');
succeeds_ok($app->query('SELECT 1'), 1, 'what is exempt runs');
succeeds_ok($app->query('BEGIN; INSERT INTO t SELECT 1 WHERE false; SELECT count(*) FROM t; COMMIT'), 10,
	'a later query of a transaction is not refused');
feed(9.1);
ok(wait_for_breaker('fed', 'value, tripped', '9.1|t'), 'it does not clear at once');
feed(9);
ok(wait_for_breaker('fed', 'value, tripped', '9|f'), 'but at 10 % below');
succeeds_ok($app->query($read), 10, 'and queries run');
feed(11);
ok(wait_for_breaker('fed', 'tripped, trips', 't|2'), 'it trips again');
feed('nonsense');
ok(wait_for_breaker('fed', 'value IS NULL, tripped', 't|f'),
	'it clears when its value becomes unknown');
log_has(qr/circuit breaker "fed" has cleared\n.*DETAIL:  Its value is unknown/, 1,
	'and says so');
feed(11);
ok(wait_for_breaker('fed', 'tripped, trips', 't|3'), 'it trips again');
my $sampler = status($node, 'sampler_pid');
feed('error');
ok(wait_for_breaker('fed', 'value IS NULL, tripped', 't|f'),
	'it clears when its callback raises an error');
my $number = admin($node)->query('SELECT count(*) FROM pg_admission_load')->{out};
ok(wait_for($node, "SELECT count(*) > $number + 3 FROM pg_admission_load"), 'samples go on');
log_has(qr/value of circuit breaker "fed" could not be read: fed with an error/, 1,
	'the error is logged once');
is(status($node, 'sampler_pid'), $sampler, 'by the same sampler');
log_has(qr/WARNING:  circuit breaker "fed" has tripped/, 3, 'each trip is logged once');
unlink $fed;

# The built-in ones, by thresholds that are always passed

reload_with($node, { 'pg_admission.memory_breaker_threshold' => 0.0001 });
ok(wait_for_breaker('memory', 'tripped, value BETWEEN 0.0001 AND 1, trips', 't|t|1'),
	'the memory breaker trips');
broken_ok($app->query($read), '"memory" \(value 0\.\d+, threshold 0\.0001\)', 'it refuses');
feed(20);
ok(wait_for_breaker('fed', 'tripped'), 'so does another');
broken_ok($app->query($read),
	'"memory" \(value 0\.\d+, threshold 0\.0001\), "fed" \(value 20, threshold 10\)',
	'the error lists every tripped breaker');
unlink $fed;
ok(wait_for_breaker('fed', 'tripped', 'f'), 'which clears');

reload_with($node, { 'pg_admission.memory_breaker_statements' => "'write'" });
ok(wait_for_breaker('memory', 'statements, tripped', '{write}|t'), 'it now refuses writes');
is($app->query($write)->{state}, '53A01', 'writes are refused');
succeeds_ok($app->query($read), 10, 'reads are not');
reload_with($node, { 'pg_admission.memory_breaker_statements' => "'read, write'" });
ok(wait_for_breaker('memory', 'statements', '{read,write}'), 'it now refuses both');
is($app->query($write)->{state}, '53A01', 'writes are refused');
is($app->query($read)->{state}, '53A01', 'and reads');
reload_with($node, { 'pg_admission.memory_breaker_statements' => "'reed'" });
is(breaker('memory', 'statements'), '{read,write}', 'a wrong list leaves the old in force');

my $rejected = counter($node, 'rejected_breaker');
reload_with($node, { 'pg_admission.memory_breaker_statements' => "'read'",
	'pg_admission.memory_breaker_warn_only' => 'on' });
ok(wait_for_breaker('memory', 'statements, warn_only, tripped', '{read}|t|t'),
	'it now only warns');
my $warned = breaker('memory', 'warned');
succeeds_ok($app->query($read), 10, 'the query runs');
is(breaker('memory', "warned - $warned"), 1, 'and is counted');
is(counter($node, "rejected_breaker - $rejected"), 0, 'not as refused');
reload_with($node, { 'pg_admission.memory_breaker_threshold' => 1 });
ok(wait_for_breaker('memory', 'tripped', 'f'), 'a raised threshold clears it at once');
reload_with($node, { 'pg_admission.memory_breaker_threshold' => 0,
	'pg_admission.memory_breaker_warn_only' => 'off' });
ok(wait_for_breaker('memory', 'threshold', 0), 'it is off');

# Monitors of connections and of replication lag

reload_with($node, { 'pgadm_test_monitors.connections_threshold' => 4 });
ok(wait_for_breaker('connections', 'value, tripped', '2|f'), 'two connections are counted');
my @more = map { client($node) } 1 .. 2;
ok(wait_for_breaker('connections', 'value, tripped', '4|t'), 'four trip the breaker');
broken_ok($app->query($read), '"connections" \(value 4, threshold 4\)', 'queries are refused');
$_->quit for @more;
ok(wait_for_breaker('connections', 'value, tripped', '2|f'), 'two clear it');
reload_with($node, { 'pgadm_test_monitors.connections_threshold' => 0 });

is(breaker('replication_lag', 'value IS NULL'), 't', 'lag is unknown without a standby');
SKIP:
{
	my $slow = $node->data_dir . '/../slow';
	my @receive = ('pg_receivewal', '-D', $slow, '-d', $node->connstr('postgres'),
		'-n', '--no-sync', '-s', 1);

	mkdir $slow;
	my $receiver = IPC::Run::start(\@receive, '<', '/dev/null', '>&', \my $out);
	ok(wait_for_breaker('replication_lag', 'value IS NOT NULL'), 'lag is known with one');
	my ($receiver_pid) = map { $_->{PID} } @{ $receiver->{KIDS} };
	kill 'STOP', $receiver_pid;
	admin($node)->query('CREATE TABLE big AS SELECT i FROM generate_series(1, 20000) i');
	reload_with($node, { 'pgadm_test_monitors.lag_threshold' => 100000 });
	ok(wait_for_breaker('replication_lag', 'tripped, value > 100000', 't|t'),
		'a slow standby trips the breaker');
	is($app->query($write)->{state}, '53A01', 'which refuses writes');
	succeeds_ok($app->query($read), 10, 'and no reads');
	kill 'CONT', $receiver_pid;
	reload_with($node, { 'pgadm_test_monitors.lag_threshold' => 0 });
	ok(wait_for_breaker('replication_lag', 'tripped', 'f'), 'which can be turned off');
	kill 'TERM', $receiver_pid;
	IPC::Run::finish($receiver);
}

# Tripped by hand

is($app->query("SELECT pg_admission_trip('mine', 'why', '1 hour')")->{state}, '42501',
	'who may not trip a breaker');
is($app->query("SELECT pg_admission_untrip('mine')")->{state}, '42501', 'nor clear one');
my $admin = admin($node);
is($admin->query("SELECT pg_admission_trip('$_->[0]', '$_->[1]', '$_->[2]')")->{state}, $_->[3],
	"bad input: $_->[4]")
  for (
	[ 'memory', 'why', '1 hour', '42939', 'name of a built-in one' ],
	[ 'fed', 'why', '1 hour', '42939', 'name of another extension\'s' ],
	[ '', 'why', '1 hour', '22023', 'no name' ],
	[ 'x' x 64, 'why', '1 hour', '22023', 'a name that is too long' ],
	[ 'größe', 'why', '1 hour', '22023', 'a name that is not ASCII' ],
	[ 'mine', 'why', '0', '22023', 'no duration' ],
	[ 'mine', 'why', '-1 hour', '22023', 'a negative one' ],
	[ 'mine', 'why', '400000 years', '22008', 'one without end' ]);
is($admin->query("SELECT pg_admission_trip($_)")->{state}, '22004', "bad input: $_")
  for ("NULL, 'why', '1 h'", "'mine', NULL, '1 h'", "'mine', 'why', NULL");
is($admin->query('SELECT pg_admission_untrip(NULL) IS NULL')->{out}, 't', 'nothing to clear');
is($admin->query("SELECT pg_admission_untrip('$_')")->{state}, '42939', "not to be cleared by hand: $_")
  for qw(memory fed);

is($admin->query("SELECT pg_admission_trip('mine', 'back soon', '1 hour')")->{state}, '00000',
	'an operator trips a breaker');
is(breaker('mine', "threshold, value, tripped, statements, trips, reason, expires_at > now() + '59 min'"),
	'1|1|t|{read,write}|1|back soon|t', 'it is shown');
broken_ok($app->query($read), '"mine" \(value 1, threshold 1, reason: back soon\)', 'it refuses reads');
is($app->query($write)->{state}, '53A01', 'and writes');
succeeds_ok($app->query('SELECT reason FROM pg_admission_breakers WHERE name = \'mine\''), 'back soon',
	'all may see why');
is($admin->query("SELECT pg_admission_trip('mine', 'longer', '2 hours')")->{state}, '00000',
	'it is prolonged');
is(breaker('mine', "trips, reason, expires_at > now() + '119 min'"), '1|longer|t', 'and says so');
is($admin->query("SELECT pg_admission_trip('mine', repeat('ä', 1000), '2 hours')")->{state}, '00000',
	'a reason may be long');
is(breaker('mine', 'reason = repeat(\'ä\', 127)'), 't', 'and is cut between characters');

# A reason is shown in databases of other encodings, and to clients that expect
# one of those, without what is not in all of them

$admin->query("CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0");
my $latin = client($node, user => undef, dbname => 'latin');
is($latin->query(q{CREATE EXTENSION pg_admission; SELECT pg_admission_trip('mine', U&'gro\00dfer Umbau', '2 hours')})->{state},
	'00000', 'a reason in another encoding');
is(breaker('mine', 'reason'), 'gro?er Umbau', 'is shown in this one');
$app->query("SET client_encoding = 'LATIN1'");
broken_ok($app->query($read), '"mine" \(value 1, threshold 1, reason: gro\?er Umbau\)', 'and to clients');
$app->query('RESET client_encoding');
$latin->quit;

is($admin->query("SELECT pg_admission_untrip('nobody'), pg_admission_untrip('mine'), pg_admission_untrip('mine')")->{out},
	'f|t|f', 'it is cleared');
succeeds_ok($app->query($read), 10, 'queries run');
is(breaker('mine', 'tripped, value, reason IS NULL, expires_at IS NULL, trips'), 'f|0|t|t|1',
	'it is still shown');

$app->query('SET statement_timeout = 0');
is($admin->query("SELECT pg_admission_trip('mine', 'short', '300 ms')")->{state}, '00000',
	'tripped for a short time');
ok(wait_for_breaker('mine', 'tripped, trips', 'f|2'), 'it expires by itself');
succeeds_ok($app->query($read), 10, 'and queries run');

# Expiry does not depend on the sampler, nor does what is tripped by hand

feed(20);
ok(wait_for_breaker('fed', 'tripped'), 'a monitor has tripped');
my $pid = status($node, 'sampler_pid');
kill 'STOP', $pid;
ok(wait_for($node, 'SELECT cpu_utilization IS NULL AND memory_usage IS NULL FROM pg_admission_status'),
	'values are unknown while the sampler is stopped');
is(breaker('fed', 'value IS NULL, tripped'), 't|f', 'so is the value of a breaker, which does not trip');
succeeds_ok($app->query($read), 10, 'and refuses nothing');
$admin->query("SELECT pg_admission_trip('mine', 'while stopped', '1 hour')");
broken_ok($app->query($read), '"mine" \(value 1, threshold 1, reason: while stopped\)',
	'only the operator\'s does');
$admin->query("SELECT pg_admission_trip('mine', 'short', '1 ms')");
ok(wait_for_breaker('mine', 'tripped, expires_at IS NULL', 'f|t'), 'it expires without the sampler');
succeeds_ok($app->query($read), 10, 'and queries run');
$admin->query("SELECT pg_admission_trip('mine', 'again', '1 hour')");
is(breaker('mine', 'tripped, trips'), 't|4', 'a new trip is counted');
$admin->query("SELECT pg_admission_untrip('mine')");
kill 'CONT', $pid;
ok(wait_for_breaker('fed', 'tripped, value', 't|20'), 'the sampler goes on');

# All that refuse are told, whoever they belong to

reload_with($node, { 'pg_admission.memory_breaker_threshold' => 0.0001 });
ok(wait_for_breaker('memory', 'tripped'), 'a built-in breaker has tripped as well');
$admin->query("SELECT pg_admission_trip('mine', 'works', '1 hour')");
broken_ok($app->query($read),
	'"memory" \(value 0\.\d+, threshold 0\.0001\), "fed" \(value 20, threshold 10\), "mine" \(value 1, threshold 1, reason: works\)',
	'an error lists a built-in, a monitor\'s and an operator\'s');
broken_ok($app->query($write), '"mine" \(value 1, threshold 1, reason: works\)',
	'but none that refuses only other statements');
$admin->query("SELECT pg_admission_untrip('mine')");
reload_with($node, { 'pg_admission.memory_breaker_threshold' => 0 });
ok(wait_for_breaker('memory', 'threshold, tripped', '0|f'), 'the built-in one is off');

# As many as there is room for

is( $admin->query(
		"SELECT count(pg_admission_trip('b' || i, 'why', '1 hour')) FROM generate_series(1, 25) i")->{out},
	25, 'many may be tripped');
is($admin->query("SELECT pg_admission_trip('b26', 'why', '1 hour')")->{state}, '00000',
	'one that has cleared makes room');
is($admin->query("SELECT pg_admission_trip('b27', 'why', '1 hour')")->{state}, '53400', 'but not too many');
is($app->query($write)->{err} =~ s/"b\d+" \(//g, 26, 'an error lists them all');
is($admin->query("SELECT bool_and(pg_admission_untrip(name)) FROM pg_admission_breakers WHERE name ~ '^b'")->{out},
	't', 'all are cleared');

# In mode observe all is counted only

reload_with($node, { 'pg_admission.mode' => 'observe' }, 'mode', 'observe');
$admin->query('SELECT pg_admission_reset()');
succeeds_ok($app->query($read), 10, 'mode observe refuses nothing');
is(counter($node, 'submitted, admitted, rejected, would_have_rejected, would_have_waited'), '1|1|0|1|0',
	'but counts it');
reload_with($node, { 'pg_admission.mode' => 'enforce' }, 'mode', 'enforce');
unlink $fed;

server_is_idle($node);
$node->stop;

# The other order of libraries

$node->append_conf('postgresql.conf', qq(shared_preload_libraries = '"$monitors", pg_admission'\n));
$node->start;
ok(wait_for_breaker('fed', 'threshold', 10), 'a monitor may be registered before pg_admission is loaded');
feed(10);
ok(wait_for_breaker('fed', 'tripped'), 'it trips, too');

done_testing();
