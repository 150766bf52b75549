# Refusals do not flood the server log, and nothing else is kept out of it.

use strict;
use warnings;

use PgAdmission;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('log',
	'pg_admission.queue_capacity' => 0,
	'pg_admission.log_interval' => "'1h'",
	'log_line_prefix' => "'%m [%p] %b [%u/%d/%a] %e '",
	'log_statement' => 'none',
	'log_min_messages' => 'warning',
	'log_min_error_statement' => 'error');
my $count = 'SELECT count(*) FROM t';
my @holders = occupy($node, 2);
my $app = client($node);
my $offset;

# What has been written to the log since the last call
sub new_log
{
	my $log = slurp_file($node->logfile, $offset);

	$offset += length $log;
	return $log;
}

# Wait until an interval has passed and a sample was taken since
sub after_a_sample
{
	my $sampled = status($node, 'sampled_at');

	return wait_for($node,
		"SELECT sampled_at > '$sampled'::timestamptz + '2 seconds' FROM pg_admission_status");
}

sub refuse
{
	my ($n) = @_;
	my $result = $app->query("$count;\n" x $n);

	is(() = $result->{err} =~ /ERROR:  53A01: /g, $n, "the client gets $n errors");
	return;
}

# A summary, by default

$offset = -s $node->logfile;
refuse(1000);
is(counter($node, 'rejected_queue_full'), 1000, 'all are counted');
$node->wait_for_log(qr/refused \d+ request/, $offset);
my $log = new_log();
my @lines = split /\n/, $log;
cmp_ok(scalar @lines, '<=', 3, 'at most 3 lines are logged') or diag $log;
my ($first) = $log =~
  /pg_admission sampler \[\/\/\] 53A01 LOG:  .*refused (\d+) requests?: queue_full=\g1$/m;
cmp_ok($first, '>', 0, 'a summary tells what was refused, with the SQLSTATE, and without a user')
  or diag $log;
unlike($log, qr/ERROR|STATEMENT|\Q$count\E/, 'no error is logged');

# The rest of them is not forgotten

refuse(5);
my $owed = 1005 - $first;
reload_with($node, { 'pg_admission.log_interval' => "'100ms'" });
$node->wait_for_log(qr/refused $owed requests.*queue_full=$owed/, $offset);
ok(1, 'the sampler writes what is still owed');

# While there is no sampler, who is refused writes it, to the log and not to its
# client

my $sampler = status($node, 'sampler_pid');
my $to_client = '';
new_log();
$app->query('SET client_min_messages = debug1');
kill 'STOP', $sampler;
ok( wait_until(
		sub {
			$to_client .= $app->query($count)->{err};
			new_log() =~ / client backend \[app.* 53A01 LOG:  .*refused \d+ request/;
		}),
	'without the sampler, a backend writes the summary');
kill 'CONT', $sampler;
unlike($to_client, qr/refused/, 'a client does not get it');
$app->query('RESET client_min_messages');

# All

reload_with($node, { 'pg_admission.log_rejections' => 'all' });
after_a_sample();
new_log();
refuse(3);
after_a_sample();
$log = new_log();
is(() = $log =~ /ERROR:  system overloaded/g, 3, 'all: every error is logged');
is(() = $log =~ /STATEMENT:  \Q$count\E/g, 3, 'all: with its statement');
unlike($log, qr/refused \d+ request/, 'all: no summary');

# None

reload_with($node, { 'pg_admission.log_rejections' => 'none' });
new_log();
refuse(3);
after_a_sample();
is(() = new_log() =~ /system overloaded|refused \d+ request/g, 0, 'none: nothing is logged');

# A summary again: it does not tell what was to be told to nobody, or is
# already known

reload_with($node, { 'pg_admission.log_rejections' => 'summary' });
refuse(2);
after_a_sample();
my $told = 0;
$log = new_log();
$told += $1 while $log =~ /refused (\d+) request/g;
is($told, 2, 'summary: only what was refused since');

# Errors of others are logged as ever, also those with our SQLSTATE

new_log();
$app->query(q{DO $$ BEGIN RAISE 'not ours' USING ERRCODE = '53A01'; END $$});
$app->query('SELECT 1/0');
$log = new_log();
like($log, qr/ERROR:  not ours/, 'SQLSTATE 53A01 raised by a function is logged');
like($log, qr/ERROR:  division by zero/, 'other errors are logged');

# Errors that others make of ours

$app->query(
	q{DO $$
	BEGIN
		PERFORM count(*) FROM t;
	EXCEPTION WHEN insufficient_resources THEN
		RAISE EXCEPTION 'wrapped: %', SQLERRM USING ERRCODE = SQLSTATE;
	END $$});
like(new_log(), qr/ERROR:  wrapped: system overloaded/, 'a wrapped error is logged');

# 54A01 is summarized as well

admin($node)->query(q{
	CREATE ROLE big LOGIN;
	GRANT SELECT ON t TO big;
	ALTER ROLE big SET pg_admission.query_workers = 3;
});
release($node, shift @holders);
after_a_sample();
new_log();
is(client($node, user => 'big')->query($count)->{state}, '54A01', 'a query exceeds the budget');
$node->wait_for_log(qr/refused 1 request.*workers=1/, $offset);
unlike(new_log(), qr/exceeds the worker budget/, 'it is summarized, too');

# A cancel while queued is logged, as PostgreSQL does

push @holders, occupy($node, 1);
reload_with($node, { 'pg_admission.queue_capacity' => 1 }, 'queue_capacity', 1);
queue_up($node, $app, $count);
admin($node)->query("SELECT pg_cancel_backend($app->{pid})");
cancelled_ok($app->finish, 'canceling statement due to user request', 'cancelled while queued');
like(new_log(), qr/ERROR:  canceling statement due to user request/, 'which is logged');

release($node, @holders);
server_is_idle($node);
done_testing();
