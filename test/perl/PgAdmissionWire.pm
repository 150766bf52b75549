# A client that speaks PostgreSQL's protocol message by message, for what psql
# cannot be made to send: portals that are bound and not executed, executed in
# parts, several at a time, pipelines, and function calls.

package PgAdmissionWire;

use strict;
use warnings;

use IO::Select;
use IO::Socket::UNIX;
use PostgreSQL::Test::Utils;
use Time::HiRes qw(time);

sub new
{
	my ($class, $node, %params) = @_;
	my $path = $node->host . '/.s.PGSQL.' . $node->port;
	my $self = bless { buffer => '' }, $class;
	my %startup = (
		user => 'app',
		database => 'postgres',
		%params);

	$self->{socket} = IO::Socket::UNIX->new(Peer => $path)
	  or die "could not connect to $path: $!";
	my $payload =
	  pack('N', 196608) . join('', map { "$_\0$startup{$_}\0" } sort keys %startup) . "\0";
	$self->write(pack('N', 4 + length $payload) . $payload);
	my $result = $self->until_ready;
	die "could not connect: @{ $result->{errors} }" if @{ $result->{errors} };
	$self->{pid} = $result->{pid};
	return $self;
}

sub write
{
	my ($self, $bytes) = @_;

	while (length $bytes)
	{
		my $n = syswrite($self->{socket}, $bytes);

		die "could not write: $!" unless defined $n;
		substr($bytes, 0, $n) = '';
	}
	return $self;
}

sub send
{
	my ($self, $type, $payload) = @_;

	return $self->write($type . pack('N', 4 + length $payload) . $payload);
}

# The messages of the extended protocol

sub parse
{
	my ($self, $statement, $sql) = @_;

	return $self->send('P', "$statement\0$sql\0" . pack('n', 0));
}

sub bind
{
	my ($self, $portal, $statement, @values) = @_;
	my $values = join '',
	  map { defined $_ ? pack('N', length $_) . $_ : pack('N', 0xFFFFFFFF) } @values;

	return $self->send('B',
		"$portal\0$statement\0" . pack('n', 0) . pack('n', scalar @values) . $values . pack('n', 0));
}

sub execute
{
	my ($self, $portal, $rows) = @_;

	return $self->send('E', "$portal\0" . pack('N', $rows || 0));
}

sub describe_portal { my ($self, $portal) = @_; return $self->send('D', "P$portal\0"); }
sub describe_statement { my ($self, $name) = @_; return $self->send('D', "S$name\0"); }
sub close_portal { my ($self, $portal) = @_; return $self->send('C', "P$portal\0"); }
sub close_statement { my ($self, $name) = @_; return $self->send('C', "S$name\0"); }
sub sync { my ($self) = @_; return $self->send('S', ''); }
sub flush { my ($self) = @_; return $self->send('H', ''); }
sub copy_data { my ($self, $data) = @_; return $self->send('d', $data); }
sub copy_done { my ($self) = @_; return $self->send('c', ''); }

sub function_call
{
	my ($self, $oid, @values) = @_;
	my $values = join '', map { pack('N', length $_) . $_ } @values;

	return $self->send('F',
		pack('N', $oid) . pack('n', 0) . pack('n', scalar @values) . $values . pack('n', 0));
}

sub send_query { my ($self, $sql) = @_; return $self->send('Q', "$sql\0"); }

sub query
{
	my ($self, $sql) = @_;

	return $self->send_query($sql)->until_ready;
}

# Read one message.
sub message
{
	my ($self) = @_;
	my $deadline = time() + $PostgreSQL::Test::Utils::timeout_default;

	for (;;)
	{
		if (length $self->{buffer} >= 5)
		{
			my ($type, $length) = unpack 'aN', $self->{buffer};

			if (length $self->{buffer} > $length)
			{
				my $message = substr $self->{buffer}, 0, $length + 1, '';

				return ($type, substr $message, 5);
			}
		}

		my $left = $deadline - time();
		die 'timed out waiting for the server'
		  unless $left > 0 && IO::Select->new($self->{socket})->can_read($left);
		my $n = sysread($self->{socket}, $self->{buffer}, 65536, length $self->{buffer});
		return ('', '') unless $n;
	}
}

# Read until a message of one of these types.  What came is returned in a
# readable form: rows, command tags (with "suspended" for a portal that has
# more), SQLSTATEs, and the types of all messages.
sub until_message
{
	my ($self, $types) = @_;
	my %result = (rows => [], tags => [], errors => [], types => '', copied => '');

	for (;;)
	{
		my ($type, $payload) = $self->message;

		$result{types} .= $type;
		push @{ $result{rows} }, row($payload) if $type eq 'D';
		push @{ $result{rows} }, value($payload) if $type eq 'V';
		push @{ $result{tags} }, unpack 'Z*', $payload if $type eq 'C';
		push @{ $result{tags} }, 'suspended' if $type eq 's';
		push @{ $result{errors} }, $payload =~ /(?:\A|\0)C(.{5})\0/s if $type eq 'E';
		$result{copied} .= $payload if $type eq 'd';
		$result{pid} = unpack 'N', $payload if $type eq 'K';
		$result{status} = $payload if $type eq 'Z';
		if ($type eq '' || index($types, $type) >= 0)
		{
			$result{lost} = 1 if $type eq '';
			return \%result;
		}
	}
}

sub until_ready { my ($self) = @_; return $self->until_message('Z'); }

sub value
{
	my ($payload) = @_;
	my $length = unpack 'N', $payload;

	return $length == 0xFFFFFFFF ? undef : substr $payload, 4, $length;
}

sub row
{
	my ($payload) = @_;
	my $n = unpack 'n', $payload;
	my $offset = 2;
	my @values;

	for (1 .. $n)
	{
		my $value = value(substr $payload, $offset);

		push @values, defined $value ? $value : '';
		$offset += 4 + length($values[-1]);
	}
	return join '|', @values;
}

sub quit
{
	my ($self) = @_;

	$self->send('X', '') if $self->{socket}->connected;
	$self->{socket}->close;
	return;
}

1;
