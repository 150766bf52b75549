/*-------------------------------------------------------------------------
 *
 * gate.h
 *		The gate: every change of a pool, under the admission lock.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/gate.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGADM_GATE_H
#define PGADM_GATE_H

#include "breakers.h"
#include "order.h"
#include "settings.h"

/* A query, or a suspended one's next run, that asks for admission */
typedef struct PgAdmRequest
{
	PgAdmClaim	claim;
	double		plan_cost;
	uint64		query_id;
	bool		enforce;		/* else it is only observed */
	bool		may_wait;
	bool		may_refuse;		/* for overload, that is */
	bool		priority;		/* would wait in the priority list */
	int			entry;			/* the suspended entry, or -1 */
	int			statements;		/* PGADM_LOAD_STATEMENT_... */
	double		draw;			/* uniform random number of [0, 1) */
	double		min_wait_ratio; /* the session's, for load shedding */
	double		max_wait_ratio;
} PgAdmRequest;

/* What became of it, and for an error the numbers of that moment */
typedef struct PgAdmOutcome
{
	PgAdmVerdict verdict;
	PgAdmReason reason;
	int			entry;			/* that was charged */
	int			workers;		/* charged, or required if refused */
	int64		memory;
	bool		over_budget;	/* let pass by mode "observe" only */
	int			running;
	int			queued;
	int			queue_capacity;
	PgAdmShortage short_of;		/* what a refused query would have waited for */
	PgAdmResources capacity;
	PgAdmLoadValue service_rate;
	bool		is_utility;		/* if refused for its memory */
	bool		can_be_lowered; /* likewise: so that it would fit? */
	int			ntripped;		/* only if refused by breakers */
	const PgAdmTripped *tripped;	/* until the next outcome */
} PgAdmOutcome;

/* What the settings say, and the machine has, to be put in force */
typedef struct PgAdmInForce
{
	TimestampTz loaded_at;		/* when the settings were read */
	bool		by_substitute;	/* not by the sampler */
	bool		enabled;
	bool		has_mode;		/* else it is not known, and stays */
	bool		has_queue_timeout;	/* likewise */
	PgAdmMode	mode;
	PgAdmRules	rules;
	PgAdmResources capacity;
} PgAdmInForce;

/* A query's way through the gate */
extern void pgadm_gate_join(pid_t pid, Oid role, Oid database);
extern void pgadm_gate_submit(const PgAdmRequest *request,
							  PgAdmOutcome *outcome) pg_attribute_hot;
extern void pgadm_gate_preview(const PgAdmRequest *request,
							   PgAdmOutcome *outcome);
extern void pgadm_gate_poll(bool enforce, bool timed_out,
							PgAdmOutcome *outcome);
extern void pgadm_gate_force(PgAdmOutcome *outcome);
extern bool pgadm_gate_unstick(bool was_stuck, PgAdmOutcome *outcome);
extern void pgadm_gate_cancel(void);
extern void pgadm_gate_release(int entry, const PgAdmChange *change) pg_attribute_hot;
extern bool pgadm_gate_has_lent(int entry) pg_attribute_hot;
extern void pgadm_gate_exit(void);

/* What needs no plan */
extern bool pgadm_gate_may_refuse(const PgAdmRequest *request) pg_attribute_hot;
extern bool pgadm_gate_refuses(const PgAdmRequest *request,
							   PgAdmOutcome *outcome);
extern bool pgadm_gate_drops_connection(const char *name, const char *address,
										Oid role, Oid database, bool enforce,
										PgAdmOutcome *outcome);

/* Single words, read without the lock */
extern int	pgadm_gate_queue_timeout(void);
extern int64 pgadm_gate_memory_capacity(void) pg_attribute_hot;

/* For capacity.c */
extern void pgadm_gate_publish(const PgAdmInForce *in_force);

/* For the sampler */
extern bool pgadm_gate_watch(void);
extern void pgadm_gate_lend(int backend, bool lend);
extern void pgadm_gate_rescue(void);

/* For all other files: calls a function while the lock is held */
extern void pgadm_gate_locked(void (*function) (void *arg), void *arg);

#endif							/* PGADM_GATE_H */
