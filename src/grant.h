/*-------------------------------------------------------------------------
 *
 * grant.h
 *		A query's lowered work_mem, put on and taken off.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/grant.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGADM_GRANT_H
#define PGADM_GRANT_H

#include "storage/lock.h"

/* The setting that decides what the operators of a statement may take */
typedef enum PgAdmGrantKind
{
	PGADM_GRANT_NONE,			/* nothing is lowered */
	PGADM_GRANT_WORK_MEM,
	PGADM_GRANT_MAINTENANCE,	/* maintenance_work_mem */
} PgAdmGrantKind;

/* What a statement's operators get instead of the session's setting */
typedef struct PgAdmGrant
{
	PgAdmGrantKind kind;
	int			kb;
} PgAdmGrant;

/* Where it was put on */
typedef struct PgAdmGrantLevel
{
	int			nest_level;		/* 0: it was not */
	LocalTransactionId lxid;
} PgAdmGrantLevel;

extern PgAdmGrantLevel pgadm_grant_put_on(const PgAdmGrant *grant);
extern void pgadm_grant_take_off(PgAdmGrant *grant, PgAdmGrantLevel level);

#endif							/* PGADM_GRANT_H */
