/*-------------------------------------------------------------------------
 *
 * order.h
 *		The order in which a pool's waiters are admitted.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/order.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGADM_ORDER_H
#define PGADM_ORDER_H

#include "pool.h"

/*
 * A waiter that was only notified gets what is free when it comes.  One that
 * has been the next in turn for this long is handed its charge.
 */
#define PGADM_ORDER_HAND_OFF_MS	5

/*
 * A waiter may be passed by others for this long; then what it lacks is saved
 * up for it.
 */
#define PGADM_ORDER_PATIENCE_MS	1000

/* A notified waiter that has not come for this long is unresponsive */
#define PGADM_ORDER_RESPONSE_MS	1000

/* How a waiter is to be admitted */
typedef enum PgAdmTurn
{
	PGADM_TURN_NONE,			/* no waiter fits, or one has been notified */
	PGADM_TURN_NOTIFY,			/* let the waiter come and look for itself */
	PGADM_TURN_HAND_OFF,		/* charge it on its behalf */
} PgAdmTurn;

/* The result of a look at a pool's waiters */
typedef struct PgAdmOrder
{
	PgAdmWaiter *next;			/* may be admitted now; or NULL */
	bool		hand_off;		/* is its hand-off due? */
	bool		overdue;		/* it is next only because time has passed */
	PgAdmResources room;		/* what is not saved up, for ordinary arrivals */
	PgAdmResources priority_room;	/* and for those with priority */
} PgAdmOrder;

/* Does a waiter wait for memory that only idle queries could give back? */
typedef enum PgAdmStuck
{
	PGADM_NOT_STUCK,
	PGADM_STUCK,				/* but not its turn to go ahead all the same */
	PGADM_STUCK_FIRST,
} PgAdmStuck;

/* What a waiter waits for */
typedef enum PgAdmShortage
{
	PGADM_SHORT_OF_TURN,		/* of nothing: others are before it, or what is
								 * free is saved up */
	PGADM_SHORT_OF_WORKERS,
	PGADM_SHORT_OF_MEMORY,		/* and maybe of workers, which come back sooner */
	PGADM_SHORT_OF_IDLE_MEMORY, /* likewise, which only idle queries could give
								 * back */
} PgAdmShortage;

#define PGADM_NSHORTAGES	(PGADM_SHORT_OF_IDLE_MEMORY + 1)

extern void pgadm_order_join(PgAdmPool *pool, PgAdmWaiter *waiter);
extern void pgadm_order_leave(PgAdmPool *pool, PgAdmWaiter *waiter);
extern void pgadm_order_look(PgAdmPool *pool, int64 now_us, PgAdmOrder *order);
extern PgAdmTurn pgadm_order_turn(PgAdmPool *pool, int64 now_us,
								  PgAdmWaiter **waiter);
extern void pgadm_order_notify(PgAdmPool *pool, PgAdmWaiter *waiter, int64 now_us);
extern bool pgadm_order_answer(PgAdmPool *pool, PgAdmWaiter *waiter, int64 now_us);
extern PgAdmStuck pgadm_order_stuck(const PgAdmPool *pool, const PgAdmWaiter *waiter);
extern PgAdmResources pgadm_order_lacks(const PgAdmPool *pool, const PgAdmClaim *claim);
extern PgAdmShortage pgadm_order_shortage(const PgAdmPool *pool, const PgAdmClaim *claim);

#endif							/* PGADM_ORDER_H */
