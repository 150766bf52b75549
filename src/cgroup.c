/*-------------------------------------------------------------------------
 *
 * cgroup.c
 *		Reads control groups: what the server may use, and uses of that.
 *
 * The parsers, pgadm_cgroup_parse_*, are pure; see grammar.h.  The readers
 * give them the files of the machine, or of a recorded tree.
 *
 * The server's own group may be limited by any group above it, so every level
 * is looked at, from its own up to the one that is mounted.  In a container
 * the group that /proc/self/cgroup names may not be there, since only a part
 * of the hierarchy is mounted; levels that are not there have no limit.  What
 * is used is taken from the level that has the limit.
 *
 * Nothing here needs a backend: no shared memory, lock, setting, palloc or
 * ereport, so that test/unit/cgroup_test.c can be linked with this file,
 * procfs.c and textfile.c alone.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/cgroup.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "cgroup.h"
#include "grammar.h"
#include "textfile.h"

/* Limits from here on are the kernel's way to say that there is none */
#define HUGE_LIMIT		(INT64CONST(1) << 62)

/* In CPUs; the kernel takes no less than a millisecond of a second */
#define SMALLEST_QUOTA	0.001

/* Where the group of a controller is mounted */
typedef struct GroupScan
{
	const char *controller;
	int			version;		/* of the group: 1, 2, 0 = not found */
	char		path[MAXPGPATH];	/* the group in its hierarchy */
	bool		mounted;
	char		mount[MAXPGPATH];
	char		below[MAXPGPATH];	/* path under the mount */
} GroupScan;

/* What the memory controller calls things, by version */
static const struct
{
	const char *limit;
	const char *usage;
	int			nreclaimable;
	const char *reclaimable[3]; /* in memory.stat */
}			memory_names[] = {
	{.limit = NULL},
	{"/memory.limit_in_bytes", "/memory.usage_in_bytes", 2,
	{"total_inactive_file", "total_active_file"}},
	{"/memory.max", "/memory.current", 3,
	{"inactive_file", "active_file", "slab_reclaimable"}},
};

/* ---- parsers ---------------------------------------------------------- */

int64
pgadm_cgroup_parse_number(const char *text, size_t len)
{
	Cursor		c;
	int64		value;

	if (one_line(text, len, &c) && take_int(&c, &value) && at_end(&c))
		return value;
	return PGADM_UNKNOWN;
}

/*
 * A limit of nothing is not a limit that a server runs under, so unknown.  One
 * that is too large for an int64 is as good as none.
 */
int64
pgadm_cgroup_parse_memory_limit(const char *text, size_t len)
{
	Cursor		c;
	Cursor		word;
	int64		value;

	if (!one_line(text, len, &c) || !take_word(&c, &word) || !at_end(&c))
		return PGADM_UNKNOWN;
	c = word;
	if (take_string(&c, "max") && at_end(&c))
		return PGADM_CGROUP_NO_LIMIT;
	c = word;
	if (!take_digits(&c) || !at_end(&c))
		return PGADM_UNKNOWN;

	value = pgadm_cgroup_parse_number(text, len);
	if (value == PGADM_UNKNOWN || value >= HUGE_LIMIT)
		return PGADM_CGROUP_NO_LIMIT;
	return value > 0 ? value : PGADM_UNKNOWN;
}

/*
 * "cache" and "file" would not do: they include shared memory, such as
 * shared_buffers, which cannot be dropped.  Version 2 also counts what the
 * kernel caches of files' names, version 1 does not.
 */
int64
pgadm_cgroup_parse_reclaimable(const char *text, size_t len, int version)
{
	int64		values[lengthof(memory_names[0].reclaimable)];
	int64		sum = 0;
	int			nkeys;

	if (version != 1 && version != 2)
		return PGADM_UNKNOWN;
	nkeys = memory_names[version].nreclaimable;
	if (pgadm_textfile_keys(text, len, memory_names[version].reclaimable,
							NULL, nkeys, values) < nkeys)
		return PGADM_UNKNOWN;
	for (int i = 0; i < nkeys; i++)
	{
		if (!add_int(&sum, values[i]))
			return PGADM_UNKNOWN;
	}
	return sum;
}

/* CPUs from microseconds per period */
static double
quota_in_cpus(int64 quota, int64 period)
{
	double		cpus;

	if (quota <= 0 || period <= 0)
		return PGADM_UNKNOWN;
	cpus = (double) quota / (double) period;
	return cpus < SMALLEST_QUOTA ? PGADM_UNKNOWN : cpus;
}

double
pgadm_cgroup_parse_cpu_max(const char *text, size_t len)
{
	Cursor		c;
	int64		quota = 0;
	int64		period;
	bool		none;

	if (!one_line(text, len, &c))
		return PGADM_UNKNOWN;
	none = take_string(&c, "max");
	if (!(none || take_int(&c, &quota)) || !take_char(&c, ' ') ||
		!take_int(&c, &period) || !at_end(&c))
		return PGADM_UNKNOWN;
	return none ? HUGE_VAL : quota_in_cpus(quota, period);
}

double
pgadm_cgroup_parse_cpu_quota(const char *quota, size_t quota_len,
							 const char *period, size_t period_len)
{
	Cursor		c;

	if (one_line(quota, quota_len, &c) && take_string(&c, "-1") && at_end(&c))
		return HUGE_VAL;
	return quota_in_cpus(pgadm_cgroup_parse_number(quota, quota_len),
						 pgadm_cgroup_parse_number(period, period_len));
}

/* ---- paths ------------------------------------------------------------ */

/* Cut the last component off, but never what is above top */
static bool
go_up(char path[MAXPGPATH], int top)
{
	char	   *slash = strrchr(path, '/');

	if (slash == NULL || slash - path < top)
		return false;
	*slash = '\0';
	return true;
}

/* What comes after a leading folder, or NULL if the path is not in it */
static const char *
below_folder(const char *path, const char *folder)
{
	size_t		len = strlen(folder);

	if (strcmp(folder, "/") == 0)
		return strcmp(path, "/") == 0 ? "" : path;
	if (strncmp(path, folder, len) != 0 ||
		(path[len] != '/' && path[len] != '\0'))
		return NULL;
	return path + len;
}

/* Outside of this process's namespace the kernel shows paths with these */
static bool
has_dot_dot(const char *path)
{
	const char *found = path;

	while ((found = strstr(found, "/..")) != NULL)
	{
		found += 3;
		if (*found == '/' || *found == '\0')
			return true;
	}
	return false;
}

/* Copy a word of mountinfo, where blanks and the like are written \ooo */
static bool
copy_unescaped(char out[MAXPGPATH], Cursor word)
{
	out[0] = '\0';
	for (; !at_end(&word); word.p++)
	{
		char		ch = *word.p;

		if (ch == '\\')
		{
			int			code = 0;

			if (word.end - word.p < 4)
				return false;
			for (int i = 1; i <= 3; i++)
			{
				if (word.p[i] < '0' || word.p[i] > '7')
					return false;
				code = code * 8 + (word.p[i] - '0');
			}
			ch = (char) code;
			word.p += 3;
		}
		if (!pgadm_textfile_append(out, &ch, 1))
			return false;
	}
	return out[0] == '/';
}

/* ---- which control group, and where ----------------------------------- */

/* Is the name one of a comma-separated list? */
static bool
list_has(Cursor list, const char *name)
{
	while (!at_end(&list))
	{
		Cursor		item = list;

		if (take_string(&item, name) && (at_end(&item) || *item.p == ','))
			return true;
		while (!at_end(&list) && *list.p++ != ',')
			continue;
	}
	return false;
}

/*
 * A line of /proc/self/cgroup: id:controllers:path.  Version 1 has a hierarchy
 * for some controllers each; version 2 one for the rest, with no names.
 */
static bool
group_line(Cursor line, bool whole, void *state)
{
	GroupScan  *scan = state;
	Cursor		list;
	int64		id;
	bool		unified;

	if (!whole || !take_int(&line, &id) || !take_char(&line, ':'))
		return true;
	list.p = line.p;
	while (!at_end(&line) && *line.p != ':')
		line.p++;
	list.end = line.p;
	unified = (id == 0 && at_end(&list));
	if (!take_char(&line, ':') || at_end(&line) || *line.p != '/' ||
		!(list_has(list, scan->controller) || (unified && scan->version == 0)))
		return true;

	scan->path[0] = '\0';
	if (pgadm_textfile_append(scan->path, line.p, line.end - line.p))
		scan->version = unified ? 2 : 1;
	return unified;
}

/*
 * The fields of a line of /proc/self/mountinfo that are of interest:
 * id parent device ROOT MOUNT options [...] - TYPE source SUPEROPTIONS
 */
static bool
mount_fields(Cursor line, Cursor *root, Cursor *mount, Cursor *type,
			 Cursor *options)
{
	Cursor		word;

	for (int i = 0; i < 6; i++)
	{
		if (!take_word(&line, &word) || !take_char(&line, ' '))
			return false;
		if (i == 3)
			*root = word;
		if (i == 4)
			*mount = word;
	}
	do
	{
		if (!take_word(&line, &word) || !take_char(&line, ' '))
			return false;
	} while (!(word.end - word.p == 1 && *word.p == '-'));

	return take_word(&line, type) && take_char(&line, ' ') &&
		take_word(&line, &word) && take_char(&line, ' ') &&
		take_word(&line, options);
}

/*
 * Take the first mount of the group's hierarchy under which the group lies, or
 * failing that the first one: in a container that is the group's own.
 */
static bool
mount_line(Cursor line, bool whole, void *state)
{
	GroupScan  *scan = state;
	Cursor		root;
	Cursor		mount;
	Cursor		type;
	Cursor		options;
	char		folder[MAXPGPATH];
	char		place[MAXPGPATH];
	const char *below = NULL;

	if (!whole || !mount_fields(line, &root, &mount, &type, &options) ||
		!take_string(&type, scan->version == 1 ? "cgroup" : "cgroup2") ||
		!at_end(&type) ||
		(scan->version == 1 && !list_has(options, scan->controller)) ||
		!copy_unescaped(folder, root) || !copy_unescaped(place, mount))
		return true;

	if (!has_dot_dot(scan->path) && !has_dot_dot(folder))
		below = below_folder(scan->path, folder);
	if (scan->mounted && below == NULL)
		return true;

	scan->mounted = true;
	(void) pgadm_textfile_join(scan->mount, place, "");
	(void) pgadm_textfile_join(scan->below, below ? below : "", "");
	return below == NULL;
}

/*
 * The group's folder, with root in front of it.  A name too long for a path is
 * as if it were not there.
 */
static bool
find_group(Cursor cgroup, Cursor mounts, const char *root,
		   const char *controller, PgAdmCgroup *group)
{
	GroupScan	scan = {.controller = controller};

	group->version = 0;
	group->top = 0;
	group->path[0] = '\0';

	scan_lines(cgroup.p, cgroup.end - cgroup.p, group_line, &scan);
	if (scan.version == 0)
		return false;
	scan_lines(mounts.p, mounts.end - mounts.p, mount_line, &scan);
	if (!scan.mounted || !pgadm_textfile_join(group->path, root, scan.mount))
		return false;

	group->version = scan.version;
	group->top = strlen(group->path);
	if (!pgadm_textfile_append_string(group->path, scan.below))
		(void) pgadm_textfile_join(group->path, root, scan.mount);
	return true;
}

bool
pgadm_cgroup_parse_place(const char *cgroup, size_t cgroup_len,
						 const char *mounts, size_t mounts_len,
						 const char *controller, PgAdmCgroup *group)
{
	Cursor		groups_text = {cgroup, cgroup + cgroup_len};
	Cursor		mounts_text = {mounts, mounts + mounts_len};

	return find_group(groups_text, mounts_text, "", controller, group);
}

/* ---- readers ---------------------------------------------------------- */

/*
 * Where to look: in a recorded tree, or on this machine.
 */
void
pgadm_cgroup_init(PgAdmCgroups *groups, const char *root)
{
	char		cgroup_text[PGADM_TEXTFILE_SMALL];
	char		mounts_text[PGADM_TEXTFILE_LARGE];
	Cursor		cgroup = {cgroup_text, cgroup_text};
	Cursor		mounts = {mounts_text, mounts_text};

	(void) pgadm_textfile_join(groups->root, root, "");
	cgroup.end += pgadm_textfile_read(groups->root, "/proc/self/cgroup",
									  cgroup_text, sizeof(cgroup_text));
	mounts.end += pgadm_textfile_read(groups->root, "/proc/self/mountinfo",
									  mounts_text, sizeof(mounts_text));

	find_group(cgroup, mounts, groups->root, "memory", &groups->memory);
	find_group(cgroup, mounts, groups->root, "cpu", &groups->cpu);
	find_group(cgroup, mounts, groups->root, "cpuacct", &groups->cpuacct);
}

/* One level's quota in CPUs */
static double
read_cpu_quota(const char *folder, int version)
{
	char		quota[PGADM_TEXTFILE_SMALL];
	char		period[PGADM_TEXTFILE_SMALL];
	size_t		quota_len;
	size_t		period_len;

	if (version == 2)
	{
		quota_len = pgadm_textfile_read(folder, "/cpu.max",
										quota, sizeof(quota));
		return pgadm_cgroup_parse_cpu_max(quota, quota_len);
	}
	quota_len = pgadm_textfile_read(folder, "/cpu.cfs_quota_us",
									quota, sizeof(quota));
	period_len = pgadm_textfile_read(folder, "/cpu.cfs_period_us",
									 period, sizeof(period));
	return pgadm_cgroup_parse_cpu_quota(quota, quota_len, period, period_len);
}

/*
 * The smallest quota of all levels, the upper of equal ones, and its folder.
 * HUGE_VAL: none.
 */
static double
find_cpu_quota(const PgAdmCgroup *group, char folder[MAXPGPATH])
{
	char		level[MAXPGPATH];
	double		smallest = HUGE_VAL;

	if (group->version == 0 || !pgadm_textfile_join(level, group->path, ""))
		return smallest;
	do
	{
		double		quota = read_cpu_quota(level, group->version);

		if (quota > 0 && quota < HUGE_VAL && quota <= smallest)
		{
			smallest = quota;
			(void) pgadm_textfile_join(folder, level, "");
		}
	} while (go_up(level, group->top));
	return smallest;
}

/*
 * How many CPUs the server may use, with fractions.
 */
double
pgadm_cgroup_usable_cpus(const PgAdmCgroups *groups,
						 const PgAdmProcfsCpuSet *set)
{
	char		folder[MAXPGPATH];
	int			count = pgadm_procfs_cpu_count(set);
	double		quota = find_cpu_quota(&groups->cpu, folder);

	if (quota < HUGE_VAL && (count == 0 || quota < count))
		return quota;
	return count > 0 ? count : PGADM_UNKNOWN;
}

/*
 * CPU time used by the group with the quota, in us.  In version 1 time is
 * accounted by another controller, which may be mounted elsewhere and have
 * other groups; only a group of the same name is the same.
 */
static int64
read_cpu_usage(const PgAdmCgroups *groups, const char *folder)
{
	static const char *const key[] = {"usage_usec"};
	const PgAdmCgroup *acct = &groups->cpuacct;
	const char *below = folder + groups->cpu.top;
	char		text[PGADM_TEXTFILE_SMALL];
	char		path[MAXPGPATH];
	size_t		len;
	int64		usage;

	if (groups->cpu.version == 2)
	{
		len = pgadm_textfile_read(folder, "/cpu.stat", text, sizeof(text));
		(void) pgadm_textfile_keys(text, len, key, NULL, 1, &usage);
		return usage;
	}
	if (acct->version != 1 ||
		below_folder(acct->path + acct->top, below) == NULL ||
		!pgadm_textfile_join(path, acct->path, ""))
		return PGADM_UNKNOWN;
	path[acct->top] = '\0';
	if (!pgadm_textfile_append_string(path, below))
		return PGADM_UNKNOWN;
	len = pgadm_textfile_read(path, "/cpuacct.usage", text, sizeof(text));
	usage = pgadm_cgroup_parse_number(text, len);
	return usage < 0 ? usage : usage / 1000;
}

/*
 * What is used of the CPUs that the server may use: by anybody, or with a
 * quota, by those that it is for.
 */
bool
pgadm_cgroup_cpu_use(const PgAdmCgroups *groups, const PgAdmProcfsCpuSet *set,
					 int64 now_us, PgAdmCgroupCpuUse *use)
{
	char		folder[MAXPGPATH];
	int			count = pgadm_procfs_cpu_count(set);
	double		quota = find_cpu_quota(&groups->cpu, folder);
	PgAdmProcfsCpuUse all;

	if (quota < HUGE_VAL && (count == 0 || quota < count))
	{
		double		span = quota * (double) now_us;

		use->busy_us = read_cpu_usage(groups, folder);
		use->span_us = span < (double) HUGE_LIMIT ? (int64) span : 0;
		use->cpus = quota;
		use->by_quota = true;
		return use->busy_us >= 0 && use->span_us > 0;
	}
	if (!pgadm_procfs_cpu_use(groups->root, set, &all))
		return false;
	use->busy_us = all.busy_us;
	use->span_us = all.span_us;
	use->cpus = all.cpus;
	use->by_quota = false;
	return true;
}

/*
 * Do two samples count the same?  If not, their difference means nothing.
 */
bool
pgadm_cgroup_same_cpus(const PgAdmCgroupCpuUse *a, const PgAdmCgroupCpuUse *b)
{
	return a->by_quota == b->by_quota && a->cpus == b->cpus;
}

/* The smallest limit of all levels, the upper of equal ones, and its folder */
static int64
find_memory_limit(const PgAdmCgroup *group, char folder[MAXPGPATH])
{
	const char *name = memory_names[group->version].limit;
	char		text[PGADM_TEXTFILE_SMALL];
	char		level[MAXPGPATH];
	int64		smallest = PGADM_CGROUP_NO_LIMIT;

	(void) pgadm_textfile_join(level, group->path, "");
	do
	{
		size_t		len = pgadm_textfile_read(level, name, text, sizeof(text));
		int64		limit = pgadm_cgroup_parse_memory_limit(text, len);

		if (limit > 0 && limit < PGADM_CGROUP_NO_LIMIT && limit <= smallest)
		{
			smallest = limit;
			(void) pgadm_textfile_join(folder, level, "");
		}
	} while (go_up(level, group->top));
	return smallest;
}

/*
 * Version 1 tells, in every group, the smallest limit of all groups above it,
 * also of those that are not mounted here.  If that is a smaller one, take it,
 * with the use of the uppermost group that can be seen.
 */
static int64
find_hidden_limit(const PgAdmCgroup *group, int64 smallest,
				  char folder[MAXPGPATH])
{
	static const char *const key[] = {"hierarchical_memory_limit"};
	char		text[PGADM_TEXTFILE_SMALL];
	char		top[MAXPGPATH];
	size_t		len;
	int64		limit;

	if (group->version != 1 || !pgadm_textfile_join(top, group->path, ""))
		return smallest;
	top[group->top] = '\0';
	len = pgadm_textfile_read(top, "/memory.stat", text, sizeof(text));
	(void) pgadm_textfile_keys(text, len, key, NULL, 1, &limit);
	if (limit <= 0 || limit >= HUGE_LIMIT || limit >= smallest)
		return smallest;
	(void) pgadm_textfile_join(folder, top, "");
	return limit;
}

/* One level's memory that cannot be had by dropping page cache */
static int64
read_memory_used(const char *folder, int version)
{
	char		text[PGADM_TEXTFILE_SMALL];
	size_t		len;
	int64		usage;
	int64		reclaimable;

	len = pgadm_textfile_read(folder, memory_names[version].usage,
							  text, sizeof(text));
	usage = pgadm_cgroup_parse_number(text, len);
	len = pgadm_textfile_read(folder, "/memory.stat", text, sizeof(text));
	reclaimable = pgadm_cgroup_parse_reclaimable(text, len, version);
	if (usage < 0 || reclaimable < 0)
		return PGADM_UNKNOWN;
	/* they were not read at the same instant */
	return Max(usage - reclaimable, 0);
}

/*
 * The memory that the server may use.  A cgroup's limit above what the machine
 * has is none.
 */
bool
pgadm_cgroup_memory(const PgAdmCgroups *groups, PgAdmCgroupMemory *memory)
{
	const PgAdmCgroup *group = &groups->memory;
	PgAdmProcfsMemory physical;
	char		folder[MAXPGPATH];
	int64		limit;

	(void) pgadm_procfs_memory(groups->root, &physical);
	memory->limit = physical.total;
	memory->used = physical.used;
	memory->from_cgroup = false;
	if (group->version == 0)
		return memory->limit != PGADM_UNKNOWN;

	limit = find_memory_limit(group, folder);
	limit = find_hidden_limit(group, limit, folder);
	if (limit < PGADM_CGROUP_NO_LIMIT &&
		(memory->limit == PGADM_UNKNOWN || limit < memory->limit))
	{
		memory->limit = limit;
		memory->used = read_memory_used(folder, group->version);
		memory->from_cgroup = true;
	}
	return memory->limit != PGADM_UNKNOWN;
}

