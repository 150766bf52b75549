/*-------------------------------------------------------------------------
 *
 * breakers.h
 *		Circuit breakers: the built-in, other extensions', the operator's.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/breakers.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGADM_BREAKERS_H
#define PGADM_BREAKERS_H

#include "shared.h"

/* A look without the lock */
extern bool pgadm_breakers_any_tripped(void) pg_attribute_hot;

/* The caller holds the admission lock */
extern bool pgadm_breakers_refuse(int statements, TimestampTz now, bool count) pg_attribute_hot;
extern bool pgadm_breakers_is_tripped(const PgAdmBreaker *breaker,
									  int statements, bool fresh,
									  TimestampTz now);
extern void pgadm_breakers_copy_reason(const PgAdmBreaker *breaker, char *copy);

/* The sampler's part */
extern void pgadm_breakers_start(void);
extern void pgadm_breakers_update(const PgAdmLoadSample *sample, TimestampTz now);

#endif							/* PGADM_BREAKERS_H */
