/*-------------------------------------------------------------------------
 *
 * claim.h
 *		What a statement claims of the budget.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/claim.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGADM_CLAIM_H
#define PGADM_CLAIM_H

#include "plan_memory.h"
#include "policy.h"
#include "workmem.h"

extern void pgadm_claim_before_plan(int64 memory_total, PgAdmClaim *claim);
extern PgAdmWorkmem pgadm_claim_of_plan(const PlannedStmt *stmt,
										int64 memory_total, PgAdmClaim *claim) pg_attribute_hot;
extern PgAdmWorkmem pgadm_claim_shrink(const PlannedStmt *stmt, int64 memory,
									   PgAdmClaim *claim);
extern bool pgadm_claim_can_be_lowered(const PlannedStmt *stmt, int64 memory_total);
extern void pgadm_claim_list_operators(const PlannedStmt *stmt,
									   const PgAdmWorkmem *workmem,
									   PgAdmPlanOperators *operators);
extern PgAdmWorkmem pgadm_claim_of_utility(const Node *stmt, int64 memory_total,
										   PgAdmClaim *claim);

#endif							/* PGADM_CLAIM_H */
