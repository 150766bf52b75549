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
 * The workers that a claim takes of a capacity of that size.  A plan's
 * parallel workers are an upper bound that the executor does with less of, so
 * those beyond the whole capacity are not counted; the operator's word is.
 */
int
pgadm_policy_workers(const PgAdmClaim *claim, int workers_total)
{
	if (claim->fixed_workers)
		return claim->workers;
	return Min(claim->workers, Max(workers_total, 1));
}

/*
 * The memory that a claim takes of a capacity of that size.  Of one that is
 * too small for it, it may take all, or be able to do with that.
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
 * Does the claim fit into that room?
 */
bool
pgadm_policy_fits(const PgAdmClaim *claim, const PgAdmResources *capacity,
				  const PgAdmResources *room)
{
	int64		memory = pgadm_policy_memory(claim, capacity->memory);

	return pgadm_policy_workers(claim, capacity->workers) <= room->workers &&
		(memory == 0 || claim->ignores_memory || memory <= room->memory);
}

/*
 * Could the claim not even fit if nothing were used?  If so, for lack of what.
 */
PgAdmReason
pgadm_policy_never_fits(const PgAdmClaim *claim, const PgAdmResources *capacity)
{
	if (pgadm_policy_memory(claim, capacity->memory) > capacity->memory)
		return PGADM_REASON_MEMORY;
	if (pgadm_policy_workers(claim, capacity->workers) > capacity->workers)
		return PGADM_REASON_WORKERS;
	return PGADM_REASON_NONE;
}

/*
 * The rules.  Each says whether it applies.
 */
static pg_attribute_hot bool
exceeds_memory(const PgAdmPolicyInput *in)
{
	return pgadm_policy_never_fits(&in->claim, &in->capacity) == PGADM_REASON_MEMORY;
}

static pg_attribute_hot bool
exceeds_workers(const PgAdmPolicyInput *in)
{
	return pgadm_policy_never_fits(&in->claim, &in->capacity) == PGADM_REASON_WORKERS;
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
	return pgadm_policy_fits(&in->claim, &in->capacity, &in->room);
}

static bool
must_not_wait(const PgAdmPolicyInput *in)
{
	return !in->may_wait;
}

/* Without any place to wait, a query that may not be refused must run. */
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
 * The full decision, about a query that has just arrived.
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

/*
 * Before planning: would a query be refused for overload, whatever its plan?
 * The claim is the least that any plan has.  If even that is too much, the
 * query shall be told so when it is known what it needs.
 */
PgAdmReason
pgadm_policy_before_planning(const PgAdmPolicyInput *input)
{
	PgAdmReason reason;

	if (pgadm_policy_decide(input, &reason) != PGADM_REJECT ||
		reason == PGADM_REASON_MEMORY || reason == PGADM_REASON_WORKERS)
		return PGADM_REASON_NONE;
	return reason;
}

/*
 * The fast path: does the claim fit, with no waiter and nothing else to be
 * considered?  That is how it is with nearly every query of a server that is
 * not overloaded.  Where this is true pgadm_policy_decide() says PGADM_RUN; the
 * unit tests prove that by enumeration.  "may_be_shed" is whether a breaker or
 * the CPU might refuse the query, which the full decision finds out.
 */
bool
pgadm_policy_runs_at_once(const PgAdmClaim *claim, int free_workers,
						  int queued, bool may_be_shed)
{
	return queued == 0 && !may_be_shed && claim->memory == 0 &&
		!claim->fixed_workers && claim->workers <= free_workers;
}
