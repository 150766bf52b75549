/*-------------------------------------------------------------------------
 *
 * sampler.c
 *		The background worker.
 *
 * Once per sample_interval it takes a sample and publishes the limits, since
 * the machine may have become another; as it does when the configuration has
 * been reloaded.  While all workers are in use, or a query is queued, it also
 * looks every LOOK_MS for workers to lend and for waiters that no process woke;
 * else it looks for such workers every IDLE_LOOK_MS.
 *
 * Queries are admitted and let go without it.  If it dies, the postmaster
 * starts it again; until then backends stand in for it, see stand_in.c.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/sampler.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <signal.h>

#include "capacity.h"
#include "clock.h"
#include "compat.h"
#include "errors.h"
#include "gate.h"
#include "lending.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "sample.h"
#include "sampler.h"
#include "settings.h"
#include "shared.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/timestamp.h"

/* Time between two looks at the waiters, and if there is no reason to hurry */
#define LOOK_MS			100
#define IDLE_LOOK_MS	1000

/*
 * A look that takes long comes less often, so that looking takes one part in
 * LOOK_COST of the time; but not so much less that lending.c could no longer
 * tell that a wait is still the same.
 */
#define LOOK_COST		50
#define MAX_LOOK_MS		400

#define RESTART_SECONDS 1

PGDLLEXPORT void pgadm_sampler_main(Datum main_arg);

static void
forget_sampler(int code, Datum arg)
{
	pgadm_shared->sampler.pid = 0;
}

/*
 * What is done again and again, by a clock that does not jump.
 */
typedef struct Task
{
	int64		last_us;
	int			period_ms;
} Task;

static long
ms_until(const Task *task, int64 now_us)
{
	return Max(task->last_us + task->period_ms * INT64CONST(1000) - now_us + 999, 0) / 1000;
}

static void
sleep_until_due(const Task *look, const Task *sample)
{
	static uint32 wait_event = 0;
	int64		now_us = pgadm_clock_us();
	long		ms = Min(ms_until(look, now_us), ms_until(sample, now_us));

	if (wait_event == 0)
		wait_event = PGADM_WAIT_EVENT_NEW("AdmissionSampler");

	if (ms > 0)
		(void) WaitLatch(MyLatch,
						 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 ms, wait_event);
	ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
}

/*
 * Look for workers to lend and, if busy, for waiters to wake.  Returns how long
 * to wait before the next look if there is a reason to hurry, and sets whether
 * some query may be about to lend.
 */
static int
look(bool busy, bool *soon)
{
	int64		began = pgadm_clock_us();
	int64		took_ms;

	*soon = pgadm_lending_look();
	if (busy)
		pgadm_gate_rescue();
	took_ms = (pgadm_clock_us() - began) / 1000;
	return (int) Min(Max(took_ms * LOOK_COST, LOOK_MS), MAX_LOOK_MS);
}

static void
follow_reload(void)
{
	if (!ConfigReloadPending)
		return;

	ConfigReloadPending = false;
	ProcessConfigFile(PGC_SIGHUP);
	pgadm_capacity_publish(false);
	pgadm_sample_apply_settings();
}

/*
 * Tell the others that there is a sampler.
 */
static void
say_alive(void)
{
	PgAdmSamplerState *sampler = &pgadm_shared->sampler;

	sampler->alive_at = GetCurrentTimestamp();
	if (pg_atomic_read_u64(&sampler->missed_at) != 0)
		pg_atomic_write_u64(&sampler->missed_at, 0);
}

/*
 * The worker's main loop.  A SIGTERM ends it with an exit code that makes the
 * postmaster start it again, unless that is shutting down.
 */
void
pgadm_sampler_main(Datum main_arg)
{
	Task		looks = {.last_us = pgadm_clock_us()};
	Task		samples = {0};
	int			hurry_ms = LOOK_MS;
	bool		soon = false;	/* some query may be about to lend */
	bool		saturated = false;

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();

	before_shmem_exit(forget_sampler, (Datum) 0);
	pgadm_shared->sampler.procno = PGADM_MY_PROC_NUMBER;
	pgadm_shared->sampler.pid = MyProcPid;
	pgadm_capacity_publish(false);
	pgadm_sample_start();

	for (;;)
	{
		bool		busy = pgadm_gate_watch();
		int64		now_us = pgadm_clock_us();

		say_alive();

		looks.period_ms = busy || soon ? hurry_ms : IDLE_LOOK_MS;
		samples.period_ms = pgadm_sample_interval;

		if (ms_until(&looks, now_us) == 0)
		{
			hurry_ms = look(busy, &soon);
			looks.last_us = now_us;
			saturated |= busy;
		}
		else if (ms_until(&samples, now_us) == 0)
		{
			pgadm_capacity_publish(false);
			pgadm_sample_take(saturated);
			saturated = false;
			samples.last_us = now_us;
		}
		else
			sleep_until_due(&looks, &samples);
		pgadm_errors_log_summary();
		follow_reload();
	}
}

/*
 * Have the postmaster start the worker.
 */
void
pgadm_sampler_register(void)
{
	BackgroundWorker worker;

	memset(&worker, 0, sizeof(worker));
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS;
	worker.bgw_start_time = BgWorkerStart_PostmasterStart;
	worker.bgw_restart_time = RESTART_SECONDS;
	strlcpy(worker.bgw_library_name, "pg_admission", BGW_MAXLEN);
	strlcpy(worker.bgw_function_name, "pgadm_sampler_main", BGW_MAXLEN);
	strlcpy(worker.bgw_name, "pg_admission sampler", BGW_MAXLEN);
	strlcpy(worker.bgw_type, "pg_admission sampler", BGW_MAXLEN);
	RegisterBackgroundWorker(&worker);
}
