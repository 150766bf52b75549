/*-------------------------------------------------------------------------
 *
 * blocking.c
 *		Does this backend keep anybody waiting for a lock?
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
 * Locking: takes the lock manager's partition locks, shared, one at a time,
 * and must be called without pg_admission's own lock.
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
 * Does anybody wait for a lock that this backend holds?
 */
bool
pgadm_blocking_anybody(void)
{
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
