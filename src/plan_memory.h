/*-------------------------------------------------------------------------
 *
 * plan_memory.h
 *		What a plan can take: PlannedStmt -> workers and memory.
 *
 * Pure: reads the plan and its arguments, nothing else, and changes nothing.
 * See plan_memory.c for what is charged and why.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/plan_memory.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGADM_PLAN_MEMORY_H
#define PGADM_PLAN_MEMORY_H

#include "nodes/plannodes.h"

/* The least work_mem that an operator can be given, as for the setting. */
#define PGADM_MIN_WORK_MEM_KB	64

/* The most that a plan is said to need, so that sums over queries are right. */
#define PGADM_PLAN_MAX_MEMORY	(INT64CONST(1) << 48)

/* The settings that the need of a plan depends on. */
typedef struct PgAdmPlanParams
{
	int			work_mem_kb;	/* work_mem */
	double		hash_mem_multiplier;	/* hash_mem_multiplier */
	bool		leader_participates;	/* parallel_leader_participation */
	int			max_workers;	/* that can be launched, whatever is planned */
	double		seq_page_cost;	/* seq_page_cost; <= 0: unknown.  Used only to
								 * read the number of pages of a bitmap scan
								 * out of its cost */
} PgAdmPlanParams;

/* The need of a query. */
typedef struct PgAdmPlanNeed
{
	int			workers;		/* 1 + parallel ones, planned and possible */
	int64		memory;			/* bytes; 0: no operator keeps tuples */
	double		plan_cost;		/* the planner's total cost */
} PgAdmPlanNeed;

/* What made an operator's figure. */
typedef enum PgAdmPlanBasis
{
	PGADM_PLAN_BY_ROWS,			/* its estimated rows fit its limit */
	PGADM_PLAN_AT_LIMIT,		/* it gets as much as its limit allows */
	PGADM_PLAN_UNLIMITED,		/* by rows; the executor sets no limit, so that
								 * a lower work_mem makes no difference */
} PgAdmPlanBasis;

/* One operator that keeps tuples. */
typedef struct PgAdmPlanOperator
{
	const char *name;			/* as EXPLAIN names it */
	const char *why;			/* what it keeps */
	int			plan_node_id;	/* of the plan node, or of the subplan's whose
								 * rows are kept; -1: the executor's own
								 * state */
	int			processes;		/* that keep it; 1 for what they share */
	PgAdmPlanBasis basis;
	int64		memory;			/* bytes, all processes together */
} PgAdmPlanOperator;

/* The biggest operators, biggest first, in an array that the caller owns. */
typedef struct PgAdmPlanOperators
{
	PgAdmPlanOperator *items;
	int			capacity;		/* of items */
	int			count;			/* filled in */
} PgAdmPlanOperators;

extern bool pgadm_plan_memory_is_nothing(const PlannedStmt *stmt) pg_attribute_hot;
extern void pgadm_plan_memory_of_plan(const PlannedStmt *stmt,
									  const PgAdmPlanParams *params,
									  PgAdmPlanNeed *cost);
extern void pgadm_plan_memory_list_operators(const PlannedStmt *stmt,
											 const PgAdmPlanParams *params,
											 PgAdmPlanNeed *cost,
											 PgAdmPlanOperators *operators);
extern int	pgadm_plan_memory_fit_work_mem(const PlannedStmt *stmt,
										   const PgAdmPlanParams *params,
										   int64 target, PgAdmPlanNeed *cost);
extern void pgadm_plan_memory_of_maintenance(int64 maintenance_work_mem_kb,
											 int parallel_workers,
											 PgAdmPlanNeed *cost);

#endif							/* PGADM_PLAN_MEMORY_H */
