/*-------------------------------------------------------------------------
 *
 * queue.c
 *		The admission queue: who waits, who is next.
 *
 * Handing a freed worker straight to the next waiter would leave it idle
 * until that process is on a CPU, which halves the throughput of short
 * queries.  So whoever frees something only wakes the next in turn, which
 * then competes for it with queries that arrive meanwhile; and at most one
 * woken waiter is outstanding at any time.  Once a waiter has been the next in
 * turn for HANDOFF_MS, it is given the worker directly.
 *
 * A query may pass others that need more than is free, but once the first of
 * those has been passed for PATIENCE_MS, what becomes free is saved up for
 * it.  That makes sense only if running queries will free enough, so a waiter
 * that needs memory which is held by suspended or lent queries is passed
 * without such a bound.
 *
 * Later queries of transactions go ahead of those that only begin, so that
 * what is begun gets done.  But when the first of the others has been that for
 * PATIENCE_MS, it is its turn, once for each such time.
 *
 * Every change under the lock that could let somebody in calls dispatch()
 * before the lock is released, so no wake-up can be lost: either nobody in
 * the queue fits, or somebody was granted, or somebody woken will come and
 * call dispatch() in turn.  A woken waiter that leaves does so as well.  Only
 * whose turn it is because time has passed is found by nobody but the sampler,
 * and by himself, since waiters look again every second.
 *
 * Who was woken but does not come, because he is stopped or gets no CPU, is
 * passed over until he looks for himself.  He keeps his place.
 *
 * Locking: all of this happens under the admission lock; latches are set
 * after it is released.  A slot number outlives its process, so at worst a
 * latch is set for nothing.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/queue.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "breakers.h"
#include "compat.h"
#include "host.h"
#include "miscadmin.h"
#include "queue.h"
#include "stats.h"
#include "storage/latch.h"
#include "storage/s_lock.h"
#include "utils/timestamp.h"

#define HANDOFF_MS		5
#define PATIENCE_MS		1000

/* After this long a woken waiter no longer keeps others from being woken */
#define WOKEN_MS		1000

/* Processes to be woken when the lock has been released */
#define MAX_WAKEUPS		16

/* Looks at the lock, while it is held, before going to sleep for it */
#define LOCK_SPINS		100

typedef struct Wakeups
{
	int			n;
	int			procno[MAX_WAKEUPS];
} Wakeups;

static void check_queue(void);

/*
 * Take the admission lock.  It is free again in less time than it takes to go
 * to sleep and be woken, so do not, unless its holder has been interrupted.
 * Until the lock's state changes it is only read, since an attempt takes the
 * cache line away from the holder.  Who sleeps may be overtaken.
 */
static pg_attribute_hot void
lock_queue(Wakeups *wakeups)
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
unlock_queue(const Wakeups *wakeups)
{
	check_queue();
	LWLockRelease(&pgadm_shared->lock);
	for (int i = 0; i < wakeups->n; i++)
		SetLatch(&GetPGProcByNumber(wakeups->procno[i])->procLatch);
}

static PgAdmSlot *
my_slot(void)
{
	return &pgadm_shared->slots[PGADM_MY_PROC_NUMBER];
}

static PgAdmSlot *
slot_of(dlist_node *link)
{
	return dlist_container(PgAdmSlot, waiter.link, link);
}

static int
slot_number(const PgAdmSlot *slot)
{
	return slot - pgadm_shared->slots;
}

/*
 * Is that longer ago?  By a clock that does not jump, since nobody may wait
 * for long only because the time of day was set back.
 */
static bool
older_than(int64 since_us, int64 now_us, int ms)
{
	return since_us != 0 && now_us - since_us >= ms * INT64CONST(1000);
}

/*
 * Could the claim be met if every query that has a worker now ended?
 */
static bool
attainable(const PgAdmClaim *claim)
{
	PgAdmBudgetState state = pgadm_budget_state();
	int64		memory = pgadm_policy_memory(claim, state.memory_total);

	return memory == 0 || claim->ignores_memory ||
		memory <= state.memory_total - pgadm_shared->budget.memory_parked;
}

/*
 * The state of a search for the next in turn.
 */
typedef struct Search
{
	int64		now_us;			/* pgadm_host_clock_us() */
	PgAdmBudgetState state;
	PgAdmSlot  *front;			/* the first that can be hoped to fit */
	bool		overdue;		/* the next is that only because of the time */
	PgAdmSlot  *reserved_for;	/* for whom what is free is saved up, or NULL */
} Search;

/*
 * Look through one list for a waiter that fits.
 */
static PgAdmSlot *
search_list(dlist_head *list, Search *search)
{
	dlist_iter	iter;

	dlist_foreach(iter, list)
	{
		PgAdmSlot  *slot = slot_of(iter.cur);
		PgAdmWaiter *waiter = &slot->waiter;
		bool		fits;
		bool		hopeful;

		if (waiter->passed_over)
			continue;
		fits = pgadm_policy_fits(&waiter->claim, &search->state);
		hopeful = fits || attainable(&waiter->claim);
		if (search->front == NULL && hopeful)
		{
			search->front = slot;
			if (waiter->front_since == 0)
				waiter->front_since = search->now_us;
		}
		if (fits)
			return slot;

		/*
		 * Not only for the front: who has once been passed for too long is
		 * not passed again because somebody else came to the front.
		 */
		if (hopeful && older_than(waiter->front_since, search->now_us, PATIENCE_MS))
		{
			search->reserved_for = slot;
			return NULL;
		}

		/* Nobody fits when there is no worker, so spare us the rest. */
		if (search->front != NULL &&
			search->state.workers_used >= search->state.workers_total)
			return NULL;
	}

	return NULL;
}

/*
 * Of those that do not go ahead, has the first been so for too long, because
 * others went ahead all the time?  Then it is its turn, if it fits.
 */
static PgAdmSlot *
find_overdue(Search *search)
{
	PgAdmQueue *queue = &pgadm_shared->queue;
	PgAdmSlot  *first;

	if (dlist_is_empty(&queue->waiters))
	{
		queue->first = -1;
		return NULL;
	}

	first = slot_of(dlist_head_node(&queue->waiters));
	if (queue->first != slot_number(first))
	{
		queue->first = slot_number(first);
		queue->first_since = search->now_us;
	}
	if (dlist_is_empty(&queue->ahead) || first->waiter.passed_over ||
		!older_than(queue->first_since, search->now_us, PATIENCE_MS) ||
		!pgadm_policy_fits(&first->waiter.claim, &search->state))
		return NULL;

	if (first->waiter.front_since == 0)
		first->waiter.front_since = search->now_us;
	search->front = first;
	search->overdue = true;
	return first;
}

/*
 * Who may be admitted now?  Returns NULL if nobody.
 */
static PgAdmSlot *
find_next(Search *search)
{
	PgAdmQueue *queue = &pgadm_shared->queue;
	PgAdmSlot  *next;

	search->now_us = pgadm_host_clock_us();
	search->state = pgadm_budget_state();
	search->front = NULL;
	search->overdue = false;
	search->reserved_for = NULL;

	if (queue->queued == 0)
		return NULL;
	next = find_overdue(search);
	if (next == NULL)
		next = search_list(&queue->ahead, search);
	if (next == NULL && search->reserved_for == NULL)
		next = search_list(&queue->waiters, search);
	return next;
}

#ifdef PGADM_ASSERTIONS

static void
verify(bool holds, const char *what)
{
	if (!holds)
		elog(PANIC, "admission queue: %s", what);
}

/*
 * Every waiter of a list is linked into the right one, as a waiter.
 */
static int
check_list(dlist_head *list, bool ahead)
{
	dlist_iter	iter;
	int			n = 0;

	dlist_foreach(iter, list)
	{
		const PgAdmWaiter *waiter = &slot_of(iter.cur)->waiter;

		verify(waiter->state == PGADM_WAITING, "somebody is linked who does not wait");
		verify(waiter->ahead == ahead, "somebody waits in the wrong list");
		verify(++n <= pgadm_shared->nslots, "a list has no end");
	}
	return n;
}

#endif

/*
 * In a build with assertions, check what must be true whenever the lock is
 * free: those linked are those that wait, the counters add up, and if
 * anybody could be admitted, somebody has been woken to see to it.
 */
static void
check_queue(void)
{
#ifdef PGADM_ASSERTIONS
	PgAdmQueue *queue = &pgadm_shared->queue;
	int			waiting = 0;
	Search		search;

	for (int i = 0; i < pgadm_shared->nslots; i++)
	{
		const PgAdmSlot *slot = &pgadm_shared->slots[i];

		if (slot->waiter.state == PGADM_WAITING)
			waiting++;
		for (int j = 0; j < PGADM_ENTRIES_PER_SLOT; j++)
			verify(slot->entries[j].count > 0 ||
				   (slot->entries[j].workers == 0 && slot->entries[j].memory == 0 &&
					slot->entries[j].over_budget == 0),
				   "an entry without a query holds something");
	}
	verify(queue->queued == waiting, "the number of waiters is wrong");
	verify(check_list(&queue->ahead, true) + check_list(&queue->waiters, false) == waiting,
		   "somebody who waits is not linked");

	verify(queue->woken < 0 ||
		   pgadm_shared->slots[queue->woken].waiter.state == PGADM_WAITING,
		   "somebody was woken who does not wait");
	verify(queue->woken >= 0 || find_next(&search) == NULL || search.overdue,
		   "a wake-up is missing");

	verify(pgadm_stats_get(PGADM_SUBMITTED) ==
		   pgadm_stats_get(PGADM_ADMITTED) + pgadm_stats_get(PGADM_REJECTED) +
		   pgadm_stats_get(PGADM_CANCELLED_WHILE_QUEUED) + queue->queued,
		   "the counters do not add up");
#endif
}

/*
 * Charge what a request claims, to a new entry or to the one it resumes.
 * Returns whether that exceeds the memory budget, since the request does not
 * wait for memory.
 */
static pg_attribute_hot bool
charge(PgAdmSlot *slot, const PgAdmRequest *request, bool over_budget,
	   TimestampTz enqueued_at, TimestampTz now, PgAdmOutcome *outcome)
{
	PgAdmBudgetState state = pgadm_budget_state();
	bool		exceeds;

	/* Forced queries could claim more than can be counted. */
	outcome->workers = Min(pgadm_policy_workers(&request->claim, state.workers_total),
						   PG_INT32_MAX - state.workers_used -
						   pgadm_shared->budget.workers_lent);
	outcome->memory = pgadm_policy_memory(&request->claim, state.memory_total);
	outcome->over_budget = over_budget;
	if (request->entry >= 0)
		outcome->memory = 0;	/* it has that already */
	exceeds = request->claim.ignores_memory && outcome->memory > 0 &&
		state.memory_used + outcome->memory > state.memory_total;

	if (request->entry >= 0)
	{
		PgAdmChange change = {.workers = outcome->workers,.over_budget = over_budget};

		outcome->entry = request->entry;
		pgadm_budget_change(slot, request->entry, &change);
	}
	else
	{
		PgAdmEntry	entry = {
			.count = 1,
			.workers = outcome->workers,
			.over_budget = over_budget,
			.memory = outcome->memory,
			.plan_cost = request->plan_cost,
			.query_id = request->query_id,
			.enqueued_at = enqueued_at,
			.admitted_at = now,
		};

		outcome->entry = pgadm_budget_charge(slot, &entry);
	}
	return exceeds;
}

/*
 * Take a waiter out of the queue.
 */
static void
unlink_waiter(PgAdmSlot *slot)
{
	PgAdmQueue *queue = &pgadm_shared->queue;

	Assert(slot->waiter.state == PGADM_WAITING);
	dlist_delete(&slot->waiter.link);
	slot->waiter.state = PGADM_NOT_WAITING;
	queue->queued--;
	if (queue->woken == slot_number(slot))
		queue->woken = -1;
}

/*
 * Admit a waiter, whose turn it is unless that is forced.
 */
static void
admit_waiter(PgAdmSlot *slot, bool forced, TimestampTz now, PgAdmOutcome *outcome)
{
	PgAdmWaiter *waiter = &slot->waiter;
	PgAdmRequest request = {
		.claim = waiter->claim,
		.plan_cost = waiter->plan_cost,
		.query_id = waiter->query_id,
		.entry = waiter->entry,
	};

	unlink_waiter(slot);
	forced |= charge(slot, &request, false, waiter->enqueued_at, now, outcome);
	if (forced)
		pgadm_stats_count(PGADM_FORCED);
	pgadm_stats_admitted(slot);
	pgadm_stats_waited(slot, now - waiter->enqueued_at);
}

/*
 * Admit a waiter on its behalf; it will find out when it looks.
 */
static void
grant(PgAdmSlot *slot, TimestampTz now)
{
	PgAdmWaiter *waiter = &slot->waiter;
	PgAdmOutcome outcome;

	admit_waiter(slot, false, now, &outcome);
	waiter->state = PGADM_GRANTED;
	waiter->entry = outcome.entry;
	waiter->claim.workers = outcome.workers;
	waiter->claim.memory = outcome.memory;
}

/*
 * Something may have become free: let the next in turn have it.
 */
static void
dispatch(Wakeups *wakeups, TimestampTz now)
{
	PgAdmQueue *queue = &pgadm_shared->queue;
	PgAdmSlot  *next;
	Search		search;

	while ((next = find_next(&search)) != NULL)
	{
		if (next == search.front && wakeups->n < MAX_WAKEUPS - 1 &&
			older_than(next->waiter.front_since, search.now_us, HANDOFF_MS))
		{
			grant(next, now);
			wakeups->procno[wakeups->n++] = slot_number(next);
			continue;
		}

		if (queue->woken < 0)
		{
			queue->woken = slot_number(next);
			queue->woken_at = search.now_us;
			wakeups->procno[wakeups->n++] = slot_number(next);
		}
		break;
	}
}

/*
 * From now on the sampler has to look often.
 */
static void
alert_sampler(Wakeups *wakeups)
{
	PgAdmSamplerState *sampler = &pgadm_shared->sampler;

	if (sampler->pid == 0 || sampler->attentive)
		return;
	sampler->attentive = true;
	wakeups->procno[wakeups->n++] = sampler->procno;
}

/*
 * Are all workers in use?
 */
static bool
is_exhausted(void)
{
	return pgadm_shared->budget.workers_used >= pgadm_shared->limits.workers_total;
}

/*
 * Put this backend into the queue.
 */
static void
enqueue(PgAdmSlot *slot, const PgAdmRequest *request, TimestampTz now,
		Wakeups *wakeups)
{
	PgAdmQueue *queue = &pgadm_shared->queue;
	PgAdmWaiter *waiter = &slot->waiter;

	Assert(waiter->state == PGADM_NOT_WAITING);
	waiter->state = PGADM_WAITING;
	waiter->ahead = request->ahead;
	waiter->may_refuse = request->may_refuse;
	waiter->resumes = request->entry >= 0;
	waiter->entry = request->entry;
	waiter->claim = request->claim;
	waiter->plan_cost = request->plan_cost;
	waiter->query_id = request->query_id;
	waiter->enqueued_at = now;
	waiter->front_since = 0;
	waiter->passed_over = false;

	dlist_push_tail(request->ahead ? &queue->ahead : &queue->waiters,
					&waiter->link);
	queue->queued++;
	pgadm_stats_count(PGADM_THROTTLED);
	alert_sampler(wakeups);
}

/*
 * Copy the breakers that refuse such statements.
 */
static void
describe_breakers(int statements, TimestampTz now, PgAdmOutcome *outcome)
{
	/* Not in every outcome, which is on the stack of every query. */
	static PgAdmTripped tripped[PGADM_MAX_BREAKERS];

	PgAdmServerLoad *load = &pgadm_shared->load;
	bool		fresh = !pgadm_load_stale(load->sample.sampled_at, now,
										  load->interval_ms);

	outcome->tripped = tripped;
	for (int i = 0; i < PGADM_MAX_BREAKERS; i++)
	{
		const PgAdmBreaker *breaker = &load->breakers[i];
		PgAdmTripped *copy;

		if (breaker->warn_only ||
			!pgadm_breakers_is_tripped(breaker, statements, fresh, now))
			continue;

		copy = &tripped[outcome->ntripped++];
		strlcpy(copy->name, breaker->name, sizeof(copy->name));
		pgadm_breakers_copy_reason(breaker, copy->reason);
		copy->value = breaker->state.value.value;
		copy->threshold = breaker->state.threshold;
	}
}

/*
 * The probability with which a request is refused because of the CPU.
 */
static double
shed_probability(double min, double max, TimestampTz now)
{
	PgAdmServerLoad *load = &pgadm_shared->load;

	return pgadm_load_reject_probability(pgadm_load_fresh(load->sample.cpu_wait_ratio,
														  load->sample.sampled_at,
														  now, load->interval_ms),
										 min, max);
}

/*
 * Is the request to be refused because of the CPU?
 */
static bool
is_shed(const PgAdmRequest *request, TimestampTz now)
{
	if (request->min_wait_ratio >= request->max_wait_ratio)
		return false;
	return pgadm_load_draw(shed_probability(request->min_wait_ratio,
											request->max_wait_ratio, now),
						   request->draw);
}

/*
 * Copy what an error or a log line may want to tell.
 */
static void
describe(PgAdmOutcome *outcome)
{
	outcome->running = pgadm_shared->budget.running;
	outcome->queued = pgadm_shared->queue.queued;
	outcome->limits = pgadm_shared->limits;
	outcome->service_rate = pgadm_shared->load.service_rate;
}

/*
 * Refuse a request, and fill in what it would have needed.
 */
static void
reject(PgAdmSlot *slot, const PgAdmClaim *claim, PgAdmReason reason,
	   PgAdmOutcome *outcome)
{
	outcome->verdict = PGADM_REJECT;
	outcome->reason = reason;
	outcome->workers = claim->workers;
	outcome->memory = claim->memory;
	describe(outcome);
	pgadm_stats_rejected(slot, reason);
}

/*
 * Mode "observe": whatever the decision, count it and run.  It is over the
 * budget, and would be in the queue, unless it is a breaker or the CPU that
 * refuses it while there is room.
 */
static PgAdmVerdict
observe(PgAdmSlot *slot, const PgAdmClaim *claim, PgAdmVerdict verdict,
		bool *over_budget)
{
	PgAdmBudgetState state = pgadm_budget_state();

	if (verdict == PGADM_QUEUE)
		pgadm_stats_count(PGADM_WOULD_HAVE_WAITED);
	else if (verdict == PGADM_REJECT)
		pgadm_stats_would_have_rejected(slot);
	else
		return verdict;

	*over_budget = (verdict == PGADM_QUEUE || !pgadm_policy_fits(claim, &state));
	return PGADM_RUN;
}

/*
 * Decide about a request as things stand.  Queries that breakers only warn
 * about are counted, unless nothing comes of the decision.
 */
static pg_attribute_hot PgAdmVerdict
decide(const PgAdmRequest *request, bool count, TimestampTz now, PgAdmReason *reason)
{
	PgAdmPolicyInput input = {
		.claim = request->claim,
		.budget = pgadm_budget_state(),
		.queued = pgadm_shared->queue.queued,
		.queue_capacity = pgadm_shared->limits.queue_capacity,
		.may_wait = request->may_wait,
		.may_refuse = request->may_refuse,
	};
	Search		search;

	if (request->may_refuse)
	{
		input.breaker_tripped = pgadm_breakers_refuse(request->statements, now, count);
		input.shed = is_shed(request, now);
	}

	/* Those that only observe a queue would stand in theirs. */
	if (!request->enforce)
		input.queued += pgadm_shared->budget.over_budget;

	if (pgadm_shared->queue.queued > 0)
	{
		(void) find_next(&search);
		input.reserved = search.reserved_for != NULL &&
			(!request->ahead || search.reserved_for->waiter.ahead);
	}

	return pgadm_policy_decide(&input, reason);
}

/*
 * Does the request fit, with nobody waiting and nothing else to be considered?
 * That is how it is with nearly every query of a server that is not overloaded.
 * decide() would say the same, but takes longer.
 */
static bool
runs_at_once(const PgAdmRequest *request, TimestampTz now)
{
	const PgAdmShared *shared = pgadm_shared;
	const PgAdmClaim *claim = &request->claim;
	bool		runs;

	runs = shared->queue.queued == 0 && !pgadm_breakers_any_tripped() &&
		request->min_wait_ratio >= request->max_wait_ratio &&
		claim->memory == 0 && !claim->fixed_workers &&
		claim->workers <= shared->limits.workers_total - shared->budget.workers_used;

#ifdef PGADM_ASSERTIONS
	{
		PgAdmReason reason;

		verify(!runs || decide(request, false, now, &reason) == PGADM_RUN,
			   "a query runs that must not");
	}
#endif
	return runs;
}

/*
 * This backend is going to use its slot.
 */
void
pgadm_queue_join(pid_t pid, Oid role, Oid database)
{
	PgAdmSlot  *slot = my_slot();

	LWLockAcquire(&pgadm_shared->lock, LW_EXCLUSIVE);
	slot->pid = pid;
	slot->role = role;
	pgadm_stats_join(slot, role, database);
	LWLockRelease(&pgadm_shared->lock);
}

/*
 * Ask for admission.  Unless the verdict is PGADM_QUEUE, that is the end of
 * it; else the caller is in the queue and must poll until it leaves.
 *
 * A suspended query that takes its workers again has been counted before; it
 * counts as one more only if it has to wait.
 */
void
pgadm_queue_submit(const PgAdmRequest *request, PgAdmOutcome *outcome)
{
	PgAdmSlot  *slot = my_slot();
	TimestampTz now = GetCurrentTimestamp();
	bool		resumes = request->entry >= 0;
	bool		over_budget = false;
	Wakeups		wakeups;

	/* Have it in the cache before the lock is held. */
	(void) *(volatile uint32 *) &slot->activity;

	outcome->ntripped = 0;
	outcome->verdict = PGADM_RUN;
	lock_queue(&wakeups);

	if (!runs_at_once(request, now))
	{
		outcome->verdict = decide(request, true, now, &outcome->reason);
		if (!request->enforce)
			outcome->verdict = observe(slot, &request->claim, outcome->verdict,
									   &over_budget);
	}
	if (!resumes || outcome->verdict == PGADM_QUEUE ||
		outcome->verdict == PGADM_REJECT)
		pgadm_stats_submitted(slot);
	if (outcome->verdict == PGADM_REJECT)
	{
		reject(slot, &request->claim, outcome->reason, outcome);
		pgadm_stats_count(PGADM_THROTTLED);
		if (outcome->reason == PGADM_REASON_BREAKER)
			describe_breakers(request->statements, now, outcome);
	}
	else if (outcome->verdict == PGADM_QUEUE)
		enqueue(slot, request, now, &wakeups);
	else
	{
		if (charge(slot, request, over_budget, 0, now, outcome) ||
			outcome->verdict == PGADM_FORCE)
			pgadm_stats_count(PGADM_FORCED);
		if (!resumes)
			pgadm_stats_admitted(slot);
		if (is_exhausted())
			alert_sampler(&wakeups);
	}
	unlock_queue(&wakeups);
}

/*
 * What would become of the request if it were submitted now?
 */
void
pgadm_queue_preview(const PgAdmRequest *request, PgAdmOutcome *outcome)
{
	Wakeups		wakeups;

	memset(outcome, 0, sizeof(*outcome));
	lock_queue(&wakeups);
	outcome->verdict = decide(request, false, GetCurrentTimestamp(), &outcome->reason);
	describe(outcome);
	unlock_queue(&wakeups);

	outcome->workers = pgadm_policy_workers(&request->claim,
											outcome->limits.workers_total);
	outcome->memory = pgadm_policy_memory(&request->claim,
										  outcome->limits.memory_total);
}

/*
 * Has another process admitted this waiter?  If so, take note.
 */
static bool
granted(PgAdmSlot *slot, PgAdmOutcome *outcome)
{
	PgAdmWaiter *waiter = &slot->waiter;

	if (waiter->state != PGADM_GRANTED)
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
 * The queued backend looks whether its wait is over.  The verdict says so:
 * PGADM_QUEUE if not, PGADM_RUN or PGADM_REJECT if it has left the queue.
 */
void
pgadm_queue_poll(bool enforce, bool timed_out, PgAdmOutcome *outcome)
{
	PgAdmQueue *queue = &pgadm_shared->queue;
	PgAdmSlot  *slot = my_slot();
	TimestampTz now = GetCurrentTimestamp();
	PgAdmBudgetState state;
	Search		search;
	Wakeups		wakeups;

	lock_queue(&wakeups);

	outcome->verdict = PGADM_QUEUE;
	if (!granted(slot, outcome))
	{
		state = pgadm_budget_state();
		outcome->reason = pgadm_policy_never_fits(&slot->waiter.claim, &state);
		if (outcome->reason == PGADM_REASON_NONE && timed_out &&
			pgadm_shared->limits.shedding && slot->waiter.may_refuse)
			outcome->reason = PGADM_REASON_QUEUE_TIMEOUT;
		if (queue->woken == slot_number(slot))
			queue->woken = -1;
		slot->waiter.passed_over = false;

		if (!enforce || find_next(&search) == slot)
		{
			admit_waiter(slot, false, now, outcome);
			outcome->verdict = PGADM_RUN;
		}
		else if (outcome->reason != PGADM_REASON_NONE)
		{
			unlink_waiter(slot);
			reject(slot, &slot->waiter.claim, outcome->reason, outcome);
		}
		dispatch(&wakeups, now);
	}

	unlock_queue(&wakeups);
}

/*
 * The queued backend must not wait any longer: admit it over the budget.
 */
void
pgadm_queue_force(PgAdmOutcome *outcome)
{
	PgAdmSlot  *slot = my_slot();
	TimestampTz now = GetCurrentTimestamp();
	Wakeups		wakeups;

	lock_queue(&wakeups);
	if (!granted(slot, outcome))
	{
		admit_waiter(slot, true, now, outcome);
		outcome->verdict = PGADM_FORCE;
		dispatch(&wakeups, now);
	}
	unlock_queue(&wakeups);
}

/*
 * Give up waiting.  What was granted in the same instant is handed on.
 */
static void
leave(PgAdmSlot *slot)
{
	PgAdmOutcome outcome;

	if (slot->waiter.state == PGADM_WAITING)
	{
		unlink_waiter(slot);
		pgadm_stats_count(PGADM_CANCELLED_WHILE_QUEUED);
	}
	else if (granted(slot, &outcome))
	{
		/* A query that was resumed stays, without the workers. */
		PgAdmChange change = {
			.count = slot->waiter.resumes ? 0 : -1,
			.workers = -outcome.workers,
			.memory = -outcome.memory,
		};

		pgadm_budget_change(slot, outcome.entry, &change);
		if (!slot->waiter.resumes)
			pgadm_stats_count(PGADM_COMPLETED);
	}
}

/*
 * The queued backend's query was cancelled, or met any other error.
 */
void
pgadm_queue_cancel(void)
{
	Wakeups		wakeups;

	lock_queue(&wakeups);
	leave(my_slot());
	dispatch(&wakeups, GetCurrentTimestamp());
	unlock_queue(&wakeups);
}

/*
 * A query of this backend gives something back.  It ends if the change's
 * count says so.
 */
void
pgadm_queue_give_back(int entry, const PgAdmChange *change)
{
	Wakeups		wakeups;

	lock_queue(&wakeups);
	pgadm_budget_change(my_slot(), entry, change);
	if (change->count < 0)
		pgadm_stats_count(PGADM_COMPLETED);
	if (pgadm_shared->queue.queued > 0)
		dispatch(&wakeups, GetCurrentTimestamp());
	unlock_queue(&wakeups);
}

/*
 * Have the workers of this backend's query been lent?  Read without the lock:
 * if the answer is just out of date, the query goes on as if it had started
 * a moment earlier.
 */
bool
pgadm_queue_has_lent(int entry)
{
	return my_slot()->entries[entry].lent;
}

/*
 * This backend exits: whatever it still holds or waits for is gone.
 */
void
pgadm_queue_exit(void)
{
	PgAdmSlot  *slot = my_slot();
	Wakeups		wakeups;

	lock_queue(&wakeups);
	leave(slot);
	pgadm_stats_add(PGADM_COMPLETED, pgadm_budget_clear(slot));
	dispatch(&wakeups, GetCurrentTimestamp());
	unlock_queue(&wakeups);
}

/*
 * Would any query be refused now, whatever its plan?  Because no worker is
 * free and the queue is full, or for the load of the server.
 */
static PgAdmReason
refusal(const PgAdmRequest *request, TimestampTz now)
{
	PgAdmShared *shared = pgadm_shared;
	PgAdmBudgetState state = pgadm_budget_state();

	if (pgadm_policy_never_fits(&request->claim, &state) != PGADM_REASON_NONE)
		return PGADM_REASON_NONE;	/* it shall be told that */
	if (pgadm_breakers_refuse(request->statements, now, false))
		return PGADM_REASON_BREAKER;
	if (is_shed(request, now))
		return PGADM_REASON_CPU_OVERLOAD;
	if (shared->limits.queue_capacity >= 0 &&
		shared->queue.queued >= shared->limits.queue_capacity &&
		shared->budget.workers_used >= shared->limits.workers_total)
		return PGADM_REASON_QUEUE_FULL;
	return PGADM_REASON_NONE;
}

/*
 * A cheap look without the lock: might such a query be refused now?  Each of
 * the numbers may be stale, but no more than if we had looked a moment
 * earlier; the look that counts is the next.
 */
bool
pgadm_queue_may_refuse(const PgAdmRequest *request)
{
	return refusal(request, GetCurrentTimestamp()) != PGADM_REASON_NONE;
}

/*
 * If it is so, count the query as refused before anything is known of it.
 */
bool
pgadm_queue_refuses(const PgAdmRequest *request, PgAdmOutcome *outcome)
{
	PgAdmSlot  *slot = my_slot();
	PgAdmClaim	least = {.workers = 1};
	TimestampTz now = GetCurrentTimestamp();
	PgAdmReason reason;
	Wakeups		wakeups;

	outcome->ntripped = 0;
	lock_queue(&wakeups);
	reason = refusal(request, now);
	if (reason != PGADM_REASON_NONE)
	{
		pgadm_stats_submitted(slot);
		reject(slot, &least, reason, outcome);
		pgadm_stats_count(PGADM_THROTTLED);
		if (reason == PGADM_REASON_BREAKER)
			describe_breakers(request->statements, now, outcome);
	}
	unlock_queue(&wakeups);

	return reason != PGADM_REASON_NONE;
}

/*
 * Is a new connection to be refused?  It is counted if so, or if it would be
 * but is only observed.  It is no query.
 */
bool
pgadm_queue_drops_connection(const char *role, const char *address,
							 bool enforce, PgAdmOutcome *outcome)
{
	TimestampTz now = GetCurrentTimestamp();
	double		probability;
	double		draw;
	bool		drop;
	Wakeups		wakeups;

	outcome->ntripped = 0;
	lock_queue(&wakeups);
	probability = shed_probability(pgadm_min_cpu_wait_ratio_to_drop,
								   pgadm_max_cpu_wait_ratio_to_drop, now);
	draw = pgadm_load_connection_uniform(role, address, pgadm_shared->load.number);
	drop = pgadm_load_draw(probability, draw);
	if (drop && !enforce)
	{
		pgadm_stats_count(PGADM_WOULD_HAVE_DROPPED_CONNECTIONS);
		drop = false;
	}
	if (drop)
	{
		outcome->reason = PGADM_REASON_CONNECTION;
		pgadm_stats_count(PGADM_DROPPED_CONNECTIONS);
		describe(outcome);
	}
	unlock_queue(&wakeups);

	return drop;
}

/*
 * The mode of sessions that have none of their own.  A single word that one
 * process writes, so it is read without the lock.
 */
PgAdmMode
pgadm_queue_mode(void)
{
	return pgadm_shared->limits.mode;
}

/*
 * The queue timeout of sessions that have none of their own, read likewise.
 */
int
pgadm_queue_timeout_of_server(void)
{
	return pgadm_shared->limits.queue_timeout;
}

/*
 * The memory budget.  Read like the mode; whoever needs it exactly looks again
 * under the lock.
 */
int64
pgadm_queue_memory_total(void)
{
	return *(volatile int64 *) &pgadm_shared->limits.memory_total;
}

/*
 * Wake everybody in the queue, to look for themselves.
 */
static void
wake_all(void)
{
	for (int i = 0; i < pgadm_shared->nslots; i++)
	{
		/* Read without the lock: who enqueues now has seen the limits. */
		if (pgadm_shared->slots[i].waiter.state != PGADM_NOT_WAITING)
			SetLatch(&GetPGProcByNumber(i)->procLatch);
	}
}

/*
 * Put new limits in force.  Those that wait learn of them at once: some may
 * fit now, others never again.
 */
void
pgadm_queue_publish(const PgAdmLimits *limits)
{
	Wakeups		wakeups;
	bool		changed;

	lock_queue(&wakeups);
	changed = memcmp(&pgadm_shared->limits, limits, sizeof(PgAdmLimits)) != 0;
	pgadm_shared->limits = *limits;
	if (changed)
		dispatch(&wakeups, GetCurrentTimestamp());
	unlock_queue(&wakeups);

	if (changed)
		wake_all();
}

/*
 * Is anybody queued, or would have to be, or is anything lent, so that the
 * sampler has to look often?  If not, who changes that will set its latch.
 */
bool
pgadm_queue_watch(void)
{
	Wakeups		wakeups;
	bool		busy;

	lock_queue(&wakeups);
	busy = pgadm_shared->queue.queued > 0 ||
		pgadm_shared->budget.workers_lent > 0 || is_exhausted();
	pgadm_shared->sampler.attentive = busy;
	unlock_queue(&wakeups);

	return busy;
}

/*
 * Lend the workers of everything that a backend runs, or take them back.
 */
void
pgadm_queue_lend(int number, bool lend)
{
	PgAdmSlot  *slot = &pgadm_shared->slots[number];
	Wakeups		wakeups;

	lock_queue(&wakeups);
	for (int i = 0; i < PGADM_ENTRIES_PER_SLOT; i++)
	{
		PgAdmEntry *entry = &slot->entries[i];

		if (entry->workers == 0 || entry->lent == lend)
			continue;
		pgadm_budget_set_lent(slot, i, lend);
		if (lend)
			pgadm_stats_count(PGADM_LENT);
	}
	if (lend)
		dispatch(&wakeups, GetCurrentTimestamp());
	unlock_queue(&wakeups);
}

/*
 * The second net: wake the next in turn if it could be admitted and nobody
 * told it, and count that, since it should never happen.  A waiter that was
 * woken but does not come is passed over.
 */
void
pgadm_queue_rescue(void)
{
	PgAdmQueue *queue = &pgadm_shared->queue;
	TimestampTz now = GetCurrentTimestamp();
	Search		search;
	Wakeups		wakeups;

	lock_queue(&wakeups);
	if (queue->woken >= 0 && older_than(queue->woken_at, pgadm_host_clock_us(), WOKEN_MS))
	{
		pgadm_shared->slots[queue->woken].waiter.passed_over = true;
		queue->woken = -1;
	}
	else if (queue->woken < 0 && find_next(&search) != NULL && !search.overdue)
		pgadm_stats_count(PGADM_RESCUED);
	dispatch(&wakeups, now);
	unlock_queue(&wakeups);
}
