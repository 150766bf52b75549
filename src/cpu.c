/*-------------------------------------------------------------------------
 *
 * cpu.c
 *		CPU wait and busy time of this server's processes.
 *
 * The kernel tells for each process how long it has run, and how long it was
 * runnable but waited for a CPU.  The sums over all processes of the server
 * must only grow, while processes come and go.  So each process number has an
 * account of how much of its process has been added already; the sampler adds
 * what is new, and a process that exits adds the rest itself.  Those that run
 * none of our hooks (the auxiliary processes) only lose what they used since
 * the last sample.
 *
 * Most connections of a server are idle at any time.  A backend counts, in its
 * PgAdmBackend, when it begins and ends a statement, and when it plans one.  So
 * the sampler need not look again at a backend that was waiting for its client,
 * and not for data of a COPY, at the last sample, still is, and has begun
 * nothing meanwhile.  The count is odd during a statement.
 *
 * Locking: the accounts and sums are under a spinlock of their own.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/cpu.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <signal.h>

#include "compat.h"
#include "cpu.h"
#include "miscadmin.h"
#include "procfs.h"
#include "shared.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "storage/spin.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

/* What the sampler remembers of a process between two samples */
typedef struct Seen
{
	int			pid;
	bool		idle;			/* it waited for its client */
	uint32		activity;
} Seen;

static Seen *seen = NULL;

/*
 * Add what is new of a process to the sums.  Returns the busy time that was.
 */
static int64
settle(PgAdmCpu *cpu, PgAdmCpuAccount *account, int pid,
	   const PgAdmProcfsSched *sched, bool exits)
{
	int64		run_ns = 0;

	SpinLockAcquire(&cpu->mutex);
	if (account->pid != pid)
	{
		account->pid = pid;
		account->exited = false;
		account->run_ns = 0;
		account->wait_ns = 0;
	}

	/* The process may have exited after the sampler read its times. */
	if (!account->exited &&
		sched->run_ns >= account->run_ns && sched->wait_ns >= account->wait_ns)
	{
		run_ns = sched->run_ns - account->run_ns;
		cpu->busy_ns += run_ns;
		cpu->wait_ns += sched->wait_ns - account->wait_ns;
		account->run_ns = sched->run_ns;
		account->wait_ns = sched->wait_ns;
	}
	account->exited |= exits;
	SpinLockRelease(&cpu->mutex);

	return run_ns;
}

static void
settle_at_exit(int code, Datum arg)
{
	PgAdmProcfsSched sched;

	if (pgadm_procfs_sched(PGADM_PROCFS_HERE, 0, &sched))
		(void) settle(&pgadm_shared->cpu,
					  &pgadm_shared->cpu_accounts[PGADM_MY_PROC_NUMBER],
					  MyProcPid, &sched, true);
}

/*
 * This process settles its account when it exits.
 */
void
pgadm_cpu_join(void)
{
	static bool joined = false;

	if (joined || pgadm_shared == NULL || MyProc == NULL)
		return;
	joined = true;
	pgadm_cpu_end_statement();	/* that the process before was killed in */
	on_shmem_exit(settle_at_exit, (Datum) 0);
}

static PgAdmBackend *
my_backend(void)
{
	if (pgadm_shared == NULL || MyProc == NULL ||
		PGADM_MY_PROC_NUMBER >= pgadm_shared->nbackends)
		return NULL;
	return &pgadm_shared->backends[PGADM_MY_PROC_NUMBER];
}

/*
 * This backend does something for its client.
 */
void
pgadm_cpu_note_activity(void)
{
	PgAdmBackend *backend = my_backend();

	pgadm_cpu_join();
	if (backend != NULL)
		backend->activity += 2;
}

/*
 * This backend begins to execute a statement.
 */
void
pgadm_cpu_begin_statement(void)
{
	PgAdmBackend *backend = my_backend();

	pgadm_cpu_join();
	if (backend != NULL)
		backend->activity = (backend->activity + 2) | 1;
}

/*
 * This backend's statement, if there was one, has come to its end.
 */
void
pgadm_cpu_end_statement(void)
{
	PgAdmBackend *backend = my_backend();

	if (backend != NULL)
		backend->activity += backend->activity & 1;
}

/*
 * Is it known, without looking, that a process has used no CPU time since the
 * last sample?
 */
static bool
has_been_idle(int number, PGPROC *proc, int pid)
{
	Seen	   *last = &seen[number];
	uint32		wait_event_info = *(volatile uint32 *) &proc->wait_event_info;
	bool		idle = false;
	bool		was_idle;
	uint32		activity = 0;

	if (number < pgadm_shared->nbackends)
	{
		volatile PgAdmBackend *backend = &pgadm_shared->backends[number];

		activity = backend->activity;
		idle = (wait_event_info == WAIT_EVENT_CLIENT_READ && activity % 2 == 0);
	}

	was_idle = (last->pid == pid && last->idle && last->activity == activity);
	last->pid = pid;
	last->idle = idle;
	last->activity = activity;

	return idle && was_idle;
}

/*
 * Keep the biggest consumers, biggest first.
 */
static void
note_consumer(PgAdmCpuConsumer *consumers, int pid, int64 busy_us)
{
	for (int i = 0; i < PGADM_CPU_NCONSUMERS; i++)
	{
		if (busy_us <= consumers[i].busy_us)
			continue;
		memmove(&consumers[i + 1], &consumers[i],
				(PGADM_CPU_NCONSUMERS - 1 - i) * sizeof(PgAdmCpuConsumer));
		consumers[i].pid = pid;
		consumers[i].busy_us = busy_us;
		return;
	}
}

/*
 * Close the account of a process that is gone without having done so.
 */
static void
close_account(PgAdmCpuAccount *account, int pid)
{
	SpinLockAcquire(&pgadm_shared->cpu.mutex);
	account->pid = pid;
	account->exited = true;
	SpinLockRelease(&pgadm_shared->cpu.mutex);
}

/*
 * Bring the account of one process up to date.  A process number keeps the pid
 * of the process that had it last; sooner or later that is another program's.
 */
static void
sample_process(int number, int pid, PgAdmCpuConsumer *consumers)
{
	PgAdmCpuAccount *account = &pgadm_shared->cpu_accounts[number];
	PgAdmProcfsSched sched;
	int64		run_ns;

	if (pid <= 0 || (account->pid == pid && account->exited))
		return;
	if (!pgadm_procfs_sched(PGADM_PROCFS_HERE, pid, &sched))
	{
		if (kill(pid, 0) != 0 && errno == ESRCH)
			close_account(account, pid);
		return;
	}
	run_ns = settle(&pgadm_shared->cpu, account, pid, &sched, false);
	note_consumer(consumers, pid, run_ns / 1000);
}

/*
 * Bring the sums up to date, and return them.  They are unknown if the
 * sampler cannot even read its own times.
 */
void
pgadm_cpu_sample(PgAdmLoadTotals *totals, PgAdmCpuConsumer *consumers)
{
	PgAdmCpu   *cpu = &pgadm_shared->cpu;
	int			naccounts = pgadm_shared->ncpu_accounts;
	PgAdmProcfsSched sched;

	if (seen == NULL)
		seen = MemoryContextAllocZero(TopMemoryContext, naccounts * sizeof(Seen));

	memset(consumers, 0, PGADM_CPU_NCONSUMERS * sizeof(PgAdmCpuConsumer));
	totals->known = pgadm_procfs_sched(PGADM_PROCFS_HERE, 0, &sched);
	totals->at = GetCurrentTimestamp();

	/* The last account is the postmaster's, which has no number. */
	for (int i = 0; i < naccounts - 1; i++)
	{
		PGPROC	   *proc = GetPGProcByNumber(i);
		int			pid = *(volatile int *) &proc->pid;

		if (pid != 0 && !has_been_idle(i, proc, pid))
			sample_process(i, pid, consumers);
	}
	sample_process(naccounts - 1, PostmasterPid, consumers);

	SpinLockAcquire(&cpu->mutex);
	totals->part_us = cpu->wait_ns / 1000;
	totals->whole_us = cpu->busy_ns / 1000;
	SpinLockRelease(&cpu->mutex);
}
