/*-------------------------------------------------------------------------
 *
 * breaker_functions.c
 *		The SQL functions that trip and clear circuit breakers by hand.
 *
 * Locking: all that may fail comes before or after what is done under the
 * admission lock.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/breaker_functions.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "breakers.h"
#include "common/string.h"
#include "gate.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "settings.h"
#include "shared.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(pgadm_trip_1_0);
PG_FUNCTION_INFO_V1(pgadm_untrip_1_0);

/* A breaker that is being tripped or cleared, and what comes of it */
typedef struct Operation
{
	const char *name;
	const char *reason;			/* clipped */
	TimestampTz expires_at;
	TimestampTz now;
	PgAdmByHand result;
	bool		was_tripped;
} Operation;

/*
 * Check a breaker's name that an operator has given.  It is shown in databases
 * of any encoding.
 */
static char *
breaker_name(text *arg)
{
	char	   *name = text_to_cstring(arg);

	if (name[0] == '\0' || strlen(name) >= NAMEDATALEN || !pg_is_ascii(name))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid circuit breaker name: \"%s\"", name),
				 errdetail("The name must consist of 1 to %d ASCII characters.",
						   NAMEDATALEN - 1)));
	return name;
}

/*
 * When a breaker tripped now for that long expires.
 */
static TimestampTz
expiry(TimestampTz now, Interval *duration)
{
	TimestampTz expires_at =
		DatumGetTimestampTz(DirectFunctionCall2(timestamptz_pl_interval,
												TimestampTzGetDatum(now),
												IntervalPGetDatum(duration)));

	if (expires_at <= now)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("duration must be greater than zero")));
	return expires_at;
}

static void
trip_locked(void *arg)
{
	Operation  *op = arg;

	op->result = pgadm_breakers_trip(op->name, op->reason, op->expires_at, op->now);
}

static void
clear_locked(void *arg)
{
	Operation  *op = arg;

	op->result = pgadm_breakers_clear(op->name, op->now, &op->was_tripped);
}

/*
 * As much of a reason as a breaker can keep.
 */
static char *
clip_reason(const char *reason)
{
	return pnstrdup(reason, pg_mbcliplen(reason, strlen(reason),
										 PGADM_BREAKER_REASON - 1));
}

/*
 * Complain about a breaker that is not an operator's.
 */
static void
check_by_hand(const Operation *op)
{
	if (op->result != PGADM_BY_HAND_BUILT_IN && op->result != PGADM_BY_HAND_MONITOR)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_RESERVED_NAME),
			 errmsg("circuit breaker \"%s\" cannot be tripped or cleared by hand", op->name),
			 op->result == PGADM_BY_HAND_BUILT_IN ?
			 errhint("Change \"pg_admission.%s_breaker_threshold\", or choose another name.", op->name) :
			 errdetail("It belongs to another extension.")));
}

/*
 * Trip a breaker of the operator's own, or prolong it.
 */
Datum
pgadm_trip_1_0(PG_FUNCTION_ARGS)
{
	Operation	op = {.now = GetCurrentTimestamp()};
	char	   *reason;

	pgadm_shared_require();
	if (PG_ARGISNULL(0) || PG_ARGISNULL(1) || PG_ARGISNULL(2))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("name, reason and duration must not be null")));
	op.name = breaker_name(PG_GETARG_TEXT_PP(0));
	reason = text_to_cstring(PG_GETARG_TEXT_PP(1));
	op.reason = clip_reason(reason);
	op.expires_at = expiry(op.now, PG_GETARG_INTERVAL_P(2));

	pgadm_gate_locked(trip_locked, &op);
	check_by_hand(&op);
	if (op.result == PGADM_BY_HAND_NO_PLACE)
		ereport(ERROR,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("too many circuit breakers"),
				 errdetail("There can be %d at most.", PGADM_MAX_BREAKERS)));

	ereport(LOG,
			(errmsg("circuit breaker \"%s\" was tripped by user \"%s\" until %s",
					op.name, GetUserNameFromId(GetSessionUserId(), false),
					timestamptz_to_str(op.expires_at)),
			 errdetail_log("Reason: %s", reason)));
	if (pgadm_shared_server_mode() != PGADM_MODE_ENFORCE)
		ereport(WARNING,
				(errmsg("circuit breaker \"%s\" refuses queries only in sessions whose \"pg_admission.mode\" is \"enforce\"",
						op.name)));
	PG_RETURN_VOID();
}

/*
 * Clear a breaker that was tripped by hand.  Returns whether it was tripped.
 */
Datum
pgadm_untrip_1_0(PG_FUNCTION_ARGS)
{
	Operation	op = {.now = GetCurrentTimestamp()};

	op.name = breaker_name(PG_GETARG_TEXT_PP(0));
	pgadm_shared_require();
	pgadm_gate_locked(clear_locked, &op);
	check_by_hand(&op);

	if (op.was_tripped)
		ereport(LOG,
				(errmsg("circuit breaker \"%s\" was cleared by user \"%s\"",
						op.name, GetUserNameFromId(GetSessionUserId(), false))));
	PG_RETURN_BOOL(op.was_tripped);
}
