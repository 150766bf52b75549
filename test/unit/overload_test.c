/*-------------------------------------------------------------------------
 *
 * overload_test.c
 *		Unit tests from the kernel's texts to a breaker: src/procfs.c and
 *		src/load.c together, as a program that prints TAP.
 *
 *		Links: src/procfs.c src/textfile.c src/load.c
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  test/unit/overload_test.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "load.h"
#include "procfs.h"
#include "tap.h"

#define SECOND		INT64CONST(1000000)
#define START		(INT64CONST(800000000) * SECOND)
#define HZ			100

/* /proc/stat of two CPUs that were so long busy, idle, waiting for a disk */
static bool
read_stat(int64 busy, int64 idle, int64 iowait, PgAdmProcfsCpuUse *use)
{
	char		text[1024];
	int			len;

	len = snprintf(text, sizeof(text),
				   "cpu  %lld 0 0 %lld %lld 0 0 0 0 0\n"
				   "cpu0 %lld 0 0 %lld %lld 0 0 0 0 0\n"
				   "cpu1 %lld 0 0 %lld %lld 0 0 0 0 0\n"
				   "intr 1\n",
				   2LL * busy, 2LL * idle, 2LL * iowait,
				   (long long) busy, (long long) idle, (long long) iowait,
				   (long long) busy, (long long) idle, (long long) iowait);
	return pgadm_procfs_parse_stat(text, len, NULL, HZ, use);
}

/*
 * Ten samples, one a second, in which each CPU is busy, idle, waiting for so
 * many ticks; and what becomes of the breakers.
 */
static void
run(int busy, int idle, int iowait, const char *loadavg,
	PgAdmLoadBreaker *cpu, PgAdmLoadBreaker *average)
{
	PgAdmLoadWindow window = {0};

	memset(cpu, 0, sizeof(*cpu));
	memset(average, 0, sizeof(*average));
	cpu->scale = PGADM_LOAD_SCALE_FRACTION;

	for (int i = 0; i < 10; i++)
	{
		PgAdmProcfsCpuUse use;
		PgAdmLoadTotals totals = {.at = START + i * SECOND};
		TimestampTz now = totals.at;

		totals.known = read_stat(1000 + i * busy, 5000 + i * idle, 70 + i * iowait, &use);
		totals.part_us = use.busy_us;
		totals.whole_us = use.span_us;
		(void) pgadm_load_breaker_update(cpu, 0.9,
										 pgadm_load_cpu_utilization(&window, &totals, 1000), now);
		(void) pgadm_load_breaker_update(average, 4,
										 pgadm_load_known(pgadm_procfs_parse_load_average(loadavg, strlen(loadavg))), now);
	}
}

int
main(void)
{
	PgAdmLoadBreaker cpu;
	PgAdmLoadBreaker average;

	run(2, 98, 0, "5.00 4.10 2.07 1/300 4711\n", &cpu, &average);
	ok(cpu.value.known && fabs(cpu.value.value - 0.02) < 0.001, "two idle CPUs");
	ok(!cpu.tripped && cpu.trips == 0, "load average 5 does not trip the CPU breaker");
	ok(average.tripped && average.trips == 1, "it trips its own");

	run(2, 0, 98, "5.00 4.10 2.07 1/300 4711\n", &cpu, &average);
	ok(cpu.value.known && !cpu.tripped, "nor do CPUs that wait for disks");

	run(100, 0, 0, "1.20 0.90 0.80 3/300 4711\n", &cpu, &average);
	ok(cpu.tripped && cpu.trips == 1 && cpu.value.value > 0.99, "100 %% utilization trips the CPU breaker");
	ok(!average.tripped, "and not that of the load average");

	return done_testing();
}
