/*-------------------------------------------------------------------------
 *
 * warnings.h
 *		Warnings about a server that has been overloaded for long.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/warnings.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGADM_WARNINGS_H
#define PGADM_WARNINGS_H

#include "cpu.h"
#include "load.h"

typedef enum PgAdmWarningId
{
	PGADM_WARNING_CPU,
	PGADM_WARNING_MEMORY,
	PGADM_WARNING_QUEUE,
} PgAdmWarningId;

#define PGADM_NWARNINGS	(PGADM_WARNING_QUEUE + 1)

/* Warnings that are not raised by a sample, but found when somebody looks */
#define PGADM_WARNING_SAMPLER	"sampler"
#define PGADM_WARNING_ROLES		"connection_roles"

extern bool pgadm_warnings_sampler_is_missing(TimestampTz now);
extern const char *pgadm_warnings_missing_sampler(void);
extern void pgadm_warnings_log_missing_sampler(TimestampTz now);
extern int	pgadm_warnings_connection_roles(const char **message);
extern const char *pgadm_warnings_name(PgAdmWarningId id);
extern const char *pgadm_warnings_message(PgAdmWarningId id);
extern void pgadm_warnings_update(const PgAdmLoadSample *sample,
								  int64 throttled,
								  const PgAdmCpuConsumer *consumers);

#endif							/* PGADM_WARNINGS_H */
