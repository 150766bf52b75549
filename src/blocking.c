/*-------------------------------------------------------------------------
 *
 * blocking.c
 *		Does this backend keep anybody waiting?
 *
 * A query that waits for admission already holds the locks of its parse
 * analysis, and its transaction or session may hold more.  PostgreSQL's
 * deadlock detector cannot see a wait in the admission queue, so a cycle
 * that leads through the queue would last forever.  Every such cycle has an
 * edge from somebody who waits for a lock to a queued backend that holds it,
 * and each queued backend can find that edge by looking at its own locks:
 * whoever wants a lock that conflicts with a fast-path lock has first moved
 * that into the shared table, and a virtual transaction id likewise.
 *
 * A cursor keeps the buffer pinned that it was last in, and VACUUM or the
 * startup process of a standby may wait for that, with locks of their own.
 * There the edge is known at one end only: if anybody waits for a pin, whoever
 * has a cursor open may be the one waited for.  It is the same with snapshots,
 * for which a deferrable transaction and the startup process wait.
 *
 * Locking: takes the lock manager's partition locks, shared, one at a time,
 * and must be called without pg_admission's own lock.  What others wait for is
 * read without any lock, as pg_stat_activity does.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/blocking.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "blocking.h"
#include "compat.h"
#include "storage/lwlock.h"

/*
 * We hold this lock and somebody waits for it.  Whether the first of the
 * waiters conflicts with us or with another holder does not matter: those
 * behind a waiter wait for us as well, and admitting a query too soon costs
 * little.
 */
static bool
held_and_wanted(const PROCLOCK *proclock)
{
	return proclock->holdMask != 0 &&
		pgadm_lock_has_waiters(proclock->tag.myLock);
}

/*
 * Does that process wait until nobody has a buffer pinned, or a snapshot, or
 * works with temporary files?  Whom it waits for cannot be asked.
 */
static bool
waits_for_some(uint32 wait_event, bool may_pin, bool has_snapshot)
{
	switch (wait_event)
	{
		case WAIT_EVENT_SAFE_SNAPSHOT:
		case WAIT_EVENT_RECOVERY_CONFLICT_SNAPSHOT:
		case WAIT_EVENT_RECOVERY_CONFLICT_TABLESPACE:
			return has_snapshot;
		default:
			return may_pin && (wait_event & 0xFF000000) == PG_WAIT_BUFFER_PIN;
	}
}

/*
 * Does anybody wait like that, maybe for this backend?
 */
static bool
may_be_waited_for(bool may_pin)
{
	bool		has_snapshot = TransactionIdIsValid(MyProc->xmin);

	for (uint32 i = 0; i < ProcGlobal->allProcCount; i++)
	{
		PGPROC	   *proc = GetPGProcByNumber(i);

		if (proc->pid != 0 &&
			waits_for_some(*(volatile uint32 *) &proc->wait_event_info,
						   may_pin, has_snapshot))
			return true;
	}

	return false;
}

/*
 * Does anybody wait for a lock that this backend holds, or for its snapshot, or
 * for a buffer that it may have pinned?
 */
bool
pgadm_blocking_anybody(bool may_pin)
{
	if (may_be_waited_for(may_pin))
		return true;

	for (int i = 0; i < NUM_LOCK_PARTITIONS; i++)
	{
		LWLock	   *partition = LockHashPartitionLockByIndex(i);
		bool		found;

		LWLockAcquire(partition, LW_SHARED);
		found = pgadm_any_proclock(MyProc, i, held_and_wanted);
		LWLockRelease(partition);

		if (found)
			return true;
	}

	return false;
}
