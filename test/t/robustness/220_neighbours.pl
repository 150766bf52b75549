# A full queue and what else a server does: a standby and its promotion, logical
# replication, autovacuum, base backups, parallel index builds.  None of these
# is subject to admission or held up by the queue.

use strict;
use warnings;

use PgAdmission;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $count = 'SELECT count(*) FROM t';

# ---- the primary ----------------------------------------------------------

my $primary = new_server(
	'primary',
	'wal_level' => 'logical',
	'max_wal_senders' => 5,
	'autovacuum_naptime' => '1s',
	'deadlock_timeout' => "'200ms'",
	'pg_admission.queue_timeout' => 0);

admin($primary)->query('CREATE TABLE u AS SELECT i FROM generate_series(1, 10) i; GRANT SELECT ON u TO app');

my @holders = occupy($primary, 2);
my $queued = queue_up($primary, client($primary), $count);

# Base backup, with a full queue
my $backup = 'backup';
$primary->backup($backup);
pass('pg_basebackup');

# Autovacuum
admin($primary)->query(q{
	CREATE TABLE dirty (i int) WITH (autovacuum_vacuum_threshold = 1, autovacuum_vacuum_scale_factor = 0);
	INSERT INTO dirty SELECT generate_series(1, 1000);
	DELETE FROM dirty;
});
ok(wait_for($primary, q(SELECT autovacuum_count > 0 FROM pg_stat_user_tables WHERE relname = 'dirty')),
	'autovacuum');

# A parallel index build, by somebody exempt
succeeds_ok(admin($primary)->query(q{
	CREATE TABLE large AS SELECT i FROM generate_series(1, 200000) i;
	ALTER TABLE large SET (parallel_workers = 2);
	SET maintenance_work_mem = '128MB';
	CREATE INDEX ON large (i)}), '', 'a parallel index build');

# Logical replication: the apply worker of a subscriber with a full queue
admin($primary)->query(q{
	CREATE TABLE replicated (i int PRIMARY KEY);
	CREATE PUBLICATION p FOR TABLE replicated});
{
	my $subscriber = new_server('subscriber', 'pg_admission.queue_timeout' => 0);
	my $connstr = $primary->connstr('postgres');

	# It is put into quotes.
	$connstr =~ s/'/''/g;
	my @busy = occupy($subscriber, 2);
	my $waiting = queue_up($subscriber, client($subscriber), $count);
	admin($subscriber)->query('CREATE TABLE replicated (i int PRIMARY KEY)');
	is(admin($subscriber)->query("CREATE SUBSCRIPTION s CONNECTION '$connstr' PUBLICATION p")->{state},
		'00000', 'a subscription');
	admin($primary)->query('INSERT INTO replicated SELECT generate_series(1, 100)');
	ok(wait_for($subscriber, 'SELECT count(*) FROM replicated', 100), 'logical replication is applied');
	admin($subscriber)->query('DROP SUBSCRIPTION s');
	release($subscriber, @busy);
	succeeds_ok($waiting->finish, 10, 'the queue of the subscriber goes on');
	server_is_idle($subscriber, 'the subscriber is idle');
	$subscriber->stop;
}

# ---- the standby ----------------------------------------------------------

my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, $backup, has_streaming => 1);
$standby->append_conf('postgresql.conf', "max_standby_streaming_delay = -1\n");
$standby->start;
$primary->wait_for_catchup($standby);

my @far_holders = occupy($standby, 2);
my $far_queued = queue_up($standby, client($standby), 'SELECT count(*) FROM u');

# The startup process wants a lock that a queued query holds, and would wait for
# ever; who comes later waits behind it.
admin($primary)->query('ALTER TABLE u ADD COLUMN x int');
succeeds_ok($far_queued->finish, 10, 'a queued query does not hold up recovery');
$primary->wait_for_catchup($standby);
pass('the standby has caught up');
is(counter($standby, 'forced'), 1, 'it was forced');

# Promotion with a full queue
$far_queued = queue_up($standby, client($standby), $count);
$standby->promote;
ok(wait_for($standby, 'SELECT NOT pg_is_in_recovery()'), 'the standby is promoted');
is(status($standby, 'running, queued'), '2|1', 'the queue does not mind');
release($standby, @far_holders);
succeeds_ok($far_queued->finish, 10, 'and goes on');
is(client($standby)->query('CREATE TABLE v AS SELECT i FROM t')->{state}, '00000', 'and writes');
server_is_idle($standby, 'the standby is idle');

release($primary, @holders);
succeeds_ok($queued->finish, 10, 'the queue of the primary goes on');
server_is_idle($primary, 'the primary is idle');

done_testing();
