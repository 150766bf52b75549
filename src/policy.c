/*-------------------------------------------------------------------------
 *
 * policy.c
 *		The decision: run, queue or refuse a query.
 *
 * Pure functions of their arguments: no shared memory, lock or setting is
 * read here, so that every decision can be tested by table, and so that they
 * may be called while the admission lock is held.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/policy.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "policy.h"

/*
 * The workers that a claim takes from a budget of that size.  A plan's
 * parallel workers are an upper bound that the executor does with less of, so
 * those beyond the whole budget are not counted; the operator's word is.
 */
int
pgadm_policy_workers(const PgAdmClaim *claim, int workers_total)
{
	if (claim->fixed_workers)
		return claim->workers;
	return Min(claim->workers, Max(workers_total, 1));
}

/*
 * The memory that a claim takes from a budget of that size.  Of a budget that
 * is too small for it, it may take all, or be able to do with that.
 */
int64
pgadm_policy_memory(const PgAdmClaim *claim, int64 memory_total)
{
	if (claim->memory <= memory_total)
		return claim->memory;
	if (claim->alone)
		return memory_total;
	if (claim->least_memory > 0)
		return Max(claim->least_memory, memory_total);
	return claim->memory;
}

/*
 * Does the claim fit into what is free now?
 */
bool
pgadm_policy_fits(const PgAdmClaim *claim, const PgAdmBudgetState *budget)
{
	int64		memory = pgadm_policy_memory(claim, budget->memory_total);

	/* Without adding to what is used, which can be any number. */
	if (pgadm_policy_workers(claim, budget->workers_total) >
		budget->workers_total - budget->workers_used)
		return false;

	return memory == 0 || claim->ignores_memory ||
		budget->memory_used + memory <= budget->memory_total;
}

/*
 * Could the claim not even fit into an empty budget?  If so, which part.
 */
PgAdmReason
pgadm_policy_never_fits(const PgAdmClaim *claim, const PgAdmBudgetState *budget)
{
	if (pgadm_policy_memory(claim, budget->memory_total) > budget->memory_total)
		return PGADM_REASON_MEMORY;
	if (pgadm_policy_workers(claim, budget->workers_total) > budget->workers_total)
		return PGADM_REASON_WORKERS;
	return PGADM_REASON_NONE;
}

/*
 * The rules.  Each says whether it applies.
 */
static pg_attribute_hot bool
exceeds_memory(const PgAdmPolicyInput *in)
{
	return pgadm_policy_never_fits(&in->claim, &in->budget) == PGADM_REASON_MEMORY;
}

static pg_attribute_hot bool
exceeds_workers(const PgAdmPolicyInput *in)
{
	return pgadm_policy_never_fits(&in->claim, &in->budget) == PGADM_REASON_WORKERS;
}

static pg_attribute_hot bool
breaker_tripped(const PgAdmPolicyInput *in)
{
	return in->may_refuse && in->breaker_tripped;
}

static pg_attribute_hot bool
is_shed(const PgAdmPolicyInput *in)
{
	return in->may_refuse && in->shed;
}

static pg_attribute_hot bool
fits_now(const PgAdmPolicyInput *in)
{
	return !in->reserved && pgadm_policy_fits(&in->claim, &in->budget);
}

static bool
must_not_wait(const PgAdmPolicyInput *in)
{
	return !in->may_wait;
}

/* Without any place to wait, who may not be refused either must run. */
static bool
nowhere_to_wait(const PgAdmPolicyInput *in)
{
	return in->queue_capacity == 0 && !in->may_refuse;
}

static bool
queue_is_full(const PgAdmPolicyInput *in)
{
	return in->may_refuse && in->queue_capacity >= 0 &&
		in->queued >= in->queue_capacity;
}

static bool
always(const PgAdmPolicyInput *in)
{
	return true;
}

/* The first rule that applies decides. */
static const struct
{
	bool		(*applies) (const PgAdmPolicyInput *in);
	PgAdmVerdict verdict;
	PgAdmReason reason;
}			rules[] =
{
	{exceeds_memory, PGADM_REJECT, PGADM_REASON_MEMORY},
	{exceeds_workers, PGADM_REJECT, PGADM_REASON_WORKERS},
	{breaker_tripped, PGADM_REJECT, PGADM_REASON_BREAKER},
	{is_shed, PGADM_REJECT, PGADM_REASON_CPU_OVERLOAD},
	{fits_now, PGADM_RUN, PGADM_REASON_NONE},
	{must_not_wait, PGADM_FORCE, PGADM_REASON_NONE},
	{nowhere_to_wait, PGADM_FORCE, PGADM_REASON_NONE},
	{queue_is_full, PGADM_REJECT, PGADM_REASON_QUEUE_FULL},
	{always, PGADM_QUEUE, PGADM_REASON_NONE},
};

/*
 * Decide about a query that has just arrived.
 */
PgAdmVerdict
pgadm_policy_decide(const PgAdmPolicyInput *input, PgAdmReason *reason)
{
	int			i = 0;

	while (!rules[i].applies(input))
		i++;

	*reason = rules[i].reason;
	return rules[i].verdict;
}
