/*-------------------------------------------------------------------------
 *
 * load.c
 *		From samples of the server's load to what is made of them: ratio,
 *		utilisation, refusals, breakers, warnings, history, rates.
 *
 * Pure functions of their arguments and of the state they are given: no
 * shared memory, lock or setting is read here, nothing is allocated or
 * logged, so that every decision can be tested by table.  One process, the
 * sampler, updates; any process may read, and reading changes nothing.
 *
 * Everything fails open.  A value that could not be read, is stale, or went
 * backwards is unknown, and an unknown value refuses nothing, trips nothing
 * and warns of nothing.  No function here returns NaN or infinity.
 *
 * Times are in microseconds and may come from any clock.  When it jumps, or
 * when the sampler was stopped, what was measured over the jump is dropped:
 * see step_continues().
 *
 * The window.  CPU wait and busy time are growing totals, so between two
 * samples there is no second that is not seen.  One interval alone is noisy
 * when it is short (the kernel adds a wait to the total only when it ends,
 * which with many processes is as long as some 100 ms), hence what the totals
 * grew by is summed with weights that fall by e per second: at an interval of
 * 100 ms that is an average over about ten samples, at the default of 1 s the
 * sample before still counts for a third, at 60 s it is the last interval.
 * It is the sums that are divided, not the ratios averaged, so that a nearly
 * idle interval with one long wait does not count as much as a busy one.
 *
 * With N spinning processes on C CPUs every second adds C to busy and N - C
 * to wait, whatever the weights, so the ratio is (N - C) / C from the first
 * full interval on, and 0 when N <= C.
 *
 * The other side of dividing sums is that idle time weighs nothing in them:
 * after a load has ended, the window's ratio would stay until the sums have
 * fallen.  So the ratio is that of the window or that of the last interval,
 * whichever is lower: it rises smoothly and falls at once.  The interval in
 * which a load ends may still be full of it, but the next is not, so queries
 * run again within two samples.  Both ratios are 0 when busy time is below the
 * threshold.
 *
 * Utilisation is used time divided by usable time.  Idle time counts there, so
 * no such rule is needed: a second at 100 % gives 0.63, three seconds give 0.95,
 * so that a breaker does not trip on one short peak.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/load.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "load.h"

/* The window's weights fall by e in this time */
#define WINDOW_SECONDS			1.0

/* Likewise for service rates, which are counts and therefore noisier */
#define RATE_SECONDS			10.0

/*
 * A gap between two samples is never taken for a stop of the sampler when it
 * is shorter than this: at an interval of 100 ms a crowded machine delays it.
 */
#define MIN_GAP_US				INT64CONST(1000000)

/* How far below its threshold a breaker clears */
#define CLEAR_FRACTION			0.05	/* absolute */
#define CLEAR_NUMBER			0.10	/* of the threshold */

/* So that 0.65 is not over 0.7 - 0.05 */
#define ROUNDING				1e-9

/* What the totals of a window grew by, in seconds */
typedef struct WindowSpan
{
	double		part;
	double		whole;
	double		seconds;
} WindowSpan;

/* ----------------------------------------------------------------
 * Values and samples
 * ----------------------------------------------------------------
 */

/*
 * A known value, unless it is not a number.
 */
PgAdmLoadValue
pgadm_load_known(double value)
{
	PgAdmLoadValue result = {0.0, false};

	if (isfinite(value))
	{
		result.value = value;
		result.known = true;
	}
	return result;
}

/*
 * The lack of a value.
 */
PgAdmLoadValue
pgadm_load_unknown(void)
{
	PgAdmLoadValue result = {0.0, false};

	return result;
}

/*
 * A value from elsewhere, such as another extension's monitor, made sure of.
 */
static PgAdmLoadValue
checked(PgAdmLoadValue value)
{
	return value.known ? pgadm_load_known(value.value) : pgadm_load_unknown();
}

/*
 * Is a sample too old to act on?  A sample from as far in the future is too: the
 * clock was set back, and nothing tells how old the sample is.
 */
bool
pgadm_load_stale(TimestampTz sampled_at, TimestampTz now, int interval_ms)
{
	int64		limit = INT64CONST(1000) * PGADM_LOAD_STALE_INTERVALS * interval_ms;

	if (sampled_at <= 0 || now <= 0)
		return true;
	return now - sampled_at > limit || sampled_at - now > limit;
}

/*
 * A sampled value as a reader should take it: unknown once it is stale.
 */
PgAdmLoadValue
pgadm_load_fresh(PgAdmLoadValue value, TimestampTz sampled_at,
				 TimestampTz now, int interval_ms)
{
	if (pgadm_load_stale(sampled_at, now, interval_ms))
		return pgadm_load_unknown();
	return value;
}

/*
 * Do two samples follow each other, so that the time between them can be
 * counted?  Not when the clock stood still or went back, nor over a gap, when
 * the sampler was stopped or the clock was set forward.
 */
static bool
step_continues(TimestampTz from, TimestampTz to, int interval_ms)
{
	int64		limit = INT64CONST(1000) * PGADM_LOAD_STALE_INTERVALS * interval_ms;

	return from > 0 && to > from && to - from <= Max(limit, MIN_GAP_US);
}

/* ----------------------------------------------------------------
 * CPU
 * ----------------------------------------------------------------
 */

/*
 * Add a sample to a window.  Returns false if it cannot be compared with the one
 * before: it is the first, could not be read, has lower totals, or comes after a
 * gap.  A sample that could not be read is skipped, and the next one covers its
 * time too.
 */
static bool
window_advance(PgAdmLoadWindow *window, const PgAdmLoadTotals *totals,
			   int interval_ms, WindowSpan *newest)
{
	PgAdmLoadTotals last = window->last;
	double		weight;

	if (!totals->known || totals->part_us < 0 || totals->whole_us < 0)
		return false;

	window->last = *totals;
	if (!step_continues(last.at, totals->at, interval_ms) ||
		totals->part_us < last.part_us || totals->whole_us < last.whole_us)
	{
		window->part = window->whole = window->seconds = 0.0;
		return false;
	}

	newest->part = (totals->part_us - last.part_us) / 1e6;
	newest->whole = (totals->whole_us - last.whole_us) / 1e6;
	newest->seconds = (totals->at - last.at) / 1e6;

	weight = exp(-newest->seconds / WINDOW_SECONDS);
	window->part = newest->part + weight * window->part;
	window->whole = newest->whole + weight * window->whole;
	window->seconds = newest->seconds + weight * window->seconds;
	return true;
}

/*
 * Wait time divided by busy time; 0 if there was no busy time, or less than the
 * threshold, in seconds per second.
 */
static double
wait_ratio(double wait, double busy, double seconds, double threshold)
{
	if (busy <= 0.0 || busy < threshold * seconds)
		return 0.0;
	return wait / busy;
}

/*
 * Add a sample of CPU wait and busy time, and get the wait ratio.
 *
 * threshold_ms is in ms per second; a negative one stands for half of the usable
 * CPUs.  If it is negative and the CPUs are unknown (not over 0), so is the ratio.
 */
PgAdmLoadValue
pgadm_load_cpu_wait_ratio(PgAdmLoadWindow *window,
						  const PgAdmLoadTotals *totals,
						  double threshold_ms, double cpus, int interval_ms)
{
	WindowSpan	newest;
	double		threshold = threshold_ms / 1e3;
	double		at_once;
	double		smoothed;

	if (!window_advance(window, totals, interval_ms, &newest))
		return pgadm_load_unknown();

	if (threshold < 0.0)
		threshold = 0.5 * cpus;
	if (!(threshold > 0.0) && threshold_ms != 0.0)
		return pgadm_load_unknown();

	at_once = wait_ratio(newest.part, newest.whole, newest.seconds, threshold);
	smoothed = wait_ratio(window->part, window->whole, window->seconds,
						  threshold);
	return pgadm_load_known(Min(at_once, smoothed));
}

/*
 * Add a sample of used and usable CPU time, and get the utilisation.
 */
PgAdmLoadValue
pgadm_load_cpu_utilization(PgAdmLoadWindow *window,
						   const PgAdmLoadTotals *totals, int interval_ms)
{
	WindowSpan	newest;

	if (!window_advance(window, totals, interval_ms, &newest) ||
		newest.whole <= 0.0)
		return pgadm_load_unknown();
	return pgadm_load_known(Min(window->part / window->whole, 1.0));
}

/* ----------------------------------------------------------------
 * Refusals
 * ----------------------------------------------------------------
 */

/*
 * With which probability to refuse at this ratio; 0 if that is off.
 */
double
pgadm_load_reject_probability(PgAdmLoadValue ratio, double min, double max)
{
	if (!ratio.known || !(min >= 0.0 && min < max))
		return 0.0;
	if (!(ratio.value > min))
		return 0.0;
	if (ratio.value >= max)
		return 1.0;
	return (ratio.value - min) / (max - min);
}

/*
 * Is the draw, a uniform random number of [0, 1), a refusal?
 */
bool
pgadm_load_draw(double probability, double uniform)
{
	return probability >= 1.0 || uniform < probability;
}

/*
 * Add a string to a hash (FNV-1a).  Its end is added, too, so that ("ab",
 * "c") is not ("a", "bc").
 */
static uint64
hash_string(uint64 hash, const char *string)
{
	const unsigned char *byte = (const unsigned char *) (string ? string : "");

	do
	{
		hash ^= *byte;
		hash *= UINT64CONST(0x100000001b3);
	} while (*byte++ != '\0');
	return hash;
}

/*
 * Make every bit of the result depend on every bit of the argument (the
 * finalizer of splitmix64).
 */
static uint64
hash_mix(uint64 hash)
{
	hash = (hash ^ (hash >> 30)) * UINT64CONST(0xbf58476d1ce4e5b9);
	hash = (hash ^ (hash >> 27)) * UINT64CONST(0x94d049bb133111eb);
	return hash ^ (hash >> 31);
}

/*
 * The draw for a new connection, as a number of [0, 1).  It is the same for
 * the same role, address and sample: libpq with sslmode=prefer, or a client
 * that tries again at once, gets the same answer again.  The address is to be
 * given without the port, which differs; NULL is a local socket.
 *
 * Not from common/hashfn.h, which wants the backend linked.
 */
double
pgadm_load_connection_uniform(const char *role, const char *address,
							  uint64 sample_number)
{
	uint64		hash = UINT64CONST(0xcbf29ce484222325);

	hash = hash_string(hash, role);
	hash = hash_string(hash, address);
	hash = hash_mix(hash_mix(hash) + sample_number);
	return (hash >> 11) * (1.0 / (UINT64CONST(1) << 53));
}

/* ----------------------------------------------------------------
 * Breakers
 * ----------------------------------------------------------------
 */

/*
 * At or under which value a tripped breaker clears.  Under a threshold of 0.1
 * it is half of it, since 0.05 below could be 0 and never be reached.
 */
static double
breaker_clears_at(PgAdmLoadScale scale, double threshold)
{
	if (scale == PGADM_LOAD_SCALE_FRACTION)
		return Max(threshold - CLEAR_FRACTION, threshold / 2);
	return threshold * (1.0 - CLEAR_NUMBER);
}

/*
 * Is the breaker to be tripped after this update?
 *
 * A changed threshold is applied afresh, without hysteresis: an operator who
 * raises it over the value wants it to clear now.
 */
static bool
breaker_trips(const PgAdmLoadBreaker *breaker, double threshold,
			  PgAdmLoadValue value)
{
	if (!value.known || threshold == 0.0)
		return false;
	if (breaker->tripped && threshold == breaker->threshold)
		return value.value > breaker_clears_at(breaker->scale, threshold) + ROUNDING;
	return value.value >= threshold;
}

/*
 * Give a breaker its value and threshold of the moment.  This is for every
 * kind of breaker; one tripped by hand has value and threshold 1 until it
 * expires, and then value 0.
 *
 * A value that becomes unknown clears the breaker: it fails open, and the
 * breaker says that its value is unknown.  A threshold that is not over 0 is
 * off.
 *
 * The result holds at this moment.  Readers of a breaker whose value is
 * sampled must look at pgadm_load_stale() besides.
 */
PgAdmLoadEvent
pgadm_load_breaker_update(PgAdmLoadBreaker *breaker, double threshold,
						  PgAdmLoadValue value, TimestampTz now)
{
	bool		was_tripped = breaker->tripped;

	if (!isfinite(threshold) || threshold < 0.0)
		threshold = 0.0;
	value = checked(value);

	breaker->tripped = breaker_trips(breaker, threshold, value);
	breaker->threshold = threshold;
	breaker->value = value;

	if (breaker->tripped == was_tripped)
		return PGADM_LOAD_UNCHANGED;
	if (!breaker->tripped)
		return PGADM_LOAD_CLEARED;
	breaker->trips++;
	breaker->last_tripped_at = now;
	return PGADM_LOAD_RAISED;
}

/* ----------------------------------------------------------------
 * Warnings
 * ----------------------------------------------------------------
 */

/*
 * Does this value speak for a change, that is for raising the warning, or for
 * clearing it if it is active?  An unknown value never raises, but does clear
 * in the end: a warning that nothing confirms any more would stay for ever.
 */
static bool
warning_wants_change(const PgAdmLoadWarning *warning)
{
	PgAdmLoadValue value = warning->value;
	double		clear = warning->clear;

	if (!warning->active)
		return value.known && value.value >= warning->warn;

	/* to clear over the warn limit would flap, and under 0 never happens */
	if (!(clear > 0.0 && clear < warning->warn))
		clear = warning->warn;
	return !value.known || value.value < clear;
}

/*
 * Start or go on timing how long a change has been wanted.  Returns true once
 * that is as long as the duration.
 */
static bool
warning_held(PgAdmLoadWarning *warning, int64 duration_ms, TimestampTz now,
			 int64 elapsed_us)
{
	if (!warning->timing)
	{
		warning->timing = true;
		warning->timing_since = now;
		warning->held_us = 0;
	}
	else
		warning->held_us += elapsed_us;
	return warning->held_us / 1000 >= duration_ms;
}

/*
 * Give a warning its value and limits of the moment.  Log what is returned:
 * each change is returned once.
 *
 * The time that a value has held is summed from sample to sample.  It starts
 * again after a gap or a jump of the clock, and when a limit changes, since
 * the samples before were not compared with that one.  A changed duration
 * applies at once.  A warn limit that is not over 0 is off.
 */
PgAdmLoadEvent
pgadm_load_warning_update(PgAdmLoadWarning *warning,
						  const PgAdmLoadWarningLimits *limits,
						  PgAdmLoadValue value, TimestampTz now,
						  int interval_ms)
{
	int64		elapsed_us = 0;
	bool		off = !(limits->warn > 0.0);

	if (step_continues(warning->updated_at, now, interval_ms) &&
		limits->warn == warning->warn && limits->clear == warning->clear)
		elapsed_us = now - warning->updated_at;
	else
		warning->timing = false;

	warning->updated_at = now;
	warning->warn = off ? 0.0 : limits->warn;
	warning->clear = limits->clear;
	warning->value = checked(value);

	if (off ? !warning->active : !warning_wants_change(warning))
	{
		warning->timing = false;
		return PGADM_LOAD_UNCHANGED;
	}
	if (!off && !warning_held(warning, limits->duration_ms, now, elapsed_us))
		return PGADM_LOAD_UNCHANGED;

	warning->timing = false;
	warning->active = !warning->active;
	warning->since = warning->active ? warning->timing_since : 0;
	return warning->active ? PGADM_LOAD_RAISED : PGADM_LOAD_CLEARED;
}

/*
 * The queue's warning: raised when queries were throttled in every sample for
 * the duration, cleared when in none of them.  "throttled" is how many were
 * since the sample before, negative if that is unknown.
 */
PgAdmLoadEvent
pgadm_load_queue_warning_update(PgAdmLoadWarning *warning, int64 duration_ms,
								int64 throttled, TimestampTz now,
								int interval_ms)
{
	PgAdmLoadWarningLimits limits;
	PgAdmLoadValue value = pgadm_load_unknown();

	limits.warn = limits.clear = 1.0;
	limits.duration_ms = duration_ms;
	if (throttled >= 0)
		value = pgadm_load_known((double) throttled);
	return pgadm_load_warning_update(warning, &limits, value, now,
									 interval_ms);
}

/* ----------------------------------------------------------------
 * History
 *
 * A ring of PGADM_LOAD_HISTORY_SIZE samples and a number that only grows: how
 * many were ever written.  It is also the number of the last sample.  A
 * reader that copies in pieces keeps the number of the sample it wants next:
 * what is written meanwhile takes that further from the newest, or overwrites
 * it.
 * ----------------------------------------------------------------
 */

/*
 * Where to write the next sample.
 */
int
pgadm_load_history_next(uint64 written)
{
	return (int) (written % PGADM_LOAD_HISTORY_SIZE);
}

/*
 * How many samples there are to read.
 */
int
pgadm_load_history_count(uint64 written)
{
	return (int) Min(written, (uint64) PGADM_LOAD_HISTORY_SIZE);
}

/*
 * Where the nth newest sample is, 0 being the last one; -1 if there is none.
 */
int
pgadm_load_history_nth(uint64 written, int nth)
{
	if (nth < 0 || nth >= pgadm_load_history_count(written))
		return -1;
	return (int) ((written - 1 - (uint64) nth) % PGADM_LOAD_HISTORY_SIZE);
}

/* ----------------------------------------------------------------
 * Rates
 * ----------------------------------------------------------------
 */

/*
 * Add what a counter grew by to the estimate of how fast it can grow.
 *
 * A sample in which not all workers were busy tells how much was asked of the
 * server, not how much it can do.  So it only counts while nothing is known,
 * or when it is faster than what is; the first saturated sample replaces all
 * of them.  Older samples count the less the older they are.
 */
static void
rate_estimate(PgAdmLoadRate *rate, double count, double seconds,
			  bool saturated, TimestampTz now)
{
	PgAdmLoadValue estimate = pgadm_load_rate(rate);
	double		weight = 0.0;

	if (!saturated && estimate.known && count / seconds <= estimate.value)
		return;

	if (rate->saturated || !saturated)
		weight = exp(-Max(now - rate->estimated_at, 0) / 1e6 / RATE_SECONDS);
	rate->saturated |= saturated;
	rate->count = count + weight * rate->count;
	rate->seconds = seconds + weight * rate->seconds;
	rate->estimated_at = now;
}

/*
 * Give a rate its counter of the moment.  "saturated" is whether queries were
 * waiting since the sample before.  A counter that went backwards (was
 * reset), a gap or a jump of the clock make the last rate unknown, and leave
 * the smoothed one as it is.
 */
void
pgadm_load_rate_update(PgAdmLoadRate *rate, int64 total, bool saturated,
					   TimestampTz now, int interval_ms)
{
	TimestampTz last_at = rate->updated_at;
	int64		last_total = rate->total;
	double		seconds;

	rate->updated_at = now;
	rate->total = total;
	rate->last = pgadm_load_unknown();
	if (!step_continues(last_at, now, interval_ms) ||
		last_total < 0 || total < last_total)
		return;

	seconds = (now - last_at) / 1e6;
	rate->last = pgadm_load_known((total - last_total) / seconds);
	rate_estimate(rate, (double) (total - last_total), seconds, saturated, now);
}

/*
 * The smoothed rate, per second.
 */
PgAdmLoadValue
pgadm_load_rate(const PgAdmLoadRate *rate)
{
	if (rate->seconds <= 0.0)
		return pgadm_load_unknown();
	return pgadm_load_known(rate->count / rate->seconds);
}

/*
 * In how many ms the queries that wait now, and one more, will have been
 * served; 0 when unknown.
 */
int
pgadm_load_retry_after_ms(int64 queued, PgAdmLoadValue rate)
{
	double		result;

	if (!rate.known || !(rate.value > 0.0))
		return 0;
	result = ceil((Max(queued, 0) + 1.0) * 1000.0 / rate.value);
	return (int) Min(result, (double) PGADM_LOAD_RETRY_AFTER_MAX_MS);
}
