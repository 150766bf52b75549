# pg_admission.enabled: off is off for all, at once, whatever else is set.

use strict;
use warnings;

use PgAdmission;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('switch', 'pg_admission.mode' => 'observe', 'pg_admission.queue_capacity' => 5);
my $count = 'SELECT count(*) FROM t';

sub switch
{
	my ($value) = @_;

	admin($node)->query("ALTER SYSTEM SET pg_admission.enabled = $value");
	admin($node)->query('SELECT pg_reload_conf()');
	return;
}

admin($node)->query(q{
	CREATE ROLE strict LOGIN IN ROLE app;
	ALTER ROLE strict SET pg_admission.mode = 'enforce';
});

# Queued in sessions with a mode of their own: they run at once

my @holders = occupy($node, 2, user => 'strict');
my $waiting = queue_up($node, client($node, user => 'strict'), $count);
my $next = queue_up($node, client($node, user => 'strict'), $count);
switch('off');
succeeds_ok($_->finish, 10, 'who is queued runs') for $waiting, $next;
is(status($node, 'mode'), 'off', 'the status shows it');
ok(wait_for($node, 'SELECT running FROM pg_admission_status', 2), 'what ran before is still charged');

# Nothing refuses, charges or counts from then on

my $before = counter($node, 'submitted');
admin($node)->query(q{SELECT pg_admission_trip('by hand', 'test', '1 hour')});
succeeds_ok($waiting->query($count), 10, 'a breaker refuses nothing');
succeeds_ok($waiting->query("BEGIN; $count; COMMIT"), 10, 'nor in a transaction');
is(counter($node, 'submitted'), $before, 'nothing is counted');
is($waiting->query("SELECT verdict, reason FROM pg_admission_estimate('$count')")->{out},
	'bypass|mode', 'as an estimate says');

# And back again

switch('on');
ok(wait_for($node, 'SELECT mode FROM pg_admission_status', 'observe'), 'the mode is as before');
is($waiting->query($count)->{state}, '53A01', 'and the breaker refuses again');
admin($node)->query(q{SELECT pg_admission_untrip('by hand')});
queue_up($node, $waiting, $count);
release($node, @holders);
succeeds_ok($waiting->finish, 10, 'and queries wait again');

server_is_idle($node);
done_testing();
