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

/* What a statement's operators get instead of the session's setting */
typedef struct PgAdmWorkmem
{
	PgAdmWorkmemKind kind;
	int			kb;
} PgAdmWorkmem;

/* Where it was put on */
typedef struct PgAdmWorkmemLevel
{
	int			nest_level;		/* 0: it was not */
	LocalTransactionId lxid;
} PgAdmWorkmemLevel;

extern PgAdmWorkmemLevel pgadm_workmem_put_on(const PgAdmWorkmem *workmem);
extern void pgadm_workmem_take_off(PgAdmWorkmem *workmem, PgAdmWorkmemLevel level);

#endif							/* PGADM_WORKMEM_H */
