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

/* The built-in ones come first */
#define PGADM_MAX_BREAKERS		32
#define PGADM_BUILT_IN_BREAKERS	3
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

/* The input of a breaker whose value is sampled */
typedef struct PgAdmBreakerInput
{
	double		threshold;
	int			statements;
	bool		warn_only;
	PgAdmLoadValue value;
} PgAdmBreakerInput;

/* The result of tripping or clearing a breaker by hand */
typedef enum PgAdmByHand
{
	PGADM_BY_HAND_DONE,
	PGADM_BY_HAND_NO_PLACE,		/* for another one */
	PGADM_BY_HAND_BUILT_IN,
	PGADM_BY_HAND_MONITOR,		/* another extension's */
} PgAdmByHand;

/* A breaker that refused a query */
typedef struct PgAdmTripped
{
	char		name[NAMEDATALEN];
	double		value;
	double		threshold;
	char		reason[PGADM_BREAKER_REASON];
} PgAdmTripped;

/* Without the lock */
extern bool pgadm_breakers_any_tripped(void) pg_attribute_hot;
extern bool pgadm_breakers_may_expire(int place);
extern bool pgadm_breakers_is_built_in(const char *name);
extern PgAdmBreakerInput pgadm_breakers_built_in_input(int place,
													   const PgAdmLoadSample *sample);

/* The caller holds the admission lock, or has a copy of the breaker */
extern bool pgadm_breakers_is_tripped(const PgAdmBreaker *breaker,
									  int statements, bool fresh,
									  TimestampTz now);
extern void pgadm_breakers_copy_reason(const PgAdmBreaker *breaker, char *copy);

/* The caller holds the admission lock */
extern bool pgadm_breakers_refuse(int statements, TimestampTz now, bool count) pg_attribute_hot;
extern const PgAdmTripped *pgadm_breakers_describe(int statements,
												   TimestampTz now, int *n);
extern void pgadm_breakers_set_up_built_in(void);
extern int	pgadm_breakers_set_up_monitor(const char *name);
extern PgAdmLoadEvent pgadm_breakers_update(int place,
											const PgAdmBreakerInput *input,
											TimestampTz now, PgAdmBreaker *copy);
extern PgAdmLoadEvent pgadm_breakers_expire(int place, TimestampTz now,
											PgAdmBreaker *copy);
extern PgAdmByHand pgadm_breakers_trip(const char *name, const char *reason,
									   TimestampTz expires_at, TimestampTz now);
extern PgAdmByHand pgadm_breakers_clear(const char *name, TimestampTz now,
										bool *was_tripped);

#endif							/* PGADM_BREAKERS_H */
