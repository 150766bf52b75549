/*-------------------------------------------------------------------------
 *
 * limits.h
 *		The limits in force: settings, and what the machine has.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/limits.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGADM_LIMITS_H
#define PGADM_LIMITS_H

extern void pgadm_limits_publish(void);

#endif							/* PGADM_LIMITS_H */
