# Bad settings are reported, and the server starts and reloads all the same.

use strict;
use warnings;

use PgAdmission;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('settings');
my $offset = 0;

# Every setting, with a value that it does not take, and its default

my %bad = (
	'pg_admission.mode' => [ 'enforced', 'observe' ],
	'pg_admission.load_shedding' => [ 'maybe', 'managed' ],
	'pg_admission.queue_capacity' => [ -2, -1 ],
	'pg_admission.queue_timeout' => [ -1, '30s' ],
	'pg_admission.oversize' => [ 'grow', 'reject' ],
	'pg_admission.cores' => [ -1, 0 ],
	'pg_admission.cores_multiplier' => [ 0, 3 ],
	'pg_admission.total_memory' => [ -1, 0 ],
	'pg_admission.memory_fraction' => [ 75, 0.5 ],
	'pg_admission.query_memory' => [ "'lots'", 0 ],
	'pg_admission.query_workers' => [ -1, 0 ],
	'pg_admission.exempt_superuser' => [ 'perhaps', 'on' ],
	'pg_admission.exempt_roles' => [ "'a,,b'", 'pg_monitor' ],
	'pg_admission.bypass' => [ 7, 'off' ],
	'pg_admission.exempt_cost' => [ -1, 0 ],
	'pg_admission.log_rejections' => [ 'some', 'summary' ],
	'pg_admission.log_interval' => [ "'10 parsec'", '10s' ],
	'pg_admission.sample_interval' => [ '99ms', '1s' ]);
my $all = join '', map { "$_ = $bad{$_}[0]\n" } sort keys %bad;

# Those that main may have since are tested as well, as far as can be told:
# whatever has a range takes no value outside of it.

my $more = admin($node)->query(
	q{SELECT name || ' = ' || CASE vartype WHEN 'bool' THEN 'perhaps' WHEN 'enum' THEN 'nonsense' ELSE '''-1e300''' END
	  FROM pg_settings
	  WHERE name LIKE 'pg\_admission.%' AND vartype <> 'string'
	  ORDER BY name})->{out};
my @more = split /\n/, $more;
admin($node)->quit;

my $conf = $node->data_dir . '/postgresql.conf';
my $good = slurp_file($conf);

sub write_conf
{
	my ($extra) = @_;

	open my $file, '>', $conf or die $!;
	print $file $good, $extra;
	close $file;
	return;
}

# At start: a warning each, and the default

$good =~ s/^pg_admission\..*\n//mg;
write_conf($all . "pg_admission.quue_capacity = 5\n");
$node->restart;
my $log = slurp_file($node->logfile, $offset);
foreach my $name (sort keys %bad)
{
	(my $value = $bad{$name}[0]) =~ s/'//g;
	$value = 99 if $value eq '99ms';
	ok($log =~
		  /(?:WARNING|LOG):  (?:invalid value for parameter "\Q$name\E": "\Q$value\E"|parameter "\Q$name\E" requires a Boolean value|\Q$value\E[ a-zA-Z]* is outside the valid range for parameter "\Q$name\E" \()/,
		"start: $name = $value is reported");
	is($node->safe_psql('postgres', "SHOW $name"), $bad{$name}[1],
		"start: $name has its default");
}
like($log, qr/WARNING:  .*"pg_admission\.quue_capacity"/, 'start: an unknown setting is reported');

# On reload: a line each, and the old value

write_conf("pg_admission.queue_timeout = 5s\n");
$node->reload;
$node->poll_query_until('postgres', 'SHOW pg_admission.queue_timeout', '5s')
  or die 'no reload';
push @more, 'pg_admission.exempt_roles = \'a,,b\'';
my %before = map {
	my ($name) = /^(\S+) =/;
	($name => $node->safe_psql('postgres', "SHOW $name"))
} @more;
$offset = -s $node->logfile;
write_conf(join "\n", @more, 'pg_admission.quue_capacity = 5', 'pg_admission.queue_timeout = 6s', '');
$node->reload;
ok($node->wait_for_log(qr/LOG: .*configuration file ".*" contains errors; unaffected changes were applied/, $offset),
	'reload: errors are summed up');
$log = slurp_file($node->logfile, $offset);
foreach my $name (sort keys %before)
{
	ok($log =~ /LOG:  .*"\Q$name\E"/, "reload: a bad value of $name is reported");
	is($node->safe_psql('postgres', "SHOW $name"),
		$name eq 'pg_admission.queue_timeout' ? '6s' : $before{$name},
		"reload: $name keeps its value");
}
ok($log =~ /LOG:  .*"pg_admission\.quue_capacity"/, 'reload: an unknown setting is reported');

# In SET: an error with the name, the value and the range

write_conf('');
$node->restart;
my $admin = admin($node);
foreach my $name (grep { /mode|queue_timeout|oversize|query_|bypass/ } sort keys %bad)
{
	my $result = $admin->query("SET $name = $bad{$name}[0]");
	like($result->{state}, qr/^22023$/, "SET $name: refused");
	like($result->{err}, qr/\Q$name\E/, "SET $name: the error has the name");
}
is($admin->query('SET pg_admission.quue_capacity = 5')->{state}, '42602',
	'SET of an unknown setting: refused');
is($admin->query('SET pg_admission.queue_capacity = 5')->{state}, '55P02',
	'SET of a setting of the server: refused');
is($admin->query("ALTER SYSTEM SET pg_admission.memory_fraction = 75")->{state}, '22023',
	'ALTER SYSTEM: refused');
is($admin->query("ALTER ROLE app SET pg_admission.mode = 'enforced'")->{state}, '22023',
	'ALTER ROLE: refused');
is(client($node)->query("SET pg_admission.mode = off")->{state}, '42501',
	'who is no superuser cannot change the mode');
is(client($node)->query("SET pg_admission.bypass = on")->{state}, '42501',
	'... nor bypass admission');
is(client($node)->query("SET pg_admission.query_workers = 1")->{state}, '42501',
	'... nor choose its claim');
is(client($node)->query("SET pg_admission.queue_timeout = 1")->{state}, '00000',
	'but may choose how long to wait');
is($admin->query("GRANT SET ON PARAMETER pg_admission.mode TO app")->{state}, '00000',
	'unless that is granted');
is(client($node)->query("SET pg_admission.mode = off")->{state}, '00000', 'as here');

server_is_idle($node);
done_testing();
