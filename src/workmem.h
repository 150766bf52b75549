/*-------------------------------------------------------------------------
 *
 * workmem.h
 *		A query's lowered work_mem, put on and taken off.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/workmem.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGADM_WORKMEM_H
#define PGADM_WORKMEM_H

#include "storage/lock.h"

/* The setting that decides what the operators of a statement may take */
typedef enum PgAdmWorkmemKind
{
	PGADM_WORKMEM_NONE,			/* nothing is lowered */
	PGADM_WORKMEM_WORK_MEM,
	PGADM_WORKMEM_MAINTENANCE,	/* maintenance_work_mem */
} PgAdmWorkmemKind;

/* What a statement's operators get at most, whatever the session's setting is */
typedef struct PgAdmWorkmem
{
	PgAdmWorkmemKind kind;
	int			kb;
	double		hash_mem_multiplier;	/* with work_mem, if not 0 */
} PgAdmWorkmem;

/* Where it was put on, and what is in force there */
typedef struct PgAdmWorkmemLevel
{
	int			nest_level;		/* 0: it was not */
	bool		watched;		/* false: there is nothing to take off */
	LocalTransactionId lxid;
	PgAdmWorkmem in_force;
} PgAdmWorkmemLevel;

extern PgAdmWorkmem pgadm_workmem_keep(PgAdmWorkmem workmem);
extern PgAdmWorkmem pgadm_workmem_least(PgAdmWorkmem a, PgAdmWorkmem b);
extern bool pgadm_workmem_is_lower(const PgAdmWorkmem *workmem);
extern PgAdmWorkmemLevel pgadm_workmem_put_on(const PgAdmWorkmem *workmem);
extern void pgadm_workmem_take_off(PgAdmWorkmem *workmem, PgAdmWorkmemLevel level);

#endif							/* PGADM_WORKMEM_H */
