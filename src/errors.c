/*-------------------------------------------------------------------------
 *
 * errors.c
 *		The two errors that refused queries get, and their log discipline.
 *
 * Ten thousand refusals a second must not become as many lines in the server
 * log.  Unless pg_admission.log_rejections is "all", the log hook keeps them
 * out of it.  The hook recognises them by a text domain of their own, so that
 * any other error with the same SQLSTATE is logged as ever.  What was kept out is
 * owed to the log, which the sampler pays with a summary, at most one per
 * log_interval.  The line has the SQLSTATE, for log_line_prefix, and since the
 * sampler has none, no user: what it counts is not any one session's.  Only while
 * the sampler is missing does the next query that is refused write it.
 *
 * Locking: none.  The debt is atomic, and the process that moves the time of the
 * last summary forward writes the next.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/errors.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "errors.h"
#include "lib/stringinfo.h"
#include "settings.h"
#include "shared.h"
#include "utils/timestamp.h"

#define REFUSAL_DOMAIN	"pg_admission_refusal"

/*
 * How each reason is worded; clients may rely on the names, not on the text.  The
 * sentence may differ by what a query was short of.
 */
static const struct
{
	const char *name;
	const char *message;
	const char *detail[PGADM_NSHORTAGES];
}			wording[PGADM_NREASONS] =
{
	[PGADM_REASON_QUEUE_FULL] = {
		"queue_full",
		gettext_noop("system overloaded: admission queue is full"),
		{
			[PGADM_SHORT_OF_TURN] =
			gettext_noop("What is free is kept for queries that came before, and no place is left in the queue."),
			[PGADM_SHORT_OF_WORKERS] =
			gettext_noop("Too few query workers are free, and no place is left in the queue."),
			[PGADM_SHORT_OF_MEMORY] =
			gettext_noop("Too little of the memory budget is free, and no place is left in the queue."),
			[PGADM_SHORT_OF_IDLE_MEMORY] =
			gettext_noop("Queries that are idle hold too much of the memory budget, and no place is left in the queue."),
		},
	},
	[PGADM_REASON_QUEUE_TIMEOUT] = {
		"queue_timeout",
		gettext_noop("system overloaded: query waited too long for admission"),
		{
			[PGADM_SHORT_OF_TURN] =
			gettext_noop("It was not the query's turn within \"pg_admission.queue_timeout\"."),
			[PGADM_SHORT_OF_WORKERS] =
			gettext_noop("Too few query workers became free within \"pg_admission.queue_timeout\"."),
			[PGADM_SHORT_OF_MEMORY] =
			gettext_noop("Too little of the memory budget became free within \"pg_admission.queue_timeout\"."),
			[PGADM_SHORT_OF_IDLE_MEMORY] =
			gettext_noop("Too little of the memory budget became free within \"pg_admission.queue_timeout\", since queries that are idle hold it."),
		},
	},
	[PGADM_REASON_CPU_OVERLOAD] = {
		"cpu_overload",
		gettext_noop("system overloaded: too many processes wait for a CPU"),
		{gettext_noop("The server's processes wait longer for a CPU than is allowed compared to the time they run.")},
	},
	[PGADM_REASON_BREAKER] = {
		"breaker",
		gettext_noop("system overloaded: a circuit breaker has tripped"),
		{gettext_noop("Tripped:")},
	},
	[PGADM_REASON_CONNECTION] = {
		"connection",
		gettext_noop("system overloaded: no new sessions are accepted for the moment"),
		{gettext_noop("The server's processes wait longer for a CPU than is allowed compared to the time they run.")},
	},
	[PGADM_REASON_MEMORY] = {
		"memory",
		gettext_noop("query exceeds the memory budget"),
		{gettext_noop("The query may need more memory than all queries together may use.")},
	},
	[PGADM_REASON_WORKERS] = {
		"workers",
		gettext_noop("query exceeds the worker budget"),
		{gettext_noop("The query claims more workers than there are.")},
	},
};

/*
 * The name of a reason, or NULL if there is none.
 */
const char *
pgadm_errors_reason_name(PgAdmReason reason)
{
	return wording[reason].name;
}

static int64
kilobytes(int64 bytes)
{
	return bytes / 1024 + (bytes % 1024 > 0 ? 1 : 0);
}

/*
 * The sentence of a reason, by what the query was short of if there are several.
 */
static const char *
detail_of(const PgAdmOutcome *outcome)
{
	const char *const *detail = wording[outcome->reason].detail;

	return detail[outcome->short_of] != NULL ? detail[outcome->short_of] : detail[0];
}

/*
 * The sentence after the figures, with the tripped breakers if those are why.
 */
static char *
detail_sentence(const PgAdmOutcome *outcome)
{
	StringInfoData sentence;

	initStringInfo(&sentence);
	appendStringInfoString(&sentence, detail_of(outcome));
	for (int i = 0; i < outcome->ntripped; i++)
	{
		const PgAdmTripped *tripped = &outcome->tripped[i];

		appendStringInfo(&sentence, "%s \"%s\" (value %g, threshold %g",
						 i > 0 ? "," : "", tripped->name,
						 tripped->value, tripped->threshold);
		if (tripped->reason[0] != '\0')
			appendStringInfo(&sentence, ", reason: %s", tripped->reason);
		appendStringInfoChar(&sentence, ')');
	}
	if (outcome->ntripped > 0)
		appendStringInfoChar(&sentence, '.');
	return sentence.data;
}

/*
 * In how many milliseconds the queries that wait now will have been served; 0 if
 * that is unknown, or if the query was not refused because of the queue.
 */
static int
retry_after(const PgAdmOutcome *outcome)
{
	if (outcome->reason != PGADM_REASON_QUEUE_FULL &&
		outcome->reason != PGADM_REASON_QUEUE_TIMEOUT)
		return 0;
	return pgadm_load_retry_after_ms(outcome->queued, outcome->service_rate);
}

/*
 * Refuse a query, or a connection, that could be admitted at another time.
 */
static void
raise_overloaded(int elevel, const PgAdmOutcome *outcome)
{
	const char *reason = wording[outcome->reason].name;
	int			retry_after_ms = retry_after(outcome);

	ereport_domain(elevel, REFUSAL_DOMAIN,
				   (errcode(ERRCODE_SYSTEM_OVERLOADED),
					errmsg_internal("%s", wording[outcome->reason].message),
					errdetail_internal("label=SystemOverloadedError retryable=no reason=%s "
									   "running=%d queued=%d queue_capacity=%d retry_after_ms=%d %s",
									   reason, outcome->running, outcome->queued,
									   outcome->queue_capacity, retry_after_ms,
									   detail_sentence(outcome)),
					outcome->reason == PGADM_REASON_CONNECTION ?
					errhint("reason=%s retry_after_ms=%d Wait with exponential backoff and jitter, "
							"then try again a bounded number of times.",
							reason, retry_after_ms) :
					errhint("reason=%s retry_after_ms=%d Roll back, wait with exponential backoff and jitter, "
							"then retry the whole transaction a bounded number of times.",
							reason, retry_after_ms)));
}

/*
 * What helps against a claim that is too large.  A setting is named only where it
 * does; whether this user may change it is not known for sure.
 */
static int
hint_for_budget(const PgAdmOutcome *outcome)
{
	const char *reason = wording[outcome->reason].name;

	if (outcome->reason == PGADM_REASON_WORKERS)
		return errhint("reason=%s retry_after_ms=0 Do not retry; the claim is set by "
					   "\"pg_admission.query_workers\", which an administrator can lower.",
					   reason);
	if (pgadm_query_memory > 0)
		return errhint("reason=%s retry_after_ms=0 Do not retry; the claim is set by "
					   "\"pg_admission.query_memory\", which an administrator can lower.",
					   reason);
	if (outcome->is_utility)
		return errhint("reason=%s retry_after_ms=0 Do not retry; lower \"maintenance_work_mem\".",
					   reason);
	if (outcome->can_be_lowered)
		return errhint("reason=%s retry_after_ms=0 Do not retry; rewrite the query, or lower its claim "
					   "with \"pg_admission.query_memory_limit\".",
					   reason);
	return errhint("reason=%s retry_after_ms=0 Do not retry; rewrite the query so that it needs "
				   "less memory.",
				   reason);
}

/*
 * Refuse a query that could never be admitted.
 */
static void
raise_exceeds_budget(const PgAdmOutcome *outcome)
{
	const char *reason = wording[outcome->reason].name;

	ereport_domain(ERROR, REFUSAL_DOMAIN,
				   (errcode(ERRCODE_QUERY_EXCEEDS_BUDGET),
					errmsg_internal("%s", wording[outcome->reason].message),
					errdetail_internal("label=QueryExceedsBudget retryable=no reason=%s "
									   "required_memory_kb=" INT64_FORMAT " memory_budget_kb=" INT64_FORMAT " "
									   "required_workers=%d worker_budget=%d %s",
									   reason, kilobytes(outcome->memory),
									   outcome->capacity.memory / 1024,
									   outcome->workers, outcome->capacity.workers,
									   detail_of(outcome)),
					hint_for_budget(outcome)));
}

static bool
owes_any(PgAdmLogDebt *debt)
{
	for (int i = 0; i < PGADM_NREASONS; i++)
	{
		if (pg_atomic_read_u64(&debt->refused[i]) > 0)
			return true;
	}
	return false;
}

/*
 * Write a summary of the refusals that the log has not been told of, unless the
 * last summary was written a short time ago.  A last summary in the future means
 * that the clock has been set back.  The summary is about other sessions as well,
 * so it is not sent to this session's client.
 */
void
pgadm_errors_log_summary(void)
{
	PgAdmLogDebt *debt = &pgadm_shared->log_debt;
	uint64		now = GetCurrentTimestamp();
	uint64		last = pg_atomic_read_u64(&debt->logged_at);
	uint64		total = 0;
	StringInfoData counts;

	if (pgadm_log_rejections != PGADM_LOG_SUMMARY || !owes_any(debt) ||
		(now >= last && now < last + (uint64) pgadm_log_interval * 1000) ||
		!pg_atomic_compare_exchange_u64(&debt->logged_at, &last, now))
		return;

	initStringInfo(&counts);
	for (int i = 0; i < PGADM_NREASONS; i++)
	{
		uint64		refused = pg_atomic_exchange_u64(&debt->refused[i], 0);

		if (refused == 0)
			continue;
		appendStringInfo(&counts, "%s%s=" UINT64_FORMAT,
						 total > 0 ? " " : "", wording[i].name, refused);
		total += refused;
	}

	/* One line, so the counts are not put into a DETAIL. */
	if (total > 0)
		ereport(LOG_SERVER_ONLY,
				(errcode(ERRCODE_SYSTEM_OVERLOADED),
				 errmsg_plural("admission control refused %llu request: %s",
							   "admission control refused %llu requests: %s",
							   (unsigned long) total, (unsigned long long) total, counts.data),
				 errhidestmt(true), errhidecontext(true)));
	pfree(counts.data);
}

/*
 * Refuse the query, or the connection, as the outcome of its request says.
 */
void
pgadm_errors_raise(const PgAdmOutcome *outcome)
{
	if (pgadm_log_rejections == PGADM_LOG_SUMMARY)
	{
		pg_atomic_fetch_add_u64(&pgadm_shared->log_debt.refused[outcome->reason], 1);
		if (pgadm_shared_sampler_missing(GetCurrentTimestamp()))
			pgadm_errors_log_summary();
	}

	if (outcome->reason == PGADM_REASON_MEMORY ||
		outcome->reason == PGADM_REASON_WORKERS)
		raise_exceeds_budget(outcome);
	else
		raise_overloaded(outcome->reason == PGADM_REASON_CONNECTION ? FATAL : ERROR,
						 outcome);

	pg_unreachable();
}

/*
 * Keep our own errors out of the server log, unless the setting is "all".
 */
void
pgadm_errors_filter_log(ErrorData *edata)
{
	if (pgadm_log_rejections != PGADM_LOG_ALL && edata->domain != NULL &&
		strncmp(edata->domain, REFUSAL_DOMAIN, strlen(REFUSAL_DOMAIN)) == 0)
		edata->output_to_server = false;
}
