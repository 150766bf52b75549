/*-------------------------------------------------------------------------
 *
 * policy_test.c
 *		Unit tests of src/policy.c, as a program that prints TAP.
 *
 *		cc -I$(pg_config --includedir-server) -iquote src -Itest/unit \
 *			test/unit/policy_test.c src/policy.c
 *
 * Needs the server's headers, links nothing of the server.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  test/unit/policy_test.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "policy.h"
#include "tap.h"

/* the tables below leave out what is zero */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

#define MB		INT64CONST(1048576)
#define FIXED	.fixed_workers = true
#define ALONE	.alone = true
#define CHARGED	.ignores_memory = true

/* A capacity of 4 workers and 100 MB, of which that much is used */
#define USED(w, m)	{4, 100 * MB}, {4 - (w), (100 - (m)) * MB}

/* The same, all of it saved up for a waiter */
#define SAVED_UP	{4, 100 * MB}, {0, 0}

/* Queries of the usual kind, which may wait and be refused; or not */
#define FIRST	.may_wait = true, .may_refuse = true
#define LATER	.may_wait = true
#define BUSY	.may_wait = false

static const char *const verdicts[] = {"run", "force", "queue", "reject"};
static const char *const reasons[] = {
	"none", "queue_full", "queue_timeout", "cpu_overload", "breaker",
	"connection", "memory", "workers"
};

/*
 * What a claim takes, and whether it fits now or ever.
 */
static const struct
{
	const char *name;
	PgAdmClaim	claim;
	PgAdmResources capacity;
	PgAdmResources room;
	int			workers;
	int64		memory;
	bool		fits;
	PgAdmReason never;
}			claims[] =
{
	{"one worker, empty server", {1}, USED(0, 0), 1, 0, true},
	{"the last worker", {1}, USED(3, 0), 1, 0, true},
	{"no worker left", {1}, USED(4, 0), 1, 0, false},
	{"capacity exceeded by others", {1}, USED(9, 0), 1, 0, false},
	{"all workers", {4}, USED(0, 0), 4, 0, true},
	{"all workers, one used", {4}, USED(1, 0), 4, 0, false},
	{"a plan with more than all is clamped", {5}, USED(0, 0), 4, 0, true},
	{"... and waits for all", {5}, USED(1, 0), 4, 0, false},
	{"the operator's word is not clamped", {5, .fixed_workers = true}, USED(0, 0), 5, 0, false, PGADM_REASON_WORKERS},
	{"the operator's word that fits", {4, .fixed_workers = true}, USED(0, 0), 4, 0, true},
	{"a capacity of one", {8}, {1, 100 * MB}, {1, 100 * MB}, 1, 0, true},
	{"no capacity at all is one", {8}, {0, 100 * MB}, {0, 100 * MB}, 1, 0, false, PGADM_REASON_WORKERS},
	{"memory that is there", {1, 40 * MB}, USED(0, 60), 1, 40 * MB, true},
	{"memory, one byte short", {1, 40 * MB + 1}, USED(0, 60), 1, 40 * MB + 1, false},
	{"all memory", {1, 100 * MB}, USED(0, 0), 1, 100 * MB, true},
	{"more memory than there is", {1, 100 * MB + 1}, USED(0, 0), 1, 100 * MB + 1, false, PGADM_REASON_MEMORY},
	{"no memory needed, none left", {1}, USED(0, 100), 1, 0, true},
	{"no memory needed, exceeded by others", {1}, USED(0, 300), 1, 0, true},
	{"memory, but no worker", {1, MB}, USED(4, 0), 1, MB, false},
	{"holding a charge: memory is no matter", {1, 90 * MB, CHARGED}, USED(0, 60), 1, 90 * MB, true},
	{"... but a worker is", {1, 90 * MB, CHARGED}, USED(4, 60), 1, 90 * MB, false},
	{"... and more than there is never fits", {1, 101 * MB, CHARGED}, USED(0, 0), 1, 101 * MB, true, PGADM_REASON_MEMORY},
	{"alone: more than there is takes it all", {1, 500 * MB, ALONE}, USED(0, 0), 1, 100 * MB, true},
	{"alone: not while others hold any", {1, 500 * MB, ALONE}, USED(0, 1), 1, 100 * MB, false},
	{"alone: less than all is as ever", {1, 50 * MB, ALONE}, USED(0, 50), 1, 50 * MB, true},
	{"both are too much: memory is the reason", {9, 101 * MB, FIXED}, USED(0, 0), 9, 101 * MB, false, PGADM_REASON_MEMORY},
	{"unlimited memory", {1, PG_INT64_MAX / 2}, {4, PG_INT64_MAX}, {4, PG_INT64_MAX}, 1, PG_INT64_MAX / 2, true},
	{"no memory at all, no memory needed", {1}, {4, 0}, {4, 0}, 1, 0, true},
	{"no memory at all, any memory needed", {1, 1}, {4, 0}, {4, 0}, 1, 1, false, PGADM_REASON_MEMORY},
};

/*
 * What becomes of a query that arrives.
 */
static const struct
{
	const char *name;
	PgAdmPolicyInput in;
	PgAdmVerdict verdict;
	PgAdmReason reason;
}			decisions[] =
{
	{"runs if it fits", {{1}, USED(0, 0), 0, 16, FIRST}, PGADM_RUN},
	{"runs, whatever the queue", {{1}, USED(3, 0), 16, 16, FIRST}, PGADM_RUN},
	{"runs, without any queue", {{1}, USED(3, 0), 0, 0, FIRST}, PGADM_RUN},
	{"waits if it does not fit", {{1}, USED(4, 0), 0, 16, FIRST}, PGADM_QUEUE},
	{"waits in the last place", {{1}, USED(4, 0), 15, 16, FIRST}, PGADM_QUEUE},
	{"is refused when the queue is full", {{1}, USED(4, 0), 16, 16, FIRST}, PGADM_REJECT, PGADM_REASON_QUEUE_FULL},
	{"is refused when it is more than full", {{1}, USED(4, 0), 40, 16, FIRST}, PGADM_REJECT, PGADM_REASON_QUEUE_FULL},
	{"is refused without a queue", {{1}, USED(4, 0), 0, 0, FIRST}, PGADM_REJECT, PGADM_REASON_QUEUE_FULL},
	{"waits in an unbounded queue", {{1}, USED(4, 0), 1000000, -1, FIRST}, PGADM_QUEUE},
	{"waits for memory", {{1, 50 * MB}, USED(1, 60), 0, 16, FIRST}, PGADM_QUEUE},
	{"is refused for memory when the queue is full", {{1, 50 * MB}, USED(1, 60), 16, 16, FIRST}, PGADM_REJECT, PGADM_REASON_QUEUE_FULL},

	{"waits while what is free is saved up", {{1}, SAVED_UP, 1, 16, FIRST}, PGADM_QUEUE},
	{"is refused while it is saved up and the queue is full", {{1}, SAVED_UP, 16, 16, FIRST}, PGADM_REJECT, PGADM_REASON_QUEUE_FULL},

	{"not refusable: runs if it fits", {{1}, USED(0, 0), 0, 16, LATER}, PGADM_RUN},
	{"not refusable: waits", {{1}, USED(4, 0), 0, 16, LATER}, PGADM_QUEUE},
	{"not refusable: waits though the queue is full", {{1}, USED(4, 0), 16, 16, LATER}, PGADM_QUEUE},
	{"not refusable: forced without a queue", {{1}, USED(4, 0), 0, 0, LATER}, PGADM_FORCE},
	{"not refusable: waits in an unbounded queue", {{1}, USED(4, 0), 99, -1, LATER}, PGADM_QUEUE},

	{"may not wait: runs if it fits", {{1}, USED(0, 0), 0, 16, BUSY}, PGADM_RUN},
	{"may not wait: forced", {{1}, USED(4, 0), 0, 16, BUSY}, PGADM_FORCE},
	{"may not wait: forced for memory", {{1, 50 * MB}, USED(0, 90), 0, 16, BUSY}, PGADM_FORCE},
	{"may not wait: forced though it is saved up", {{1}, SAVED_UP, 1, 16, BUSY}, PGADM_FORCE},
	{"may not wait, though it could be refused: forced", {{1}, USED(4, 0), 16, 16, .may_refuse = true}, PGADM_FORCE},

	{"never fits: memory", {{1, 101 * MB}, USED(0, 0), 0, 16, FIRST}, PGADM_REJECT, PGADM_REASON_MEMORY},
	{"never fits: workers", {{5, FIXED}, USED(0, 0), 0, 16, FIRST}, PGADM_REJECT, PGADM_REASON_WORKERS},
	{"never fits, not refusable for overload", {{1, 101 * MB}, USED(0, 0), 0, 16, LATER}, PGADM_REJECT, PGADM_REASON_MEMORY},
	{"never fits, may not wait", {{5, FIXED}, USED(0, 0), 0, 16, BUSY}, PGADM_REJECT, PGADM_REASON_WORKERS},
	{"never fits comes before a full queue", {{1, 101 * MB}, USED(4, 0), 16, 16, FIRST}, PGADM_REJECT, PGADM_REASON_MEMORY},
	{"alone: waits for the others", {{1, 500 * MB, ALONE}, USED(1, 1), 0, 16, FIRST}, PGADM_QUEUE},
	{"alone: runs on an empty server", {{1, 500 * MB, ALONE}, USED(0, 0), 0, 16, FIRST}, PGADM_RUN},

	{"breaker: refused though it fits", {{1}, USED(0, 0), 0, 16, .breaker_tripped = true, FIRST}, PGADM_REJECT, PGADM_REASON_BREAKER},
	{"breaker: not refusable runs", {{1}, USED(0, 0), 0, 16, .breaker_tripped = true, LATER}, PGADM_RUN},
	{"breaker: comes before shedding", {{1}, USED(0, 0), 0, 16, .breaker_tripped = true, .shed = true, FIRST}, PGADM_REJECT, PGADM_REASON_BREAKER},
	{"breaker: comes after never fits", {{1, 101 * MB}, USED(0, 0), 0, 16, .breaker_tripped = true, FIRST}, PGADM_REJECT, PGADM_REASON_MEMORY},
	{"shed: refused though it fits", {{1}, USED(0, 0), 0, 16, .shed = true, FIRST}, PGADM_REJECT, PGADM_REASON_CPU_OVERLOAD},
	{"shed: refused before it would wait", {{1}, USED(4, 0), 0, -1, .shed = true, FIRST}, PGADM_REJECT, PGADM_REASON_CPU_OVERLOAD},
	{"shed: not refusable waits", {{1}, USED(4, 0), 0, 16, .shed = true, LATER}, PGADM_QUEUE},
};

/*
 * Every combination of small numbers.  The fast path must say the same as the
 * full decision wherever it is asked, and be of use.
 */
static void
compare_fast_path(void)
{
	int64		compared = 0;
	int64		at_once = 0;
	int64		wrong = 0;
	int64		needless = 0;

	for (uint32 n = 0; n < 3 * 3 * 3 * 4 * 4 * 5 * 4 * 4 * (1 << 7); n++)
	{
		uint32		m = n;
		PgAdmPolicyInput in;
		PgAdmReason reason;
		bool		runs;
		bool		decided;

#define NEXT(choices, target) do { (target) = m % (choices); m /= (choices); } while (0)
		memset(&in, 0, sizeof(in));
		NEXT(3, in.claim.memory);
		NEXT(3, in.claim.least_memory);
		NEXT(3, in.capacity.memory);
		NEXT(4, in.claim.workers);
		NEXT(4, in.capacity.workers);
		NEXT(5, in.room.workers);
		NEXT(4, in.room.memory);
		NEXT(4, in.queue_capacity);
		NEXT(2, in.queued);
		NEXT(2, in.claim.fixed_workers);
		NEXT(2, in.claim.alone);
		NEXT(2, in.claim.ignores_memory);
		NEXT(2, in.may_wait);
		NEXT(2, in.may_refuse);
		NEXT(2, in.shed);
#undef NEXT
		in.claim.workers++;
		in.queue_capacity--;
		in.breaker_tripped = in.shed && (n & 1);
		/* more may be used than there is */
		in.room.workers = in.capacity.workers - in.room.workers;
		in.room.memory = in.capacity.memory - in.room.memory;

		runs = pgadm_policy_runs_at_once(&in.claim, in.room.workers, in.queued,
										 in.shed || in.breaker_tripped);
		decided = pgadm_policy_decide(&in, &reason) == PGADM_RUN;
		compared++;
		at_once += runs;
		wrong += runs && !decided;
		needless += decided && !runs && in.queued == 0 && !in.shed &&
			in.claim.memory == 0 && !in.claim.fixed_workers &&
			in.claim.workers <= in.capacity.workers;
	}
	printf("# %ld combinations, %ld run at once\n", (long) compared, (long) at_once);
	is_bool(compared > 1000000 && at_once > 10000, true, "many were compared");
	is_int(wrong, 0, "the fast path lets nothing run that must not");
	is_int(needless, 0, "the fast path lets all run that need no decision");
}

/*
 * Before planning, of queries whose plan is not known: those that would be
 * refused for overload whatever it is.
 */
static void
ask_before_planning(void)
{
	for (int i = 0; i < lengthof(decisions); i++)
	{
		PgAdmReason expected = decisions[i].reason;

		if (expected == PGADM_REASON_MEMORY || expected == PGADM_REASON_WORKERS)
			expected = PGADM_REASON_NONE;
		is_string(reasons[pgadm_policy_before_planning(&decisions[i].in)],
				  reasons[expected], decisions[i].name);
	}
}

int
main(void)
{
	for (int i = 0; i < lengthof(claims); i++)
	{
		const char *name = claims[i].name;

		is_int(pgadm_policy_workers(&claims[i].claim, claims[i].capacity.workers),
			   claims[i].workers, name);
		is_int(pgadm_policy_memory(&claims[i].claim, claims[i].capacity.memory),
			   claims[i].memory, name);
		is_bool(pgadm_policy_fits(&claims[i].claim, &claims[i].capacity,
								  &claims[i].room),
				claims[i].fits, name);
		is_string(reasons[pgadm_policy_never_fits(&claims[i].claim, &claims[i].capacity)],
				  reasons[claims[i].never], name);
	}

	for (int i = 0; i < lengthof(decisions); i++)
	{
		PgAdmReason reason = PGADM_REASON_CONNECTION;
		PgAdmVerdict verdict = pgadm_policy_decide(&decisions[i].in, &reason);

		is_string(verdicts[verdict], verdicts[decisions[i].verdict],
				  decisions[i].name);
		is_string(reasons[reason], reasons[decisions[i].reason],
				  decisions[i].name);
	}

	compare_fast_path();
	ask_before_planning();

	return done_testing();
}
