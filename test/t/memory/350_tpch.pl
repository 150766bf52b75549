# Estimate against truth, on the 22 queries of TPC-H.

use strict;
use warnings;

use File::Basename;
use PgAdmission;
use PostgreSQL::Test::Utils;
use Test::More;

my $folder = dirname(__FILE__) . '/../../tpch';

my $node = new_server(
	'tpch',
	'pg_admission.cores' => 24,
	'pg_admission.total_memory' => "'64GB'",
	'fsync' => 'off',
	'jit' => 'off');
my $scale = $ENV{PGADM_TPCH_SCALE} || 0.02;

$node->command_ok(
	[
		'psql', '-Xq', '-d', $node->connstr('postgres') . ' user=app',
		'-v', "scale=$scale", '-f', "$folder/data.sql"
	],
	'data of TPC-H');

# Queries by number
my @queries;
{
	my $text = slurp_file("$folder/queries.sql");

	while ($text =~ /^-- Q(\d+): [^\n]*\n(.*?)(?=^-- Q\d|\z)/msg)
	{
		$queries[$1] = $2;
	}
}
is(scalar(grep { defined } @queries), 22, 'there are 22 queries');

my $app = client($node);

# Run a query, and see what it was charged and what it had.
sub measure
{
	my ($query) = @_;

	admin($node)->query('SELECT pg_admission_reset()');
	my $result = $app->query($query);
	my ($n, $charged, $allocated) = split /\|/,
	  admin($node)->query(
		'SELECT queries, charged_bytes, allocated_bytes FROM pg_stat_admission_memory')->{out};

	die "query failed: $result->{err}" if $result->{state} ne '00000';
	die "query was not measured" if $n != 1;
	return ($charged, $allocated, length $result->{out});
}

sub compare
{
	my ($work_mem, $workers) = @_;
	my ($covered, $close, $as_estimated) = (0, 0, 0);
	my $table = '';

	$app->query("SET work_mem = '$work_mem'; SET max_parallel_workers_per_gather = $workers");
	for my $number (1 .. 22)
	{
		my $estimate = $app->query(
			"SELECT memory_bytes FROM pg_admission_estimate(\$query\$$queries[$number]\$query\$)")->{out};
		my ($charged, $allocated, $rows) = measure($queries[$number]);
		my $ratio = $charged / $allocated;

		$as_estimated++ if $charged == $estimate;
		$covered++ if $ratio >= 1;
		$close++ if $ratio <= 4;
		$table .= sprintf "Q%-2d  charged %9d kB  allocated %9d kB  %6.2f%s\n",
		  $number, $charged / 1024, $allocated / 1024, $ratio,
		  $rows == 0 ? '  (no row)' : '';
	}
	my $name = "work_mem $work_mem, $workers parallel workers";
	note "$name: $covered covered, $close within four times\n$table";
	is($as_estimated, 22, "$name: all are charged what was estimated");
	cmp_ok($covered, '>=', 20, "$name: at least 20 are charged what they had")
	  or diag $table;
	cmp_ok($close, '>=', 15, "$name: at least 15 are charged no more than four times that")
	  or diag $table;
	return;
}

compare('4MB', 2);
compare('64MB', 2);
server_is_idle($node);
done_testing();
