/*-------------------------------------------------------------------------
 *
 * stand_in.h
 *		What backends do while the sampler is missing.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/stand_in.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGADM_STAND_IN_H
#define PGADM_STAND_IN_H

#include "access/xact.h"
#include "utils/timestamp.h"

/* This backend's next look, and the settings that it has looked with */
extern TimestampTz pgadm_stand_in_next_look;
extern TimestampTz pgadm_stand_in_looked_with;

extern void pgadm_stand_in_look(void);
extern void pgadm_stand_in_while_waiting(void);

/*
 * A statement begins at the outermost level: if this backend has read the
 * settings anew, or has not looked for a while, it looks whether the sampler is
 * missing.
 */
static inline void
pgadm_stand_in_at_statement(void)
{
	if (PgReloadTime != pgadm_stand_in_looked_with ||
		GetCurrentStatementStartTimestamp() >= pgadm_stand_in_next_look)
		pgadm_stand_in_look();
}

#endif							/* PGADM_STAND_IN_H */
