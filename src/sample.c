/*-------------------------------------------------------------------------
 *
 * sample.c
 *		One sample of the server's load.
 *
 * Reads the machine, works out what it means, and publishes that: to the
 * decisions about queries, to the views, to the history, to breakers and
 * warnings.  What cannot be read is published as unknown.
 *
 * Locking: runs in the sampler only.  The last sample is published under the
 * admission lock, the history has a lock of its own.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/sample.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "cgroup.h"
#include "clock.h"
#include "cpu.h"
#include "gate.h"
#include "monitors.h"
#include "procfs.h"
#include "sample.h"
#include "settings.h"
#include "shared.h"
#include "stats.h"
#include "utils/timestamp.h"
#include "warnings.h"

/* What must be remembered from sample to sample */
static PgAdmCgroups cgroups;
static PgAdmProcfsCpuSet cpu_set;
static bool cpu_set_known;
static PgAdmLoadWindow ratio_window;
static PgAdmLoadWindow utilization_window;
static PgAdmLoadWindow pressure_window;
static PgAdmCgroupCpuUse last_use;
static PgAdmLoadTotals use_totals;
static PgAdmLoadRate throttle_rate;
static PgAdmLoadRate service_rate;
static int64 last_throttled;

static PgAdmLoadValue
known_if(bool known, double value)
{
	return known ? pgadm_load_known(value) : pgadm_load_unknown();
}

/*
 * CPU wait and busy time of this server, and their ratio.
 */
static void
sample_cpu_time(PgAdmLoadSample *sample, PgAdmCpuConsumer *consumers)
{
	PgAdmLoadTotals totals;
	double		cpus = pgadm_cores;

	if (cpus <= 0)
		cpus = cpu_set_known ? pgadm_cgroup_usable_cpus(&cgroups, &cpu_set) : 0;

	pgadm_cpu_sample(&totals, consumers);
	sample->cpu_known = totals.known;
	sample->cpu_wait_us = totals.part_us;
	sample->cpu_busy_us = totals.whole_us;
	sample->cpu_wait_ratio =
		pgadm_load_cpu_wait_ratio(&ratio_window, &totals,
								  pgadm_cpu_busy_time_threshold, cpus,
								  pgadm_sample_interval);
}

/*
 * Utilization of the CPUs that this server may use, by any process.  The
 * totals grow by what was used between two readings that can be compared.
 */
static void
sample_utilization(PgAdmLoadSample *sample)
{
	PgAdmCgroupCpuUse use;

	use_totals.at = sample->sampled_at;
	use_totals.known = cpu_set_known &&
		pgadm_cgroup_cpu_use(&cgroups, &cpu_set, pgadm_clock_us(), &use);
	if (use_totals.known)
	{
		if (pgadm_cgroup_same_cpus(&last_use, &use) &&
			use.busy_us >= last_use.busy_us && use.span_us >= last_use.span_us)
		{
			use_totals.part_us += use.busy_us - last_use.busy_us;
			use_totals.whole_us += use.span_us - last_use.span_us;
		}
		last_use = use;
	}
	sample->cpu_utilization =
		pgadm_load_cpu_utilization(&utilization_window, &use_totals,
								   pgadm_sample_interval);
}

/*
 * Share of the time in which some process on this machine waited for a CPU.
 */
static void
sample_pressure(PgAdmLoadSample *sample)
{
	PgAdmProcfsPressure pressure;
	PgAdmLoadTotals totals;

	totals.at = sample->sampled_at;
	totals.known = pgadm_procfs_pressure(PGADM_PROCFS_HERE, &pressure);
	totals.part_us = totals.known ? pressure.total_us : 0;
	totals.whole_us = pgadm_clock_us();
	sample->cpu_pressure =
		pgadm_load_cpu_utilization(&pressure_window, &totals, pgadm_sample_interval);
}

static void
sample_memory(PgAdmLoadSample *sample)
{
	PgAdmCgroupMemory memory;
	bool		known = pgadm_cgroup_memory(&cgroups, &memory) &&
		memory.used >= 0 && memory.limit > 0;

	sample->memory_usage = known_if(known, known ? (double) memory.used / memory.limit : 0);
}

static void
sample_load_average(PgAdmLoadSample *sample)
{
	double		load_average = pgadm_procfs_load_average(PGADM_PROCFS_HERE);

	sample->load_average = known_if(load_average >= 0, load_average);
}

/*
 * How fast queries are throttled and completed.
 */
static void
sample_rates(TimestampTz now, bool saturated)
{
	pgadm_load_rate_update(&throttle_rate, pgadm_stats_get(PGADM_THROTTLED),
						   false, now, pgadm_sample_interval);
	pgadm_load_rate_update(&service_rate, pgadm_stats_get(PGADM_COMPLETED),
						   saturated, now, pgadm_sample_interval);
}

static void
publish_load(void *arg)
{
	PgAdmLoadSample *sample = arg;
	PgAdmServerLoad *load = &pgadm_shared->load;

	sample->running = pgadm_shared->pools[0].usage.running;
	sample->queued = pgadm_shared->pools[0].queued;
	sample->admitted = pgadm_stats_get(PGADM_ADMITTED);
	sample->rejected = pgadm_stats_get(PGADM_REJECTED);
	load->sample = *sample;
	load->number++;
	load->interval_ms = pgadm_sample_interval;
	load->throttle_rate = throttle_rate.last;
	load->service_rate = pgadm_load_rate(&service_rate);
}

/*
 * Make the sample the current one.
 */
static void
publish(PgAdmLoadSample *sample)
{
	PgAdmHistory *history = &pgadm_shared->history;

	pgadm_gate_locked(publish_load, sample);

	LWLockAcquire(&history->lock, LW_EXCLUSIVE);
	history->samples[pgadm_load_history_next(history->written)] = *sample;
	history->written++;
	LWLockRelease(&history->lock);
}

/*
 * How many queries were throttled since the last sample: queued or refused, or
 * queued before and still so.  When the counter has been reset, at least as
 * many as it shows now.
 */
static int64
newly_throttled(const PgAdmLoadSample *sample)
{
	int64		throttled = pgadm_stats_get(PGADM_THROTTLED);
	int64		newly = throttled;

	if (throttled >= last_throttled)
		newly -= last_throttled;
	last_throttled = throttled;
	return Max(newly, sample->queued);
}

/*
 * Find out where this server runs; the first sample follows.
 */
void
pgadm_sample_start(void)
{
	pgadm_cgroup_init(&cgroups, PGADM_PROCFS_HERE);
	last_throttled = pgadm_stats_get(PGADM_THROTTLED);
	pgadm_monitors_start();
}

/*
 * Take a sample.  "saturated" is whether a query has waited since the last, or
 * would have had to.
 */
void
pgadm_sample_take(bool saturated)
{
	PgAdmCpuConsumer consumers[PGADM_CPU_NCONSUMERS];
	PgAdmLoadSample sample;

	memset(&sample, 0, sizeof(sample));
	sample.sampled_at = GetCurrentTimestamp();
	cpu_set_known = pgadm_procfs_affinity(&cpu_set);

	sample_cpu_time(&sample, consumers);
	sample_utilization(&sample);
	sample_pressure(&sample);
	sample_memory(&sample);
	sample_load_average(&sample);
	sample_rates(sample.sampled_at, saturated);

	publish(&sample);
	pgadm_monitors_update(&sample, sample.sampled_at);
	pgadm_warnings_update(&sample, newly_throttled(&sample), consumers);
}

/*
 * The settings have been read again: see where this server runs by now, and
 * compare the last sample with the new thresholds.
 */
void
pgadm_sample_apply_settings(void)
{
	PgAdmLoadSample sample = pgadm_shared->load.sample;

	pgadm_cgroup_init(&cgroups, PGADM_PROCFS_HERE);
	if (sample.sampled_at != 0)
		pgadm_monitors_update(&sample, GetCurrentTimestamp());
}
