/*-------------------------------------------------------------------------
 *
 * load_test.c
 *		Unit tests of src/load.c, as a program that prints TAP.
 *
 *		cc -I$(pg_config --includedir-server) -iquote src -Itest/unit \
 *			test/unit/load_test.c src/load.c -lm
 *
 * Needs the server's headers, links nothing of the server.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  test/unit/load_test.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "load.h"
#include "tap.h"

/* the tables below leave out what is zero */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

#define SECOND		INT64CONST(1000000)
#define START		(INT64CONST(800000000) * SECOND)
#define UNKNOWN		pgadm_load_unknown()
#define KNOWN(v)	pgadm_load_known(v)

static void
is_near(double got, double want, double tolerance, const char *name)
{
	if (!ok(fabs(got - want) <= tolerance, "%s", name))
		diag("got %.9g, want %.9g within %.3g", got, want, tolerance);
}

static void
is_unknown(PgAdmLoadValue got, const char *name)
{
	if (!ok(!got.known && got.value == 0.0, "%s", name))
		diag("got %s %.9g", got.known ? "known" : "unknown", got.value);
}

/* A seeded generator (splitmix64), so that a failure can be repeated */
static double
uniform(uint64 *seed)
{
	uint64		z = (*seed += UINT64CONST(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64CONST(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64CONST(0x94d049bb133111eb);
	z ^= z >> 31;
	return (z >> 11) * (1.0 / (UINT64CONST(1) << 53));
}

/* Values that break their rule to be finite, and 0 when unknown */
static const PgAdmLoadValue nan_value = {NAN, true};
static const PgAdmLoadValue unknown_nine = {9, false};

/* ----------------------------------------------------------------
 * Values and samples
 * ----------------------------------------------------------------
 */

static void
test_values(void)
{
	is_near(KNOWN(1.5).value, 1.5, 0, "a known value");
	is_unknown(KNOWN(NAN), "NaN is unknown");
	is_unknown(KNOWN(INFINITY), "infinity is unknown");
	is_unknown(KNOWN(-INFINITY), "-infinity is unknown");
}

static void
test_stale(void)
{
	static const struct
	{
		const char *name;
		TimestampTz sampled_at;
		TimestampTz now;
		int			interval_ms;
		bool		stale;
	}			cases[] = {
		{"just taken", START, START, 1000, false},
		{"three intervals", START, START + 3 * SECOND, 1000, false},
		{"over three intervals", START, START + 3 * SECOND + 1, 1000, true},
		{"from the near future", START + 3 * SECOND, START, 1000, false},
		{"from the far future", START + 3 * SECOND + 1, START, 1000, true},
		{"short interval", START, START + 300001, 100, true},
		{"long interval", START, START + 180 * SECOND, 60000, false},
		{"never taken", 0, START, 1000, true},
		{"never taken, clock at 0", 0, 0, 1000, true},
		{"no time", PG_INT64_MIN, START, 1000, true},
		{"clock before 2000", START, PG_INT64_MIN, 1000, true},
	};

	for (size_t i = 0; i < lengthof(cases); i++)
	{
		PgAdmLoadValue fresh = pgadm_load_fresh(KNOWN(7.0),
												cases[i].sampled_at,
												cases[i].now,
												cases[i].interval_ms);

		ok(pgadm_load_stale(cases[i].sampled_at, cases[i].now,
							cases[i].interval_ms) == cases[i].stale &&
		   fresh.known == !cases[i].stale &&
		   fresh.value == (cases[i].stale ? 0.0 : 7.0),
		   "stale: %s", cases[i].name);
	}
}

/* ----------------------------------------------------------------
 * CPU wait ratio
 * ----------------------------------------------------------------
 */

/* One sample: what time and totals grew by (ms), and the ratio wanted */
typedef struct RatioStep
{
	int			time;
	int			wait;
	int			busy;
	bool		readable;
	double		ratio;			/* -1: unknown */
} RatioStep;

typedef struct RatioCase
{
	const char *name;
	double		threshold_ms;
	double		cpus;
	int			interval_ms;
	RatioStep	steps[8];		/* to the first all zero */
} RatioCase;

/* what the sample before weighs at an interval of 1 s */
#define E1 0.36787944117144233

static const RatioCase ratio_cases[] = {
	{"first sample is unknown, the second known", -1, 2, 1000,
	{{1000, 5, 5, true, -1}, {1000, 2000, 2000, true, 1}}},
	{"busy at the threshold counts", -1, 2, 1000,
	{{1000, 0, 0, true, -1}, {1000, 500, 1000, true, 0.5}}},
	{"busy under the threshold is 0", -1, 2, 1000,
	{{1000, 0, 0, true, -1}, {1000, 500, 999, true, 0}}},
	{"threshold of half a CPU's half", -1, 0.5, 1000,
	{{1000, 0, 0, true, -1}, {1000, 500, 250, true, 2},
	{1000, 500, 249, true, 0}}},
	{"threshold by number, over any interval", 100, 2, 60000,
	{{60000, 0, 0, true, -1}, {60000, 18000, 6000, true, 3},
	{60000, 6000, 5999, true, 0}}},
	{"threshold 0: any busy time counts", 0, 2, 1000,
	{{1000, 0, 0, true, -1}, {1000, 3, 1, true, 3}, {1000, 3, 0, true, 0}}},
	{"no busy time is 0", 0, 2, 1000,
	{{1000, 0, 0, true, -1}, {1000, 0, 0, true, 0}}},
	{"half of unknown CPUs is unknown", -1, 0, 1000,
	{{1000, 0, 0, true, -1}, {1000, 4000, 2000, true, -1}}},
	{"half of NaN CPUs is unknown", -1, NAN, 1000,
	{{1000, 0, 0, true, -1}, {1000, 4000, 2000, true, -1}}},
	{"threshold NaN is unknown", NAN, 2, 1000,
	{{1000, 0, 0, true, -1}, {1000, 4000, 2000, true, -1}}},
	{"CPUs do not matter to a threshold by number", 500, 0, 1000,
	{{1000, 0, 0, true, -1}, {1000, 4000, 2000, true, 2}}},
	{"rises smoothly", 0, 2, 1000,
	{{1000, 0, 0, true, -1}, {1000, 0, 2000, true, 0},
	{1000, 6000, 2000, true, 3 / (1 + E1)},
	{1000, 6000, 2000, true, 3 * (1 + E1) / (1 + E1 + E1 * E1)}}},
	{"falls at once", 0, 2, 1000,
	{{1000, 0, 0, true, -1}, {1000, 6000, 2000, true, 3},
	{1000, 1000, 2000, true, 0.5}, {1000, 0, 1000, true, 0}}},
	{"unreadable is unknown, its time not lost", 0, 2, 1000,
	{{1000, 0, 0, true, -1}, {1000, 0, 2000, true, 0},
	{1000, 0, 0, false, -1}, {1000, 8000, 4000, true, 8.0 / (4 + 2 * E1 * E1)}}},
	{"unreadable at first", 0, 2, 1000,
	{{1000, 0, 0, false, -1}, {1000, 0, 0, true, -1}, {1000, 2, 2, true, 1}}},
	{"unreadable for too long starts again", 0, 2, 1000,
	{{1000, 0, 0, true, -1}, {1000, 0, 0, false, -1}, {1000, 0, 0, false, -1},
	{1000, 0, 0, false, -1}, {1000, 2, 2, true, -1}, {1000, 2, 2, true, 1}}},
	{"wait backwards", 0, 2, 1000,
	{{1000, 9, 9, true, -1}, {1000, 2, 2, true, 1}, {1000, -1, 2, true, -1},
	{1000, 4, 2, true, 2}}},
	{"busy backwards", 0, 2, 1000,
	{{1000, 9, 9, true, -1}, {1000, 2, 2, true, 1}, {1000, 2, -1, true, -1},
	{1000, 4, 2, true, 2}}},
	{"negative totals are unreadable", 0, 2, 1000,
	{{1000, -9, 9, true, -1}, {1000, 10, 9, true, -1}, {1000, 4, 2, true, 2}}},
	{"three intervals are no gap", 0, 2, 1000,
	{{1000, 0, 0, true, -1}, {3000, 4, 2, true, 2}}},
	{"a gap starts again", 0, 2, 1000,
	{{1000, 0, 0, true, -1}, {3001, 4, 2, true, -1}, {1000, 4, 2, true, 2}}},
	{"a second is no gap at any interval", 0, 2, 100,
	{{100, 0, 0, true, -1}, {1000, 4, 2, true, 2}, {1001, 4, 2, true, -1}}},
	{"a clock that stands starts again", 0, 2, 1000,
	{{1000, 0, 0, true, -1}, {0, 4, 2, true, -1}, {1000, 4, 2, true, 2}}},
	{"a clock set back starts again", 0, 2, 1000,
	{{1000, 0, 0, true, -1}, {-9000, 4, 2, true, -1}, {1000, 4, 2, true, 2}}},
	{"a clock set forward starts again", 0, 2, 1000,
	{{1000, 0, 0, true, -1}, {900000, 4, 2, true, -1}, {1000, 4, 2, true, 2}}},
};

static void
test_ratio_case(const RatioCase *c)
{
	PgAdmLoadWindow window = {0};
	PgAdmLoadTotals totals = {0};
	bool		passed = true;

	totals.at = START;
	for (const RatioStep *step = c->steps; step->time || step->busy; step++)
	{
		PgAdmLoadValue got;

		totals.at += step->time * INT64CONST(1000);
		totals.part_us += step->wait * INT64CONST(1000);
		totals.whole_us += step->busy * INT64CONST(1000);
		totals.known = step->readable;
		got = pgadm_load_cpu_wait_ratio(&window, &totals, c->threshold_ms,
										c->cpus, c->interval_ms);
		if (got.known == (step->ratio >= 0) &&
			fabs(got.value - Max(step->ratio, 0)) < 1e-9)
			continue;
		passed = false;
		diag("sample %d: %s %.9g, want %.9g", (int) (step - c->steps),
			 got.known ? "known" : "unknown", got.value, step->ratio);
	}
	ok(passed, "ratio: %s", c->name);
}

/*
 * Spinning processes on CPUs, as the kernel accounts them: round robin by
 * time slices, busy time is added every ms, a wait is added when it ends.
 */
typedef struct Machine
{
	int			tasks;
	int			cpus;
	int			slice_ms;
	int64		now_ms;
	int64		wait_ms;
	int64		busy_ms;
	int64		waiting_since[512];
	int			next;			/* the task that gets the next free CPU */
	int			running;
} Machine;

static void
machine_run(Machine *m, int ms)
{
	for (int i = 0; i < ms; i++, m->now_ms++)
	{
		m->running = Min(m->tasks, m->cpus);
		m->busy_ms += m->running;
		if (m->tasks <= m->cpus || m->now_ms % m->slice_ms != 0)
			continue;
		/* those on a CPU go to the end of the queue, as many come on */
		for (int cpu = 0; cpu < m->cpus; cpu++)
		{
			int			off = (m->next + m->tasks - m->cpus) % m->tasks;

			m->wait_ms += m->now_ms - m->waiting_since[m->next];
			m->waiting_since[off] = m->now_ms;
			m->next = (m->next + 1) % m->tasks;
		}
	}
}

static PgAdmLoadValue
machine_sample(const Machine *m, PgAdmLoadWindow *window, double threshold_ms,
			   int interval_ms)
{
	PgAdmLoadTotals totals = {0};

	totals.at = START + m->now_ms * 1000;
	totals.part_us = m->wait_ms * 1000;
	totals.whole_us = m->busy_ms * 1000;
	totals.known = true;
	return pgadm_load_cpu_wait_ratio(window, &totals, threshold_ms, m->cpus,
									 interval_ms);
}

/*
 * N on C CPUs: every sample from the third on is within the tolerance of
 * issue 6.
 */
static void
test_spinning(int tasks, int cpus, int slice_ms, int interval_ms)
{
	Machine		m = {0};
	PgAdmLoadWindow window = {0};
	double		want = Max(tasks - cpus, 0) / (double) cpus;
	double		tolerance = tasks > cpus ? 0.2 * want : 0.1;
	double		low = INFINITY;
	double		high = -INFINITY;
	uint64		seed = 6;

	m.tasks = tasks;
	m.cpus = cpus;
	m.slice_ms = slice_ms;
	machine_run(&m, 3000);
	for (int i = 0; i < 100; i++)
	{
		PgAdmLoadValue got = machine_sample(&m, &window, -1, interval_ms);

		if (i >= 2)
		{
			low = Min(low, got.known ? got.value : -INFINITY);
			high = Max(high, got.known ? got.value : INFINITY);
		}
		/* it is never woken on time */
		machine_run(&m, interval_ms + (int) (0.1 * interval_ms * uniform(&seed)));
	}
	ok(low >= want - tolerance && high <= want + tolerance,
	   "%d spinning on %d CPUs, every %d ms: %.3f to %.3f, want %.3f +- %.3f",
	   tasks, cpus, interval_ms, low, high, want, tolerance);
}

/*
 * The load ends at any point between two samples, down to some remaining
 * processes: the second sample after that refuses nothing (min 1, max 3).
 */
static void
test_load_ends(int interval_ms, double threshold_ms, int remaining)
{
	bool		passed = true;

	for (int phase = 0; phase < 20; phase++)
	{
		Machine		m = {0};
		PgAdmLoadWindow window = {0};
		int			part = interval_ms * phase / 20;
		PgAdmLoadValue got;

		m.tasks = 8;
		m.cpus = 2;
		m.slice_ms = 3;
		for (int i = 0; i < 20; i++)
		{
			got = machine_sample(&m, &window, threshold_ms, interval_ms);
			machine_run(&m, interval_ms);
		}
		passed &= pgadm_load_reject_probability(got, 1, 3) > 0.5;

		got = machine_sample(&m, &window, threshold_ms, interval_ms);
		machine_run(&m, part);
		m.tasks = remaining;
		machine_run(&m, interval_ms - part);
		machine_sample(&m, &window, threshold_ms, interval_ms);
		machine_run(&m, interval_ms);
		got = machine_sample(&m, &window, threshold_ms, interval_ms);
		passed &= got.known && pgadm_load_reject_probability(got, 1, 3) == 0.0;
	}
	ok(passed, "a load ends, %d remain, every %d ms, threshold %g: two samples",
	   remaining, interval_ms, threshold_ms);
}

static void
test_ratio(void)
{
	static const int intervals[] = {100, 1000, 60000};

	for (size_t i = 0; i < lengthof(ratio_cases); i++)
		test_ratio_case(&ratio_cases[i]);

	for (size_t i = 0; i < lengthof(intervals); i++)
	{
		test_spinning(1, 2, 3, intervals[i]);
		test_spinning(2, 2, 3, intervals[i]);
		test_spinning(4, 2, 3, intervals[i]);
		test_spinning(8, 2, 3, intervals[i]);
		test_spinning(8, 2, 12, intervals[i]);
		test_spinning(32, 8, 4, intervals[i]);
		test_spinning(400, 2, 3, intervals[i]);
		test_load_ends(intervals[i], -1, 0);
		test_load_ends(intervals[i], 0, 0);
		test_load_ends(intervals[i], -1, 1);
		test_load_ends(intervals[i], 0, 2);
	}
}

/*
 * Reading changes nothing, and no second is blind: whatever the interval, a
 * burst of 200 ms is seen in exactly one sample.
 */
static void
test_burst(void)
{
	PgAdmLoadWindow window = {0};
	PgAdmLoadTotals totals = {0};
	int			seen = 0;

	totals.known = true;
	for (int i = 0; i < 50; i++)
	{
		totals.at = START + i * SECOND;
		if (i == 20)
		{
			totals.part_us += 600000;
			totals.whole_us += 200000;
		}
		seen += pgadm_load_cpu_wait_ratio(&window, &totals, 100, 2, 1000).value > 2.99;
	}
	is_int(seen, 1, "a burst is seen in exactly one sample");
}

/* ----------------------------------------------------------------
 * CPU utilisation
 * ----------------------------------------------------------------
 */

static PgAdmLoadValue
utilization(PgAdmLoadWindow *window, PgAdmLoadTotals *totals, int ms,
			int used_ms, int usable_ms)
{
	totals->known = true;
	totals->at += ms * INT64CONST(1000);
	totals->part_us += used_ms * INT64CONST(1000);
	totals->whole_us += usable_ms * INT64CONST(1000);
	return pgadm_load_cpu_utilization(window, totals, 1000);
}

static void
test_utilization(void)
{
	PgAdmLoadWindow window = {0};
	PgAdmLoadTotals totals = {0};
	PgAdmLoadValue got;

	totals.at = START;
	is_unknown(utilization(&window, &totals, 0, 100, 100), "utilisation: first");
	is_near(utilization(&window, &totals, 1000, 0, 500).value, 0, 0,
			"utilisation: idle");
	is_near(utilization(&window, &totals, 1000, 500, 500).value,
			1 / (1 + E1), 1e-9, "utilisation: one second of half a CPU");
	utilization(&window, &totals, 1000, 500, 500);
	got = utilization(&window, &totals, 1000, 500, 500);
	ok(got.value > 0.95, "utilisation: three seconds give over 0.95");
	for (int i = 0; i < 60; i++)
		got = utilization(&window, &totals, 1000, 500, 500);
	ok(got.value <= 1.0 && got.value > 1.0 - 1e-12, "utilisation: 1 in the end");
	got = utilization(&window, &totals, 1000, 900, 500);
	ok(got.known && got.value == 1.0, "utilisation: a burst over the quota is 1");
	utilization(&window, &totals, 1000, 0, 500);
	got = utilization(&window, &totals, 1000, 0, 500);
	ok(got.known && got.value < 0.25, "utilisation: two idle seconds");
	is_unknown(utilization(&window, &totals, 1000, 0, 0),
			   "utilisation: no usable time");
	is_unknown(utilization(&window, &totals, 1000, -1, 500),
			   "utilisation: backwards");
	is_unknown(utilization(&window, &totals, 9000, 500, 4500),
			   "utilisation: gap");
	totals.known = false;
	is_unknown(pgadm_load_cpu_utilization(&window, &totals, 1000),
			   "utilisation: unreadable");
}

/* ----------------------------------------------------------------
 * Refusals
 * ----------------------------------------------------------------
 */

static void
test_probability(void)
{
	static const struct
	{
		double		ratio;
		double		min;
		double		max;
		double		want;
	}			cases[] = {
		{4, 2, 6, 0.5}, {3, 2, 6, 0.25}, {2, 2, 6, 0}, {6, 2, 6, 1},
		{0, 2, 6, 0}, {100, 2, 6, 1}, {0.5, 0, 1, 0.5}, {0, 0, 1, 0},
		{3, 1, 3, 1}, {9, 0, 0, 0}, {9, 6, 2, 0}, {9, 2, 2, 0},
		{9, -1, 6, 0}, {9, -2, -1, 0}, {9, NAN, 6, 0}, {9, 2, NAN, 0},
		{9, 2, INFINITY, 0}, {1e300, 0, 1e308, 1e-8},
	};

	for (size_t i = 0; i < lengthof(cases); i++)
	{
		double		got = pgadm_load_reject_probability(KNOWN(cases[i].ratio),
														cases[i].min,
														cases[i].max);

		ok(fabs(got - cases[i].want) < 1e-9 && got >= 0 && got <= 1,
		   "probability: ratio %g, min %g, max %g: %g", cases[i].ratio,
		   cases[i].min, cases[i].max, got);
	}
	is_near(pgadm_load_reject_probability(UNKNOWN, 0, 1), 0, 0,
			"probability: 0 when the ratio is unknown");
	is_near(pgadm_load_reject_probability(unknown_nine, 0, 1), 0, 0,
			"probability: 0 when the ratio is unknown, but has a value");
	is_near(pgadm_load_reject_probability(nan_value, 0, 1), 0, 0,
			"probability: 0 when the ratio is NaN");
}

/*
 * Issue 6: min 2, max 6 and a ratio of 4 refuse half.
 *
 * The number of refusals in n = 10,000 fair draws is binomial, its standard
 * deviation sqrt(n p (1 - p)) = 50.  With probability 99.99 % it is within
 * 3.89 deviations, 195, of 5,000.
 */
static void
test_half(void)
{
	double		probability = pgadm_load_reject_probability(KNOWN(4), 2, 6);
	uint64		seed = 20260101;
	int			refused = 0;

	for (int i = 0; i < 10000; i++)
		refused += pgadm_load_draw(probability, uniform(&seed));
	ok(abs(refused - 5000) <= 195,
	   "min 2, max 6, ratio 4: %d of 10,000 refused, 5,000 +- 195 (99.99 %%)",
	   refused);
}

static void
test_draw(void)
{
	ok(!pgadm_load_draw(0, 0), "draw: probability 0 never");
	ok(pgadm_load_draw(1, 1 - 1e-16), "draw: probability 1 always");
	ok(pgadm_load_draw(1, 1), "draw: probability 1 with a draw of 1");
	ok(pgadm_load_draw(0.5, 0.49), "draw: under");
	ok(!pgadm_load_draw(0.5, 0.5), "draw: at");
	ok(!pgadm_load_draw(NAN, 0), "draw: NaN never");
	test_half();
}

/*
 * Draws over one of role, address and sample while the others stay: each has
 * to be uniform.  Bound as in test_half(), for p = 0.25: 43.3 * 3.89 = 168.
 */
static void
test_connection_spread(const char *name, int which)
{
	int			quarter[4] = {0};
	bool		passed = true;

	for (int i = 0; i < 10000; i++)
	{
		char		role[32] = "app";
		char		address[32] = "10.0.0.1";
		double		u;

		if (which == 0)
			snprintf(role, sizeof(role), "user%d", i);
		if (which == 1)
			snprintf(address, sizeof(address), "10.0.%d.%d", i / 256, i % 256);
		u = pgadm_load_connection_uniform(role, address, which == 2 ? i : 5);
		passed &= u >= 0.0 && u < 1.0;
		quarter[Min((int) (u * 4), 3)]++;
	}
	for (int i = 0; i < 4; i++)
		passed &= abs(quarter[i] - 2500) <= 168;
	ok(passed, "connection draw: uniform over %s: %d %d %d %d", name,
	   quarter[0], quarter[1], quarter[2], quarter[3]);
}

static void
test_connection(void)
{
	double		u = pgadm_load_connection_uniform("app", "10.0.0.1", 5);
	int			differ = 0;

	ok(u == pgadm_load_connection_uniform("app", "10.0.0.1", 5),
	   "connection draw: the same again");
	ok(u != pgadm_load_connection_uniform("app", "10.0.0.1", 6),
	   "connection draw: another sample");
	ok(u != pgadm_load_connection_uniform("app", "10.0.0.2", 5),
	   "connection draw: another address");
	ok(u != pgadm_load_connection_uniform("app2", "10.0.0.1", 5),
	   "connection draw: another role");
	ok(pgadm_load_connection_uniform("ab", "c", 5) !=
	   pgadm_load_connection_uniform("a", "bc", 5),
	   "connection draw: role and address are two things");
	ok(pgadm_load_connection_uniform("app", NULL, 5) ==
	   pgadm_load_connection_uniform("app", "", 5),
	   "connection draw: no address");
	is_near(pgadm_load_connection_uniform(NULL, NULL, 0), 0.5, 0.5,
			"connection draw: nothing at all");

	/* whoever was refused is not refused again and again, nor is the next */
	for (int i = 0; i < 1000; i++)
		differ += (pgadm_load_connection_uniform("app", "::1", i) < 0.5) !=
			(pgadm_load_connection_uniform("app", "::1", i + 1) < 0.5);
	ok(abs(differ - 500) <= 62, "connection draw: samples are independent: %d",
	   differ);

	test_connection_spread("roles", 0);
	test_connection_spread("addresses", 1);
	test_connection_spread("samples", 2);
}

/* ----------------------------------------------------------------
 * Breakers
 * ----------------------------------------------------------------
 */

typedef struct BreakerStep
{
	double		threshold;
	double		value;			/* negative: unknown */
	bool		tripped;
} BreakerStep;

typedef struct BreakerCase
{
	const char *name;
	PgAdmLoadScale scale;
	int			trips;
	BreakerStep steps[8];		/* to the first all zero */
} BreakerCase;

#define FRACTION	PGADM_LOAD_SCALE_FRACTION
#define NUMBER		PGADM_LOAD_SCALE_NUMBER

static const BreakerCase breaker_cases[] = {
	{"trips at its threshold", FRACTION, 1,
	{{0.9, 0.8999, false}, {0.9, 0.9, true}}},
	{"clears at 0.05 below", FRACTION, 1,
	{{0.9, 0.95, true}, {0.9, 0.86, true}, {0.9, 0.85, false},
	{0.9, 0.89, false}}},
	{"0.65 is 0.05 below 0.7", FRACTION, 1,
	{{0.7, 0.7, true}, {0.7, 0.65, false}}},
	{"trips again", FRACTION, 2,
	{{0.9, 1, true}, {0.9, 0.5, false}, {0.9, 1, true}, {0.9, 1, true}}},
	{"load average clears at 10 % below", NUMBER, 1,
	{{20, 19.9, false}, {20, 20, true}, {20, 18.1, true}, {20, 18, false}}},
	{"threshold of 1", FRACTION, 1,
	{{1, 0.999, false}, {1, 1, true}, {1, 0.96, true}, {1, 0.95, false}}},
	{"a small threshold can clear", FRACTION, 1,
	{{0.02, 0.02, true}, {0.02, 0.011, true}, {0.02, 0.01, false}}},
	{"0.1 clears at 0.05", FRACTION, 1,
	{{0.1, 0.1, true}, {0.1, 0.051, true}, {0.1, 0.05, false}}},
	{"0 is off", FRACTION, 0, {{0, 1, false}}},
	{"negative is off", FRACTION, 0, {{-1, 1, false}}},
	{"NaN is off", FRACTION, 0, {{NAN, 1, false}}},
	{"infinity is off", NUMBER, 0, {{INFINITY, 1, false}}},
	{"turned off", FRACTION, 1, {{0.9, 1, true}, {0, 1, false}}},
	{"unknown does not trip", FRACTION, 0, {{0.9, -1, false}}},
	{"unknown clears", FRACTION, 2,
	{{0.9, 1, true}, {0.9, -1, false}, {0.9, 0.87, false}, {0.9, 1, true}}},
	{"threshold lowered under the value", FRACTION, 1,
	{{0.9, 0.8, false}, {0.8, 0.8, true}}},
	{"threshold raised over the value", FRACTION, 1,
	{{0.9, 0.92, true}, {0.95, 0.92, false}, {0.95, 0.92, false}}},
	{"threshold changed, still over: the same trip", FRACTION, 1,
	{{0.9, 0.97, true}, {0.95, 0.97, true}, {0.8, 0.97, true}}},
	{"tripped by hand, then expired", NUMBER, 1, {{1, 1, true}, {1, 0, false}}},
};

static void
test_breaker_case(const BreakerCase *c)
{
	PgAdmLoadBreaker breaker = {0};
	bool		passed = true;
	TimestampTz now = START;
	TimestampTz tripped_at = 0;

	breaker.scale = c->scale;
	for (const BreakerStep *step = c->steps; step->value != 0.0 ||
		 step->threshold != 0.0; step++, now += SECOND)
	{
		bool		before = breaker.tripped;
		PgAdmLoadValue value = step->value < 0 ? UNKNOWN : KNOWN(step->value);
		PgAdmLoadEvent event;
		PgAdmLoadEvent want = PGADM_LOAD_UNCHANGED;

		if (step->tripped != before)
			want = step->tripped ? PGADM_LOAD_RAISED : PGADM_LOAD_CLEARED;
		if (want == PGADM_LOAD_RAISED)
			tripped_at = now;
		event = pgadm_load_breaker_update(&breaker, step->threshold, value, now);
		if (breaker.tripped == step->tripped && event == want &&
			breaker.value.known == value.known &&
			breaker.value.value == value.value)
			continue;
		passed = false;
		diag("update %d: tripped %d, event %d",
			 (int) (step - c->steps), breaker.tripped, event);
	}
	passed &= breaker.trips == c->trips && breaker.last_tripped_at == tripped_at;
	ok(passed, "breaker: %s", c->name);
}

static void
test_breakers(void)
{
	PgAdmLoadBreaker breaker = {0};

	for (size_t i = 0; i < lengthof(breaker_cases); i++)
		test_breaker_case(&breaker_cases[i]);

	pgadm_load_breaker_update(&breaker, 1, nan_value, START);
	is_unknown(breaker.value, "breaker: a value of NaN is unknown");
	pgadm_load_breaker_update(&breaker, 1, unknown_nine, START);
	is_unknown(breaker.value, "breaker: unknown, but has a value");
	ok(!breaker.tripped, "breaker: unknown, but has a value, does not trip");
	pgadm_load_breaker_update(&breaker, NAN, KNOWN(1), START);
	is_double(breaker.threshold, 0, "breaker: a threshold of NaN is shown as 0");
}

/* ----------------------------------------------------------------
 * Warnings
 * ----------------------------------------------------------------
 */

/* Samples of one value, until something changes */
typedef struct WarningStep
{
	int			samples;
	double		value;			/* negative: unknown */
	PgAdmLoadEvent event;		/* of the last of these samples */
	int			gap_ms;			/* before the first, instead of 1 s */
	double		warn;			/* from here on, unless 0 */
	double		duration_s;		/* likewise */
} WarningStep;

#define UNCHANGED	PGADM_LOAD_UNCHANGED
#define RAISED		PGADM_LOAD_RAISED
#define CLEARED		PGADM_LOAD_CLEARED

typedef struct WarningCase
{
	const char *name;
	WarningStep steps[8];
} WarningCase;

/* warn 0.9, clear 0.8, 10 s, a sample each second: 11 samples are 10 s */
static const WarningCase warning_cases[] = {
	{"raised once after the duration",
	{{10, 0.95, UNCHANGED}, {1, 0.9, RAISED}, {100, 1, UNCHANGED}}},
	{"not raised under warn", {{100, 0.899, UNCHANGED}}},
	{"one lower sample starts the time again",
	{{10, 0.95, UNCHANGED}, {1, 0.89, UNCHANGED}, {10, 0.95, UNCHANGED},
	{1, 0.95, RAISED}}},
	{"cleared once after the duration",
	{{11, 0.95, RAISED}, {10, 0.7, UNCHANGED}, {1, 0.799, CLEARED},
	{100, 0.1, UNCHANGED}}},
	{"between clear and warn nothing changes",
	{{100, 0.85, UNCHANGED}, {11, 0.95, RAISED}, {100, 0.8, UNCHANGED},
	{11, 0.79, CLEARED}}},
	{"one higher sample starts the clearing again",
	{{11, 0.95, RAISED}, {10, 0.7, UNCHANGED}, {1, 0.8, UNCHANGED},
	{10, 0.7, UNCHANGED}, {1, 0.7, CLEARED}}},
	{"raised again", {{11, 0.95, RAISED}, {11, 0.1, CLEARED}, {11, 0.95, RAISED}}},
	{"an unknown sample starts the time again",
	{{10, 0.95, UNCHANGED}, {1, -1, UNCHANGED}, {10, 0.95, UNCHANGED},
	{1, 0.95, RAISED}}},
	{"unknown never raises", {{1000, -1, UNCHANGED}}},
	{"unknown clears after the duration",
	{{11, 0.95, RAISED}, {10, -1, UNCHANGED}, {1, -1, CLEARED}}},
	{"three intervals are no gap",
	{{10, 0.95, UNCHANGED}, {1, 0.95, RAISED, 3000}}},
	{"a gap starts the time again",
	{{10, 0.95, UNCHANGED}, {10, 0.95, UNCHANGED, 3001}, {1, 0.95, RAISED}}},
	{"a gap starts the clearing again",
	{{11, 0.95, RAISED}, {10, 0.1, UNCHANGED}, {10, 0.1, UNCHANGED, 60000},
	{1, 0.1, CLEARED}}},
	{"a clock set forward does not raise",
	{{2, 0.95, UNCHANGED}, {10, 0.95, UNCHANGED, 3600000}, {1, 0.95, RAISED}}},
	{"a clock set back starts again",
	{{9, 0.95, UNCHANGED}, {10, 0.95, UNCHANGED, -3600000}, {1, 0.95, RAISED}}},
	{"a clock that stands starts again",
	{{10, 0.95, UNCHANGED}, {10, 0.95, UNCHANGED, -1}, {1, 0.95, RAISED}}},
	{"a changed limit starts again",
	{{10, 0.95, UNCHANGED}, {10, 0.95, UNCHANGED, 0, 0.94},
	{1, 0.95, RAISED}}},
	{"a limit raised over the value",
	{{11, 0.95, RAISED}, {100, 0.95, UNCHANGED, 0, 0.99},
	{11, 0.7, CLEARED}}},
	{"a warn limit under clear counts for both",
	{{11, 0.55, RAISED, 0, 0.5}, {20, 0.5, UNCHANGED}, {11, 0.49, CLEARED}}},
	{"turned off clears at once",
	{{11, 0.95, RAISED}, {1, 0.95, CLEARED, 0, -1}, {100, 1, UNCHANGED}}},
	{"off is never raised", {{100, 1, UNCHANGED, 0, -1}}},
	{"on again after off",
	{{100, 1, UNCHANGED, 0, -1}, {10, 1, UNCHANGED, 0, 0.9}, {1, 1, RAISED}}},
	{"duration 0 raises and clears at once",
	{{1, 0.9, RAISED, 0, 0, -1}, {1, 0.7, CLEARED}, {1, 1, RAISED}}},
	{"a shorter duration applies at once",
	{{6, 0.95, UNCHANGED}, {1, 0.95, RAISED, 0, 0, 5}}},
	{"a longer duration applies at once",
	{{10, 0.95, UNCHANGED}, {10, 0.95, UNCHANGED, 0, 0, 20}, {1, 0.95, RAISED}}},
};

/*
 * All but the last sample of a step must change nothing.
 */
static void
test_warning_case(const WarningCase *c)
{
	PgAdmLoadWarning warning = {0};
	PgAdmLoadWarningLimits limits = {0.9, 0.8, 10000};
	TimestampTz now = START;
	bool		passed = true;

	for (const WarningStep *step = c->steps; step->samples > 0; step++)
	{
		if (step->warn != 0)
			limits.warn = Max(step->warn, 0);
		if (step->duration_s != 0)
			limits.duration_ms = Max(step->duration_s, 0) * 1000;
		for (int i = 1; i <= step->samples; i++)
		{
			PgAdmLoadEvent event;
			bool		last = i == step->samples;

			if (i > 1 || step->gap_ms == 0)
				now += SECOND;
			else
				now += step->gap_ms == -1 ? 0 : step->gap_ms * INT64CONST(1000);
			event = pgadm_load_warning_update(&warning, &limits,
											  step->value < 0 ? UNKNOWN : KNOWN(step->value),
											  now, 1000);
			if (event == (last ? step->event : UNCHANGED))
				continue;
			passed = false;
			diag("step %d, sample %d: event %d",
				 (int) (step - c->steps), i, event);
		}
	}
	ok(passed, "warning: %s", c->name);
}

static void
test_warning_columns(void)
{
	PgAdmLoadWarning warning = {0};
	PgAdmLoadWarningLimits limits = {0.9, 0.8, 10000};

	for (int i = 0; i <= 11; i++)
		pgadm_load_warning_update(&warning, &limits, KNOWN(i ? 0.95 : 0.5),
								  START + i * SECOND, 1000);
	ok(warning.active && warning.since == START + SECOND &&
	   warning.warn == 0.9 && warning.value.value == 0.95,
	   "warning: since when the value was over the limit");
	for (int i = 12; i <= 22; i++)
		pgadm_load_warning_update(&warning, &limits, KNOWN(0.1),
								  START + i * SECOND, 1000);
	ok(!warning.active && warning.since == 0, "warning: cleared, since is 0");
	pgadm_load_warning_update(&warning, &limits, nan_value, START, 1000);
	is_unknown(warning.value, "warning: a value of NaN is unknown");
	pgadm_load_warning_update(&warning, &limits, unknown_nine, START, 1000);
	is_unknown(warning.value, "warning: unknown, but has a value");

	memset(&warning, 0, sizeof(warning));
	for (int i = 0; i < 99; i++)
		pgadm_load_warning_update(&warning, &limits, KNOWN(1),
								  START + i * SECOND / 10, 100);
	ok(!warning.active, "warning: 9.8 s at 100 ms");
	for (int i = 99; i < 101; i++)
		pgadm_load_warning_update(&warning, &limits, KNOWN(1),
								  START + i * SECOND / 10, 100);
	ok(warning.active, "warning: 10 s at 100 ms");
}

static void
test_warning_clear_changed(void)
{
	PgAdmLoadWarning warning = {0};
	PgAdmLoadWarningLimits limits = {0.9, 0.8, 10000};

	/* over the limit for 10 s, under for 9 s, then clear is lowered to 0.7 */
	for (int i = 0; i <= 30; i++)
	{
		if (i == 21)
			limits.clear = 0.7;
		pgadm_load_warning_update(&warning, &limits,
								  KNOWN(i <= 10 ? 1 : i <= 20 ? 0.75 : 0.6),
								  START + i * SECOND, 1000);
	}
	ok(warning.active, "warning: a changed clear limit starts again");
	pgadm_load_warning_update(&warning, &limits, KNOWN(0.6),
							  START + 31 * SECOND, 1000);
	ok(!warning.active, "warning: and clears after the duration");
}

static void
test_queue_warning(void)
{
	PgAdmLoadWarning warning = {0};
	int			raised_at = -1;
	int			cleared_at = -1;

	/* throttled in all but one of the first 400 samples */
	for (int i = 0; i < 1000; i++)
	{
		int64		throttled = i < 400 && i != 50 ? 1 + i % 7 : 0;
		PgAdmLoadEvent event;

		event = pgadm_load_queue_warning_update(&warning, 300000, throttled,
												START + i * SECOND, 1000);
		if (event == PGADM_LOAD_RAISED)
			raised_at = i;
		if (event == PGADM_LOAD_CLEARED)
			cleared_at = i;
	}
	is_int(raised_at, 351, "queue warning: every sample for 300 s");
	is_int(cleared_at, 700, "queue warning: no sample for 300 s");

	memset(&warning, 0, sizeof(warning));
	for (int i = 0; i < 1000; i++)
		pgadm_load_queue_warning_update(&warning, 300000, i % 100 == 99 ? -1 : 5,
										START + i * SECOND, 1000);
	ok(!warning.active, "queue warning: an unknown sample starts again");
	is_unknown(warning.value, "queue warning: unknown");
}

/* ----------------------------------------------------------------
 * History
 * ----------------------------------------------------------------
 */

static void
test_history(void)
{
	static int64 ring[PGADM_LOAD_HISTORY_SIZE];
	uint64		written = 0;
	bool		passed = true;

	ok((PGADM_LOAD_HISTORY_SIZE - 1) * 100 >= 10 * 60 * 1000,
	   "history: 10 minutes at 100 ms");
	ok(sizeof(PgAdmLoadSample) * PGADM_LOAD_HISTORY_SIZE < 1024 * 1024,
	   "history: under a megabyte (%zu bytes a sample)",
	   sizeof(PgAdmLoadSample));
	is_int(pgadm_load_history_count(0), 0, "history: empty");
	is_int(pgadm_load_history_nth(0, 0), -1, "history: nothing in it");

	while (written < 2 * PGADM_LOAD_HISTORY_SIZE + 17)
	{
		int			count;

		ring[pgadm_load_history_next(written)] = (int64) written + 1;
		written++;
		count = pgadm_load_history_count(written);
		passed &= count == Min((int) written, PGADM_LOAD_HISTORY_SIZE);
		for (int n = 0; n < count; n += 1 + n / 8)
			passed &= ring[pgadm_load_history_nth(written, n)] == (int64) written - n;
		passed &= ring[pgadm_load_history_nth(written, count - 1)] ==
			(int64) written - count + 1;
		passed &= pgadm_load_history_nth(written, count) == -1;
		passed &= pgadm_load_history_nth(written, -1) == -1;
	}
	ok(passed, "history: newest first, through two turns of the ring");
	ok(pgadm_load_history_nth(PG_UINT64_MAX, 0) ==
	   pgadm_load_history_next(PG_UINT64_MAX - 1), "history: very old");
}

/* ----------------------------------------------------------------
 * Rates
 * ----------------------------------------------------------------
 */

static void
test_rate_last(void)
{
	PgAdmLoadRate rate = {0};

	is_unknown(pgadm_load_rate(&rate), "rate: nothing yet");
	pgadm_load_rate_update(&rate, 100, true, START, 1000);
	is_unknown(rate.last, "rate: first update");
	is_unknown(pgadm_load_rate(&rate), "rate: first update, smoothed");
	pgadm_load_rate_update(&rate, 150, true, START + 2 * SECOND, 1000);
	is_near(rate.last.value, 25, 1e-9, "rate: 50 in 2 s");
	is_near(pgadm_load_rate(&rate).value, 25, 1e-9, "rate: smoothed");
	pgadm_load_rate_update(&rate, 10, true, START + 3 * SECOND, 1000);
	is_unknown(rate.last, "rate: counter was reset");
	is_near(pgadm_load_rate(&rate).value, 25, 1e-9, "rate: reset, smoothed stays");
	pgadm_load_rate_update(&rate, 10, true, START + 9 * SECOND, 1000);
	is_unknown(rate.last, "rate: gap");
	pgadm_load_rate_update(&rate, 20, true, START + 8 * SECOND, 1000);
	is_unknown(rate.last, "rate: the clock was set back");
	is_near(pgadm_load_rate(&rate).value, 25, 1e-9, "rate: smoothed stays");
	pgadm_load_rate_update(&rate, 45, true, START + 9 * SECOND, 1000);
	is_near(rate.last.value, 25, 1e-9, "rate: goes on");
}

/*
 * Let a counter grow for some seconds, and return the smoothed rate.
 */
static double
rate_run(PgAdmLoadRate *rate, int seconds, int per_second, bool saturated)
{
	for (int i = 0; i < seconds; i++)
		pgadm_load_rate_update(rate, rate->total + per_second, saturated,
							   Max(rate->updated_at, START) + SECOND, 1000);
	return pgadm_load_rate(rate).value;
}

static void
test_rate_smoothed(void)
{
	PgAdmLoadRate rate = {0};

	is_near(rate_run(&rate, 5, 3, false), 3, 1e-9,
			"service rate: idle, as much as was asked");
	is_near(rate_run(&rate, 60, 1, false), 3, 1e-9,
			"service rate: less asked does not lower it");
	ok(rate_run(&rate, 5, 8, false) > 5, "service rate: more asked raises it");
	is_near(rate_run(&rate, 1, 100, true), 100, 1e-9,
			"service rate: the first saturated sample replaces that");
	is_near(rate_run(&rate, 600, 2, false), 100, 1e-9,
			"service rate: idle again, stays");
	is_near(rate_run(&rate, 1, 40, true), 40, 0.1,
			"service rate: old samples do not count");
	is_near(rate_run(&rate, 10, 80, true), 80 - 40 * 0.0387, 2,
			"service rate: follows in 10 s");
	ok(rate_run(&rate, 1, 0, true) > 60, "service rate: one bad second");
	is_near(rate_run(&rate, 120, 0, true), 0, 0.01, "service rate: stuck");
}

static void
test_retry(void)
{
	static const struct
	{
		int64		queued;
		double		rate;		/* negative: unknown */
		int			want;
	}			cases[] = {
		{0, 10, 100}, {9, 10, 1000}, {24, 3, 8334}, {0, 1e9, 1},
		{100, -1, 0}, {100, 0, 0}, {0, 1e-300, PGADM_LOAD_RETRY_AFTER_MAX_MS},
		{PG_INT64_MAX, 1, PGADM_LOAD_RETRY_AFTER_MAX_MS}, {-5, 10, 100},
	};

	for (size_t i = 0; i < lengthof(cases); i++)
	{
		int			got = pgadm_load_retry_after_ms(cases[i].queued,
													cases[i].rate < 0 ? UNKNOWN : KNOWN(cases[i].rate));

		ok(got == cases[i].want, "retry: %lld queued, %g/s: %d ms",
		   (long long) cases[i].queued, cases[i].rate, got);
	}
}

/* ----------------------------------------------------------------
 * Garbage
 * ----------------------------------------------------------------
 */

static int64
garbage_int(uint64 *seed)
{
	static const int64 values[] = {
		PG_INT64_MIN, PG_INT64_MIN + 1, -SECOND, -1, 0, 1, SECOND, START,
		START + SECOND, START + 2 * SECOND, START + 3 * SECOND,
		PG_INT64_MAX - 1, PG_INT64_MAX
	};

	return values[(int) (uniform(seed) * lengthof(values))];
}

static double
garbage_double(uint64 *seed)
{
	static const double values[] = {
		NAN, INFINITY, -INFINITY, -1e308, -1, 0, 1e-308, 0.5, 1, 7, 1e308
	};

	return values[(int) (uniform(seed) * lengthof(values))];
}

/*
 * Whatever comes in, what comes out is finite, and 0 when unknown.  That
 * nothing overflows is for -fsanitize=undefined to find.
 */
static void
test_garbage(void)
{
	PgAdmLoadWindow ratio = {0};
	PgAdmLoadWindow used = {0};
	PgAdmLoadBreaker breaker = {0};
	PgAdmLoadWarning warning = {0};
	PgAdmLoadRate rate = {0};
	uint64		seed = 1;
	bool		passed = true;

	for (int i = 0; i < 200000; i++)
	{
		PgAdmLoadTotals totals = {garbage_int(&seed), garbage_int(&seed),
		garbage_int(&seed), uniform(&seed) < 0.9};
		PgAdmLoadValue value = {garbage_double(&seed), true};
		PgAdmLoadWarningLimits limits = {garbage_double(&seed),
		garbage_double(&seed), garbage_int(&seed)};
		PgAdmLoadValue got[6];
		double		p;

		got[0] = pgadm_load_cpu_wait_ratio(&ratio, &totals,
										   garbage_double(&seed),
										   garbage_double(&seed), 1000);
		got[1] = pgadm_load_cpu_utilization(&used, &totals, 1000);
		pgadm_load_breaker_update(&breaker, garbage_double(&seed), value,
								  totals.at);
		got[2] = breaker.value;
		pgadm_load_warning_update(&warning, &limits, value, totals.at, 1000);
		got[3] = warning.value;
		pgadm_load_rate_update(&rate, garbage_int(&seed),
							   uniform(&seed) < 0.5, totals.at, 1000);
		got[4] = rate.last;
		got[5] = pgadm_load_rate(&rate);
		for (size_t j = 0; j < lengthof(got); j++)
			passed &= isfinite(got[j].value) &&
				(got[j].known || got[j].value == 0.0);
		p = pgadm_load_reject_probability(value, garbage_double(&seed),
										  garbage_double(&seed));
		passed &= p >= 0.0 && p <= 1.0;
		passed &= pgadm_load_retry_after_ms(totals.part_us, value) >= 0;
		pgadm_load_stale(totals.at, garbage_int(&seed), 1000);
	}
	ok(passed, "garbage in, nothing but finite numbers out");
}

int
main(void)
{
	test_values();
	test_stale();
	test_ratio();
	test_burst();
	test_utilization();
	test_probability();
	test_draw();
	test_connection();
	test_breakers();
	test_warning_columns();
	test_warning_clear_changed();
	for (size_t i = 0; i < lengthof(warning_cases); i++)
		test_warning_case(&warning_cases[i]);
	test_queue_warning();
	test_history();
	test_rate_last();
	test_rate_smoothed();
	test_retry();
	test_garbage();
	return done_testing();
}
