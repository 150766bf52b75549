/*-------------------------------------------------------------------------
 *
 * pg_admission_monitor.h
 *		How another extension adds a circuit breaker to pg_admission.
 *
 * An extension that knows when the server should refuse queries (replication
 * lag, connections used, a queue of its own ...) registers a monitor from its
 * _PG_init(), while shared_preload_libraries are loaded, before or after
 * pg_admission.  The sampler asks it for its value at every sample; while that
 * is at or over the threshold, pg_admission refuses the statements named with
 * SQLSTATE 53A01, reason=breaker.  The breaker clears at 10 % below the
 * threshold, or when the value is unknown.
 *
 * The callback runs in a background worker that has shared memory but no
 * database and no transaction.  It must be quick.  If it raises an error, that
 * is logged, and its value is unknown.  What it palloc()s is freed afterwards.
 * It may change the threshold, when that is a setting of its extension.
 *
 *		static bool
 *		connections_used(void *arg, double *value)
 *		{
 *			...
 *			return true;
 *		}
 *
 *		static PgAdmMonitor monitor = {
 *			.name = "connections", .threshold = 80,
 *			.statements = PGADM_MONITOR_READ | PGADM_MONITOR_WRITE,
 *			.read = connections_used,
 *		};
 *
 *		pgadm_register_monitor(&monitor);
 *
 * Since 1.0.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/pg_admission_monitor.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PG_ADMISSION_MONITOR_H
#define PG_ADMISSION_MONITOR_H

#include "fmgr.h"

#define PGADM_MONITOR_READ		0x01
#define PGADM_MONITOR_WRITE		0x02

typedef struct PgAdmMonitor
{
	const char *name;			/* of the breaker, shorter than NAMEDATALEN */
	double		threshold;		/* trips at or over this; 0: off */
	int			statements;		/* what it refuses */
	bool		(*read) (void *arg, double *value); /* false: unknown */
	void	   *arg;			/* for the callback */
	struct PgAdmMonitor *next;	/* set by pgadm_register_monitor() */
} PgAdmMonitor;

#define PGADM_MONITORS_RENDEZVOUS	"pg_admission_monitors_1"

/*
 * Register a monitor, once.  The struct, and its name, must stay where they
 * are.  What is wrong with it, the sampler says in the server log.
 */
static inline void
pgadm_register_monitor(PgAdmMonitor *monitor)
{
	PgAdmMonitor **head =
		(PgAdmMonitor **) find_rendezvous_variable(PGADM_MONITORS_RENDEZVOUS);

	for (PgAdmMonitor *m = *head; m != NULL; m = m->next)
	{
		if (m == monitor)
			return;
	}
	monitor->next = *head;
	*head = monitor;
}

#endif							/* PG_ADMISSION_MONITOR_H */
