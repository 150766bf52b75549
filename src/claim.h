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

#include "nodes/plannodes.h"
#include "policy.h"

extern void pgadm_claim_of_plan(const PlannedStmt *stmt, PgAdmClaim *claim) pg_attribute_hot;
extern void pgadm_claim_of_utility(const Node *stmt, PgAdmClaim *claim);

#endif							/* PGADM_CLAIM_H */
