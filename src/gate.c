/*-------------------------------------------------------------------------
 *
 * gate.c
 *		The gate: every change of a pool, under the admission lock.
 *
 * Checking whether a query fits and charging it are one step.  The decision is
 * policy.c's, the order of the waiters order.c's, the sums are pool.c's; this
 * file brings them together with the lock, the counters and the latches.
 *
 * Every change under the lock that could let a waiter in calls dispatch()
 * before the lock is released, so no wake-up can be lost: either no waiter
 * fits, or one was handed its charge, or one that was notified will come and
 * call dispatch() in turn.  A notified waiter that leaves does so as well.  Only
 * a turn that comes because time has passed is found by nothing but the sampler
 * and the waiter itself, which looks again every second.
 *
 * Locking: this is the only file that takes the admission lock; see shared.h
 * for what that protects.  What is done under it takes a few steps for each
 * waiter at most.  Latches are set after it is released.  A backend's number
 * outlives its process, so at worst a latch is set for nothing.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/gate.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "breakers.h"
#include "clock.h"
#include "compat.h"
#include "gate.h"
#include "miscadmin.h"
#include "order.h"
#include "shared.h"
#include "shed.h"
#include "stats.h"
#include "storage/latch.h"
#include "storage/s_lock.h"
#include "utils/timestamp.h"

/* Processes to be woken when the lock has been released */
#define MAX_WAKEUPS		16

/* Looks at the lock, while it is held, before going to sleep for it */
#define LOCK_SPINS		100

typedef struct Wakeups
{
	int			n;
	int			procno[MAX_WAKEUPS];
} Wakeups;

static void check_pools(void);

/*
 * Take the admission lock.  It is free again in less time than it takes to go
 * to sleep and be woken, so do not, unless its holder has been interrupted.
 * Until the lock's state changes it is only read, since an attempt takes the
 * cache line away from the holder.  A process that sleeps may be overtaken.
 */
static pg_attribute_hot void
lock_gate(Wakeups *wakeups)
{
	LWLock	   *lock = &pgadm_shared->lock;
	int			spins = 0;

	wakeups->n = 0;
	while (spins < LOCK_SPINS)
	{
		uint32		state = pgadm_lwlock_state(lock);

		if (LWLockConditionalAcquire(lock, LW_EXCLUSIVE))
			return;
		while (spins++ < LOCK_SPINS && pgadm_lwlock_state(lock) == state)
			SPIN_DELAY();
	}
	LWLockAcquire(lock, LW_EXCLUSIVE);
}

static void
unlock_gate(const Wakeups *wakeups)
{
	check_pools();
	LWLockRelease(&pgadm_shared->lock);
	for (int i = 0; i < wakeups->n; i++)
		SetLatch(&GetPGProcByNumber(wakeups->procno[i])->procLatch);
}

static PgAdmBackend *
my_backend(void)
{
	return &pgadm_shared->backends[PGADM_MY_PROC_NUMBER];
}

static PgAdmBackend *
backend_of(PgAdmWaiter *waiter)
{
	return dlist_container(PgAdmBackend, waiter.link, &waiter->link);
}

static int
number_of(PgAdmWaiter *waiter)
{
	return backend_of(waiter) - pgadm_shared->backends;
}

static PgAdmPool *
pool_at(int i)
{
	return &pgadm_shared->pools[i];
}

#ifdef PGADM_ASSERTIONS

static void
verify(bool holds, const char *what)
{
	if (!holds)
		elog(PANIC, "admission: %s", what);
}

/*
 * Every waiter of a list is linked into the right one, as a waiter.
 */
static int
check_list(dlist_head *list, bool priority)
{
	dlist_iter	iter;
	int			n = 0;

	dlist_foreach(iter, list)
	{
		const PgAdmWaiter *waiter = dlist_container(PgAdmWaiter, link, iter.cur);

		verify(waiter->state == PGADM_WAITING, "a waiter is linked that does not wait");
		verify(waiter->priority == priority, "a waiter is in the wrong list");
		verify(++n <= pgadm_shared->nbackends, "a list has no end");
	}
	return n;
}

/*
 * Add up what the entries say that they hold of a pool.
 */
static PgAdmUsage
sum_of_entries(int pool)
{
	PgAdmUsage	sums = {0};

	for (int i = 0; i < pgadm_shared->nbackends; i++)
	{
		for (int j = 0; j < PGADM_ENTRIES_PER_BACKEND; j++)
		{
			const PgAdmEntry *entry = &pgadm_shared->backends[i].holdings.entries[j];

			verify(entry->count >= 0 && entry->workers >= 0 && entry->memory >= 0 &&
				   entry->over_budget >= 0,
				   "more was given back than had been charged");
			verify(entry->count > 0 ||
				   (entry->workers == 0 && entry->memory == 0 && entry->over_budget == 0),
				   "an entry without a query holds something");
			if (entry->pool == pool)
				pgadm_pool_account(&sums, entry, 1);
		}
	}
	return sums;
}

static void
check_pool(int i)
{
	PgAdmPool  *pool = pool_at(i);
	PgAdmUsage	sums = sum_of_entries(i);
	PgAdmOrder	order;
	int			waiting = 0;

	verify(memcmp(&sums, &pool->usage, sizeof(PgAdmUsage)) == 0,
		   "usage does not equal the sum of the entries");
	for (int j = 0; j < pgadm_shared->nbackends; j++)
	{
		const PgAdmWaiter *waiter = &pgadm_shared->backends[j].waiter;

		waiting += waiter->state == PGADM_WAITING && waiter->pool == i;
	}
	verify(pool->queued == waiting, "the number of waiters is wrong");
	verify(check_list(&pool->priority, true) + check_list(&pool->ordinary, false) == waiting,
		   "a waiter is not linked");
	verify(pool->notified == NULL || pool->notified->state == PGADM_WAITING,
		   "a backend was notified that does not wait");

	if (pool->queued == 0 || pool->notified != NULL)
		return;
	pgadm_order_look(pool, pgadm_clock_us(), &order);
	verify(order.next == NULL || order.overdue, "a wake-up is missing");
}

#endif

/*
 * In a build with assertions, check what must be true whenever the lock is
 * free: the sums are those of the entries, those linked are those that wait,
 * the counters add up, and if a waiter could be admitted, one has been notified.
 */
static void
check_pools(void)
{
#ifdef PGADM_ASSERTIONS
	int			queued = 0;

	for (int i = 0; i < PGADM_NPOOLS; i++)
	{
		check_pool(i);
		queued += pool_at(i)->queued;
	}
	verify(pgadm_stats_get(PGADM_SUBMITTED) ==
		   pgadm_stats_get(PGADM_ADMITTED) + pgadm_stats_get(PGADM_REJECTED) +
		   pgadm_stats_get(PGADM_CANCELLED_WHILE_QUEUED) + queued,
		   "the counters do not add up");
#endif
}

/*
 * Charge what a request claims, to a new entry or to the one it resumes.
 * Returns whether that exceeds the pool's memory, since the request does not
 * wait for memory.
 */
static pg_attribute_hot bool
charge(int pool_number, PgAdmBackend *backend, const PgAdmRequest *request,
	   bool over_budget, bool overdrawn, TimestampTz enqueued_at,
	   TimestampTz now, PgAdmOutcome *outcome)
{
	PgAdmPool  *pool = pool_at(pool_number);
	bool		exceeds;

	/* Forced queries could claim more than can be counted. */
	outcome->workers = Min(pgadm_policy_workers(&request->claim, pool->capacity.workers),
						   PG_INT32_MAX - pool->usage.workers_used -
						   pool->usage.workers_lent);
	outcome->memory = pgadm_policy_memory(&request->claim, pool->capacity.memory);
	outcome->over_budget = over_budget;
	if (request->entry >= 0)
		outcome->memory = 0;	/* it has that already */
	exceeds = request->claim.ignores_memory && outcome->memory > 0 &&
		pool->usage.memory_used + outcome->memory > pool->capacity.memory;

	if (request->entry >= 0)
	{
		PgAdmChange change = {.workers = outcome->workers,.over_budget = over_budget};

		outcome->entry = request->entry;
		pgadm_pool_change(pool, &backend->holdings, request->entry, &change, 0);
	}
	else
	{
		PgAdmEntry	entry = {
			.count = 1,
			.workers = outcome->workers,
			.pool = pool_number,
			.overdrawn = overdrawn,
			.over_budget = over_budget,
			.memory = outcome->memory,
			.plan_cost = request->plan_cost,
			.query_id = request->query_id,
			.enqueued_at = enqueued_at,
			.admitted_at = now,
		};

		outcome->entry = pgadm_pool_charge(pool, &backend->holdings, &entry);
	}
	return exceeds;
}

/* Why a waiter is admitted */
typedef enum Admission
{
	ITS_TURN,
	FORCED,
	FORCED_STUCK,				/* see pgadm_order_stuck() */
} Admission;

/*
 * Admit a waiter.
 */
static void
admit_waiter(PgAdmWaiter *waiter, Admission why, TimestampTz now, PgAdmOutcome *outcome)
{
	PgAdmBackend *backend = backend_of(waiter);
	PgAdmRequest request = {
		.claim = waiter->claim,
		.plan_cost = waiter->plan_cost,
		.query_id = waiter->query_id,
		.entry = waiter->entry,
	};

	pgadm_order_leave(pool_at(waiter->pool), waiter);
	if (charge(waiter->pool, backend, &request, false, why == FORCED_STUCK,
			   waiter->enqueued_at, now, outcome) || why != ITS_TURN)
		pgadm_stats_count(PGADM_FORCED);
	pgadm_stats_admitted(backend->role_stats);

	/* A suspended query ends when it resumes, and is one more from now on. */
	if (waiter->resumes)
		pgadm_stats_count(PGADM_COMPLETED);
	pgadm_stats_waited(backend->role_stats, now - waiter->enqueued_at);
}

/*
 * Admit a waiter on its behalf; it will find out when it looks.
 */
static void
hand_off(PgAdmWaiter *waiter, TimestampTz now)
{
	PgAdmOutcome outcome;

	admit_waiter(waiter, ITS_TURN, now, &outcome);
	waiter->state = PGADM_HANDED_OFF;
	waiter->entry = outcome.entry;
	waiter->claim.workers = outcome.workers;
	waiter->claim.memory = outcome.memory;
}

/*
 * Something of a pool may have become free: let the next in turn have it.  One
 * place is kept for the sampler.  If more waiters are to be woken than there are
 * places, the last of them is only notified, and goes on with the others when
 * it comes.
 */
static void
dispatch(PgAdmPool *pool, Wakeups *wakeups, TimestampTz now)
{
	PgAdmWaiter *waiter;
	PgAdmTurn	turn;

	while (wakeups->n < MAX_WAKEUPS - 1)
	{
		int64		now_us = pgadm_clock_us();

		turn = pgadm_order_turn(pool, now_us, &waiter);
		if (turn == PGADM_TURN_NONE)
			break;
		if (turn == PGADM_TURN_HAND_OFF && wakeups->n == MAX_WAKEUPS - 2)
			pgadm_order_notify(pool, waiter, now_us);
		else if (turn == PGADM_TURN_HAND_OFF)
			hand_off(waiter, now);
		wakeups->procno[wakeups->n++] = number_of(waiter);
	}
}

/*
 * From now on the sampler has to look often.
 */
static void
alert_sampler(Wakeups *wakeups)
{
	PgAdmSamplerState *sampler = &pgadm_shared->sampler;

	if (sampler->pid == 0 || sampler->alerted)
		return;
	sampler->alerted = true;
	wakeups->procno[wakeups->n++] = sampler->procno;
}

/*
 * Are all workers in use?
 */
static bool
is_exhausted(const PgAdmPool *pool)
{
	return pool->usage.workers_used >= pool->capacity.workers;
}

/*
 * Lend the workers of everything that a backend has.
 */
static void
lend_all(PgAdmHoldings *holdings, Wakeups *wakeups, TimestampTz now)
{
	for (int i = 0; i < PGADM_ENTRIES_PER_BACKEND; i++)
	{
		PgAdmEntry *entry = &holdings->entries[i];
		PgAdmPool  *pool = pool_at(entry->pool);

		if (entry->workers == 0 || entry->lent)
			continue;
		pgadm_pool_set_lent(pool, entry, true);
		pgadm_stats_count(PGADM_LENT);
		dispatch(pool, wakeups, now);
	}
}

/*
 * Put this backend into the queue.  Its queries that are admitted already, in
 * portals that are bound but not executed, do not run meanwhile.  So their workers
 * are lent, and no other query waits for them.
 */
static void
enqueue(int pool, PgAdmBackend *backend, const PgAdmRequest *request,
		TimestampTz now, Wakeups *wakeups)
{
	PgAdmWaiter *waiter = &backend->waiter;

	waiter->pool = pool;
	waiter->priority = request->priority;
	waiter->may_refuse = request->may_refuse;
	waiter->resumes = request->entry >= 0;
	waiter->entry = request->entry;
	waiter->claim = request->claim;
	waiter->plan_cost = request->plan_cost;
	waiter->query_id = request->query_id;
	waiter->enqueued_at = now;
	pgadm_order_join(pool_at(pool), waiter);
	pgadm_stats_count(PGADM_THROTTLED);
	alert_sampler(wakeups);
	lend_all(&backend->holdings, wakeups, now);
}

/*
 * Copy what an error or a log line may want to tell.
 */
static void
describe(const PgAdmPool *pool, PgAdmOutcome *outcome)
{
	outcome->running = pool->usage.running;
	outcome->queued = pool->queued;
	outcome->queue_capacity = pool->rules.queue_capacity;
	outcome->short_of = PGADM_SHORT_OF_TURN;
	outcome->capacity = pool->capacity;
	outcome->service_rate = pgadm_shared->load.service_rate;
}

/*
 * Refuse a request, and fill in what it would have needed.
 */
static void
reject(const PgAdmPool *pool, PgAdmBackend *backend, const PgAdmClaim *claim,
	   PgAdmReason reason, PgAdmOutcome *outcome)
{
	outcome->verdict = PGADM_REJECT;
	outcome->reason = reason;
	outcome->workers = claim->workers;
	outcome->memory = claim->memory;
	describe(pool, outcome);
	outcome->short_of = pgadm_order_shortage(pool, claim);
	outcome->is_utility = outcome->can_be_lowered = false;
	pgadm_stats_rejected(backend->role_stats, reason);
}

/*
 * Refuse a request that has just arrived.
 */
static void
reject_at_arrival(const PgAdmPool *pool, PgAdmBackend *backend,
				  const PgAdmRequest *request, PgAdmReason reason,
				  TimestampTz now, PgAdmOutcome *outcome)
{
	reject(pool, backend, &request->claim, reason, outcome);
	pgadm_stats_count(PGADM_THROTTLED);
	if (reason == PGADM_REASON_BREAKER)
		outcome->tripped = pgadm_breakers_describe(request->statements, now,
												   &outcome->ntripped);
}

/*
 * Mode "observe": whatever the decision, count it and run.  A query that would
 * wait, or be refused while there is no room for it, is over the budget; one that
 * a breaker or the CPU would refuse although there is room is not.
 */
static PgAdmVerdict
observe(const PgAdmPool *pool, PgAdmBackend *backend, const PgAdmClaim *claim,
		PgAdmVerdict verdict, bool *over_budget)
{
	PgAdmResources room = pgadm_pool_room(pool);

	if (verdict == PGADM_QUEUE)
		pgadm_stats_count(PGADM_WOULD_HAVE_WAITED);
	else if (verdict == PGADM_REJECT)
		pgadm_stats_would_have_rejected(backend->role_stats);
	else
		return verdict;

	*over_budget = (verdict == PGADM_QUEUE ||
					!pgadm_policy_fits(claim, &pool->capacity, &room));
	return PGADM_RUN;
}

/*
 * Might a breaker or the CPU refuse such a request?
 */
static pg_attribute_hot bool
may_be_shed(const PgAdmRequest *request)
{
	return pgadm_breakers_any_tripped() ||
		request->min_wait_ratio < request->max_wait_ratio;
}

/*
 * What the policy is to decide on, but for what is saved up for waiters.
 * "count" is whether breakers that only warn count the query; for a preview,
 * from which nothing follows, they do not.
 */
static pg_attribute_hot PgAdmPolicyInput
make_input(const PgAdmPool *pool, const PgAdmRequest *request, bool count,
		   TimestampTz now)
{
	PgAdmPolicyInput input = {
		.claim = request->claim,
		.capacity = pool->capacity,
		.room = pgadm_pool_room(pool),
		.queued = pool->queued,
		.queue_capacity = pool->rules.queue_capacity,
		.may_wait = request->may_wait,
		.may_refuse = request->may_refuse,
	};

	if (request->may_refuse && may_be_shed(request))
	{
		input.breaker_tripped = pgadm_breakers_refuse(request->statements, now, count);
		input.shed = pgadm_shed_query(request->min_wait_ratio, request->max_wait_ratio,
									  request->draw, now);
	}
	return input;
}

/*
 * Decide about a request as things stand.
 */
static pg_attribute_hot PgAdmVerdict
decide(PgAdmPool *pool, const PgAdmRequest *request, bool count,
	   TimestampTz now, PgAdmReason *reason)
{
	PgAdmPolicyInput input = make_input(pool, request, count, now);
	PgAdmOrder	order;

	/* Mode "observe" has no queue, but its queries over the budget would wait. */
	if (!request->enforce)
		input.queued += pool->usage.over_budget;

	if (pool->queued > 0)
	{
		pgadm_order_look(pool, pgadm_clock_us(), &order);
		input.room = request->priority ? order.priority_room : order.room;
	}

	return pgadm_policy_decide(&input, reason);
}

/*
 * This backend begins to use its place in the array of backends.
 */
void
pgadm_gate_join(pid_t pid, Oid role, Oid database)
{
	PgAdmBackend *backend = my_backend();
	Wakeups		wakeups;

	lock_gate(&wakeups);
	backend->pid = pid;
	backend->role = role;
	backend->role_stats = pgadm_stats_join(role, database);
	unlock_gate(&wakeups);
}

/*
 * Ask for admission.  If the verdict is PGADM_QUEUE, the backend is in the queue,
 * and the caller must poll until it has left it.
 *
 * A suspended query that takes its workers again has been counted before.  It is
 * counted once more only if it has to wait or is refused.
 */
void
pgadm_gate_submit(const PgAdmRequest *request, PgAdmOutcome *outcome)
{
	PgAdmPool  *pool = pool_at(0);
	PgAdmBackend *backend = my_backend();
	TimestampTz now = GetCurrentTimestamp();
	bool		resumes = request->entry >= 0;
	bool		over_budget = false;
	Wakeups		wakeups;

	/* Have it in the cache before the lock is held. */
	(void) *(volatile uint32 *) &backend->activity;

	outcome->ntripped = 0;
	outcome->verdict = PGADM_RUN;
	lock_gate(&wakeups);

	if (!pgadm_policy_runs_at_once(&request->claim,
								   pool->capacity.workers - pool->usage.workers_used,
								   pool->queued, may_be_shed(request)))
	{
		outcome->verdict = decide(pool, request, true, now, &outcome->reason);
		if (!request->enforce)
			outcome->verdict = observe(pool, backend, &request->claim,
									   outcome->verdict, &over_budget);
	}
	if (!resumes || outcome->verdict == PGADM_QUEUE ||
		outcome->verdict == PGADM_REJECT)
		pgadm_stats_submitted(backend->role_stats);
	if (outcome->verdict == PGADM_REJECT)
		reject_at_arrival(pool, backend, request, outcome->reason, now, outcome);
	else if (outcome->verdict == PGADM_QUEUE)
		enqueue(0, backend, request, now, &wakeups);
	else
	{
		if (charge(0, backend, request, over_budget, false, 0, now, outcome) ||
			outcome->verdict == PGADM_FORCE)
			pgadm_stats_count(PGADM_FORCED);
		if (!resumes)
			pgadm_stats_admitted(backend->role_stats);
		if (is_exhausted(pool))
			alert_sampler(&wakeups);
	}
	unlock_gate(&wakeups);
}

/*
 * What would become of the request if it were submitted now?
 */
void
pgadm_gate_preview(const PgAdmRequest *request, PgAdmOutcome *outcome)
{
	PgAdmPool  *pool = pool_at(0);
	Wakeups		wakeups;

	memset(outcome, 0, sizeof(*outcome));
	lock_gate(&wakeups);
	outcome->verdict = decide(pool, request, false, GetCurrentTimestamp(),
							  &outcome->reason);
	describe(pool, outcome);
	unlock_gate(&wakeups);

	outcome->workers = pgadm_policy_workers(&request->claim, outcome->capacity.workers);
	outcome->memory = pgadm_policy_memory(&request->claim, outcome->capacity.memory);
}

/*
 * Has another process admitted this waiter?  If so, take note.
 */
static bool
was_handed_off(PgAdmWaiter *waiter, PgAdmOutcome *outcome)
{
	if (waiter->state != PGADM_HANDED_OFF)
		return false;

	waiter->state = PGADM_NOT_WAITING;
	outcome->verdict = PGADM_RUN;
	outcome->entry = waiter->entry;
	outcome->workers = waiter->claim.workers;
	outcome->memory = waiter->claim.memory;
	outcome->over_budget = false;
	return true;
}

/*
 * Why must a waiter leave that is not admitted?
 */
static PgAdmReason
why_leave(const PgAdmPool *pool, const PgAdmWaiter *waiter, bool timed_out)
{
	PgAdmReason reason = pgadm_policy_never_fits(&waiter->claim, &pool->capacity);

	if (reason == PGADM_REASON_NONE && timed_out && pool->rules.shedding &&
		waiter->may_refuse)
		reason = PGADM_REASON_QUEUE_TIMEOUT;
	return reason;
}

/*
 * The queued backend looks whether its wait is over.  The verdict says so:
 * PGADM_QUEUE if not, PGADM_RUN or PGADM_REJECT if it has left the queue.
 */
void
pgadm_gate_poll(bool enforce, bool timed_out, PgAdmOutcome *outcome)
{
	PgAdmBackend *backend = my_backend();
	PgAdmWaiter *waiter = &backend->waiter;
	PgAdmPool  *pool = pool_at(waiter->pool);
	TimestampTz now = GetCurrentTimestamp();
	Wakeups		wakeups;

	lock_gate(&wakeups);

	outcome->verdict = PGADM_QUEUE;
	if (!was_handed_off(waiter, outcome))
	{
		PgAdmReason reason = why_leave(pool, waiter, timed_out);
		bool		is_next = pgadm_order_answer(pool, waiter, pgadm_clock_us());

		if (is_next || !enforce)
		{
			admit_waiter(waiter, ITS_TURN, now, outcome);
			outcome->verdict = PGADM_RUN;
		}
		else if (reason != PGADM_REASON_NONE)
		{
			pgadm_order_leave(pool, waiter);
			pgadm_pool_note_idle(pool, pgadm_clock_us());
			reject(pool, backend, &waiter->claim, reason, outcome);
		}
		dispatch(pool, &wakeups, now);
	}

	unlock_gate(&wakeups);
}

/*
 * The queued backend must not wait any longer: admit it over the budget.
 */
void
pgadm_gate_force(PgAdmOutcome *outcome)
{
	PgAdmWaiter *waiter = &my_backend()->waiter;
	TimestampTz now = GetCurrentTimestamp();
	Wakeups		wakeups;

	lock_gate(&wakeups);
	if (!was_handed_off(waiter, outcome))
	{
		admit_waiter(waiter, FORCED, now, outcome);
		outcome->verdict = PGADM_FORCE;
		dispatch(pool_at(waiter->pool), &wakeups, now);
	}
	unlock_gate(&wakeups);
}

/*
 * Is the queued backend stuck, so that its wait ends only if an idle query ends?
 * If it was stuck before too, and is the first of the stuck waiters, it is
 * admitted over the budget.  Returns whether it was found stuck.
 */
bool
pgadm_gate_unstick(bool was_stuck, PgAdmOutcome *outcome)
{
	PgAdmWaiter *waiter = &my_backend()->waiter;
	PgAdmPool  *pool = pool_at(waiter->pool);
	TimestampTz now = GetCurrentTimestamp();
	PgAdmStuck	stuck = PGADM_NOT_STUCK;
	Wakeups		wakeups;

	lock_gate(&wakeups);
	if (!was_handed_off(waiter, outcome))
	{
		pgadm_pool_note_idle(pool, pgadm_clock_us());
		stuck = pgadm_order_stuck(pool, waiter);
		if (stuck == PGADM_STUCK_FIRST && was_stuck)
		{
			admit_waiter(waiter, FORCED_STUCK, now, outcome);
			outcome->verdict = PGADM_FORCE;
		}
		dispatch(pool, &wakeups, now);
	}
	unlock_gate(&wakeups);

	return stuck != PGADM_NOT_STUCK;
}

/*
 * Give up waiting.  A charge that was handed over in the same instant goes back.
 */
static void
leave(PgAdmBackend *backend)
{
	PgAdmWaiter *waiter = &backend->waiter;
	PgAdmPool  *pool = pool_at(waiter->pool);
	PgAdmOutcome outcome;

	if (waiter->state == PGADM_WAITING)
	{
		pgadm_order_leave(pool, waiter);
		pgadm_stats_count(PGADM_CANCELLED_WHILE_QUEUED);
	}
	else if (was_handed_off(waiter, &outcome))
	{
		/* A query that was resumed stays, without the workers. */
		PgAdmChange change = {
			.count = waiter->resumes ? 0 : -1,
			.workers = -outcome.workers,
			.memory = -outcome.memory,
		};

		pgadm_pool_change(pool, &backend->holdings, outcome.entry, &change,
						  pgadm_clock_us());
		if (!waiter->resumes)
			pgadm_stats_count(PGADM_COMPLETED);
	}
}

/*
 * The queued backend's query was cancelled, or met any other error.
 */
void
pgadm_gate_cancel(void)
{
	PgAdmBackend *backend = my_backend();
	Wakeups		wakeups;

	lock_gate(&wakeups);
	leave(backend);
	dispatch(pool_at(backend->waiter.pool), &wakeups, GetCurrentTimestamp());
	unlock_gate(&wakeups);
}

/*
 * A query of this backend gives something back.  It ends if the change's
 * count says so, else it is suspended.
 */
void
pgadm_gate_release(int entry, const PgAdmChange *change)
{
	PgAdmHoldings *holdings = &my_backend()->holdings;
	PgAdmPool  *pool = pool_at(holdings->entries[entry].pool);
	int64		now_us = change->count < 0 ? 0 : pgadm_clock_us();
	Wakeups		wakeups;

	lock_gate(&wakeups);
	pgadm_pool_change(pool, holdings, entry, change, now_us);
	if (change->count < 0)
		pgadm_stats_count(PGADM_COMPLETED);
	if (pool->queued > 0)
		dispatch(pool, &wakeups, GetCurrentTimestamp());
	unlock_gate(&wakeups);
}

/*
 * Have the workers of this backend's query been lent?  Read without the lock:
 * if the answer is just out of date, the query goes on as if it had started
 * a moment earlier.
 */
bool
pgadm_gate_has_lent(int entry)
{
	return my_backend()->holdings.entries[entry].lent;
}

/*
 * Give back all that a backend's entry holds.  Returns the number of its
 * queries.
 */
static int
clear_entry(PgAdmHoldings *holdings, int i)
{
	const PgAdmEntry *entry = &holdings->entries[i];
	PgAdmChange change = {
		.count = -entry->count,
		.workers = -entry->workers,
		.over_budget = -entry->over_budget,
		.memory = -entry->memory,
	};

	pgadm_pool_change(pool_at(entry->pool), holdings, i, &change, 0);
	return -change.count;
}

/*
 * This backend exits: whatever it still holds or waits for is gone.
 */
void
pgadm_gate_exit(void)
{
	PgAdmBackend *backend = my_backend();
	TimestampTz now = GetCurrentTimestamp();
	Wakeups		wakeups;

	lock_gate(&wakeups);
	leave(backend);
	for (int i = 0; i < PGADM_ENTRIES_PER_BACKEND; i++)
		pgadm_stats_add(PGADM_COMPLETED, clear_entry(&backend->holdings, i));
	for (int i = 0; i < PGADM_NPOOLS; i++)
		dispatch(pool_at(i), &wakeups, now);
	unlock_gate(&wakeups);
}

/*
 * Would any query be refused now, whatever its plan?
 */
static PgAdmReason
before_planning(const PgAdmRequest *request, TimestampTz now)
{
	PgAdmPolicyInput input = make_input(pool_at(0), request, false, now);

	return pgadm_policy_before_planning(&input);
}

/*
 * A cheap look without the lock: might such a query be refused now?  Each of
 * the numbers may be stale, but no more than if we had looked a moment
 * earlier; the look that counts is the next.
 */
bool
pgadm_gate_may_refuse(const PgAdmRequest *request)
{
	return before_planning(request, GetCurrentTimestamp()) != PGADM_REASON_NONE;
}

/*
 * The same under the lock: if the query is refused, count it, and return true.
 */
bool
pgadm_gate_refuses(const PgAdmRequest *request, PgAdmOutcome *outcome)
{
	PgAdmBackend *backend = my_backend();
	TimestampTz now = GetCurrentTimestamp();
	PgAdmReason reason;
	Wakeups		wakeups;

	outcome->ntripped = 0;
	lock_gate(&wakeups);
	reason = before_planning(request, now);
	if (reason != PGADM_REASON_NONE)
	{
		pgadm_stats_submitted(backend->role_stats);
		reject_at_arrival(pool_at(0), backend, request, reason, now, outcome);
	}
	unlock_gate(&wakeups);

	return reason != PGADM_REASON_NONE;
}

/*
 * Is a new connection to be refused?  It is counted if so, or if it would be
 * but is only observed.  It is no query.  The draw is for the role's name and
 * the address, the counters are those of role and database.
 */
bool
pgadm_gate_drops_connection(const char *name, const char *address,
							Oid role, Oid database, bool enforce,
							PgAdmOutcome *outcome)
{
	bool		drop;
	Wakeups		wakeups;

	outcome->ntripped = 0;
	lock_gate(&wakeups);
	drop = pgadm_shed_connection(name, address, GetCurrentTimestamp());
	if (drop && !enforce)
	{
		pgadm_stats_count(PGADM_WOULD_HAVE_DROPPED_CONNECTIONS);
		drop = false;
	}
	if (drop)
	{
		outcome->reason = PGADM_REASON_CONNECTION;
		pgadm_stats_dropped(pgadm_stats_join(role, database));
		describe(pool_at(0), outcome);
	}
	unlock_gate(&wakeups);

	return drop;
}

/*
 * The queue timeout of sessions that have none of their own.  A single word
 * that one process writes, so it is read without the lock.
 */
int
pgadm_gate_queue_timeout(void)
{
	return pool_at(0)->rules.queue_timeout;
}

/*
 * The memory that all queries may use together.  Read likewise; where it is
 * needed exactly, it is looked at again under the lock.
 */
int64
pgadm_gate_memory_capacity(void)
{
	return *(volatile int64 *) &pool_at(0)->capacity.memory;
}

/*
 * Wake the waiters that would not fit even if nothing of that capacity were used;
 * if it is NULL, all waiters.  Their states are read without the lock: a backend
 * that joins the queue now has seen what has changed.
 */
static void
wake_waiters(const PgAdmResources *capacity)
{
	for (int i = 0; i < pgadm_shared->nbackends; i++)
	{
		const PgAdmWaiter *waiter = &pgadm_shared->backends[i].waiter;

		if (waiter->state != PGADM_NOT_WAITING &&
			(capacity == NULL ||
			 pgadm_policy_never_fits(&waiter->claim, capacity) != PGADM_REASON_NONE))
			SetLatch(&GetPGProcByNumber(i)->procLatch);
	}
}

/*
 * Has something been read from the settings that is not older than what is in
 * force?  Substitutes may come in any order.  What is of the future has been
 * published before the time of day was set back.
 */
static bool
is_current(TimestampTz *in_force_at, const PgAdmInForce *in_force, TimestampTz now)
{
	if (in_force->by_substitute &&
		in_force->loaded_at < *in_force_at && *in_force_at <= now)
		return false;
	*in_force_at = in_force->loaded_at;
	return true;
}

/*
 * Set what the settings say, each thing if it is known and not older than what
 * is in force.  Returns whether anything has changed that waiters have to know.
 */
static bool
set_in_force(PgAdmPool *pool, const PgAdmInForce *in_force, TimestampTz now)
{
	PgAdmSettingsAge *age = &pgadm_shared->settings_age;
	bool		enabled = pgadm_shared->enabled;
	PgAdmMode	mode = pgadm_shared->mode;
	PgAdmRules	rules = pool->rules;
	bool		changed;

	if (is_current(&age->others, in_force, now))
	{
		enabled = in_force->enabled;
		rules = in_force->rules;
		rules.queue_timeout = pool->rules.queue_timeout;
		pool->capacity = in_force->capacity;
	}
	if (in_force->has_mode && is_current(&age->mode, in_force, now))
		mode = in_force->mode;
	if (in_force->has_queue_timeout && is_current(&age->queue_timeout, in_force, now))
		rules.queue_timeout = in_force->rules.queue_timeout;

	changed = enabled != pgadm_shared->enabled || mode != pgadm_shared->mode ||
		memcmp(&rules, &pool->rules, sizeof(PgAdmRules)) != 0;
	pgadm_shared->enabled = enabled;
	pgadm_shared->mode = mode;
	pool->rules = rules;
	return changed;
}

/*
 * Put new rules and a new capacity in force.  If the rules change, every waiter
 * looks at once whether that changes its lot.  The waiters that fit now are
 * admitted as after any release; those that never will are woken, to be told.
 */
void
pgadm_gate_publish(const PgAdmInForce *in_force)
{
	PgAdmPool  *pool = pool_at(0);
	PgAdmResources before;
	PgAdmResources capacity;
	TimestampTz now = GetCurrentTimestamp();
	Wakeups		wakeups;
	bool		changed;

	lock_gate(&wakeups);
	before = pool->capacity;
	changed = set_in_force(pool, in_force, now);
	capacity = pool->capacity;
	dispatch(pool, &wakeups, now);
	unlock_gate(&wakeups);

	if (changed)
		wake_waiters(NULL);
	else if (capacity.workers < before.workers || capacity.memory < before.memory)
		wake_waiters(&capacity);
}

/*
 * Does the sampler have to look often, because a query is queued, would have to be
 * if it arrived now, or has lent its workers?  If not, the backend that changes
 * that will set the sampler's latch.
 */
bool
pgadm_gate_watch(void)
{
	Wakeups		wakeups;
	bool		busy = false;

	lock_gate(&wakeups);
	for (int i = 0; i < PGADM_NPOOLS; i++)
	{
		const PgAdmPool *pool = pool_at(i);

		busy |= pool->queued > 0 || pool->usage.workers_lent > 0 || is_exhausted(pool);
	}
	pgadm_shared->sampler.alerted = busy;
	unlock_gate(&wakeups);

	return busy;
}

/*
 * Lend the workers of everything that a backend runs, or take them back.
 */
void
pgadm_gate_lend(int number, bool lend)
{
	PgAdmHoldings *holdings = &pgadm_shared->backends[number].holdings;
	TimestampTz now = GetCurrentTimestamp();
	Wakeups		wakeups;

	lock_gate(&wakeups);
	if (lend)
		lend_all(holdings, &wakeups, now);
	else
		for (int i = 0; i < PGADM_ENTRIES_PER_BACKEND; i++)
		{
			PgAdmEntry *entry = &holdings->entries[i];

			if (entry->workers > 0 && entry->lent)
				pgadm_pool_set_lent(pool_at(entry->pool), entry, false);
		}
	unlock_gate(&wakeups);
}

/*
 * The sampler's second net: if a waiter could be admitted and none has been
 * notified, notify it, and count that, since it should never happen.
 */
void
pgadm_gate_rescue(void)
{
	TimestampTz now = GetCurrentTimestamp();
	PgAdmOrder	order;
	Wakeups		wakeups;

	lock_gate(&wakeups);
	for (int i = 0; i < PGADM_NPOOLS; i++)
	{
		PgAdmPool  *pool = pool_at(i);

		pgadm_order_look(pool, pgadm_clock_us(), &order);
		if (order.next != NULL && pool->notified == NULL && !order.overdue)
			pgadm_stats_count(PGADM_RESCUED);
		dispatch(pool, &wakeups, now);
	}
	unlock_gate(&wakeups);
}

/*
 * Call a function while the admission lock is held: to copy what belongs
 * together, or to change what the lock protects besides the pools.
 */
void
pgadm_gate_locked(void (*function) (void *arg), void *arg)
{
	Wakeups		wakeups;

	lock_gate(&wakeups);
	function(arg);
	unlock_gate(&wakeups);
}
