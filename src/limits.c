/*-------------------------------------------------------------------------
 *
 * limits.c
 *		The limits in force: settings, and what the machine has.
 *
 * Published first by the postmaster, so that there are limits even if the
 * sampler never starts, and from then on by the sampler: when it starts, after
 * every reload, and with every sample, because CPUs and memory may be given to
 * or taken from a running machine or control group.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/limits.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>
#include <unistd.h>

#include "host.h"
#include "limits.h"
#include "queue.h"
#include "settings.h"
#include "storage/bufmgr.h"

/* What a product of fractions may be too large by, before it is rounded up */
#define ROUNDING_ERROR	1e-9

/*
 * The CPUs that this server may use.  If they cannot be told, and never could,
 * take those that are online: too many is better than to throttle for no reason.
 */
static double
detect_cores(const PgAdmHost *host)
{
	static double last = PGADM_HOST_UNKNOWN;
	PgAdmHostCpuSet set;
	double		cores = PGADM_HOST_UNKNOWN;

	if (pgadm_host_affinity(&set))
		cores = pgadm_host_usable_cpus(host, &set);
	if (cores > 0)
		last = cores;
	else if (last <= 0)
		last = sysconf(_SC_NPROCESSORS_ONLN);
	return Max(last, 0);
}

/*
 * The memory that this server may use for its processes, in bytes.  If it
 * cannot be told, and never could, there is no limit.
 */
static int64
detect_memory(const PgAdmHost *host)
{
	static int64 last = PG_INT64_MAX;
	PgAdmHostMemory memory;

	if (pgadm_host_memory(host, &memory))
		last = Max(memory.limit - (int64) NBuffers * BLCKSZ, 0);
	return last;
}

static int
workers_total(const PgAdmHost *host)
{
	double		cores = pgadm_cores > 0 ? pgadm_cores : detect_cores(host);
	double		workers = ceil(cores * pgadm_cores_multiplier - ROUNDING_ERROR);

	return (int) Min(Max(workers, 1), PG_INT32_MAX / 8);
}

static int64
memory_total(const PgAdmHost *host)
{
	int64		total = pgadm_total_memory > 0 ?
		(int64) pgadm_total_memory * 1024 : detect_memory(host);

	if (total == PG_INT64_MAX)
		return total;
	return (int64) (total * pgadm_memory_fraction);
}

/*
 * Work out the limits and put them in force.
 */
void
pgadm_limits_publish(void)
{
	PgAdmLimits limits;
	PgAdmHost	host;

	pgadm_host_init(&host, "");

	memset(&limits, 0, sizeof(limits));
	limits.mode = pgadm_mode;
	limits.queue_timeout = pgadm_queue_timeout;
	limits.shedding = (pgadm_load_shedding != PGADM_SHEDDING_OFF);
	limits.workers_total = workers_total(&host);
	limits.memory_total = memory_total(&host);
	if (!limits.shedding)
		limits.queue_capacity = -1;
	else if (pgadm_queue_capacity < 0)
		limits.queue_capacity = 4 * limits.workers_total;
	else
		limits.queue_capacity = pgadm_queue_capacity;

	pgadm_queue_publish(&limits);
}
