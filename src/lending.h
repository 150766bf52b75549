/*-------------------------------------------------------------------------
 *
 * lending.h
 *		Lends the workers of queries that wait for something outside.
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
