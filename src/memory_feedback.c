/*-------------------------------------------------------------------------
 *
 * memory_feedback.c
 *		What queries really had allocated, compared with their charge.
 *
 * When an admitted query ends, nearly all that it has allocated is still there:
 * most operators keep what they have until then, and a memory context gives its
 * blocks back only when it is reset.  So the size of the executor's context is
 * near to the most that it ever had.  Hash tables that go through several batches
 * know what their largest was, and that is added.  What is not in that context,
 * as the portal's own, is not seen.
 *
 * A parallel worker adds what it had itself to its leader's place when its own
 * executor ends, which is before the leader's run does.  It does the same for
 * hash tables in shared memory, of which only the size is left by then.  When
 * workers are launched again, for a rescan, their memory is not added to that of
 * the launch before.  A launch is known to be another one by a worker's number
 * that has been seen already.
 *
 * A query that is charged nothing is not worth counting, unless it has taken
 * more than a trifle.
 *
 * Locking: a spinlock of each backend for what workers add, and one for the sums.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/memory_feedback.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/parallel.h"
#include "compat.h"
#include "executor/executor.h"
#include "executor/hashjoin.h"
#include "nodes/nodeFuncs.h"
#include "memory_feedback.h"
#include "shared.h"
#include "utils/memutils.h"

/* Below this, what a query has that was charged nothing is not counted */
#define TRIFLE_BYTES	(1024 * 1024)

/* A query that took less than its charge by this factor was overestimated */
#define OVERESTIMATED_FACTOR	4

/*
 * How much more memory the hash tables of an aggregation had than they have now.
 */
static int64
given_back_by_agg(const AggState *agg)
{
	int64		now;

	if (agg->hash_metacxt == NULL || agg->hashcontext == NULL)
		return 0;
	now = MemoryContextMemAllocated(agg->hash_metacxt, true) +
		MemoryContextMemAllocated(agg->hashcontext->ecxt_per_tuple_memory, true);
	return Max((int64) agg->hash_mem_peak - now, 0);
}

/*
 * Add what hash tables once had and have given back, and what they share.  The
 * processes of a Parallel Hash share its table, but work at different batches
 * if there are several.
 */
static bool
add_hash_tables(PlanState *planstate, PgAdmAllocated *allocated)
{
	if (IsA(planstate, HashJoinState))
	{
		HashJoinTable table = ((HashJoinState *) planstate)->hj_HashTable;

		if (table == NULL)
			;
		else if (!innerPlanState(planstate)->plan->parallel_aware)
			allocated->own += Max((int64) table->spacePeak - (int64) table->spaceUsed, 0);
		else if (table->nbatch > 1)
			allocated->own += table->spacePeak;
		else
			allocated->shared += table->spacePeak;
	}
	else if (IsA(planstate, AggState))
		allocated->own += given_back_by_agg((AggState *) planstate);
	return planstate_tree_walker(planstate, add_hash_tables, (void *) allocated);
}

/*
 * What the executor has in this process.
 */
static PgAdmAllocated
measure(const QueryDesc *queryDesc, bool closely)
{
	PgAdmAllocated allocated = {0};

	if (queryDesc->estate != NULL)
		allocated.own = MemoryContextMemAllocated(queryDesc->estate->es_query_cxt, true);
	if (queryDesc->planstate != NULL && closely)
		(void) add_hash_tables(queryDesc->planstate, &allocated);
	return allocated;
}

/*
 * The place for the workers of one Gather.  Gathers for which there is no place
 * share the last one.
 */
static PgAdmGatherMemory *
find_gather(PgAdmWorkerMemory *memory, int plan_node_id)
{
	int			i = 0;

	while (i < memory->ngathers && memory->gathers[i].plan_node_id != plan_node_id)
		i++;
	if (i < memory->ngathers)
		return &memory->gathers[i];
	if (i == PGADM_GATHERS_PER_BACKEND)
		return &memory->gathers[i - 1];

	memset(&memory->gathers[i], 0, sizeof(PgAdmGatherMemory));
	memory->gathers[i].plan_node_id = plan_node_id;
	memory->ngathers++;
	return &memory->gathers[i];
}

/*
 * A parallel query of this backend is about to run.
 */
void
pgadm_memory_feedback_expect_workers(void)
{
	PgAdmWorkerMemory *memory = &pgadm_shared->backends[PGADM_MY_PROC_NUMBER].workers;

	SpinLockAcquire(&memory->mutex);
	memory->ngathers = 0;
	SpinLockRelease(&memory->mutex);
}

/*
 * That query's run is over: how much memory did its workers have?
 */
void
pgadm_memory_feedback_hear_workers(PgAdmAllocated *workers)
{
	PgAdmWorkerMemory *memory = &pgadm_shared->backends[PGADM_MY_PROC_NUMBER].workers;
	PgAdmAllocated allocated = {0};

	SpinLockAcquire(&memory->mutex);
	for (int i = 0; i < memory->ngathers; i++)
	{
		PgAdmGatherMemory *gather = &memory->gathers[i];

		allocated.own += Max(gather->this_launch, gather->most);
		allocated.shared += gather->shared;
	}
	SpinLockRelease(&memory->mutex);

	/* The query may have been run before. */
	workers->own = Max(workers->own, allocated.own);
	workers->shared = Max(workers->shared, allocated.shared);
}

/*
 * In a parallel worker: its executor is about to end.
 */
void
pgadm_memory_feedback_tell_leader(const QueryDesc *queryDesc)
{
	uint64		me = UINT64CONST(1) << (ParallelWorkerNumber % 64);
	PgAdmAllocated allocated;
	PgAdmWorkerMemory *memory;
	PgAdmGatherMemory *gather;

	if (pgadm_shared == NULL || MyProc->lockGroupLeader == NULL)
		return;
	allocated = measure(queryDesc, true);
	memory = &pgadm_shared->backends[PGADM_PROC_NUMBER(MyProc->lockGroupLeader)].workers;

	SpinLockAcquire(&memory->mutex);
	gather = find_gather(memory, queryDesc->plannedstmt->planTree->plan_node_id);
	if (gather->seen & me)
	{
		gather->most = Max(gather->most, gather->this_launch);
		gather->this_launch = 0;
		gather->seen = 0;
	}
	gather->seen |= me;
	gather->this_launch += allocated.own;
	gather->shared = Max(gather->shared, allocated.shared);
	SpinLockRelease(&memory->mutex);
}

static void
keep_worst(PgAdmMisestimate *worst, int64 error, uint64 query_id,
		   int64 charged, int64 allocated)
{
	if (error <= worst->error)
		return;

	worst->error = error;
	worst->query_id = query_id;
	worst->charged = charged;
	worst->allocated = allocated;
}

static void
count(uint64 query_id, int64 charged, int64 allocated)
{
	PgAdmMemoryStats *stats = &pgadm_shared->memory_stats;

	SpinLockAcquire(&stats->mutex);
	stats->queries++;
	stats->charged += charged;
	stats->allocated += allocated;
	if (allocated > charged)
	{
		stats->underestimated++;
		stats->missing += allocated - charged;
	}
	else if (charged / OVERESTIMATED_FACTOR > allocated)
		stats->overestimated++;
	keep_worst(&stats->worst_under, allocated - charged, query_id, charged, allocated);
	keep_worst(&stats->worst_over, charged - allocated, query_id, charged, allocated);
	SpinLockRelease(&stats->mutex);
}

/*
 * A query's executor is about to end: compare what it and its workers have had
 * with its charge.
 */
void
pgadm_memory_feedback_compare(const QueryDesc *queryDesc, int64 charged,
							  const PgAdmAllocated *workers)
{
	PgAdmAllocated allocated = measure(queryDesc, charged > 0);
	int64		sum = allocated.own + workers->own +
		Max(allocated.shared, workers->shared);

	if (charged > 0 || sum >= TRIFLE_BYTES)
		count(queryDesc->plannedstmt->queryId, charged, sum);
}

PgAdmMemoryStats
pgadm_memory_feedback_get(void)
{
	PgAdmMemoryStats *stats = &pgadm_shared->memory_stats;
	PgAdmMemoryStats copy;

	SpinLockAcquire(&stats->mutex);
	copy = *stats;
	SpinLockRelease(&stats->mutex);

	return copy;
}

void
pgadm_memory_feedback_reset(void)
{
	PgAdmMemoryStats *stats = &pgadm_shared->memory_stats;

	SpinLockAcquire(&stats->mutex);
	memset((char *) stats + offsetof(PgAdmMemoryStats, queries), 0,
		   sizeof(PgAdmMemoryStats) - offsetof(PgAdmMemoryStats, queries));
	SpinLockRelease(&stats->mutex);
}
