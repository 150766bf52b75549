/*-------------------------------------------------------------------------
 *
 * pgadm_test_monitors.c
 *		Circuit breakers of another extension, for the tests of pg_admission,
 *		and an example of how to write some.
 *
 * To be loaded by shared_preload_libraries, before or after pg_admission.
 * It knows nothing of pg_admission but src/pg_admission_monitor.h, and without
 * pg_admission it does nothing.
 *
 *		replication_lag		bytes that the slowest standby has not received yet
 *		connections			client connections
 *		fed					the number in the file "fed" of the data directory;
 *							"error" there raises one
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  test/modules/monitors/pgadm_test_monitors.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "pg_admission_monitor.h"
#include "replication/walsender.h"
#include "replication/walsender_private.h"
#include "storage/procarray.h"
#include "utils/guc.h"

PG_MODULE_MAGIC;

PGDLLEXPORT void _PG_init(void);

static double lag_threshold;
static double connections_threshold;

/*
 * Bytes of WAL that the standby furthest behind has not received; unknown
 * without any.
 */
static bool
replication_lag(void *arg, double *value)
{
	PgAdmMonitor *monitor = (PgAdmMonitor *) arg;
	XLogRecPtr	flushed;
	bool		known = false;

	monitor->threshold = lag_threshold;
	if (RecoveryInProgress() || WalSndCtl == NULL)
		return false;
	flushed = GetFlushRecPtr(NULL);

	for (int i = 0; i < max_wal_senders; i++)
	{
		WalSnd	   *walsnd = &WalSndCtl->walsnds[i];
		XLogRecPtr	received;
		pid_t		pid;

		SpinLockAcquire(&walsnd->mutex);
		pid = walsnd->pid;
		received = walsnd->write;
		SpinLockRelease(&walsnd->mutex);

		if (pid == 0 || XLogRecPtrIsInvalid(received))
			continue;
		known = true;
		if (flushed > received)
			*value = Max(*value, (double) (flushed - received));
	}
	return known;
}

/*
 * Connections, not those of background workers.
 */
static bool
connections(void *arg, double *value)
{
	PgAdmMonitor *monitor = (PgAdmMonitor *) arg;

	monitor->threshold = connections_threshold;
	*value = CountDBConnections(InvalidOid);
	return true;
}

static bool
fed(void *arg, double *value)
{
	char		text[64] = "";
	char	   *end;
	FILE	   *file = fopen("fed", "r");

	if (file == NULL)
		return false;
	if (fgets(text, sizeof(text), file) == NULL)
		text[0] = '\0';
	fclose(file);

	if (strncmp(text, "error", 5) == 0)
		ereport(ERROR,
				(errmsg("fed with an error")));
	(void) palloc(64 * 1024);	/* what is left behind is not kept */
	*value = strtod(text, &end);
	return end != text;
}

static PgAdmMonitor monitors[] =
{
	{
		.name = "replication_lag",
		.statements = PGADM_MONITOR_WRITE,
		.read = replication_lag,.arg = &monitors[0],
	},
	{
		.name = "connections",
		.statements = PGADM_MONITOR_READ | PGADM_MONITOR_WRITE,
		.read = connections,.arg = &monitors[1],
	},
	{
		.name = "fed",.threshold = 10,
		.statements = PGADM_MONITOR_READ,
		.read = fed,
	},
	/* some that must be ignored, and said to be */
	{
		.name = "memory",.threshold = 1,
		.statements = PGADM_MONITOR_READ,
		.read = fed,
	},
	{
		.name = "a name that is longer than any name of an object can ever be in PostgreSQL",
		.threshold = 1,
		.statements = PGADM_MONITOR_READ,
		.read = fed,
	},
	{
		.name = "idle",.threshold = 1,
		.statements = PGADM_MONITOR_READ,
	},
};

void
_PG_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;

	DefineCustomRealVariable("pgadm_test_monitors.lag_threshold",
							 "Bytes of replication lag at which the breaker trips.",
							 NULL,
							 &lag_threshold, 0, 0, 1e18,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomRealVariable("pgadm_test_monitors.connections_threshold",
							 "Client connections at which the breaker trips.",
							 NULL,
							 &connections_threshold, 0, 0, 1e6,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
	MarkGUCPrefixReserved("pgadm_test_monitors");

	for (int i = 0; i < lengthof(monitors); i++)
	{
		pgadm_register_monitor(&monitors[i]);
		pgadm_register_monitor(&monitors[i]);
	}
}
