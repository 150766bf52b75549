/*-------------------------------------------------------------------------
 *
 * wait.h
 *		A queued backend's wait for its turn.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/wait.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGADM_WAIT_H
#define PGADM_WAIT_H

#include "executor/execdesc.h"
#include "gate.h"

/* What a waiter's statement allows */
typedef struct PgAdmWaitOptions
{
	bool		may_give_up;	/* its snapshot, meanwhile */
	bool		may_pin;		/* may the backend have a buffer pinned? */
} PgAdmWaitOptions;

extern bool pgadm_wait_in_queue(QueryDesc *queryDesc, PgAdmWaitOptions options,
								PgAdmOutcome *outcome);

#endif							/* PGADM_WAIT_H */
