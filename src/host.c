/*-------------------------------------------------------------------------
 *
 * host.c
 *		Reads the machine: text of /proc and cgroup files -> numbers.
 *
 * The parsers, pgadm_host_parse_*, are pure.  Each is written as a small
 * grammar over a Cursor, whose steps (take_*) move on or say no; nothing is
 * converted that does not fit, and nothing read behind the text's end.  The
 * readers give them the files of the machine, or of a recorded tree.
 *
 * Control groups: the server's own group may be limited by any group above it,
 * so every level is looked at, from its own up to the one that is mounted.  In
 * a container the group that /proc/self/cgroup names may not be there, since
 * only a part of the hierarchy is mounted; levels that are not there have no
 * limit.  What is used is taken from the level that has the limit.
 *
 * Nothing here needs a backend: no shared memory, lock, setting, palloc or
 * ereport, so that test/unit/host_test.c can be linked with this file alone.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/host.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <math.h>
#ifdef __linux__
#include <sched.h>
#endif
#include <time.h>
#include <unistd.h>

#include "host.h"

/* How much of a file is read: files about one thing, and lists of all */
#define SMALL_FILE		8192
#define LARGE_FILE		(128 * 1024)

/* Limits from here on are the kernel's way to say that there is none */
#define HUGE_LIMIT		(INT64CONST(1) << 62)

/* In CPUs; the kernel takes no less than a millisecond of a second */
#define SMALLEST_QUOTA	0.001

/* More digits of a fraction than a double can hold are not looked at */
#define MAX_FRACTION	1e15

/* Text not yet read */
typedef struct Cursor
{
	const char *p;
	const char *end;
} Cursor;

/*
 * Called for every line of a text, without its newline.  Not whole: the line
 * has been cut.  Returns false to stop.
 */
typedef bool (*LineFn) (Cursor line, bool whole, void *state);

typedef struct KeyScan
{
	const char *const *keys;
	const char *unit;			/* may be NULL */
	int			nkeys;
	int64	   *values;
	int			found;
} KeyScan;

/* The columns of /proc/stat */
enum
{
	STAT_USER,
	STAT_NICE,
	STAT_SYSTEM,
	STAT_IDLE,					/* the last that is always there */
	STAT_IOWAIT,
	STAT_IRQ,
	STAT_SOFTIRQ,
	STAT_STEAL,
	STAT_COLUMNS				/* those of guests are in user and nice */
};

typedef struct CpuScan
{
	const PgAdmHostCpuSet *set;
	PgAdmHostCpuUse mine;		/* sum over the set, in ticks */
	PgAdmHostCpuUse all;
	bool		bad;			/* a line that should not be there */
	bool		complete;		/* have seen what comes after the CPUs */
} CpuScan;

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

/* ---- grammar ---------------------------------------------------------- */

static bool
at_end(const Cursor *c)
{
	return c->p == c->end;
}

static bool
take_char(Cursor *c, char wanted)
{
	if (at_end(c) || *c->p != wanted)
		return false;
	c->p++;
	return true;
}

static bool
take_blanks(Cursor *c)
{
	const char *start = c->p;

	while (take_char(c, ' ') || take_char(c, '\t'))
		continue;
	return c->p > start;
}

static bool
take_string(Cursor *c, const char *wanted)
{
	size_t		len = strlen(wanted);

	if ((size_t) (c->end - c->p) < len || memcmp(c->p, wanted, len) != 0)
		return false;
	c->p += len;
	return true;
}

static bool
at_digit(const Cursor *c)
{
	return !at_end(c) && *c->p >= '0' && *c->p <= '9';
}

/* Skip digits; were there any? */
static bool
take_digits(Cursor *c)
{
	const char *start = c->p;

	while (at_digit(c))
		c->p++;
	return c->p > start;
}

/* A number without sign that fits */
static bool
take_int(Cursor *c, int64 *value)
{
	int64		result = 0;

	if (!at_digit(c))
		return false;
	for (; at_digit(c); c->p++)
	{
		int			digit = *c->p - '0';

		if (result > (PG_INT64_MAX - digit) / 10)
			return false;
		result = result * 10 + digit;
	}
	*value = result;
	return true;
}

/* Likewise, perhaps with a fraction */
static bool
take_decimal(Cursor *c, double *value)
{
	int64		whole;
	double		fraction = 0;
	double		scale = 1;

	if (!take_int(c, &whole))
		return false;
	if (take_char(c, '.'))
	{
		if (!at_digit(c))
			return false;
		for (; at_digit(c); c->p++)
		{
			if (scale >= MAX_FRACTION)
				continue;
			fraction = fraction * 10 + (*c->p - '0');
			scale *= 10;
		}
	}
	*value = (double) whole + fraction / scale;
	return true;
}

/* A word up to the next blank */
static bool
take_word(Cursor *c, Cursor *word)
{
	word->p = c->p;
	while (!at_end(c) && *c->p != ' ')
		c->p++;
	word->end = c->p;
	return word->end > word->p;
}

/* A text that is one whole line */
static bool
one_line(const char *text, size_t len, Cursor *line)
{
	if (len == 0 || text[len - 1] != '\n' ||
		memchr(text, '\n', len - 1) != NULL)
		return false;
	line->p = text;
	line->end = text + len - 1;
	return true;
}

/* Call a function for all lines */
static void
scan_lines(const char *text, size_t len, LineFn fn, void *state)
{
	const char *end = text + len;
	bool		go_on = true;

	while (go_on && text < end)
	{
		const char *newline = memchr(text, '\n', end - text);
		Cursor		line = {text, newline ? newline : end};

		go_on = fn(line, newline != NULL, state);
		text = newline ? newline + 1 : end;
	}
}

/* Add up what is not negative; false if it does not fit */
static bool
add_int(int64 *sum, int64 value)
{
	if (value > PG_INT64_MAX - *sum)
		return false;
	*sum += value;
	return true;
}

/* ---- parsers ---------------------------------------------------------- */

static bool
key_line(Cursor line, bool whole, void *state)
{
	KeyScan    *scan = state;

	if (!whole)
		return false;
	for (int i = 0; i < scan->nkeys; i++)
	{
		Cursor		c = line;
		int64		value;

		if (scan->values[i] == PGADM_HOST_UNKNOWN &&
			take_string(&c, scan->keys[i]) &&
			take_blanks(&c) && take_int(&c, &value) &&
			(scan->unit == NULL ||
			 (take_blanks(&c) && take_string(&c, scan->unit))) &&
			at_end(&c))
		{
			scan->values[i] = value;
			scan->found++;
		}
	}
	return scan->found < scan->nkeys;
}

int
pgadm_host_parse_keys(const char *text, size_t len, const char *const *keys,
					  const char *unit, int nkeys, int64 *values)
{
	KeyScan		scan = {keys, unit, nkeys, values, 0};

	for (int i = 0; i < nkeys; i++)
		values[i] = PGADM_HOST_UNKNOWN;
	scan_lines(text, len, key_line, &scan);
	return scan.found;
}

int64
pgadm_host_parse_number(const char *text, size_t len)
{
	Cursor		c;
	int64		value;

	if (one_line(text, len, &c) && take_int(&c, &value) && at_end(&c))
		return value;
	return PGADM_HOST_UNKNOWN;
}

bool
pgadm_host_parse_meminfo(const char *text, size_t len, PgAdmHostMemory *memory)
{
	static const char *const keys[] = {"MemTotal:", "MemAvailable:"};
	int64		kb[lengthof(keys)];

	(void) pgadm_host_parse_keys(text, len, keys, "kB", lengthof(keys), kb);

	memory->limit = PGADM_HOST_UNKNOWN;
	memory->used = PGADM_HOST_UNKNOWN;
	memory->from_cgroup = false;
	if (kb[0] <= 0 || kb[0] > PG_INT64_MAX / 1024)
		return false;
	memory->limit = kb[0] * 1024;
	if (kb[1] >= 0 && kb[1] <= kb[0])
		memory->used = (kb[0] - kb[1]) * 1024;
	return true;
}

/*
 * A limit of nothing is not a limit that a server runs under, so unknown.  One
 * that is too large for an int64 is as good as none.
 */
int64
pgadm_host_parse_memory_limit(const char *text, size_t len)
{
	Cursor		c;
	Cursor		word;
	int64		value;

	if (!one_line(text, len, &c) || !take_word(&c, &word) || !at_end(&c))
		return PGADM_HOST_UNKNOWN;
	c = word;
	if (take_string(&c, "max") && at_end(&c))
		return PGADM_HOST_NO_LIMIT;
	c = word;
	if (!take_digits(&c) || !at_end(&c))
		return PGADM_HOST_UNKNOWN;

	value = pgadm_host_parse_number(text, len);
	if (value == PGADM_HOST_UNKNOWN || value >= HUGE_LIMIT)
		return PGADM_HOST_NO_LIMIT;
	return value > 0 ? value : PGADM_HOST_UNKNOWN;
}

/*
 * "cache" and "file" would not do: they include shared memory, such as
 * shared_buffers, which cannot be dropped.  Version 2 also counts what the
 * kernel caches of files' names, version 1 does not.
 */
int64
pgadm_host_parse_reclaimable(const char *text, size_t len, int version)
{
	int64		values[lengthof(memory_names[0].reclaimable)];
	int64		sum = 0;
	int			nkeys;

	if (version != 1 && version != 2)
		return PGADM_HOST_UNKNOWN;
	nkeys = memory_names[version].nreclaimable;
	if (pgadm_host_parse_keys(text, len, memory_names[version].reclaimable,
							  NULL, nkeys, values) < nkeys)
		return PGADM_HOST_UNKNOWN;
	for (int i = 0; i < nkeys; i++)
	{
		if (!add_int(&sum, values[i]))
			return PGADM_HOST_UNKNOWN;
	}
	return sum;
}

/* CPUs from microseconds per period */
static double
quota_in_cpus(int64 quota, int64 period)
{
	double		cpus;

	if (quota <= 0 || period <= 0)
		return PGADM_HOST_UNKNOWN;
	cpus = (double) quota / (double) period;
	return cpus < SMALLEST_QUOTA ? PGADM_HOST_UNKNOWN : cpus;
}

double
pgadm_host_parse_cpu_max(const char *text, size_t len)
{
	Cursor		c;
	int64		quota = 0;
	int64		period;
	bool		none;

	if (!one_line(text, len, &c))
		return PGADM_HOST_UNKNOWN;
	none = take_string(&c, "max");
	if (!(none || take_int(&c, &quota)) || !take_char(&c, ' ') ||
		!take_int(&c, &period) || !at_end(&c))
		return PGADM_HOST_UNKNOWN;
	return none ? HUGE_VAL : quota_in_cpus(quota, period);
}

double
pgadm_host_parse_cpu_quota(const char *quota, size_t quota_len,
						   const char *period, size_t period_len)
{
	Cursor		c;

	if (one_line(quota, quota_len, &c) && take_string(&c, "-1") && at_end(&c))
		return HUGE_VAL;
	return quota_in_cpus(pgadm_host_parse_number(quota, quota_len),
						 pgadm_host_parse_number(period, period_len));
}

/* The columns of one line of /proc/stat, in ticks; false if they are not */
static bool
take_cpu_use(Cursor *c, PgAdmHostCpuUse *use)
{
	int64		value;
	int			column;

	use->busy_us = use->span_us = 0;
	for (column = 0; !at_end(c); column++)
	{
		bool		idle = (column == STAT_IDLE || column == STAT_IOWAIT);

		if (!take_blanks(c) || !take_int(c, &value))
			return false;
		if (column < STAT_COLUMNS &&
			(!add_int(&use->span_us, value) ||
			 (!idle && !add_int(&use->busy_us, value))))
			return false;
	}
	return column > STAT_IDLE;
}

static bool
add_cpu_use(PgAdmHostCpuUse *sum, const PgAdmHostCpuUse *use)
{
	sum->cpus++;
	return add_int(&sum->busy_us, use->busy_us) &&
		add_int(&sum->span_us, use->span_us);
}

static bool
cpu_is_member(const PgAdmHostCpuSet *set, int64 cpu)
{
	return cpu < PGADM_HOST_MAX_CPUS &&
		(set->word[cpu / PGADM_HOST_CPU_BITS] >>
		 (cpu % PGADM_HOST_CPU_BITS) & 1) != 0;
}

/*
 * One line "cpu<number> ..." of /proc/stat.  The first one, "cpu ...", is the
 * sum of the others, as far as they are on line.
 */
static bool
cpu_line(Cursor line, bool whole, void *state)
{
	CpuScan    *scan = state;
	PgAdmHostCpuUse use;
	int64		cpu;

	if (!take_string(&line, "cpu"))
	{
		/* a cut line may yet have become "cpu" */
		scan->complete = whole || line.end - line.p >= 3;
		return false;
	}
	if (whole && !at_end(&line) && *line.p == ' ')
		return true;
	scan->bad = !whole || !take_int(&line, &cpu) ||
		!take_cpu_use(&line, &use) || !add_cpu_use(&scan->all, &use) ||
		((scan->set == NULL || cpu_is_member(scan->set, cpu)) &&
		 !add_cpu_use(&scan->mine, &use));
	return !scan->bad;
}

/*
 * None of the set's CPUs there: a container's own /proc/stat (lxcfs) numbers
 * the container's CPUs anew, so these are those of the server.
 */
bool
pgadm_host_parse_stat(const char *text, size_t len, const PgAdmHostCpuSet *set,
					  int64 hz, PgAdmHostCpuUse *use)
{
	CpuScan		scan = {.set = set};
	const PgAdmHostCpuUse *sum;
	int64		us = hz > 0 ? 1000000 / hz : 0;

	scan_lines(text, len, cpu_line, &scan);
	sum = scan.mine.cpus > 0 ? &scan.mine : &scan.all;
	if (scan.bad || !scan.complete || sum->cpus == 0 || us == 0 ||
		sum->span_us > PG_INT64_MAX / us)
		return false;
	use->busy_us = sum->busy_us * us;
	use->span_us = sum->span_us * us;
	use->cpus = sum->cpus;
	use->by_quota = false;
	return true;
}

/*
 * A process that has never been put on a CPU, as the third number says, has
 * either just begun, or the kernel does not count.
 */
bool
pgadm_host_parse_sched(const char *text, size_t len, PgAdmHostSched *sched)
{
	Cursor		c;
	PgAdmHostSched result;
	int64		times;

	if (!one_line(text, len, &c) ||
		!take_int(&c, &result.run_ns) || !take_char(&c, ' ') ||
		!take_int(&c, &result.wait_ns) || !take_char(&c, ' ') ||
		!take_int(&c, &times) || !at_end(&c) || times == 0)
		return false;
	*sched = result;
	return true;
}

/*
 * pid (name) state and numbers.  The name may hold anything, parentheses too,
 * but nothing after it does.
 */
bool
pgadm_host_parse_process(const char *text, size_t len,
						 PgAdmHostProcess *process)
{
	enum
	{
		before_times = 10		/* numbers between state and utime */
	};
	Cursor		c;
	Cursor		word;
	PgAdmHostProcess result;

	if (!one_line(text, len, &c))
		return false;
	for (c.p = c.end; c.p > text && c.p[-1] != ')'; c.p--)
		continue;
	if (c.p == text || !take_char(&c, ' ') || !take_word(&c, &word) ||
		word.end - word.p != 1 ||
		!((*word.p >= 'A' && *word.p <= 'Z') ||
		  (*word.p >= 'a' && *word.p <= 'z')))
		return false;
	result.state = *word.p;

	for (int i = 0; i < before_times; i++)
	{
		if (!take_char(&c, ' '))
			return false;
		(void) take_char(&c, '-');
		if (!take_digits(&c))
			return false;
	}
	if (!take_char(&c, ' ') || !take_int(&c, &result.utime) ||
		!take_char(&c, ' ') || !take_int(&c, &result.stime) ||
		!take_char(&c, ' '))
		return false;
	*process = result;
	return true;
}

double
pgadm_host_parse_load_average(const char *text, size_t len)
{
	Cursor		c;
	double		average[3];

	if (!one_line(text, len, &c))
		return PGADM_HOST_UNKNOWN;
	for (int i = 0; i < 3; i++)
	{
		if (!take_decimal(&c, &average[i]) || !take_char(&c, ' '))
			return PGADM_HOST_UNKNOWN;
	}
	return average[0];
}

static bool
pressure_line(Cursor c, bool whole, void *state)
{
	PgAdmHostPressure *pressure = state;
	double		avg10;
	double		rest;
	int64		total;

	if (!whole || !take_string(&c, "some avg10=") ||
		!take_decimal(&c, &avg10) || avg10 > 100 ||
		!take_string(&c, " avg60=") || !take_decimal(&c, &rest) ||
		!take_string(&c, " avg300=") || !take_decimal(&c, &rest) ||
		!take_string(&c, " total=") || !take_int(&c, &total) || !at_end(&c))
		return true;
	pressure->avg10 = avg10;
	pressure->total_us = total;
	return false;
}

bool
pgadm_host_parse_pressure(const char *text, size_t len,
						  PgAdmHostPressure *pressure)
{
	PgAdmHostPressure result = {PGADM_HOST_UNKNOWN, PGADM_HOST_UNKNOWN};

	scan_lines(text, len, pressure_line, &result);
	if (result.total_us == PGADM_HOST_UNKNOWN)
		return false;
	*pressure = result;
	return true;
}

/* ---- paths ------------------------------------------------------------ */

/* Append to a path; false, and no path at all, if it gets too long */
static bool
append(char path[MAXPGPATH], const char *text, size_t len)
{
	size_t		have = strlen(path);

	if (len >= MAXPGPATH - have || memchr(text, '\0', len) != NULL)
	{
		path[0] = '\0';
		return false;
	}
	memcpy(path + have, text, len);
	path[have + len] = '\0';
	return true;
}

static bool
append_string(char path[MAXPGPATH], const char *text)
{
	return append(path, text, strlen(text));
}

/* out = a/b; b with its slash */
static bool
join(char out[MAXPGPATH], const char *a, const char *b)
{
	out[0] = '\0';
	return append_string(out, a) && append_string(out, b);
}

static bool
append_number(char path[MAXPGPATH], int number)
{
	char		digits[16];
	char	   *p = digits + sizeof(digits);

	if (number < 0)
		return false;
	do
	{
		*--p = '0' + number % 10;
		number /= 10;
	} while (number > 0);
	return append(path, p, digits + sizeof(digits) - p);
}

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
		if (!append(out, &ch, 1))
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
	if (append(scan->path, line.p, line.end - line.p))
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
	(void) join(scan->mount, place, "");
	(void) join(scan->below, below ? below : "", "");
	return below == NULL;
}

/*
 * The group's folder, with root in front of it.  A name too long for a path is
 * as if it were not there.
 */
static bool
find_group(Cursor cgroup, Cursor mounts, const char *root,
		   const char *controller, PgAdmHostCgroup *group)
{
	GroupScan	scan = {.controller = controller};

	group->version = 0;
	group->top = 0;
	group->path[0] = '\0';

	scan_lines(cgroup.p, cgroup.end - cgroup.p, group_line, &scan);
	if (scan.version == 0)
		return false;
	scan_lines(mounts.p, mounts.end - mounts.p, mount_line, &scan);
	if (!scan.mounted || !join(group->path, root, scan.mount))
		return false;

	group->version = scan.version;
	group->top = strlen(group->path);
	if (!append_string(group->path, scan.below))
		(void) join(group->path, root, scan.mount);
	return true;
}

bool
pgadm_host_parse_cgroup(const char *cgroup, size_t cgroup_len,
						const char *mounts, size_t mounts_len,
						const char *controller, PgAdmHostCgroup *group)
{
	Cursor		groups_text = {cgroup, cgroup + cgroup_len};
	Cursor		mounts_text = {mounts, mounts + mounts_len};

	return find_group(groups_text, mounts_text, "", controller, group);
}

/* ---- reading files ---------------------------------------------------- */

static int
open_file(const char *folder, const char *name)
{
	char		path[MAXPGPATH];

	if (!join(path, folder, name))
		return -1;
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* Read until the buffer is full or the file ends; -1: it cannot be read */
static ssize_t
read_fully(int fd, char *buffer, size_t size)
{
	size_t		have = 0;

	while (have < size)
	{
		ssize_t		got = pread(fd, buffer + have, size - have, have);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -1;
		if (got == 0)
			break;
		have += got;
	}
	return have;
}

/*
 * Read a file.  One that cannot be read is empty, one that is too long is cut:
 * the parsers take neither for anything else.
 */
static size_t
read_file(const char *folder, const char *name, char *buffer, size_t size)
{
	int			fd = open_file(folder, name);
	ssize_t		len;

	if (fd < 0)
		return 0;
	len = read_fully(fd, buffer, size);
	close(fd);
	return len < 0 ? 0 : len;
}

/* The name of a file of /proc: pid 0 is the calling process */
static bool
process_file(char name[MAXPGPATH], int pid, const char *file)
{
	name[0] = '\0';
	return append_string(name, "/proc/") &&
		(pid == 0 ? append_string(name, "self") : append_number(name, pid)) &&
		append_string(name, file);
}

/* ---- readers ---------------------------------------------------------- */

/*
 * Where to look: in a recorded tree, or ("") on this machine.
 */
void
pgadm_host_init(PgAdmHost *host, const char *root)
{
	char		cgroup_text[SMALL_FILE];
	char		mounts_text[LARGE_FILE];
	Cursor		cgroup;
	Cursor		mounts;

	(void) join(host->root, root, "");
	cgroup.p = cgroup_text;
	cgroup.end = cgroup.p + read_file(host->root, "/proc/self/cgroup",
									  cgroup_text, sizeof(cgroup_text));
	mounts.p = mounts_text;
	mounts.end = mounts.p + read_file(host->root, "/proc/self/mountinfo",
									  mounts_text, sizeof(mounts_text));

	find_group(cgroup, mounts, host->root, "memory", &host->memory);
	find_group(cgroup, mounts, host->root, "cpu", &host->cpu);
	find_group(cgroup, mounts, host->root, "cpuacct", &host->cpuacct);
}

bool
pgadm_host_affinity(PgAdmHostCpuSet *set)
{
	memset(set, 0, sizeof(*set));
#ifdef __linux__
	return sched_getaffinity(0, sizeof(*set), (cpu_set_t *) set) == 0;
#else
	return false;
#endif
}

int
pgadm_host_cpu_count(const PgAdmHostCpuSet *set)
{
	int			count = 0;

	for (size_t i = 0; i < lengthof(set->word); i++)
	{
		for (unsigned long word = set->word[i]; word != 0; word &= word - 1)
			count++;
	}
	return count;
}

/* One level's quota in CPUs */
static double
read_cpu_quota(const char *folder, int version)
{
	char		quota[SMALL_FILE];
	char		period[SMALL_FILE];
	size_t		quota_len;
	size_t		period_len;

	if (version == 2)
	{
		quota_len = read_file(folder, "/cpu.max", quota, sizeof(quota));
		return pgadm_host_parse_cpu_max(quota, quota_len);
	}
	quota_len = read_file(folder, "/cpu.cfs_quota_us", quota, sizeof(quota));
	period_len = read_file(folder, "/cpu.cfs_period_us", period,
						   sizeof(period));
	return pgadm_host_parse_cpu_quota(quota, quota_len, period, period_len);
}

/*
 * The smallest quota of all levels, the upper of equal ones, and its folder.
 * HUGE_VAL: none.
 */
static double
find_cpu_quota(const PgAdmHostCgroup *group, char folder[MAXPGPATH])
{
	char		level[MAXPGPATH];
	double		smallest = HUGE_VAL;

	if (group->version == 0 || !join(level, group->path, ""))
		return smallest;
	do
	{
		double		quota = read_cpu_quota(level, group->version);

		if (quota > 0 && quota < HUGE_VAL && quota <= smallest)
		{
			smallest = quota;
			(void) join(folder, level, "");
		}
	} while (go_up(level, group->top));
	return smallest;
}

/*
 * How many CPUs the server may use, with fractions.
 */
double
pgadm_host_usable_cpus(const PgAdmHost *host, const PgAdmHostCpuSet *set)
{
	char		folder[MAXPGPATH];
	int			count = pgadm_host_cpu_count(set);
	double		quota = find_cpu_quota(&host->cpu, folder);

	if (quota < HUGE_VAL && (count == 0 || quota < count))
		return quota;
	return count > 0 ? count : PGADM_HOST_UNKNOWN;
}

/*
 * CPU time used by the group with the quota, in us.  In version 1 time is
 * accounted by another controller, which may be mounted elsewhere and have
 * other groups; only a group of the same name is the same.
 */
static int64
read_cpu_usage(const PgAdmHost *host, const char *folder)
{
	static const char *const key[] = {"usage_usec"};
	const PgAdmHostCgroup *acct = &host->cpuacct;
	const char *below = folder + host->cpu.top;
	char		text[SMALL_FILE];
	char		path[MAXPGPATH];
	size_t		len;
	int64		usage;

	if (host->cpu.version == 2)
	{
		len = read_file(folder, "/cpu.stat", text, sizeof(text));
		(void) pgadm_host_parse_keys(text, len, key, NULL, 1, &usage);
		return usage;
	}
	if (acct->version != 1 ||
		below_folder(acct->path + acct->top, below) == NULL ||
		!join(path, acct->path, ""))
		return PGADM_HOST_UNKNOWN;
	path[acct->top] = '\0';
	if (!append_string(path, below))
		return PGADM_HOST_UNKNOWN;
	len = read_file(path, "/cpuacct.usage", text, sizeof(text));
	usage = pgadm_host_parse_number(text, len);
	return usage < 0 ? usage : usage / 1000;
}

/*
 * What is used of the CPUs that the server may use: by anybody, or with a
 * quota, by those that it is for.
 */
bool
pgadm_host_cpu_use(const PgAdmHost *host, const PgAdmHostCpuSet *set,
				   int64 now_us, PgAdmHostCpuUse *use)
{
	char		folder[MAXPGPATH];
	int			count = pgadm_host_cpu_count(set);
	double		quota = find_cpu_quota(&host->cpu, folder);
	char		text[LARGE_FILE];
	size_t		len;

	if (quota < HUGE_VAL && (count == 0 || quota < count))
	{
		double		span = quota * (double) now_us;

		use->busy_us = read_cpu_usage(host, folder);
		use->span_us = span < (double) HUGE_LIMIT ? (int64) span : 0;
		use->cpus = quota;
		use->by_quota = true;
		return use->busy_us >= 0 && use->span_us > 0;
	}
	len = read_file(host->root, "/proc/stat", text, sizeof(text));
	return pgadm_host_parse_stat(text, len, set, sysconf(_SC_CLK_TCK), use);
}

/*
 * Do two samples count the same?  If not, their difference means nothing.
 */
bool
pgadm_host_same_cpus(const PgAdmHostCpuUse *a, const PgAdmHostCpuUse *b)
{
	return a->by_quota == b->by_quota && a->cpus == b->cpus;
}

/* The smallest limit of all levels, the upper of equal ones, and its folder */
static int64
find_memory_limit(const PgAdmHostCgroup *group, char folder[MAXPGPATH])
{
	char		text[SMALL_FILE];
	char		level[MAXPGPATH];
	int64		smallest = PGADM_HOST_NO_LIMIT;

	(void) join(level, group->path, "");
	do
	{
		size_t		len = read_file(level, memory_names[group->version].limit,
									text, sizeof(text));
		int64		limit = pgadm_host_parse_memory_limit(text, len);

		if (limit > 0 && limit < PGADM_HOST_NO_LIMIT && limit <= smallest)
		{
			smallest = limit;
			(void) join(folder, level, "");
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
find_hidden_limit(const PgAdmHostCgroup *group, int64 smallest,
				  char folder[MAXPGPATH])
{
	static const char *const key[] = {"hierarchical_memory_limit"};
	char		text[SMALL_FILE];
	char		top[MAXPGPATH];
	size_t		len;
	int64		limit;

	if (group->version != 1 || !join(top, group->path, ""))
		return smallest;
	top[group->top] = '\0';
	len = read_file(top, "/memory.stat", text, sizeof(text));
	(void) pgadm_host_parse_keys(text, len, key, NULL, 1, &limit);
	if (limit <= 0 || limit >= HUGE_LIMIT || limit >= smallest)
		return smallest;
	(void) join(folder, top, "");
	return limit;
}

/* One level's memory that cannot be had by dropping page cache */
static int64
read_memory_used(const char *folder, int version)
{
	char		text[SMALL_FILE];
	size_t		len;
	int64		usage;
	int64		reclaimable;

	len = read_file(folder, memory_names[version].usage, text, sizeof(text));
	usage = pgadm_host_parse_number(text, len);
	len = read_file(folder, "/memory.stat", text, sizeof(text));
	reclaimable = pgadm_host_parse_reclaimable(text, len, version);
	if (usage < 0 || reclaimable < 0)
		return PGADM_HOST_UNKNOWN;
	/* they were not read at the same instant */
	return Max(usage - reclaimable, 0);
}

/*
 * The memory that the server may use.  A cgroup's limit above what the machine
 * has is none.
 */
bool
pgadm_host_memory(const PgAdmHost *host, PgAdmHostMemory *memory)
{
	const PgAdmHostCgroup *group = &host->memory;
	char		text[SMALL_FILE];
	char		folder[MAXPGPATH];
	size_t		len = read_file(host->root, "/proc/meminfo", text, sizeof(text));
	int64		limit;

	(void) pgadm_host_parse_meminfo(text, len, memory);
	if (group->version == 0)
		return memory->limit != PGADM_HOST_UNKNOWN;

	limit = find_memory_limit(group, folder);
	limit = find_hidden_limit(group, limit, folder);
	if (limit < PGADM_HOST_NO_LIMIT &&
		(memory->limit == PGADM_HOST_UNKNOWN || limit < memory->limit))
	{
		memory->limit = limit;
		memory->used = read_memory_used(folder, group->version);
		memory->from_cgroup = true;
	}
	return memory->limit != PGADM_HOST_UNKNOWN;
}

double
pgadm_host_load_average(const PgAdmHost *host)
{
	char		text[SMALL_FILE];
	size_t		len = read_file(host->root, "/proc/loadavg", text, sizeof(text));

	return pgadm_host_parse_load_average(text, len);
}

bool
pgadm_host_pressure(const PgAdmHost *host, PgAdmHostPressure *pressure)
{
	char		text[SMALL_FILE];
	size_t		len = read_file(host->root, "/proc/pressure/cpu", text,
								sizeof(text));

	return pgadm_host_parse_pressure(text, len, pressure);
}

bool
pgadm_host_process(const PgAdmHost *host, int pid, PgAdmHostProcess *process)
{
	char		name[MAXPGPATH];
	char		text[SMALL_FILE];
	size_t		len;

	if (!process_file(name, pid, "/stat"))
		return false;
	len = read_file(host->root, name, text, sizeof(text));
	return pgadm_host_parse_process(text, len, process);
}

bool
pgadm_host_sched(const PgAdmHost *host, int pid, PgAdmHostSched *sched)
{
	char		name[MAXPGPATH];
	char		text[SMALL_FILE];
	size_t		len;

	if (!process_file(name, pid, "/schedstat"))
		return false;
	len = read_file(host->root, name, text, sizeof(text));
	return pgadm_host_parse_sched(text, len, sched);
}
