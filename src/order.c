/*-------------------------------------------------------------------------
 *
 * order.c
 *		The order in which a pool's waiters are admitted.
 *
 * Handing a freed worker straight to the next waiter would leave it idle
 * until that process is on a CPU, which halves the throughput of short
 * queries.  So a waiter whose turn it is, is only notified; it then competes
 * for the worker with queries that arrive meanwhile, and at most one notified
 * waiter is outstanding at any time.  Once a waiter has been the next in turn
 * for HAND_OFF_MS, the worker is handed to it.
 *
 * A query may pass waiters that need more than is free.  But once the head for a
 * resource, which is the first waiter that lacks it, has been passed for
 * PATIENCE_MS, that resource is saved up for it: nothing of it is given to others,
 * and of the other resource as much is kept as the head needs.  A query that takes
 * nothing of that still passes, so a waiter holds back nothing that it does not
 * need.  Saving up makes sense only if running queries will free enough.  So a
 * waiter that needs memory which idle queries hold may be passed for any time; if
 * that lasts, it is admitted although its memory is not free, see
 * pgadm_order_stuck().
 *
 * Later queries of transactions have priority over those that only begin, so
 * that what is begun gets done.  But when the first of the ordinary waiters has
 * been that for PATIENCE_MS, it is overdue: it goes before those with priority,
 * which includes that what it lacks is saved up for it.  Only those go first that
 * were the head for a resource before this one was the first of its list, else
 * they would have to let one ordinary waiter after the other pass.
 *
 * A waiter that was notified but does not come, because it is stopped or gets
 * no CPU, is unresponsive, and passed over until it looks for itself.  It keeps
 * its place.
 *
 * Pure functions of a pool and a time: no shared memory, lock, latch or setting
 * is used here, so that the order can be tested by table and by simulation.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/order.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "order.h"

/* The state of a look through the lists */
typedef struct Look
{
	int64		now_us;
	PgAdmWaiter *overdue;		/* the ordinary waiter that is, or NULL */
	bool		overdue_seen;	/* has it been looked at? */
	PgAdmResources room;		/* free, and not saved up for a waiter */
	bool		workers_awaited;	/* by a waiter further ahead, that lacks some */
	bool		memory_awaited;
	bool		hand_off;		/* is it due for the waiter that fits? */
} Look;

static bool
older_than(int64 since_us, int64 now_us, int ms)
{
	return since_us != 0 && now_us - since_us >= ms * INT64CONST(1000);
}

/*
 * Put a waiter at the end of its list.
 */
void
pgadm_order_join(PgAdmPool *pool, PgAdmWaiter *waiter)
{
	Assert(waiter->state == PGADM_NOT_WAITING);
	waiter->state = PGADM_WAITING;
	waiter->head_since = 0;
	waiter->unresponsive = false;
	dlist_push_tail(waiter->priority ? &pool->priority : &pool->ordinary,
					&waiter->link);
	pool->queued++;
}

/*
 * Take a waiter out of its list.
 */
void
pgadm_order_leave(PgAdmPool *pool, PgAdmWaiter *waiter)
{
	Assert(waiter->state == PGADM_WAITING);
	dlist_delete(&waiter->link);
	waiter->state = PGADM_NOT_WAITING;
	pool->queued--;
	if (pool->notified == waiter)
		pool->notified = NULL;
	if (pool->ordinary_head == waiter)
		pool->ordinary_head = NULL;
}

/*
 * The memory that a claim has to wait for.
 */
static int64
needed_memory(const PgAdmPool *pool, const PgAdmClaim *claim)
{
	return claim->ignores_memory ? 0 :
		pgadm_policy_memory(claim, pool->capacity.memory);
}

/*
 * The workers that a claim has to wait for.
 */
static int
needed_workers(const PgAdmPool *pool, const PgAdmClaim *claim)
{
	return pgadm_policy_workers(claim, pool->capacity.workers);
}

/*
 * Could the claim be met if every query that is not idle ended?  Not if it is
 * for more workers than there are, of which a waiter need not have heard yet.
 */
static bool
attainable(const PgAdmPool *pool, const PgAdmClaim *claim)
{
	int64		memory = needed_memory(pool, claim);

	return needed_workers(pool, claim) <= pool->capacity.workers &&
		(memory == 0 || memory <= pool->capacity.memory - pool->usage.memory_idle);
}

/*
 * What remains of a resource for others, if so much of it is kept for a waiter.
 */
#define REMAINS(free, need)	((need) <= (free) ? (free) - (need) : Min((free), 0))

/*
 * Save up for a waiter: all that is free of what it lacks, and of what it does
 * not lack as much as it needs.
 */
static void
save_up(const PgAdmPool *pool, const PgAdmWaiter *waiter, PgAdmResources *room)
{
	int			workers = needed_workers(pool, &waiter->claim);
	int64		memory = needed_memory(pool, &waiter->claim);

	room->workers = REMAINS(room->workers, workers);
	if (memory > 0)
		room->memory = REMAINS(room->memory, memory);
}

/*
 * Note a waiter that fits.  Unless another one further ahead waits for something
 * that this one takes, it is the next in turn, and its charge is handed to it if
 * it has been the next for long.
 */
static void
note_fitting(PgAdmPool *pool, PgAdmWaiter *waiter, Look *look)
{
	if (look->workers_awaited ||
		(look->memory_awaited && needed_memory(pool, &waiter->claim) > 0))
		return;

	if (waiter->head_since == 0)
		waiter->head_since = look->now_us;
	look->hand_off = older_than(waiter->head_since, look->now_us,
								PGADM_ORDER_HAND_OFF_MS);
}

/*
 * Note a waiter that does not fit.  The first that lacks a resource is the head
 * for that resource.  When a waiter has become a head too long ago, it is saved
 * up for, even if another one is the head by now.  A waiter that never was a head
 * holds back nothing.
 */
static void
look_at_blocked(PgAdmPool *pool, PgAdmWaiter *waiter, Look *look)
{
	bool		lacks_workers = needed_workers(pool, &waiter->claim) > look->room.workers;
	bool		lacks_memory = needed_memory(pool, &waiter->claim) > Max(look->room.memory, 0);
	bool		is_head = (lacks_workers && !look->workers_awaited) ||
		(lacks_memory && !look->memory_awaited);

	look->workers_awaited |= lacks_workers;
	look->memory_awaited |= lacks_memory;
	if (is_head && waiter->head_since == 0)
		waiter->head_since = look->now_us;
	if (older_than(waiter->head_since, look->now_us, PGADM_ORDER_PATIENCE_MS))
		save_up(pool, waiter, &look->room);
}

/*
 * Is it not this waiter's turn, because it is not there, or has to wait for what
 * idle queries hold?
 */
static bool
is_passed_over(const PgAdmPool *pool, const PgAdmWaiter *waiter)
{
	return waiter->unresponsive || !attainable(pool, &waiter->claim);
}

static PgAdmWaiter *
first_ordinary(PgAdmPool *pool)
{
	dlist_iter	iter;

	dlist_foreach(iter, &pool->ordinary)
	{
		PgAdmWaiter *waiter = dlist_container(PgAdmWaiter, link, iter.cur);

		if (!is_passed_over(pool, waiter))
			return waiter;
	}

	return NULL;
}

/*
 * Find the first of the ordinary waiters that are not passed over, if one has
 * been that for too long.  A waiter that takes the place of one that is passed
 * over inherits the time for which that was the first.  It keeps the place when
 * idle queries go on, so nothing that was saved up becomes free by that.
 */
static PgAdmWaiter *
find_overdue(PgAdmPool *pool, int64 now_us)
{
	PgAdmWaiter *first = pool->ordinary_head;

	if (first == NULL || is_passed_over(pool, first))
		first = first_ordinary(pool);
	if (first == NULL)
		return NULL;

	if (pool->ordinary_head == NULL)
		pool->ordinary_head_since = now_us;
	pool->ordinary_head = first;
	return older_than(pool->ordinary_head_since, now_us,
					  PGADM_ORDER_PATIENCE_MS) ? first : NULL;
}

/*
 * Does the overdue waiter go before this one?
 */
static bool
overdue_goes_before(const PgAdmPool *pool, const PgAdmWaiter *waiter, const Look *look)
{
	return look->overdue != NULL && !look->overdue_seen &&
		attainable(pool, &waiter->claim) &&
		(waiter->head_since == 0 || waiter->head_since >= pool->ordinary_head_since);
}

/*
 * It is the overdue waiter's turn.  Does it fit?  If not, save up for it.
 */
static bool
look_at_overdue(PgAdmPool *pool, Look *look)
{
	PgAdmWaiter *waiter = look->overdue;

	look->overdue_seen = true;
	if (waiter->head_since == 0)
		waiter->head_since = look->now_us;
	if (pgadm_policy_fits(&waiter->claim, &pool->capacity, &look->room))
	{
		look->hand_off = older_than(waiter->head_since, look->now_us,
									PGADM_ORDER_HAND_OFF_MS);
		return true;
	}

	look->workers_awaited |= needed_workers(pool, &waiter->claim) > look->room.workers;
	look->memory_awaited |= needed_memory(pool, &waiter->claim) > Max(look->room.memory, 0);
	save_up(pool, waiter, &look->room);
	return false;
}

/*
 * Look through one list for a waiter that fits.
 */
static PgAdmWaiter *
look_through(PgAdmPool *pool, dlist_head *list, Look *look)
{
	dlist_iter	iter;

	dlist_foreach(iter, list)
	{
		PgAdmWaiter *waiter = dlist_container(PgAdmWaiter, link, iter.cur);

		if (waiter->unresponsive || (look->overdue_seen && waiter == look->overdue))
			continue;
		if (overdue_goes_before(pool, waiter, look) && look_at_overdue(pool, look))
			return look->overdue;
		if (pgadm_policy_fits(&waiter->claim, &pool->capacity, &look->room))
		{
			note_fitting(pool, waiter, look);
			return waiter;
		}
		if (attainable(pool, &waiter->claim))
			look_at_blocked(pool, waiter, look);

		/* Without a worker none fits, so spare us the rest. */
		if (look->workers_awaited && look->room.workers <= 0)
			return NULL;
	}

	return NULL;
}

/*
 * Look through both lists.  If there are others that would go first, an overdue
 * waiter may be the next only because time has passed.
 */
static void
look_through_both(PgAdmPool *pool, Look *look, PgAdmOrder *order)
{
	look->overdue = find_overdue(pool, look->now_us);
	order->next = look_through(pool, &pool->priority, look);
	if (order->next == NULL && look->overdue != NULL && !look->overdue_seen &&
		look_at_overdue(pool, look))
		order->next = look->overdue;
	order->overdue = order->next != NULL && order->next == look->overdue &&
		(!dlist_is_empty(&pool->priority) || order->next != first_ordinary(pool));
	order->priority_room = look->room;
	if (order->next == NULL)
		order->next = look_through(pool, &pool->ordinary, look);
}

/*
 * Find the waiter that may be admitted now, if any, and what arriving queries
 * may take.
 */
void
pgadm_order_look(PgAdmPool *pool, int64 now_us, PgAdmOrder *order)
{
	Look		look = {.now_us = now_us};

	look.room = pgadm_pool_room(pool);
	order->next = NULL;
	order->overdue = false;
	order->priority_room = look.room;
	if (pool->queued > 0)
		look_through_both(pool, &look, order);
	order->room = look.room;
	order->hand_off = look.hand_off;
}

/*
 * A waiter is asked to come.  Only one at a time is.
 */
void
pgadm_order_notify(PgAdmPool *pool, PgAdmWaiter *waiter, int64 now_us)
{
	pool->notified = waiter;
	pool->notified_at = now_us;
}

/*
 * Something may have become free: for which waiter, and how is it to get it?
 * The caller hands off and asks again, until nothing is left to do.
 */
PgAdmTurn
pgadm_order_turn(PgAdmPool *pool, int64 now_us, PgAdmWaiter **waiter)
{
	PgAdmOrder	order;

	if (pool->queued == 0)
		return PGADM_TURN_NONE;
	pgadm_pool_note_idle(pool, now_us);
	if (pool->notified != NULL &&
		older_than(pool->notified_at, now_us, PGADM_ORDER_RESPONSE_MS))
	{
		pool->notified->unresponsive = true;
		pool->notified = NULL;
	}

	pgadm_order_look(pool, now_us, &order);
	*waiter = order.next;
	if (order.next == NULL)
		return PGADM_TURN_NONE;
	if (order.hand_off)
		return PGADM_TURN_HAND_OFF;
	if (pool->notified != NULL)
		return PGADM_TURN_NONE;

	pgadm_order_notify(pool, order.next, now_us);
	return PGADM_TURN_NOTIFY;
}

/*
 * A waiter that was unresponsive has its place again, also at the head.
 */
static void
come_back(PgAdmPool *pool, PgAdmWaiter *waiter)
{
	PgAdmWaiter *first;

	waiter->unresponsive = false;
	first = first_ordinary(pool);
	if (pool->ordinary_head != NULL && first != NULL)
		pool->ordinary_head = first;
}

/*
 * A waiter has come to look for itself.  Is it its turn?  The caller goes on
 * with pgadm_order_turn(), since that may change whose it is.
 */
bool
pgadm_order_answer(PgAdmPool *pool, PgAdmWaiter *waiter, int64 now_us)
{
	PgAdmOrder	order;

	if (pool->notified == waiter)
		pool->notified = NULL;
	if (waiter->unresponsive)
		come_back(pool, waiter);
	pgadm_order_look(pool, now_us, &order);
	return order.next == waiter;
}

/*
 * Of a list's waiters whose memory is not attainable, is this one the first?
 * *found is set to whether the list has such a waiter at all.
 */
static bool
is_first_stuck(const PgAdmPool *pool, const dlist_head *list,
			   const PgAdmWaiter *waiter, bool *found)
{
	dlist_iter	iter;

	dlist_foreach(iter, unconstify(dlist_head *, list))
	{
		const PgAdmWaiter *other = dlist_container(PgAdmWaiter, link, iter.cur);

		*found = !other->unresponsive && !attainable(pool, &other->claim);
		if (*found)
			return other == waiter;
	}
	return false;
}

/*
 * Is a waiter stuck: would its memory not be free even if every query ended that
 * uses a CPU?  The queries that use none may in turn be waiting for this waiter:
 * for the other half of a query across two connections, or because their client
 * wants this answer before it closes its cursor.  So a stuck waiter must not wait
 * for them to end.  The first of the stuck waiters goes ahead, but only one at a
 * time, so that as long as such a query makes progress, no more memory is
 * overdrawn than the largest claim.
 */
PgAdmStuck
pgadm_order_stuck(const PgAdmPool *pool, const PgAdmWaiter *waiter)
{
	bool		found = false;

	if (attainable(pool, &waiter->claim))
		return PGADM_NOT_STUCK;
	if (pool->usage.overdrawn > 0)
		return PGADM_STUCK;
	if (is_first_stuck(pool, &pool->priority, waiter, &found) ||
		(!found && is_first_stuck(pool, &pool->ordinary, waiter, &found)))
		return PGADM_STUCK_FIRST;
	return PGADM_STUCK;
}

/*
 * What a claim lacks of each resource: so much must be given back before there is
 * enough for it, if it is its turn.
 */
PgAdmResources
pgadm_order_lacks(const PgAdmPool *pool, const PgAdmClaim *claim)
{
	PgAdmResources room = pgadm_pool_room(pool);
	int64		memory = needed_memory(pool, claim);
	PgAdmResources lacks = {
		.workers = Max(needed_workers(pool, claim) - room.workers, 0),
		.memory = memory > 0 ? Max(memory - room.memory, 0) : 0,
	};

	return lacks;
}

/*
 * The same in a word.
 */
PgAdmShortage
pgadm_order_shortage(const PgAdmPool *pool, const PgAdmClaim *claim)
{
	PgAdmResources lacks = pgadm_order_lacks(pool, claim);

	if (needed_memory(pool, claim) > pool->capacity.memory - pool->usage.memory_idle &&
		lacks.memory > 0)
		return PGADM_SHORT_OF_IDLE_MEMORY;
	if (lacks.memory > 0)
		return PGADM_SHORT_OF_MEMORY;
	return lacks.workers > 0 ? PGADM_SHORT_OF_WORKERS : PGADM_SHORT_OF_TURN;
}
