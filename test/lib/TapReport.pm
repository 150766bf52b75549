# test/lib/TapReport.pm
#		What check.sh wants to be told of a test, as a formatter of prove.
#
# Shows one line, and the output of a test that has failed; and adds to the file
# $TEST_RESULTS one line for each of these, with the suite's name before it:
#
#		pass N
#		fail <suite>: <test>: <what>
#		skip <suite>: <test>: <what and why>
#		ran <file>
#
# A program that ends with an error, that does not keep to its plan or that tests
# nothing has failed, whatever else it says.

package TapReport;

use strict;
use warnings;

use base 'TAP::Formatter::Base';

sub prepare { }
sub summary { }

sub open_test
{
	my ($self, $file, $parser) = @_;

	return TapReport::Session->new(
		{ name => $file, parser => $parser, formatter => $self, show_count => 0 });
}

package TapReport::Session;

use strict;
use warnings;

use base 'TAP::Formatter::Session';
use File::Basename;

# How much is shown of what a failed test has printed, in lines.
my $SHOWN = 100;

# 124 is the exit code of timeout(1).
my $TIMED_OUT = 124;

sub describe
{
	my ($result, $more) = @_;

	return join(' ', 'test', $result->number, grep { length }
		  $result->description, $more ? "($more)" : '');
}

# For each line that the test prints.
sub result
{
	my ($self, $result) = @_;

	push @{ $self->{lines} }, $result->raw;
	return unless $result->is_test;

	$self->{tests}++;
	if ($result->has_skip)
	{
		push @{ $self->{skip} }, describe($result, $result->explanation);
	}
	elsif ($result->has_todo && !$result->is_actual_ok)
	{
		push @{ $self->{skip} }, describe($result, 'to do: ' . $result->explanation);
	}
	elsif ($result->is_ok)
	{
		$self->{pass}++;
	}
	else
	{
		push @{ $self->{fail} }, describe($result);
	}
}

# What is wrong with the program itself, not with one of its tests.
sub wrong
{
	my ($self) = @_;
	my $parser = $self->parser;
	my $exit_code = $parser->exit || $parser->wait || 0;
	my @wrong;

	push @wrong, 'it took too long' if $exit_code == $TIMED_OUT;
	push @wrong, 'it tested nothing' if !$self->{tests} && !$parser->skip_all;
	push @wrong, $parser->parse_errors if $self->{tests};
	push @wrong, "it ended with exit code $exit_code" if $exit_code != 0;

	# not worth telling when a test has failed, of which it is often but the
	# consequence
	return if $self->{fail} && $exit_code != $TIMED_OUT;
	return @wrong ? join('; ', @wrong) : ();
}

sub close_test
{
	my ($self) = @_;
	my $name = basename($self->name) =~ s/\.\w+$//r;
	my $prefix = $ENV{TEST_SUITE} ? "$ENV{TEST_SUITE}: $name:" : "$name:";
	my $passed = $self->{pass} || 0;
	my @fail = (@{ $self->{fail} || [] }, $self->wrong);
	my @skip = @{ $self->{skip} || [] };

	push @skip, $self->parser->skip_all if $self->parser->skip_all;
	s/\s+/ /g foreach @fail, @skip;

	print "  FAILED  $name: $_\n" foreach @fail;
	print "  skipped $name: $_\n" foreach @skip;
	if (@fail)
	{
		my @lines = @{ $self->{lines} || [] };

		splice @lines, 0, -$SHOWN if @lines > $SHOWN;
		print "  | $_\n" foreach @lines;
	}
	elsif ($passed)
	{
		print "  passed  $name ($passed)\n";
	}
	record("pass $passed", (map { "fail $prefix $_" } @fail),
		(map { "skip $prefix $_" } @skip), 'ran ' . $self->name);
}

sub record
{
	return unless defined $ENV{TEST_RESULTS};
	open my $results, '>>', $ENV{TEST_RESULTS}
	  or die "could not write to $ENV{TEST_RESULTS}: $!";
	print $results map { "$_\n" } @_;
	close $results or die "could not write to $ENV{TEST_RESULTS}: $!";
}

1;
