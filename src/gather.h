/*-------------------------------------------------------------------------
 *
 * gather.h
 *		How many parallel workers has a query really launched?
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/gather.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGADM_GATHER_H
#define PGADM_GATHER_H

#include "executor/execdesc.h"

/* Told how many workers a query has and may still launch, its leader not one */
typedef void (*PgAdmGatherReport) (QueryDesc *queryDesc, int workers);

extern void pgadm_gather_watch(QueryDesc *queryDesc, PgAdmGatherReport report);

#endif							/* PGADM_GATHER_H */
