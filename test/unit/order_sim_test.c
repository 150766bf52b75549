/*-------------------------------------------------------------------------
 *
 * order_sim_test.c
 *		A server in virtual time, to find out whether the order in which waiters
 *		are admitted keeps its promises; as a program that prints TAP.
 *
 *		order_sim_test [STEPS [SEED]]
 *
 * Or set PGADM_SIM_STEPS.  A step is an event: a query arrives, ends, is
 * suspended, waits for somebody else, a process wakes up, the sampler looks.
 * What gate.c does with a pool is done here likewise, without its lock, latches
 * and counters.  Every PHASE the load becomes another, with extremes among them:
 * nothing but priority, nothing but big queries, three times of what can be
 * served.  After every step it is checked that
 *
 *	- the sums are those of the entries, and who is admitted did fit;
 *	- no wake-up is missing: if a waiter could be admitted, one has been
 *	  notified, and not for longer than it may take to answer;
 *	- if nobody has waited for long, nothing is saved up: nobody waits that fits;
 *	- if there are workers for all waiters, one that claims no memory does not
 *	  wait, whatever the others lack;
 *	- the first of either list is not that for longer than BOUND.
 *
 * The bound, for the first of a list that is not unresponsive and whose memory
 * is not held by idle queries, all the time.  After PATIENCE it is saved up for, so
 * nobody is admitted that takes what it lacks, but those who were before it: a
 * head of the other list that has been that for longer.  That one is admitted when
 * all that run have ended, and ends itself, which takes SERVICE each.  A head with
 * priority may have to let another ordinary waiter go before it, that came to be
 * the first when it became the head, which takes PATIENCE and twice SERVICE again;
 * but not a third one, since that became the first later.  Then all that is left
 * has to end, another SERVICE.  Then it is notified, and if it does not come,
 * handed its charge by the next look.  Since a waiter is not passed by one of its
 * own list that arrived later, once it is saved up for, all others of the list
 * come to be its first, one after the other, so they have a bound as well.
 * What nobody can be asked to foresee starts the clock again: workers that were
 * lent come back, a query is forced, or the capacity becomes another.
 *
 *		Links: src/order.c src/pool.c src/policy.c
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  test/unit/order_sim_test.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <stdlib.h>
#include <time.h>

#include "order.h"
#include "tap.h"

/* With the sanitizers, and on a loaded machine, this is less than a minute */
#define DEFAULT_STEPS	1500000
#define ALL_STEPS		10000000

#define MS				INT64CONST(1000)
#define SECOND			(1000 * MS)
#define PHASE			(90 * SECOND)

#define SESSIONS		64
#define SESSIONS_OF_A_KIND	40	/* that begin, or that have priority */
#define MAX_EVENTS		65536
#define MAX_WAKEUPS		15

/* What the sampler and a waiter do by themselves */
#define SAMPLER_LOOK	(100 * MS)
#define WAITER_LOOK		SECOND
#define MAX_ANSWER		(3 * MS)
#define MAX_STOP		(3 * SECOND)

typedef enum Kind
{
	ARRIVE,						/* of no session */
	SAMPLE,
	NEW_CAPACITY,
	NEW_PHASE,
	WAKE,						/* its latch is set */
	LOOK,						/* its alarm */
	GIVE_UP,					/* it is cancelled */
	LEND,
	TAKE_BACK,
	RUN_ENDS,
	RESUME,
	END,
} Kind;

typedef struct Event
{
	int64		at;
	uint64		number;			/* of events at the same time, the older */
	Kind		kind;
	int			session;
	uint32		query;			/* void if the session has another one */
} Event;

typedef struct Session
{
	PgAdmHoldings holdings;
	PgAdmWaiter waiter;
	uint32		query;			/* number of its query */
	bool		busy;
	bool		priority;
	bool		suspends;		/* when it has run */
	bool		timed_out;
	int			entry;			/* once admitted */
	int			workers;
	int64		memory;
	int64		stopped_until;
	int64		waits_since;
} Session;

/* What a phase is like */
typedef struct Load
{
	int64		interval_us;	/* mean, between arrivals */
	int64		service_us;		/* mean */
	int64		max_service_us;
	double		bursts;			/* shares of the queries */
	double		priority;
	double		big;			/* of those without priority, */
	double		big_priority;	/* and with it */
	double		memory;
	double		much_memory;
	double		suspend;
	double		cursor;
	double		lend;
	double		stop;
	double		give_up;
} Load;

/* Who is the first of a list, and since when */
typedef struct First
{
	const Session *session;
	uint32		query;
	int64		since;
} First;

static PgAdmPool pool;
static Session sessions[SESSIONS];
static Event events[MAX_EVENTS];
static int	nevents;
static uint64 next_number;
static int64 now;
static Load load;
static int64 service_bound;		/* no query runs for longer */
static int64 disturbed_at;
static First firsts[2];

/* What was seen */
static uint64 random_state;
static long counts[END + 1];
static long admitted;
static long waited;
static long handed_off;
static long queued_steps;
static long saved_up_steps;
static int	most_at_once;
static double worst[2];			/* part of the bound */

/* How often each promise was broken */
typedef enum Promise
{
	SUMS,
	CAPACITY,
	LISTS,
	WAKEUP,
	NOTIFIED,
	NOTHING_IDLE,
	NOT_HELD_BACK,
	ARRIVAL_NOT_HELD_BACK,
	ORDINARY_BOUND,
	PRIORITY_BOUND,
} Promise;

static const char *const promises[] = {
	"the sums are those of the entries",
	"who is admitted did fit",
	"the lists hold those who wait",
	"no wake-up is missing",
	"who was notified has come, or is given up",
	"nothing is idle while a waiter fits, unless it is saved up",
	"a waiter without memory is not held back while there are workers for all",
	"nor is one that arrives",
	"the first of the ordinary waiters is admitted in time",
	"the first of those with priority is admitted in time",
};

static long broken[lengthof(promises)];

static void
promise(Promise which, bool kept)
{
	if (kept)
		return;
	if (broken[which]++ == 0)
		diag("after %.6f s: not true that %s", now / 1e6, promises[which]);
}

/* ---- chance ---- */

static uint64
random_bits(void)
{
	uint64		z = (random_state += UINT64CONST(0x9E3779B97F4A7C15));

	z = (z ^ (z >> 30)) * UINT64CONST(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64CONST(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

static double
uniform(void)
{
	return (random_bits() >> 11) * 0x1.0p-53;
}

static bool
chance(double p)
{
	return uniform() < p;
}

static int64
between(int64 least, int64 most)
{
	return least + random_bits() % (uint64) (most - least + 1);
}

static int64
exponential(double mean)
{
	return (int64) (-log(1 - uniform()) * mean) + 1;
}

static double
one_of(int n, const double *choices)
{
	return choices[between(0, n - 1)];
}

#define ONE_OF(...) \
	one_of(lengthof(((double[]) {__VA_ARGS__})), (double[]) {__VA_ARGS__})

/* ---- events ---- */

static bool
before(const Event *a, const Event *b)
{
	return a->at != b->at ? a->at < b->at : a->number < b->number;
}

static void
schedule(int64 at, Kind kind, const Session *session)
{
	Event		event = {Max(at, now), next_number++, kind};
	int			i = nevents++;

	if (nevents > MAX_EVENTS)
	{
		diag("too many events");
		exit(1);
	}
	if (session != NULL)
	{
		event.session = session - sessions;
		event.query = session->query;
	}
	for (; i > 0 && before(&event, &events[(i - 1) / 2]); i = (i - 1) / 2)
		events[i] = events[(i - 1) / 2];
	events[i] = event;
}

static Event
next_event(void)
{
	Event		first = events[0];
	Event		last = events[--nevents];
	int			i = 0;

	for (int child = 1; child < nevents; child = 2 * i + 1)
	{
		if (child + 1 < nevents && before(&events[child + 1], &events[child]))
			child++;
		if (!before(&events[child], &last))
			break;
		events[i] = events[child];
		i = child;
	}
	events[i] = last;
	return first;
}

/* ---- what gate.c does ---- */

static Session *
session_of(PgAdmWaiter *waiter)
{
	return dlist_container(Session, waiter.link, &waiter->link);
}

static void
charge(Session *session, const PgAdmClaim *claim, bool forced)
{
	PgAdmEntry	query = {.count = 1,.admitted_at = now};

	promise(CAPACITY, forced ||
			pgadm_policy_fits(claim, &pool.capacity, &(PgAdmResources) {
		pool.capacity.workers - pool.usage.workers_used,
			pool.capacity.memory - pool.usage.memory_used
	}));
	if (forced)
		disturbed_at = now;
	admitted++;
	session->workers = pgadm_policy_workers(claim, pool.capacity.workers);
	if (session->entry >= 0)
	{
		PgAdmChange change = {.workers = session->workers};

		pgadm_pool_change(&pool, &session->holdings, session->entry, &change, 0);
		return;
	}
	session->memory = pgadm_policy_memory(claim, pool.capacity.memory);
	query.workers = session->workers;
	query.memory = session->memory;
	session->entry = pgadm_pool_charge(&pool, &session->holdings, &query);
}

static void
dispatch(void)
{
	PgAdmWaiter *waiter;
	int			n;

	for (n = 0; n < MAX_WAKEUPS; n++)
	{
		PgAdmTurn	turn = pgadm_order_turn(&pool, now, &waiter);
		Session    *session;

		if (turn == PGADM_TURN_NONE)
			break;
		session = session_of(waiter);
		if (turn == PGADM_TURN_HAND_OFF)
		{
			pgadm_order_leave(&pool, waiter);
			charge(session, &waiter->claim, false);
			waiter->state = PGADM_HANDED_OFF;
			handed_off++;
		}
		if (chance(load.stop))
			session->stopped_until = now + between(0, MAX_STOP);
		schedule(now + between(20, MAX_ANSWER), WAKE, session);
	}
	most_at_once = Max(most_at_once, n);
}

/*
 * A query has been admitted, and knows it.
 */
static void
run(Session *session)
{
	int64		ends = now + Min(exponential(load.service_us), load.max_service_us);

	if (chance(load.lend))
	{
		int64		lent_for = chance(0.2) ? between(SECOND, 20 * SECOND) :
			between(MS, SECOND / 2);
		int64		lend_at = between(now, ends);

		schedule(lend_at, LEND, session);
		schedule(lend_at + lent_for, TAKE_BACK, session);
		ends += lent_for;
	}
	schedule(ends, RUN_ENDS, session);
}

static void
end_query(Session *session)
{
	PgAdmChange change = {
		.count = -1,
		.workers = -session->workers,
		.memory = -session->memory,
	};

	if (session->entry >= 0)
		pgadm_pool_change(&pool, &session->holdings, session->entry, &change, 0);
	session->busy = false;
	session->query++;
	if (pool.queued > 0)
		dispatch();
}

/*
 * Ask for admission.
 */
static void
submit(Session *session, const PgAdmClaim *claim, bool may_wait)
{
	PgAdmPolicyInput input = {
		.claim = *claim,
		.capacity = pool.capacity,
		.room = pgadm_pool_room(&pool),
		.queued = pool.queued,
		.queue_capacity = -1,
		.may_wait = may_wait,
		.may_refuse = !session->priority,
	};
	PgAdmVerdict verdict = PGADM_RUN;
	PgAdmReason reason;
	int			needed = 0;

	for (int i = 0; i < SESSIONS; i++)
		if (sessions[i].waiter.state == PGADM_WAITING)
			needed += sessions[i].waiter.claim.workers;

	if (!pgadm_policy_runs_at_once(claim, input.room.workers, pool.queued, false))
	{
		PgAdmOrder	order;

		if (pool.queued > 0)
		{
			pgadm_order_look(&pool, now, &order);
			input.room = session->priority ? order.priority_room : order.room;
		}
		verdict = pgadm_policy_decide(&input, &reason);
	}

	if (claim->memory == 0 && pool.capacity.workers - pool.usage.workers_used >= needed + claim->workers)
		promise(ARRIVAL_NOT_HELD_BACK, verdict == PGADM_RUN);
	switch (verdict)
	{
		case PGADM_RUN:
		case PGADM_FORCE:
			charge(session, claim, verdict == PGADM_FORCE);
			run(session);
			break;
		case PGADM_QUEUE:
			session->waiter.priority = session->priority;
			session->waiter.claim = *claim;
			session->waiter.resumes = session->entry >= 0;
			session->waits_since = now;
			session->timed_out = false;
			pgadm_order_join(&pool, &session->waiter);
			waited++;
			schedule(now + WAITER_LOOK, LOOK, session);
			if (chance(load.give_up))
				schedule(now + exponential(2 * SECOND), GIVE_UP, session);
			break;
		case PGADM_REJECT:
			end_query(session);
			break;
	}
}

/*
 * A process looks whether its wait is over.
 */
static void
poll(Session *session)
{
	PgAdmWaiter *waiter = &session->waiter;
	bool		is_next;

	if (waiter->state == PGADM_HANDED_OFF)
	{
		waiter->state = PGADM_NOT_WAITING;
		run(session);
	}
	else if (waiter->state == PGADM_WAITING)
	{
		bool		timed_out = session->timed_out ||
			pgadm_policy_never_fits(&waiter->claim, &pool.capacity) != PGADM_REASON_NONE;

		is_next = pgadm_order_answer(&pool, waiter, now);
		if (is_next || timed_out)
			pgadm_order_leave(&pool, waiter);
		if (is_next)
		{
			charge(session, &waiter->claim, false);
			run(session);
		}
		else if (timed_out)
			end_query(session);
		dispatch();
	}
}

/*
 * It stands in the way of others, so it goes on at once.
 */
static void
force(Session *session)
{
	pgadm_order_leave(&pool, &session->waiter);
	charge(session, &session->waiter.claim, true);
	run(session);
	dispatch();
}

static void
cancel(Session *session)
{
	PgAdmWaiter *waiter = &session->waiter;

	if (waiter->state == PGADM_WAITING)
	{
		pgadm_order_leave(&pool, waiter);
		session->workers = 0;
	}
	else if (waiter->state == PGADM_HANDED_OFF)
		waiter->state = PGADM_NOT_WAITING;
	else
		return;
	end_query(session);
	dispatch();
}

/*
 * The query has done what it was asked for.  It ends, or is suspended.
 */
static void
run_ends(Session *session)
{
	PgAdmChange change = {.workers = -session->workers};

	if (!session->suspends)
	{
		end_query(session);
		return;
	}
	session->suspends = false;
	session->workers = 0;
	pgadm_pool_change(&pool, &session->holdings, session->entry, &change, now);
	if (pool.queued > 0)
		dispatch();
	if (chance(load.cursor))
		schedule(now + between(50 * MS, 15 * SECOND), chance(0.5) ? RESUME : END, session);
	else
		schedule(now + between(100, 20 * MS), END, session);
}

static void
resume(Session *session)
{
	PgAdmClaim	claim = session->waiter.claim;

	claim.memory = 0;
	session->priority = true;
	submit(session, &claim, true);
}

static void
lend(Session *session, bool lent)
{
	PgAdmEntry *entry = &session->holdings.entries[session->entry];

	if (entry->workers == 0 || entry->lent == lent)
		return;
	pgadm_pool_set_lent(&pool, entry, lent);
	if (lent)
		dispatch();
	else
		disturbed_at = now;
}

static void
new_capacity(void)
{
	pool.capacity.workers = between(1, chance(0.5) ? 4 : 16);
	pool.capacity.memory = 1000 * between(1, 3);
	disturbed_at = now;
	dispatch();
	for (int i = 0; i < SESSIONS; i++)
		if (sessions[i].waiter.state != PGADM_NOT_WAITING)
			schedule(now + between(20, MAX_ANSWER), WAKE, &sessions[i]);
	schedule(now + between(10 * SECOND, 3 * PHASE), NEW_CAPACITY, NULL);
}

/* ---- the load ---- */

static int64
longest_run(void)
{
	return load.max_service_us + (load.stop > 0 ? MAX_STOP : 0);
}

static void
new_phase(void)
{
	int64		before = longest_run();
	double		mean_workers;
	double		rho = ONE_OF(0.3, 0.9, 1.2, 3);

	load.service_us = (int64) ONE_OF(2 * MS, 20 * MS, 200 * MS, 2000 * MS);
	load.max_service_us = Min(10 * load.service_us, 5 * SECOND);
	load.bursts = ONE_OF(0, 0.01, 0.2);
	load.priority = ONE_OF(0, 0.02, 0.5, 0.98, 1);
	load.big = ONE_OF(0, 0.02, 0.3, 1);
	load.big_priority = ONE_OF(0, 0.02, 0.3, 1);
	load.memory = ONE_OF(0, 0, 0.1, 0.5, 1);
	load.much_memory = ONE_OF(0, 0.05, 0.5);
	load.suspend = ONE_OF(0, 0.1, 0.8);
	load.cursor = ONE_OF(0, 0, 0.05, 0.5);
	load.lend = ONE_OF(0, 0, 0.02, 0.3);
	load.stop = ONE_OF(0, 0, 0.01, 0.2);
	load.give_up = ONE_OF(0, 0, 0.05, 0.5);
	mean_workers = 1 + 1.5 * ((1 - load.priority) * load.big + load.priority * load.big_priority);
	load.interval_us = Max(load.service_us * mean_workers / pool.capacity.workers / rho, 1);
	if (load.bursts > 0)
		load.interval_us *= 1 + 10 * load.bursts;

	service_bound = Max(before, longest_run());
	disturbed_at = now;
	schedule(now + PHASE, NEW_PHASE, NULL);
}

static Session *
free_session(bool priority)
{
	Session    *found = NULL;
	int			same = 0;

	for (int i = 0; i < SESSIONS; i++)
	{
		if (!sessions[i].busy)
			found = &sessions[i];
		else
			same += sessions[i].priority == priority;
	}
	return same < SESSIONS_OF_A_KIND ? found : NULL;
}

static void
arrive_one(void)
{
	bool		priority = chance(load.priority);
	Session    *session = free_session(priority);
	PgAdmClaim	claim = {.workers = 1};

	if (session == NULL)
		return;
	if (chance(priority ? load.big_priority : load.big))
		claim.workers = between(2, 4);
	if (chance(0.01))
		claim.workers = 16;
	if (chance(load.memory))
		claim.memory = chance(load.much_memory) ?
			between(pool.capacity.memory / 2, pool.capacity.memory) :
			between(1, pool.capacity.memory / 20);

	session->busy = true;
	session->query++;
	session->priority = priority;
	session->entry = -1;
	session->workers = 0;
	session->memory = 0;
	session->stopped_until = 0;
	session->suspends = chance(load.suspend);
	submit(session, &claim, !chance(0.0005));
}

static void
arrive(void)
{
	int			n = chance(load.bursts) ? 10 : 1;

	while (n-- > 0)
		arrive_one();
	schedule(now + exponential(load.interval_us), ARRIVE, NULL);
}

/* ---- steps ---- */

static void
step_of_session(Session *session, Kind kind)
{
	switch (kind)
	{
		case WAKE:
			poll(session);
			break;
		case LOOK:
			if (session->waiter.state == PGADM_NOT_WAITING)
				break;
			schedule(now + WAITER_LOOK, LOOK, session);
			if (session->waiter.state == PGADM_WAITING && chance(0.0005))
				force(session);
			else
				poll(session);
			break;
		case GIVE_UP:
			if (chance(0.5))
				cancel(session);
			else
			{
				session->timed_out = true;
				poll(session);
			}
			break;
		case LEND:
		case TAKE_BACK:
			lend(session, kind == LEND);
			break;
		case RUN_ENDS:
			run_ends(session);
			break;
		case RESUME:
			resume(session);
			break;
		default:
			end_query(session);
			break;
	}
}

static bool
needs_its_process(Kind kind)
{
	return kind == WAKE || kind == LOOK || kind == GIVE_UP;
}

/*
 * Returns whether that was one.
 */
static bool
step(void)
{
	Event		event = next_event();
	Session    *session = &sessions[event.session];

	now = event.at;
	switch (event.kind)
	{
		case ARRIVE:
			arrive();
			break;
		case SAMPLE:
			dispatch();
			schedule(now + SAMPLER_LOOK, SAMPLE, NULL);
			break;
		case NEW_CAPACITY:
			new_capacity();
			break;
		case NEW_PHASE:
			new_phase();
			break;
		default:
			if (event.query != session->query)
				return false;
			if (needs_its_process(event.kind) && session->stopped_until > now)
			{
				schedule(session->stopped_until, event.kind, session);
				return false;
			}
			step_of_session(session, event.kind);
			break;
	}
	counts[event.kind]++;
	return true;
}

/* ---- checks ---- */

static void
check_sums(void)
{
	PgAdmUsage	sums = {0};

	for (int i = 0; i < SESSIONS; i++)
	{
		/* A session has one query at a time, so one entry. */
		const PgAdmEntry *entry = &sessions[i].holdings.entries[0];

		promise(SUMS, entry->count >= 0 && entry->workers >= 0 && entry->memory >= 0);
		if (entry->count > 0)
			pgadm_pool_account(&sums, entry, 1);
	}
	promise(SUMS, memcmp(&sums, &pool.usage, sizeof(sums)) == 0);
}

static void
check_lists(void)
{
	dlist_iter	iter;
	int			waiting = 0;
	int			linked = 0;

	for (int i = 0; i < SESSIONS; i++)
		waiting += sessions[i].waiter.state == PGADM_WAITING;
	dlist_foreach(iter, &pool.priority)
		linked += dlist_container(PgAdmWaiter, link, iter.cur)->priority;
	dlist_foreach(iter, &pool.ordinary)
		linked += !dlist_container(PgAdmWaiter, link, iter.cur)->priority;
	promise(LISTS, waiting == pool.queued && linked == waiting);
}

/*
 * One that was notified may be slow, but not for ever.
 */
static void
check_notified(void)
{
	promise(NOTIFIED, pool.notified == NULL ||
			(pool.notified->state == PGADM_WAITING &&
			 now - pool.notified_at <= PGADM_ORDER_RESPONSE_MS * MS + SAMPLER_LOOK));
}

static void
check_wakeup(void)
{
	PgAdmOrder	order;
	PgAdmResources room = pgadm_pool_room(&pool);

	pgadm_order_look(&pool, now, &order);
	promise(WAKEUP, order.next == NULL || order.overdue || pool.notified != NULL);
	saved_up_steps += order.room.workers < room.workers || order.room.memory < room.memory;
}

static int64
needed_memory(const PgAdmClaim *claim)
{
	return pgadm_policy_memory(claim, pool.capacity.memory);
}

static int
needed_workers(const PgAdmClaim *claim)
{
	return pgadm_policy_workers(claim, pool.capacity.workers);
}

/*
 * While nobody is being notified: does a waiter fit that must not be held back?
 */
static void
check_idle(void)
{
	PgAdmResources room = pgadm_pool_room(&pool);
	bool		patient = true;
	int			workers = 0;
	bool		one_fits = false;
	bool		one_without_memory = false;

	if (pool.notified != NULL)
		return;
	for (int i = 0; i < SESSIONS; i++)
	{
		const PgAdmWaiter *waiter = &sessions[i].waiter;

		if (waiter->state != PGADM_WAITING)
			continue;
		workers += needed_workers(&waiter->claim);
		patient &= now - sessions[i].waits_since < PGADM_ORDER_PATIENCE_MS * MS;
		if (waiter->unresponsive)
			continue;
		one_without_memory |= waiter->claim.memory == 0;
		one_fits |= pgadm_policy_fits(&waiter->claim, &pool.capacity, &room);
	}
	promise(NOTHING_IDLE, !(patient && one_fits));
	promise(NOT_HELD_BACK, !(one_without_memory && workers <= room.workers));
}

/*
 * The first of a list that is there and not kept from its turn by the idle.
 */
static const Session *
first_of(dlist_head *list)
{
	dlist_iter	iter;

	dlist_foreach(iter, list)
	{
		PgAdmWaiter *waiter = dlist_container(PgAdmWaiter, link, iter.cur);
		int64		memory = needed_memory(&waiter->claim);

		if (!waiter->unresponsive &&
			pgadm_policy_never_fits(&waiter->claim, &pool.capacity) == PGADM_REASON_NONE &&
			(memory == 0 || memory <= pool.capacity.memory - pool.usage.memory_idle))
			return session_of(waiter);
	}
	return NULL;
}

static int64
bound(void)
{
	return 2 * PGADM_ORDER_PATIENCE_MS * MS + 5 * service_bound +
		PGADM_ORDER_RESPONSE_MS * MS + 2 * SAMPLER_LOOK + WAITER_LOOK;
}

static void
check_first(First *first, dlist_head *list, bool priority)
{
	const Session *session = first_of(list);

	if (session == NULL || session != first->session || session->query != first->query)
	{
		first->session = session;
		first->query = session != NULL ? session->query : 0;
		first->since = now;
		return;
	}
	first->since = Max(first->since, disturbed_at);
	worst[priority] = Max(worst[priority], (double) (now - first->since) / bound());
	promise(priority ? PRIORITY_BOUND : ORDINARY_BOUND, now - first->since <= bound());
}

static void
check(void)
{
	check_sums();
	check_lists();
	check_notified();
	if (pool.queued > 0)
	{
		queued_steps++;
		check_wakeup();
		check_idle();
	}
	check_first(&firsts[false], &pool.ordinary, false);
	check_first(&firsts[true], &pool.priority, true);
}

static double
seconds(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

static void
report(long steps, double took)
{
	diag("%ld steps of %d, %.0f s of virtual time, in %.1f s: %.0f steps/s",
		 steps, ALL_STEPS, now / 1e6, took, steps / took);
	diag("%ld admitted, %ld had waited, %ld were handed their charge, %d at once at most",
		 admitted, waited, handed_off, most_at_once);
	diag("a queue in %ld steps, something saved up in %ld", queued_steps, saved_up_steps);
	diag("%ld lent, %ld resumed, %ld gave up, %ld capacities, %ld phases",
		 counts[LEND], counts[RESUME], counts[GIVE_UP], counts[NEW_CAPACITY], counts[NEW_PHASE]);
	diag("the longest wait of a first, as part of the bound: %.2f ordinary, %.2f priority",
		 worst[false], worst[true]);
}

int
main(int argc, char **argv)
{
	const char *setting = argc > 1 ? argv[1] : getenv("PGADM_SIM_STEPS");
	long		steps = setting != NULL ? atol(setting) : DEFAULT_STEPS;
	double		began = seconds();

	random_state = argc > 2 ? atol(argv[2]) : 1;
	pgadm_pool_init(&pool);
	now = SECOND;
	new_capacity();
	new_phase();
	schedule(now, SAMPLE, NULL);
	schedule(now, ARRIVE, NULL);
	for (long i = 0; i < steps;)
	{
		if (!step())
			continue;
		check();
		i++;
	}

	report(steps, seconds() - began);
	is_bool(queued_steps > steps / 10 && saved_up_steps > steps / 1000, true,
			"there was something to be seen");
	for (int i = 0; i < lengthof(promises); i++)
		is_int(broken[i], 0, promises[i]);
	return done_testing();
}
