/*-------------------------------------------------------------------------
 *
 * procfs.h
 *		Reads the machine and its processes: text of /proc -> numbers.
 *
 * Every number here is non-negative; PGADM_UNKNOWN stands for a value that
 * could not be read, and a garbled text never gives anything else.  What
 * returns bool says whether the values that it must know are known.
 *
 * Sizes are bytes, times are as their names say.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/procfs.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGADM_PROCFS_H
#define PGADM_PROCFS_H

#include "textfile.h"

/* The root of this machine's files; tests have recorded trees elsewhere */
#define PGADM_PROCFS_HERE		""

/* The kernel's own bound (CPUMASK_OFFSTACK kernels: 8192) */
#define PGADM_PROCFS_MAX_CPUS	8192
#define PGADM_PROCFS_CPU_BITS	((int) (8 * sizeof(unsigned long)))

/* A set of CPUs, laid out as sched_getaffinity() wants it */
typedef struct PgAdmProcfsCpuSet
{
	unsigned long word[PGADM_PROCFS_MAX_CPUS / (8 * sizeof(unsigned long))];
} PgAdmProcfsCpuSet;

/* CPU time of a set of CPUs so far; both only grow */
typedef struct PgAdmProcfsCpuUse
{
	int64		busy_us;
	int64		span_us;		/* busy or not */
	double		cpus;			/* number of CPUs summed */
} PgAdmProcfsCpuUse;

typedef struct PgAdmProcfsMemory
{
	int64		total;
	int64		used;			/* of that; without reclaimable page cache */
} PgAdmProcfsMemory;

/* /proc/<pid>/schedstat */
typedef struct PgAdmProcfsSched
{
	int64		run_ns;			/* spent on a CPU */
	int64		wait_ns;		/* spent runnable, waiting for a CPU */
} PgAdmProcfsSched;

/* /proc/<pid>/stat */
typedef struct PgAdmProcfsProcess
{
	char		state;			/* R, S, D, ... */
	int64		utime;			/* in clock ticks */
	int64		stime;
} PgAdmProcfsProcess;

/* /proc/pressure/cpu, the line "some" */
typedef struct PgAdmProcfsPressure
{
	double		avg10;			/* percent of the last 10 s, 0 - 100 */
	int64		total_us;		/* growing */
} PgAdmProcfsPressure;

/*
 * Readers.  They open, read and close a file each, need no memory but their
 * stack, and may be called at any time.
 */

/* CPUs: those that this process may run on */
extern bool pgadm_procfs_affinity(PgAdmProcfsCpuSet *set);
extern int	pgadm_procfs_cpu_count(const PgAdmProcfsCpuSet *set);
extern bool pgadm_procfs_cpu_use(const char *root,
								 const PgAdmProcfsCpuSet *set,
								 PgAdmProcfsCpuUse *use);

/* true if the total is known; used may be unknown even so */
extern bool pgadm_procfs_memory(const char *root, PgAdmProcfsMemory *memory);

extern double pgadm_procfs_load_average(const char *root);
extern bool pgadm_procfs_pressure(const char *root,
								  PgAdmProcfsPressure *pressure);

/* one process; pid 0 is the calling one */
extern bool pgadm_procfs_process(const char *root, int pid,
								 PgAdmProcfsProcess *process);
extern bool pgadm_procfs_sched(const char *root, int pid,
							   PgAdmProcfsSched *sched);

/*
 * Parsers.  A line counts only if it ends as it should: the kernel writes all
 * of these with a newline, so that a text that was cut gives no number.
 */

/* MemTotal and MemTotal - MemAvailable */
extern bool pgadm_procfs_parse_meminfo(const char *text, size_t len,
									   PgAdmProcfsMemory *memory);
/* /proc/stat: the CPUs of the set (NULL: all); hz: ticks per second */
extern bool pgadm_procfs_parse_stat(const char *text, size_t len,
									const PgAdmProcfsCpuSet *set, int64 hz,
									PgAdmProcfsCpuUse *use);
extern bool pgadm_procfs_parse_sched(const char *text, size_t len,
									 PgAdmProcfsSched *sched);
extern bool pgadm_procfs_parse_process(const char *text, size_t len,
									   PgAdmProcfsProcess *process);
extern double pgadm_procfs_parse_load_average(const char *text, size_t len);
extern bool pgadm_procfs_parse_pressure(const char *text, size_t len,
										PgAdmProcfsPressure *pressure);

#endif							/* PGADM_PROCFS_H */
