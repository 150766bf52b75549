/*-------------------------------------------------------------------------
 *
 * connection.h
 *		Refuses new connections while the server is overloaded.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/connection.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGADM_CONNECTION_H
#define PGADM_CONNECTION_H

#include "libpq/libpq-be.h"

extern void pgadm_connection_admit(Port *port);

#endif							/* PGADM_CONNECTION_H */
