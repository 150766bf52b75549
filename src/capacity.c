/*-------------------------------------------------------------------------
 *
 * capacity.c
 *		The capacity in force: settings, and what the machine has.
 *
 * Published first by the postmaster, so that there is one even if the
 * sampler never starts, and from then on by the sampler: when it starts, after
 * every reload, and with every sample, because CPUs and memory may be given to
 * or taken from a running machine or control group.  Without a sampler, backends
 * publish it after a reload; what was detected last they have from the
 * postmaster.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/capacity.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>
#include <unistd.h>

#include "capacity.h"
#include "cgroup.h"
#include "gate.h"
#include "settings.h"
#include "storage/bufmgr.h"
#include "utils/timestamp.h"

/* What a product of fractions may be too large by, before it is rounded up */
#define ROUNDING_ERROR	1e-9

/* Places in the queue for each worker, if queue_capacity is -1 */
#define QUEUED_PER_WORKER	4

/*
 * The CPUs that this server may use.  When they cannot be determined, they are
 * what they were last; when they never could, all that are online, since it is
 * better to assume too many than to throttle for no reason.
 */
static double
detect_cores(const PgAdmCgroups *cgroups)
{
	static double last = PGADM_UNKNOWN;
	PgAdmProcfsCpuSet set;
	double		cores = PGADM_UNKNOWN;

	if (pgadm_procfs_affinity(&set))
		cores = pgadm_cgroup_usable_cpus(cgroups, &set);
	if (cores > 0)
		last = cores;
	else if (last <= 0)
		last = sysconf(_SC_NPROCESSORS_ONLN);
	return Max(last, 0);
}

/*
 * The memory that this server may use for its processes, in bytes.  When it
 * cannot be determined, it is what it was last; when it never could, unlimited.
 */
static int64
detect_memory(const PgAdmCgroups *cgroups)
{
	static int64 last = PG_INT64_MAX;
	PgAdmCgroupMemory memory;

	if (pgadm_cgroup_memory(cgroups, &memory))
		last = Max(memory.limit - (int64) NBuffers * BLCKSZ, 0);
	return last;
}

static int
workers_total(const PgAdmCgroups *cgroups)
{
	double		cores = pgadm_cores > 0 ? pgadm_cores : detect_cores(cgroups);
	double		workers = ceil(cores * pgadm_cores_multiplier - ROUNDING_ERROR);

	return (int) Min(Max(workers, 1), PG_INT32_MAX / 8);
}

static int64
memory_total(const PgAdmCgroups *cgroups)
{
	int64		total = pgadm_total_memory > 0 ?
		(int64) pgadm_total_memory * 1024 : detect_memory(cgroups);

	if (total == PG_INT64_MAX)
		return total;
	return (int64) (total * pgadm_memory_fraction);
}

/*
 * What the settings say of the queue.
 */
static PgAdmRules
make_rules(int workers)
{
	PgAdmRules	rules;

	memset(&rules, 0, sizeof(rules));
	rules.queue_timeout = pgadm_queue_timeout;
	rules.shedding = (pgadm_load_shedding != PGADM_SHEDDING_OFF);
	if (!rules.shedding)
		rules.queue_capacity = -1;
	else if (pgadm_queue_capacity < 0)
		rules.queue_capacity = QUEUED_PER_WORKER * workers;
	else
		rules.queue_capacity = pgadm_queue_capacity;
	return rules;
}

/*
 * Work out rules and capacity, and put them in force.  by_substitute is whether
 * another process than the postmaster or the sampler does so: it may not have
 * been the last to read the settings, and does not know those of the server
 * that it has values of its own for.
 */
void
pgadm_capacity_publish(bool by_substitute)
{
	PgAdmCgroups cgroups;
	PgAdmInForce in_force;

	memset(&in_force, 0, sizeof(in_force));
	in_force.loaded_at = PgReloadTime;
	in_force.by_substitute = by_substitute;
	in_force.enabled = pgadm_enabled;
	in_force.has_mode = !pgadm_mode_is_local;
	in_force.mode = pgadm_mode;
	in_force.has_queue_timeout = !pgadm_queue_timeout_is_local;

	pgadm_cgroup_init(&cgroups, PGADM_PROCFS_HERE);
	in_force.capacity.workers = workers_total(&cgroups);
	in_force.capacity.memory = memory_total(&cgroups);
	in_force.rules = make_rules(in_force.capacity.workers);

	pgadm_gate_publish(&in_force);
}
