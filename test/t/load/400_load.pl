# What the server measures of real processes, and what it does about it.
#
# The server is put on one CPU, so that N busy backends have C = 1 CPU and the
# ratio is (N - C) / C, unless the machine is busy with something else.  So it
# is compared with what the kernel says of all processes of the server over the
# same time, and, if nobody else was on that CPU, with (N - C) / C.

use strict;
use warnings;

use PgAdmission;
use List::Util qw(sum);
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

my $everywhere = `taskset -cp $$ 2>&1`;

plan skip_all => 'this needs Linux, and taskset'
  unless $^O eq 'linux' && $everywhere =~ /list: (\d+)/;
my $cpu = $1;
my ($cpus) = $everywhere =~ /list: (\S+)/;

sub pin
{
	my ($list) = @_;

	run_log([ 'taskset', '-cp', $list, $$ ], '>', '/dev/null');
}

# The server inherits where this process may run, clients need not.
pin($cpu);
my $node = new_server(
	'load',
	'pg_admission.sample_interval' => 1000,
	'pg_admission.cpu_busy_time_threshold' => 20,
	'autovacuum' => 'off');
pin($cpus);

my $spin = 'DO $$ BEGIN LOOP END LOOP; END $$';
my @spinners;

# Have so many backends spin.
sub spin
{
	my ($n) = @_;

	while (@spinners < $n)
	{
		my $spinner = client($node);

		$spinner->start($spin);
		push @spinners, $spinner;
	}
	return;
}

sub stop_spinning
{
	admin($node)->query("SELECT pg_cancel_backend($_->{pid})") for @spinners;
	$_->finish for @spinners;
	$_->quit for @spinners;
	@spinners = ();
	return;
}

# Time that all processes of the server have run and waited for a CPU, in
# seconds, by their pid
sub server_times
{
	my ($postmaster) = split /\n/, slurp_file($node->data_dir . '/postmaster.pid');
	my %times;

	foreach my $folder (glob '/proc/[0-9]*')
	{
		my ($pid) = $folder =~ /(\d+)$/;
		my $texts = eval { slurp_file("$folder/stat") . slurp_file("$folder/schedstat") } or next;

		next unless $pid == $postmaster || $texts =~ /^.*\) \S $postmaster /;
		$times{$pid} = [ map { $_ / 1e9 } (split / /, (split /\n/, $texts)[1])[ 0, 1 ] ];
	}
	return \%times;
}

# The ratio that follows from two of those
sub ratio_of
{
	my ($from, $to) = @_;
	my @grown = (0, 0);

	foreach my $pid (keys %$to)
	{
		$grown[$_] += $to->{$pid}[$_] - ($from->{$pid} || [ 0, 0 ])->[$_] for 0, 1;
	}
	return $grown[1] / $grown[0];
}

# Let the window fill, then measure for some samples.  Returns the mean of the
# ratio, wait by busy time, what that should have been, and the share of the
# CPU that the spinners got.
sub measure
{
	my @pids = map { $_->{pid} } @spinners;
	my $n = 10;

	wait_for_samples($node, 4);
	my ($start, $from) = (time(), server_times());
	wait_for_samples($node, $n);
	my ($seconds, $to) = (time() - $start, server_times());
	my $used = sum(map { $to->{$_}[0] - $from->{$_}[0] } @pids);
	my ($mean, $ratio, $unknown, $within) = split /\|/, admin($node)->query(
		"WITH grown AS (
			SELECT cpu_wait_ratio, cpu_wait_us - lead(cpu_wait_us) OVER l w,
				cpu_busy_us - lead(cpu_busy_us) OVER l b
			FROM pg_admission_load WINDOW l AS (ORDER BY sampled_at DESC) LIMIT $n)
		SELECT avg(cpu_wait_ratio), sum(w) / sum(b), count(*) FILTER (WHERE cpu_wait_ratio IS NULL),
			bool_and(cpu_wait_ratio <= w::float8 / b + 0.001)
		FROM grown")->{out};

	is($unknown, 0, 'it is known all the time');
	is($within, 't', 'and never more than at the moment');
	return ($mean, $ratio, ratio_of($from, $to), $used / $seconds);
}

sub near_ok
{
	my ($got, $want, $tolerance, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return ok(abs($got - $want) <= $tolerance,
		sprintf('%s: %.2f, should be %.2f', $name, $got, $want));
}

ok(wait_for($node, 'SELECT cpu_wait_ratio IS NOT NULL FROM pg_admission_status'),
	'the ratio is measured');

foreach my $n (1, 2, 4)
{
	spin($n);
	my ($mean, $ratio, $expected, $share) = measure();

	near_ok($ratio, $expected, 0.1 + 0.2 * $expected, "$n spinning on one CPU");
	if ($share > 0.97)
	{
		near_ok($mean, $n - 1, $n == 1 ? 0.1 : 0.2 * ($n - 1),
			'nobody else is there: (N - C) / C');
	}
	else
	{
		note sprintf('the CPU is shared with others, this server got %.2f of it', $share);
	}
}
ok(wait_for($node, 'SELECT cpu_utilization > 0.95 FROM pg_admission_status'),
	'utilization is that of the CPU that the server may use');
is(admin($node)->query(
		'SELECT bool_and(w >= 0 AND b >= 0) FROM (SELECT cpu_wait_us - lead(cpu_wait_us) OVER l w, cpu_busy_us - lead(cpu_busy_us) OVER l b
		 FROM pg_admission_load WINDOW l AS (ORDER BY sampled_at DESC)) d')->{out},
	't', 'the totals only grow');

# With 100 % utilization the CPU breaker trips

reload_with($node, { 'pg_admission.cpu_breaker_threshold' => 0.9 });
ok(wait_for($node, "SELECT tripped AND value > 0.9 FROM pg_admission_breakers WHERE name = 'cpu'"),
	'the CPU breaker trips at 100 % utilization');
my $app = client($node);
like($app->query('SELECT count(*) FROM t')->{err}, qr/reason=breaker .* Tripped: "cpu" \(value (0\.9|1)\d*/,
	'and refuses');
reload_with($node, { 'pg_admission.cpu_breaker_threshold' => 0 });
ok(wait_for($node, "SELECT NOT tripped FROM pg_admission_breakers WHERE name = 'cpu'"), 'it is off');

# Queries are refused with the probability that the ratio gives

spin(8);
reload_with($node, {
	'pg_admission.min_cpu_wait_ratio_to_reject' => 1,
	'pg_admission.max_cpu_wait_ratio_to_reject' => 3 });
ok(wait_for($node, 'SELECT cpu_wait_ratio > 6 AND reject_probability = 1 FROM pg_admission_status'),
	'8 spinning on one CPU: all are to be refused');
my $refused = $app->query('SELECT count(*) FROM t');
overloaded_ok($refused, 'cpu_overload', 'system overloaded: too many processes wait for a CPU',
	'and are');
is(counter($node, 'rejected_cpu_overload'), 1, 'counted');
succeeds_ok($app->query('SELECT 1'), 1, 'what is exempt runs');

# Have the probability be about a half, and let some code ask so many queries.
# It returns how many were asked and refused, and how many should have been.
# Since others may use the CPU, too, the probability may get near to 0 or 1,
# which would show nothing; then try again.  A bound of 4.5 standard deviations
# is passed by chance once in 100,000 times.
sub draws_ok
{
	my ($name, $code) = @_;
	my ($n, $refused, $expected);

	for (1 .. 8)
	{
		my $ratio = admin($node)->query(
			'SELECT avg(cpu_wait_ratio) FROM (SELECT * FROM pg_admission_load LIMIT 3) s')->{out};
		my ($min, $max) = map { sprintf '%.4f', $ratio * $_ } 0.3, 1.7;

		reload_with($node, {
			'pg_admission.min_cpu_wait_ratio_to_reject' => $min,
			'pg_admission.max_cpu_wait_ratio_to_reject' => $max });
		($n, $refused, $expected) = $code->($min, $max);
		last if $expected > 0.15 * $n && $expected < 0.85 * $n;
	}

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return ok(abs($refused - $expected) <= 4.5 * sqrt($n / 4) + 0.03 * $n,
		sprintf('%s: %d of %d are refused, should be %.0f', $name, $refused, $n, $expected));
}

draws_ok('inside of DO', sub {
	my $n = 2000;
	my $result = $app->query(
		"DO \$\$
		DECLARE
			p float8;
			refused int := 0;
			expected float8 := 0;
		BEGIN
			FOR i IN 1 .. $n LOOP
				SELECT reject_probability INTO p FROM pg_admission_status;
				expected := expected + p;
				BEGIN
					PERFORM 1 FROM t;
				EXCEPTION WHEN insufficient_resources THEN
					refused := refused + 1;
				END;
				COMMIT;
			END LOOP;
			RAISE NOTICE 'result % %', refused, expected;
		END \$\$");
	my ($refused, $expected) = $result->{err} =~ /result (\d+) (\S+)/ or diag $result->{err};
	return ($n, $refused, $expected);
});

# As a simple query that is drawn for when it is planned, and as one whose
# plan is cached; both once.
$app->query('PREPARE cached AS SELECT 1 FROM t LIMIT 1');
foreach my $how ('SELECT 1 FROM t LIMIT 1;', 'EXECUTE cached;')
{
	draws_ok($how, sub {
		my $n = 500;
		my $result = $app->query("SELECT 'p', reject_probability FROM pg_admission_status;\n$how\n" x $n);
		my $refused = () = $result->{err} =~ /53A01: system overloaded: too many processes/g;

		return ($n, $refused, sum($result->{out} =~ /^p\|(\S+)$/mg));
	});
}

# The extended protocol, with plans made at Bind, and executed then or later.
# The probability is only known from sample to sample, so the shares are
# compared as if it were 400 statements: two draws would refuse three quarters.
SKIP:
{
	my $loadgen = $ENV{PGADM_LOADGEN};

	skip 'there is no load generator', 2 unless $loadgen && -x $loadgen;
	foreach my $query ('SELECT 1 FROM t LIMIT 1', 'INSERT INTO t SELECT 1 WHERE false')
	{
		draws_ok("prepared $query", sub {
			my ($min, $max) = @_;
			my $before = status($node, 'sampled_at');
			my $tsv = `$loadgen -C -P -c 1 -t 4 -w 0 -f tsv -H -q '$query' "@{[$node->connstr('postgres')]} user=app"`;
			my ($names, $values) = map { [ split /\t/ ] } split /\n/, $tsv;
			my %row;
			@row{@$names} = @$values;
			my $p = admin($node)->query(
				"SELECT avg(greatest(0, least(1, (cpu_wait_ratio - $min) / ($max - $min))))
				 FROM pg_admission_load WHERE sampled_at >= '$before'")->{out};
			my $all = $row{in_time} + $row{refused};

			return (400, 400 * $row{refused} / $all, 400 * $p);
		});
	}
}

# Nobody is refused twice as likely in a transaction that began before
reload_with($node, {
	'pg_admission.min_cpu_wait_ratio_to_reject' => 0,
	'pg_admission.max_cpu_wait_ratio_to_reject' => 0 });
my $root = admin($node);
$root->query('ALTER ROLE app SUPERUSER');
reload_with($node, { 'pg_admission.exempt_superuser' => 'off' });
my $power = client($node);
my $passed = 0;
foreach my $i (1 .. 20)
{
	my $answer = $power->query(
		"BEGIN; SELECT 1; SET LOCAL pg_admission.min_cpu_wait_ratio_to_reject = 0;
		 SET LOCAL pg_admission.max_cpu_wait_ratio_to_reject = 1000; SELECT count(*) FROM t");
	$passed++ if $answer->{state} eq '00000';
	$power->query('ROLLBACK');
}
ok($passed > 0, 'a statement planned while it was off does not count as drawn');
$root->query('ALTER ROLE app NOSUPERUSER');
$power->quit;

# Observed only
reload_with($node, {
	'pg_admission.mode' => 'observe',
	'pg_admission.min_cpu_wait_ratio_to_reject' => 1,
	'pg_admission.max_cpu_wait_ratio_to_reject' => 3 }, 'mode', 'observe');
$root->query('SELECT pg_admission_reset()');
succeeds_ok($app->query('SELECT count(*) FROM t'), 10, 'mode observe refuses nothing');
is(counter($node, 'submitted, admitted, rejected, would_have_rejected'), '1|1|0|1', 'but counts it');
reload_with($node, { 'pg_admission.mode' => 'enforce' }, 'mode', 'enforce');

# When the load has ended queries run within two samples

is($app->query('SELECT count(*) FROM t')->{state}, '53A01', 'refused before');
stop_spinning();
wait_for_samples($node, 2);
succeeds_ok($app->query('SELECT count(*) FROM t'), 10, 'when the load has ended, they run within two samples');

# Spinning processes outside of the server: its own wait shows

my @outside;
pin($cpu);
for (1 .. 3)
{
	my $pid = fork();

	die "could not fork: $!" unless defined $pid;
	if ($pid == 0)
	{
		for (;;) { }
	}
	push @outside, $pid;
}
pin($cpus);
spin(1);
my (undef, $shared_ratio, $should) = measure();
kill 'KILL', @outside;
waitpid $_, 0 for @outside;
near_ok($shared_ratio, $should, 0.1 + 0.2 * $should, 'one backend, three others');
ok($shared_ratio > 0.5, 'the wait of one backend shows');
stop_spinning();

# Below the threshold of busy time there is no ratio

reload_with($node, { 'pg_admission.cpu_busy_time_threshold' => -1 });
ok(wait_for($node, 'SELECT cpu_wait_ratio = 0 FROM pg_admission_status'), 'the ratio of an idle server is 0');

server_is_idle($node);
done_testing();
