/*-------------------------------------------------------------------------
 *
 * cgroup.h
 *		Reads control groups: what the server may use, and uses of that.
 *
 * Where no group limits the server, the machine does: what is told here of
 * CPUs and memory is the smaller of both.
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
 *	  src/cgroup.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGADM_CGROUP_H
#define PGADM_CGROUP_H

#include "procfs.h"

/* a limit that is known to be none, so that the smallest limit is the limit */
#define PGADM_CGROUP_NO_LIMIT	PG_INT64_MAX

/* Where one resource of the server is limited and accounted */
typedef struct PgAdmCgroup
{
	int			version;		/* 1 or 2; 0: in no control group */
	int			top;			/* length of the part of path that is mounted */
	char		path[MAXPGPATH];	/* folder of the server's own group */
} PgAdmCgroup;

/*
 * The groups that the server is in.  It holds no resources: copy it, drop it,
 * make it anew (pgadm_cgroup_init) as often as wanted.
 */
typedef struct PgAdmCgroups
{
	char		root[MAXPGPATH];	/* PGADM_PROCFS_HERE or a recorded tree */
	PgAdmCgroup memory;
	PgAdmCgroup cpu;
	PgAdmCgroup cpuacct;
} PgAdmCgroups;

typedef struct PgAdmCgroupMemory
{
	int64		limit;			/* the smaller of physical and cgroup's */
	int64		used;			/* of that; without reclaimable page cache */
	bool		from_cgroup;	/* the limit is a control group's */
} PgAdmCgroupMemory;

/*
 * CPU time used so far, of all that there was to use.  Both only grow; what
 * they grew by between two samples is the utilisation, provided that
 * pgadm_cgroup_same_cpus().
 */
typedef struct PgAdmCgroupCpuUse
{
	int64		busy_us;
	int64		span_us;
	double		cpus;			/* the quota, or number of CPUs summed */
	bool		by_quota;		/* use by the server's cgroup, of its quota */
} PgAdmCgroupCpuUse;

/*
 * Readers.  They open, read and close a few files each, need no memory but
 * their stack, and may be called at any time.
 */
extern void pgadm_cgroup_init(PgAdmCgroups *groups, const char *root);

/* of the CPUs that this process may run on, how many the groups allow */
extern double pgadm_cgroup_usable_cpus(const PgAdmCgroups *groups,
									   const PgAdmProcfsCpuSet *set);

/*
 * How much of these CPUs is used.  now_us is of any clock that does not jump.
 */
extern bool pgadm_cgroup_cpu_use(const PgAdmCgroups *groups,
								 const PgAdmProcfsCpuSet *set, int64 now_us,
								 PgAdmCgroupCpuUse *use);
extern bool pgadm_cgroup_same_cpus(const PgAdmCgroupCpuUse *a,
								   const PgAdmCgroupCpuUse *b);

/* true if the limit is known; used may be unknown even so */
extern bool pgadm_cgroup_memory(const PgAdmCgroups *groups,
								PgAdmCgroupMemory *memory);

/*
 * Parsers.  A line counts only if it ends as it should: the kernel writes all
 * of these with a newline, so that a text that was cut gives no number.
 */

/* a file that is one number */
extern int64 pgadm_cgroup_parse_number(const char *text, size_t len);
/* memory.limit_in_bytes, memory.max */
extern int64 pgadm_cgroup_parse_memory_limit(const char *text, size_t len);
/* memory.stat: what the kernel can drop when it needs memory */
extern int64 pgadm_cgroup_parse_reclaimable(const char *text, size_t len,
											int version);

/* quotas in CPUs: cpu.max; cpu.cfs_quota_us and cpu.cfs_period_us */
extern double pgadm_cgroup_parse_cpu_max(const char *text, size_t len);
extern double pgadm_cgroup_parse_cpu_quota(const char *quota, size_t quota_len,
										   const char *period,
										   size_t period_len);

/*
 * /proc/self/cgroup and /proc/self/mountinfo: the version (0: none) and folder
 * of the group that controls the resource ("memory", "cpu", "cpuacct").
 */
extern bool pgadm_cgroup_parse_place(const char *cgroup, size_t cgroup_len,
									 const char *mounts, size_t mounts_len,
									 const char *controller,
									 PgAdmCgroup *group);

#endif							/* PGADM_CGROUP_H */
