/*-------------------------------------------------------------------------
 *
 * monitors.h
 *		Where circuit breakers get their values from.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/monitors.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGADM_MONITORS_H
#define PGADM_MONITORS_H

#include "load.h"

/* The sampler only */
extern void pgadm_monitors_start(void);
extern void pgadm_monitors_update(const PgAdmLoadSample *sample, TimestampTz now);

#endif							/* PGADM_MONITORS_H */
