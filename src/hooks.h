/*-------------------------------------------------------------------------
 *
 * hooks.h
 *		Where PostgreSQL calls pg_admission.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/hooks.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGADM_HOOKS_H
#define PGADM_HOOKS_H

extern void pgadm_hooks_install(void);

#endif							/* PGADM_HOOKS_H */
