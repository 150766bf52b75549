/*-------------------------------------------------------------------------
 *
 * memory_feedback.h
 *		What queries really had allocated, compared with their charge.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/memory_feedback.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGADM_MEMORY_FEEDBACK_H
#define PGADM_MEMORY_FEEDBACK_H

#include "executor/execdesc.h"
#include "storage/spin.h"

/* What processes had, in bytes */
typedef struct PgAdmAllocated
{
	int64		own;			/* each its own, summed */
	int64		shared;			/* together */
} PgAdmAllocated;

/*
 * Memory that the parallel workers of one Gather had when they ended.
 */
typedef struct PgAdmGatherMemory
{
	int			plan_node_id;	/* of the plan that they run */
	uint64		seen;			/* workers of the last launch, by number */
	int64		this_launch;	/* what these had, in bytes */
	int64		most;			/* the most of any launch before */
	int64		shared;			/* the most that they shared */
} PgAdmGatherMemory;

/* Gathers of one query that are kept apart */
#define PGADM_GATHERS_PER_BACKEND	6

/*
 * Of all Gathers of the query that a backend runs, under a spinlock of its
 * own; see memory_feedback.c.
 */
typedef struct PgAdmWorkerMemory
{
	slock_t		mutex;
	int			ngathers;
	PgAdmGatherMemory gathers[PGADM_GATHERS_PER_BACKEND];
} PgAdmWorkerMemory;

/*
 * A query whose charge was not what it had allocated, in bytes.
 */
typedef struct PgAdmMisestimate
{
	int64		error;			/* the difference; 0: there is none yet */
	uint64		query_id;
	int64		charged;
	int64		allocated;
} PgAdmMisestimate;

/*
 * Charges and what queries really had, in bytes, under a spinlock of its own.
 */
typedef struct PgAdmMemoryStats
{
	slock_t		mutex;
	int64		queries;		/* the first that a reset clears */
	int64		charged;
	int64		allocated;
	int64		underestimated; /* queries */
	int64		overestimated;
	int64		missing;		/* by which these exceeded their charges */
	PgAdmMisestimate worst_under;
	PgAdmMisestimate worst_over;
} PgAdmMemoryStats;

extern void pgadm_memory_feedback_expect_workers(void);
extern void pgadm_memory_feedback_hear_workers(PgAdmAllocated *workers);
extern void pgadm_memory_feedback_tell_leader(const QueryDesc *queryDesc);
extern void pgadm_memory_feedback_compare(const QueryDesc *queryDesc, int64 charged,
										  const PgAdmAllocated *workers) pg_attribute_hot;
extern PgAdmMemoryStats pgadm_memory_feedback_get(void);
extern void pgadm_memory_feedback_reset(void);

#endif							/* PGADM_MEMORY_FEEDBACK_H */
