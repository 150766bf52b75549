# The documentation against the server: nothing that exists is missing in it,
# nothing in it does not exist, its links lead somewhere, and its statements
# work.

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename;
use File::Spec::Functions qw(catfile);
use FindBin;
use JSON::PP;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $top = abs_path("$FindBin::Bin/../../..");
my @files = qw(README.md docs/views.md docs/settings.md docs/how-it-works.md docs/tools.md
	docs/clients.md docs/operations.md);
my %text = map { $_ => slurp_file("$top/$_") } @files;

my $node = PostgreSQL::Test::Cluster->new('docs');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_admission'\n");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION pg_admission; CREATE ROLE nobody');

# The rows of a query, as hashes
sub rows
{
	my ($query) = @_;
	my $json = $node->safe_psql('postgres',
		"SELECT coalesce(json_agg(row_to_json(r)), '[]') FROM ($query) r");

	return @{ decode_json($json) };
}

# One test for all of something, that names whatever is wrong
sub none_ok
{
	my ($name, @wrong) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	ok(!@wrong, $name) or diag map { "  $_\n" } @wrong;
	return;
}

# Settings

my %settings = map { $_->{name} => $_ } rows(q{
	SELECT name, vartype, context, unit, min_val, max_val, enumvals, source,
	       current_setting(name) AS shown
	FROM pg_settings WHERE name LIKE 'pg\_admission.%'});

# The entries of settings.md, each as a hash of its fields
sub setting_entries
{
	my %entries;
	my (undef, @parts) = split /^### `([^`]+)`\n/m, $text{'docs/settings.md'};

	while (my ($name, $body) = splice @parts, 0, 2)
	{
		$body =~ s/^#.*//ms;
		$body =~ s/\n  +/ /g;
		$entries{$name} = { $body =~ /^- ([A-Z][a-z ]+): (.*)$/mg };
		$entries{$name}{Meaning} = $body =~ s/^- .*//msr;
	}
	return %entries;
}

# What is wrong with the field "Type", which has range, unit and values, too
sub wrong_type
{
	my ($setting, $type) = @_;
	my ($min, $max) = $type =~ /range `([^`]*)` to `([^`]*)`/;
	my ($unit) = $type =~ /\bin (ms|kB|MB|s)\b/;
	my @values = $type =~ /`([^`]*)`/g;
	my @wrong;

	push @wrong, "is of type $setting->{vartype}"
	  unless ($values[0] // '') eq $setting->{vartype};
	push @wrong, 'has the unit ' . ($setting->{unit} // 'none')
	  unless ($unit // '') eq ($setting->{unit} // '');
	push @wrong, "has the range $setting->{min_val} to $setting->{max_val}"
	  if defined $setting->{min_val}
	  && !(defined $min && $min == $setting->{min_val} && $max == $setting->{max_val});
	push @wrong, "has the values @{ $setting->{enumvals} }"
	  if $setting->{enumvals} && "@values[1 .. $#values]" ne "@{ $setting->{enumvals} }";
	return @wrong;
}

sub wrong_setting
{
	my ($setting, $entry) = @_;
	my $name = $setting->{name};
	my @missing = grep { ($entry->{$_} // '') !~ /\w/ }
	  ('Type', 'Default', 'Set by', 'Takes effect', 'Errors', 'Since', 'Meaning');

	return "$name lacks: @missing" if @missing;
	return map { "$name $_" } (
		wrong_type($setting, $entry->{Type}),
		$entry->{Default} eq "`$setting->{shown}`" ? () : "has the default $setting->{shown}",
		$entry->{'Set by'} =~ /^`$setting->{context}`/ ? () : "is of context $setting->{context}");
}

my %entries = setting_entries();
cmp_ok(scalar keys %settings, '>', 0, 'there are settings');
none_ok('none of them is set here', grep { $settings{$_}{source} ne 'default' } sort keys %settings);
none_ok('settings.md has every setting', grep { !$entries{$_} } sort keys %settings);
none_ok('settings.md has no setting that does not exist', grep { !$settings{$_} } sort keys %entries);
none_ok('settings.md is right about each',
	map { wrong_setting($settings{$_}, $entries{$_}) } grep { $entries{$_} } sort keys %settings);

# Views and functions

my $members = q{SELECT objid FROM pg_depend
	WHERE deptype = 'e' AND refclassid = 'pg_extension'::regclass
	  AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'pg_admission')};
my %columns;
foreach my $row (rows(qq{
	SELECT c.relname AS relation, a.attname || ' ' || format_type(a.atttypid, a.atttypmod) AS name
	FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
	WHERE c.oid IN ($members AND classid = 'pg_class'::regclass)
	  AND a.attnum > 0 AND NOT a.attisdropped ORDER BY 1, a.attnum}))
{
	push @{ $columns{ $row->{relation} } }, $row->{name};
}
my %views = map { $_ => 1 } keys %columns;
my %functions = map { $_->{name} => $_ } rows(qq{
	SELECT p.proname AS name,
	       p.proname || '(' || coalesce((
	           SELECT string_agg(p.proargnames[i + 1] || ' ' || format_type(p.proargtypes[i], NULL), ', ' ORDER BY i)
	           FROM generate_series(0, p.pronargs - 1) i), '') || ')' AS signature,
	       format_type(p.prorettype, NULL) AS result,
	       (SELECT json_agg(o.name || ' ' || format_type(o.type, NULL) ORDER BY o.n)
	        FROM unnest(p.proargnames, p.proallargtypes, p.proargmodes) WITH ORDINALITY o (name, type, mode, n)
	        WHERE o.mode = 'o') AS results,
	       has_function_privilege('nobody', p.oid, 'EXECUTE') AS public
	FROM pg_proc p WHERE p.oid IN ($members AND classid = 'pg_proc'::regclass)});

# The sections of views.md, by name: kind, text, and the columns of its table
sub view_sections
{
	my %sections;
	my (undef, @parts) = split /^## (View|Function) `([^`]+)`\n/m, $text{'docs/views.md'};

	while (my ($kind, $name, $body) = splice @parts, 0, 3)
	{
		my ($table) = $body =~ /^\| column \|.*?\n((?:\|.*\n)*)/m;
		my @names = ($table // '') =~ /^\| `([^`]+)` \| `[^`]+` \|[^|]*\|[^|]*\w[^|]*\|$/mg;
		my @types = ($table // '') =~ /^\| `[^`]+` \| `([^`]+)` \|/mg;

		$sections{$name} = { kind => $kind, body => $body,
			columns => [ map { "$names[$_] $types[$_]" } 0 .. $#names ] };
	}
	return %sections;
}

my %sections = view_sections();
my %of_kind;
$of_kind{ $sections{$_}{kind} }{$_} = 1 foreach keys %sections;

sub wrong_columns
{
	my ($relation, $is, $said) = @_;
	my %is = map { $_ => 1 } @$is;
	my %said = map { $_ => 1 } @$said;
	my @wrong = (
		(map { "$relation: $_ is missing" } grep { !$said{$_} } @$is),
		(map { "$relation: $_ does not exist" } grep { !$is{$_} } @$said));

	push @wrong, "$relation: columns are in another order" if !@wrong && "@$is" ne "@$said";
	return @wrong;
}

cmp_ok(scalar keys %views, '>', 0, 'there are views');
none_ok('views.md has every view', grep { !$of_kind{View}{$_} } sort keys %views);
none_ok('views.md has no view that does not exist', grep { !$views{$_} } sort keys %{ $of_kind{View} });
none_ok('views.md has the columns of every view, and their types',
	map { wrong_columns($_, $columns{$_}, $sections{$_}{columns}) } grep { $sections{$_} } sort keys %views);
none_ok('views.md has every function, with its arguments',
	grep { index($text{'docs/views.md'}, "`$_`") < 0 } map { $functions{$_}{signature} } sort keys %functions);
none_ok('views.md has no arguments of functions that do not exist',
	grep { my $said = $_; !grep { $_->{signature} eq $said } values %functions }
	  $text{'docs/views.md'} =~ /`(pg_(?:stat_)?admission\w*\([^)`]+\))`/g);
none_ok('views.md has the results of functions that are not views',
	map { wrong_columns($_, $functions{$_}{results}, ($sections{$_} || {})->{columns} || []) }
	grep { !$views{$_} && $functions{$_}{results} } sort keys %functions);
none_ok('views.md says which functions are not for all',
	grep { my $name = $_; !grep { $_->{body} =~ /`\Q$name\E\(/ && $_->{body} =~ /Superusers may call/ } values %sections }
	  grep { !$functions{$_}{public} } sort keys %functions);

# Every name in any file, be it in a text or a statement

sub unknown_names
{
	my ($file) = @_;
	my @unknown;

	while ($text{$file} =~ /(?<![\w\/.\\-])(pg_(?:stat_)?admission\w*)(?:\.(\w+))?/g)
	{
		my ($name, $part) = ($1, $2);
		my $known =
		    $name eq 'pg_admission' ? !defined $part || $settings{"$name.$part"}
		  : defined $part ? $part eq 'h' || grep { /^\Q$part\E / } @{ $columns{$name} || [] }
		  : $views{$name} || $functions{$name};

		push @unknown, "$file: $name" . (defined $part ? ".$part" : '') unless $known;
	}
	return @unknown;
}

none_ok("$_ names nothing that does not exist", unknown_names($_)) foreach @files;

# Links

# The anchors that a heading gets
sub anchors
{
	my ($markdown) = @_;

	return map { lc =~ s/[^\w\s-]//gr =~ s/\s/-/gr } $markdown =~ /^#+ +(.*?) *$/mg;
}

sub broken_links
{
	my ($file) = @_;
	my @broken;

	foreach my $link ($text{$file} =~ /\]\(([^)\s]+)\)/g)
	{
		my ($path, $anchor) = split /#/, $link, 2;
		my $target = $path eq '' ? "$top/$file" : catfile($top, dirname($file), $path);

		next if $link =~ /^[a-z]+:/;
		push @broken, "$file: $link"
		  if !-e $target
		  || (defined $anchor && !grep { $_ eq $anchor } anchors(slurp_file($target)));
	}
	return @broken;
}

none_ok("the links of $_ lead somewhere", broken_links($_)) foreach @files;

# Statements, file by file as a reader would run them, who has some roles and a
# table.  "-- ERROR: ..." in a statement is what it is to end with.

$node->safe_psql(
	'postgres', q{
	DROP EXTENSION pg_admission;
	CREATE ROLE reporting LOGIN;
	CREATE ROLE app LOGIN;
	CREATE TABLE orders (customer int, amount int)});

sub failing_statements
{
	my ($file) = @_;
	my @failing;

	foreach my $block ($text{$file} =~ /^```sql\n(.*?)^```$/msg)
	{
		my $expected = join "\n", $block =~ /^-- (ERROR: .*)$/mg;
		my ($ret, $out, $err) = $node->psql('postgres', $block, on_error_stop => 0);
		my $got = join "\n", $err =~ /(ERROR: .*)$/mg;

		push @failing, "$file: $got\n$block" if $got ne $expected;
	}
	return @failing;
}

foreach my $file (@files)
{
	cmp_ok(scalar(() = $text{$file} =~ /^```sql$/mg), '>', 0, "$file has statements");
	none_ok("the statements of $file work", failing_statements($file));
}

$node->stop;
done_testing();
