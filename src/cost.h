/*-------------------------------------------------------------------------
 *
 * cost.h
 *		What a plan can take: PlannedStmt -> workers and memory.
 *
 * Pure: reads the plan and its arguments, nothing else, and changes nothing.
 * See cost.c for what is charged and why.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/cost.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGADM_COST_H
#define PGADM_COST_H

#include "nodes/plannodes.h"

/* The least work_mem that an operator can be given, as for the setting. */
#define PGADM_COST_MIN_WORK_MEM_KB	64

/* The most that a plan is said to need, so that sums over queries are right. */
#define PGADM_COST_MAX_MEMORY	(INT64CONST(1) << 48)

/* The settings that the need of a plan depends on. */
typedef struct PgAdmCostParams
{
	int			work_mem_kb;	/* work_mem */
	double		hash_mem_multiplier;	/* hash_mem_multiplier */
	bool		leader_participates;	/* parallel_leader_participation */
	double		seq_page_cost;	/* seq_page_cost; <= 0: unknown.  Used only to
								 * read the number of pages of a bitmap scan
								 * out of its cost */
} PgAdmCostParams;

/* The need of a query. */
typedef struct PgAdmQueryCost
{
	int			workers;		/* 1 + planned parallel workers */
	int64		memory;			/* bytes; 0: no operator keeps tuples */
	double		plan_cost;		/* the planner's total cost */
} PgAdmQueryCost;

/* What made an operator's figure. */
typedef enum PgAdmCostBasis
{
	PGADM_COST_BY_ROWS,			/* its estimated rows fit its limit */
	PGADM_COST_AT_LIMIT,		/* it gets as much as its limit allows */
	PGADM_COST_UNLIMITED,		/* by rows; the executor sets no limit, so that
								 * a lower work_mem makes no difference */
} PgAdmCostBasis;

/* One operator that keeps tuples. */
typedef struct PgAdmCostOperator
{
	const char *name;			/* as EXPLAIN names it */
	const char *why;			/* what it keeps */
	int			plan_node_id;	/* of the plan node, or of the subplan's whose
								 * rows are kept; -1: the executor's own
								 * state */
	int			processes;		/* that keep it; 1 for what they share */
	PgAdmCostBasis basis;
	int64		memory;			/* bytes, all processes together */
} PgAdmCostOperator;

/* The biggest operators, biggest first, in an array that the caller owns. */
typedef struct PgAdmCostOperators
{
	PgAdmCostOperator *items;
	int			capacity;		/* of items */
	int			count;			/* filled in */
} PgAdmCostOperators;

extern bool pgadm_cost_is_nothing(const PlannedStmt *stmt) pg_attribute_hot;
extern void pgadm_cost_of_plan(const PlannedStmt *stmt,
							   const PgAdmCostParams *params,
							   PgAdmQueryCost *cost);
extern void pgadm_cost_list_operators(const PlannedStmt *stmt,
									  const PgAdmCostParams *params,
									  PgAdmQueryCost *cost,
									  PgAdmCostOperators *operators);
extern int	pgadm_cost_fit_work_mem(const PlannedStmt *stmt,
									const PgAdmCostParams *params,
									int64 target, PgAdmQueryCost *cost);
extern void pgadm_cost_of_maintenance(int64 maintenance_work_mem_kb,
									  int parallel_workers,
									  PgAdmQueryCost *cost);

#endif							/* PGADM_COST_H */
