/*-------------------------------------------------------------------------
 *
 * utility.h
 *		Which utility commands are subject to admission.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/utility.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGADM_UTILITY_H
#define PGADM_UTILITY_H

#include "nodes/nodes.h"
#include "tcop/utility.h"

extern bool pgadm_utility_is_gated(const Node *stmt,
								   ProcessUtilityContext context);
extern bool pgadm_utility_only_reads(const Node *stmt);
extern bool pgadm_utility_uses_memory(const Node *stmt);
extern bool pgadm_utility_may_commit(const Node *stmt);
extern int	pgadm_utility_workers(const Node *stmt);

#endif							/* PGADM_UTILITY_H */
