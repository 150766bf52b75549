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
 * The counters of pg_stat_admission, each with its column there:
 *
 *	COUNTER(counter, column)
 *	REFUSAL(counter, column, reason): counts what is refused for the reason
 *	EXEMPTION(counter, column, name): counts the statements that are bypassed
 *		because of the exemption of that name
 *
 * This list is the only place that a new counter must be added to, besides the
 * SQL that gives the view its columns, and their order.
 */
#define PGADM_COUNTERS(COUNTER, REFUSAL, EXEMPTION) \
	COUNTER(PGADM_SUBMITTED, "submitted") \
	COUNTER(PGADM_ADMITTED, "admitted") \
	COUNTER(PGADM_WAITED, "waited") \
	COUNTER(PGADM_COMPLETED, "completed") \
	COUNTER(PGADM_REJECTED, "rejected") \
	REFUSAL(PGADM_REJECTED_QUEUE_FULL, "rejected_queue_full", \
			PGADM_REASON_QUEUE_FULL) \
	REFUSAL(PGADM_REJECTED_QUEUE_TIMEOUT, "rejected_queue_timeout", \
			PGADM_REASON_QUEUE_TIMEOUT) \
	REFUSAL(PGADM_REJECTED_CPU_OVERLOAD, "rejected_cpu_overload", \
			PGADM_REASON_CPU_OVERLOAD) \
	REFUSAL(PGADM_REJECTED_BREAKER, "rejected_breaker", \
			PGADM_REASON_BREAKER) \
	REFUSAL(PGADM_REJECTED_MEMORY, "rejected_memory", \
			PGADM_REASON_MEMORY) \
	REFUSAL(PGADM_REJECTED_WORKERS, "rejected_workers", \
			PGADM_REASON_WORKERS) \
	REFUSAL(PGADM_DROPPED_CONNECTIONS, "dropped_connections", \
			PGADM_REASON_CONNECTION) \
	COUNTER(PGADM_CANCELLED_WHILE_QUEUED, "cancelled_while_queued") \
	EXEMPTION(PGADM_BYPASSED_SUPERUSER, "bypassed_superuser", "superuser") \
	EXEMPTION(PGADM_BYPASSED_ROLE, "bypassed_role", "role") \
	EXEMPTION(PGADM_BYPASSED_SETTING, "bypassed_setting", "setting") \
	EXEMPTION(PGADM_BYPASSED_COST, "bypassed_cost", "cost") \
	EXEMPTION(PGADM_BYPASSED_NO_RELATION, "bypassed_no_relation", \
			  "no_relation") \
	COUNTER(PGADM_WOULD_HAVE_WAITED, "would_have_waited") \
	COUNTER(PGADM_WOULD_HAVE_REJECTED, "would_have_rejected") \
	COUNTER(PGADM_WOULD_HAVE_DROPPED_CONNECTIONS, \
			"would_have_dropped_connections") \
	COUNTER(PGADM_FORCED, "forced") \
	COUNTER(PGADM_LENT, "lent") \
	COUNTER(PGADM_THROTTLED, "throttled") \
	COUNTER(PGADM_RESCUED, "rescued")

#define PGADM_COUNTER_ENUM(counter, ...)	counter,

typedef enum PgAdmCounter
{
	PGADM_COUNTERS(PGADM_COUNTER_ENUM, PGADM_COUNTER_ENUM, PGADM_COUNTER_ENUM)
	PGADM_NCOUNTERS
} PgAdmCounter;

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
	uint64		dropped_connections;
	int64		wait_us_total;
} pg_attribute_aligned(PGADM_CACHE_LINE_SIZE) PgAdmRoleStats;

/*
 * Cumulative statistics.  The counters are atomic: all can be read without the
 * lock, and those of bypassed statements are changed without it.  Everything
 * else is changed under it.
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

extern PgAdmCounter pgadm_stats_counter(const char *column);
extern const char *pgadm_stats_exemption(PgAdmCounter counter);
extern void pgadm_stats_bypassed(PgAdmCounter counter);
extern void pgadm_stats_count(PgAdmCounter counter) pg_attribute_hot;
extern void pgadm_stats_add(PgAdmCounter counter, int n) pg_attribute_hot;
extern uint64 pgadm_stats_get(PgAdmCounter counter) pg_attribute_hot;
extern int	pgadm_stats_join(Oid role, Oid database);
extern void pgadm_stats_submitted(int role) pg_attribute_hot;
extern void pgadm_stats_admitted(int role) pg_attribute_hot;
extern void pgadm_stats_rejected(int role, PgAdmReason reason);
extern void pgadm_stats_would_have_rejected(int role);
extern void pgadm_stats_dropped(int role);
extern void pgadm_stats_waited(int role, int64 wait_us);
extern void pgadm_stats_reset(void);

#endif							/* PGADM_STATS_H */
