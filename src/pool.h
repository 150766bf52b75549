/*-------------------------------------------------------------------------
 *
 * pool.h
 *		A pool: its rules, its capacity, what is used of it, and its waiters.
 *
 * Everything here is a plain value that is passed explicitly.  A pool and what
 * is linked into it live in shared memory, where the caller holds the
 * admission lock; in a unit test they live on the stack.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/pool.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGADM_POOL_H
#define PGADM_POOL_H

#include "datatype/timestamp.h"
#include "lib/ilist.h"
#include "policy.h"

/* What a CPU loads at once, which is half of what PostgreSQL pads to */
#define PGADM_CACHE_LINE_SIZE	64

/* Queries of one backend that are kept apart; the rest are summed */
#define PGADM_ENTRIES_PER_BACKEND	5
#define PGADM_REST_ENTRY		(PGADM_ENTRIES_PER_BACKEND - 1)

/*
 * Memory of a suspended query counts as idle after that long.  Most queries
 * end in a moment after their run, so until then it is expected to be free
 * soon.
 */
#define PGADM_IDLE_AFTER_MS	100

/* What the settings say */
typedef struct PgAdmRules
{
	bool		shedding;		/* is the queue bounded, and left on timeout? */
	int			queue_capacity; /* negative: unbounded */
	int			queue_timeout;	/* in ms; 0: unbounded */
} PgAdmRules;

/* Sums over the entries of all backends */
typedef struct PgAdmUsage
{
	int			running;		/* queries admitted and not ended */
	int			workers_used;
	int			workers_lent;
	int			over_budget;	/* queries let pass by mode "observe" only */
	int64		memory_used;
	int64		memory_idle;	/* part of it held by queries that use no CPU */
	int			overdrawn;		/* entries that are, and use a CPU */
} PgAdmUsage;

/*
 * An admitted query, or the sum of several for a backend's last entry.  A query
 * that holds no worker between two runs is suspended.
 */
typedef struct PgAdmEntry
{
	int			count;			/* queries: 0 if free, 1, or more if summed */
	int			workers;		/* held now, or lent */
	uint8		pool;			/* that it is charged to */
	bool		lent;			/* are the workers lent? */
	bool		idle;			/* suspended for long, with memory */
	bool		overdrawn;		/* was given memory that idle queries held */
	int			over_budget;	/* queries let pass by mode "observe" only */
	int64		memory;			/* in bytes */
	double		plan_cost;
	uint64		query_id;
	TimestampTz enqueued_at;	/* 0 if it did not wait */
	TimestampTz admitted_at;
} PgAdmEntry;

/* An entry that has been suspended with memory, linked into its pool */
typedef struct PgAdmSuspended
{
	dlist_node	link;
	int64		since;			/* pgadm_clock_us(); 0: is not linked */
	PgAdmEntry *entry;
} PgAdmSuspended;

/* What the queries of one backend hold */
typedef struct PgAdmHoldings
{
	PgAdmEntry	entries[PGADM_ENTRIES_PER_BACKEND];
	PgAdmSuspended suspended[PGADM_ENTRIES_PER_BACKEND];
} PgAdmHoldings;

/* What a query gives back or takes again; see pgadm_pool_change() */
typedef struct PgAdmChange
{
	int			count;
	int			workers;
	int			over_budget;
	int64		memory;
} PgAdmChange;

typedef enum PgAdmWaitState
{
	PGADM_NOT_WAITING,
	PGADM_WAITING,				/* linked into a pool */
	PGADM_HANDED_OFF,			/* charged and unlinked by another process */
} PgAdmWaitState;

/* A queued query */
typedef struct PgAdmWaiter
{
	dlist_node	link;			/* in its pool while PGADM_WAITING */
	PgAdmWaitState state;
	int			pool;			/* that it waits for */
	bool		priority;		/* in which list is it? */
	bool		may_refuse;		/* may it be refused for overload? */
	bool		resumes;		/* takes the workers of its entry again */
	int			entry;			/* that it resumes, or -1; once admitted, its */
	PgAdmClaim	claim;
	double		plan_cost;
	uint64		query_id;
	TimestampTz enqueued_at;
	int64		head_since;		/* when it became the next in turn, or 0 */
	bool		unresponsive;	/* was notified, but does not come */
} PgAdmWaiter;

/*
 * The first cache line is all that a query needs which is admitted at once.
 */
typedef struct PgAdmPool
{
	PgAdmUsage	usage;
	PgAdmResources capacity;	/* in force */
	int			queued;			/* in both lists */

	PgAdmRules	rules pg_attribute_aligned(PGADM_CACHE_LINE_SIZE);
	dlist_head	priority;		/* may not be refused, so they go first */
	dlist_head	ordinary;
	PgAdmWaiter *notified;		/* the waiter that was woken and has not come */
	int64		notified_at;
	PgAdmWaiter *ordinary_head; /* the first of that list, as last seen */
	int64		ordinary_head_since;
	dlist_head	suspended;		/* whose memory is not idle yet, oldest first */
} pg_attribute_aligned(PGADM_CACHE_LINE_SIZE) PgAdmPool;

extern void pgadm_pool_init(PgAdmPool *pool);
extern PgAdmResources pgadm_pool_room(const PgAdmPool *pool) pg_attribute_hot;
extern int	pgadm_pool_charge(PgAdmPool *pool, PgAdmHoldings *holdings,
							  const PgAdmEntry *query) pg_attribute_hot;
extern void pgadm_pool_change(PgAdmPool *pool, PgAdmHoldings *holdings, int i,
							  const PgAdmChange *change, int64 now_us) pg_attribute_hot;
extern void pgadm_pool_set_lent(PgAdmPool *pool, PgAdmEntry *entry, bool lent);
extern void pgadm_pool_note_idle(PgAdmPool *pool, int64 now_us);
extern void pgadm_pool_account(PgAdmUsage *usage, const PgAdmEntry *entry,
							   int sign) pg_attribute_hot;

#endif							/* PGADM_POOL_H */
