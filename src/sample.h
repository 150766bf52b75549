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

extern void pgadm_sample_start(void);
extern void pgadm_sample_take(bool saturated);
extern void pgadm_sample_apply_settings(void);

#endif							/* PGADM_SAMPLE_H */
