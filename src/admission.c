/*-------------------------------------------------------------------------
 *
 * admission.c
 *		The admitted queries of this backend, and its requests.
 *
 * A query is admitted when its executor starts, a gated utility command
 * before it does anything, unless they are nested in what is admitted; see
 * nesting.c.
 *
 * A query holds its workers until its first run is over, and takes them again
 * for each later fetch; a declared cursor takes them for the first fetch too.
 * Its charge ends with the executor state, or, if ExecutorEnd() is not called,
 * with the resource owner that the executor started under.  A utility command
 * may commit inside, so its charge ends when control returns from it.  What is
 * left when the process exits is released then.
 *
 * The records of admitted queries are in this process; records.c finds them.
 * The part that other processes must see is this backend's place in shared
 * memory (PgAdmBackend), which only gate.c changes, under the admission lock.  A
 * record is made before its charge is taken, and dropped after the charge is
 * given back, with nothing in between that could throw: there is never a
 * charge without a record.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/admission.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/parallel.h"
#include "access/xact.h"
#include "admission.h"
#include "breakers.h"
#include "claim.h"
#include "common/pg_prng.h"
#include "compat.h"
#include "cpu.h"
#include "errors.h"
#include "executor/executor.h"
#include "exemption.h"
#include "fault.h"
#include "gate.h"
#include "gather.h"
#include "memory_feedback.h"
#include "miscadmin.h"
#include "nesting.h"
#include "records.h"
#include "shared.h"
#include "snapshot.h"
#include "statement.h"
#include "stats.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "tcop/pquery.h"
#include "utility.h"
#include "utils/memutils.h"
#include "utils/portal.h"
#include "wait.h"

/*
 * The record of an admitted query.
 */
struct PgAdmAdmission
{
	PgAdmRecord record;
	bool		charged;		/* false: a cursor from inside a statement */
	int			entry;			/* in this backend's place in shared memory */
	int			workers;		/* held now; 0 while suspended */
	int64		memory;
	bool		over_budget;
	bool		is_lowered;		/* charged less than it may take */
	PgAdmAllocated workers_had; /* its parallel ones, that is */
	PgAdmClaim	claim;
	PgAdmWorkmem workmem;
};

/* Most backends have one at a time, which need not be allocated */
static PgAdmAdmission first_admission;
static bool first_admission_used = false;

static int	nworkmems = 0;		/* of them that have a lowered work_mem */
static int64 memory_held = 0;	/* by all of them */

/* The last transaction in which a query was admitted */
static LocalTransactionId admitted_lxid = InvalidLocalTransactionId;

/* The number drawn for the statement that was planned last */
static struct
{
	LocalTransactionId lxid;
	double		draw;
}			planned_draw;

/*
 * Is what this process does now not subject to admission, whatever it is?
 */
static pg_attribute_hot bool
is_out_of_scope(void)
{
	return pgadm_shared == NULL || MyBackendType != B_BACKEND ||
		pgadm_nesting_is_covered() || pgadm_nesting_is_planning() ||
		proc_exit_inprogress || !IsNormalProcessingMode() ||
		!IsTransactionState();
}

static PgAdmCounter
session_exemption(void)
{
	return pgadm_exemption_of_session(pgadm_nesting_session_user());
}

/*
 * A transaction's first query may be refused, unless it has done something
 * already that others may wait for.
 */
static bool
may_be_refused(void)
{
	return PGADM_MY_LXID != admitted_lxid && pgadm_records_is_empty() &&
		!TransactionIdIsValid(GetTopTransactionIdIfAny());
}

/*
 * A transaction with an id may hold row locks, and blocking.c cannot see a
 * wait for those.  Nor may a query wait where it could not be cancelled.
 */
static bool
may_wait(void)
{
	return !TransactionIdIsValid(GetTopTransactionIdIfAny()) &&
		InterruptHoldoffCount == 0 && QueryCancelHoldoffCount == 0 &&
		CritSectionCount == 0;
}

static void
exit_callback(int code, Datum arg)
{
	pgadm_gate_exit();
	pgadm_records_forget_all();
	nworkmems = 0;
	memory_held = 0;
}

/*
 * Take this backend's place in shared memory, when it is needed first.
 */
static void
join_queue(void)
{
	static bool joined = false;

	if (joined)
		return;
	on_shmem_exit(exit_callback, (Datum) 0);
	pgadm_gate_join(MyProcPid, MyProc->roleId, MyDatabaseId);
	joined = true;
}

/*
 * Allocate a record, for as long as this process lives.
 */
static PgAdmAdmission *
allocate_admission(void)
{
	if (first_admission_used)
		return MemoryContextAllocZero(TopMemoryContext, sizeof(PgAdmAdmission));

	first_admission_used = true;
	memset(&first_admission, 0, sizeof(PgAdmAdmission));
	return &first_admission;
}

static void
free_admission(PgAdmAdmission *admission)
{
	if (admission == &first_admission)
		first_admission_used = false;
	else
		pfree(admission);
}

/*
 * Make a record for a query that is about to be admitted.
 */
static pg_attribute_hot PgAdmAdmission *
new_admission(QueryDesc *queryDesc)
{
	PgAdmAdmission *admission;

	join_queue();
	PGADM_MAY_FAIL(PGADM_FAIL_RECORD);

	admission = allocate_admission();
	admission->record.queryDesc = queryDesc;
	admission->record.owner = queryDesc != NULL ? CurrentResourceOwner : NULL;
	pgadm_records_add(&admission->record);
	return admission;
}

/*
 * The admission that a record is of, if there is one.  It begins with that.
 */
static inline PgAdmAdmission *
admission_of(PgAdmRecord *record)
{
	return (PgAdmAdmission *) record;
}

static PgAdmAdmission *
find_admission(const QueryDesc *queryDesc)
{
	return admission_of(pgadm_records_of_query(queryDesc));
}

/*
 * Set the limit that a query's operators keep to from now on.
 */
static void
set_workmem(PgAdmAdmission *admission, PgAdmWorkmem workmem)
{
	nworkmems += (workmem.kind != PGADM_WORKMEM_NONE) -
		(admission->workmem.kind != PGADM_WORKMEM_NONE);
	admission->workmem = workmem;
}

/*
 * The next phase of a query's executor begins: its operators get no more than
 * was charged.  If the phase fails, that is undone by the abort.
 */
PgAdmWorkmemLevel
pgadm_admission_put_on_workmem(const QueryDesc *queryDesc)
{
	PgAdmWorkmemLevel none = {0};
	PgAdmAdmission *admission = nworkmems > 0 ? find_admission(queryDesc) : NULL;

	return admission != NULL ? pgadm_workmem_put_on(&admission->workmem) : none;
}

/*
 * That phase is over.
 */
void
pgadm_admission_take_off_workmem(const QueryDesc *queryDesc, PgAdmWorkmemLevel level)
{
	PgAdmAdmission *admission;
	PgAdmWorkmem workmem;

	if (!level.watched)
		return;

	admission = find_admission(queryDesc);
	if (admission == NULL)
		return;
	workmem = admission->workmem;
	pgadm_workmem_take_off(&workmem, level);
	set_workmem(admission, workmem);
}

/*
 * Drop a record, and give back what it still holds.
 */
static pg_attribute_hot void
end_admission(PgAdmAdmission *admission)
{
	PgAdmChange change = {
		.count = -1,
		.workers = -admission->workers,
		.over_budget = admission->over_budget ? -1 : 0,
		.memory = -admission->memory,
	};

	memory_held -= admission->memory;
	if (admission->charged)
		pgadm_gate_release(admission->entry, &change);
	set_workmem(admission, (PgAdmWorkmem) {PGADM_WORKMEM_NONE});
	pgadm_records_remove(&admission->record);
	free_admission(admission);
}

/*
 * Give back the workers only, until the next fetch.
 */
static void
suspend_admission(PgAdmAdmission *admission)
{
	PgAdmChange change = {
		.workers = -admission->workers,
		.over_budget = admission->over_budget ? -1 : 0,
	};

	pgadm_gate_release(admission->entry, &change);
	admission->workers = 0;
	admission->over_budget = false;
}

/*
 * Note what was charged.
 */
static void
keep_charge(PgAdmAdmission *admission, const PgAdmOutcome *outcome)
{
	admission->charged = true;
	admission->entry = outcome->entry;
	admission->workers = outcome->workers;
	admission->memory += outcome->memory;
	memory_held += outcome->memory;
	admission->over_budget = outcome->over_budget;
	admitted_lxid = PGADM_MY_LXID;
}

/*
 * May this backend have a buffer pinned?  It may if it has a cursor open or is
 * inside of another statement: not in the first statement of a transaction.
 */
static bool
may_pin_buffers(void)
{
	return !pgadm_nesting_is_outermost() || PGADM_MY_LXID == admitted_lxid ||
		GetCurrentStatementStartTimestamp() != GetCurrentTransactionStartTimestamp();
}

/*
 * Wait in the queue.  Returns whether the statement's snapshot was given up
 * meanwhile, which it may be if the statement only starts.
 */
static bool
wait_in_queue(QueryDesc *queryDesc, bool starts, PgAdmOutcome *outcome)
{
	PgAdmWaitOptions options = {
		.may_give_up = starts && pgadm_nesting_is_outermost(),
		.may_pin = may_pin_buffers(),
	};

	return pgadm_wait_in_queue(queryDesc, options, outcome);
}

/*
 * A request has been refused: raise the error, which tells what would help.
 */
static void
refuse(const PgAdmAdmission *admission, PgAdmOutcome *outcome)
{
	outcome->is_utility = (admission->record.queryDesc == NULL);
	if (outcome->reason == PGADM_REASON_MEMORY && !outcome->is_utility)
		outcome->can_be_lowered =
			pgadm_claim_can_be_lowered(admission->record.queryDesc->plannedstmt,
									   outcome->capacity.memory);
	pgadm_errors_raise(outcome);
}

/*
 * Get a request admitted, or raise an error.
 */
static pg_attribute_hot void
admit(PgAdmAdmission *admission, const PgAdmRequest *request, bool starts)
{
	PgAdmOutcome outcome;
	bool		gave_up = false;

	pgadm_gate_submit(request, &outcome);
	if (outcome.verdict == PGADM_QUEUE)
		gave_up = wait_in_queue(admission->record.queryDesc, starts, &outcome);

	if (outcome.verdict == PGADM_REJECT)
		refuse(admission, &outcome);

	keep_charge(admission, &outcome);
	PGADM_MAY_FAIL(PGADM_FAIL_CHARGED);
	if (gave_up)
		pgadm_snapshot_renew(admission->record.queryDesc);
}

/*
 * The random number that decides whether this statement is refused because of
 * the CPU.  One was drawn when a statement of the client was planned; that is
 * used again, so that there are not two chances to refuse the statement.
 */
static double
take_draw(void)
{
	if (planned_draw.lxid == PGADM_MY_LXID && pgadm_nesting_is_outermost())
	{
		planned_draw.lxid = InvalidLocalTransactionId;
		return planned_draw.draw;
	}
	return pg_prng_double(&pg_global_prng_state);
}

/*
 * Is a request refused with a probability that depends on the CPU?
 */
static bool
is_drawn(const PgAdmRequest *request)
{
	return request->min_wait_ratio < request->max_wait_ratio;
}

/*
 * Fill in the part that all requests have in common.
 */
static pg_attribute_hot PgAdmRequest
make_request(PgAdmMode mode, const PgAdmClaim *claim, bool refusable,
			 int statements)
{
	PgAdmRequest request = {
		.claim = *claim,
		.enforce = (mode == PGADM_MODE_ENFORCE),
		.may_wait = may_wait(),
		.may_refuse = refusable,
		.priority = !refusable,
		.entry = -1,
		.statements = statements,
		.min_wait_ratio = pgadm_min_cpu_wait_ratio_to_reject,
		.max_wait_ratio = pgadm_max_cpu_wait_ratio_to_reject,
	};

	if (is_drawn(&request))
		request.draw = take_draw();

	return request;
}

/*
 * Does this backend hold memory?  Then it must not wait for more, since others
 * may be waiting for what it holds.
 */
static bool
holds_memory(void)
{
	return memory_held > 0;
}

/*
 * Make a plan's claim.  Returns the limit that its operators keep to, even if
 * the session's settings are raised later on; a plan without any needs no limit.
 */
static PgAdmWorkmem
make_claim(const PlannedStmt *stmt, PgAdmClaim *claim)
{
	PgAdmWorkmem workmem = pgadm_claim_of_plan(stmt, pgadm_gate_memory_capacity(), claim);

	return claim->memory > 0 ? pgadm_workmem_keep(workmem) : workmem;
}

/*
 * A query has been admitted: its operators get no more than was charged.  A
 * query that is only observed is left alone, and so is one that mode "enforce"
 * was switched off for while it waited.
 */
static pg_attribute_hot void
enforce_claim(PgAdmAdmission *admission, const PlannedStmt *stmt,
			  PgAdmWorkmem workmem)
{
	PgAdmClaim *claim = &admission->claim;

	if (pgadm_shared_mode() != PGADM_MODE_ENFORCE)
	{
		admission->is_lowered = pgadm_workmem_is_lower(&workmem);
		return;
	}
	if (admission->memory < claim->memory && claim->least_memory > 0 && !claim->alone)
		workmem = pgadm_workmem_least(workmem, pgadm_claim_shrink(stmt, admission->memory, claim));
	set_workmem(admission, workmem);
}

/*
 * Admit a query that has no record yet.
 */
static void
admit_query(QueryDesc *queryDesc, PgAdmMode mode)
{
	const PlannedStmt *stmt = queryDesc->plannedstmt;
	PgAdmClaim	claim;
	PgAdmWorkmem workmem;
	PgAdmRequest request;
	PgAdmAdmission *admission;

	workmem = make_claim(stmt, &claim);
	claim.ignores_memory = holds_memory();

	request = make_request(mode, &claim, may_be_refused(),
						   pgadm_statement_kind_of_query_desc(queryDesc));
	request.plan_cost = stmt->planTree->total_cost;
	request.query_id = stmt->queryId;

	admission = new_admission(queryDesc);
	admission->claim = claim;
	admit(admission, &request, true);
	enforce_claim(admission, stmt, workmem);
}

/*
 * Is a statement exempt?  If so, count it.
 */
static bool
bypasses(PgAdmCounter exemption)
{
	if (exemption == PGADM_NOT_EXEMPT)
		return false;
	pgadm_stats_bypassed(exemption);
	return true;
}

/*
 * Refuse a query before it is planned, if it would be refused afterwards
 * whatever its plan is.
 */
void
pgadm_admission_plan(Query *query)
{
	PgAdmClaim	claim;
	PgAdmRequest request;
	PgAdmOutcome outcome;
	int			statements = 0; /* only breakers ask, if one is tripped */

	if (pgadm_nesting_is_outermost())
		pgadm_cpu_note_activity();

	if (is_out_of_scope() || !pgadm_nesting_is_outermost() ||
		query->commandType == CMD_UTILITY ||
		pgadm_shared_mode() != PGADM_MODE_ENFORCE || !may_be_refused())
		return;

	pgadm_claim_before_plan(pgadm_gate_memory_capacity(), &claim);
	if (pgadm_breakers_any_tripped())
		statements = pgadm_statement_kind_of_query(query);
	request = make_request(PGADM_MODE_ENFORCE, &claim, true, statements);
	if (is_drawn(&request))
	{
		planned_draw.lxid = PGADM_MY_LXID;
		planned_draw.draw = request.draw;
	}

	if (!pgadm_gate_may_refuse(&request) || pgadm_nesting_is_at_commit() ||
		session_exemption() != PGADM_NOT_EXEMPT ||
		pgadm_exemption_may_be_of_query(query))
		return;

	join_queue();
	if (pgadm_gate_refuses(&request, &outcome))
	{
		planned_draw.lxid = InvalidLocalTransactionId;
		pgadm_errors_raise(&outcome);
	}
}

/*
 * Is the active portal, inside of an admitted statement, about to start this
 * query as a cursor, which may outlive that statement?
 */
static bool
is_cursor(const QueryDesc *queryDesc)
{
	return ActivePortal != NULL && ActivePortal->status == PORTAL_DEFINED &&
		linitial(ActivePortal->stmts) == (void *) queryDesc->plannedstmt;
}

/*
 * Such a cursor will be charged when it is run outside, but keeps to its
 * claim from the start.
 */
static void
note_cursor(QueryDesc *queryDesc)
{
	PgAdmAdmission *admission = new_admission(queryDesc);
	PgAdmWorkmem workmem = make_claim(queryDesc->plannedstmt, &admission->claim);

	if (pgadm_shared_mode() == PGADM_MODE_ENFORCE)
		set_workmem(admission, workmem);
}

/*
 * A query's executor is about to start: admit it.  Returns whether it has been
 * admitted, so that statements nested in it pass.
 */
bool
pgadm_admission_start(QueryDesc *queryDesc, int eflags)
{
	PgAdmMode	mode;

	if (pgadm_nesting_is_covered() && MyBackendType == B_BACKEND &&
		is_cursor(queryDesc) &&
		pgadm_exemption_of_plan(queryDesc->plannedstmt) == PGADM_NOT_EXEMPT)
		note_cursor(queryDesc);
	if ((eflags & EXEC_FLAG_EXPLAIN_ONLY) || is_out_of_scope() ||
		pgadm_nesting_is_at_commit())
		return false;

	mode = pgadm_shared_mode();
	if (mode == PGADM_MODE_OFF || bypasses(session_exemption()) ||
		bypasses(pgadm_exemption_of_plan(queryDesc->plannedstmt)))
		return false;

	admit_query(queryDesc, mode);
	return true;
}

/*
 * A query has only that many parallel workers, and will launch no more: give
 * back what it holds for others, unless a setting says what it holds.
 */
static void
keep_workers(QueryDesc *queryDesc, int workers)
{
	PgAdmAdmission *admission = find_admission(queryDesc);
	PgAdmChange change = {0};

	if (admission == NULL || admission->claim.fixed_workers)
		return;
	admission->claim.workers = Min(admission->claim.workers, 1 + workers);
	change.workers = Min(admission->claim.workers - admission->workers, 0);
	if (change.workers == 0)
		return;
	pgadm_gate_release(admission->entry, &change);
	admission->workers += change.workers;
}

/*
 * A query's executor has started.
 */
void
pgadm_admission_started(QueryDesc *queryDesc)
{
	if (queryDesc->plannedstmt->parallelModeNeeded && !IsParallelWorker() &&
		find_admission(queryDesc) != NULL)
		pgadm_gather_watch(queryDesc, keep_workers);
}

/*
 * Is the portal being run to its end because its transaction commits?
 */
static bool
is_being_persisted(const QueryDesc *queryDesc)
{
	return ActivePortal != NULL && ActivePortal->queryDesc == queryDesc &&
		ActivePortal->holdStore != NULL;
}

/*
 * A request must be admitted at once, whatever it claims.
 */
static void
force_request(PgAdmRequest *request)
{
	request->may_wait = false;
	request->claim.alone = true;
	request->claim.fixed_workers = false;
}

/*
 * Take the workers of a suspended query again, or charge a cursor that was
 * opened inside of an admitted statement and is now run outside.
 */
static void
resume_admission(PgAdmAdmission *admission, QueryDesc *queryDesc, PgAdmMode mode)
{
	bool		is_first = !admission->charged;
	PgAdmRequest request;

	request = make_request(mode, &admission->claim, false,
						   pgadm_statement_kind_of_query_desc(queryDesc));
	request.claim.ignores_memory = holds_memory();
	request.plan_cost = queryDesc->plannedstmt->planTree->total_cost;
	request.query_id = queryDesc->plannedstmt->queryId;
	if (is_being_persisted(queryDesc))
		force_request(&request);
	if (admission->charged)
	{
		/* Its memory is still charged, and fewer workers do if there are fewer. */
		request.claim.memory = 0;
		request.claim.fixed_workers = false;
		request.entry = admission->entry;
	}

	admit(admission, &request, false);
	if (is_first)
		enforce_claim(admission, queryDesc->plannedstmt, admission->workmem);
}

/*
 * A query's executor is about to run.  Returns whether nested statements pass:
 * because it has been admitted, or because nothing is admitted at commit.
 */
bool
pgadm_admission_run(QueryDesc *queryDesc, ScanDirection direction)
{
	PgAdmAdmission *admission = find_admission(queryDesc);
	PgAdmMode	mode;

	if (admission == NULL)
		return is_being_persisted(queryDesc);
	if (queryDesc->plannedstmt->parallelModeNeeded)
		pgadm_memory_feedback_expect_workers();

	/* If its workers were lent before it ever ran, it waits to get others. */
	if (admission->workers > 0 && pgadm_gate_has_lent(admission->entry))
		suspend_admission(admission);
	if (admission->workers > 0 || is_out_of_scope() ||
		ScanDirectionIsNoMovement(direction) || pgadm_nesting_is_at_commit())
		return true;

	mode = pgadm_shared_mode();
	if (mode != PGADM_MODE_OFF)
		resume_admission(admission, queryDesc, mode);
	return true;
}

/*
 * A query has allocated all that it ever will: compare that with its charge.
 */
static void
feed_back(const PgAdmAdmission *admission, const QueryDesc *queryDesc)
{
	if (admission->charged && !admission->is_lowered)
		pgadm_memory_feedback_compare(queryDesc, admission->claim.memory,
									  &admission->workers_had);
}

/*
 * A query's executor has run.  If it only reads, it needs no worker until it
 * is run again, if ever.
 */
void
pgadm_admission_ran(QueryDesc *queryDesc, bool execute_once)
{
	PgAdmAdmission *admission = find_admission(queryDesc);

	if (admission == NULL)
		return;
	if (queryDesc->plannedstmt->parallelModeNeeded)
		pgadm_memory_feedback_hear_workers(&admission->workers_had);

	if (admission->workers == 0 ||
		queryDesc->operation != CMD_SELECT ||
		queryDesc->plannedstmt->hasModifyingCTE)
		return;

	if (execute_once && admission->memory == 0)
	{
		feed_back(admission, queryDesc);
		end_admission(admission);
	}
	else
		suspend_admission(admission);
}

/*
 * A cursor has been declared.  It needs no worker until it is fetched from.
 */
void
pgadm_admission_declared(const DeclareCursorStmt *stmt)
{
	Portal		portal = GetPortalByName(stmt->portalname);
	PgAdmAdmission *admission;

	if (!PortalIsValid(portal) || portal->queryDesc == NULL)
		return;

	admission = find_admission(portal->queryDesc);
	if (admission != NULL && admission->workers > 0)
		suspend_admission(admission);
}

/*
 * Is a query admitted, so that its triggers pass?
 */
bool
pgadm_admission_is_admitted(const QueryDesc *queryDesc)
{
	return find_admission(queryDesc) != NULL;
}

/*
 * A query's executor state is about to go.
 */
void
pgadm_admission_ending(const QueryDesc *queryDesc)
{
	const PgAdmAdmission *admission;

	if (IsParallelWorker())
	{
		pgadm_memory_feedback_tell_leader(queryDesc);
		return;
	}
	admission = find_admission(queryDesc);
	if (admission != NULL)
		feed_back(admission, queryDesc);
}

/*
 * A query's executor state is gone.
 */
void
pgadm_admission_end(QueryDesc *queryDesc)
{
	PgAdmAdmission *admission = find_admission(queryDesc);

	if (admission != NULL)
		end_admission(admission);
}

/*
 * A resource owner is released, and with it the queries that have started
 * under it and have not been ended.
 */
void
pgadm_admission_release_owner(ResourceOwner owner)
{
	PgAdmRecord *record;

	while ((record = pgadm_records_of_owner(owner)) != NULL)
		end_admission(admission_of(record));
}

/*
 * Admit a utility command, and lower what it may take.  Unlike that of a
 * query, its record does not go with a resource owner if that fails.
 */
static PgAdmWorkmemLevel
admit_utility(PgAdmAdmission *admission, const PgAdmRequest *request,
			  PgAdmWorkmem workmem)
{
	PgAdmWorkmemLevel level;

	PG_TRY();
	{
		admit(admission, request, true);
		if (pgadm_shared_mode() == PGADM_MODE_ENFORCE)
			set_workmem(admission, workmem);
		level = pgadm_workmem_put_on(&admission->workmem);
	}
	PG_CATCH();
	{
		end_admission(admission);
		PG_RE_THROW();
	}
	PG_END_TRY();

	return level;
}

/*
 * A utility command is about to be executed: admit it, if it is one of those
 * that are.  Returns what pgadm_admission_end_utility() must be given
 * afterwards, with the level, or NULL.
 */
PgAdmAdmission *
pgadm_admission_start_utility(const PlannedStmt *pstmt,
							  ProcessUtilityContext context,
							  PgAdmWorkmemLevel *level)
{
	const Node *stmt = pstmt->utilityStmt;
	PgAdmMode	mode;
	PgAdmClaim	claim;
	PgAdmWorkmem workmem;
	PgAdmRequest request;
	PgAdmAdmission *admission;

	if (!pgadm_utility_is_gated(stmt, context) ||
		is_out_of_scope() || pgadm_nesting_is_at_commit())
		return NULL;

	mode = pgadm_shared_mode();
	if (mode == PGADM_MODE_OFF || bypasses(session_exemption()))
		return NULL;

	workmem = pgadm_claim_of_utility(stmt, pgadm_gate_memory_capacity(), &claim);
	claim.ignores_memory = holds_memory();
	request = make_request(mode, &claim, may_be_refused(),
						   pgadm_statement_kind_of_utility(stmt));
	request.query_id = pstmt->queryId;

	admission = new_admission(NULL);
	admission->claim = claim;
	*level = admit_utility(admission, &request, workmem);
	return admission;
}

/*
 * A utility command is over.  The level is what its start has set; one that is
 * left to the abort has the number 0.
 */
void
pgadm_admission_end_utility(PgAdmAdmission *admission, PgAdmWorkmemLevel level)
{
	PgAdmWorkmem workmem = admission->workmem;

	/* The charge first: to set what was set before might fail. */
	end_admission(admission);
	pgadm_workmem_take_off(&workmem, level);
}

/*
 * Decide about a claim as if this session made it now, in mode "enforce".
 * Nothing is charged or counted.
 */
void
pgadm_admission_preview(const PgAdmClaim *claim, int statements,
						PgAdmOutcome *outcome)
{
	PgAdmRequest request = make_request(PGADM_MODE_ENFORCE, claim,
										may_be_refused(), statements);

	request.claim.ignores_memory = holds_memory();
	pgadm_gate_preview(&request, outcome);
}
