/*-------------------------------------------------------------------------
 *
 * host.h
 *		Reads the machine: text of /proc and cgroup files -> numbers.
 *
 * Every number here is non-negative; PGADM_HOST_UNKNOWN stands for a value
 * that could not be read, and a garbled text never gives anything else.  What
 * returns bool says whether the values that it must know are known.
 *
 * Sizes are bytes, times are as their names say.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/host.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGADM_HOST_H
#define PGADM_HOST_H

#define PGADM_HOST_UNKNOWN		(-1)
/* a limit that is known to be none, so that the smallest limit is the limit */
#define PGADM_HOST_NO_LIMIT		PG_INT64_MAX

/* The kernel's own bound (CPUMASK_OFFSTACK kernels: 8192) */
#define PGADM_HOST_MAX_CPUS		8192
#define PGADM_HOST_CPU_BITS		((int) (8 * sizeof(unsigned long)))

/* A set of CPUs, laid out as sched_getaffinity() wants it */
typedef struct PgAdmHostCpuSet
{
	unsigned long word[PGADM_HOST_MAX_CPUS / (8 * sizeof(unsigned long))];
} PgAdmHostCpuSet;

/* Where one resource of the server is limited and accounted */
typedef struct PgAdmHostCgroup
{
	int			version;		/* 1 or 2; 0: in no control group */
	int			top;			/* length of the part of path that is mounted */
	char		path[MAXPGPATH];	/* folder of the server's own group */
} PgAdmHostCgroup;

/*
 * The machine as seen from one process.  It holds no resources: copy it, drop
 * it, make it anew (pgadm_host_init) as often as wanted.
 */
typedef struct PgAdmHost
{
	char		root[MAXPGPATH];	/* "" or, for tests, a recorded tree */
	PgAdmHostCgroup memory;
	PgAdmHostCgroup cpu;
	PgAdmHostCgroup cpuacct;
} PgAdmHost;

typedef struct PgAdmHostMemory
{
	int64		limit;			/* the smaller of physical and cgroup's */
	int64		used;			/* of that; without reclaimable page cache */
	bool		from_cgroup;	/* the limit is a control group's */
} PgAdmHostMemory;

/*
 * CPU time used so far, of all that there was to use.  Both only grow; what
 * they grew by between two samples is the utilisation, provided that
 * pgadm_host_same_cpus().
 */
typedef struct PgAdmHostCpuUse
{
	int64		busy_us;
	int64		span_us;
	double		cpus;			/* the quota, or number of CPUs summed */
	bool		by_quota;		/* use by the server's cgroup, of its quota */
} PgAdmHostCpuUse;

/* /proc/<pid>/schedstat */
typedef struct PgAdmHostSched
{
	int64		run_ns;			/* spent on a CPU */
	int64		wait_ns;		/* spent runnable, waiting for a CPU */
} PgAdmHostSched;

/* /proc/<pid>/stat */
typedef struct PgAdmHostProcess
{
	char		state;			/* R, S, D, ... */
	int64		utime;			/* in clock ticks */
	int64		stime;
} PgAdmHostProcess;

/* /proc/pressure/cpu, the line "some" */
typedef struct PgAdmHostPressure
{
	double		avg10;			/* percent of the last 10 s, 0 - 100 */
	int64		total_us;		/* growing */
} PgAdmHostPressure;

/*
 * Readers.  They open, read and close a few files each, need no memory but
 * their stack, and may be called at any time.
 */
extern void pgadm_host_init(PgAdmHost *host, const char *root);

/* CPUs: those that this process may run on, and how many the cgroups allow */
extern bool pgadm_host_affinity(PgAdmHostCpuSet *set);
extern int	pgadm_host_cpu_count(const PgAdmHostCpuSet *set);
extern double pgadm_host_usable_cpus(const PgAdmHost *host,
									 const PgAdmHostCpuSet *set);

/*
 * How much of these CPUs is used.  now_us is of any clock that does not jump.
 */
extern bool pgadm_host_cpu_use(const PgAdmHost *host,
							   const PgAdmHostCpuSet *set, int64 now_us,
							   PgAdmHostCpuUse *use);
extern bool pgadm_host_same_cpus(const PgAdmHostCpuUse *a,
								 const PgAdmHostCpuUse *b);

/* true if the limit is known; used may be unknown even so */
extern bool pgadm_host_memory(const PgAdmHost *host, PgAdmHostMemory *memory);

extern double pgadm_host_load_average(const PgAdmHost *host);
extern bool pgadm_host_pressure(const PgAdmHost *host,
								PgAdmHostPressure *pressure);

/* one process; pid 0 is the calling one */
extern bool pgadm_host_process(const PgAdmHost *host, int pid,
							   PgAdmHostProcess *process);
extern bool pgadm_host_sched(const PgAdmHost *host, int pid,
							 PgAdmHostSched *sched);

/*
 * Parsers.  A line counts only if it ends as it should: the kernel writes all
 * of these with a newline, so that a text that was cut gives no number.
 */

/* values[i] of the line "<keys[i]> <number>[ <unit>]"; how many were found */
extern int	pgadm_host_parse_keys(const char *text, size_t len,
								  const char *const *keys, const char *unit,
								  int nkeys, int64 *values);
/* a file that is one number */
extern int64 pgadm_host_parse_number(const char *text, size_t len);

/* MemTotal and MemTotal - MemAvailable */
extern bool pgadm_host_parse_meminfo(const char *text, size_t len,
									 PgAdmHostMemory *memory);
/* memory.limit_in_bytes, memory.max */
extern int64 pgadm_host_parse_memory_limit(const char *text, size_t len);
/* memory.stat: what the kernel can drop when it needs memory */
extern int64 pgadm_host_parse_reclaimable(const char *text, size_t len,
										  int version);

/* quotas in CPUs: cpu.max; cpu.cfs_quota_us and cpu.cfs_period_us */
extern double pgadm_host_parse_cpu_max(const char *text, size_t len);
extern double pgadm_host_parse_cpu_quota(const char *quota, size_t quota_len,
										 const char *period,
										 size_t period_len);

/* /proc/stat: the CPUs of the set (NULL: all); hz: ticks per second */
extern bool pgadm_host_parse_stat(const char *text, size_t len,
								  const PgAdmHostCpuSet *set, int64 hz,
								  PgAdmHostCpuUse *use);
extern bool pgadm_host_parse_sched(const char *text, size_t len,
								   PgAdmHostSched *sched);
extern bool pgadm_host_parse_process(const char *text, size_t len,
									 PgAdmHostProcess *process);
extern double pgadm_host_parse_load_average(const char *text, size_t len);
extern bool pgadm_host_parse_pressure(const char *text, size_t len,
									  PgAdmHostPressure *pressure);

/*
 * /proc/self/cgroup and /proc/self/mountinfo: the version (0: none) and folder
 * of the group that controls the resource ("memory", "cpu", "cpuacct").
 */
extern bool pgadm_host_parse_cgroup(const char *cgroup, size_t cgroup_len,
									const char *mounts, size_t mounts_len,
									const char *controller,
									PgAdmHostCgroup *group);

#endif							/* PGADM_HOST_H */
