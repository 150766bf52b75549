/*-------------------------------------------------------------------------
 *
 * shed.h
 *		Load shedding: what is refused by chance because of the CPU.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/shed.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGADM_SHED_H
#define PGADM_SHED_H

#include "datatype/timestamp.h"

extern bool pgadm_shed_query(double min_wait_ratio, double max_wait_ratio,
							 double draw, TimestampTz now) pg_attribute_hot;
extern bool pgadm_shed_connection(const char *role, const char *address,
								  TimestampTz now);

#endif							/* PGADM_SHED_H */
