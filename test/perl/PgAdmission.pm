# What the tests of pg_admission have in common.
#
# A test starts a server with new_server(), talks to it through clients, each a
# psql of its own whose statements may still be running while the test goes
# on, and ends with server_is_idle().
#
# Nothing here sleeps for luck: every wait is for a state that can be seen in
# a view, in the server log or in a client's output.

package PgAdmission;

use strict;
use warnings;

use Exporter 'import';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);

our @EXPORT = qw(
  new_server client admin reload_with
  wait_until wait_for wait_for_samples status counter
  occupy release queue_up
  overloaded_ok exceeds_ok cancelled_ok succeeds_ok
  server_is_idle
);

my %admins;
my %clients;

# Settings that every test server has; the worker budget is 2.
my %defaults = (
	'shared_preload_libraries' => "'pg_admission'",
	'pg_admission.mode' => 'enforce',
	'pg_admission.cores' => 1,
	'pg_admission.cores_multiplier' => 2,
	'pg_admission.total_memory' => "'2GB'",
	'max_parallel_workers_per_gather' => 0);

sub conf_lines
{
	my %settings = @_;

	return join '', map { "$_ = $settings{$_}\n" } sort keys %settings;
}

# Make and start a server with the extension, a role "app" that is subject to
# admission, and a table "t" of its own.  The table "held" is for occupy().
sub new_server
{
	my ($name, %settings) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init;
	$node->append_conf('postgresql.conf', conf_lines(%defaults, %settings));
	$node->start;
	$node->safe_psql(
		'postgres', q{
		CREATE EXTENSION pg_admission;
		CREATE ROLE app LOGIN;
		GRANT CREATE ON SCHEMA public TO app;
		SET ROLE app;
		CREATE TABLE t AS SELECT i FROM generate_series(1, 10) i;
		ANALYZE t;
		CREATE TABLE held AS SELECT 1 AS i;
	});
	return $node;
}

# A client; by default one of the role that is subject to admission.
sub client
{
	my ($node, %params) = @_;
	my $client = PgAdmission::Client->new($node, %params);

	push @{ $clients{ $node->name } }, $client;
	return $client;
}

# The superuser's client, which always gets through.
sub admin
{
	my ($node) = @_;
	my $admin = $admins{ $node->name };

	if (!defined $admin || !$admin->is_alive)
	{
		$admin = PgAdmission::Client->new($node, user => undef);
		$admins{ $node->name } = $admin;
	}
	return $admin;
}

# Change settings, and wait until they are in force: in every client that is
# not busy, and, if so given, as seen in columns of the status view.
sub reload_with
{
	my ($node, $settings, $columns, $expected) = @_;
	my @idle = grep { $_->is_alive && !$_->{busy} }
	  (admin($node), @{ $clients{ $node->name } || [] });
	my %loaded = map { $_->{pid} => $_->load_time } @idle;

	$node->append_conf('postgresql.conf', conf_lines(%$settings));
	$node->reload;
	foreach my $client (@idle)
	{
		wait_until(sub { $client->load_time ne $loaded{ $client->{pid} } })
		  or die 'a client has not read its configuration again';
	}
	return 1 unless defined $columns;
	return wait_for($node, "SELECT $columns FROM pg_admission_status", $expected);
}

# Wait until a condition is true, at most that many seconds.
sub wait_until
{
	my ($condition, $seconds) = @_;
	my $deadline = time() + ($seconds || $PostgreSQL::Test::Utils::timeout_default);

	until ($condition->())
	{
		return 0 if time() > $deadline;
		usleep(20_000);
	}
	return 1;
}

# Wait until a query of the superuser returns the expected text.
sub wait_for
{
	my ($node, $query, $expected) = @_;
	my $seen;

	$expected = 't' unless defined $expected;
	return 1 if wait_until(sub { ($seen = admin($node)->query($query)->{out}) eq $expected });

	diag "waited for \"$expected\" from: $query\nbut saw: $seen\n"
	  . admin($node)->query(
		'SELECT * FROM pg_admission_queries ORDER BY queue_position')->{out};
	return 0;
}

# Wait until the sampler has taken that many more samples.  Asks seldom, since
# asking takes CPU time, and waits for a CPU, where these are measured.
sub wait_for_samples
{
	my ($node, $n) = @_;
	my $samples = 'SELECT count(*) FROM pg_admission_load';
	my $enough = admin($node)->query($samples)->{out} + $n;
	my $deadline = time() + $PostgreSQL::Test::Utils::timeout_default;

	while (admin($node)->query($samples)->{out} < $enough)
	{
		die 'the sampler takes no samples' if time() > $deadline;
		usleep(250_000);
	}
	return;
}

sub status
{
	my ($node, $columns) = @_;

	return admin($node)->query("SELECT $columns FROM pg_admission_status")->{out};
}

sub counter
{
	my ($node, $columns) = @_;

	return admin($node)->query("SELECT $columns FROM pg_stat_admission")->{out};
}

# Take so many workers with a query each, and keep them until release().
# Sleeping is not waiting for somebody else, so they are not lent.
sub occupy
{
	my ($node, $n, %params) = @_;
	my $running = status($node, 'running');
	my @holders = map { client($node, %params) } 1 .. $n;

	$_->start('SELECT pg_sleep(3600) FROM held') for @holders;
	wait_for($node, 'SELECT running FROM pg_admission_status', $running + $n)
	  or die 'could not occupy the workers';
	return @holders;
}

# Have holders of workers give them back.
sub release
{
	my ($node, @holders) = @_;

	foreach my $holder (@holders)
	{
		admin($node)->query("SELECT pg_cancel_backend($holder->{pid})");
		$holder->finish;
	}
	return;
}

# Start a statement in a client, and wait until it is in the queue.
sub queue_up
{
	my ($node, $client, $sql) = @_;

	$client->start($sql);
	wait_for($node,
		"SELECT state FROM pg_admission_queries WHERE pid = $client->{pid} AND state = 'queued'",
		'queued')
	  or die 'statement was not queued';
	return $client;
}

# The error of an overloaded server, in all its parts.
sub overloaded_ok
{
	my ($result, $reason, $message, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	subtest $name => sub {
		is($result->{state}, '53A01', 'SQLSTATE');
		like($result->{err}, qr/ERROR:  53A01: \Q$message\E$/m, 'MESSAGE');
		like(
			$result->{err},
			qr/^DETAIL:  label=SystemOverloadedError retryable=no reason=$reason running=\d+ queued=\d+ queue_capacity=-?\d+ retry_after_ms=\d+ [A-Z][^=]*\.$/m,
			'DETAIL');
		like(
			$result->{err},
			qr/^HINT:  reason=$reason retry_after_ms=\d+ [A-Z][^=]*\.$/m,
			'HINT');
	};
	return;
}

# The error of a query that could never be admitted.
sub exceeds_ok
{
	my ($result, $reason, $message, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	subtest $name => sub {
		is($result->{state}, '54A01', 'SQLSTATE');
		like($result->{err}, qr/ERROR:  54A01: \Q$message\E$/m, 'MESSAGE');
		like(
			$result->{err},
			qr/^DETAIL:  label=QueryExceedsBudget retryable=no reason=$reason required_memory_kb=\d+ memory_budget_kb=\d+ required_workers=\d+ worker_budget=\d+ [A-Z][^=]*\.$/m,
			'DETAIL');
		like(
			$result->{err},
			qr/^HINT:  reason=$reason retry_after_ms=0 Do not retry[^=]*\.$/m,
			'HINT');
	};
	return;
}

sub cancelled_ok
{
	my ($result, $message, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	subtest $name => sub {
		is($result->{state}, '57014', 'SQLSTATE');
		like($result->{err}, qr/ERROR:  57014: \Q$message\E/, 'MESSAGE');
	};
	return;
}

sub succeeds_ok
{
	my ($result, $out, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is("$result->{state} $result->{out}", "00000 $out", $name)
	  or diag $result->{err};
	return;
}

# End all clients; then nothing may be charged or queued, and the counters
# must add up.
sub server_is_idle
{
	my ($node, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$_->quit foreach @{ delete $clients{ $node->name } || [] };

	subtest $name || 'server is idle' => sub {
		wait_for($node,
			'SELECT running + queued = 0 FROM pg_admission_status');
		is( status(
				$node,
				'running, queued, workers_used, workers_lent, memory_used_bytes'
			),
			'0|0|0|0|0',
			'all gauges are 0');
		is( counter(
				$node,
				q{submitted = admitted + rejected + cancelled_while_queued,
				  rejected = rejected_queue_full + rejected_queue_timeout + rejected_deadline + rejected_cpu_overload
				    + rejected_breaker + rejected_memory + rejected_workers,
				  bypassed = bypassed_superuser + bypassed_role + bypassed_setting + bypassed_cost + bypassed_no_relation,
				  waited = (SELECT sum(n) FROM unnest(wait_histogram) n),
				  waited <= admitted, throttled <= submitted}
			),
			't|t|t|t|t|t',
			'counters add up');
		is(counter($node, 'rescued'), '0', 'nobody had to be rescued');
		my $log = slurp_file($node->logfile);
		unlike($log, qr/TRAP:|PANIC:|WARNING:  (?!skipping).*(?:leak|reference)/i,
			'server log is clean');
	};

	admin($node)->quit;
	delete $admins{ $node->name };
	return;
}

package PgAdmission::Client;

use strict;
use warnings;

use IPC::Run;
use PostgreSQL::Test::Utils;
use Time::HiRes qw(time usleep);

# Connect.  Parameters: user (undef: the superuser), dbname, options (that
# libpq sends on connecting).
sub new
{
	my ($class, $node, %params) = @_;
	my $self = bless { node => $node, in => '', out => '', err => '', n => 0 },
	  $class;
	my $user = exists $params{user} ? $params{user} : 'app';
	my $connstr = $node->connstr($params{dbname} || 'postgres');
	local %ENV = $node->_get_env();

	$connstr .= " user='$user'" if defined $user;
	$connstr .= " options='$params{options}'" if defined $params{options};
	$self->{harness} = IPC::Run::start(
		[
			'psql', '-XAtq', '-d', $connstr, '-v',
			'VERBOSITY=verbose', '-v', 'ON_ERROR_STOP=0', '-f', '-'
		],
		'<', \$self->{in},
		'>', \$self->{out},
		'2>', \$self->{err});
	$self->{pid} = $self->query('SELECT pg_backend_pid()')->{out};
	die "could not connect: $self->{connect_error}"
	  unless $self->{pid} =~ /^\d+$/ || $params{fails};
	return $self;
}

# Send statements without waiting for them.
sub start
{
	my ($self, $sql) = @_;

	$self->{n}++;
	$self->{busy} = 1;
	$sql .= ';' unless $sql =~ /;\s*\z/;
	$self->{in} .= "$sql\n\\warn '#end' $self->{n}\n\\echo '#end' $self->{n} :SQLSTATE\n";
	$self->{harness}->pump_nb while length $self->{in} && $self->is_alive;
	return $self;
}

# Have the statements that were started come to an end?
sub has_finished
{
	my ($self) = @_;

	$self->{harness}->pump_nb if $self->is_alive;
	return $self->{out} =~ /^#end $self->{n} \S*$/m
	  && $self->{err} =~ /^#end $self->{n}$/m;
}

# Wait for that.  Returns output, errors and the last SQLSTATE, which is
# undefined if the connection was lost.
sub finish
{
	my ($self) = @_;
	my $deadline = time() + $PostgreSQL::Test::Utils::timeout_default;
	my %result;

	while (!$self->has_finished && $self->is_alive)
	{
		die "timed out waiting for a client's statement" if time() > $deadline;
		usleep(5_000);
	}

	IPC::Run::finish($self->{harness}) if !$self->is_alive;

	($result{out}, $result{state}) =
	  $self->{out} =~ /\A(.*?)^#end $self->{n} (\S*)$/ms ? ($1, $2) :
	  ($self->{out}, undef);
	($result{err} = $self->{err}) =~ s/^#end \d+\n//mg;
	chomp $result{out};
	$self->{out} = $self->{err} = '';
	$self->{busy} = 0;
	$self->{connect_error} = $result{err};

	# Without a connection, psql has no SQLSTATE, and is of no use any more.
	if (defined $result{state} && $result{state} eq '')
	{
		$result{state} = undef;
		$self->quit;
	}
	return \%result;
}

sub query
{
	my ($self, $sql) = @_;

	$self->start($sql);
	return $self->finish;
}

# When this client's backend has last read the configuration
sub load_time
{
	my ($self) = @_;

	return $self->query('SELECT pg_conf_load_time()')->{out};
}

sub is_alive
{
	my ($self) = @_;

	return !$self->{dead} && $self->{harness}->pumpable;
}

# Be gone without a word to the server.
sub vanish
{
	my ($self) = @_;

	$self->{harness}->signal('KILL');
	eval { $self->{harness}->finish };
	$self->{dead} = 1;
	return;
}

sub quit
{
	my ($self) = @_;

	return unless $self->is_alive;
	$self->{in} .= "\\q\n";
	eval { $self->{harness}->finish };
	$self->{dead} = 1;
	return;
}

1;
