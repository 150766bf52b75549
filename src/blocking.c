/*-------------------------------------------------------------------------
 *
 * blocking.c
 *		Does this backend keep another one waiting?
 *
 * A query that waits for admission already holds the locks of its parse
 * analysis, and its transaction or session may hold more.  PostgreSQL's
 * deadlock detector cannot see a wait in the admission queue, so a cycle that
 * leads through the queue would last forever.  Every such cycle has an edge
 * from a process that waits for a lock to a queued backend that holds it.
 * Each queued backend finds that edge by looking at its own locks in the
 * shared table: a fast-path lock, or a virtual transaction id, is moved there
 * by the process that wants a conflicting lock, before that waits.
 *
 * A cursor keeps a buffer pinned, and VACUUM or the startup process of a
 * standby may wait for that, with locks of their own.  Such an edge is known
 * at one end only: if any process waits for a pin, it may wait for any backend
 * with an open cursor.  It is the same with snapshots, for which a deferrable
 * transaction and the startup process wait.
 *
 * Locking: takes the lock manager's partition locks, shared, one at a time,
 * and must be called without the admission lock.  Wait events of other
 * processes are read without any lock, as pg_stat_activity does.
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
 * Does this backend hold the lock, and does any process wait for it?  A waiter
 * may be in conflict with another holder only, but that is not told apart:
 * admitting a query too soon costs little.
 */
static bool
held_and_wanted(const PROCLOCK *proclock)
{
	return proclock->holdMask != 0 &&
		pgadm_lock_has_waiters(proclock->tag.myLock);
}

/*
 * Does a process with that wait event wait until no backend has a buffer
 * pinned, or an old snapshot, or works with temporary files?  It does not say
 * for which backend it waits.
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
 * Does any process wait like that, maybe for this backend?
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
 * Does another process wait for a lock that this backend holds, or for its
 * snapshot, or for a buffer that it may have pinned?
 */
bool
pgadm_blocking_others(bool may_pin)
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
