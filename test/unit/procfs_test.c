/*-------------------------------------------------------------------------
 *
 * procfs_test.c
 *		Unit tests of src/procfs.c, as a program that prints TAP.
 *
 *		Links: src/procfs.c src/textfile.c
 *
 * Arguments, both optional: the folder of the recorded trees, and how many
 * spoiled texts each parser gets.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  test/unit/procfs_test.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "procfs.h"
#include "texts.h"

#define HZ			100

/* ---- one function for each parser, so that all can be had by table ---- */

static bool
parse_meminfo(const char *text, size_t len, double *numbers)
{
	PgAdmProcfsMemory memory;

	if (!pgadm_procfs_parse_meminfo(text, len, &memory))
		return false;
	numbers[0] = memory.total;
	numbers[1] = memory.used;
	return true;
}

static bool
parse_stat(const char *text, size_t len, double *numbers)
{
	PgAdmProcfsCpuSet set;
	PgAdmProcfsCpuUse use;

	memset(&set, 0, sizeof(set));
	set.word[0] = 1 << 1 | 1 << 3;
	if (!pgadm_procfs_parse_stat(text, len, &set, HZ, &use))
		return false;
	numbers[0] = use.busy_us;
	numbers[1] = use.span_us;
	numbers[2] = use.cpus;
	return true;
}

static bool
parse_sched(const char *text, size_t len, double *numbers)
{
	PgAdmProcfsSched sched;

	if (!pgadm_procfs_parse_sched(text, len, &sched))
		return false;
	numbers[0] = sched.run_ns;
	numbers[1] = sched.wait_ns;
	return true;
}

static bool
parse_process(const char *text, size_t len, double *numbers)
{
	PgAdmProcfsProcess process;

	if (!pgadm_procfs_parse_process(text, len, &process))
		return false;
	numbers[0] = process.state;
	numbers[1] = process.utime;
	numbers[2] = process.stime;
	return true;
}

static bool
parse_load(const char *text, size_t len, double *numbers)
{
	numbers[0] = pgadm_procfs_parse_load_average(text, len);
	return numbers[0] != UNKNOWN;
}

static bool
parse_pressure(const char *text, size_t len, double *numbers)
{
	PgAdmProcfsPressure pressure;

	if (!pgadm_procfs_parse_pressure(text, len, &pressure))
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

static const TextCase texts[] = {
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

/* ---- recorded trees --------------------------------------------------- */

/* A tree that has what there is to read, and ones that do not */
static void
test_trees(void)
{
	static const char *const spoiled[] = {"v2-empty", "v2-truncated",
	"v2-huge", "v2-negative", "v2-not-numeric", "no-such-tree"};
	char		root[MAXPGPATH];
	PgAdmProcfsPressure pressure = {0};
	PgAdmProcfsProcess process = {0};
	PgAdmProcfsSched sched = {0};

	tree_root(root, "v2-limit");
	is_double(pgadm_procfs_load_average(root), 3.25, "v2-limit: load average");
	ok(pgadm_procfs_pressure(root, &pressure) && pressure.avg10 == 12.34 &&
	   pressure.total_us == 123456789, "v2-limit: pressure");
	ok(pgadm_procfs_process(root, 4242, &process) && process.state == 'S' &&
	   process.utime == 77 && process.stime == 11, "v2-limit: process");
	ok(pgadm_procfs_sched(root, 4242, &sched) && sched.run_ns == 880123456 &&
	   sched.wait_ns == 12345678, "v2-limit: run time and wait time");
	ok(!pgadm_procfs_process(root, 4243, &process) &&
	   !pgadm_procfs_sched(root, 4243, &sched), "v2-limit: other process");
	ok(!pgadm_procfs_process(root, -1, &process) &&
	   !pgadm_procfs_sched(root, -1, &sched), "v2-limit: negative pid");

	for (size_t i = 0; i < lengthof(spoiled); i++)
	{
		tree_root(root, spoiled[i]);
		ok(pgadm_procfs_load_average(root) == UNKNOWN &&
		   !pgadm_procfs_pressure(root, &pressure) &&
		   !pgadm_procfs_process(root, 4242, &process) &&
		   !pgadm_procfs_sched(root, 4242, &sched), "%s: rest", spoiled[i]);
	}
}

/* ---- this machine ----------------------------------------------------- */

static void
test_this_machine(void)
{
	PgAdmProcfsCpuSet set;
	PgAdmProcfsProcess process;
	int			count;

	ok(pgadm_procfs_affinity(&set), "here: affinity");
	count = pgadm_procfs_cpu_count(&set);
	ok(count >= 1 && count <= sysconf(_SC_NPROCESSORS_CONF),
	   "here: number of CPUs");
	ok(pgadm_procfs_load_average(PGADM_PROCFS_HERE) >= 0,
	   "here: load average");
	ok(pgadm_procfs_process(PGADM_PROCFS_HERE, 0, &process) &&
	   process.state == 'R', "here: own process");
}

/* Run times grow, until the process is gone */
static void
test_sched_here(void)
{
	PgAdmProcfsSched before;
	PgAdmProcfsSched after;
	int			pid;

	if (!pgadm_procfs_sched(PGADM_PROCFS_HERE, 0, &before))
	{
		skip(3, "this kernel does not tell how long a process ran");
		return;
	}
	spin(20000);
	ok(pgadm_procfs_sched(PGADM_PROCFS_HERE, 0, &after) &&
	   after.run_ns > before.run_ns &&
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
	while (!pgadm_procfs_sched(PGADM_PROCFS_HERE, pid, &before))
		spin(1000);
	usleep(50000);
	ok(pgadm_procfs_sched(PGADM_PROCFS_HERE, pid, &after) &&
	   after.run_ns > before.run_ns, "here: run time of another grows");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	ok(!pgadm_procfs_sched(PGADM_PROCFS_HERE, pid, &after),
	   "here: unknown once it is gone");
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
	test_trees();
	test_this_machine();
	test_sched_here();
	return done_testing();
}
