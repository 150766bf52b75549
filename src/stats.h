/*-------------------------------------------------------------------------
 *
 * stats.h
 *		Cumulative counters.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/stats.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGADM_STATS_H
#define PGADM_STATS_H

#include "datatype/timestamp.h"
#include "pool.h"
#include "port/atomics.h"

/* Waits in the queue by duration: below 1 ms, 2 ms, 4 ms ... and the rest */
#define PGADM_WAIT_BUCKETS		18

/*
 * The counters of pg_stat_admission.  A name here is a column's name there.
 */
typedef enum PgAdmCounter
{
	PGADM_SUBMITTED,
	PGADM_ADMITTED,
	PGADM_WAITED,
	PGADM_COMPLETED,
	PGADM_REJECTED,
	PGADM_REJECTED_QUEUE_FULL,
	PGADM_REJECTED_QUEUE_TIMEOUT,
	PGADM_REJECTED_DEADLINE,	/* nothing refuses for that yet */
	PGADM_REJECTED_CPU_OVERLOAD,
	PGADM_REJECTED_BREAKER,
	PGADM_REJECTED_MEMORY,
	PGADM_REJECTED_WORKERS,
	PGADM_DROPPED_CONNECTIONS,
	PGADM_CANCELLED_WHILE_QUEUED,
	PGADM_BYPASSED_SUPERUSER,
	PGADM_BYPASSED_ROLE,
	PGADM_BYPASSED_SETTING,
	PGADM_BYPASSED_COST,
	PGADM_BYPASSED_NO_RELATION,
	PGADM_WOULD_HAVE_WAITED,
	PGADM_WOULD_HAVE_REJECTED,
	PGADM_WOULD_HAVE_DROPPED_CONNECTIONS,
	PGADM_FORCED,
	PGADM_LENT,
	PGADM_THROTTLED,
	PGADM_RESCUED,
} PgAdmCounter;

#define PGADM_NCOUNTERS	(PGADM_RESCUED + 1)

/* Roles and databases whose queries are counted apart; the rest are summed */
#define PGADM_MAX_ROLE_STATS	256

/*
 * The counters of one role in one database; of all others in the first.
 */
typedef struct PgAdmRoleStats
{
	Oid			role;
	Oid			database;
	uint64		submitted;
	uint64		admitted;
	uint64		waited;
	uint64		rejected;
	uint64		would_have_rejected;
	int64		wait_us_total;
} pg_attribute_aligned(PGADM_CACHE_LINE_SIZE) PgAdmRoleStats;

/*
 * Cumulative statistics.  The counters are atomic so that a bypassed query
 * can be counted without the lock, and all can be read so; the others are
 * changed under it.
 */
typedef struct PgAdmStats
{
	pg_atomic_uint64 counters[PGADM_NCOUNTERS];
	uint64		wait_histogram[PGADM_WAIT_BUCKETS];
	int64		wait_us_total;
	int64		wait_us_max;
	int64		cpu_wait_us_base;	/* of the growing totals, at the reset */
	int64		cpu_busy_us_base;
	TimestampTz reset_at;
} PgAdmStats;

extern void pgadm_stats_bypassed(PgAdmCounter counter);
extern void pgadm_stats_count(PgAdmCounter counter) pg_attribute_hot;
extern void pgadm_stats_add(PgAdmCounter counter, int n) pg_attribute_hot;
extern uint64 pgadm_stats_get(PgAdmCounter counter) pg_attribute_hot;
extern int	pgadm_stats_join(Oid role, Oid database);
extern void pgadm_stats_submitted(int role) pg_attribute_hot;
extern void pgadm_stats_admitted(int role) pg_attribute_hot;
extern void pgadm_stats_rejected(int role, PgAdmReason reason);
extern void pgadm_stats_would_have_rejected(int role);
extern void pgadm_stats_waited(int role, int64 wait_us);
extern void pgadm_stats_reset(void);

#endif							/* PGADM_STATS_H */
