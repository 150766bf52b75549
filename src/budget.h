/*-------------------------------------------------------------------------
 *
 * budget.h
 *		What admitted queries hold of the budget.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/budget.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGADM_BUDGET_H
#define PGADM_BUDGET_H

#include "shared.h"

/* What a query gives back or takes again; see pgadm_budget_change() */
typedef struct PgAdmChange
{
	int			count;
	int			workers;
	int			over_budget;
	int64		memory;
} PgAdmChange;

extern PgAdmBudgetState pgadm_budget_state(void) pg_attribute_hot;
extern int	pgadm_budget_charge(PgAdmSlot *slot, const PgAdmEntry *query) pg_attribute_hot;
extern void pgadm_budget_change(PgAdmSlot *slot, int entry,
								const PgAdmChange *change) pg_attribute_hot;
extern void pgadm_budget_set_lent(PgAdmSlot *slot, int entry, bool lent);
extern int	pgadm_budget_clear(PgAdmSlot *slot);

#endif							/* PGADM_BUDGET_H */
