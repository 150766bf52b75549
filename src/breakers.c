/*-------------------------------------------------------------------------
 *
 * breakers.c
 *		Circuit breakers: the built-in, other extensions', the operator's.
 *
 * The sampler gives the built-in ones and those of other extensions their
 * values; an operator trips one by name with pg_admission_trip(), for a
 * while.  When a breaker trips and clears is for load.c to say.
 *
 * Locking: breakers are part of the shared load, under the admission lock.
 * The sampler is the only one that adds and updates the first two kinds, and
 * reads those without it.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/breakers.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "breakers.h"
#include "common/string.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "pg_admission_monitor.h"
#include "settings.h"
#include "shared.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(pgadm_trip_1_0);
PG_FUNCTION_INFO_V1(pgadm_untrip_1_0);

#define ALL_STATEMENTS	(PGADM_LOAD_STATEMENT_READ | PGADM_LOAD_STATEMENT_WRITE)

StaticAssertDecl(PGADM_MONITOR_READ == PGADM_LOAD_STATEMENT_READ &&
				 PGADM_MONITOR_WRITE == PGADM_LOAD_STATEMENT_WRITE,
				 "statements of monitors must be those of breakers");

/* The built-in breakers come first, in this order. */
static const struct
{
	const char *name;
	PgAdmLoadScale scale;
	const double *threshold;
	const int  *statements;
	const bool *warn_only;
	size_t		value;			/* offset in PgAdmLoadSample */
}			built_in[] =
{
	{
		"memory", PGADM_LOAD_SCALE_FRACTION,
		&pgadm_memory_breaker.threshold, &pgadm_memory_breaker.statements,
		&pgadm_memory_breaker.warn_only,
		offsetof(PgAdmLoadSample, memory_usage)
	},
	{
		"cpu", PGADM_LOAD_SCALE_FRACTION,
		&pgadm_cpu_breaker.threshold, &pgadm_cpu_breaker.statements,
		&pgadm_cpu_breaker.warn_only,
		offsetof(PgAdmLoadSample, cpu_utilization)
	},
	{
		"load_average", PGADM_LOAD_SCALE_NUMBER,
		&pgadm_load_average_breaker.threshold, &pgadm_load_average_breaker.statements,
		&pgadm_load_average_breaker.warn_only,
		offsetof(PgAdmLoadSample, load_average)
	},
};

static PgAdmBreaker *
breaker_at(int i)
{
	return &pgadm_shared->load.breakers[i];
}

/*
 * Is any breaker tripped, whatever it refuses?  A single word, read without
 * the lock.
 */
bool
pgadm_breakers_any_tripped(void)
{
	return pgadm_shared->ntripped > 0;
}

/*
 * Does a breaker refuse such statements now?  One whose value is sampled does
 * not when the samples are stale.
 */
bool
pgadm_breakers_is_tripped(const PgAdmBreaker *breaker, int statements,
						  bool fresh, TimestampTz now)
{
	if (breaker->kind == PGADM_BREAKER_UNUSED || !breaker->state.tripped ||
		(breaker->statements & statements) == 0)
		return false;
	return breaker->kind == PGADM_BREAKER_OPERATOR ?
		now < breaker->expires_at : fresh;
}

/*
 * Copy the reason that an operator gave, in a database of maybe another
 * encoding.  The caller holds the lock or has a copy of the breaker.
 */
void
pgadm_breakers_copy_reason(const PgAdmBreaker *breaker, char *copy)
{
	strlcpy(copy, breaker->reason, PGADM_BREAKER_REASON);
	if (breaker->encoding == GetDatabaseEncoding())
		return;
	for (char *c = copy; *c != '\0'; c++)
	{
		if (IS_HIGHBIT_SET(*c))
			*c = '?';
	}
}

/*
 * Does any breaker refuse such statements now?  "count" is whether those that
 * only warn shall count it.
 */
bool
pgadm_breakers_refuse(int statements, TimestampTz now, bool count)
{
	PgAdmServerLoad *load = &pgadm_shared->load;
	bool		refuse = false;
	bool		fresh;

	if (!pgadm_breakers_any_tripped())
		return false;

	fresh = !pgadm_load_stale(load->sample.sampled_at, now, load->interval_ms);
	for (int i = 0; i < PGADM_MAX_BREAKERS; i++)
	{
		PgAdmBreaker *breaker = breaker_at(i);

		if (!pgadm_breakers_is_tripped(breaker, statements, fresh, now))
			continue;
		if (!breaker->warn_only)
			refuse = true;
		else if (count)
			breaker->warned++;
	}
	return refuse;
}

/*
 * Copy what is told of the breakers that refuse such statements.  The copy is
 * good until the next one.
 */
const PgAdmTripped *
pgadm_breakers_describe(int statements, TimestampTz now, int *n)
{
	/* Not in every outcome, which is on the stack of every query. */
	static PgAdmTripped tripped[PGADM_MAX_BREAKERS];

	PgAdmServerLoad *load = &pgadm_shared->load;
	bool		fresh = !pgadm_load_stale(load->sample.sampled_at, now,
										  load->interval_ms);

	*n = 0;
	for (int i = 0; i < PGADM_MAX_BREAKERS; i++)
	{
		const PgAdmBreaker *breaker = breaker_at(i);
		PgAdmTripped *copy;

		if (breaker->warn_only ||
			!pgadm_breakers_is_tripped(breaker, statements, fresh, now))
			continue;

		copy = &tripped[(*n)++];
		strlcpy(copy->name, breaker->name, sizeof(copy->name));
		pgadm_breakers_copy_reason(breaker, copy->reason);
		copy->value = breaker->state.value.value;
		copy->threshold = breaker->state.threshold;
	}
	return tripped;
}

/*
 * Count the tripped breakers again, after a change.
 */
static void
count_tripped(void)
{
	int			ntripped = 0;

	for (int i = 0; i < PGADM_MAX_BREAKERS; i++)
	{
		if (breaker_at(i)->kind != PGADM_BREAKER_UNUSED &&
			breaker_at(i)->state.tripped)
			ntripped++;
	}
	pgadm_shared->ntripped = ntripped;
}

/*
 * Find a breaker by name, or a place for a new one, or -1.  An operator's
 * breaker that has cleared makes room for another.
 */
static int
find_breaker(const char *name)
{
	int			place = -1;

	for (int i = lengthof(built_in); i < PGADM_MAX_BREAKERS; i++)
	{
		PgAdmBreaker *breaker = breaker_at(i);

		if (breaker->kind != PGADM_BREAKER_UNUSED &&
			strcmp(breaker->name, name) == 0)
			return i;
		if (place < 0 && breaker->kind == PGADM_BREAKER_UNUSED)
			place = i;
	}
	for (int i = lengthof(built_in); place < 0 && i < PGADM_MAX_BREAKERS; i++)
	{
		if (breaker_at(i)->kind == PGADM_BREAKER_OPERATOR &&
			!breaker_at(i)->state.tripped)
			place = i;
	}
	return place;
}

/*
 * Set up a breaker, unless it is there already: its counters outlive the
 * sampler.
 */
static void
set_up(PgAdmBreaker *breaker, PgAdmBreakerKind kind, const char *name,
	   PgAdmLoadScale scale)
{
	if (breaker->kind == kind && strcmp(breaker->name, name) == 0)
		return;

	memset(breaker, 0, sizeof(*breaker));
	strlcpy(breaker->name, name, NAMEDATALEN);
	breaker->kind = kind;
	breaker->state.scale = scale;
	breaker->statements = ALL_STATEMENTS;
}

static PgAdmMonitor *
first_monitor(void)
{
	return *(PgAdmMonitor **) find_rendezvous_variable(PGADM_MONITORS_RENDEZVOUS);
}

/*
 * The monitor of each breaker that has one; the sampler's own.
 */
static PgAdmMonitor *monitors[PGADM_MAX_BREAKERS];

static bool
is_built_in(const char *name)
{
	for (int i = 0; i < lengthof(built_in); i++)
	{
		if (strcmp(built_in[i].name, name) == 0)
			return true;
	}
	return false;
}

/*
 * Find out what is wrong with a monitor, or take it.
 */
static const char *
take_monitor(PgAdmMonitor *monitor)
{
	int			place;

	if (monitor->name == NULL || monitor->name[0] == '\0' ||
		strlen(monitor->name) >= NAMEDATALEN)
		return "its name is missing or too long";
	if (!pg_is_ascii(monitor->name))
		return "its name has characters that are not ASCII";
	if (is_built_in(monitor->name))
		return "its name is that of a built-in circuit breaker";
	if (monitor->read == NULL)
		return "it has no callback";

	place = find_breaker(monitor->name);
	if (place < 0)
		return "there are too many circuit breakers";
	if (monitors[place] != NULL)
		return "there is another one of that name";

	set_up(breaker_at(place), PGADM_BREAKER_MONITOR, monitor->name,
		   PGADM_LOAD_SCALE_NUMBER);
	monitors[place] = monitor;
	return NULL;
}

/*
 * Set up the breakers of other extensions.
 */
static void
take_monitors(void)
{
	for (PgAdmMonitor *m = first_monitor(); m != NULL; m = m->next)
	{
		const char *problem;

		LWLockAcquire(&pgadm_shared->lock, LW_EXCLUSIVE);
		problem = take_monitor(m);
		count_tripped();
		LWLockRelease(&pgadm_shared->lock);

		if (problem != NULL)
			ereport(WARNING,
					(errmsg("monitor \"%s\" is ignored: %s",
							m->name ? m->name : "", problem)));
	}
}

/*
 * The sampler has started: set up the breakers that it will update.
 */
void
pgadm_breakers_start(void)
{
	LWLockAcquire(&pgadm_shared->lock, LW_EXCLUSIVE);

	for (int i = 0; i < lengthof(built_in); i++)
		set_up(breaker_at(i), PGADM_BREAKER_BUILT_IN, built_in[i].name,
			   built_in[i].scale);

	LWLockRelease(&pgadm_shared->lock);

	take_monitors();
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

/*
 * Give one breaker its value.  Returns what changed, and a copy to log.
 */
static PgAdmLoadEvent
update_breaker(PgAdmBreaker *breaker, double threshold, int statements,
			   bool warn_only, PgAdmLoadValue value, TimestampTz now,
			   PgAdmBreaker *copy)
{
	PgAdmLoadEvent event;

	LWLockAcquire(&pgadm_shared->lock, LW_EXCLUSIVE);
	breaker->statements = statements;
	breaker->warn_only = warn_only;
	event = pgadm_load_breaker_update(&breaker->state, threshold, value, now);
	count_tripped();
	*copy = *breaker;
	LWLockRelease(&pgadm_shared->lock);

	return event;
}

/*
 * Clear a breaker that was tripped by hand, if its time is over.
 */
static PgAdmLoadEvent
expire_breaker(PgAdmBreaker *breaker, TimestampTz now, PgAdmBreaker *copy)
{
	PgAdmLoadEvent event = PGADM_LOAD_UNCHANGED;

	if (!breaker->state.tripped)	/* without the lock; there is a next time */
		return event;

	LWLockAcquire(&pgadm_shared->lock, LW_EXCLUSIVE);
	if (breaker->kind == PGADM_BREAKER_OPERATOR && now >= breaker->expires_at)
	{
		event = pgadm_load_breaker_update(&breaker->state, 1,
										  pgadm_load_known(0), now);
		count_tripped();
		*copy = *breaker;
	}
	LWLockRelease(&pgadm_shared->lock);

	return event;
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

/*
 * Update every breaker, from a sample for the built-in ones, and log what
 * trips or clears.
 */
void
pgadm_breakers_update(const PgAdmLoadSample *sample, TimestampTz now)
{
	static bool failed[PGADM_MAX_BREAKERS];
	PgAdmBreaker copy;

	for (int i = 0; i < lengthof(built_in); i++)
	{
		const PgAdmLoadValue *value = (const PgAdmLoadValue *)
			((const char *) sample + built_in[i].value);

		log_event(update_breaker(breaker_at(i), *built_in[i].threshold,
								 *built_in[i].statements, *built_in[i].warn_only,
								 *value, now, &copy), &copy);
	}

	for (int i = lengthof(built_in); i < PGADM_MAX_BREAKERS; i++)
	{
		if (monitors[i] != NULL)
			log_event(update_breaker(breaker_at(i), monitors[i]->threshold,
									 monitors[i]->statements, false,
									 read_monitor(monitors[i], &failed[i]),
									 now, &copy), &copy);
		else
			log_event(expire_breaker(breaker_at(i), now, &copy), &copy);
	}
}

/*
 * Check a breaker's name that an operator has given.  It is shown in databases
 * of any encoding.
 */
static char *
breaker_name(text *arg)
{
	char	   *name = text_to_cstring(arg);

	if (name[0] == '\0' || strlen(name) >= NAMEDATALEN || !pg_is_ascii(name))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid circuit breaker name: \"%s\"", name),
				 errdetail("The name must consist of 1 to %d ASCII characters.",
						   NAMEDATALEN - 1)));
	return name;
}

/*
 * When a breaker tripped now for that long expires.
 */
static TimestampTz
expiry(TimestampTz now, Interval *duration)
{
	TimestampTz expires_at =
		DatumGetTimestampTz(DirectFunctionCall2(timestamptz_pl_interval,
												TimestampTzGetDatum(now),
												IntervalPGetDatum(duration)));

	if (expires_at <= now)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("duration must be greater than zero")));
	return expires_at;
}

/*
 * Can a breaker be tripped and cleared by hand?
 */
typedef enum ByHand
{
	BY_HAND,
	NO_PLACE_LEFT,
	BUILT_IN,
	OF_ANOTHER_EXTENSION,
} ByHand;

/*
 * Find an operator's breaker.  The caller holds the lock.
 */
static ByHand
find_by_hand(const char *name, PgAdmBreaker **breaker)
{
	int			place = find_breaker(name);

	if (is_built_in(name))
		return BUILT_IN;
	if (place < 0)
		return NO_PLACE_LEFT;
	*breaker = breaker_at(place);
	return (*breaker)->kind == PGADM_BREAKER_MONITOR ? OF_ANOTHER_EXTENSION : BY_HAND;
}

/*
 * Trip a breaker by hand, or prolong that.
 */
static ByHand
trip(const char *name, const char *reason, TimestampTz expires_at, TimestampTz now)
{
	int			len = pg_mbcliplen(reason, strlen(reason), PGADM_BREAKER_REASON - 1);
	PgAdmBreaker *breaker;
	ByHand		result;

	LWLockAcquire(&pgadm_shared->lock, LW_EXCLUSIVE);
	result = find_by_hand(name, &breaker);
	if (result == BY_HAND)
	{
		set_up(breaker, PGADM_BREAKER_OPERATOR, name, PGADM_LOAD_SCALE_NUMBER);
		if (now >= breaker->expires_at) /* the sampler may not have seen it */
			(void) pgadm_load_breaker_update(&breaker->state, 1, pgadm_load_known(0), now);
		breaker->expires_at = expires_at;
		memcpy(breaker->reason, reason, len);
		breaker->reason[len] = '\0';
		breaker->encoding = GetDatabaseEncoding();
		(void) pgadm_load_breaker_update(&breaker->state, 1, pgadm_load_known(1), now);
		count_tripped();
	}
	LWLockRelease(&pgadm_shared->lock);

	return result;
}

/*
 * Clear a breaker that was tripped by hand, if it is.
 */
static ByHand
clear(const char *name, TimestampTz now, bool *was_tripped)
{
	PgAdmBreaker *breaker;
	ByHand		result;

	*was_tripped = false;
	LWLockAcquire(&pgadm_shared->lock, LW_EXCLUSIVE);
	result = find_by_hand(name, &breaker);
	if (result == BY_HAND && breaker->kind == PGADM_BREAKER_OPERATOR &&
		strcmp(breaker->name, name) == 0)
	{
		*was_tripped = pgadm_breakers_is_tripped(breaker, ALL_STATEMENTS, true, now);
		(void) pgadm_load_breaker_update(&breaker->state, 1, pgadm_load_known(0), now);
		count_tripped();
	}
	LWLockRelease(&pgadm_shared->lock);

	return result;
}

/*
 * Complain about a breaker that is not an operator's.
 */
static void
check_by_hand(const char *name, ByHand result)
{
	if (result != BUILT_IN && result != OF_ANOTHER_EXTENSION)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_RESERVED_NAME),
			 errmsg("circuit breaker \"%s\" cannot be tripped or cleared by hand", name),
			 result == BUILT_IN ?
			 errhint("Change \"pg_admission.%s_breaker_threshold\", or choose another name.", name) :
			 errdetail("It belongs to another extension.")));
}

/*
 * Trip a breaker of the operator's own, or prolong it.
 */
Datum
pgadm_trip_1_0(PG_FUNCTION_ARGS)
{
	TimestampTz now = GetCurrentTimestamp();
	TimestampTz expires_at;
	char	   *name;
	char	   *reason;
	ByHand		result;

	pgadm_shared_require();
	if (PG_ARGISNULL(0) || PG_ARGISNULL(1) || PG_ARGISNULL(2))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("name, reason and duration must not be null")));
	name = breaker_name(PG_GETARG_TEXT_PP(0));
	reason = text_to_cstring(PG_GETARG_TEXT_PP(1));
	expires_at = expiry(now, PG_GETARG_INTERVAL_P(2));

	result = trip(name, reason, expires_at, now);
	check_by_hand(name, result);
	if (result == NO_PLACE_LEFT)
		ereport(ERROR,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("too many circuit breakers"),
				 errdetail("There can be %d at most.", PGADM_MAX_BREAKERS)));

	ereport(LOG,
			(errmsg("circuit breaker \"%s\" was tripped by user \"%s\" until %s",
					name, GetUserNameFromId(GetSessionUserId(), false),
					timestamptz_to_str(expires_at)),
			 errdetail_log("Reason: %s", reason)));
	if (pgadm_shared->mode != PGADM_MODE_ENFORCE)
		ereport(WARNING,
				(errmsg("circuit breaker \"%s\" refuses queries only in sessions whose \"pg_admission.mode\" is \"enforce\"",
						name)));
	PG_RETURN_VOID();
}

/*
 * Clear a breaker that was tripped by hand.  Returns whether it was tripped.
 */
Datum
pgadm_untrip_1_0(PG_FUNCTION_ARGS)
{
	char	   *name = breaker_name(PG_GETARG_TEXT_PP(0));
	bool		was_tripped;

	pgadm_shared_require();
	check_by_hand(name, clear(name, GetCurrentTimestamp(), &was_tripped));

	if (was_tripped)
		ereport(LOG,
				(errmsg("circuit breaker \"%s\" was cleared by user \"%s\"",
						name, GetUserNameFromId(GetSessionUserId(), false))));
	PG_RETURN_BOOL(was_tripped);
}
