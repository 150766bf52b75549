/*-------------------------------------------------------------------------
 *
 * stand_in.c
 *		What backends do while the sampler is missing.
 *
 * There is none if max_worker_processes leaves no place for it, and for a second
 * after it has died; it may also be stopped.  Without it the server still
 * follows its settings: a backend that has read them publishes them, at the
 * beginning of its next statement, whether or not that is subject to admission,
 * or while it waits in the queue.  The load is unknown then, so that nothing is
 * refused because of it.  That this is so is said in the server log, as long as
 * it lasts.
 *
 * Publishing is idempotent.  Several backends may do it at once, in any order:
 * gate.c does not let what was read earlier replace what was read later.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/stand_in.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "capacity.h"
#include "miscadmin.h"
#include "postmaster/interrupt.h"
#include "shared.h"
#include "stand_in.h"
#include "utils/guc.h"
#include "warnings.h"

/* Time between two looks if the settings have not been read anew */
#define LOOK_MS		PGADM_SAMPLER_MISSING_MS

TimestampTz pgadm_stand_in_next_look = 0;
TimestampTz pgadm_stand_in_looked_with = 0;

/*
 * Publish the settings, unless this process has done so since it read them.
 */
static void
publish(void)
{
	static TimestampTz published = 0;

	if (published == PgReloadTime)
		return;
	pgadm_capacity_publish(true);
	published = PgReloadTime;
}

/*
 * Look whether the sampler is missing, and stand in for it if so.
 *
 * If it has only just stopped it does not look missing yet, and what this
 * backend has read then is published at a later look.
 */
void
pgadm_stand_in_look(void)
{
	TimestampTz now = GetCurrentTimestamp();

	pgadm_stand_in_looked_with = PgReloadTime;
	pgadm_stand_in_next_look = now + LOOK_MS * INT64CONST(1000);

	if (pgadm_shared == NULL || MyBackendType != B_BACKEND ||
		!pgadm_shared_sampler_missing(now))
		return;

	publish();
	pgadm_warnings_log_missing_sampler(now);
}

/*
 * The same in a backend that waits in the queue, which first has to read the
 * files itself.
 *
 * PostgreSQL reads them between the messages of a client, also inside of a
 * transaction, because a setting must not change in the middle of a statement.
 * Here none is in the middle of anything: the query has its plan, but the
 * executor has not started, and a utility command has not either.  That is as if
 * the signal had come between the Parse and the Bind message of the query, or
 * before the EXECUTE of a prepared one.  What is around it, if anything, is DO,
 * CALL, or a function in a statement that is not charged, and these may see SET
 * between any two of their statements, too.  But in parallel mode PostgreSQL
 * would drop what has changed, so the files are left for later.
 */
void
pgadm_stand_in_while_waiting(void)
{
	if (!pgadm_shared_sampler_missing(GetCurrentTimestamp()))
		return;

	if (ConfigReloadPending && !IsInParallelMode())
	{
		ConfigReloadPending = false;
		ProcessConfigFile(PGC_SIGHUP);
	}
	pgadm_stand_in_look();
}
