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
#include "shared.h"
#include "stats.h"
#include "utils/timestamp.h"

/* What an entry of PGADM_COUNTERS contributes to the arrays below */
#define NOTHING(...)
#define COLUMN(counter, column, ...)	[counter] = (column),
#define OF_REASON(counter, column, reason)	[reason] = (counter),
#define NAME(counter, column, name)	[counter] = (name),

static const char *const columns[PGADM_NCOUNTERS] = {
	PGADM_COUNTERS(COLUMN, COLUMN, COLUMN)
};

static const PgAdmCounter reason_counters[PGADM_NREASONS] = {
	PGADM_COUNTERS(NOTHING, OF_REASON, NOTHING)
};

static const char *const exemptions[PGADM_NCOUNTERS] = {
	PGADM_COUNTERS(NOTHING, NOTHING, NAME)
};

/*
 * The counter with that column, or PGADM_NCOUNTERS.
 */
PgAdmCounter
pgadm_stats_counter(const char *column)
{
	int			i = 0;

	while (i < PGADM_NCOUNTERS && strcmp(columns[i], column) != 0)
		i++;
	return (PgAdmCounter) i;
}

/*
 * The name of the exemption whose statements are counted there, or NULL.
 */
const char *
pgadm_stats_exemption(PgAdmCounter counter)
{
	return counter < PGADM_NCOUNTERS ? exemptions[counter] : NULL;
}

/*
 * Count a bypassed statement, without the lock.
 */
void
pgadm_stats_bypassed(PgAdmCounter counter)
{
	pg_atomic_fetch_add_u64(&pgadm_shared->stats.counters[counter], 1);
}

/*
 * Count anything else.  The caller holds the admission lock, so no other process
 * changes that counter meanwhile.
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

/*
 * Find, or make, the counters of a role in a database.  A role for which there
 * is no room is counted with the rest.
 */
int
pgadm_stats_join(Oid role, Oid database)
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
	return i < PGADM_MAX_ROLE_STATS ? i : 0;
}

/*
 * Count what becomes of a query, for the server and for its role.  The caller
 * of this function, of pgadm_stats_join() and of all the following holds the
 * admission lock.
 */
void
pgadm_stats_submitted(int role)
{
	pgadm_stats_count(PGADM_SUBMITTED);
	pgadm_shared->roles[role].submitted++;
}

void
pgadm_stats_admitted(int role)
{
	pgadm_stats_count(PGADM_ADMITTED);
	pgadm_shared->roles[role].admitted++;
}

void
pgadm_stats_would_have_rejected(int role)
{
	pgadm_stats_count(PGADM_WOULD_HAVE_REJECTED);
	pgadm_shared->roles[role].would_have_rejected++;
}

void
pgadm_stats_rejected(int role, PgAdmReason reason)
{
	pgadm_shared->roles[role].rejected++;
	pgadm_stats_count(PGADM_REJECTED);
	pgadm_stats_count(reason_counters[reason]);
}

/*
 * Count a connection that is refused.
 */
void
pgadm_stats_dropped(int role)
{
	pgadm_stats_count(PGADM_DROPPED_CONNECTIONS);
	pgadm_shared->roles[role].dropped_connections++;
}

/*
 * Count a query that is admitted after a wait.
 */
void
pgadm_stats_waited(int role, int64 wait_us)
{
	PgAdmStats *stats = &pgadm_shared->stats;
	uint64		ms;
	int			bucket;

	wait_us = Max(wait_us, 0);	/* the time of day may have been set back */
	ms = wait_us / 1000;
	bucket = ms == 0 ? 0 : pg_leftmost_one_pos64(ms) + 1;

	pgadm_stats_count(PGADM_WAITED);
	pgadm_shared->roles[role].waited++;
	pgadm_shared->roles[role].wait_us_total += wait_us;
	stats->wait_histogram[Min(bucket, PGADM_WAIT_BUCKETS - 1)]++;
	stats->wait_us_total += wait_us;
	stats->wait_us_max = Max(stats->wait_us_max, wait_us);
}

/*
 * Count the queries in a list of waiters as submitted again.
 */
static void
count_queued(dlist_head *list)
{
	dlist_iter	iter;

	dlist_foreach(iter, list)
	{
		PgAdmBackend *backend = dlist_container(PgAdmBackend, waiter.link, iter.cur);

		pgadm_stats_submitted(backend->role_stats);
	}
}

/*
 * Set all counters to zero, but count the queries that are queued now as
 * submitted.
 */
void
pgadm_stats_reset(void)
{
	PgAdmStats *stats = &pgadm_shared->stats;

	for (int i = 0; i < PGADM_NCOUNTERS; i++)
		pg_atomic_write_u64(&stats->counters[i], 0);
	for (int i = 0; i < pgadm_shared->nroles; i++)
	{
		PgAdmRoleStats *role = &pgadm_shared->roles[i];
		PgAdmRoleStats zero = {.role = role->role,.database = role->database};

		*role = zero;
	}
	for (int i = 0; i < PGADM_NPOOLS; i++)
	{
		count_queued(&pgadm_shared->pools[i].priority);
		count_queued(&pgadm_shared->pools[i].ordinary);
	}

	memset(stats->wait_histogram, 0, sizeof(stats->wait_histogram));
	stats->wait_us_total = 0;
	stats->wait_us_max = 0;
	stats->cpu_wait_us_base = pgadm_shared->load.sample.cpu_wait_us;
	stats->cpu_busy_us_base = pgadm_shared->load.sample.cpu_busy_us;
	stats->reset_at = GetCurrentTimestamp();
}
