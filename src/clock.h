/*-------------------------------------------------------------------------
 *
 * clock.h
 *		A clock that does not jump, for durations.
 *
 * The time of day may be set back, and no query may wait for long only because
 * of that.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/clock.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGADM_CLOCK_H
#define PGADM_CLOCK_H

#include "portability/instr_time.h"

#define PGADM_US_PER_MS		INT64CONST(1000)

/* Microseconds since an unknown beginning; never 0 */
static inline int64
pgadm_clock_us(void)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	return (int64) INSTR_TIME_GET_MICROSEC(now) + 1;
}

#endif							/* PGADM_CLOCK_H */
