/*-------------------------------------------------------------------------
 *
 * truth.h
 *		What queries really had allocated, compared with their charge.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/truth.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGADM_TRUTH_H
#define PGADM_TRUTH_H

#include "executor/execdesc.h"
#include "shared.h"

/* What processes had, in bytes */
typedef struct PgAdmAllocated
{
	int64		own;			/* each its own, summed */
	int64		shared;			/* together */
} PgAdmAllocated;

extern void pgadm_truth_expect_workers(void);
extern void pgadm_truth_hear_workers(PgAdmAllocated *workers);
extern void pgadm_truth_tell_leader(const QueryDesc *queryDesc);
extern void pgadm_truth_compare(const QueryDesc *queryDesc, int64 charged,
								const PgAdmAllocated *workers) pg_attribute_hot;
extern PgAdmMemoryStats pgadm_truth_get(void);
extern void pgadm_truth_reset(void);

#endif							/* PGADM_TRUTH_H */
