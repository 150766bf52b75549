/*-------------------------------------------------------------------------
 *
 * tap.h
 *		What a unit-test program needs to tell its results in TAP.
 *
 * A unit test is a program of its own that is compiled with the file it tests
 * and PostgreSQL's headers, and linked with neither a backend nor a library of
 * PostgreSQL.  Include this last; then:
 *
 *		ok(passed, "name %d", ...)
 *		is_int(got, expected, "name")		is_double(...)
 *		is_string(...)						is_bool(...)
 *		skip(count, "reason")
 *		return done_testing();
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  test/unit/tap.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGADM_TAP_H
#define PGADM_TAP_H

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* PostgreSQL's own are in a library of its */
#undef printf
#undef fprintf
#undef snprintf
#undef vprintf
#undef vsnprintf
#undef strerror

static int	tap_tests;
static int	tap_failures;

static inline bool pg_attribute_unused()
tap_result(bool passed, const char *format, va_list args)
{
	tap_tests++;
	tap_failures += !passed;
	printf("%s %d - ", passed ? "ok" : "not ok", tap_tests);
	vprintf(format, args);
	printf("\n");
	return passed;
}

/* One test; returns whether it has passed, so that a caller can say more */
__attribute__((format(printf, 2, 3)))
static inline bool
ok(bool passed, const char *format,...)
{
	va_list		args;

	va_start(args, format);
	tap_result(passed, format, args);
	va_end(args);
	fflush(stdout);
	return passed;
}

/* What is told of a failed test */
__attribute__((format(printf, 1, 2)))
static inline void
diag(const char *format,...)
{
	va_list		args;

	va_start(args, format);
	printf("#   ");
	vprintf(format, args);
	printf("\n");
	va_end(args);
	fflush(stdout);
}

static inline bool
is_int(long long got, long long expected, const char *name)
{
	bool		passed = ok(got == expected, "%s", name);

	if (!passed)
		diag("got %lld, expected %lld", got, expected);
	return passed;
}

/* Equal up to rounding errors */
static inline bool
is_double(double got, double expected, const char *name)
{
	bool		passed = got == expected ||
		fabs(got - expected) <= 1e-9 * fabs(expected);

	if (!ok(passed, "%s", name))
		diag("got %.17g, expected %.17g", got, expected);
	return passed;
}

static inline bool
is_bool(bool got, bool expected, const char *name)
{
	bool		passed = ok(got == expected, "%s", name);

	if (!passed)
		diag("got %s, expected %s", got ? "true" : "false",
			 expected ? "true" : "false");
	return passed;
}

static inline bool
is_string(const char *got, const char *expected, const char *name)
{
	bool		passed = ok(strcmp(got, expected) == 0, "%s", name);

	if (!passed)
		diag("got \"%s\", expected \"%s\"", got, expected);
	return passed;
}

/* Tests that cannot be made here */
static inline void
skip(int count, const char *reason)
{
	while (count-- > 0)
		printf("ok %d # SKIP %s\n", ++tap_tests, reason);
	fflush(stdout);
}

/* The plan, and the exit code of main() */
static inline int
done_testing(void)
{
	printf("1..%d\n", tap_tests);
	if (tap_failures > 0)
		diag("%d of %d failed", tap_failures, tap_tests);
	return tap_failures > 0 ? 1 : 0;
}

#endif							/* PGADM_TAP_H */
