/*-------------------------------------------------------------------------
 *
 * capacity.h
 *		The capacity in force: settings, and what the machine has.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/capacity.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGADM_CAPACITY_H
#define PGADM_CAPACITY_H

extern void pgadm_capacity_publish(bool by_substitute);

#endif							/* PGADM_CAPACITY_H */
