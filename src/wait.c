/*-------------------------------------------------------------------------
 *
 * wait.c
 *		A queued backend's wait for its turn.
 *
 * A waiter sleeps on its latch, which the gate sets.  By itself it looks, at
 * intervals, whether its client is still there, and whether the sampler is.  If it
 * keeps another backend waiting, or can be admitted only after a query that may be
 * waiting for it, it does not wait any longer.  So nothing that could hang depends
 * on a background worker.
 *
 * Locking: no lock is held here; the gate takes the admission lock whenever it
 * is polled.  However the wait ends, the waiter is no longer in the queue
 * then.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/wait.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#ifdef HAVE_POLL_H
#include <poll.h>
#endif

#include "blocking.h"
#include "clock.h"
#include "compat.h"
#include "fault.h"
#include "lending.h"
#include "libpq/libpq-be.h"
#include "libpq/libpq.h"
#include "libpq/pqformat.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "shared.h"
#include "snapshot.h"
#include "stand_in.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "tcop/dest.h"
#include "tcop/tcopprot.h"
#include "utils/timestamp.h"
#include "wait.h"

/* A waiter looks this often whether its client and the sampler are still there */
#define OTHERS_CHECK_MS		1000

/* Time between two looks at whether another query waits, too */
#define LOOK_AGAIN_MS		100

/*
 * When a waiter has to do something by itself, by a clock that does not jump.
 */
typedef struct Alarms
{
	int64		began;
	int64		check_others;
	int64		check_locks;
	int64		check_holders;
	bool		was_stuck;		/* when the holders were looked at last */
	bool		probed;			/* has something been sent to the client? */
} Alarms;

static int64
us_after(int64 now, int ms)
{
	return now + ms * PGADM_US_PER_MS;
}

static Alarms
set_alarms(int64 now)
{
	Alarms		alarms = {
		.began = now,
		.check_others = us_after(now, OTHERS_CHECK_MS),
		.check_locks = us_after(now, DeadlockTimeout),
		.check_holders = us_after(now, DeadlockTimeout),
	};

	return alarms;
}

/*
 * When has the query waited too long?  That may change while it waits.
 */
static int64
time_out_at(const Alarms *alarms)
{
	int			ms = pgadm_queue_timeout_is_local ? pgadm_queue_timeout :
		pgadm_gate_queue_timeout();

	return ms > 0 ? us_after(alarms->began, ms) : PG_INT64_MAX;
}

/*
 * Until the first alarm, in milliseconds.
 */
static long
time_to_sleep(const Alarms *alarms, int64 time_out, int64 now)
{
	int64		next = Min(alarms->check_others, alarms->check_locks);

	next = Min(next, alarms->check_holders);
	if (time_out > now)
		next = Min(next, time_out);
	return (long) Max(next - now + PGADM_US_PER_MS - 1, 0) / PGADM_US_PER_MS;
}

#ifdef HAVE_POLL

/*
 * What poll() says of the client's socket besides that there is something to
 * read.
 */
static int
look_at_socket(void)
{
	struct pollfd socket = {.fd = MyProcPort->sock};

#ifdef POLLRDHUP
	socket.events = POLLRDHUP;
#endif
	return poll(&socket, 1, 0) > 0 ? socket.revents : 0;
}

/*
 * Send something that says nothing new, and that clients accept at any time.
 */
static void
send_probe(void)
{
	StringInfoData message;

	pq_beginmessage(&message, 'S');
	pq_sendstring(&message, "server_encoding");
	pq_sendstring(&message, GetDatabaseEncodingName());
	pq_endmessage(&message);
	(void) pq_flush_if_writable();
}

/*
 * Is the client gone?  One that has only closed its sending side gets the
 * answer to what it has sent, as from any PostgreSQL.  That is seen of a Unix
 * socket.  Of others it is not, but if the client is gone, the next look finds
 * that what was sent to it has been refused.
 */
static bool
client_is_gone(Alarms *alarms)
{
	int			events = look_at_socket();

	if (events & (POLLHUP | POLLERR | POLLNVAL))
		return true;
	if (events != 0 && !alarms->probed && MyProcPort->raddr.addr.ss_family != AF_UNIX &&
		whereToSendOutput == DestRemote)
	{
		alarms->probed = true;
		send_probe();
	}
	return false;
}

#else

static bool
client_is_gone(Alarms *alarms)
{
	return false;
}

#endif

/*
 * If it is time, look whether the client and the sampler are still there.  If the
 * client is not, the next CHECK_FOR_INTERRUPTS() ends this backend, as if
 * PostgreSQL had found out.
 */
static void
check_others(Alarms *alarms, int64 now)
{
	if (now < alarms->check_others)
		return;

	alarms->check_others = us_after(now, OTHERS_CHECK_MS);
	pgadm_stand_in_while_waiting();
	if (MyProcPort != NULL && client_is_gone(alarms))
	{
		ClientConnectionLost = true;
		InterruptPending = true;
	}
}

/*
 * If it is time, look whether this backend keeps another one waiting.
 */
static bool
blocks_others(Alarms *alarms, int64 now, bool may_pin)
{
	if (now < alarms->check_locks)
		return false;

	alarms->check_locks = us_after(now, DeadlockTimeout);
	return pgadm_blocking_others(may_pin);
}

/*
 * If it is time, look at those that hold what the waiter waits for.  They may
 * be waiting for it themselves; then it goes ahead, if that is still so at the
 * next look.  Returns whether it has been admitted.
 */
static bool
goes_ahead(Alarms *alarms, int64 now, PgAdmOutcome *outcome)
{
	bool		soon = false;

	if (now < alarms->check_holders)
		return false;

	if (pgadm_shared_sampler_missing(GetCurrentTimestamp()))
		soon = pgadm_lending_look();
	alarms->was_stuck = pgadm_gate_unstick(alarms->was_stuck, outcome);
	if (soon)
		alarms->check_holders = us_after(now, LOOK_AGAIN_MS);
	else if (alarms->was_stuck)
		alarms->check_holders = us_after(now, Max(DeadlockTimeout / 2, 1));
	else
		alarms->check_holders = us_after(now, DeadlockTimeout);
	return outcome->verdict != PGADM_QUEUE;
}

static void
sleep_until_alarm(const Alarms *alarms, int64 time_out, int64 now)
{
	static uint32 wait_event = 0;

	if (wait_event == 0)
		wait_event = PGADM_WAIT_EVENT_NEW("AdmissionQueue");

	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
					 time_to_sleep(alarms, time_out, now), wait_event);
	ResetLatch(MyLatch);
}

/*
 * Wait until the gate has decided.
 *
 * The latch is reset before the gate is polled, so that whatever others do
 * after the poll ends the sleep.
 */
static void
poll_until_decided(bool may_pin, PgAdmOutcome *outcome)
{
	Alarms		alarms = set_alarms(pgadm_clock_us());

	for (;;)
	{
		int64		now = pgadm_clock_us();
		int64		time_out = time_out_at(&alarms);

		check_others(&alarms, now);
		CHECK_FOR_INTERRUPTS();

		pgadm_gate_poll(pgadm_shared_mode() == PGADM_MODE_ENFORCE,
						now >= time_out, outcome);
		if (outcome->verdict != PGADM_QUEUE)
			return;

		PGADM_MAY_FAIL(PGADM_FAIL_WAITING);
		if (blocks_others(&alarms, now, may_pin))
		{
			pgadm_gate_force(outcome);
			return;
		}
		if (goes_ahead(&alarms, now, outcome))
			return;
		sleep_until_alarm(&alarms, time_out, now);
	}
}

static void
leave_queue(int code, Datum arg)
{
	pgadm_gate_cancel();
}

/*
 * Wait in the queue, and leave it whatever happens.  If the process exits, the
 * waiter must leave before the transaction is aborted, since that ends the
 * query that the waiter may be about to resume.  PG_ENSURE_ERROR_CLEANUP
 * provides for it, as long as nothing in here registers an exit callback of
 * its own.
 *
 * Returns whether the snapshot of the statement, or of a utility command if
 * there is no query, was given up.
 */
bool
pgadm_wait_in_queue(QueryDesc *queryDesc, PgAdmWaitOptions options,
					PgAdmOutcome *outcome)
{
	volatile bool gave_up = false;

	PG_ENSURE_ERROR_CLEANUP(leave_queue, (Datum) 0);
	{
		PGADM_MAY_FAIL(PGADM_FAIL_QUEUED);
		if (options.may_give_up)
			gave_up = pgadm_snapshot_give_up(queryDesc);
		poll_until_decided(options.may_pin, outcome);
	}
	PG_END_ENSURE_ERROR_CLEANUP(leave_queue, (Datum) 0);

	return gave_up;
}
