/*-------------------------------------------------------------------------
 *
 * pool.c
 *		A pool: its rules, its capacity, what is used of it, and its waiters.
 *
 * An entry's share of the sums in PgAdmUsage is taken out before the entry
 * changes and put in again afterwards, so that the sums cannot drift.
 *
 * Pure: the pool is an argument.  Of one in shared memory, the caller holds
 * the admission lock.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/pool.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pool.h"

void
pgadm_pool_init(PgAdmPool *pool)
{
	memset(pool, 0, sizeof(*pool));
	dlist_init(&pool->priority);
	dlist_init(&pool->ordinary);
	dlist_init(&pool->suspended);
}

/*
 * What is free; negative if more is used than there is.
 */
PgAdmResources
pgadm_pool_room(const PgAdmPool *pool)
{
	PgAdmResources room = {
		.workers = pool->capacity.workers - pool->usage.workers_used,
		.memory = pool->capacity.memory - pool->usage.memory_used,
	};

	return room;
}

/*
 * Add an entry's share to the sums, or subtract it.
 */
void
pgadm_pool_account(PgAdmUsage *usage, const PgAdmEntry *entry, int sign)
{
	usage->running += sign * entry->count;
	usage->over_budget += sign * entry->over_budget;
	usage->memory_used += sign * entry->memory;

	if (entry->lent)
		usage->workers_lent += sign * entry->workers;
	else
		usage->workers_used += sign * entry->workers;

	if (entry->lent || entry->idle)
		usage->memory_idle += sign * entry->memory;
	else if (entry->overdrawn)
		usage->overdrawn += sign;
}

/*
 * Note that an entry was given memory which was not free.
 */
static void
set_overdrawn(PgAdmPool *pool, PgAdmEntry *entry)
{
	pgadm_pool_account(&pool->usage, entry, -1);
	entry->overdrawn = true;
	pgadm_pool_account(&pool->usage, entry, 1);
}

/*
 * Charge one more query to a backend.  Returns the entry that keeps it.
 */
int
pgadm_pool_charge(PgAdmPool *pool, PgAdmHoldings *holdings, const PgAdmEntry *query)
{
	PgAdmEntry *entry;
	int			i = 0;

	while (i < PGADM_REST_ENTRY && holdings->entries[i].count > 0)
		i++;
	entry = &holdings->entries[i];

	if (entry->count == 0)
	{
		*entry = *query;
		pgadm_pool_account(&pool->usage, entry, 1);
	}
	else
	{
		PgAdmChange more = {
			.count = query->count,
			.workers = query->workers,
			.over_budget = query->over_budget,
			.memory = query->memory,
		};

		pgadm_pool_change(pool, holdings, i, &more, 0);
		if (query->overdrawn)
			set_overdrawn(pool, entry);
	}

	return i;
}

/*
 * An entry that is suspended with memory is linked into its pool, until it runs
 * again, ends, or is idle.  Without a time, since one of several queries has
 * ended, the others have been suspended before, so they are taken to be old.
 */
static void
link_suspended(PgAdmPool *pool, PgAdmEntry *entry, PgAdmSuspended *suspended,
			   int64 now_us)
{
	bool		is_suspended = entry->count > 0 && entry->workers == 0 &&
		entry->memory > 0;

	if (!is_suspended)
	{
		entry->idle = false;
		if (suspended->since != 0)
			dlist_delete(&suspended->link);
		suspended->since = 0;
	}
	else if (!entry->idle && suspended->since == 0)
	{
		suspended->entry = entry;
		suspended->since = Max(now_us, 1);	/* 0 would be not linked */
		dlist_push_tail(&pool->suspended, &suspended->link);
	}
}

/*
 * Change what a backend's query holds.  now_us may be 0 unless the query is
 * suspended by that.
 */
void
pgadm_pool_change(PgAdmPool *pool, PgAdmHoldings *holdings, int i,
				  const PgAdmChange *change, int64 now_us)
{
	PgAdmEntry *entry = &holdings->entries[i];

	pgadm_pool_account(&pool->usage, entry, -1);
	entry->count += change->count;
	entry->workers += change->workers;
	entry->over_budget += change->over_budget;
	entry->memory += change->memory;
	if (entry->workers == 0 || change->workers > 0)
		entry->lent = false;	/* a query that takes workers does not wait */
	if (entry->memory == 0)
		entry->overdrawn = false;
	Assert(entry->count >= 0 && entry->workers >= 0 && entry->memory >= 0);
	link_suspended(pool, entry, &holdings->suspended[i], now_us);
	pgadm_pool_account(&pool->usage, entry, 1);
}

/*
 * Lend the workers of a backend's query, or take them back.
 */
void
pgadm_pool_set_lent(PgAdmPool *pool, PgAdmEntry *entry, bool lent)
{
	pgadm_pool_account(&pool->usage, entry, -1);
	entry->lent = lent;
	pgadm_pool_account(&pool->usage, entry, 1);
}

/*
 * Note which of the suspended queries have been suspended for so long that their
 * memory is idle.  Each becomes idle once, and is then no longer in the list.
 */
void
pgadm_pool_note_idle(PgAdmPool *pool, int64 now_us)
{
	while (!dlist_is_empty(&pool->suspended))
	{
		PgAdmSuspended *oldest = dlist_head_element(PgAdmSuspended, link,
													&pool->suspended);

		if (now_us - oldest->since < PGADM_IDLE_AFTER_MS * INT64CONST(1000))
			break;
		dlist_delete(&oldest->link);
		oldest->since = 0;
		pgadm_pool_account(&pool->usage, oldest->entry, -1);
		oldest->entry->idle = true;
		pgadm_pool_account(&pool->usage, oldest->entry, 1);
	}
}
