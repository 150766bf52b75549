/*-------------------------------------------------------------------------
 *
 * stats.c
 *		Cumulative counters.
 *
 * Locking: counters that take part in the invariant submitted = admitted +
 * rejected + cancelled_while_queued + queued are only changed while the
 * admission lock is held, so that it is true whenever the lock is free.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/stats.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "port/pg_bitutils.h"
#include "stats.h"
#include "utils/timestamp.h"

static const PgAdmCounter reason_counters[PGADM_NREASONS] = {
	[PGADM_REASON_QUEUE_FULL] = PGADM_REJECTED_QUEUE_FULL,
	[PGADM_REASON_QUEUE_TIMEOUT] = PGADM_REJECTED_QUEUE_TIMEOUT,
	[PGADM_REASON_CPU_OVERLOAD] = PGADM_REJECTED_CPU_OVERLOAD,
	[PGADM_REASON_BREAKER] = PGADM_REJECTED_BREAKER,
	[PGADM_REASON_CONNECTION] = PGADM_DROPPED_CONNECTIONS,
	[PGADM_REASON_MEMORY] = PGADM_REJECTED_MEMORY,
	[PGADM_REASON_WORKERS] = PGADM_REJECTED_WORKERS,
};

/*
 * Count a bypassed statement, without the lock.
 */
void
pgadm_stats_bypassed(PgAdmCounter counter)
{
	pg_atomic_fetch_add_u64(&pgadm_shared->stats.counters[counter], 1);
}

/*
 * Count anything else.  The caller holds the admission lock, and is the only
 * one to write.
 */
void
pgadm_stats_count(PgAdmCounter counter)
{
	pgadm_stats_add(counter, 1);
}

void
pgadm_stats_add(PgAdmCounter counter, int n)
{
	pg_atomic_uint64 *value = &pgadm_shared->stats.counters[counter];

	pg_atomic_write_u64(value, pg_atomic_read_u64(value) + n);
}

uint64
pgadm_stats_get(PgAdmCounter counter)
{
	return pg_atomic_read_u64(&pgadm_shared->stats.counters[counter]);
}

static PgAdmRoleStats *
role_stats(PgAdmSlot *slot)
{
	return &pgadm_shared->roles[slot->role_stats];
}

/*
 * Find, or make, the counters of a backend's role in its database.  When
 * there is no room it is counted with the rest.
 */
void
pgadm_stats_join(PgAdmSlot *slot, Oid role, Oid database)
{
	PgAdmShared *shared = pgadm_shared;
	int			i = 1;

	while (i < shared->nroles && (shared->roles[i].role != role ||
								  shared->roles[i].database != database))
		i++;
	if (i == shared->nroles && i < PGADM_MAX_ROLE_STATS)
	{
		shared->roles[i].role = role;
		shared->roles[i].database = database;
		shared->nroles++;
	}
	slot->role_stats = i < PGADM_MAX_ROLE_STATS ? i : 0;
}

/*
 * Count what becomes of a query, for the server and for its role.  The caller
 * of these, and of the former, holds the admission lock.
 */
void
pgadm_stats_submitted(PgAdmSlot *slot)
{
	pgadm_stats_count(PGADM_SUBMITTED);
	role_stats(slot)->submitted++;
}

void
pgadm_stats_admitted(PgAdmSlot *slot)
{
	pgadm_stats_count(PGADM_ADMITTED);
	role_stats(slot)->admitted++;
}

void
pgadm_stats_would_have_rejected(PgAdmSlot *slot)
{
	pgadm_stats_count(PGADM_WOULD_HAVE_REJECTED);
	role_stats(slot)->would_have_rejected++;
}

void
pgadm_stats_rejected(PgAdmSlot *slot, PgAdmReason reason)
{
	role_stats(slot)->rejected++;
	pgadm_stats_count(PGADM_REJECTED);
	pgadm_stats_count(reason_counters[reason]);
}

/*
 * Count a query that is admitted after a wait.
 */
void
pgadm_stats_waited(PgAdmSlot *slot, int64 wait_us)
{
	PgAdmStats *stats = &pgadm_shared->stats;
	uint64		ms;
	int			bucket;

	wait_us = Max(wait_us, 0);	/* the time of day may have been set back */
	ms = wait_us / 1000;
	bucket = ms == 0 ? 0 : pg_leftmost_one_pos64(ms) + 1;

	pgadm_stats_count(PGADM_WAITED);
	role_stats(slot)->waited++;
	role_stats(slot)->wait_us_total += wait_us;
	stats->wait_histogram[Min(bucket, PGADM_WAIT_BUCKETS - 1)]++;
	stats->wait_us_total += wait_us;
	stats->wait_us_max = Max(stats->wait_us_max, wait_us);
}

/*
 * Set the counters of the roles to zero, but for those queued.
 */
static void
reset_roles(void)
{
	for (int i = 0; i < pgadm_shared->nroles; i++)
	{
		PgAdmRoleStats *stats = &pgadm_shared->roles[i];
		PgAdmRoleStats zero = {.role = stats->role,.database = stats->database};

		*stats = zero;
	}
	for (int i = 0; i < pgadm_shared->nslots; i++)
	{
		if (pgadm_shared->slots[i].waiter.state == PGADM_WAITING)
			role_stats(&pgadm_shared->slots[i])->submitted++;
	}
}

/*
 * Set all counters to zero; those queued now count as submitted again.  The
 * caller holds the admission lock.
 */
void
pgadm_stats_reset(int queued)
{
	PgAdmStats *stats = &pgadm_shared->stats;

	reset_roles();

	for (int i = 0; i < PGADM_NCOUNTERS; i++)
		pg_atomic_write_u64(&stats->counters[i], 0);
	pg_atomic_write_u64(&stats->counters[PGADM_SUBMITTED], queued);

	memset(stats->wait_histogram, 0, sizeof(stats->wait_histogram));
	stats->wait_us_total = 0;
	stats->wait_us_max = 0;
	stats->cpu_wait_us_base = pgadm_shared->load.sample.cpu_wait_us;
	stats->cpu_busy_us_base = pgadm_shared->load.sample.cpu_busy_us;
	stats->reset_at = GetCurrentTimestamp();
}
