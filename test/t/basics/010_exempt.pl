# Who and what is not subject to admission, and modes of roles and databases.

use strict;
use warnings;

use PgAdmission;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('exempt', 'pg_admission.queue_capacity' => 0,
	'pg_admission.log_rejections' => 'none');
my $count = 'SELECT count(*) FROM t';

admin($node)->query(q{
	CREATE ROLE watcher LOGIN IN ROLE pg_monitor;
	CREATE ROLE vip;
	CREATE ROLE member LOGIN IN ROLE vip;
	CREATE ROLE "Odd, name" LOGIN;
	CREATE ROLE passer LOGIN;
	ALTER ROLE passer SET pg_admission.bypass = on;
	CREATE ROLE canary LOGIN;
	ALTER ROLE canary SET pg_admission.mode = enforce;
	CREATE ROLE free LOGIN;
	ALTER ROLE free SET pg_admission.mode = off;
	CREATE ROLE boss LOGIN SUPERUSER;
	GRANT SELECT ON t, held TO PUBLIC;
	CREATE DATABASE quiet;
	ALTER DATABASE quiet SET pg_admission.mode = observe;
	CREATE FUNCTION by_owner() RETURNS bigint SECURITY DEFINER LANGUAGE plpgsql AS 'BEGIN RETURN (SELECT count(*) FROM public.t); END';
});
$node->safe_psql('quiet', 'CREATE TABLE t AS SELECT generate_series(1, 10); GRANT SELECT ON t TO PUBLIC');
my @holders = occupy($node, 2);

# Runs a query of a client; it must pass, counted in that column, or be
# refused.
sub passes
{
	my ($client, $column, $name, $sql) = @_;
	my $before = counter($node, $column);

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is($client->query($sql || $count)->{state}, '00000', "$name: passes");
	is(counter($node, "$column > $before"), 't', "$name: is counted as $column");
	return;
}

sub is_refused
{
	my ($client, $name, $sql) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is($client->query($sql || $count)->{state}, '53A01', "$name: is refused");
	return;
}

my $app = client($node);
is_refused($app, 'an ordinary role');

# Superusers

my $boss = client($node, user => 'boss');
passes($boss, 'bypassed_superuser', 'a superuser');
$boss->query('SET ROLE app');
passes($boss, 'bypassed_superuser', 'a superuser in another role');
$boss->query('RESET ROLE; SET SESSION AUTHORIZATION app');
is_refused($boss, 'a superuser that has become somebody else');
is_refused($app, "somebody in a superuser's function", 'SELECT by_owner()');

# Roles

passes(client($node, user => 'watcher'), 'bypassed_role', 'a member of pg_monitor');
my $member = client($node, user => 'member');
is_refused($member, 'a member of some role');
reload_with($node, { 'pg_admission.exempt_roles' => q{'vip, "Odd, name", nobody'} });
passes($member, 'bypassed_role', 'a member of an exempt role');
passes(client($node, user => 'Odd, name'), 'bypassed_role', 'an exempt role itself');
is_refused(client($node, user => 'watcher'), 'who is exempt no more');
admin($node)->query('REVOKE vip FROM member');
is_refused($member, 'whose membership was revoked');
admin($node)->query('GRANT vip TO member');
passes($member, 'bypassed_role', 'whose membership was granted');

# A lookup that fails is no answer

my $locker = client($node, user => undef);
admin($node)->query('GRANT vip TO passer');
$locker->query('BEGIN; LOCK pg_auth_members');
$member->query('SET statement_timeout = 100');
is($member->query($count)->{state}, '57014', 'the membership cannot be looked up');
$locker->query('ROLLBACK');
$member->query('RESET statement_timeout');
passes($member, 'bypassed_role', 'a member, after that');

# The owner of the database is a member without being granted it

reload_with($node, { 'pg_admission.exempt_roles' => 'pg_database_owner' });
is_refused($member, 'who does not own the database');
admin($node)->query('ALTER DATABASE postgres OWNER TO member');
passes($member, 'bypassed_role', 'its owner');
admin($node)->query('ALTER DATABASE postgres OWNER TO CURRENT_USER');
is_refused($member, 'its former owner');
reload_with($node, { 'pg_admission.exempt_roles' => q{''} });
is_refused($member, 'without any exempt role');

# Bypass, for a role and for a session

passes(client($node, user => 'passer'), 'bypassed_setting', 'a role that bypasses');
my $session = client($node, user => undef);
$session->query('SET pg_admission.bypass = on; SET SESSION AUTHORIZATION app');
passes($session, 'bypassed_setting', 'a session that bypasses');

# Cost

reload_with($node, { 'pg_admission.exempt_cost' => 100 });
passes($app, 'bypassed_cost', 'a cheap query');
is_refused($app, 'an expensive query', 'SELECT count(*) FROM t a, t b, t c, t d');
reload_with($node, { 'pg_admission.exempt_cost' => 0 });
is_refused($app, 'a cheap query, if cost does not count');

# No relation of a user

passes($app, 'bypassed_no_relation', $_, $_)
  for 'SELECT 1', 'SELECT now()', 'VALUES (1), (2)',
  'SELECT * FROM pg_class', 'SELECT count(*) FROM information_schema.tables',
  'SELECT * FROM pg_stat_activity', 'SELECT * FROM pg_admission_queries',
  'SELECT usename FROM pg_user', 'SELECT sum(i) FROM generate_series(1, 1000) i',
  q{SELECT n.nspname, c.relname, pg_get_userbyid(c.relowner) FROM pg_class c LEFT JOIN pg_namespace n ON n.oid = c.relnamespace WHERE pg_table_is_visible(c.oid) ORDER BY 1, 2};
is_refused($app, $_, $_)
  for 'SELECT count(*) FROM generate_series(1, 1000000000)',
  'SELECT count(*) FROM generate_series(1, 1e9)',
  'SELECT count(*) FROM (SELECT generate_series(1, 1e9) UNION ALL SELECT 1) s',
  q{SELECT (SELECT count(*) FROM generate_series('epoch'::timestamptz, now(), '1 us'))},
  'SELECT count(*) FROM pg_class a, pg_class b, pg_class c',
  'SELECT 1 WHERE EXISTS (SELECT FROM t)', 'WITH x AS (SELECT * FROM t) SELECT 1 FROM x',
  'SELECT * FROM pg_class WHERE EXISTS (SELECT FROM t WHERE i = relpages)',
  'SELECT (SELECT max(i) FROM t)', 'INSERT INTO t VALUES (1)', 'DELETE FROM t',
  'TABLE t', 'CREATE TABLE x AS TABLE t', 'CREATE INDEX ON t (i)', 'VACUUM t', 'ANALYZE t';

# What is not subject to admission at all

my $submitted = counter($node, 'submitted + bypassed');
my $other = client($node);
$submitted = counter($node, 'submitted + bypassed');
foreach my $sql ('BEGIN', 'SAVEPOINT a', 'ROLLBACK TO a', "SET LOCAL work_mem = '1MB'",
	'SHOW work_mem', "PREPARE p AS $count", "EXPLAIN $count", 'LOCK TABLE t IN ACCESS SHARE MODE',
	'COMMIT', 'CREATE TABLE made (i int)', 'DROP TABLE made', 'LISTEN x', 'DISCARD ALL')
{
	is($other->query($sql)->{state}, '00000', "$sql: passes");
}
is(counter($node, "submitted + bypassed - $submitted <= 16"), 't',
	'those are not counted, but for the reading of statistics');

# Modes of roles and databases, and of the server

succeeds_ok(client($node, user => 'free')->query($count), 10, 'mode = off for a role');
my $would = counter($node, 'would_have_rejected');
succeeds_ok(client($node, dbname => 'quiet')->query($count), 10, 'mode = observe for a database');
is(counter($node, 'would_have_rejected') - $would, 1, 'what would have been refused is counted');

reload_with($node, { 'pg_admission.mode' => 'observe' }, 'mode', 'observe');
my $rejected = counter($node, 'rejected');
succeeds_ok($app->query($count), 10, 'mode = observe for the server');
is(counter($node, 'rejected') - $rejected, 0, 'nothing is refused');
is_refused(client($node, user => 'canary'), 'mode = enforce for a role');

# In mode observe the same numbers come out as would in enforce

reload_with($node, { 'pg_admission.queue_capacity' => 2 }, 'queue_capacity', 2);
admin($node)->query('SELECT pg_admission_reset()');
my @more = map { client($node) } 1 .. 4;
foreach my $client (@more)
{
	$client->start('SELECT pg_sleep(3600) FROM t LIMIT 1');
	wait_for($node, "SELECT state FROM pg_admission_queries WHERE pid = $client->{pid}", 'running');
}
is(counter($node, 'submitted, admitted, would_have_waited, would_have_rejected, waited, rejected'),
	'4|4|2|2|0|0', 'observe: two would have waited, and two been refused');
is(status($node, 'running, queued, workers_used'), '6|0|6', 'observe: all of them run');
release($node, @more);

reload_with($node, { 'pg_admission.mode' => 'off' }, 'mode', 'off');
$submitted = counter($node, 'submitted');
succeeds_ok($app->query($count), 10, 'mode = off for the server');
is(counter($node, 'submitted') - $submitted, 0, 'nothing is counted');
is_refused(client($node, user => 'canary'), 'mode = enforce for a role, still')
  if reload_with($node, { 'pg_admission.queue_capacity' => 0 }, 'queue_capacity', 0);

release($node, @holders);
server_is_idle($node);

# exempt_superuser = off: also the superuser is subject to admission, who can
# still bypass it to look

$node->append_conf('postgresql.conf', "pg_admission.exempt_superuser = off\npg_admission.mode = enforce\n");
$node->restart;
@holders = map { client($node, options => '-c statement_timeout=0') } 1, 2;
$_->start('SELECT pg_sleep(3600) FROM t LIMIT 1') for @holders;
wait_for($node, 'SELECT running FROM pg_admission_status', 2);
$boss = client($node, user => 'boss');
is_refused($boss, 'a superuser with exempt_superuser = off');
$boss->query('SET pg_admission.bypass = on');
succeeds_ok($boss->query($count), 10, 'but can bypass admission');
release($node, @holders);
server_is_idle($node, 'idle with exempt_superuser = off');

done_testing();
