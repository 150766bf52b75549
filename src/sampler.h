/*-------------------------------------------------------------------------
 *
 * sampler.h
 *		The background worker.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/sampler.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGADM_SAMPLER_H
#define PGADM_SAMPLER_H

#include "datatype/timestamp.h"
#include "port/atomics.h"

/* A sampler that has not said for this long that it is alive, is missing */
#define PGADM_SAMPLER_MISSING_MS	3000

/*
 * The sampler's own state, which it sets without the lock; but "alerted", which
 * queries set too, is under the lock.
 */
typedef struct PgAdmSamplerState
{
	pid_t		pid;			/* 0 if there is none */
	int			procno;
	bool		alerted;		/* looks often, or has been told to */
	TimestampTz alive_at;		/* when it last said so; first, the start */
	pg_atomic_uint64 missed_at; /* when it was last logged to be missing, or 0 */
} PgAdmSamplerState;

extern void pgadm_sampler_register(void);

#endif							/* PGADM_SAMPLER_H */
