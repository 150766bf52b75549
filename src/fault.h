/*-------------------------------------------------------------------------
 *
 * fault.h
 *		Errors on demand, for tests.
 *
 * Between a query's steps through admission memory could run out, or anything
 * else fail.  In a build with assertions it does, at the step that the setting
 * pg_admission.fail_at names.  Other builds have neither the setting nor this
 * code.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/fault.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGADM_FAULT_H
#define PGADM_FAULT_H

typedef enum PgAdmFault
{
	PGADM_FAIL_NEVER,
	PGADM_FAIL_RECORD,			/* a query's record is about to be made */
	PGADM_FAIL_QUEUED,			/* it has just been queued */
	PGADM_FAIL_WAITING,			/* it waits */
	PGADM_FAIL_CHARGED,			/* it has just been charged */
} PgAdmFault;

#ifdef PGADM_ASSERTIONS

extern int	pgadm_fail_at;

#define PGADM_MAY_FAIL(fault) \
	do { \
		if (pgadm_fail_at == (fault)) \
			ereport(ERROR, \
					(errcode(ERRCODE_OUT_OF_MEMORY), \
					 errmsg("out of memory"), \
					 errdetail("Failed on request."))); \
	} while (0)

#else

#define PGADM_MAY_FAIL(fault) ((void) 0)

#endif

#endif							/* PGADM_FAULT_H */
