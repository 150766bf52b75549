/*-------------------------------------------------------------------------
 *
 * sampler.c
 *		The background worker.
 *
 * Once per sample_interval it takes a sample and publishes the limits, since
 * the machine may have become another; as it does when the configuration has
 * been reloaded.  While anybody is queued it also looks
 * every LOOK_MS for workers to lend and for waiters that nobody woke.
 *
 * Queries are admitted and let go without it.  If it dies, the postmaster
 * starts it again; until then nothing is lent, and a reload has no effect.
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

#include "compat.h"
#include "errors.h"
#include "lending.h"
#include "limits.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "queue.h"
#include "sample.h"
#include "sampler.h"
#include "settings.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/timestamp.h"

#define LOOK_MS			100
#define RESTART_SECONDS 1

PGDLLEXPORT void pgadm_sampler_main(Datum main_arg);

static void
forget_sampler(int code, Datum arg)
{
	pgadm_shared->sampler.pid = 0;
}

/*
 * Sleep until the next sample is due, or for LOOK_MS if there is somebody to
 * look after.
 */
static void
sleep_until(TimestampTz next_sample, bool attentive)
{
	static uint32 wait_event = 0;
	long		ms = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), next_sample);

	if (wait_event == 0)
		wait_event = PGADM_WAIT_EVENT_NEW("AdmissionSampler");

	/* Not longer than that even if the clock jumps. */
	ms = Min(ms, attentive ? LOOK_MS : pgadm_sample_interval);
	if (ms > 0)
		(void) WaitLatch(MyLatch,
						 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 ms, wait_event);
	ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
}

static void
follow_reload(void)
{
	if (!ConfigReloadPending)
		return;

	ConfigReloadPending = false;
	ProcessConfigFile(PGC_SIGHUP);
	pgadm_limits_publish();
	pgadm_sample_apply_settings();
}

/*
 * The worker's main loop.  A SIGTERM ends it with an exit code that makes the
 * postmaster start it again, unless that is shutting down.
 */
void
pgadm_sampler_main(Datum main_arg)
{
	TimestampTz next_sample = GetCurrentTimestamp();
	TimestampTz next_look = next_sample;
	bool		saturated = false;

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();

	before_shmem_exit(forget_sampler, (Datum) 0);
	pgadm_shared->sampler.procno = PGADM_MY_PROC_NUMBER;
	pgadm_shared->sampler.pid = MyProcPid;
	pgadm_limits_publish();
	pgadm_sample_start();

	for (;;)
	{
		bool		attentive = pgadm_queue_watch();
		TimestampTz now = GetCurrentTimestamp();

		if (attentive &&
			(now >= next_look || now < next_look - LOOK_MS * INT64CONST(1000)))
		{
			pgadm_lending_look();
			pgadm_queue_rescue();
			saturated = true;
			next_look = TimestampTzPlusMilliseconds(now, LOOK_MS);
		}
		if (now >= next_sample ||
			now < next_sample - pgadm_sample_interval * INT64CONST(1000))
		{
			pgadm_limits_publish();
			pgadm_sample_take(saturated);
			pgadm_errors_log_summary();
			saturated = false;
			next_sample = TimestampTzPlusMilliseconds(now, pgadm_sample_interval);
		}

		sleep_until(next_sample, attentive);
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
