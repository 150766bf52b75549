/*-------------------------------------------------------------------------
 *
 * blocking.h
 *		Does this backend keep another one waiting?
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/blocking.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGADM_BLOCKING_H
#define PGADM_BLOCKING_H

extern bool pgadm_blocking_others(bool may_pin);

#endif							/* PGADM_BLOCKING_H */
