/*-------------------------------------------------------------------------
 *
 * maintenance.h
 *		What a maintenance command can take of tables of that size.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/maintenance.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGADM_MAINTENANCE_H
#define PGADM_MAINTENANCE_H

#include "nodes/nodes.h"

extern void pgadm_maintenance_lower(const Node *stmt, int *workers, int64 *memory_kb);

#endif							/* PGADM_MAINTENANCE_H */
