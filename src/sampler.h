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

extern void pgadm_sampler_register(void);

#endif							/* PGADM_SAMPLER_H */
