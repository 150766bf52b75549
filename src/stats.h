/*-------------------------------------------------------------------------
 *
 * stats.h
 *		Cumulative counters.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/stats.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGADM_STATS_H
#define PGADM_STATS_H

#include "shared.h"

extern void pgadm_stats_bypassed(PgAdmCounter counter);
extern void pgadm_stats_count(PgAdmCounter counter) pg_attribute_hot;
extern void pgadm_stats_add(PgAdmCounter counter, int n) pg_attribute_hot;
extern uint64 pgadm_stats_get(PgAdmCounter counter) pg_attribute_hot;
extern void pgadm_stats_join(PgAdmSlot *slot, Oid role, Oid database);
extern void pgadm_stats_submitted(PgAdmSlot *slot) pg_attribute_hot;
extern void pgadm_stats_admitted(PgAdmSlot *slot) pg_attribute_hot;
extern void pgadm_stats_rejected(PgAdmSlot *slot, PgAdmReason reason);
extern void pgadm_stats_would_have_rejected(PgAdmSlot *slot);
extern void pgadm_stats_waited(PgAdmSlot *slot, int64 wait_us);
extern void pgadm_stats_reset(int queued);

#endif							/* PGADM_STATS_H */
