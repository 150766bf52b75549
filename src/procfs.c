/*-------------------------------------------------------------------------
 *
 * procfs.c
 *		Reads the machine and its processes: text of /proc -> numbers.
 *
 * The parsers, pgadm_procfs_parse_*, are pure; see grammar.h.  The readers
 * give them the files of the machine, or of a recorded tree.
 *
 * Nothing here needs a backend: no shared memory, lock, setting, palloc or
 * ereport, so that test/unit/procfs_test.c can be linked with this file and
 * textfile.c alone.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/procfs.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#ifdef __linux__
#include <sched.h>
#endif
#include <unistd.h>

#include "grammar.h"
#include "procfs.h"
#include "textfile.h"

/* More digits of a fraction than a double can hold are not looked at */
#define MAX_FRACTION	1e15

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
	const PgAdmProcfsCpuSet *set;
	PgAdmProcfsCpuUse mine;		/* sum over the set, in ticks */
	PgAdmProcfsCpuUse all;
	bool		bad;			/* a line that should not be there */
	bool		complete;		/* have seen what comes after the CPUs */
} CpuScan;

/* ---- parsers ---------------------------------------------------------- */

/* A number without sign that fits, perhaps with a fraction */
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

bool
pgadm_procfs_parse_meminfo(const char *text, size_t len,
						   PgAdmProcfsMemory *memory)
{
	static const char *const keys[] = {"MemTotal:", "MemAvailable:"};
	int64		kb[lengthof(keys)];

	(void) pgadm_textfile_keys(text, len, keys, "kB", lengthof(keys), kb);

	memory->total = PGADM_UNKNOWN;
	memory->used = PGADM_UNKNOWN;
	if (kb[0] <= 0 || kb[0] > PG_INT64_MAX / 1024)
		return false;
	memory->total = kb[0] * 1024;
	if (kb[1] >= 0 && kb[1] <= kb[0])
		memory->used = (kb[0] - kb[1]) * 1024;
	return true;
}

/* The columns of one line of /proc/stat, in ticks; false if they are not */
static bool
take_cpu_use(Cursor *c, PgAdmProcfsCpuUse *use)
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
add_cpu_use(PgAdmProcfsCpuUse *sum, const PgAdmProcfsCpuUse *use)
{
	sum->cpus++;
	return add_int(&sum->busy_us, use->busy_us) &&
		add_int(&sum->span_us, use->span_us);
}

static bool
cpu_is_member(const PgAdmProcfsCpuSet *set, int64 cpu)
{
	return cpu < PGADM_PROCFS_MAX_CPUS &&
		(set->word[cpu / PGADM_PROCFS_CPU_BITS] >>
		 (cpu % PGADM_PROCFS_CPU_BITS) & 1) != 0;
}

/*
 * One line "cpu<number> ..." of /proc/stat.  The first one, "cpu ...", is the
 * sum of the others, as far as they are on line.
 */
static bool
cpu_line(Cursor line, bool whole, void *state)
{
	CpuScan    *scan = state;
	PgAdmProcfsCpuUse use;
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
pgadm_procfs_parse_stat(const char *text, size_t len,
						const PgAdmProcfsCpuSet *set, int64 hz,
						PgAdmProcfsCpuUse *use)
{
	CpuScan		scan = {.set = set};
	const PgAdmProcfsCpuUse *sum;
	int64		us = hz > 0 ? 1000000 / hz : 0;

	scan_lines(text, len, cpu_line, &scan);
	sum = scan.mine.cpus > 0 ? &scan.mine : &scan.all;
	if (scan.bad || !scan.complete || sum->cpus == 0 || us == 0 ||
		sum->span_us > PG_INT64_MAX / us)
		return false;
	use->busy_us = sum->busy_us * us;
	use->span_us = sum->span_us * us;
	use->cpus = sum->cpus;
	return true;
}

/*
 * A process that has never been put on a CPU, as the third number says, has
 * either just begun, or the kernel does not count.
 */
bool
pgadm_procfs_parse_sched(const char *text, size_t len,
						 PgAdmProcfsSched *sched)
{
	Cursor		c;
	PgAdmProcfsSched result;
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
pgadm_procfs_parse_process(const char *text, size_t len,
						   PgAdmProcfsProcess *process)
{
	enum
	{
		before_times = 10		/* numbers between state and utime */
	};
	Cursor		c;
	Cursor		word;
	PgAdmProcfsProcess result;

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
pgadm_procfs_parse_load_average(const char *text, size_t len)
{
	Cursor		c;
	double		average[3];

	if (!one_line(text, len, &c))
		return PGADM_UNKNOWN;
	for (int i = 0; i < 3; i++)
	{
		if (!take_decimal(&c, &average[i]) || !take_char(&c, ' '))
			return PGADM_UNKNOWN;
	}
	return average[0];
}

static bool
pressure_line(Cursor c, bool whole, void *state)
{
	PgAdmProcfsPressure *pressure = state;
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
pgadm_procfs_parse_pressure(const char *text, size_t len,
							PgAdmProcfsPressure *pressure)
{
	PgAdmProcfsPressure result = {PGADM_UNKNOWN, PGADM_UNKNOWN};

	scan_lines(text, len, pressure_line, &result);
	if (result.total_us == PGADM_UNKNOWN)
		return false;
	*pressure = result;
	return true;
}

/* ---- readers ---------------------------------------------------------- */

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
	return pgadm_textfile_append(path, p, digits + sizeof(digits) - p);
}

/* The name of a file of /proc: pid 0 is the calling process */
static bool
process_file(char name[MAXPGPATH], int pid, const char *file)
{
	name[0] = '\0';
	return pgadm_textfile_append_string(name, "/proc/") &&
		(pid == 0 ? pgadm_textfile_append_string(name, "self") :
		 append_number(name, pid)) &&
		pgadm_textfile_append_string(name, file);
}

bool
pgadm_procfs_affinity(PgAdmProcfsCpuSet *set)
{
	memset(set, 0, sizeof(*set));
#ifdef __linux__
	return sched_getaffinity(0, sizeof(*set), (cpu_set_t *) set) == 0;
#else
	return false;
#endif
}

int
pgadm_procfs_cpu_count(const PgAdmProcfsCpuSet *set)
{
	int			count = 0;

	for (size_t i = 0; i < lengthof(set->word); i++)
	{
		for (unsigned long word = set->word[i]; word != 0; word &= word - 1)
			count++;
	}
	return count;
}

bool
pgadm_procfs_cpu_use(const char *root, const PgAdmProcfsCpuSet *set,
					 PgAdmProcfsCpuUse *use)
{
	char		text[PGADM_TEXTFILE_LARGE];
	size_t		len = pgadm_textfile_read(root, "/proc/stat",
										  text, sizeof(text));

	return pgadm_procfs_parse_stat(text, len, set, sysconf(_SC_CLK_TCK), use);
}

bool
pgadm_procfs_memory(const char *root, PgAdmProcfsMemory *memory)
{
	char		text[PGADM_TEXTFILE_SMALL];
	size_t		len = pgadm_textfile_read(root, "/proc/meminfo",
										  text, sizeof(text));

	return pgadm_procfs_parse_meminfo(text, len, memory);
}

double
pgadm_procfs_load_average(const char *root)
{
	char		text[PGADM_TEXTFILE_SMALL];
	size_t		len = pgadm_textfile_read(root, "/proc/loadavg",
										  text, sizeof(text));

	return pgadm_procfs_parse_load_average(text, len);
}

bool
pgadm_procfs_pressure(const char *root, PgAdmProcfsPressure *pressure)
{
	char		text[PGADM_TEXTFILE_SMALL];
	size_t		len = pgadm_textfile_read(root, "/proc/pressure/cpu",
										  text, sizeof(text));

	return pgadm_procfs_parse_pressure(text, len, pressure);
}

bool
pgadm_procfs_process(const char *root, int pid, PgAdmProcfsProcess *process)
{
	char		name[MAXPGPATH];
	char		text[PGADM_TEXTFILE_SMALL];
	size_t		len;

	if (!process_file(name, pid, "/stat"))
		return false;
	len = pgadm_textfile_read(root, name, text, sizeof(text));
	return pgadm_procfs_parse_process(text, len, process);
}

bool
pgadm_procfs_sched(const char *root, int pid, PgAdmProcfsSched *sched)
{
	char		name[MAXPGPATH];
	char		text[PGADM_TEXTFILE_SMALL];
	size_t		len;

	if (!process_file(name, pid, "/schedstat"))
		return false;
	len = pgadm_textfile_read(root, name, text, sizeof(text));
	return pgadm_procfs_parse_sched(text, len, sched);
}

