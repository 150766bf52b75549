/*-------------------------------------------------------------------------
 *
 * shared.c
 *		The one struct that pg_admission keeps in shared memory.
 *
 * The locking contract is in shared.h.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/shared.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat.h"
#include "miscadmin.h"
#include "shared.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "utils/timestamp.h"

/* Of the CPU's memory management; a power of two */
#define PAGE_BYTES	4096

PgAdmShared *pgadm_shared = NULL;

/*
 * Processes whose CPU time is counted: all that have a number, and the
 * postmaster.
 */
static int
count_cpu_accounts(void)
{
	return MaxBackends + NUM_AUXILIARY_PROCS + 1;
}

static Size
backends_size(void)
{
	return MAXALIGN(add_size(offsetof(PgAdmShared, backends),
							 mul_size(MaxBackends, sizeof(PgAdmBackend))));
}

static Size
shared_size(void)
{
	return add_size(backends_size(),
					mul_size(count_cpu_accounts(), sizeof(PgAdmCpuAccount)));
}

/*
 * The SQL functions can be called without it in a binary upgrade, which loads
 * the library where it is needed.
 */
void
pgadm_shared_require(void)
{
	if (pgadm_shared == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("pg_admission must be loaded via shared_preload_libraries")));
}

/*
 * Ask for the memory.  Called in the postmaster, before it is allocated.
 */
void
pgadm_shared_request(void)
{
	RequestAddinShmemSpace(add_size(shared_size(), PAGE_BYTES));
}

/*
 * Everything to zero that has no other first value.
 */
static void
initialize(PgAdmShared *shared)
{
	int			tranche = PGADM_LWLOCK_TRANCHE_NEW("pg_admission");

	memset(shared, 0, shared_size());
	LWLockInitialize(&shared->lock, tranche);
	LWLockInitialize(&shared->history.lock, tranche);
	SpinLockInit(&shared->cpu.mutex);
	SpinLockInit(&shared->memory_stats.mutex);
	shared->nbackends = MaxBackends;
	for (int i = 0; i < shared->nbackends; i++)
		SpinLockInit(&shared->backends[i].workers.mutex);
	shared->ncpu_accounts = count_cpu_accounts();
	shared->cpu_accounts = (PgAdmCpuAccount *) ((char *) shared + backends_size());

	shared->sampler.alive_at = GetCurrentTimestamp();
	pg_atomic_init_u64(&shared->sampler.missed_at, 0);

	for (int i = 0; i < PGADM_NPOOLS; i++)
		pgadm_pool_init(&shared->pools[i]);

	for (int i = 0; i < PGADM_NCOUNTERS; i++)
		pg_atomic_init_u64(&shared->stats.counters[i], 0);
	shared->nroles = 1;
	shared->stats.reset_at = GetCurrentTimestamp();

	for (int i = 0; i < PGADM_NREASONS; i++)
		pg_atomic_init_u64(&shared->log_debt.refused[i], 0);
	pg_atomic_init_u64(&shared->log_debt.logged_at, 0);
}

/*
 * Create the struct, again after a crash, or attach to it.  It begins with a
 * page, see shared.h.
 */
void
pgadm_shared_startup(void)
{
	void	   *allocated;
	bool		found;

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);

	allocated = ShmemInitStruct("pg_admission", add_size(shared_size(), PAGE_BYTES),
								&found);
	pgadm_shared = (PgAdmShared *) TYPEALIGN(PAGE_BYTES, allocated);
	if (!found)
		initialize(pgadm_shared);

	LWLockRelease(AddinShmemInitLock);
}
