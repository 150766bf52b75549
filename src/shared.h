/*-------------------------------------------------------------------------
 *
 * shared.h
 *		The one struct that pg_admission keeps in shared memory.
 *
 * Locking: everything in the struct is protected by its lock, unless its
 * comment says otherwise.  The lock is held for a few instructions only:
 * nothing is allocated, reported or waited for, no other lock is taken and no
 * latch is set while it is held.  It is always taken exclusively: those who
 * share an LWLock overtake who wants it for himself, so a few sessions that read
 * a view again and again could shut all others out.
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

#include "datatype/timestamp.h"
#include "lib/ilist.h"
#include "load.h"
#include "policy.h"
#include "port/atomics.h"
#include "settings.h"
#include "storage/lwlock.h"
#include "storage/spin.h"

/* What a CPU loads at once, which is half of what PostgreSQL pads to */
#define PGADM_CACHE_LINE_SIZE	64

/* Queries of one backend that are kept apart; the rest are summed */
#define PGADM_ENTRIES_PER_SLOT	5
#define PGADM_REST_ENTRY		(PGADM_ENTRIES_PER_SLOT - 1)

/* Circuit breakers: the built-in ones, other extensions', the operator's */
#define PGADM_MAX_BREAKERS		32
#define PGADM_BREAKER_REASON	256

/* Waits in the queue by duration: below 1 ms, 2 ms, 4 ms ... and the rest */
#define PGADM_WAIT_BUCKETS		18

/*
 * The limits in force, published by one process, see limits.c.
 */
typedef struct PgAdmLimits
{
	PgAdmMode	mode;			/* of sessions without one of their own */
	bool		shedding;		/* is the queue bounded, and left on timeout? */
	int			queue_capacity; /* negative: unbounded */
	int			queue_timeout;	/* in ms; 0: unbounded */
	int			workers_total;
	int64		memory_total;	/* in bytes */
} PgAdmLimits;

/*
 * An admitted query, or the sum of several for a slot's last entry.  A query
 * that holds no worker between two runs is suspended.
 */
typedef struct PgAdmEntry
{
	int			count;			/* queries: 0 if free, 1, or more if summed */
	int			workers;		/* held now, or lent */
	bool		lent;			/* are the workers lent? */
	int			over_budget;	/* queries let pass by mode "observe" only */
	int64		memory;			/* in bytes */
	double		plan_cost;
	uint64		query_id;
	TimestampTz enqueued_at;	/* 0 if it did not wait */
	TimestampTz admitted_at;
} PgAdmEntry;

typedef enum PgAdmWaitState
{
	PGADM_NOT_WAITING,
	PGADM_WAITING,				/* linked into the queue */
	PGADM_GRANTED,				/* charged and unlinked by another process */
} PgAdmWaitState;

/*
 * What a queued query is.
 */
typedef struct PgAdmWaiter
{
	dlist_node	link;			/* in the queue while PGADM_WAITING */
	PgAdmWaitState state;
	bool		ahead;			/* waits at the head of the queue */
	bool		may_refuse;		/* may it be refused for overload? */
	bool		resumes;		/* takes the workers of its entry again */
	int			entry;			/* that it resumes, or -1; once granted, its */
	PgAdmClaim	claim;
	double		plan_cost;
	uint64		query_id;
	TimestampTz enqueued_at;
	int64		front_since;	/* when it became the next in turn, or 0 */
	bool		passed_over;	/* was woken, but does not come */
} PgAdmWaiter;

/*
 * Memory that the parallel workers of one Gather had when they ended.
 */
typedef struct PgAdmGatherMemory
{
	int			plan_node_id;	/* of the plan that they run */
	uint64		seen;			/* workers of the last launch, by number */
	int64		this_launch;	/* what these had, in bytes */
	int64		most;			/* the most of any launch before */
	int64		shared;			/* the most that they shared */
} PgAdmGatherMemory;

/* Gathers of one query that are kept apart */
#define PGADM_GATHERS_PER_SLOT	6

/*
 * Of all Gathers of the query that a backend runs, under a spinlock of its
 * own; see truth.c.
 */
typedef struct PgAdmWorkerMemory
{
	slock_t		mutex;
	int			ngathers;
	PgAdmGatherMemory gathers[PGADM_GATHERS_PER_SLOT];
} PgAdmWorkerMemory;

/*
 * One per backend, by its process number.  Owned by that backend, but others
 * grant to its waiter, and the sampler lends what its entries hold.  A query
 * that neither waits nor runs inside of another touches the first cache line
 * only.
 */
typedef struct PgAdmSlot
{
	uint32		activity;		/* see cpu.c; by its owner, without the lock */
	int			role_stats;		/* index of its counters */
	PgAdmEntry	entries[PGADM_ENTRIES_PER_SLOT];
	PgAdmWaiter waiter;
	pid_t		pid;			/* of the backend that used it last */
	Oid			role;			/* that it authenticated as */
	PgAdmWorkerMemory workers;
} pg_attribute_aligned(PGADM_CACHE_LINE_SIZE) PgAdmSlot;

/*
 * Sums over the entries of all slots.
 */
typedef struct PgAdmBudget
{
	int			running;		/* admitted and not ended */
	int			workers_used;
	int			workers_lent;
	int			over_budget;
	int64		memory_used;
	int64		memory_parked;	/* part held by who has no worker, or lent it */
} PgAdmBudget;

/*
 * The queue: who may not be refused goes ahead of the others, each in order
 * of arrival.
 */
typedef struct PgAdmQueue
{
	int			queued;			/* in both lists */
	int			woken;			/* slot woken that has not answered, or -1 */
	int64		woken_at;
	dlist_head	ahead;
	dlist_head	waiters;
	int			first;			/* slot first in "waiters", as last seen, or -1 */
	int64		first_since;
} PgAdmQueue;

/*
 * The counters of pg_stat_admission.  A name here is a column's name there.
 */
typedef enum PgAdmCounter
{
	PGADM_SUBMITTED,
	PGADM_ADMITTED,
	PGADM_WAITED,
	PGADM_COMPLETED,
	PGADM_REJECTED,
	PGADM_REJECTED_QUEUE_FULL,
	PGADM_REJECTED_QUEUE_TIMEOUT,
	PGADM_REJECTED_DEADLINE,	/* nothing refuses for that yet */
	PGADM_REJECTED_CPU_OVERLOAD,
	PGADM_REJECTED_BREAKER,
	PGADM_REJECTED_MEMORY,
	PGADM_REJECTED_WORKERS,
	PGADM_DROPPED_CONNECTIONS,
	PGADM_CANCELLED_WHILE_QUEUED,
	PGADM_BYPASSED_SUPERUSER,
	PGADM_BYPASSED_ROLE,
	PGADM_BYPASSED_SETTING,
	PGADM_BYPASSED_COST,
	PGADM_BYPASSED_NO_RELATION,
	PGADM_WOULD_HAVE_WAITED,
	PGADM_WOULD_HAVE_REJECTED,
	PGADM_WOULD_HAVE_DROPPED_CONNECTIONS,
	PGADM_FORCED,
	PGADM_LENT,
	PGADM_THROTTLED,
	PGADM_RESCUED,
} PgAdmCounter;

#define PGADM_NCOUNTERS	(PGADM_RESCUED + 1)

/* Roles and databases whose queries are counted apart; the rest are summed */
#define PGADM_MAX_ROLE_STATS	256

/*
 * The counters of one role in one database; of all others in the first.
 */
typedef struct PgAdmRoleStats
{
	Oid			role;
	Oid			database;
	uint64		submitted;
	uint64		admitted;
	uint64		waited;
	uint64		rejected;
	uint64		would_have_rejected;
	int64		wait_us_total;
} pg_attribute_aligned(PGADM_CACHE_LINE_SIZE) PgAdmRoleStats;

/*
 * Cumulative statistics.  The counters are atomic so that a bypassed query
 * can be counted without the lock, and all can be read so; the others are
 * changed under it.
 */
typedef struct PgAdmStats
{
	pg_atomic_uint64 counters[PGADM_NCOUNTERS];
	uint64		wait_histogram[PGADM_WAIT_BUCKETS];
	int64		wait_us_total;
	int64		wait_us_max;
	int64		cpu_wait_us_base;	/* of the growing totals, at the reset */
	int64		cpu_busy_us_base;
	TimestampTz reset_at;
} PgAdmStats;

/*
 * A query whose charge was not what it had allocated, in bytes.
 */
typedef struct PgAdmMisestimate
{
	int64		error;			/* the difference; 0: there is none yet */
	uint64		query_id;
	int64		charged;
	int64		allocated;
} PgAdmMisestimate;

/*
 * Charges and what queries really had, in bytes, under a spinlock of its own.
 */
typedef struct PgAdmMemoryStats
{
	slock_t		mutex;
	int64		queries;		/* the first that a reset clears */
	int64		charged;
	int64		allocated;
	int64		underestimated; /* queries */
	int64		overestimated;
	int64		missing;		/* by which these exceeded their charges */
	PgAdmMisestimate worst_under;
	PgAdmMisestimate worst_over;
} PgAdmMemoryStats;

/*
 * Refusals that the server log has not been told of, atomic and without the
 * lock.
 */
typedef struct PgAdmLogDebt
{
	pg_atomic_uint64 refused[PGADM_NREASONS];
	pg_atomic_uint64 logged_at; /* TimestampTz of the last summary */
} PgAdmLogDebt;

/*
 * The sampler, set by itself, and but for "attentive" without the lock.
 */
typedef struct PgAdmSamplerState
{
	pid_t		pid;			/* 0 if there is none */
	int			procno;
	bool		attentive;		/* looks often, or has been told to */
} PgAdmSamplerState;

typedef enum PgAdmBreakerKind
{
	PGADM_BREAKER_UNUSED,
	PGADM_BREAKER_BUILT_IN,
	PGADM_BREAKER_MONITOR,		/* of another extension */
	PGADM_BREAKER_OPERATOR,		/* tripped by hand */
} PgAdmBreakerKind;

typedef struct PgAdmBreaker
{
	PgAdmBreakerKind kind;
	char		name[NAMEDATALEN];
	PgAdmLoadBreaker state;
	int			statements;		/* that it refuses */
	bool		warn_only;
	int64		warned;			/* queries let pass by warn_only */
	TimestampTz expires_at;		/* of one tripped by hand */
	char		reason[PGADM_BREAKER_REASON];	/* likewise */
	int			encoding;		/* of the reason */
} PgAdmBreaker;

typedef enum PgAdmWarningId
{
	PGADM_WARNING_CPU,
	PGADM_WARNING_MEMORY,
	PGADM_WARNING_QUEUE,
} PgAdmWarningId;

#define PGADM_NWARNINGS	(PGADM_WARNING_QUEUE + 1)

/*
 * The server's load as of the last sample, published by the sampler.
 */
typedef struct PgAdmServerLoad
{
	PgAdmLoadSample sample;
	uint64		number;			/* of the sample */
	int			interval_ms;	/* until the next */
	PgAdmLoadValue throttle_rate;	/* queued or refused per s, last sample */
	PgAdmLoadValue service_rate;	/* completed per s, smoothed */
	PgAdmLoadWarning warnings[PGADM_NWARNINGS];
	PgAdmBreaker breakers[PGADM_MAX_BREAKERS];
} PgAdmServerLoad;

/*
 * CPU time of the server's processes, under a spinlock of its own; see cpu.c.
 */
typedef struct PgAdmCpu
{
	slock_t		mutex;
	int64		busy_ns;
	int64		wait_ns;
} PgAdmCpu;

/* How much of a process is in the sums */
typedef struct PgAdmCpuAccount
{
	int			pid;
	bool		exited;
	int64		run_ns;
	int64		wait_ns;
} PgAdmCpuAccount;

/*
 * The last samples, under a lock of their own, since copying them takes long.
 */
typedef struct PgAdmHistory
{
	LWLock		lock;
	uint64		written;
	PgAdmLoadSample samples[PGADM_LOAD_HISTORY_SIZE];
} PgAdmHistory;

/*
 * What every query touches comes first and close together, on one page with
 * the counters of the first roles: with many backends on few CPUs, next to
 * nothing of it is in a cache when a backend's turn comes, and what admission
 * costs is the number of its pages and cache lines.
 */
typedef struct PgAdmShared
{
	/* Read often, and without the lock, but seldom written */
	PgAdmLimits limits;
	int			nslots;
	int			nroles;			/* 1, for the rest, and those in use */
	int			ntripped;		/* breakers that are, warn_only ones too */

	/* Written by every query; but for the queue, which is often empty */
	PgAdmQueue	queue pg_attribute_aligned(PGADM_CACHE_LINE_SIZE);
	LWLock		lock pg_attribute_aligned(PGADM_CACHE_LINE_SIZE);
	PgAdmBudget budget;
	PgAdmStats	stats;
	PgAdmRoleStats roles[PGADM_MAX_ROLE_STATS];

	PgAdmSamplerState sampler;
	PgAdmServerLoad load;
	PgAdmMemoryStats memory_stats;
	PgAdmLogDebt log_debt;
	int			ncpu_accounts;
	PgAdmCpuAccount *cpu_accounts;
	PgAdmCpu	cpu;
	PgAdmHistory history;
	PgAdmSlot	slots[FLEXIBLE_ARRAY_MEMBER];
} PgAdmShared;

/* NULL unless the library was preloaded */
extern PgAdmShared *pgadm_shared;

extern void pgadm_shared_request(void);
extern void pgadm_shared_startup(void);
extern void pgadm_shared_require(void);

#endif							/* PGADM_SHARED_H */
