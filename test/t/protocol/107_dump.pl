# pg_dump and pg_restore as an ordinary role, while the server is busy.

use strict;
use warnings;

use PgAdmission;
use PgAdmissionKinds;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('dump', 'pg_admission.queue_capacity' => 1);
my $dump = $node->basedir . '/dump';

admin($node)->query('CREATE DATABASE source OWNER app; CREATE DATABASE target OWNER app');
my $source = client($node, dbname => 'source');
succeeds_ok(
	$source->query(
		q{CREATE TABLE a (i int PRIMARY KEY, s text);
		  INSERT INTO a SELECT i, repeat('x', i % 50) FROM generate_series(1, 2000) i;
		  CREATE TABLE b (i int REFERENCES a);
		  INSERT INTO b SELECT i FROM a;
		  CREATE INDEX ON b (i);
		  CREATE MATERIALIZED VIEW m AS SELECT count(*) FROM b}),
	'', 'set up');

my @connection = ('-h', $node->host, '-p', $node->port, '-U', 'app', '-w');

# On a server with no place in the queue, pg_dump fails like anybody else, and
# says why.

my @holders = occupy($node, 2);
my $waiter = queue_up($node, client($node), 'SELECT count(*) FROM t');
command_fails_like(
	[ 'pg_dump', @connection, '-Fd', '-f', "$dump.refused", 'source' ],
	qr/system overloaded: admission queue is full/,
	'pg_dump is refused when the queue is full');
command_fails_like(
	[ 'pg_dump', @connection, '-Fd', '-j', '2', '-f', "$dump.refused2", 'source' ],
	qr/system overloaded: admission queue is full/,
	'so is pg_dump -j');
wait_for($node, "SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'pg_dump'");
is(status($node, 'running, queued'), '2|1', 'they leave nothing behind');
release($node, @holders);
$waiter->finish;

# With a queue, dump and restore wait and get through while others keep the
# server busy all the time.

reload_with($node, { 'pg_admission.queue_capacity' => 50 }, 'queue_capacity', 50);
my @busy = map { client($node) } 1 .. 4;
$_->start(q{SELECT sum(length(repeat('x', a.i * b.i * c.i * d.i))) FROM t a, t b, t c, t d} . " \\watch 0.001\n;") for @busy;
wait_for($node, 'SELECT queued > 0 FROM pg_admission_status');

command_ok([ 'pg_dump', @connection, '-Fd', '-j', '2', '-f', $dump, 'source' ], 'pg_dump -j on a busy server');
command_ok([ 'pg_restore', @connection, '-j', '3', '-d', 'target', $dump ], 'pg_restore -j on a busy server');
cmp_ok(counter($node, 'waited'), '>', 0, 'somebody had to wait');
$_->vanish for @busy;

my $target = client($node, dbname => 'target');
succeeds_ok(
	$target->query(
		q{SELECT count(*), sum(length(s)) FROM a; SELECT count(*) FROM b; SELECT count FROM m;
		  SELECT count(*) FROM pg_constraint WHERE conrelid IN ('a'::regclass, 'b'::regclass)}),
	$source->query('SELECT count(*), sum(length(s)) FROM a')->{out} . "\n2000\n2000\n2", 'everything is there');

# In one transaction, and by psql
admin($node)->query('CREATE DATABASE target2 OWNER app');
command_ok([ 'pg_restore', @connection, '-1', '-d', 'target2', $dump ], 'pg_restore -1');
admin($node)->query('CREATE DATABASE target3 OWNER app');
command_ok([ 'pg_dump', @connection, '-f', "$dump.sql", 'source' ], 'pg_dump of a script');
command_ok([ 'psql', '-X', '-q', '-1', '-v', 'ON_ERROR_STOP=1', @connection, '-f', "$dump.sql", 'target3' ], 'psql -1 -f');

server_is_idle($node);
done_testing();
