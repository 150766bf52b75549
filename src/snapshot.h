/*-------------------------------------------------------------------------
 *
 * snapshot.h
 *		Gives up a query's snapshot while it waits.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/snapshot.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGADM_SNAPSHOT_H
#define PGADM_SNAPSHOT_H

#include "executor/execdesc.h"

extern bool pgadm_snapshot_give_up(QueryDesc *queryDesc);
extern void pgadm_snapshot_renew(QueryDesc *queryDesc);

#endif							/* PGADM_SNAPSHOT_H */
