#!/usr/bin/perl
#
# test/lib/tap_summary.pl
#		Reads a test program's output, in TAP, and prints what came of it:
#
#			pass N
#			fail <what>				one line for each
#			skip <what>				one line for each, with the reason
#
# The argument is the program's exit code.  A program that ends with an error,
# that does not keep to its plan or that tests nothing has failed, whatever
# else it says.

use strict;
use warnings;

use TAP::Parser;

my ($exit_code) = @ARGV;
my $tap = do { local $/; <STDIN> };
my $parser = TAP::Parser->new({ tap => $tap || "\n" });
my ($pass, $tests, @fail, @skip) = (0, 0);

sub describe
{
	my ($result, $more) = @_;

	return join(' ', 'test', $result->number, grep { length }
		  $result->description, $more ? "($more)" : '');
}

while (my $result = $parser->next)
{
	push @fail, 'it bailed out: ' . $result->explanation
	  if $result->is_bailout;
	next unless $result->is_test;

	$tests++;
	if ($result->has_skip)
	{
		push @skip, describe($result, $result->explanation);
	}
	elsif ($result->has_todo && !$result->is_actual_ok)
	{
		push @skip, describe($result, 'to do: ' . $result->explanation);
	}
	elsif ($result->is_ok)
	{
		$pass++;
	}
	else
	{
		push @fail, describe($result);
	}
}

push @skip, $parser->skip_all if $parser->skip_all;

# All that is wrong with the program itself is one failure, and not worth
# telling when a test has failed, of which it is often but the consequence.
# 124 is the exit code of timeout(1).
my @wrong;
push @wrong, 'it took too long' if $exit_code == 124;
push @wrong, 'it tested nothing' if $tests == 0 && !$parser->skip_all;
push @wrong, $parser->parse_errors if $tests > 0;
push @wrong, "it ended with exit code $exit_code" if $exit_code != 0;
push @fail, join('; ', @wrong) if @wrong && (!@fail || $exit_code == 124);

print "pass $pass\n";
print map { s/\s+/ /gr . "\n" } map { "fail $_" } @fail;
print map { s/\s+/ /gr . "\n" } map { "skip $_" } @skip;
