/*-------------------------------------------------------------------------
 *
 * claim.c
 *		What a statement claims of the budget.
 *
 * A statement claims what its plan needs, unless a setting says what it is;
 * and no more than a statement may take.  If a claim is lowered, the work_mem
 * is found with which the statement keeps to it.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/claim.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "claim.h"
#include "maintenance.h"
#include "miscadmin.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "plan_memory.h"
#include "settings.h"
#include "utility.h"

/* The least that maintenance_work_mem can be set to */
#define MIN_MAINTENANCE_WORK_MEM_KB	1024

#define KB		INT64CONST(1024)

/*
 * The parallel workers that this session could launch, if no other had any.
 */
static int
possible_workers(void)
{
	return Min(max_parallel_workers, max_worker_processes);
}

static PgAdmPlanParams
session_params(void)
{
	PgAdmPlanParams params = {
		.work_mem_kb = work_mem,
		.hash_mem_multiplier = hash_mem_multiplier,
		.leader_participates = parallel_leader_participation,
		.max_workers = possible_workers(),
		.seq_page_cost = seq_page_cost,
	};

	return params;
}

/*
 * A claim for that need, under this session's settings.
 */
static pg_attribute_hot void
claim_cost(const PgAdmPlanNeed *cost, PgAdmClaim *claim)
{
	memset(claim, 0, sizeof(*claim));
	claim->workers = cost->workers;
	claim->memory = cost->memory;
	claim->alone = (pgadm_oversize == PGADM_OVERSIZE_ALONE);

	if (pgadm_query_workers > 0)
	{
		claim->workers = pgadm_query_workers;
		claim->fixed_workers = true;
	}
	if (pgadm_query_memory > 0)
		claim->memory = pgadm_query_memory * KB;
}

/*
 * The most that a claim may be, in this session and with that budget.
 */
static int64
most_memory(int64 memory_total)
{
	int64		most = PG_INT64_MAX;

	if (pgadm_query_memory_limit > 0)
		most = pgadm_query_memory_limit * KB;
	if (pgadm_oversize == PGADM_OVERSIZE_SHRINK)
		most = Min(most, memory_total);
	return most;
}

/*
 * Lower a claim to the most that it may be, or to the need with the work_mem
 * that was found for that.  A claim that a setting says is not replaced by an
 * estimated need.
 */
static void
lower_claim(PgAdmClaim *claim, int64 most, int64 need)
{
	claim->memory = pgadm_query_memory > 0 ? most : Min(claim->memory, need);
}

/*
 * The work_mem with which a plan needs at most that much, and its need then.
 */
static PgAdmWorkmem
fit_plan(const PlannedStmt *stmt, int64 most, PgAdmPlanNeed *cost)
{
	PgAdmPlanParams params = session_params();
	PgAdmWorkmem workmem = {PGADM_WORKMEM_NONE};
	int			kb = pgadm_plan_memory_fit_work_mem(stmt, &params, most, cost);

	if (kb < work_mem)
	{
		workmem.kind = PGADM_WORKMEM_WORK_MEM;
		workmem.kb = kb;
	}
	return workmem;
}

/*
 * What a query claims whatever its plan is.
 */
void
pgadm_claim_before_plan(int64 memory_total, PgAdmClaim *claim)
{
	PgAdmPlanNeed cost = {.workers = 1};

	claim_cost(&cost, claim);
	claim->memory = Min(claim->memory, most_memory(memory_total));
}

/*
 * What a plan claims of a budget of that size.  Returns the work_mem that its
 * operators get, if the claim is less than what they would need.
 */
PgAdmWorkmem
pgadm_claim_of_plan(const PlannedStmt *stmt, int64 memory_total, PgAdmClaim *claim)
{
	PgAdmWorkmem workmem = {PGADM_WORKMEM_NONE};
	int64		most = most_memory(memory_total);
	PgAdmPlanNeed cost;

	if (pgadm_plan_memory_is_nothing(stmt))
	{
		memset(&cost, 0, sizeof(cost));
		cost.workers = 1;
	}
	else
	{
		PgAdmPlanParams params = session_params();

		pgadm_plan_memory_of_plan(stmt, &params, &cost);
	}
	claim_cost(&cost, claim);

	if (claim->memory > most)
	{
		workmem = fit_plan(stmt, most, &cost);
		lower_claim(claim, most, cost.memory);
	}
	if (claim->memory > 0 && pgadm_oversize == PGADM_OVERSIZE_SHRINK)
	{
		(void) fit_plan(stmt, 0, &cost);
		claim->least_memory = Min(claim->memory, cost.memory);
	}
	return workmem;
}

/*
 * The same plan has been charged less than it claimed, because the budget has
 * become smaller meanwhile.
 */
PgAdmWorkmem
pgadm_claim_shrink(const PlannedStmt *stmt, int64 memory, PgAdmClaim *claim)
{
	PgAdmPlanNeed cost;

	claim->memory = memory;
	return fit_plan(stmt, memory, &cost);
}

/*
 * Could the claim of a plan be lowered so that it fits a budget of that size?  Not
 * if a setting says what it is, nor if the plan cannot do with so little.
 */
bool
pgadm_claim_can_be_lowered(const PlannedStmt *stmt, int64 memory_total)
{
	PgAdmPlanNeed cost;

	if (pgadm_query_memory > 0)
		return false;
	(void) fit_plan(stmt, memory_total, &cost);
	return cost.memory <= memory_total;
}

/*
 * The biggest operators of a plan, under this session's settings and with that
 * work_mem.
 */
void
pgadm_claim_list_operators(const PlannedStmt *stmt, const PgAdmWorkmem *workmem,
						   PgAdmPlanOperators *operators)
{
	PgAdmPlanParams params = session_params();
	PgAdmPlanNeed cost;

	if (workmem->kind == PGADM_WORKMEM_WORK_MEM)
		params.work_mem_kb = workmem->kb;
	pgadm_plan_memory_list_operators(stmt, &params, &cost, operators);
}

/*
 * The same for a utility command.  One that commits inside would lose a
 * lowered setting, so its claim is not lowered.
 */
PgAdmWorkmem
pgadm_claim_of_utility(const Node *stmt, int64 memory_total, PgAdmClaim *claim)
{
	bool		uses_memory = pgadm_utility_uses_memory(stmt);
	int64		most = most_memory(memory_total);
	int			workers = pgadm_utility_workers(stmt);
	int64		memory_kb = uses_memory ? maintenance_work_mem : 0;
	PgAdmWorkmem workmem = {PGADM_WORKMEM_NONE};
	PgAdmPlanNeed cost;

	pgadm_maintenance_lower(stmt, &workers, &memory_kb);
	pgadm_plan_memory_of_maintenance(memory_kb, Min(workers, possible_workers()),
									 &cost);
	claim_cost(&cost, claim);

	if (uses_memory && claim->memory > most && !pgadm_utility_may_commit(stmt))
	{
		int64		kb = Max(most / KB, MIN_MAINTENANCE_WORK_MEM_KB);

		if (kb < maintenance_work_mem)
		{
			workmem.kind = PGADM_WORKMEM_MAINTENANCE;
			workmem.kb = (int) kb;
			cost.memory = kb * KB;
		}
		lower_claim(claim, most, cost.memory);
	}
	return workmem;
}
