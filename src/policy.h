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
	PGADM_FORCE,				/* likewise, although it does not fit */
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

/* What a query asks for */
typedef struct PgAdmClaim
{
	int			workers;		/* 1 + planned parallel workers */
	int64		memory;			/* in bytes */
	int64		least_memory;	/* of a smaller capacity; 0: it needs it all */
	bool		fixed_workers;	/* never clamped to the capacity */
	bool		alone;			/* takes all memory if it needs more than all */
	bool		ignores_memory; /* holds memory, so never waits for more */
} PgAdmClaim;

/* An amount of both resources: a capacity, or what is free of one */
typedef struct PgAdmResources
{
	int			workers;
	int64		memory;			/* in bytes */
} PgAdmResources;

/* Everything that a decision depends on */
typedef struct PgAdmPolicyInput
{
	PgAdmClaim	claim;
	PgAdmResources capacity;
	PgAdmResources room;		/* free and not saved up for a waiter; negative
								 * if more is used than there is */
	int			queued;
	int			queue_capacity; /* negative: unbounded */
	bool		breaker_tripped;	/* one that refuses such statements */
	bool		shed;			/* the draw against the CPU wait ratio */
	bool		may_wait;
	bool		may_refuse;		/* for overload, that is */
} PgAdmPolicyInput;

/* What a claim takes of a capacity, and whether it does fit, or could ever */
extern int	pgadm_policy_workers(const PgAdmClaim *claim, int workers_total) pg_attribute_hot;
extern int64 pgadm_policy_memory(const PgAdmClaim *claim, int64 memory_total) pg_attribute_hot;
extern bool pgadm_policy_fits(const PgAdmClaim *claim,
							  const PgAdmResources *capacity,
							  const PgAdmResources *room) pg_attribute_hot;
extern PgAdmReason pgadm_policy_never_fits(const PgAdmClaim *claim,
										   const PgAdmResources *capacity) pg_attribute_hot;

/* The three questions */
extern PgAdmReason pgadm_policy_before_planning(const PgAdmPolicyInput *input);
extern bool pgadm_policy_runs_at_once(const PgAdmClaim *claim,
									  int free_workers, int queued,
									  bool may_be_shed) pg_attribute_hot;
extern PgAdmVerdict pgadm_policy_decide(const PgAdmPolicyInput *input,
										PgAdmReason *reason) pg_attribute_hot;

#endif							/* PGADM_POLICY_H */
