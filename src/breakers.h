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

#include "load.h"

/* Circuit breakers: the built-in ones, other extensions', the operator's */
#define PGADM_MAX_BREAKERS		32
#define PGADM_BREAKER_REASON	256

typedef enum PgAdmBreakerKind
{
	PGADM_BREAKER_UNUSED,
	PGADM_BREAKER_BUILT_IN,
	PGADM_BREAKER_MONITOR,		/* of another extension */
	PGADM_BREAKER_OPERATOR,		/* tripped by hand */
} PgAdmBreakerKind;

typedef struct PgAdmBreaker
{
	PgAdmBreakerKind kind;
	char		name[NAMEDATALEN];
	PgAdmLoadBreaker state;
	int			statements;		/* that it refuses */
	bool		warn_only;
	int64		warned;			/* queries let pass by warn_only */
	TimestampTz expires_at;		/* of one tripped by hand */
	char		reason[PGADM_BREAKER_REASON];	/* likewise */
	int			encoding;		/* of the reason */
} PgAdmBreaker;

/* A breaker that refused a query */
typedef struct PgAdmTripped
{
	char		name[NAMEDATALEN];
	double		value;
	double		threshold;
	char		reason[PGADM_BREAKER_REASON];
} PgAdmTripped;

/* A look without the lock */
extern bool pgadm_breakers_any_tripped(void) pg_attribute_hot;

/* The caller holds the admission lock */
extern bool pgadm_breakers_refuse(int statements, TimestampTz now, bool count) pg_attribute_hot;
extern bool pgadm_breakers_is_tripped(const PgAdmBreaker *breaker,
									  int statements, bool fresh,
									  TimestampTz now);
extern const PgAdmTripped *pgadm_breakers_describe(int statements,
												   TimestampTz now, int *n);
extern void pgadm_breakers_copy_reason(const PgAdmBreaker *breaker, char *copy);

/* The sampler's part */
extern void pgadm_breakers_start(void);
extern void pgadm_breakers_update(const PgAdmLoadSample *sample, TimestampTz now);

#endif							/* PGADM_BREAKERS_H */
