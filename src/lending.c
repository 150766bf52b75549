/*-------------------------------------------------------------------------
 *
 * lending.c
 *		Lends the workers of queries that wait for something outside.
 *
 * A query that has been waiting for LEND_AFTER_MS for a lock, a buffer pin,
 * its client or a remote server uses no CPU, and what it waits for may itself
 * be waiting in the queue.  Its workers are lent to the queue, and are the
 * query's again as soon as it is seen to go on, even if that exceeds the
 * budget for a while.  In a shorter wait the worker is kept: for a hot row
 * such waits are many, and a small budget is there to make them fewer.
 *
 * A parallel query waits if its leader waits for its parallel workers, and all
 * of them wait for something outside.
 *
 * Some waits for a remote server have no wait event: those of dblink in older
 * minor versions, of a function in Perl or Python, or of a program that COPY
 * runs.  So if a process has no wait event, the kernel is asked: if the
 * process is asleep and has not run at all since the last look, it waits as
 * well.  A wait for a disk does not count.  Where the kernel does not tell,
 * nothing is lent.
 *
 * The sampler looks.  While it is missing, the backends that wait do that
 * instead, so that no query waits for ever for one that waits for it.
 *
 * Locking: each process remembers its own looks.  What another backend waits for is read
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

#include "clock.h"
#include "compat.h"
#include "gate.h"
#include "lending.h"
#include "procfs.h"
#include "shared.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#define LEND_AFTER_MS	100

/* Looks further apart than that have missed too much in between */
#define LOOKS_APART_MS	500

#define WAIT_CLASS(wait_event_info) ((wait_event_info) & 0xFF000000)

/* What a look has found of a backend: in the same wait if all is the same */
typedef struct Sight
{
	pid_t		pid;
	bool		waits;			/* for something outside */
	uint32		wait_event;
	int64		cpu;			/* used so far, if it has no wait event */
} Sight;

/* Of each backend: the last look, and how long it has been like that */
static struct
{
	Sight		sight;
	int64		since;			/* pgadm_clock_us() */
}		   *seen = NULL;

static int64 looked_at = 0;

/*
 * Is that a wait for something outside of this server's CPUs and disks?  Two
 * are of class IPC: for the remote servers of an Append, and for a standby.
 */
static bool
is_outside(uint32 wait_event)
{
	if (wait_event == WAIT_EVENT_APPEND_READY || wait_event == WAIT_EVENT_SYNC_REP)
		return true;

	switch (WAIT_CLASS(wait_event))
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
 * Is a process asleep, by what the kernel says?  cpu is set to a sum that
 * grows when the process runs, of nanoseconds and, if the kernel does not
 * count those, of ticks.
 */
static bool
is_asleep(pid_t pid, int64 *cpu)
{
	PgAdmProcfsProcess process;
	PgAdmProcfsSched sched;

	if (!pgadm_procfs_process(PGADM_PROCFS_HERE, pid, &process) ||
		process.state != 'S' ||
		!pgadm_procfs_sched(PGADM_PROCFS_HERE, pid, &sched))
		return false;

	*cpu = sched.run_ns + process.utime + process.stime;
	return true;
}

static uint32
wait_event_of(const PGPROC *proc)
{
	return *(const volatile uint32 *) &proc->wait_event_info;
}

/*
 * Does a backend have parallel workers, all of which wait for something
 * outside?
 */
static bool
workers_are_outside(const PGPROC *leader)
{
	bool		found = false;

	for (uint32 i = 0; i < ProcGlobal->allProcCount; i++)
	{
		const PGPROC *proc = GetPGProcByNumber(i);

		if (proc == leader ||
			*(PGPROC *const volatile *) &proc->lockGroupLeader != leader)
			continue;
		if (!is_outside(wait_event_of(proc)))
			return false;
		found = true;
	}

	return found;
}

static void
look_at_process(const PgAdmBackend *backend, const PGPROC *proc, Sight *sight)
{
	memset(sight, 0, sizeof(*sight));
	sight->pid = backend->pid;
	sight->wait_event = wait_event_of(proc);
	if (sight->wait_event == 0)
		sight->waits = is_asleep(backend->pid, &sight->cpu);
	else
		sight->waits = is_outside(sight->wait_event) ||
			(WAIT_CLASS(sight->wait_event) == PG_WAIT_IPC &&
			 workers_are_outside(proc));
}

/*
 * Has this backend been in its wait for long?  For a lock PostgreSQL keeps
 * when the wait began.  Any other wait has lasted since the first of the looks
 * that have all found the same.
 */
static bool
has_waited(int number, const Sight *sight, PGPROC *proc, int64 now)
{
	bool		same = now - looked_at < LOOKS_APART_MS * INT64CONST(1000) &&
		memcmp(&seen[number].sight, sight, sizeof(Sight)) == 0;

	if (!same)
	{
		seen[number].sight = *sight;
		seen[number].since = now;
	}

	if (WAIT_CLASS(sight->wait_event) == PG_WAIT_LOCK)
	{
		TimestampTz since = pg_atomic_read_u64(&proc->waitStart);

		return since != 0 &&
			TimestampDifferenceExceeds(since, GetCurrentTimestamp(), LEND_AFTER_MS);
	}
	return sight->waits &&
		now - seen[number].since >= LEND_AFTER_MS * INT64CONST(1000);
}

/*
 * What does a backend hold, and has it lent any of it?
 */
static void
look_at_entries(const PgAdmBackend *backend, bool *holds, bool *lent)
{
	*holds = *lent = false;
	for (int i = 0; i < PGADM_ENTRIES_PER_BACKEND; i++)
	{
		if (backend->holdings.entries[i].workers == 0)
			continue;
		if (backend->holdings.entries[i].lent)
			*lent = true;
		else
			*holds = true;
	}
}

/*
 * Look at the queries of one backend, if there are any.  Returns whether they
 * wait, but have not done so for long enough.
 */
static bool
look_at_backend(int number, int64 now)
{
	const PgAdmBackend *backend = &pgadm_shared->backends[number];
	PGPROC	   *proc = GetPGProcByNumber(number);
	Sight		sight;
	bool		holds;
	bool		lent;
	bool		waited;

	look_at_entries(backend, &holds, &lent);
	if (!holds && !lent)
	{
		seen[number].sight.pid = 0;
		return false;
	}

	look_at_process(backend, proc, &sight);
	waited = has_waited(number, &sight, proc, now);

	/* Without a wait event, it is seen to go on by a new wait only. */
	if (lent && (!sight.waits || (sight.wait_event == 0 && !waited)))
		pgadm_gate_lend(number, false);
	else if (holds && waited)
		pgadm_gate_lend(number, true);

	return holds && !waited && sight.waits;
}

/*
 * Look at every query that runs, and at every one that has lent.  Returns
 * whether to look again soon, since some may have waited for long enough then.
 */
bool
pgadm_lending_look(void)
{
	int64		now = pgadm_clock_us();
	bool		soon = false;

	if (seen == NULL)
		seen = MemoryContextAllocZero(TopMemoryContext,
									  pgadm_shared->nbackends * sizeof(*seen));

	for (int i = 0; i < pgadm_shared->nbackends; i++)
		soon |= look_at_backend(i, now);
	looked_at = now;

	return soon;
}
