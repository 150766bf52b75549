/*-------------------------------------------------------------------------
 *
 * claim.c
 *		What a statement claims of the budget.
 *
 * The need of its plan, unless the operator's word replaces it.
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
#include "cost.h"
#include "miscadmin.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "settings.h"
#include "utility.h"

/*
 * A claim for that cost, under this session's settings.
 */
static void
claim_cost(const PgAdmQueryCost *cost, PgAdmClaim *claim)
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
		claim->memory = (int64) pgadm_query_memory * 1024;
}

void
pgadm_claim_of_plan(const PlannedStmt *stmt, PgAdmClaim *claim)
{
	PgAdmQueryCost cost;

	if (pgadm_cost_is_nothing(stmt))
	{
		memset(&cost, 0, sizeof(cost));
		cost.workers = 1;
	}
	else
	{
		PgAdmCostParams params = {
			.work_mem_kb = work_mem,
			.hash_mem_multiplier = hash_mem_multiplier,
			.leader_participates = parallel_leader_participation,
			.seq_page_cost = seq_page_cost,
		};

		pgadm_cost_of_plan(stmt, &params, &cost);
	}
	claim_cost(&cost, claim);
}

void
pgadm_claim_of_utility(const Node *stmt, PgAdmClaim *claim)
{
	PgAdmQueryCost cost;

	pgadm_cost_of_maintenance(pgadm_utility_uses_memory(stmt) ? maintenance_work_mem : 0,
							  pgadm_utility_workers(stmt), &cost);
	claim_cost(&cost, claim);
}
