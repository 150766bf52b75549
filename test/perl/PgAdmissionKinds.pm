# How often a kind of statement is admitted, and what it is charged.

package PgAdmissionKinds;

use strict;
use warnings;

use Exporter 'import';
use PgAdmission;
use Test::More;

our @EXPORT = qw(counts_ok once_ok exempt_ok held held_when_waiting);

my @counters = qw(submitted admitted completed rejected cancelled_while_queued
  bypassed_no_relation forced);

sub counters
{
	my ($node) = @_;

	return split /\|/, counter($node, join ', ', @counters);
}

# Run some code, and check by how much the counters have grown.  Those that
# are not given must not have; all that is submitted is admitted, and
# completed, if not told otherwise.
sub counts_ok
{
	my ($node, $code, $name, %expected) = @_;
	my @before = counters($node);
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	$code->();
	my @after = counters($node);

	$expected{admitted} = 0 unless defined $expected{admitted};
	$expected{completed} = $expected{admitted} unless defined $expected{completed};
	$expected{submitted} = $expected{admitted} + ($expected{rejected} || 0)
	  + ($expected{cancelled_while_queued} || 0)
	  unless defined $expected{submitted};
	return is(
		join(' ', map { "$counters[$_]=" . ($after[$_] - $before[$_]) } 0 .. $#counters),
		join(' ', map { "$_=" . ($expected{$_} || 0) } @counters),
		$name);
}

# It is admitted once, and ends.
sub once_ok
{
	my ($node, $code, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	return counts_ok($node, $code, "$name: admitted once", admitted => 1);
}

# It is neither admitted nor counted as anything.
sub exempt_ok
{
	my ($node, $code, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	return counts_ok($node, $code, "$name: not subject to admission");
}

# What a backend holds: a line for each query.
sub held
{
	my ($node, $pid) = @_;

	return admin($node)->query(
		"SELECT state, workers, memory_bytes FROM pg_admission_queries WHERE pid = $pid ORDER BY plan_cost, memory_bytes, state"
	)->{out};
}

# The same without the state, once the backend waits for a lock.
sub held_when_waiting
{
	my ($node, $pid) = @_;

	wait_for($node,
		"SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = $pid");
	return admin($node)->query(
		"SELECT workers, memory_bytes FROM pg_admission_queries WHERE pid = $pid ORDER BY plan_cost, memory_bytes"
	)->{out};
}

1;
