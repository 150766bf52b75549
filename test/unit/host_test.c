/*-------------------------------------------------------------------------
 *
 * host_test.c
 *		Unit tests of src/host.c, as a program that prints TAP.
 *
 *		cc -I$(pg_config --includedir-server) -iquote src \
 *			test/unit/host_test.c src/host.c
 *
 * Arguments, both optional: the folder of the recorded trees, and how many
 * spoiled texts each parser gets.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  test/unit/host_test.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "host.h"
#include "tap.h"

/* the tables below leave out what is zero */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

#define UNKNOWN		PGADM_HOST_UNKNOWN
#define NO_LIMIT	PGADM_HOST_NO_LIMIT
#define NO_QUOTA	HUGE_VAL
#define MB			(INT64CONST(1024) * 1024)
#define GB			(1024 * MB)
#define HZ			100

/* a text, which may have NULs in it */
#define T(s)		s, sizeof(s) - 1

typedef struct Text
{
	const char *text;
	size_t		len;
} Text;

/* ---- one function for each parser, so that all can be had by table ---- */

/* Up to three numbers out of a text; false: unknown */
typedef bool (*Parser) (const char *text, size_t len, double *numbers);

static bool
parse_number(const char *text, size_t len, double *numbers)
{
	numbers[0] = pgadm_host_parse_number(text, len);
	return numbers[0] != UNKNOWN;
}

static bool
parse_limit(const char *text, size_t len, double *numbers)
{
	numbers[0] = pgadm_host_parse_memory_limit(text, len);
	return numbers[0] != UNKNOWN;
}

static bool
parse_cpu_max(const char *text, size_t len, double *numbers)
{
	numbers[0] = pgadm_host_parse_cpu_max(text, len);
	return numbers[0] != UNKNOWN;
}

/* the quota, with a usual period */
static bool
parse_quota(const char *text, size_t len, double *numbers)
{
	numbers[0] = pgadm_host_parse_cpu_quota(text, len, "100000\n", 7);
	return numbers[0] != UNKNOWN;
}

/* the period, with a quota of half a second */
static bool
parse_period(const char *text, size_t len, double *numbers)
{
	numbers[0] = pgadm_host_parse_cpu_quota("500000\n", 7, text, len);
	return numbers[0] != UNKNOWN;
}

static bool
parse_meminfo(const char *text, size_t len, double *numbers)
{
	PgAdmHostMemory memory;

	if (!pgadm_host_parse_meminfo(text, len, &memory))
		return false;
	numbers[0] = memory.limit;
	numbers[1] = memory.used;
	return true;
}

static bool
parse_memory_stat1(const char *text, size_t len, double *numbers)
{
	numbers[0] = pgadm_host_parse_reclaimable(text, len, 1);
	return numbers[0] != UNKNOWN;
}

static bool
parse_memory_stat2(const char *text, size_t len, double *numbers)
{
	numbers[0] = pgadm_host_parse_reclaimable(text, len, 2);
	return numbers[0] != UNKNOWN;
}

static bool
parse_cpu_stat(const char *text, size_t len, double *numbers)
{
	static const char *const key[] = {"usage_usec"};
	int64		value;

	if (pgadm_host_parse_keys(text, len, key, NULL, 1, &value) != 1)
		return false;
	numbers[0] = value;
	return true;
}

static bool
parse_stat(const char *text, size_t len, double *numbers)
{
	PgAdmHostCpuSet set;
	PgAdmHostCpuUse use;

	memset(&set, 0, sizeof(set));
	set.word[0] = 1 << 1 | 1 << 3;
	if (!pgadm_host_parse_stat(text, len, &set, HZ, &use))
		return false;
	numbers[0] = use.busy_us;
	numbers[1] = use.span_us;
	numbers[2] = use.cpus;
	return true;
}

static bool
parse_sched(const char *text, size_t len, double *numbers)
{
	PgAdmHostSched sched;

	if (!pgadm_host_parse_sched(text, len, &sched))
		return false;
	numbers[0] = sched.run_ns;
	numbers[1] = sched.wait_ns;
	return true;
}

static bool
parse_process(const char *text, size_t len, double *numbers)
{
	PgAdmHostProcess process;

	if (!pgadm_host_parse_process(text, len, &process))
		return false;
	numbers[0] = process.state;
	numbers[1] = process.utime;
	numbers[2] = process.stime;
	return true;
}

static bool
parse_load(const char *text, size_t len, double *numbers)
{
	numbers[0] = pgadm_host_parse_load_average(text, len);
	return numbers[0] != UNKNOWN;
}

static bool
parse_pressure(const char *text, size_t len, double *numbers)
{
	PgAdmHostPressure pressure;

	if (!pgadm_host_parse_pressure(text, len, &pressure))
		return false;
	numbers[0] = pressure.avg10;
	numbers[1] = pressure.total_us;
	return true;
}

/* ---- texts ------------------------------------------------------------ */

#define MEMINFO \
	"MemTotal:       16374532 kB\n" \
	"MemFree:          812344 kB\n" \
	"MemAvailable:   12287640 kB\n" \
	"Buffers:          120012 kB\n"
#define MEMORY_STAT1 \
	"cache 9\ninactive_file 1\nactive_file 2\nhierarchical_memory_limit 77\n" \
	"total_cache 900\ntotal_shmem 400\n" \
	"total_inactive_file 300\ntotal_active_file 200\ntotal_unevictable 0\n"
#define MEMORY_STAT2 \
	"anon 1\nfile 900\nshmem 400\ninactive_anon 400\nactive_anon 1\n" \
	"inactive_file 300\nactive_file 200\nslab_reclaimable 50\nslab 60\n"
#define STAT \
	"cpu  40000 100 8000 350000 1500 0 300 100 50 0\n" \
	"cpu0 10000 25 2000 87500 400 0 100 25 20 0\n" \
	"cpu1 11000 25 2100 86500 300 0 100 25 10 0\n" \
	"cpu2 9000 25 1900 88500 400 0 50 25 10 0\n" \
	"cpu3 10000 25 2000 87500 400 0 50 25 10 0\n"
#define PROCESS(name) \
	"4242 (" name ") S 1 4242 4242 0 -1 4194624 900 0 3 0 77 11 0 0 20 0\n"
#define PRESSURE \
	"some avg10=12.34 avg60=5.00 avg300=1.00 total=123456789\n"

#define BIG		"9223372036854775807"	/* the largest int64 */
#define TOO_BIG "9223372036854775808"
#define HUGE_	"99999999999999999999999999999999999999999999"

static const struct
{
	Parser		parse;
	const char *name;
	Text		text;
	bool		known;
	double		numbers[3];
}			texts[] = {
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

	{parse_meminfo, "meminfo", {T(MEMINFO)}, true, {16374532.0 * 1024, 4086892.0 * 1024}},
	{parse_meminfo, "meminfo: no MemAvailable", {T("MemTotal: 16 kB\n")}, true, {16 * 1024, UNKNOWN}},
	{parse_meminfo, "meminfo: more available than there is", {T("MemTotal: 16 kB\nMemAvailable: 17 kB\n")}, true, {16 * 1024, UNKNOWN}},
	{parse_meminfo, "meminfo: no MemTotal", {T("MemAvailable: 17 kB\n")}},
	{parse_meminfo, "meminfo: MemTotal 0", {T("MemTotal: 0 kB\nMemAvailable: 0 kB\n")}},
	{parse_meminfo, "meminfo: too large", {T("MemTotal: " BIG " kB\n")}},
	{parse_meminfo, "meminfo: largest", {T("MemTotal: 9007199254740991 kB\n")}, true, {9007199254740991.0 * 1024, UNKNOWN}},
	{parse_meminfo, "meminfo: other unit", {T("MemTotal: 16 MB\n")}},
	{parse_meminfo, "meminfo: no unit", {T("MemTotal: 16\n")}},
	{parse_meminfo, "meminfo: no blank", {T("MemTotal:16 kB\n")}},
	{parse_meminfo, "meminfo: negative", {T("MemTotal: -16 kB\n")}},
	{parse_meminfo, "meminfo: NUL", {T("MemTotal: 16\0 kB\n")}},
	{parse_meminfo, "meminfo: cut in the line", {T("MemTotal: 16 kB")}},
	{parse_meminfo, "meminfo: empty", {T("")}},

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

	{parse_stat, "stat", {T(STAT "intr 1\n")}, true, {25350e4, 200050e4, 2}},
	{parse_stat, "stat: what follows is cut", {T(STAT "int")}, true, {25350e4, 200050e4, 2}},
	{parse_stat, "stat: cut in what follows", {T(STAT "in")}},
	{parse_stat, "stat: cut in a line", {T(STAT "cpu4 1 2 3")}},
	{parse_stat, "stat: cut between lines", {T(STAT)}},
	{parse_stat, "stat: other CPUs, so all", {T("cpu  1 0 0 1\ncpu0 3 0 0 7\ncpu8 2 0 0 1\nintr 1\n")}, true, {5e4, 13e4, 2}},
	{parse_stat, "stat: CPU beyond any set", {T("cpu1 3 0 0 7\ncpu99999999 1 0 0 1\nintr 1\n")}, true, {3e4, 10e4, 1}},
	{parse_stat, "stat: old kernel", {T("cpu  1 2 3 4\ncpu1 1 2 3 4\nintr 1\n")}, true, {6e4, 10e4, 1}},
	{parse_stat, "stat: future kernel", {T("cpu1 1 2 3 4 5 6 7 8 9 10 11 12\nintr 1\n")}, true, {27e4, 36e4, 1}},
	{parse_stat, "stat: too few columns", {T("cpu1 1 2 3\nintr 1\n")}},
	{parse_stat, "stat: no columns", {T("cpu1\nintr 1\n")}},
	{parse_stat, "stat: no CPU", {T("cpu  1 2 3 4\nintr 1\n")}},
	{parse_stat, "stat: no number", {T("cpux 1 2 3 4\nintr 1\n")}},
	{parse_stat, "stat: letters", {T("cpu1 1 2 x 4\nintr 1\n")}},
	{parse_stat, "stat: negative", {T("cpu1 1 2 -3 4\nintr 1\n")}},
	{parse_stat, "stat: NUL", {T("cpu1 1 2 3 4\0\nintr 1\n")}},
	{parse_stat, "stat: line too large", {T("cpu1 " BIG " 0 0 1\nintr 1\n")}},
	{parse_stat, "stat: sum too large", {T("cpu1 " BIG " 0 0 0\ncpu3 1 0 0 0\nintr 1\n")}},
	{parse_stat, "stat: too large in us", {T("cpu1 922337203685478 0 0 0\nintr 1\n")}},
	{parse_stat, "stat: largest in us", {T("cpu1 922337203685477 0 0 0\nintr 1\n")}, true, {922337203685477e4, 922337203685477e4, 1}},
	{parse_stat, "stat: huge", {T("cpu1 " HUGE_ " 0 0 1\nintr 1\n")}},
	{parse_stat, "stat: other text", {T("hello\n")}},
	{parse_stat, "stat: empty", {T("")}},

	{parse_sched, "schedstat", {T("880123456 12345678 901\n")}, true, {880123456, 12345678}},
	{parse_sched, "schedstat: never ran, or not counted", {T("0 0 0\n")}},
	{parse_sched, "schedstat: two numbers", {T("1 2\n")}},
	{parse_sched, "schedstat: four numbers", {T("1 2 3 4\n")}},
	{parse_sched, "schedstat: cut", {T("880123456 12345678 9")}},
	{parse_sched, "schedstat: negative", {T("880123456 -1 9\n")}},
	{parse_sched, "schedstat: too large", {T("1 " TOO_BIG " 9\n")}},
	{parse_sched, "schedstat: NUL", {T("1 2\0 9\n")}},
	{parse_sched, "schedstat: empty", {T("")}},

	{parse_process, "process", {T(PROCESS("postgres"))}, true, {'S', 77, 11}},
	{parse_process, "process: blanks in its name", {T(PROCESS("a b c"))}, true, {'S', 77, 11}},
	{parse_process, "process: parentheses in its name", {T(PROCESS("((a) R 1)"))}, true, {'S', 77, 11}},
	{parse_process, "process: a name like the rest", {T(PROCESS("a) R 1 1 1 1 1 1 1 1 1 1 5 5 "))}, true, {'S', 77, 11}},
	{parse_process, "process: no name", {T(PROCESS(""))}, true, {'S', 77, 11}},
	{parse_process, "process: no parentheses", {T("4242 S 1 4242\n")}},
	{parse_process, "process: ends with its name", {T("4242 (postgres)\n")}},
	{parse_process, "process: ends with its state", {T("4242 (postgres) S\n")}},
	{parse_process, "process: state of two letters", {T("1 (p) SS 1 2 3 4 5 6 7 8 9 10 11 12 13\n")}},
	{parse_process, "process: state is a digit", {T("1 (p) 1 1 2 3 4 5 6 7 8 9 10 11 12 13\n")}},
	{parse_process, "process: NUL", {T("1 (p) S 1 2 3 4 5 6 7 8 9 10 1\0001 12 13\n")}},
	{parse_process, "process: cut", {T("1 (p) S 1 2 3 4 5 6 7 8 9 10 11 12 13")}},
	{parse_process, "process: too large", {T("1 (p) S 1 2 3 4 5 6 7 8 9 10 " TOO_BIG " 12 13\n")}},
	{parse_process, "process: negative time", {T("1 (p) S 1 2 3 4 5 6 7 8 9 10 -11 12 13\n")}},
	{parse_process, "process: empty", {T("")}},

	{parse_load, "load average", {T("3.25 2.50 1.75 5/812 4711\n")}, true, {3.25}},
	{parse_load, "load average: no fraction", {T("3 2 1 5/812 4711\n")}, true, {3}},
	{parse_load, "load average: long fraction", {T("0.1000000000000000000000000000000000000001 2 1 5/812 4711\n")}, true, {0.1}},
	{parse_load, "load average: negative", {T("-3.25 2.50 1.75 5/812 4711\n")}},
	{parse_load, "load average: comma", {T("3,25 2,50 1,75 5/812 4711\n")}},
	{parse_load, "load average: point alone", {T("3. 2.50 1.75 5/812 4711\n")}},
	{parse_load, "load average: not a number", {T("nan nan nan 5/812 4711\n")}},
	{parse_load, "load average: infinite", {T("inf 1 1 5/812 4711\n")}},
	{parse_load, "load average: too large", {T(TOO_BIG " 1 1 5/812 4711\n")}},
	{parse_load, "load average: cut", {T("3.25 2.50 1.75 5/812 47")}},
	{parse_load, "load average: NUL", {T("3.25\0 2.50 1.75 5/812 4711\n")}},
	{parse_load, "load average: empty", {T("")}},

	{parse_pressure, "pressure", {T(PRESSURE "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n")}, true, {12.34, 123456789}},
	{parse_pressure, "pressure: only some", {T(PRESSURE)}, true, {12.34, 123456789}},
	{parse_pressure, "pressure: only full", {T("full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n")}},
	{parse_pressure, "pressure: over 100 %", {T("some avg10=100.01 avg60=0.00 avg300=0.00 total=0\n")}},
	{parse_pressure, "pressure: negative", {T("some avg10=-1.00 avg60=0.00 avg300=0.00 total=0\n")}},
	{parse_pressure, "pressure: total too large", {T("some avg10=1.00 avg60=0.00 avg300=0.00 total=" TOO_BIG "\n")}},
	{parse_pressure, "pressure: no total", {T("some avg10=1.00 avg60=0.00 avg300=0.00\n")}},
	{parse_pressure, "pressure: cut", {T("some avg10=12.34 avg60=5.00 avg300=1.00 total=1234567")}},
	{parse_pressure, "pressure: NUL", {T("some avg10=12.34\0avg60=5.00 avg300=1.00 total=1\n")}},
	{parse_pressure, "pressure: empty", {T("")}},
};

static void
show_numbers(const char *what, bool known, const double *numbers)
{
	if (known)
		diag("%s %.17g, %.17g, %.17g", what, numbers[0], numbers[1], numbers[2]);
	else
		diag("%s unknown", what);
}

static bool
same_numbers(const double *a, const double *b)
{
	return a[0] == b[0] && a[1] == b[1] && a[2] == b[2];
}

static void
test_texts(void)
{
	for (size_t i = 0; i < lengthof(texts); i++)
	{
		double		got[3] = {0, 0, 0};
		bool		known = texts[i].parse(texts[i].text.text,
										   texts[i].text.len, got);

		if (!ok(known == texts[i].known &&
				(!known || same_numbers(got, texts[i].numbers)),
				"%s", texts[i].name))
		{
			show_numbers("got", known, got);
			show_numbers("expected", texts[i].known, texts[i].numbers);
		}
	}
}

/*
 * A text that has been cut, wherever, gives the numbers that the whole one
 * gives, fewer of them, or none.
 */
static bool
cut_texts_are_right(Parser parse, Text text, const double *numbers)
{
	for (size_t len = 0; len < text.len; len++)
	{
		double		got[3] = {0, 0, 0};
		char	   *copy = malloc(len + 1);
		bool		right;

		/* so that a look behind the end is seen by a sanitizer */
		memcpy(copy + 1, text.text, len);
		right = !parse(copy + 1, len, got);
		for (int i = 0; !right && i < 3; i++)
		{
			if (got[i] != numbers[i] && got[i] != UNKNOWN)
				break;
			right = (i == 2);
		}
		free(copy);
		if (!right)
		{
			diag("cut after %zu bytes", len);
			show_numbers("got", true, got);
			return false;
		}
	}
	return true;
}

static void
test_cut_texts(void)
{
	for (size_t i = 0; i < lengthof(texts); i++)
	{
		if (texts[i].known)
			ok(cut_texts_are_right(texts[i].parse, texts[i].text,
								   texts[i].numbers),
			   "%s: cut anywhere", texts[i].name);
	}
}

/* ---- random texts ----------------------------------------------------- */

static uint32
random_below(uint32 bound)
{
	static uint64 state = 42;

	state = state * UINT64CONST(6364136223846793005) + 1;
	return (uint32) (state >> 33) % bound;
}

/* Change some bytes of a text, or put pieces of it elsewhere, or cut it */
static size_t
spoil(char *text, size_t len, size_t size)
{
	static const char bytes[] = "0123456789 -.\n\0\t:()=max/\377\\";

	for (int changes = 1 + random_below(4); changes > 0 && len > 0; changes--)
	{
		size_t		at = random_below(len);
		size_t		from = random_below(len);
		size_t		n = 1 + random_below(20);

		n = Min(n, Min(len - at, len - from));
		switch (random_below(5))
		{
			case 0:
				text[at] = bytes[random_below(sizeof(bytes) - 1)];
				break;
			case 1:
				memmove(text + at, text + from, n);
				break;
			case 2:
				memmove(text + at, text + at + n, len - at - n);
				len -= n;
				break;
			case 3:
				n = Min(n, size - len);
				memmove(text + at + n, text + at, len - at);
				memset(text + at, bytes[random_below(10)], n);
				len += n;
				break;
			default:
				len = at;
		}
	}
	return len;
}

/* What a parser gives is a number, and not negative unless it is unknown */
static bool
spoiled_texts_are_sane(Parser parse, Text text, int count)
{
	char		buffer[1024];

	while (count-- > 0)
	{
		double		got[3] = {0, 0, 0};
		size_t		len;
		char	   *copy;
		bool		known;

		memcpy(buffer, text.text, text.len);
		len = spoil(buffer, text.len, sizeof(buffer));
		copy = malloc(len + 1);
		memcpy(copy + 1, buffer, len);
		known = parse(copy + 1, len, got);
		free(copy);
		for (int i = 0; known && i < 3; i++)
		{
			if (!(got[i] >= 0 || got[i] == UNKNOWN))
			{
				show_numbers("got", known, got);
				return false;
			}
		}
	}
	return true;
}

/* The parser of two texts, for which only the place matters, not the values */
static bool
parse_group(const char *text, size_t len, double *numbers)
{
	const char *split = memchr(text, '#', len);
	PgAdmHostCgroup group;

	if (split == NULL)
		return false;
	if (!pgadm_host_parse_cgroup(text, split - text, split + 1,
								 text + len - split - 1, "memory", &group))
		return false;
	numbers[0] = group.top;
	numbers[1] = strlen(group.path) - group.top;
	numbers[2] = (group.version == 1 || group.version == 2) ? 0 : -2;
	return true;
}

static void
test_spoiled_texts(int count)
{
	static const Text groups[] = {
		{T("4:memory:/a/b\n0::/\n#35 31 0:32 /a /sys/m\\040m rw - cgroup cgroup rw,memory\n")},
		{T("0::/a/b\n#30 23 0:26 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw,nsdelegate\n")},
	};

	for (size_t i = 0; i < lengthof(texts); i++)
	{
		if (texts[i].known)
			ok(spoiled_texts_are_sane(texts[i].parse, texts[i].text, count),
			   "%s: spoiled %d times", texts[i].name, count);
	}
	for (size_t i = 0; i < lengthof(groups); i++)
		ok(spoiled_texts_are_sane(parse_group, groups[i], count),
		   "control group %zu: spoiled %d times", i, count);
}

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
		PgAdmHostCgroup group;
		char		expected[MAXPGPATH] = "";
		bool		found;

		found = pgadm_host_parse_cgroup(groups[i].cgroup.text,
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
	PgAdmHostCgroup group;
	size_t		len = strlen(strcpy(cgroup, "0::/"));

	while (len < 2 * MAXPGPATH)
		cgroup[len++] = 'x';
	cgroup[len++] = '\n';
	ok(!pgadm_host_parse_cgroup(cgroup, len, T(MOUNT2("/", "/m")), "memory",
								&group),
	   "cgroup: name longer than any path");

	/* name and mount point fit, but not together */
	len = MAXPGPATH;
	cgroup[len++] = '\n';
	ok(pgadm_host_parse_cgroup(cgroup, len, T(MOUNT2("/", "/mount")),
							   "memory", &group) &&
	   strcmp(group.path, "/mount") == 0,
	   "cgroup: name and mount point longer than any path");
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

static const char *data_folder = "test/data";

static void
open_tree(PgAdmHost *host, const char *name)
{
	char		root[MAXPGPATH];

	snprintf(root, sizeof(root), "%s/%s", data_folder, name);
	pgadm_host_init(host, root);
}

static void
test_tree_memory(const PgAdmHost *host, size_t i)
{
	PgAdmHostMemory memory;
	bool		known = pgadm_host_memory(host, &memory);

	if (!ok(known == (trees[i].limit != UNKNOWN) &&
			memory.limit == trees[i].limit && memory.used == trees[i].used &&
			memory.from_cgroup == trees[i].from_cgroup,
			"%s: memory", trees[i].name))
		diag("got %lld used of %lld%s", (long long) memory.used,
			 (long long) memory.limit, memory.from_cgroup ? ", cgroup" : "");
}

static void
test_tree_cpus(const PgAdmHost *host, size_t i)
{
	PgAdmHostCpuSet set;
	PgAdmHostCpuUse use;
	char		name[100];
	double		cpus;
	bool		known;

	memset(&set, 0, sizeof(set));
	set.word[0] = 0xf;
	cpus = pgadm_host_usable_cpus(host, &set);
	snprintf(name, sizeof(name), "%s: CPUs", trees[i].name);
	is_double(cpus, trees[i].cpus, name);

	known = pgadm_host_cpu_use(host, &set, NOW, &use);
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
		PgAdmHost	host;

		open_tree(&host, trees[i].name);
		test_tree_memory(&host, i);
		test_tree_cpus(&host, i);
	}
}

/* The rest of what there is to read, in a tree that has it and ones that do not */
static void
test_tree_rest(void)
{
	static const char *const spoiled[] = {"v2-empty", "v2-truncated",
	"v2-huge", "v2-negative", "v2-not-numeric", "no-such-tree"};
	PgAdmHost	host;
	PgAdmHostPressure pressure = {0};
	PgAdmHostProcess process = {0};
	PgAdmHostSched sched = {0};

	open_tree(&host, "v2-limit");
	is_double(pgadm_host_load_average(&host), 3.25, "v2-limit: load average");
	ok(pgadm_host_pressure(&host, &pressure) && pressure.avg10 == 12.34 &&
	   pressure.total_us == 123456789, "v2-limit: pressure");
	ok(pgadm_host_process(&host, 4242, &process) && process.state == 'S' &&
	   process.utime == 77 && process.stime == 11, "v2-limit: process");
	ok(pgadm_host_sched(&host, 4242, &sched) && sched.run_ns == 880123456 &&
	   sched.wait_ns == 12345678, "v2-limit: run time and wait time");
	ok(!pgadm_host_process(&host, 4243, &process) &&
	   !pgadm_host_sched(&host, 4243, &sched), "v2-limit: other process");
	ok(!pgadm_host_process(&host, -1, &process) &&
	   !pgadm_host_sched(&host, -1, &sched), "v2-limit: negative pid");

	for (size_t i = 0; i < lengthof(spoiled); i++)
	{
		open_tree(&host, spoiled[i]);
		ok(pgadm_host_load_average(&host) == UNKNOWN &&
		   !pgadm_host_pressure(&host, &pressure) &&
		   !pgadm_host_process(&host, 4242, &process) &&
		   !pgadm_host_sched(&host, 4242, &sched), "%s: rest", spoiled[i]);
	}
}

static void
test_same_cpus(void)
{
	PgAdmHostCpuUse all = {1, 2, 4, false};
	PgAdmHostCpuUse quota = {1, 2, 4, true};
	PgAdmHostCpuUse later = {5, 9, 4, false};
	PgAdmHostCpuUse fewer = {5, 9, 3, false};

	ok(pgadm_host_same_cpus(&all, &later), "two samples of the same CPUs");
	ok(!pgadm_host_same_cpus(&all, &quota), "CPUs, then a quota");
	ok(!pgadm_host_same_cpus(&all, &fewer), "CPUs, then fewer");
}

static void
test_span_of_quota(void)
{
	PgAdmHost	host;
	PgAdmHostCpuUse use;
	PgAdmHostCpuSet none;

	memset(&none, 0, sizeof(none));
	open_tree(&host, "v2-limit");
	ok(!pgadm_host_cpu_use(&host, &none, PG_INT64_MAX, &use),
	   "a clock beyond what can be told");
	ok(!pgadm_host_cpu_use(&host, &none, -5, &use), "a negative clock");
	is_double(pgadm_host_usable_cpus(&host, &none), 1.5,
			  "CPUs of a quota, affinity unknown");
	open_tree(&host, "v2-none");
	is_double(pgadm_host_usable_cpus(&host, &none), UNKNOWN,
			  "CPUs without a quota, affinity unknown");
}

/* ---- this machine ----------------------------------------------------- */

static void
spin(int64 microseconds)
{
	int64		end = pgadm_clock_us() + microseconds;

	while (pgadm_clock_us() < end)
		continue;
}

static void
test_this_machine(void)
{
	PgAdmHost	host;
	PgAdmHostCpuSet set;
	PgAdmHostCpuUse before;
	PgAdmHostCpuUse after;
	PgAdmHostMemory memory;
	PgAdmHostProcess process;
	int			count;
	double		cpus;

	pgadm_host_init(&host, "");
	ok(pgadm_host_affinity(&set), "here: affinity");
	count = pgadm_host_cpu_count(&set);
	ok(count >= 1 && count <= sysconf(_SC_NPROCESSORS_CONF),
	   "here: number of CPUs");
	cpus = pgadm_host_usable_cpus(&host, &set);
	ok(cpus > 0 && cpus <= count, "here: usable CPUs");
	ok(pgadm_host_memory(&host, &memory) && memory.limit > 0 &&
	   memory.used > 0 && memory.used < memory.limit, "here: memory");
	ok(pgadm_host_load_average(&host) >= 0, "here: load average");
	ok(pgadm_host_process(&host, 0, &process) && process.state == 'R',
	   "here: own process");

	if (!pgadm_host_cpu_use(&host, &set, pgadm_clock_us(), &before))
	{
		skip(1, "this machine does not tell how its CPUs are used");
		return;
	}
	spin(200000);
	ok(pgadm_host_cpu_use(&host, &set, pgadm_clock_us(), &after) &&
	   pgadm_host_same_cpus(&before, &after) &&
	   after.busy_us > before.busy_us && after.span_us > before.span_us,
	   "here: use of the CPUs grows");
}

/* Run times grow, until the process is gone */
static void
test_sched_here(void)
{
	PgAdmHost	host;
	PgAdmHostSched before;
	PgAdmHostSched after;
	int			pid;

	pgadm_host_init(&host, "");
	if (!pgadm_host_sched(&host, 0, &before))
	{
		skip(3, "this kernel does not tell how long a process ran");
		return;
	}
	spin(20000);
	ok(pgadm_host_sched(&host, 0, &after) && after.run_ns > before.run_ns &&
	   after.wait_ns >= before.wait_ns, "here: own run time grows");

	pid = fork();
	if (pid < 0)
	{
		skip(2, "there can be no other process");
		return;
	}
	if (pid == 0)
	{
		for (;;)
			spin(1000);
	}
	spin(50000);
	while (!pgadm_host_sched(&host, pid, &before))
		spin(1000);
	usleep(50000);
	ok(pgadm_host_sched(&host, pid, &after) &&
	   after.run_ns > before.run_ns, "here: run time of another grows");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	ok(!pgadm_host_sched(&host, pid, &after), "here: unknown once it is gone");
}

int
main(int argc, char **argv)
{
	if (argc > 1)
		data_folder = argv[1];

	test_texts();
	test_cut_texts();
	test_spoiled_texts(argc > 2 ? atoi(argv[2]) : 2000);
	test_groups();
	test_long_group();
	test_trees();
	test_tree_rest();
	test_same_cpus();
	test_span_of_quota();
	test_this_machine();
	test_sched_here();
	return done_testing();
}
