/*-------------------------------------------------------------------------
 *
 * order_test.c
 *		Unit tests of src/order.c and src/pool.c, as a program that prints TAP.
 *
 *		Links: src/order.c src/pool.c src/policy.c
 *
 * Who is next is told by tables of steps.  What comes of it in the long run is
 * order_sim_test.c's.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  test/unit/order_test.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "order.h"
#include "tap.h"

/* the tables below leave out what is zero */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

#define MS			INT64CONST(1000)
#define START		(1000000 * MS)

typedef enum Op
{
	END_OF_STEPS,
	DO_USE,						/* so much of 4 workers and 100 bytes */
	DO_IDLE,					/* so much of that memory is held idle */
	DO_AT,						/* so many ms after the start */
	DO_JOIN,
	DO_JOIN_FIXED,				/* the operator's word */
	DO_JOIN_PRIORITY,
	DO_LEAVE,
	DO_UNRESPONSIVE,
	DO_LOOK,
	/* expected */
	SEE_NEXT,
	SEE_OVERDUE,
	SEE_ROOM,
	SEE_PRIORITY_ROOM,
	SEE_TURN,
	SEE_ANSWER,
	SEE_LACKS,
	SEE_SHORTAGE,
} Op;

typedef struct Step
{
	Op			op;
	char		who;			/* 'A' to 'E', or 0 */
	int			a;
	int			b;
} Step;

#define USE(w, m)			{DO_USE, 0, w, m}
#define IDLE(m)				{DO_IDLE, 0, m}
#define AT(ms)				{DO_AT, 0, ms}
#define JOIN(who, w, m)		{DO_JOIN, who, w, m}
#define FIXED(who, w, m)	{DO_JOIN_FIXED, who, w, m}
#define PRIORITY(who, w, m)	{DO_JOIN_PRIORITY, who, w, m}
#define LEAVE(who)			{DO_LEAVE, who}
#define STOPPED(who)		{DO_UNRESPONSIVE, who}
#define LOOK				{DO_LOOK}
#define NEXT(who)			{SEE_NEXT, who}
#define NOBODY				{SEE_NEXT, 0}
#define OVERDUE(who)		{SEE_OVERDUE, who}
#define ROOM(w, m)			{SEE_ROOM, 0, w, m}
#define PRIORITY_ROOM(w, m)	{SEE_PRIORITY_ROOM, 0, w, m}
#define NOTIFY(who)			{SEE_TURN, who, PGADM_TURN_NOTIFY}
#define HAND_OFF(who)		{SEE_TURN, who, PGADM_TURN_HAND_OFF}
#define NO_TURN				{SEE_TURN, 0, PGADM_TURN_NONE}
#define ANSWER(who, yes)	{SEE_ANSWER, who, yes}
#define LACKS(who, w, m)	{SEE_LACKS, who, w, m}
#define SHORT_OF(who, what)	{SEE_SHORTAGE, who, PGADM_SHORT_OF_##what}

static const struct
{
	const char *name;
	Step		steps[24];
}			tables[] =
{
	{"in order of arrival", {
		USE(4, 0), JOIN('A', 1, 0), JOIN('B', 1, 0), NOBODY,
		USE(3, 0), NEXT('A'), LEAVE('A'), NEXT('B')
	}},
	{"those with priority first", {
		USE(3, 0), JOIN('A', 1, 0), PRIORITY('B', 1, 0), PRIORITY('C', 1, 0),
		NEXT('B'), LEAVE('B'), NEXT('C'), LEAVE('C'), NEXT('A')
	}},
	{"the first of the ordinary waiters is overdue, once for each time", {
		USE(4, 0), JOIN('A', 1, 0), JOIN('B', 1, 0), PRIORITY('C', 1, 0), LOOK,
		USE(3, 0), AT(999), NEXT('C'), AT(1000), OVERDUE('A'), LEAVE('A'), NEXT('C'),
		LEAVE('C'), AT(1001), PRIORITY('D', 1, 0), NEXT('D'), AT(1999), NEXT('D'),
		AT(2000), OVERDUE('B')
	}},
	{"without priority nobody is overdue", {
		USE(3, 0), JOIN('A', 1, 0), LOOK, AT(1000), NEXT('A')
	}},
	{"a smaller one passes", {
		USE(2, 0), JOIN('A', 4, 0), JOIN('B', 1, 0), NEXT('B'), LEAVE('B'), ROOM(2, 100)
	}},
	{"a smaller one passes for memory", {
		USE(0, 90), JOIN('A', 1, 20), JOIN('B', 1, 10), NEXT('B')
	}},
	{"with patience, it does not", {
		USE(2, 0), JOIN('A', 4, 0), JOIN('B', 1, 0), LOOK,
		AT(999), NEXT('B'), AT(1000), NOBODY, ROOM(0, 100), USE(1, 0), NOBODY,
		USE(0, 0), NEXT('A')
	}},
	{"patience begins with the first look at it as the head", {
		USE(4, 0), JOIN('A', 1, 0), JOIN('B', 4, 0), JOIN('C', 1, 0), LOOK,
		AT(900), LEAVE('A'), USE(2, 0), NEXT('C'), AT(1800), NEXT('C'), AT(1900), NOBODY
	}},
	{"who lacks memory keeps what workers it needs", {
		USE(1, 60), JOIN('A', 2, 50), LOOK, AT(1000), ROOM(1, 0),
		JOIN('B', 1, 10), NOBODY, JOIN('C', 2, 0), NOBODY, JOIN('D', 1, 0), NEXT('D')
	}},
	{"who lacks workers keeps all, and the memory it needs", {
		USE(2, 0), JOIN('A', 4, 30), LOOK, AT(1000), ROOM(0, 70),
		JOIN('B', 1, 0), NOBODY
	}},
	{"who lacks both keeps both", {
		USE(2, 80), JOIN('A', 4, 30), LOOK, AT(1000), ROOM(0, 0), JOIN('B', 1, 10), NOBODY
	}},
	{"who needs no memory keeps none", {
		USE(2, 80), JOIN('A', 4, 0), LOOK, AT(1000), ROOM(0, 20)
	}},
	{"more is used than there is", {
		USE(6, 120), JOIN('A', 1, 10), LOOK, ROOM(-2, -20), AT(1000), ROOM(-2, -20)
	}},
	{"... of memory, which hinders nobody that needs none", {
		USE(1, 120), JOIN('A', 1, 10), JOIN('B', 1, 0), LOOK, AT(1000), NEXT('B')
	}},
	{"a head for each resource", {
		USE(1, 90), JOIN('A', 1, 50), JOIN('B', 4, 0), LOOK,
		AT(1000), ROOM(0, 0), LEAVE('A'), ROOM(0, 10)
	}},
	{"those behind a head hold back nothing", {
		USE(1, 90), JOIN('A', 1, 50), JOIN('B', 2, 20), LOOK,
		AT(1000), ROOM(2, 0), AT(5000), ROOM(2, 0), JOIN('C', 2, 0), NEXT('C')
	}},
	{"a head that is displaced is saved up for nevertheless", {
		USE(2, 0), JOIN('A', 3, 0), JOIN('B', 4, 0), JOIN('C', 1, 0), STOPPED('A'), LOOK,
		AT(500), ANSWER('A', false), AT(999), NEXT('C'), AT(1000), NOBODY, ROOM(0, 100)
	}},
	{"... and by one with priority", {
		USE(2, 0), JOIN('A', 4, 0), JOIN('C', 1, 0), LOOK, AT(500), PRIORITY('B', 3, 0), LOOK,
		AT(1000), NOBODY, ROOM(0, 100), USE(0, 0), OVERDUE('A')
	}},
	{"who needs what the idle hold is passed without a bound", {
		USE(1, 90), IDLE(60), JOIN('A', 1, 50), LOOK, AT(9000), ROOM(3, 10),
		JOIN('B', 3, 10), NEXT('B')
	}},
	{"... until they go on", {
		USE(1, 90), IDLE(60), JOIN('A', 1, 50), LOOK, AT(9000), IDLE(50), ROOM(3, 10),
		AT(9999), ROOM(3, 10), AT(10000), ROOM(2, 0), IDLE(51), ROOM(3, 10)
	}},
	{"nobody is saved up for that nobody has to wait for", {
		USE(0, 0), JOIN('A', 1, 0), JOIN('B', 4, 0), LOOK, AT(1000), NEXT('A'), ROOM(4, 100)
	}},
	{"notified first, then handed off", {
		USE(3, 0), JOIN('A', 1, 0), NOTIFY('A'), AT(4), NO_TURN, AT(5), HAND_OFF('A')
	}},
	{"not handed off while others have to wait for that", {
		USE(2, 0), JOIN('A', 4, 0), JOIN('B', 1, 0), NOTIFY('B'), AT(900), NO_TURN
	}},
	{"... but if these wait for something else", {
		USE(2, 90), JOIN('A', 1, 50), JOIN('B', 1, 0), NOTIFY('B'), AT(5), HAND_OFF('B')
	}},
	{"at most one has been notified", {
		USE(4, 0), JOIN('A', 1, 0), JOIN('B', 1, 0), NO_TURN, USE(2, 0), NOTIFY('A'),
		AT(1), NO_TURN, ANSWER('B', false), NO_TURN, ANSWER('A', true), LEAVE('A'),
		USE(3, 0), NOTIFY('B')
	}},
	{"who was notified and leaves makes way", {
		USE(3, 0), JOIN('A', 1, 0), JOIN('B', 1, 0), NOTIFY('A'), LEAVE('A'), NOTIFY('B')
	}},
	{"who comes too late is notified again", {
		USE(3, 0), JOIN('A', 1, 0), NOTIFY('A'), USE(4, 0), ANSWER('A', false), NO_TURN,
		USE(3, 0), AT(1), NOTIFY('A')
	}},
	{"who does not come is passed over, and keeps its place", {
		USE(3, 0), JOIN('A', 1, 0), JOIN('B', 1, 0), NOTIFY('A'), USE(4, 0), AT(999), NO_TURN,
		NEXT(0), AT(1000), NO_TURN, USE(3, 0), NOTIFY('B'), AT(1001), NEXT('B'),
		ANSWER('A', true), NEXT('A'), ANSWER('B', false)
	}},
	{"the overdue one is handed off likewise", {
		USE(4, 0), JOIN('A', 1, 0), PRIORITY('B', 1, 0), LOOK, AT(1000), USE(3, 0),
		NOTIFY('A'), AT(1005), HAND_OFF('A')
	}},
	{"what those with priority may take", {
		USE(1, 90), JOIN('A', 4, 0), LOOK, AT(500), PRIORITY_ROOM(3, 10), ROOM(3, 10),
		PRIORITY('B', 1, 20), LOOK, AT(999), PRIORITY_ROOM(3, 10), ROOM(3, 10),
		AT(1500), PRIORITY_ROOM(0, 0)
	}},
	{"what is saved up for those with priority nobody may take", {
		USE(1, 90), PRIORITY('A', 1, 50), LOOK, AT(1000), PRIORITY_ROOM(2, 0), ROOM(2, 0)
	}},
	{"what is saved up for others than the first, those with priority may take", {
		USE(1, 90), JOIN('A', 1, 50), JOIN('B', 4, 0), LOOK, AT(1000),
		PRIORITY_ROOM(2, 0), ROOM(0, 0)
	}},
	{"nobody waits", {USE(1, 90), NOBODY, NO_TURN, ROOM(3, 10), PRIORITY_ROOM(3, 10)}},
	/* overdue */
	{"the overdue one is saved up for before those with priority", {
		USE(2, 0), JOIN('A', 4, 0), PRIORITY('B', 1, 0), LOOK, AT(999), NEXT('B'),
		AT(1000), NOBODY, PRIORITY_ROOM(0, 100), ROOM(0, 100), LEAVE('B'),
		PRIORITY_ROOM(0, 100), USE(0, 0), PRIORITY('B', 1, 0), OVERDUE('A')
	}},
	{"... but once, whatever is kept beside it", {
		USE(1, 50), JOIN('A', 2, 60), PRIORITY('B', 1, 0), LOOK, AT(1000), NEXT('B'),
		LEAVE('B'), PRIORITY_ROOM(1, 0), ROOM(1, 0)
	}},
	{"a head with priority that has been that for longer goes first", {
		USE(2, 0), PRIORITY('A', 4, 0), LOOK, AT(100), JOIN('B', 1, 0), LOOK,
		AT(1100), NOBODY, AT(9000), NOBODY, USE(0, 0), NEXT('A'), LEAVE('A'), NEXT('B')
	}},
	{"... not one that has come later", {
		USE(4, 0), JOIN('B', 1, 0), LOOK, AT(100), PRIORITY('A', 4, 0), LOOK,
		AT(1200), USE(2, 0), OVERDUE('B')
	}},
	{"... nor one that needs what the idle hold", {
		USE(3, 90), PRIORITY('A', 1, 50), LOOK, AT(100), JOIN('B', 1, 0), PRIORITY('C', 1, 0),
		USE(4, 90), LOOK, IDLE(60), USE(3, 90), AT(1100), OVERDUE('B')
	}},
	{"one that is stopped does not stop the clock of those behind it", {
		USE(4, 0), JOIN('A', 1, 0), JOIN('B', 1, 0), PRIORITY('C', 1, 0), LOOK,
		AT(500), STOPPED('A'), LOOK, USE(3, 0), AT(999), NEXT('C'), AT(1000), OVERDUE('B')
	}},
	{"nor one that needs what the idle hold", {
		USE(4, 60), IDLE(60), JOIN('A', 1, 50), JOIN('B', 1, 0), PRIORITY('C', 1, 0), LOOK,
		USE(3, 60), AT(999), NEXT('C'), AT(1000), OVERDUE('B')
	}},
	{"... and its place is taken until the one that took it has left", {
		USE(2, 60), IDLE(60), JOIN('A', 1, 50), JOIN('B', 4, 0), PRIORITY('C', 1, 0), LOOK,
		AT(1000), NOBODY, IDLE(40), NOBODY, PRIORITY_ROOM(0, 40), LEAVE('B'), NEXT('C')
	}},
	/* never fits */
	{"nobody is saved up for that would not fit into all there is", {
		USE(2, 0), FIXED('A', 5, 0), JOIN('B', 1, 0), LOOK, AT(1000), NEXT('B'),
		LEAVE('B'), ROOM(2, 100)
	}},
	/* what is lacking */
	{"who comes too late lacks a worker", {
		USE(4, 0), JOIN('A', 1, 0), LACKS('A', 1, 0), SHORT_OF('A', WORKERS),
		JOIN('B', 3, 0), LACKS('B', 3, 0), USE(2, 0), LACKS('B', 1, 0), SHORT_OF('A', TURN)
	}},
	{"no more than all workers are lacking, unless the operator says so", {
		USE(1, 0), JOIN('A', 9, 0), LACKS('A', 1, 0), FIXED('B', 9, 0), LACKS('B', 6, 0)
	}},
	{"who comes too late lacks memory", {
		USE(1, 90), JOIN('A', 1, 50), LACKS('A', 0, 40), SHORT_OF('A', MEMORY),
		JOIN('B', 1, 10), LACKS('B', 0, 0), SHORT_OF('B', TURN)
	}},
	{"... and what was overdrawn, if it needs any", {
		USE(6, 120), JOIN('A', 1, 10), LACKS('A', 3, 30), JOIN('B', 1, 0), LACKS('B', 3, 0),
		SHORT_OF('B', WORKERS)
	}},
	{"who lacks both is said to lack memory", {
		USE(4, 90), JOIN('A', 1, 50), LACKS('A', 1, 40), SHORT_OF('A', MEMORY)
	}},
	{"who needs what the idle hold", {
		USE(1, 90), IDLE(50), JOIN('A', 1, 50), SHORT_OF('A', MEMORY), IDLE(51),
		SHORT_OF('A', IDLE_MEMORY), USE(1, 51), JOIN('B', 1, 49), SHORT_OF('B', TURN)
	}},
	{"who finds enough waits for its turn", {
		USE(2, 0), JOIN('A', 4, 0), JOIN('B', 2, 0), LOOK, AT(1000), NOBODY,
		LACKS('B', 0, 0), SHORT_OF('B', TURN), SHORT_OF('A', WORKERS)
	}},
};

static PgAdmPool pool;
static PgAdmWaiter waiters[5];
static int64 now;

static char
name_of(const PgAdmWaiter *waiter)
{
	return waiter == NULL ? '-' : 'A' + (waiter - waiters);
}

static void
see(bool seen, const char *table, int step, const char *what)
{
	ok(seen, "%s: step %d, %s", table, step, what);
}

static void
join(const Step *step)
{
	PgAdmWaiter *waiter = &waiters[step->who - 'A'];

	waiter->priority = step->op == DO_JOIN_PRIORITY;
	waiter->claim = (PgAdmClaim) {
		.workers = step->a,
		.memory = step->b,
		.fixed_workers = step->op == DO_JOIN_FIXED
	};
	pgadm_order_join(&pool, waiter);
}

static void
expect(const char *table, int n, const Step *step)
{
	PgAdmWaiter *who = step->who != 0 ? &waiters[step->who - 'A'] : NULL;
	PgAdmWaiter *waiter = NULL;
	PgAdmOrder	order;
	PgAdmTurn	turn;
	PgAdmResources lacks;

	switch (step->op)
	{
		case SEE_TURN:
			turn = pgadm_order_turn(&pool, now, &waiter);
			see(turn == step->a && (turn == PGADM_TURN_NONE || waiter == who),
				table, n, "turn");
			return;
		case SEE_ANSWER:
			see(pgadm_order_answer(&pool, who, now) == step->a, table, n, "answer");
			return;
		case SEE_LACKS:
			lacks = pgadm_order_lacks(&pool, &who->claim);
			see(lacks.workers == step->a && lacks.memory == step->b, table, n, "lacks");
			return;
		case SEE_SHORTAGE:
			see(pgadm_order_shortage(&pool, &who->claim) == step->a, table, n, "shortage");
			return;
		default:
			break;
	}

	pgadm_order_look(&pool, now, &order);
	if (step->op == SEE_NEXT || step->op == SEE_OVERDUE)
	{
		see(order.next == who && order.overdue == (step->op == SEE_OVERDUE),
			table, n, "next");
		if (order.next != who)
			diag("got %c, expected %c", name_of(order.next), name_of(who));
	}
	else
	{
		PgAdmResources room = step->op == SEE_ROOM ? order.room : order.priority_room;

		if (!ok(room.workers == step->a && room.memory == step->b,
				"%s: step %d, room", table, n))
			diag("got %d, %d, expected %d, %d", room.workers, (int) room.memory,
				 step->a, step->b);
	}
}

static void
do_step(const char *table, int n, const Step *step)
{
	PgAdmOrder	order;

	switch (step->op)
	{
		case DO_USE:
			pool.usage.workers_used = step->a;
			pool.usage.memory_used = step->b;
			break;
		case DO_IDLE:
			pool.usage.memory_idle = step->a;
			break;
		case DO_AT:
			now = START + step->a * MS;
			break;
		case DO_JOIN:
		case DO_JOIN_FIXED:
		case DO_JOIN_PRIORITY:
			join(step);
			break;
		case DO_LEAVE:
			pgadm_order_leave(&pool, &waiters[step->who - 'A']);
			break;
		case DO_UNRESPONSIVE:
			waiters[step->who - 'A'].unresponsive = true;
			break;
		case DO_LOOK:
			pgadm_order_look(&pool, now, &order);
			break;
		default:
			expect(table, n, step);
			break;
	}
}

static void
test_tables(void)
{
	for (int i = 0; i < lengthof(tables); i++)
	{
		pgadm_pool_init(&pool);
		pool.capacity = (PgAdmResources) {4, 100};
		memset(waiters, 0, sizeof(waiters));
		now = START;
		for (int j = 0; tables[i].steps[j].op != END_OF_STEPS; j++)
			do_step(tables[i].name, j + 1, &tables[i].steps[j]);
	}
}

/*
 * What is noted of a waiter, and of who is in which list.
 */
static void
test_bookkeeping(void)
{
	PgAdmWaiter *waiter = &waiters[0];
	PgAdmWaiter *next;

	pgadm_pool_init(&pool);
	pool.capacity = (PgAdmResources) {4, 100};
	memset(waiters, 0, sizeof(waiters));
	waiter->claim.workers = waiters[1].claim.workers = 1;
	waiter->head_since = 77;
	waiter->unresponsive = true;

	pgadm_order_join(&pool, waiter);
	waiters[1].priority = true;
	pgadm_order_join(&pool, &waiters[1]);
	is_int(waiter->state, PGADM_WAITING, "who joins waits");
	is_bool(waiter->head_since == 0 && !waiter->unresponsive, true,
			"nothing is left of an earlier wait");
	is_int(pool.queued, 2, "both are counted");
	is_bool(dlist_head_node(&pool.ordinary) == &waiter->link &&
			dlist_head_node(&pool.priority) == &waiters[1].link, true,
			"each is in its list");

	pgadm_order_turn(&pool, START, &next);
	is_bool(pool.notified == &waiters[1] && pool.notified_at == START, true,
			"who was notified is noted");
	is_bool(pgadm_order_answer(&pool, waiter, START), false, "another one may not go");
	is_bool(pool.notified == &waiters[1], true, "nor does that answer for it");
	is_bool(pool.ordinary_head == waiter, true, "the first of the ordinary is noted");

	pgadm_order_leave(&pool, waiter);
	is_bool(pool.ordinary_head == NULL, true, "and not any more when it has left");
	is_int(waiter->state, PGADM_NOT_WAITING, "who has left does not wait");
	pgadm_order_leave(&pool, &waiters[1]);
	is_bool(pool.notified == NULL && pool.queued == 0, true, "all have left");
	is_bool(dlist_is_empty(&pool.ordinary) && dlist_is_empty(&pool.priority), true,
			"and the lists are empty");
	is_int(pgadm_order_turn(&pool, START, &next), PGADM_TURN_NONE, "so it is nobody's turn");
}

/* ---- pool.c ---- */

static PgAdmHoldings holdings;

static int
charge(int workers, int64 memory)
{
	PgAdmEntry	query = {.count = 1,.workers = workers,.memory = memory};

	return pgadm_pool_charge(&pool, &holdings, &query);
}

static void
change(int entry, int count, int workers, int64 memory, int ms)
{
	PgAdmChange change = {.count = count,.workers = workers,.memory = memory};

	/* as gate.c does */
	pgadm_pool_change(&pool, &holdings, entry, &change,
					  count < 0 ? 0 : START + ms * MS);
}

static bool
sums_are(int running, int used, int lent, int64 memory, int64 idle)
{
	const PgAdmUsage *usage = &pool.usage;
	PgAdmUsage	sums = {0};

	for (int i = 0; i < PGADM_ENTRIES_PER_BACKEND; i++)
		pgadm_pool_account(&sums, &holdings.entries[i], 1);
	return memcmp(&sums, usage, sizeof(sums)) == 0 &&
		usage->running == running && usage->workers_used == used &&
		usage->workers_lent == lent && usage->memory_used == memory &&
		usage->memory_idle == idle;
}

static void
start_pool(void)
{
	pgadm_pool_init(&pool);
	pool.capacity = (PgAdmResources) {4, 100};
	memset(&holdings, 0, sizeof(holdings));
}

static void
test_pool(void)
{
	PgAdmResources room;

	start_pool();
	is_int(charge(2, 30), 0, "the first query has the first entry");
	is_int(charge(1, 0), 1, "the second has the next");
	is_bool(sums_are(2, 3, 0, 30, 0), true, "both are charged");
	room = pgadm_pool_room(&pool);
	is_bool(room.workers == 1 && room.memory == 70, true, "the rest is free");

	pgadm_pool_set_lent(&pool, &holdings.entries[0], true);
	is_bool(sums_are(2, 1, 2, 30, 30), true, "lent: the workers, and the memory is idle");
	pgadm_pool_set_lent(&pool, &holdings.entries[0], false);
	is_bool(sums_are(2, 3, 0, 30, 0), true, "taken back");
	pgadm_pool_set_lent(&pool, &holdings.entries[0], true);
	change(0, -1, -2, -30, 0);
	is_bool(sums_are(1, 1, 0, 0, 0) && !holdings.entries[0].lent, true, "it ends while it lends");
	is_int(charge(1, 5), 0, "its entry is free again");
	change(0, -1, -1, -5, 0);
	change(1, -1, -1, 0, 0);
	is_bool(sums_are(0, 0, 0, 0, 0), true, "nothing is left");
}

static void
note_idle(int ms)
{
	pgadm_pool_note_idle(&pool, START + ms * MS);
}

static void
test_suspended(void)
{
	start_pool();
	charge(2, 30);
	change(0, 0, -2, 0, 0);
	is_bool(sums_are(1, 0, 0, 30, 0), true, "suspended: without workers, not idle yet");
	note_idle(99);
	is_bool(sums_are(1, 0, 0, 30, 0), true, "nor a moment later");
	note_idle(100);
	is_bool(sums_are(1, 0, 0, 30, 30), true, "then idle");
	is_bool(dlist_is_empty(&pool.suspended), true, "and not looked at again");
	note_idle(300);
	change(0, 0, 0, -10, 400);
	is_bool(sums_are(1, 0, 0, 20, 20) && dlist_is_empty(&pool.suspended), true,
			"once only");
	change(0, 0, 1, 0, 500);
	is_bool(sums_are(1, 1, 0, 20, 0), true, "it goes on");
	change(0, 0, -1, 0, 600);
	note_idle(699);
	is_bool(sums_are(1, 0, 0, 20, 0), true, "suspended again, the time begins anew");
	change(0, -1, 0, -20, 0);
	is_bool(sums_are(0, 0, 0, 0, 0) && dlist_is_empty(&pool.suspended), true,
			"it ends before that");

	charge(1, 0);
	change(0, 0, -1, 0, 0);
	is_bool(dlist_is_empty(&pool.suspended), true, "without memory nothing is idle");
	change(0, -1, 0, 0, 0);

	charge(1, 10);
	charge(1, 20);
	change(1, 0, -1, 0, 0);
	change(0, 0, -1, 0, 50);
	note_idle(100);
	is_bool(sums_are(2, 0, 0, 30, 20), true, "each at its time");
	note_idle(150);
	is_bool(sums_are(2, 0, 0, 30, 30), true, "and the other");
}

/*
 * The last entry is the sum of several queries.
 */
static void
test_rest_entry(void)
{
	start_pool();
	for (int i = 0; i < PGADM_ENTRIES_PER_BACKEND; i++)
		is_int(charge(1, 10), i, "an entry for each");
	is_int(charge(1, 5), PGADM_REST_ENTRY, "the rest share one");
	is_int(holdings.entries[PGADM_REST_ENTRY].count, 2, "which counts them");
	is_bool(sums_are(6, 6, 0, 55, 0), true, "and sums them up");

	pgadm_pool_set_lent(&pool, &holdings.entries[PGADM_REST_ENTRY], true);
	is_bool(sums_are(6, 4, 2, 55, 15), true, "they lend together");
	is_int(charge(1, 1), PGADM_REST_ENTRY, "one more");
	is_bool(sums_are(7, 7, 0, 56, 0), true, "runs, so none lends any more");

	change(PGADM_REST_ENTRY, 0, -1, 0, 0);
	is_bool(dlist_is_empty(&pool.suspended), true, "one of them is suspended, not all");
	change(PGADM_REST_ENTRY, 0, -2, 0, 10);
	note_idle(109);
	is_bool(sums_are(7, 4, 0, 56, 0), true, "all are");
	note_idle(110);
	is_bool(sums_are(7, 4, 0, 56, 16), true, "and then idle");
	change(PGADM_REST_ENTRY, -1, 0, -5, 0);
	is_bool(sums_are(6, 4, 0, 51, 11), true, "one ends, the others stay idle");
}

static int
linked(void)
{
	dlist_iter	iter;
	int			n = 0;

	dlist_foreach(iter, &pool.suspended)
	{
		if (++n > PGADM_ENTRIES_PER_BACKEND)
			break;
	}
	return n;
}

/*
 * A query of the last entry ends while others of it are suspended.
 */
static void
test_rest_entry_ends(void)
{
	start_pool();
	for (int i = 0; i < PGADM_REST_ENTRY; i++)
		charge(1, 0);
	charge(1, 10);
	change(PGADM_REST_ENTRY, 0, -1, 0, 0);
	for (int i = 0; i < 3; i++)
	{
		charge(1, 1);
		is_int(linked(), 0, "while one of them runs, they are not suspended");
		change(PGADM_REST_ENTRY, -1, -1, -1, 0);
		if (!is_int(linked(), 1, "those that are left are suspended, and linked once"))
			return;
	}
	note_idle(10);
	is_bool(sums_are(5, 4, 0, 10, 10) && linked() == 0, true,
			"they have been that before, so they are idle");
	change(PGADM_REST_ENTRY, -1, 0, -10, 0);
	is_bool(sums_are(4, 4, 0, 0, 0) && linked() == 0, true, "the last of them ends");
}

/*
 * A look for whose turn it is notes first what has become idle.
 */
static void
test_turn_notes_idle(void)
{
	PgAdmWaiter *next;

	start_pool();
	memset(waiters, 0, sizeof(waiters));
	charge(1, 80);
	waiters[0].claim = (PgAdmClaim) {.workers = 4,.memory = 50};
	pgadm_order_join(&pool, &waiters[0]);
	waiters[1].claim = (PgAdmClaim) {.workers = 1};
	change(0, 0, -1, 0, 900);
	pgadm_order_turn(&pool, START, &next);
	pgadm_order_join(&pool, &waiters[1]);
	is_int(pgadm_order_turn(&pool, START + 999 * MS, &next), PGADM_TURN_NOTIFY,
		   "a suspended query's memory is awaited");
	is_bool(next == &waiters[1], true, "not yet for too long");
	pgadm_order_leave(&pool, &waiters[1]);
	pgadm_order_join(&pool, &waiters[1]);
	is_bool(pgadm_order_answer(&pool, &waiters[1], START + 1000 * MS), false,
			"then workers are saved up as well");
	is_int(pgadm_order_turn(&pool, START + 1000 * MS, &next), PGADM_TURN_NOTIFY,
		   "but it is idle");
	is_bool(next == &waiters[1] && sums_are(1, 0, 0, 80, 80), true,
			"so nobody else has to wait for it");
}

int
main(void)
{
	test_tables();
	test_bookkeeping();
	test_pool();
	test_suspended();
	test_rest_entry();
	test_rest_entry_ends();
	test_turn_notes_idle();
	return done_testing();
}
