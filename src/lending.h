/*-------------------------------------------------------------------------
 *
 * lending.h
 *		Lends the workers of queries that wait for somebody else.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/lending.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGADM_LENDING_H
#define PGADM_LENDING_H

extern bool pgadm_lending_look(void);

#endif							/* PGADM_LENDING_H */
