/*-------------------------------------------------------------------------
 *
 * cgroup_test.c
 *		Unit tests of src/cgroup.c, as a program that prints TAP.
 *
 *		Links: src/cgroup.c src/procfs.c src/textfile.c
 *
 * Arguments, both optional: the folder of the recorded trees, and how many
 * spoiled texts each parser gets.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  test/unit/cgroup_test.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "cgroup.h"
#include "texts.h"

#define NO_LIMIT	PGADM_CGROUP_NO_LIMIT
#define NO_QUOTA	HUGE_VAL
#define MB			(INT64CONST(1024) * 1024)
#define GB			(1024 * MB)

/* ---- one function for each parser, so that all can be had by table ---- */

static bool
parse_number(const char *text, size_t len, double *numbers)
{
	numbers[0] = pgadm_cgroup_parse_number(text, len);
	return numbers[0] != UNKNOWN;
}

static bool
parse_limit(const char *text, size_t len, double *numbers)
{
	numbers[0] = pgadm_cgroup_parse_memory_limit(text, len);
	return numbers[0] != UNKNOWN;
}

static bool
parse_cpu_max(const char *text, size_t len, double *numbers)
{
	numbers[0] = pgadm_cgroup_parse_cpu_max(text, len);
	return numbers[0] != UNKNOWN;
}

/* the quota, with a usual period */
static bool
parse_quota(const char *text, size_t len, double *numbers)
{
	numbers[0] = pgadm_cgroup_parse_cpu_quota(text, len, "100000\n", 7);
	return numbers[0] != UNKNOWN;
}

/* the period, with a quota of half a second */
static bool
parse_period(const char *text, size_t len, double *numbers)
{
	numbers[0] = pgadm_cgroup_parse_cpu_quota("500000\n", 7, text, len);
	return numbers[0] != UNKNOWN;
}

static bool
parse_memory_stat1(const char *text, size_t len, double *numbers)
{
	numbers[0] = pgadm_cgroup_parse_reclaimable(text, len, 1);
	return numbers[0] != UNKNOWN;
}

static bool
parse_memory_stat2(const char *text, size_t len, double *numbers)
{
	numbers[0] = pgadm_cgroup_parse_reclaimable(text, len, 2);
	return numbers[0] != UNKNOWN;
}

static bool
parse_cpu_stat(const char *text, size_t len, double *numbers)
{
	static const char *const key[] = {"usage_usec"};
	int64		value;

	if (pgadm_textfile_keys(text, len, key, NULL, 1, &value) != 1)
		return false;
	numbers[0] = value;
	return true;
}

/* ---- texts ------------------------------------------------------------ */

#define MEMORY_STAT1 \
	"cache 9\ninactive_file 1\nactive_file 2\nhierarchical_memory_limit 77\n" \
	"total_cache 900\ntotal_shmem 400\n" \
	"total_inactive_file 300\ntotal_active_file 200\ntotal_unevictable 0\n"
#define MEMORY_STAT2 \
	"anon 1\nfile 900\nshmem 400\ninactive_anon 400\nactive_anon 1\n" \
	"inactive_file 300\nactive_file 200\nslab_reclaimable 50\nslab 60\n"

static const TextCase texts[] = {
	{parse_number, "number", {T("123\n")}, true, {123}},
	{parse_number, "number: 0", {T("0\n")}, true, {0}},
	{parse_number, "number: largest", {T(BIG "\n")}, true, {(double) PG_INT64_MAX}},
	{parse_number, "number: leading zeroes", {T("007\n")}, true, {7}},
	{parse_number, "number: too large", {T(TOO_BIG "\n")}},
	{parse_number, "number: huge", {T(HUGE_ "\n")}},
	{parse_number, "number: empty", {T("")}},
	{parse_number, "number: empty line", {T("\n")}},
	{parse_number, "number: cut", {T("123")}},
	{parse_number, "number: negative", {T("-1\n")}},
	{parse_number, "number: with a sign", {T("+1\n")}},
	{parse_number, "number: hexadecimal", {T("0x10\n")}},
	{parse_number, "number: with an exponent", {T("1e9\n")}},
	{parse_number, "number: fraction", {T("1.5\n")}},
	{parse_number, "number: letters", {T("many\n")}},
	{parse_number, "number: two lines", {T("1\n2\n")}},
	{parse_number, "number: two numbers", {T("1 2\n")}},
	{parse_number, "number: blanks before", {T(" 1\n")}},
	{parse_number, "number: blanks behind", {T("1 \n")}},
	{parse_number, "number: carriage return", {T("1\r\n")}},
	{parse_number, "number: NUL within", {T("1\0002\n")}},
	{parse_number, "number: NUL behind", {T("1\n\0")}},

	{parse_limit, "limit", {T("1610612736\n")}, true, {1610612736}},
	{parse_limit, "limit: v2 none", {T("max\n")}, true, {(double) NO_LIMIT}},
	{parse_limit, "limit: v1 none", {T("9223372036854771712\n")}, true, {(double) NO_LIMIT}},
	{parse_limit, "limit: v1 none, large pages", {T("9223372036854710272\n")}, true, {(double) NO_LIMIT}},
	{parse_limit, "limit: unsigned", {T("18446744073709551615\n")}, true, {(double) NO_LIMIT}},
	{parse_limit, "limit: huge", {T(HUGE_ "\n")}, true, {(double) NO_LIMIT}},
	{parse_limit, "limit: largest that is one", {T("4611686018427387903\n")}, true, {4611686018427387903.0}},
	{parse_limit, "limit: 0", {T("0\n")}},
	{parse_limit, "limit: v1 negative", {T("-1\n")}},
	{parse_limit, "limit: empty", {T("")}},
	{parse_limit, "limit: cut", {T("16106")}},
	{parse_limit, "limit: cut word", {T("ma\n")}},
	{parse_limit, "limit: longer word", {T("maximum\n")}},
	{parse_limit, "limit: huge, then letters", {T(HUGE_ "x\n")}},
	{parse_limit, "limit: huge, then a NUL", {T(HUGE_ "\0\n")}},
	{parse_limit, "limit: unit", {T("1G\n")}},

	{parse_cpu_max, "cpu.max", {T("150000 100000\n")}, true, {1.5}},
	{parse_cpu_max, "cpu.max: none", {T("max 100000\n")}, true, {NO_QUOTA}},
	{parse_cpu_max, "cpu.max: smallest", {T("1000 1000000\n")}, true, {0.001}},
	{parse_cpu_max, "cpu.max: less than that", {T("1 1000000\n")}},
	{parse_cpu_max, "cpu.max: huge quota", {T(BIG " 100000\n")}, true, {(double) PG_INT64_MAX / 100000}},
	{parse_cpu_max, "cpu.max: too large", {T(TOO_BIG " 100000\n")}},
	{parse_cpu_max, "cpu.max: quota 0", {T("0 100000\n")}},
	{parse_cpu_max, "cpu.max: period 0", {T("100000 0\n")}},
	{parse_cpu_max, "cpu.max: negative", {T("-1 100000\n")}},
	{parse_cpu_max, "cpu.max: quota alone", {T("150000\n")}},
	{parse_cpu_max, "cpu.max: max alone", {T("max\n")}},
	{parse_cpu_max, "cpu.max: max, no period", {T("max \n")}},
	{parse_cpu_max, "cpu.max: max run together", {T("max100000\n")}},
	{parse_cpu_max, "cpu.max: three numbers", {T("150000 100000 1\n")}},
	{parse_cpu_max, "cpu.max: cut", {T("150000 1000")}},
	{parse_cpu_max, "cpu.max: empty", {T("")}},
	{parse_cpu_max, "cpu.max: NUL", {T("150000\000100000\n")}},

	{parse_quota, "quota", {T("50000\n")}, true, {0.5}},
	{parse_quota, "quota: none", {T("-1\n")}, true, {NO_QUOTA}},
	{parse_quota, "quota: other negative", {T("-2\n")}},
	{parse_quota, "quota: longer negative", {T("-10\n")}},
	{parse_quota, "quota: 0", {T("0\n")}},
	{parse_quota, "quota: cut", {T("-1")}},
	{parse_quota, "quota: empty", {T("")}},
	{parse_quota, "quota: huge", {T(HUGE_ "\n")}},
	{parse_period, "period", {T("250000\n")}, true, {2}},
	{parse_period, "period: 0", {T("0\n")}},
	{parse_period, "period: negative", {T("-1\n")}},
	{parse_period, "period: not there", {T("")}},
	{parse_period, "period: so large that the quota is none", {T(BIG "\n")}},

	{parse_memory_stat1, "v1 memory.stat", {T(MEMORY_STAT1)}, true, {500}},
	{parse_memory_stat1, "v1 memory.stat: v2", {T(MEMORY_STAT2)}},
	{parse_memory_stat1, "v1 memory.stat: half", {T("total_inactive_file 300\n")}},
	{parse_memory_stat1, "v1 memory.stat: cut", {T("total_inactive_file 300\ntotal_active_file 2")}},
	{parse_memory_stat1, "v1 memory.stat: sum too large", {T("total_inactive_file " BIG "\ntotal_active_file 1\n")}},
	{parse_memory_stat1, "v1 memory.stat: empty", {T("")}},
	{parse_memory_stat2, "v2 memory.stat", {T(MEMORY_STAT2)}, true, {550}},
	{parse_memory_stat2, "v2 memory.stat: no slab", {T("inactive_file 300\nactive_file 200\n")}},
	{parse_memory_stat2, "v2 memory.stat: slab too large", {T("inactive_file 300\nactive_file 200\nslab_reclaimable " BIG "\n")}},
	{parse_memory_stat2, "v2 memory.stat: first of two counts", {T("inactive_file 1\nactive_file 2\ninactive_file 7\nslab_reclaimable 4\n")}, true, {7}},
	{parse_memory_stat2, "v2 memory.stat: negative", {T("inactive_file -1\nactive_file 2\nslab_reclaimable 4\n")}},
	{parse_memory_stat2, "v2 memory.stat: longer name", {T("inactive_files 1\nactive_file 2\nslab_reclaimable 4\n")}},
	{parse_memory_stat2, "v2 memory.stat: NUL", {T("inactive_file 1\0\nactive_file 2\nslab_reclaimable 4\n")}},
	{parse_memory_stat2, "v2 memory.stat: empty", {T("")}},

	{parse_cpu_stat, "cpu.stat", {T("usage_usec 31000000\nuser_usec 1\n")}, true, {31000000}},
	{parse_cpu_stat, "cpu.stat: v1", {T("nr_periods 0\nnr_throttled 0\n")}},
	{parse_cpu_stat, "cpu.stat: two numbers", {T("usage_usec 1 2\n")}},
	{parse_cpu_stat, "cpu.stat: cut", {T("usage_usec 310")}},
};

/* ---- control groups --------------------------------------------------- */

#define MOUNT1(root, place, controllers) \
	"35 31 0:32 " root " " place " rw,relatime shared:1 - cgroup cgroup rw," controllers "\n"
#define MOUNT2(root, place) \
	"30 23 0:26 " root " " place " rw,relatime shared:9 master:1 - cgroup2 cgroup2 rw\n"

static const struct
{
	const char *name;
	Text		cgroup;
	Text		mounts;
	const char *controller;
	int			version;		/* 0: none */
	const char *mount;
	const char *below;
}			groups[] = {
	{"v1", {T("4:memory:/a/b\n0::/\n")}, {T(MOUNT1("/", "/m", "memory"))},
	"memory", 1, "/m", "/a/b"},
	{"v1, root", {T("4:memory:/\n")}, {T(MOUNT1("/", "/m", "memory"))},
	"memory", 1, "/m", ""},
	{"v1, two controllers", {T("4:cpu,cpuacct:/a\n")}, {T(MOUNT1("/", "/c", "cpu,cpuacct"))},
	"cpuacct", 1, "/c", "/a"},
	{"v1, one is the beginning of another", {T("3:cpuset:/s\n4:cpu:/a\n")},
		{T(MOUNT1("/", "/s", "cpuset") MOUNT1("/", "/c", "cpu"))},
	"cpu", 1, "/c", "/a"},
	{"v1, a name with a colon", {T("4:memory:/a:b\n")}, {T(MOUNT1("/", "/m", "memory"))},
	"memory", 1, "/m", "/a:b"},
	{"v1, mounted from the group on", {T("4:memory:/docker/1/x\n")}, {T(MOUNT1("/docker/1", "/m", "memory"))},
	"memory", 1, "/m", "/x"},
	{"v1, mounted from another group on", {T("4:memory:/docker/12\n")}, {T(MOUNT1("/docker/1", "/m", "memory"))},
	"memory", 1, "/m", ""},
	{"v1, the second mount fits", {T("4:memory:/a/b\n")},
		{T(MOUNT1("/x", "/m", "memory") MOUNT1("/a", "/n", "memory") MOUNT1("/", "/o", "memory"))},
	"memory", 1, "/n", "/b"},
	{"v1, no mount fits", {T("4:memory:/a/b\n")},
		{T(MOUNT1("/x", "/m", "memory") MOUNT1("/y", "/n", "memory"))},
	"memory", 1, "/m", ""},
	{"v1, not mounted", {T("4:memory:/a/b\n0::/\n")}, {T(MOUNT2("/", "/m"))},
	"memory", 0},
	{"v1 before v2, in any order", {T("0::/u\n4:memory:/a/b\n")},
		{T(MOUNT2("/", "/u") MOUNT1("/", "/m", "memory"))},
	"memory", 1, "/m", "/a/b"},
	{"v1 without this controller, so v2", {T("4:pids:/a/b\n1:name=systemd:/a\n0::/u\n")},
		{T(MOUNT1("/", "/p", "pids") MOUNT2("/", "/m"))},
	"memory", 2, "/m", "/u"},
	{"v2", {T("0::/a/b\n")}, {T(MOUNT2("/", "/m"))},
	"memory", 2, "/m", "/a/b"},
	{"v2, root", {T("0::/\n")}, {T(MOUNT2("/", "/m"))},
	"cpu", 2, "/m", ""},
	{"v2, outside of the namespace", {T("0::/../b\n")}, {T(MOUNT2("/", "/m"))},
	"memory", 2, "/m", ""},
	{"v2, mounted from outside", {T("0::/\n")}, {T(MOUNT2("/..", "/m"))},
	"memory", 2, "/m", ""},
	{"v2, a name that begins with dots", {T("0::/..b/...\n")}, {T(MOUNT2("/", "/m"))},
	"memory", 2, "/m", "/..b/..."},
	{"escaped blank, tab, newline, backslash", {T("0::/a b/c\n")}, {T(MOUNT2("/a\\040b", "/\\011\\012\\134"))},
	"memory", 2, "/\t\n\\", "/c"},
	{"escape that is none", {T("0::/a\n")}, {T(MOUNT2("/", "/m\\09"))},
	"memory", 0},
	{"escaped NUL", {T("0::/a\n")}, {T(MOUNT2("/", "/m\\000"))},
	"memory", 0},
	{"escape beyond a byte", {T("0::/a\n")}, {T(MOUNT2("/", "/m\\777"))},
	"memory", 2, "/m\377", "/a"},
	{"other filesystems", {T("0::/a\n")}, {T("1 2 0:3 / /m rw - cgroup3 x rw\n1 2 0:3 / /n rw - tmpfs x rw\n")},
	"memory", 0},
	{"mountinfo: cut", {T("0::/a\n")}, {T("30 23 0:26 / /m rw,relatime - cgroup2 cgroup2 rw")},
	"memory", 0},
	{"mountinfo: too few fields", {T("0::/a\n")}, {T("30 23 0:26 / /m rw - cgroup2\n30 23\n\n")},
	"memory", 0},
	{"mountinfo: empty", {T("0::/a\n")}, {T("")},
	"memory", 0},
	{"mountinfo: NUL", {T("0::/a\n")}, {T(MOUNT2("/", "/m\0m"))},
	"memory", 0},
	{"cgroup: cut", {T("0::/a")}, {T(MOUNT2("/", "/m"))},
	"memory", 0},
	{"cgroup: empty", {T("")}, {T(MOUNT2("/", "/m"))},
	"memory", 0},
	{"cgroup: not numeric", {T("x::/a\n")}, {T(MOUNT2("/", "/m"))},
	"memory", 0},
	{"cgroup: relative", {T("0::a\n")}, {T(MOUNT2("/", "/m"))},
	"memory", 0},
	{"cgroup: NUL", {T("0::/a\0b\n")}, {T(MOUNT2("/", "/m"))},
	"memory", 0},
};

static void
test_groups(void)
{
	for (size_t i = 0; i < lengthof(groups); i++)
	{
		PgAdmCgroup group;
		char		expected[MAXPGPATH] = "";
		bool		found;

		found = pgadm_cgroup_parse_place(groups[i].cgroup.text,
										 groups[i].cgroup.len,
										 groups[i].mounts.text,
										 groups[i].mounts.len,
										 groups[i].controller, &group);
		if (groups[i].version != 0)
			snprintf(expected, sizeof(expected), "%s%s", groups[i].mount,
					 groups[i].below);
		if (!ok(found == (groups[i].version != 0) &&
				group.version == groups[i].version &&
				strcmp(group.path, expected) == 0 &&
				(!found || group.top == (int) strlen(groups[i].mount)),
				"cgroup %s", groups[i].name))
			diag("got version %d, \"%s\", top %d", group.version, group.path,
				 group.top);
	}
}

/* A name that does not fit must not be cut */
static void
test_long_group(void)
{
	static char cgroup[3 * MAXPGPATH];
	PgAdmCgroup group;
	size_t		len = strlen(strcpy(cgroup, "0::/"));

	while (len < 2 * MAXPGPATH)
		cgroup[len++] = 'x';
	cgroup[len++] = '\n';
	ok(!pgadm_cgroup_parse_place(cgroup, len, T(MOUNT2("/", "/m")), "memory",
								 &group),
	   "cgroup: name longer than any path");

	/* name and mount point fit, but not together */
	len = MAXPGPATH;
	cgroup[len++] = '\n';
	ok(pgadm_cgroup_parse_place(cgroup, len, T(MOUNT2("/", "/mount")),
								"memory", &group) &&
	   strcmp(group.path, "/mount") == 0,
	   "cgroup: name and mount point longer than any path");
}

/* The parser of two texts, for which only the place matters, not the values */
static bool
parse_group(const char *text, size_t len, double *numbers)
{
	const char *split = memchr(text, '#', len);
	PgAdmCgroup group;

	if (split == NULL)
		return false;
	if (!pgadm_cgroup_parse_place(text, split - text, split + 1,
								  text + len - split - 1, "memory", &group))
		return false;
	numbers[0] = group.top;
	numbers[1] = strlen(group.path) - group.top;
	numbers[2] = (group.version == 1 || group.version == 2) ? 0 : -2;
	return true;
}

static void
test_spoiled_groups(int count)
{
	static const Text groups[] = {
		{T("4:memory:/a/b\n0::/\n#35 31 0:32 /a /sys/m\\040m rw - cgroup cgroup rw,memory\n")},
		{T("0::/a/b\n#30 23 0:26 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw,nsdelegate\n")},
	};

	for (size_t i = 0; i < lengthof(groups); i++)
		ok(spoiled_texts_are_sane(parse_group, groups[i], count),
		   "control group %zu: spoiled %d times", i, count);
}

/* ---- recorded trees --------------------------------------------------- */

#define MEM_TOTAL	(INT64CONST(16374532) * 1024)
#define MEM_USED	(INT64CONST(4086892) * 1024)
#define PHYSICAL	MEM_TOTAL, MEM_USED, false
#define NO_MEMORY	UNKNOWN, UNKNOWN, false
#define ALL_CPUS	485000000, 4000000000
#define NO_CPU_USE	UNKNOWN, UNKNOWN

/* Four CPUs, of which quotas take some; the time is NOW */
#define NOW			INT64CONST(8000000)

static const struct
{
	const char *name;
	double		cpus;
	int64		limit;
	int64		used;
	bool		from_cgroup;
	int64		busy_us;
	int64		span_us;
}			trees[] = {
	{"v1-none", 4, PHYSICAL, ALL_CPUS},
	{"v1-limit", 0.5, 1536 * MB, 196263936, true, 1311024, NOW / 2},
	{"v1-nested", 1.25, 2 * GB, 1750 * MB, true, 5000000, NOW / 4 * 5},
	{"v1-container", 1.5, 512 * MB, 280 * MB, true, 5000000, NOW / 2 * 3},
	{"v1-container-missing", 0.25, 1 * GB, 500 * MB, true, 5000000, NOW / 4},
	{"v1-apart", 0.5, PHYSICAL, NO_CPU_USE},
	{"v2-none", 4, PHYSICAL, ALL_CPUS},
	{"v2-limit", 1.5, 1 * GB, 499 * MB, true, 31000000, NOW / 2 * 3},
	{"v2-nested", 1.5, 3 * GB, 1888 * MB, true, 8000000, NOW / 2 * 3},
	{"v2-container", 0.2, 256 * MB, 105 * MB, true, 1500000, NOW / 5},
	{"v2-container-missing", 0.2, 256 * MB, 105 * MB, true, 1500000, NOW / 5},
	{"v2-container-outside", 0.2, 256 * MB, 105 * MB, true, 1500000, NOW / 5},
	{"v2-bind-mount", 0.1, 128 * MB, 70 * MB, true, 1000000, NOW / 10},
	{"v2-beyond", 4, PHYSICAL, ALL_CPUS},
	{"v2-empty", 4, NO_MEMORY, NO_CPU_USE},
	{"v2-truncated", 4, NO_MEMORY, NO_CPU_USE},
	{"v2-huge", 4, NO_MEMORY, NO_CPU_USE},
	{"v2-negative", 4, NO_MEMORY, NO_CPU_USE},
	{"v2-not-numeric", 4, NO_MEMORY, NO_CPU_USE},
	{"no-such-tree", 4, NO_MEMORY, NO_CPU_USE},
};

static void
open_tree(PgAdmCgroups *groups, const char *name)
{
	char		root[MAXPGPATH];

	tree_root(root, name);
	pgadm_cgroup_init(groups, root);
}

static void
test_tree_memory(const PgAdmCgroups *groups, size_t i)
{
	PgAdmCgroupMemory memory;
	bool		known = pgadm_cgroup_memory(groups, &memory);

	if (!ok(known == (trees[i].limit != UNKNOWN) &&
			memory.limit == trees[i].limit && memory.used == trees[i].used &&
			memory.from_cgroup == trees[i].from_cgroup,
			"%s: memory", trees[i].name))
		diag("got %lld used of %lld%s", (long long) memory.used,
			 (long long) memory.limit, memory.from_cgroup ? ", cgroup" : "");
}

static void
test_tree_cpus(const PgAdmCgroups *groups, size_t i)
{
	PgAdmProcfsCpuSet set;
	PgAdmCgroupCpuUse use;
	char		name[100];
	double		cpus;
	bool		known;

	memset(&set, 0, sizeof(set));
	set.word[0] = 0xf;
	cpus = pgadm_cgroup_usable_cpus(groups, &set);
	snprintf(name, sizeof(name), "%s: CPUs", trees[i].name);
	is_double(cpus, trees[i].cpus, name);

	known = pgadm_cgroup_cpu_use(groups, &set, NOW, &use);
	if (!ok(known == (trees[i].busy_us != UNKNOWN) &&
			(!known || (use.busy_us == trees[i].busy_us &&
						use.span_us == trees[i].span_us &&
						use.cpus == cpus && use.by_quota == (cpus < 4))),
			"%s: use of the CPUs", trees[i].name))
		diag("got %s, %lld of %lld us, %g CPUs", known ? "known" : "unknown",
			 (long long) use.busy_us, (long long) use.span_us, use.cpus);
}

static void
test_trees(void)
{
	for (size_t i = 0; i < lengthof(trees); i++)
	{
		PgAdmCgroups groups;

		open_tree(&groups, trees[i].name);
		test_tree_memory(&groups, i);
		test_tree_cpus(&groups, i);
	}
}

static void
test_same_cpus(void)
{
	PgAdmCgroupCpuUse all = {1, 2, 4, false};
	PgAdmCgroupCpuUse quota = {1, 2, 4, true};
	PgAdmCgroupCpuUse later = {5, 9, 4, false};
	PgAdmCgroupCpuUse fewer = {5, 9, 3, false};

	ok(pgadm_cgroup_same_cpus(&all, &later), "two samples of the same CPUs");
	ok(!pgadm_cgroup_same_cpus(&all, &quota), "CPUs, then a quota");
	ok(!pgadm_cgroup_same_cpus(&all, &fewer), "CPUs, then fewer");
}

static void
test_span_of_quota(void)
{
	PgAdmCgroups groups;
	PgAdmCgroupCpuUse use;
	PgAdmProcfsCpuSet none;

	memset(&none, 0, sizeof(none));
	open_tree(&groups, "v2-limit");
	ok(!pgadm_cgroup_cpu_use(&groups, &none, PG_INT64_MAX, &use),
	   "a clock beyond what can be told");
	ok(!pgadm_cgroup_cpu_use(&groups, &none, -5, &use), "a negative clock");
	is_double(pgadm_cgroup_usable_cpus(&groups, &none), 1.5,
			  "CPUs of a quota, affinity unknown");
	open_tree(&groups, "v2-none");
	is_double(pgadm_cgroup_usable_cpus(&groups, &none), UNKNOWN,
			  "CPUs without a quota, affinity unknown");
}

/* ---- this machine ----------------------------------------------------- */

static void
test_this_machine(void)
{
	PgAdmCgroups groups;
	PgAdmProcfsCpuSet set;
	PgAdmCgroupCpuUse before;
	PgAdmCgroupCpuUse after;
	PgAdmCgroupMemory memory;
	int			count;
	double		cpus;

	pgadm_cgroup_init(&groups, PGADM_PROCFS_HERE);
	(void) pgadm_procfs_affinity(&set);
	count = pgadm_procfs_cpu_count(&set);
	cpus = pgadm_cgroup_usable_cpus(&groups, &set);
	ok(cpus > 0 && cpus <= count, "here: usable CPUs");
	ok(pgadm_cgroup_memory(&groups, &memory) && memory.limit > 0 &&
	   memory.used > 0 && memory.used < memory.limit, "here: memory");

	if (!pgadm_cgroup_cpu_use(&groups, &set, pgadm_clock_us(), &before))
	{
		skip(1, "this machine does not tell how its CPUs are used");
		return;
	}
	spin(200000);
	ok(pgadm_cgroup_cpu_use(&groups, &set, pgadm_clock_us(), &after) &&
	   pgadm_cgroup_same_cpus(&before, &after) &&
	   after.busy_us > before.busy_us && after.span_us > before.span_us,
	   "here: use of the CPUs grows");
}

int
main(int argc, char **argv)
{
	int			count = argc > 2 ? atoi(argv[2]) : 2000;

	if (argc > 1)
		data_folder = argv[1];

	test_texts(texts, lengthof(texts));
	test_cut_texts(texts, lengthof(texts));
	test_spoiled_texts(texts, lengthof(texts), count);
	test_spoiled_groups(count);
	test_groups();
	test_long_group();
	test_trees();
	test_same_cpus();
	test_span_of_quota();
	test_this_machine();
	return done_testing();
}
