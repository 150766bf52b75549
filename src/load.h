/*-------------------------------------------------------------------------
 *
 * load.h
 *		From samples of the server's load to what is made of them: ratio,
 *		utilisation, refusals, breakers, warnings, history, rates.
 *
 * Every state here is of fixed size, holds no pointer, and is valid and empty
 * when it is all zeroes, so that it can live in shared memory.  The caller does
 * the locking.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/load.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGADM_LOAD_H
#define PGADM_LOAD_H

#include "datatype/timestamp.h"

/* A measured value, or the lack of it; it is finite, and 0 when unknown */
typedef struct PgAdmLoadValue
{
	double		value;
	bool		known;
} PgAdmLoadValue;

/* What an update changed, returned once for each change */
typedef enum PgAdmLoadEvent
{
	PGADM_LOAD_UNCHANGED,
	PGADM_LOAD_RAISED,			/* warning raised, breaker tripped */
	PGADM_LOAD_CLEARED,
} PgAdmLoadEvent;

/* A sample is stale when it is older than this many intervals */
#define PGADM_LOAD_STALE_INTERVALS	3

/*
 * Two totals that only grow, as read at one time: CPU wait of CPU busy time,
 * or used of usable CPU time.
 */
typedef struct PgAdmLoadTotals
{
	TimestampTz at;
	int64		part_us;
	int64		whole_us;
	bool		known;			/* false if they could not be read */
} PgAdmLoadTotals;

/* The smoothed window over such totals */
typedef struct PgAdmLoadWindow
{
	PgAdmLoadTotals last;		/* the last that could be read; at 0 = none */
	double		part;			/* weighted sums of what they grew by, in s */
	double		whole;
	double		seconds;
} PgAdmLoadWindow;

/* The scale of a breaker's value; it decides where the breaker clears */
typedef enum PgAdmLoadScale
{
	PGADM_LOAD_SCALE_NUMBER,	/* load average, monitors: 10 % below */
	PGADM_LOAD_SCALE_FRACTION,	/* memory, CPU utilisation: 0.05 below */
} PgAdmLoadScale;

typedef struct PgAdmLoadBreaker
{
	PgAdmLoadScale scale;
	bool		tripped;
	double		threshold;		/* of the last update, 0 = off */
	PgAdmLoadValue value;
	int64		trips;
	TimestampTz last_tripped_at;	/* 0 = never */
} PgAdmLoadBreaker;

/* What a breaker refuses, any of these or'ed */
#define PGADM_LOAD_STATEMENT_READ	0x01
#define PGADM_LOAD_STATEMENT_WRITE	0x02

typedef struct PgAdmLoadWarningLimits
{
	double		warn;			/* raised at or over this, 0 = off */
	double		clear;			/* cleared under this */
	int64		duration_ms;	/* for as long as this */
} PgAdmLoadWarningLimits;

typedef struct PgAdmLoadWarning
{
	bool		active;
	bool		timing;			/* held for held_us, but not long enough yet */
	int64		held_us;
	TimestampTz timing_since;
	TimestampTz since;			/* when what made it active began */
	TimestampTz updated_at;		/* 0 = never */
	double		warn;			/* limits of the last update */
	double		clear;
	PgAdmLoadValue value;
} PgAdmLoadWarning;

/* One sample, as the history keeps it */
typedef struct PgAdmLoadSample
{
	TimestampTz sampled_at;
	int64		cpu_wait_us;	/* growing totals */
	int64		cpu_busy_us;
	int64		admitted;
	int64		rejected;
	int32		running;
	int32		queued;
	bool		cpu_known;		/* are the two totals? */
	PgAdmLoadValue cpu_wait_ratio;
	PgAdmLoadValue cpu_utilization;
	PgAdmLoadValue cpu_pressure;
	PgAdmLoadValue memory_usage;
	PgAdmLoadValue load_average;
} PgAdmLoadSample;

/*
 * Samples that the history keeps.  10 minutes at the shortest interval, 100
 * ms, are 6,001 samples; the rest is room for samples out of turn and for a
 * reader that copies in pieces.  At the default interval it is 100 minutes.
 */
#define PGADM_LOAD_HISTORY_SIZE 6144

/* How fast a counter grows */
typedef struct PgAdmLoadRate
{
	TimestampTz updated_at;		/* 0 = never */
	int64		total;
	PgAdmLoadValue last;		/* per second, since the update before */
	bool		saturated;		/* has seen a saturated sample */
	TimestampTz estimated_at;	/* when these were last added to: */
	double		count;			/* weighted sums */
	double		seconds;
} PgAdmLoadRate;

/* Longest advice for a retry, since load is not foreseeable for longer */
#define PGADM_LOAD_RETRY_AFTER_MAX_MS	60000

/* Values and samples */
extern PgAdmLoadValue pgadm_load_known(double value);
extern PgAdmLoadValue pgadm_load_unknown(void);
extern bool pgadm_load_stale(TimestampTz sampled_at, TimestampTz now,
							 int interval_ms);
extern PgAdmLoadValue pgadm_load_fresh(PgAdmLoadValue value,
									   TimestampTz sampled_at,
									   TimestampTz now, int interval_ms);

/* CPU */
extern PgAdmLoadValue pgadm_load_cpu_wait_ratio(PgAdmLoadWindow *window,
												const PgAdmLoadTotals *totals,
												double threshold_ms,
												double cpus, int interval_ms);
extern PgAdmLoadValue pgadm_load_cpu_utilization(PgAdmLoadWindow *window,
												 const PgAdmLoadTotals *totals,
												 int interval_ms);

/* Refusals */
extern double pgadm_load_reject_probability(PgAdmLoadValue ratio,
											double min, double max);
extern bool pgadm_load_draw(double probability, double uniform);
extern double pgadm_load_connection_uniform(const char *role,
											const char *address,
											uint64 sample_number);

/* Breakers and warnings */
extern PgAdmLoadEvent pgadm_load_breaker_update(PgAdmLoadBreaker *breaker,
												double threshold,
												PgAdmLoadValue value,
												TimestampTz now);
extern PgAdmLoadEvent pgadm_load_warning_update(PgAdmLoadWarning *warning,
												const PgAdmLoadWarningLimits *limits,
												PgAdmLoadValue value,
												TimestampTz now,
												int interval_ms);
extern PgAdmLoadEvent pgadm_load_queue_warning_update(PgAdmLoadWarning *warning,
													  int64 duration_ms,
													  int64 throttled,
													  TimestampTz now,
													  int interval_ms);

/* History */
extern int	pgadm_load_history_next(uint64 written);
extern int	pgadm_load_history_count(uint64 written);
extern int	pgadm_load_history_nth(uint64 written, int nth);

/* Rates */
extern void pgadm_load_rate_update(PgAdmLoadRate *rate, int64 total,
								   bool saturated, TimestampTz now,
								   int interval_ms);
extern PgAdmLoadValue pgadm_load_rate(const PgAdmLoadRate *rate);
extern int	pgadm_load_retry_after_ms(int64 queued, PgAdmLoadValue rate);

#endif							/* PGADM_LOAD_H */
