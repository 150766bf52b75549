/*-------------------------------------------------------------------------
 *
 * gather.c
 *		How many parallel workers has a query really launched?
 *
 * A query plans workers, but launches only as many as are left of what all
 * sessions share, or none at all if it is run with a row limit.  PostgreSQL
 * calls no hook then, so the nodes of such a plan are watched: a Gather has
 * launched its workers before the leader runs any node below it, and, if the
 * leader runs none, when it returns its first row.  Each node gets another
 * function in the place of its own, which puts that back before it calls it.
 *
 * Only the first launch of each Gather is looked at.  One that is repeated may
 * launch more workers later, if they are free then, but they are not charged.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/gather.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/executor.h"
#include "gather.h"
#include "lib/ilist.h"
#include "nodes/execnodes.h"
#include "nodes/nodeFuncs.h"

/* A watched node, and what it is called by if it is not */
typedef struct WatchedNode
{
	PlanState  *node;
	PlanState  *gather;			/* that it is, or that it is below */
	ExecProcNodeMtd own;
} WatchedNode;

/* The watched nodes of a query, allocated where its executor's state is */
typedef struct WatchedQuery
{
	dlist_node	link;
	MemoryContextCallback callback;
	QueryDesc  *queryDesc;
	EState	   *estate;
	PgAdmGatherReport report;
	int			workers;		/* launched, and planned by other Gathers */
	List	   *nodes;			/* of WatchedNode */
} WatchedQuery;

static dlist_head watched = DLIST_STATIC_INIT(watched);

/* While the nodes of a plan are collected */
typedef struct CollectContext
{
	WatchedQuery *query;
	PlanState  *gather;			/* around the node, or NULL */
} CollectContext;

static TupleTableSlot *run_gather(PlanState *node);
static TupleTableSlot *run_below(PlanState *node);

static int
planned_workers(const PlanState *gather)
{
	return IsA(gather, GatherState) ?
		((const Gather *) gather->plan)->num_workers :
		((const GatherMerge *) gather->plan)->num_workers;
}

static int
launched_workers(const PlanState *gather)
{
	return IsA(gather, GatherState) ?
		((const GatherState *) gather)->nworkers_launched :
		((const GatherMergeState *) gather)->nworkers_launched;
}

static WatchedNode *
find_node(const PlanState *node, WatchedQuery **query)
{
	dlist_iter	iter;
	ListCell   *lc;

	dlist_foreach(iter, &watched)
	{
		*query = dlist_container(WatchedQuery, link, iter.cur);
		if ((*query)->estate != node->state)
			continue;
		foreach(lc, (*query)->nodes)
		{
			WatchedNode *candidate = lfirst(lc);

			if (candidate->node == node)
				return candidate;
		}
	}
	elog(ERROR, "pg_admission does not know a plan node that it watches");
}

/*
 * Does a node still have the function that it was given?  A hash join gets
 * another one when it becomes parallel.
 */
static bool
is_watched(const PlanState *node)
{
	return node->ExecProcNodeReal == run_gather ||
		node->ExecProcNodeReal == run_below;
}

/*
 * A Gather has launched its workers: its nodes need not be watched any more.
 */
static void
gather_has_launched(WatchedQuery *query, PlanState *gather)
{
	ListCell   *lc;

	foreach(lc, query->nodes)
	{
		WatchedNode *watch = lfirst(lc);

		if (watch->gather == gather && is_watched(watch->node))
			ExecSetExecProcNode(watch->node, watch->own);
	}

	query->workers -= planned_workers(gather) - launched_workers(gather);
	query->report(query->queryDesc, query->workers);
}

/*
 * What a Gather does until it has returned once.
 */
static TupleTableSlot *
run_gather(PlanState *node)
{
	WatchedQuery *query;
	WatchedNode *watch = find_node(node, &query);
	TupleTableSlot *slot = watch->own(node);

	if (is_watched(node))
		gather_has_launched(query, node);
	return slot;
}

/*
 * What a node below it does when the leader runs it.
 */
static TupleTableSlot *
run_below(PlanState *node)
{
	WatchedQuery *query;
	WatchedNode *watch = find_node(node, &query);

	gather_has_launched(query, watch->gather);
	return watch->own(node);
}

static void
watch_node(WatchedQuery *query, PlanState *node, PlanState *gather)
{
	WatchedNode *watch = palloc(sizeof(WatchedNode));

	watch->node = node;
	watch->gather = gather;
	watch->own = node->ExecProcNodeReal;
	query->nodes = lappend(query->nodes, watch);
	ExecSetExecProcNode(node, node == gather ? run_gather : run_below);
}

static bool
collect_nodes(PlanState *node, void *arg)
{
	CollectContext context = *(CollectContext *) arg;

	if (context.gather == NULL && (IsA(node, GatherState) || IsA(node, GatherMergeState)))
	{
		context.gather = node;
		context.query->workers += planned_workers(node);
	}
	if (context.gather != NULL && node->ExecProcNodeReal != NULL)
		watch_node(context.query, node, context.gather);
	return planstate_tree_walker(node, collect_nodes, (void *) &context);
}

static void
forget_query(void *arg)
{
	dlist_delete(&((WatchedQuery *) arg)->link);
}

/*
 * A parallel plan is about to be run: have its workers reported when some are
 * launched.
 */
void
pgadm_gather_watch(QueryDesc *queryDesc, PgAdmGatherReport report)
{
	MemoryContext old = MemoryContextSwitchTo(queryDesc->estate->es_query_cxt);
	WatchedQuery *query = palloc0(sizeof(WatchedQuery));
	CollectContext context = {.query = query};

	query->queryDesc = queryDesc;
	query->estate = queryDesc->estate;
	query->report = report;
	query->callback.func = forget_query;
	query->callback.arg = query;
	dlist_push_head(&watched, &query->link);
	MemoryContextRegisterResetCallback(queryDesc->estate->es_query_cxt,
									   &query->callback);

	(void) collect_nodes(queryDesc->planstate, &context);
	MemoryContextSwitchTo(old);
}
