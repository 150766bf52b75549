/*-------------------------------------------------------------------------
 *
 * breakers.c
 *		Circuit breakers: the built-in, other extensions', the operator's.
 *
 * This is their state, and all that reads or changes it.  The sampler gives the
 * built-in ones and those of other extensions their values, see monitors.c; an
 * operator trips one by name for a while, see breaker_functions.c.  When a
 * breaker trips and clears is for load.c to say.
 *
 * Locking: breakers are part of the shared load, under the admission lock, which
 * the callers of these functions hold unless a function's comment says
 * otherwise.
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
#include "mb/pg_wchar.h"
#include "settings.h"
#include "shared.h"
#include "utils/timestamp.h"

#define ALL_STATEMENTS	(PGADM_LOAD_STATEMENT_READ | PGADM_LOAD_STATEMENT_WRITE)

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

StaticAssertDecl(lengthof(built_in) == PGADM_BUILT_IN_BREAKERS,
				 "every built-in breaker must have its place");

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
 * Is that the name of a built-in breaker?
 */
bool
pgadm_breakers_is_built_in(const char *name)
{
	for (int i = 0; i < lengthof(built_in); i++)
	{
		if (strcmp(built_in[i].name, name) == 0)
			return true;
	}
	return false;
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
	TimestampTz now = GetCurrentTimestamp();
	int			place = -1;

	for (int i = PGADM_BUILT_IN_BREAKERS; i < PGADM_MAX_BREAKERS; i++)
	{
		PgAdmBreaker *breaker = breaker_at(i);

		if (breaker->kind != PGADM_BREAKER_UNUSED &&
			strcmp(breaker->name, name) == 0)
			return i;
		if (place < 0 && breaker->kind == PGADM_BREAKER_UNUSED)
			place = i;
	}
	for (int i = PGADM_BUILT_IN_BREAKERS; place < 0 && i < PGADM_MAX_BREAKERS; i++)
	{
		/* Without a sampler, one whose time is over has not been cleared. */
		if (breaker_at(i)->kind == PGADM_BREAKER_OPERATOR &&
			!pgadm_breakers_is_tripped(breaker_at(i), ALL_STATEMENTS, true, now))
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

/*
 * The sampler has started: set up the built-in breakers.
 */
void
pgadm_breakers_set_up_built_in(void)
{
	for (int i = 0; i < PGADM_BUILT_IN_BREAKERS; i++)
		set_up(breaker_at(i), PGADM_BREAKER_BUILT_IN, built_in[i].name,
			   built_in[i].scale);
	count_tripped();
}

/*
 * Take the input of a built-in breaker from the settings and a sample.  Needs no
 * lock.
 */
PgAdmBreakerInput
pgadm_breakers_built_in_input(int place, const PgAdmLoadSample *sample)
{
	PgAdmBreakerInput input = {
		.threshold = *built_in[place].threshold,
		.statements = *built_in[place].statements,
		.warn_only = *built_in[place].warn_only,
		.value = *(const PgAdmLoadValue *)
		((const char *) sample + built_in[place].value),
	};

	return input;
}

/*
 * Set up the breaker of another extension's monitor.  Returns its place, which
 * stays the same, or -1 if there is none left.
 */
int
pgadm_breakers_set_up_monitor(const char *name)
{
	int			place = find_breaker(name);

	if (place >= 0)
	{
		set_up(breaker_at(place), PGADM_BREAKER_MONITOR, name,
			   PGADM_LOAD_SCALE_NUMBER);
		count_tripped();
	}
	return place;
}

/*
 * Give a breaker its value.  Returns what changed, and a copy to log.
 */
PgAdmLoadEvent
pgadm_breakers_update(int place, const PgAdmBreakerInput *input, TimestampTz now,
					  PgAdmBreaker *copy)
{
	PgAdmBreaker *breaker = breaker_at(place);
	PgAdmLoadEvent event;

	breaker->statements = input->statements;
	breaker->warn_only = input->warn_only;
	event = pgadm_load_breaker_update(&breaker->state, input->threshold,
									  input->value, now);
	count_tripped();
	*copy = *breaker;
	return event;
}

/*
 * Might a breaker have to be expired?  A look without the lock.
 */
bool
pgadm_breakers_may_expire(int place)
{
	return breaker_at(place)->state.tripped;
}

/*
 * Clear a breaker that was tripped by hand, if its time is over.  Returns what
 * changed, and a copy to log if anything did.
 */
PgAdmLoadEvent
pgadm_breakers_expire(int place, TimestampTz now, PgAdmBreaker *copy)
{
	PgAdmBreaker *breaker = breaker_at(place);
	PgAdmLoadEvent event;

	if (breaker->kind != PGADM_BREAKER_OPERATOR || now < breaker->expires_at)
		return PGADM_LOAD_UNCHANGED;

	event = pgadm_load_breaker_update(&breaker->state, 1, pgadm_load_known(0), now);
	count_tripped();
	*copy = *breaker;
	return event;
}

/*
 * Find an operator's breaker.
 */
static PgAdmByHand
find_by_hand(const char *name, PgAdmBreaker **breaker)
{
	int			place = find_breaker(name);

	if (pgadm_breakers_is_built_in(name))
		return PGADM_BY_HAND_BUILT_IN;
	if (place < 0)
		return PGADM_BY_HAND_NO_PLACE;
	*breaker = breaker_at(place);
	return (*breaker)->kind == PGADM_BREAKER_MONITOR ? PGADM_BY_HAND_MONITOR :
		PGADM_BY_HAND_DONE;
}

/*
 * Trip a breaker by hand, or prolong that.  The reason has been clipped.
 */
PgAdmByHand
pgadm_breakers_trip(const char *name, const char *reason,
					TimestampTz expires_at, TimestampTz now)
{
	PgAdmBreaker *breaker;
	PgAdmByHand result = find_by_hand(name, &breaker);

	if (result != PGADM_BY_HAND_DONE)
		return result;

	set_up(breaker, PGADM_BREAKER_OPERATOR, name, PGADM_LOAD_SCALE_NUMBER);
	if (now >= breaker->expires_at) /* the sampler may not have seen it */
		(void) pgadm_load_breaker_update(&breaker->state, 1, pgadm_load_known(0), now);
	breaker->expires_at = expires_at;
	strlcpy(breaker->reason, reason, PGADM_BREAKER_REASON);
	breaker->encoding = GetDatabaseEncoding();
	(void) pgadm_load_breaker_update(&breaker->state, 1, pgadm_load_known(1), now);
	count_tripped();
	return result;
}

/*
 * Clear a breaker that was tripped by hand, if it is.
 */
PgAdmByHand
pgadm_breakers_clear(const char *name, TimestampTz now, bool *was_tripped)
{
	PgAdmBreaker *breaker;
	PgAdmByHand result = find_by_hand(name, &breaker);

	*was_tripped = false;
	if (result != PGADM_BY_HAND_DONE || breaker->kind != PGADM_BREAKER_OPERATOR ||
		strcmp(breaker->name, name) != 0)
		return result;

	*was_tripped = pgadm_breakers_is_tripped(breaker, ALL_STATEMENTS, true, now);
	(void) pgadm_load_breaker_update(&breaker->state, 1, pgadm_load_known(0), now);
	count_tripped();
	return result;
}
