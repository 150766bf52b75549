/*-------------------------------------------------------------------------
 *
 * compat.h
 *		Differences between versions of PostgreSQL, and what is read of its
 *		internals.
 *
 * This is the only file that may test PG_VERSION_NUM.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/compat.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGADM_COMPAT_H
#define PGADM_COMPAT_H

#include "common/relpath.h"
#include "port/atomics.h"
#include "storage/lock.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "utils/wait_event.h"

#if PG_VERSION_NUM < 150000
#error "pg_admission requires PostgreSQL 15 or later"
#endif

/* The number of a backend, an index into ProcGlobal->allProcs. */
#if PG_VERSION_NUM >= 170000
#define PGADM_MY_PROC_NUMBER	MyProcNumber
#else
#define PGADM_MY_PROC_NUMBER	(MyProc->pgprocno)
#endif

#if PG_VERSION_NUM >= 170000
#define PGADM_PROC_NUMBER(proc) GetNumberFromPGProc(proc)
#else
#define PGADM_PROC_NUMBER(proc) ((proc)->pgprocno)
#endif

/* The transaction that a backend is in, unlike that of any other. */
#if PG_VERSION_NUM >= 170000
#define PGADM_MY_LXID	(MyProc->vxid.lxid)
#else
#define PGADM_MY_LXID	(MyProc->lxid)
#endif

/* What a waiting backend shows; custom events have names since 17. */
#if PG_VERSION_NUM >= 170000
#define PGADM_WAIT_EVENT_NEW(name)	WaitEventExtensionNew(name)
#else
#define PGADM_WAIT_EVENT_NEW(name)	PG_WAIT_EXTENSION
#endif

/* The id of a new LWLock tranche; its name is inherited by fork(). */
#if PG_VERSION_NUM >= 190000
#define PGADM_LWLOCK_TRANCHE_NEW(name)	LWLockNewTrancheId(name)
#else
#define PGADM_LWLOCK_TRANCHE_NEW(name)	pgadm_lwlock_tranche_new(name)
static inline int
pgadm_lwlock_tranche_new(const char *name)
{
	int			id = LWLockNewTrancheId();

	LWLockRegisterTranche(id, name);
	return id;
}
#endif

/* The path of the first file of a relation of this database, not a temporary one. */
#if PG_VERSION_NUM >= 180000
#define PGADM_RELATION_PATH(path, space, number) \
	strlcpy(path, GetRelationPath(MyDatabaseId, space, number, \
								  INVALID_PROC_NUMBER, MAIN_FORKNUM).str, sizeof(path))
#else
#define PGADM_RELATION_PATH(path, space, number) \
	pgadm_relation_path(path, sizeof(path), \
						GetRelationPath(MyDatabaseId, space, number, -1, MAIN_FORKNUM))
static inline void
pgadm_relation_path(char *path, size_t size, char *allocated)
{
	strlcpy(path, allocated, size);
	pfree(allocated);
}
#endif

/* What a check hook returns as "extra", which guc.c frees; or NULL. */
#if PG_VERSION_NUM >= 160000
#define PGADM_GUC_MALLOC(size)	guc_malloc(LOG, size)
#else
#define PGADM_GUC_MALLOC(size)	malloc(size)
#endif

/*
 * A value that changes whenever an LWLock is taken or released.  It may only
 * be compared with another one, since its bits are lwlock.c's.
 */
static inline uint32
pgadm_lwlock_state(const LWLock *lock)
{
	return pg_atomic_read_u32(unconstify(pg_atomic_uint32 *, &lock->state));
}

/* Does any process wait for this lock?  Its partition must be locked. */
static inline bool
pgadm_lock_has_waiters(const LOCK *lock)
{
#if PG_VERSION_NUM >= 160000
	return !dclist_is_empty(&lock->waitProcs);
#else
	return lock->waitProcs.size > 0;
#endif
}

/*
 * Call a function for every PROCLOCK of a backend in one lock partition, until
 * it returns true.  The partition must be locked.
 */
static inline bool
pgadm_any_proclock(PGPROC *proc, int partition, bool (*test) (const PROCLOCK *))
{
#if PG_VERSION_NUM >= 160000
	dlist_iter	iter;

	dlist_foreach(iter, &proc->myProcLocks[partition])
	{
		if (test(dlist_container(PROCLOCK, procLink, iter.cur)))
			return true;
	}
#else
	SHM_QUEUE  *queue = &proc->myProcLocks[partition];
	PROCLOCK   *proclock;

	for (proclock = (PROCLOCK *) SHMQueueNext(queue, queue,
											  offsetof(PROCLOCK, procLink));
		 proclock != NULL;
		 proclock = (PROCLOCK *) SHMQueueNext(queue, &proclock->procLink,
											  offsetof(PROCLOCK, procLink)))
	{
		if (test(proclock))
			return true;
	}
#endif
	return false;
}

#endif							/* PGADM_COMPAT_H */
