/*-------------------------------------------------------------------------
 *
 * policy.h
 *		The decision: run, queue or refuse a query.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/policy.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGADM_POLICY_H
#define PGADM_POLICY_H

typedef enum PgAdmVerdict
{
	PGADM_RUN,					/* take the charge and run */
	PGADM_FORCE,				/* likewise, although it is over the budget */
	PGADM_QUEUE,				/* wait until the charge fits */
	PGADM_REJECT,				/* refuse, see the reason */
} PgAdmVerdict;

/* Why a query is refused; the names are part of the errors' text */
typedef enum PgAdmReason
{
	PGADM_REASON_NONE,
	PGADM_REASON_QUEUE_FULL,
	PGADM_REASON_QUEUE_TIMEOUT,
	PGADM_REASON_CPU_OVERLOAD,
	PGADM_REASON_BREAKER,
	PGADM_REASON_CONNECTION,
	PGADM_REASON_MEMORY,
	PGADM_REASON_WORKERS,
} PgAdmReason;

#define PGADM_NREASONS	(PGADM_REASON_WORKERS + 1)

/* What a query asks the budget for */
typedef struct PgAdmClaim
{
	int			workers;		/* 1 + planned parallel workers */
	int64		memory;			/* in bytes */
	int64		least_memory;	/* of a smaller budget; 0: it needs it all */
	bool		fixed_workers;	/* never clamped to the worker budget */
	bool		alone;			/* takes all memory if it needs more than all */
	bool		ignores_memory; /* holds a charge, so never waits for memory */
} PgAdmClaim;

/* The budget as it stands */
typedef struct PgAdmBudgetState
{
	int			workers_total;
	int			workers_used;
	int64		memory_total;
	int64		memory_used;
} PgAdmBudgetState;

/* Everything that a decision depends on */
typedef struct PgAdmPolicyInput
{
	PgAdmClaim	claim;
	PgAdmBudgetState budget;
	int			queued;
	int			queue_capacity; /* negative: unbounded */
	bool		breaker_tripped;	/* one that refuses such statements */
	bool		shed;			/* the draw against the CPU wait ratio */
	bool		reserved;		/* free budget is saved up for the queue's head */
	bool		may_wait;
	bool		may_refuse;		/* for overload, that is */
} PgAdmPolicyInput;

extern int	pgadm_policy_workers(const PgAdmClaim *claim, int workers_total) pg_attribute_hot;
extern int64 pgadm_policy_memory(const PgAdmClaim *claim, int64 memory_total) pg_attribute_hot;
extern bool pgadm_policy_fits(const PgAdmClaim *claim,
							  const PgAdmBudgetState *budget) pg_attribute_hot;
extern PgAdmReason pgadm_policy_never_fits(const PgAdmClaim *claim,
										   const PgAdmBudgetState *budget) pg_attribute_hot;
extern PgAdmVerdict pgadm_policy_decide(const PgAdmPolicyInput *input,
										PgAdmReason *reason) pg_attribute_hot;

#endif							/* PGADM_POLICY_H */
