/*-------------------------------------------------------------------------
 *
 * sample.h
 *		One sample of the server's load.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/sample.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGADM_SAMPLE_H
#define PGADM_SAMPLE_H

#include "breakers.h"
#include "load.h"
#include "storage/lwlock.h"
#include "warnings.h"

/*
 * The server's load as of the last sample, published by the sampler.
 */
typedef struct PgAdmServerLoad
{
	PgAdmLoadSample sample;
	uint64		number;			/* of the sample */
	int			interval_ms;	/* until the next */
	PgAdmLoadValue throttle_rate;	/* queued or refused per s, last sample */
	PgAdmLoadValue service_rate;	/* completed per s, smoothed */
	PgAdmLoadWarning warnings[PGADM_NWARNINGS];
	PgAdmBreaker breakers[PGADM_MAX_BREAKERS];
} PgAdmServerLoad;

/*
 * The last samples, under a lock of their own, since copying them takes long.
 */
typedef struct PgAdmHistory
{
	LWLock		lock;
	uint64		written;
	PgAdmLoadSample samples[PGADM_LOAD_HISTORY_SIZE];
} PgAdmHistory;

extern void pgadm_sample_start(void);
extern void pgadm_sample_take(bool saturated);
extern void pgadm_sample_apply_settings(void);

#endif							/* PGADM_SAMPLE_H */
