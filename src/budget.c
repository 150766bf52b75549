/*-------------------------------------------------------------------------
 *
 * budget.c
 *		What admitted queries hold of the budget.
 *
 * An entry's share of the sums in PgAdmBudget is taken out before the entry
 * changes and put in again afterwards, so that the sums cannot drift.
 *
 * Locking: the caller of every function here holds the admission lock.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/budget.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "budget.h"

/*
 * Add an entry's share to the sums, or subtract it.
 */
static pg_attribute_hot void
account(PgAdmBudget *budget, const PgAdmEntry *entry, int sign)
{
	budget->running += sign * entry->count;
	budget->over_budget += sign * entry->over_budget;
	budget->memory_used += sign * entry->memory;

	if (entry->lent)
		budget->workers_lent += sign * entry->workers;
	else
		budget->workers_used += sign * entry->workers;

	if (entry->lent || entry->workers == 0)
		budget->memory_parked += sign * entry->memory;
}

/*
 * In a build with assertions, check that the sums are those of the entries.
 */
static inline void
check_budget(void)
{
#ifdef PGADM_ASSERTIONS
	PgAdmBudget sums = {0};

	for (int i = 0; i < pgadm_shared->nslots; i++)
	{
		for (int j = 0; j < PGADM_ENTRIES_PER_SLOT; j++)
		{
			const PgAdmEntry *entry = &pgadm_shared->slots[i].entries[j];

			if (entry->count < 0 || entry->workers < 0 || entry->memory < 0 ||
				entry->over_budget < 0)
				elog(PANIC, "more was given back than had been charged");
			account(&sums, entry, 1);
		}
	}
	if (memcmp(&sums, &pgadm_shared->budget, sizeof(PgAdmBudget)) != 0)
		elog(PANIC, "budget does not equal the sum of its entries");
#endif
}

/*
 * The budget as the policy wants to see it.
 */
PgAdmBudgetState
pgadm_budget_state(void)
{
	PgAdmBudgetState state;

	state.workers_total = pgadm_shared->limits.workers_total;
	state.workers_used = pgadm_shared->budget.workers_used;
	state.memory_total = pgadm_shared->limits.memory_total;
	state.memory_used = pgadm_shared->budget.memory_used;
	return state;
}

/*
 * Charge one more query to a backend.  Returns the entry that keeps it.
 */
int
pgadm_budget_charge(PgAdmSlot *slot, const PgAdmEntry *query)
{
	PgAdmEntry *entry;
	int			i = 0;

	while (i < PGADM_REST_ENTRY && slot->entries[i].count > 0)
		i++;
	entry = &slot->entries[i];

	if (entry->count == 0)
		*entry = *query;
	else
	{
		account(&pgadm_shared->budget, entry, -1);
		entry->lent = false;	/* whoever starts a query is not waiting */
		entry->count += query->count;
		entry->workers += query->workers;
		entry->over_budget += query->over_budget;
		entry->memory += query->memory;
	}
	account(&pgadm_shared->budget, entry, 1);
	check_budget();

	return i;
}

/*
 * Change what a backend's query holds.
 */
void
pgadm_budget_change(PgAdmSlot *slot, int entry, const PgAdmChange *change)
{
	PgAdmEntry *e = &slot->entries[entry];

	account(&pgadm_shared->budget, e, -1);
	e->count += change->count;
	e->workers += change->workers;
	e->over_budget += change->over_budget;
	e->memory += change->memory;
	if (e->workers == 0 || change->workers > 0)
		e->lent = false;		/* whoever takes workers is not waiting */
	Assert(e->count >= 0 && e->workers >= 0 && e->memory >= 0);
	account(&pgadm_shared->budget, e, 1);
	check_budget();
}

/*
 * Lend the workers of a backend's query, or take them back.
 */
void
pgadm_budget_set_lent(PgAdmSlot *slot, int entry, bool lent)
{
	PgAdmEntry *e = &slot->entries[entry];

	account(&pgadm_shared->budget, e, -1);
	e->lent = lent;
	account(&pgadm_shared->budget, e, 1);
	check_budget();
}

/*
 * Give back all that a backend holds; it is about to exit.  Returns the
 * number of its queries.
 */
int
pgadm_budget_clear(PgAdmSlot *slot)
{
	int			count = 0;

	for (int i = 0; i < PGADM_ENTRIES_PER_SLOT; i++)
	{
		count += slot->entries[i].count;
		account(&pgadm_shared->budget, &slot->entries[i], -1);
		memset(&slot->entries[i], 0, sizeof(PgAdmEntry));
	}
	check_budget();

	return count;
}
