/*-------------------------------------------------------------------------
 *
 * shared.h
 *		The one struct that pg_admission keeps in shared memory.
 *
 * It is composed of the modules' own structs, whose headers describe them.
 *
 * Locking: everything in the struct is protected by the admission lock, unless
 * its comment says otherwise.  gate.c is the only file that takes that lock.  A
 * query holds it for some hundred instructions, and at most a few steps for each
 * waiter; a view while it copies what it shows, at most the entries of all
 * backends or the counters of all roles, and a warning about memory while it goes
 * through those entries.  Nothing is allocated, reported or waited for, no error
 * raised, no other lock taken and no latch set meanwhile.  It is always taken
 * exclusively: processes that share an LWLock overtake one that wants it
 * exclusively, so a few sessions that read a view again and again could shut all
 * others out.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/shared.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGADM_SHARED_H
#define PGADM_SHARED_H

#include "cpu.h"
#include "errors.h"
#include "memory_feedback.h"
#include "pool.h"
#include "sample.h"
#include "sampler.h"
#include "settings.h"
#include "stats.h"
#include "storage/lwlock.h"

/*
 * One per backend, by its process number.  Owned by that backend, but others
 * hand charges to its waiter, and the sampler lends what its entries hold.  A
 * query that neither waits nor runs inside of another touches the first cache
 * line only.
 */
typedef struct PgAdmBackend
{
	uint32		activity;		/* see cpu.c; by its owner, without the lock */
	int			role_stats;		/* index of its counters */
	PgAdmHoldings holdings;
	PgAdmWaiter waiter;
	pid_t		pid;			/* of the process that used it last */
	Oid			role;			/* that it authenticated as */
	PgAdmWorkerMemory workers;
} pg_attribute_aligned(PGADM_CACHE_LINE_SIZE) PgAdmBackend;

/*
 * When what is in force was read from the settings.  A session may have a mode
 * and a queue timeout of its own, and then does not know those of the server.
 */
typedef struct PgAdmSettingsAge
{
	TimestampTz mode;
	TimestampTz queue_timeout;
	TimestampTz others;
} PgAdmSettingsAge;

/* There is one pool: the server's */
#define PGADM_NPOOLS	1

/*
 * What every query touches comes first and close together, on one page with
 * the counters of the first roles: with many backends on few CPUs, next to
 * nothing of it is in a cache when a backend's turn comes, and what admission
 * costs is the number of its pages and cache lines.
 */
typedef struct PgAdmShared
{
	/* Read often, and without the lock, but seldom written */
	bool		enabled;		/* else nothing is subject to admission */
	PgAdmMode	mode;			/* of sessions without one of their own */
	int			nbackends;
	int			nroles;			/* 1, for the rest, and those in use */
	int			ntripped;		/* breakers that are, warn_only ones too */

	/* Written by every query: the lock, next to the counters; and its pool */
	LWLock		lock pg_attribute_aligned(PGADM_CACHE_LINE_SIZE);
	PgAdmStats	stats;
	PgAdmPool	pools[PGADM_NPOOLS];
	PgAdmRoleStats roles[PGADM_MAX_ROLE_STATS];

	PgAdmSettingsAge settings_age;
	PgAdmSamplerState sampler;
	PgAdmServerLoad load;
	PgAdmMemoryStats memory_stats;
	PgAdmLogDebt log_debt;
	int			ncpu_accounts;
	PgAdmCpuAccount *cpu_accounts;
	PgAdmCpu	cpu;
	PgAdmHistory history;
	PgAdmBackend backends[FLEXIBLE_ARRAY_MEMBER];
} PgAdmShared;

/* NULL unless the library was preloaded */
extern PgAdmShared *pgadm_shared;

extern void pgadm_shared_request(void);
extern void pgadm_shared_startup(void);
extern void pgadm_shared_require(void);

/*
 * Is there no sampler, or does it not run?  Then every backend does for itself
 * what cannot wait; the rest is left undone, and fails open.
 */
static inline bool
pgadm_shared_sampler_missing(TimestampTz now)
{
	return pgadm_shared->sampler.pid == 0 ||
		now - pgadm_shared->sampler.alive_at >
		PGADM_SAMPLER_MISSING_MS * INT64CONST(1000);
}

/*
 * The mode of the server.
 */
static inline PgAdmMode
pgadm_shared_server_mode(void)
{
	return pgadm_shared->enabled ? pgadm_shared->mode : PGADM_MODE_OFF;
}

/*
 * The mode of this session: its own or the server's; but nobody's if all is
 * switched off.
 */
static inline PgAdmMode
pgadm_shared_mode(void)
{
	if (!pgadm_shared->enabled)
		return PGADM_MODE_OFF;
	return pgadm_mode_is_local ? pgadm_mode : pgadm_shared->mode;
}

#endif							/* PGADM_SHARED_H */
