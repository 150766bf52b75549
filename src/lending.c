/*-------------------------------------------------------------------------
 *
 * lending.c
 *		Lends the workers of queries that wait for somebody else.
 *
 * A query that has been waiting for LEND_AFTER_MS for a lock, a buffer pin,
 * its client or a remote server uses no CPU, and what it waits for may itself
 * be waiting in the queue.  Its workers are lent to the queue, and are the
 * query's again as soon as it is seen to go on, even if that exceeds the
 * budget for a while.  Shorter waits keep their worker: those of a hot row
 * are what a small budget makes fewer.
 *
 * Locking: runs in the sampler only.  What another backend waits for is read
 * from its PGPROC without a lock, as pg_stat_activity does; a stale answer is
 * corrected by the next look.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/lending.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat.h"
#include "lending.h"
#include "queue.h"
#include "utils/timestamp.h"

#define LEND_AFTER_MS	100

#define WAIT_CLASS(wait_event_info) ((wait_event_info) & 0xFF000000)

/*
 * Is that a wait for something outside of this server's CPUs and disks?
 */
static bool
waits_outside(uint32 wait_event_info)
{
	switch (WAIT_CLASS(wait_event_info))
	{
		case PG_WAIT_LOCK:
		case PG_WAIT_BUFFER_PIN:
		case PG_WAIT_CLIENT:
		case PG_WAIT_EXTENSION:
			return true;
		default:
			return false;
	}
}

/*
 * Has this backend been in its wait for long?  Of locks the beginning is
 * known; of the others, that every look since has found the same.
 */
static bool
has_waited(PgAdmSlot *slot, PGPROC *proc, uint32 wait_event_info, TimestampTz now)
{
	TimestampTz since = slot->seen_since;

	if (slot->seen_wait_event != wait_event_info)
	{
		slot->seen_wait_event = wait_event_info;
		slot->seen_since = since = now;
	}
	if (WAIT_CLASS(wait_event_info) == PG_WAIT_LOCK)
	{
		since = pg_atomic_read_u64(&proc->waitStart);
		if (since == 0)
			return false;
	}

	return TimestampDifferenceExceeds(since, now, LEND_AFTER_MS);
}

/*
 * What does a backend hold, and has it lent any of it?
 */
static void
look_at_entries(const PgAdmSlot *slot, bool *holds, bool *lent)
{
	*holds = *lent = false;
	for (int i = 0; i < PGADM_ENTRIES_PER_SLOT; i++)
	{
		if (slot->entries[i].workers == 0)
			continue;
		if (slot->entries[i].lent)
			*lent = true;
		else
			*holds = true;
	}
}

/*
 * Look at every query that runs, and at every one that has lent.
 */
void
pgadm_lending_look(void)
{
	TimestampTz now = GetCurrentTimestamp();

	for (int i = 0; i < pgadm_shared->nslots; i++)
	{
		PgAdmSlot  *slot = &pgadm_shared->slots[i];
		PGPROC	   *proc = GetPGProcByNumber(i);
		uint32		wait_event_info;
		bool		holds;
		bool		lent;

		look_at_entries(slot, &holds, &lent);
		if (!holds && !lent)
		{
			slot->seen_wait_event = 0;
			continue;
		}

		wait_event_info = *(volatile uint32 *) &proc->wait_event_info;
		if (!waits_outside(wait_event_info))
		{
			slot->seen_wait_event = 0;
			if (lent)
				pgadm_queue_lend(i, false);
		}
		else if (has_waited(slot, proc, wait_event_info, now) && holds)
			pgadm_queue_lend(i, true);
	}
}
