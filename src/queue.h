/*-------------------------------------------------------------------------
 *
 * queue.h
 *		The admission queue: who waits, who is next.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/queue.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGADM_QUEUE_H
#define PGADM_QUEUE_H

#include "budget.h"

/* A query, or a suspended one's next run, that asks for admission */
typedef struct PgAdmRequest
{
	PgAdmClaim	claim;
	double		plan_cost;
	uint64		query_id;
	bool		enforce;		/* else it is only observed */
	bool		may_wait;
	bool		may_refuse;		/* for overload, that is */
	bool		ahead;			/* would wait at the head of the queue */
	int			entry;			/* the suspended entry, or -1 */
	int			statements;		/* PGADM_LOAD_STATEMENT_... */
	double		draw;			/* uniform random number of [0, 1) */
	double		min_wait_ratio; /* the session's, for load shedding */
	double		max_wait_ratio;
} PgAdmRequest;

/* A breaker that refused a query */
typedef struct PgAdmTripped
{
	char		name[NAMEDATALEN];
	double		value;
	double		threshold;
	char		reason[PGADM_BREAKER_REASON];
} PgAdmTripped;

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
	PgAdmLimits limits;
	PgAdmLoadValue service_rate;
	int			ntripped;		/* only if refused by breakers */
	const PgAdmTripped *tripped;	/* until the next outcome */
} PgAdmOutcome;

extern void pgadm_queue_join(pid_t pid, Oid role, Oid database);
extern void pgadm_queue_submit(const PgAdmRequest *request,
							   PgAdmOutcome *outcome) pg_attribute_hot;
extern void pgadm_queue_preview(const PgAdmRequest *request,
								PgAdmOutcome *outcome);
extern void pgadm_queue_poll(bool enforce, bool timed_out,
							 PgAdmOutcome *outcome);
extern void pgadm_queue_force(PgAdmOutcome *outcome);
extern void pgadm_queue_cancel(void);
extern void pgadm_queue_give_back(int entry, const PgAdmChange *change) pg_attribute_hot;
extern bool pgadm_queue_has_lent(int entry) pg_attribute_hot;
extern void pgadm_queue_exit(void);

extern bool pgadm_queue_may_refuse(const PgAdmRequest *request) pg_attribute_hot;
extern bool pgadm_queue_refuses(const PgAdmRequest *request,
								PgAdmOutcome *outcome);
extern bool pgadm_queue_drops_connection(const char *role, const char *address,
										 bool enforce, PgAdmOutcome *outcome);
extern PgAdmMode pgadm_queue_mode(void) pg_attribute_hot;
extern int	pgadm_queue_timeout_of_server(void);
extern int64 pgadm_queue_memory_total(void) pg_attribute_hot;

extern void pgadm_queue_publish(const PgAdmLimits *limits);
extern bool pgadm_queue_watch(void);
extern void pgadm_queue_lend(int slot, bool lend);
extern void pgadm_queue_rescue(void);

#endif							/* PGADM_QUEUE_H */
