/*-------------------------------------------------------------------------
 *
 * monitors.c
 *		Where circuit breakers get their values from.
 *
 * At each sample, the sampler updates every breaker: the built-in ones from the
 * sample, those of other extensions by asking their monitors; those tripped by
 * hand expire.  It logs what trips or clears.
 *
 * Locking: each breaker is updated under the admission lock.  Monitors are
 * asked, and events logged, without it.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/monitors.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "breakers.h"
#include "common/string.h"
#include "gate.h"
#include "monitors.h"
#include "pg_admission_monitor.h"
#include "storage/lwlock.h"
#include "utils/memutils.h"

StaticAssertDecl(PGADM_MONITOR_READ == PGADM_LOAD_STATEMENT_READ &&
				 PGADM_MONITOR_WRITE == PGADM_LOAD_STATEMENT_WRITE,
				 "statements of monitors must be those of breakers");

/*
 * The monitor of each breaker that has one; the sampler's own.
 */
static PgAdmMonitor *monitors[PGADM_MAX_BREAKERS];

static PgAdmMonitor *
first_monitor(void)
{
	return *(PgAdmMonitor **) find_rendezvous_variable(PGADM_MONITORS_RENDEZVOUS);
}

static void
set_up_built_in(void *arg)
{
	pgadm_breakers_set_up_built_in();
}

/* A monitor's breaker that is being set up */
typedef struct Place
{
	const char *name;
	int			number;
} Place;

static void
set_up_monitor(void *arg)
{
	Place	   *place = arg;

	place->number = pgadm_breakers_set_up_monitor(place->name);
}

/*
 * Take a monitor, or return what is wrong with it.
 */
static const char *
take_monitor(PgAdmMonitor *monitor)
{
	Place		place;

	if (monitor->name == NULL || monitor->name[0] == '\0' ||
		strlen(monitor->name) >= NAMEDATALEN)
		return "its name is missing or too long";
	if (!pg_is_ascii(monitor->name))
		return "its name has characters that are not ASCII";
	if (pgadm_breakers_is_built_in(monitor->name))
		return "its name is that of a built-in circuit breaker";
	if (monitor->read == NULL)
		return "it has no callback";

	place.name = monitor->name;
	pgadm_gate_locked(set_up_monitor, &place);
	if (place.number < 0)
		return "there are too many circuit breakers";
	if (monitors[place.number] != NULL)
		return "there is another one of that name";

	monitors[place.number] = monitor;
	return NULL;
}

/*
 * The sampler has started: set up the breakers that it will update.
 */
void
pgadm_monitors_start(void)
{
	pgadm_gate_locked(set_up_built_in, NULL);

	for (PgAdmMonitor *m = first_monitor(); m != NULL; m = m->next)
	{
		const char *problem = take_monitor(m);

		if (problem != NULL)
			ereport(WARNING,
					(errmsg("monitor \"%s\" is ignored: %s",
							m->name ? m->name : "", problem)));
	}
}

/*
 * Log, as no more than a warning, what a monitor's callback has raised.  But
 * not again at every sample, as long as it goes on.
 */
static void
log_failure(PgAdmMonitor *monitor, bool again)
{
	ErrorData  *edata = CopyErrorData();

	FlushErrorState();
	if (!again)
		ereport(WARNING,
				(errcode(edata->sqlerrcode),
				 errmsg("value of circuit breaker \"%s\" could not be read: %s",
						monitor->name, edata->message),
				 errdetail("The breaker does not trip until it can be.")));
	FreeErrorData(edata);
}

/*
 * Ask another extension for its value.  Neither an error there nor memory
 * that it leaves may bring down the sampler.
 */
static PgAdmLoadValue
read_monitor(PgAdmMonitor *monitor, bool *failed)
{
	static MemoryContext context = NULL;
	MemoryContext outer = CurrentMemoryContext;
	PgAdmLoadValue result = pgadm_load_unknown();
	volatile bool failed_again = *failed;

	if (context == NULL)
		context = AllocSetContextCreate(TopMemoryContext, "pg_admission monitors",
										ALLOCSET_DEFAULT_SIZES);
	*failed = false;
	MemoryContextSwitchTo(context);

	PG_TRY();
	{
		double		value = 0;

		if (monitor->read(monitor->arg, &value))
			result = pgadm_load_known(value);
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		LWLockReleaseAll();
		log_failure(monitor, failed_again);
		*failed = true;
		result = pgadm_load_unknown();
	}
	PG_END_TRY();

	MemoryContextSwitchTo(outer);
	MemoryContextReset(context);
	return result;
}

static void
log_event(PgAdmLoadEvent event, const PgAdmBreaker *breaker)
{
	if (event == PGADM_LOAD_RAISED)
		ereport(WARNING,
				(errmsg("circuit breaker \"%s\" has tripped", breaker->name),
				 errdetail("Its value is %g, its threshold %g.",
						   breaker->state.value.value, breaker->state.threshold),
				 breaker->warn_only ?
				 errhint("It only warns; queries are not refused.") : 0));
	else if (event == PGADM_LOAD_CLEARED && breaker->state.value.known)
		ereport(LOG,
				(errmsg("circuit breaker \"%s\" has cleared", breaker->name),
				 errdetail("Its value is %g, its threshold %g.",
						   breaker->state.value.value, breaker->state.threshold)));
	else if (event == PGADM_LOAD_CLEARED)
		ereport(LOG,
				(errmsg("circuit breaker \"%s\" has cleared", breaker->name),
				 errdetail("Its value is unknown.")));
}

/* One breaker's update */
typedef struct Update
{
	int			place;
	const PgAdmBreakerInput *input;
	TimestampTz now;
	PgAdmLoadEvent event;
	PgAdmBreaker copy;
} Update;

static void
update_locked(void *arg)
{
	Update	   *update = arg;

	update->event = pgadm_breakers_update(update->place, update->input,
										  update->now, &update->copy);
}

static void
expire_locked(void *arg)
{
	Update	   *update = arg;

	update->event = pgadm_breakers_expire(update->place, update->now, &update->copy);
}

/*
 * Update one breaker; without an input, one that may have been tripped by hand.
 */
static void
update_breaker(int place, const PgAdmBreakerInput *input, TimestampTz now)
{
	Update		update = {.place = place,.input = input,.now = now};

	if (input != NULL)
		pgadm_gate_locked(update_locked, &update);
	else if (pgadm_breakers_may_expire(place))	/* if not now, next time */
		pgadm_gate_locked(expire_locked, &update);
	else
		return;
	log_event(update.event, &update.copy);
}

/*
 * Update every breaker, from a sample for the built-in ones, and log what
 * trips or clears.
 */
void
pgadm_monitors_update(const PgAdmLoadSample *sample, TimestampTz now)
{
	static bool failed[PGADM_MAX_BREAKERS];
	PgAdmBreakerInput input;

	for (int i = 0; i < PGADM_BUILT_IN_BREAKERS; i++)
	{
		input = pgadm_breakers_built_in_input(i, sample);
		update_breaker(i, &input, now);
	}

	for (int i = PGADM_BUILT_IN_BREAKERS; i < PGADM_MAX_BREAKERS; i++)
	{
		if (monitors[i] == NULL)
		{
			update_breaker(i, NULL, now);
			continue;
		}
		input.value = read_monitor(monitors[i], &failed[i]);
		input.threshold = monitors[i]->threshold;
		input.statements = monitors[i]->statements;
		input.warn_only = false;
		update_breaker(i, &input, now);
	}
}
