/*-------------------------------------------------------------------------
 *
 * errors.h
 *		The two errors that refused queries get, and their log discipline.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/errors.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGADM_ERRORS_H
#define PGADM_ERRORS_H

#include "gate.h"
#include "port/atomics.h"

#define ERRCODE_SYSTEM_OVERLOADED		MAKE_SQLSTATE('5', '3', 'A', '0', '1')
#define ERRCODE_QUERY_EXCEEDS_BUDGET	MAKE_SQLSTATE('5', '4', 'A', '0', '1')

/*
 * Refusals that the server log has not been told of, atomic and without the
 * lock.
 */
typedef struct PgAdmLogDebt
{
	pg_atomic_uint64 refused[PGADM_NREASONS];
	pg_atomic_uint64 logged_at; /* TimestampTz of the last summary */
} PgAdmLogDebt;

extern const char *pgadm_errors_reason_name(PgAdmReason reason);
extern void pgadm_errors_raise(const PgAdmOutcome *outcome) pg_attribute_noreturn();
extern void pgadm_errors_filter_log(ErrorData *edata);
extern void pgadm_errors_log_summary(void);

#endif							/* PGADM_ERRORS_H */
