/*-------------------------------------------------------------------------
 *
 * estimate.c
 *		pg_admission_estimate(): what a query would claim, and its verdict.
 *
 * The query is planned as EXPLAIN would plan it for the caller, and nothing of
 * it is run.  The executor is started as EXPLAIN starts it, and ended at once:
 * that is where privileges are checked.  Then the query is judged by the same
 * functions as a query that really arrives, except that nothing is charged or
 * counted.
 *
 * Of EXPLAIN ANALYZE, CREATE TABLE AS, DECLARE and COPY of a query, the query
 * is judged: it is what would be admitted, not the command.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/estimate.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "admission.h"
#include "claim.h"
#include "commands/defrem.h"
#include "errors.h"
#include "executor/executor.h"
#include "exemption.h"
#include "funcapi.h"
#include "gate.h"
#include "nesting.h"
#include "parser/analyze.h"
#include "shared.h"
#include "statement.h"
#include "tcop/tcopprot.h"
#include "utility.h"
#include "utils/builtins.h"
#include "utils/json.h"
#include "utils/jsonb.h"
#include "utils/snapmgr.h"

PG_FUNCTION_INFO_V1(pgadm_estimate_1_0);

/* The biggest operators are shown, up to this many */
#define MAX_OPERATORS	64

/* What would become of a query, were it the next of this session */
typedef struct Judgement
{
	bool		bypassed;
	const char *reason;			/* for that, or the verdict; or NULL */
	int64		memory;			/* that it would be charged, or needs */
	int			workers;
	PgAdmClaim	claim;
	PgAdmWorkmem workmem;
	PgAdmOutcome outcome;		/* unless bypassed */
} Judgement;

static List *wrapped_queries(Node *stmt, const char *query_string,
							 int *cursor_options);

static Node *
refuse_parameter(ParseState *pstate, ParamRef *pref)
{
	ereport(ERROR,
			(errcode(ERRCODE_UNDEFINED_PARAMETER),
			 errmsg("cannot estimate a query with parameters"),
			 errhint("Put values in the place of $%d and the like.", pref->number),
			 parser_errposition(pstate, pref->location)));
	return NULL;
}

static void
set_up_parser(ParseState *pstate, void *arg)
{
	pstate->p_paramref_hook = refuse_parameter;
}

/*
 * A position in an error is one in the query that is estimated, not in the one
 * of which this function is a part.
 */
static void
move_error_position(void *arg)
{
	int			position = geterrposition();

	if (position > 0)
	{
		errposition(0);
		internalerrposition(position);
		internalerrquery((const char *) arg);
	}
}

static RawStmt *
parse(const char *query_string)
{
	List	   *statements = pg_parse_query(query_string);

	if (list_length(statements) != 1)
		ereport(ERROR,
				(errcode(ERRCODE_SYNTAX_ERROR),
				 errmsg("exactly one statement is expected, not %d",
						list_length(statements))));
	return linitial_node(RawStmt, statements);
}

static List *
analyze_and_rewrite(RawStmt *raw, const char *query_string)
{
	return pg_analyze_and_rewrite_withcb(raw, query_string, set_up_parser, NULL,
										 NULL);
}

static List *
rewrite(Node *node, const char *query_string, int *cursor_options)
{
	Query	   *query = castNode(Query, node);

	/* EXPLAIN may wrap a command that wraps a query in turn. */
	if (query->commandType == CMD_UTILITY)
		return wrapped_queries(query->utilityStmt, query_string, cursor_options);

	/* The rewriter scribbles on it, but it is a part of its statement. */
	return pg_rewrite_query(copyObject(query));
}

static bool
is_explain_analyze(const ExplainStmt *stmt)
{
	bool		analyze = false;
	ListCell   *lc;

	foreach(lc, stmt->options)
	{
		DefElem    *option = lfirst_node(DefElem, lc);

		if (strcmp(option->defname, "analyze") == 0)
			analyze = defGetBoolean(option);
	}
	return analyze;
}

/*
 * The queries that a command hands to the executor, analyzed and rewritten; or
 * NIL if there are none.  Sets cursor_options if they are not planned with the
 * usual ones.
 */
static List *
wrapped_queries(Node *stmt, const char *query_string, int *cursor_options)
{
	switch (nodeTag(stmt))
	{
		case T_ExplainStmt:
			return is_explain_analyze((ExplainStmt *) stmt) ?
				rewrite(((ExplainStmt *) stmt)->query, query_string,
						cursor_options) : NIL;
		case T_CreateTableAsStmt:
			return ((CreateTableAsStmt *) stmt)->into->skipData ? NIL :
				rewrite(((CreateTableAsStmt *) stmt)->query, query_string,
						cursor_options);
		case T_DeclareCursorStmt:
			*cursor_options = ((DeclareCursorStmt *) stmt)->options;
			return rewrite(((DeclareCursorStmt *) stmt)->query, query_string,
						   cursor_options);
		case T_CopyStmt:
			if (((CopyStmt *) stmt)->query != NULL)
			{
				RawStmt    *raw = makeNode(RawStmt);

				raw->stmt = ((CopyStmt *) stmt)->query;
				return analyze_and_rewrite(raw, query_string);
			}
			return NIL;
		case T_ExecuteStmt:
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("cannot estimate EXECUTE"),
					 errhint("Estimate the query that was prepared.")));
			return NIL;
		default:
			return NIL;
	}
}

/*
 * Does a command put the rows of its query into a new relation?
 */
static bool
makes_relation(const Node *stmt)
{
	if (IsA(stmt, ExplainStmt))
		stmt = castNode(Query, ((const ExplainStmt *) stmt)->query)->utilityStmt;
	return stmt != NULL && IsA(stmt, CreateTableAsStmt);
}

/*
 * Raise an error if the caller may not run the query, as EXPLAIN would.
 */
static void
check_privileges(PlannedStmt *stmt, const char *query_string)
{
	QueryDesc  *queryDesc = CreateQueryDesc(stmt, query_string, GetActiveSnapshot(),
											InvalidSnapshot, None_Receiver,
											NULL, NULL, 0);

	ExecutorStart(queryDesc, EXEC_FLAG_EXPLAIN_ONLY);
	ExecutorEnd(queryDesc);
	FreeQueryDesc(queryDesc);
}

/*
 * Plan a query.  The planner hook must not take it for one that arrives.
 */
static PlannedStmt *
plan(Query *query, const char *query_string, int cursor_options)
{
	PgAdmFrame	outer = pgadm_nesting_enter_planner();
	PlannedStmt *stmt;

	PG_TRY();
	{
		stmt = pg_plan_query(query, query_string, cursor_options, NULL);
	}
	PG_FINALLY();
	{
		pgadm_nesting_leave(outer);
	}
	PG_END_TRY();

	check_privileges(stmt, query_string);
	return stmt;
}

/*
 * Judge a claim, unless something makes its statement exempt.
 */
static void
judge_claim(PgAdmCounter exemption, int statements, Judgement *judgement)
{
	PgAdmMode	mode = pgadm_shared_mode();
	PgAdmOutcome *outcome = &judgement->outcome;

	judgement->memory = judgement->claim.memory;
	judgement->workers = judgement->claim.workers;
	judgement->bypassed = (mode == PGADM_MODE_OFF || exemption != PGADM_NOT_EXEMPT);
	if (judgement->bypassed)
	{
		judgement->reason = mode == PGADM_MODE_OFF ? "mode" :
			pgadm_exemption_name(exemption);
		return;
	}

	pgadm_admission_preview(&judgement->claim, statements, outcome);
	judgement->memory = outcome->memory;
	judgement->workers = outcome->workers;
	judgement->reason = outcome->verdict == PGADM_FORCE ? "forced" :
		pgadm_errors_reason_name(outcome->reason);
}

/*
 * Judge a query with that plan.  "into" is whether its rows go into a new
 * relation.
 */
static void
judge_plan(const PlannedStmt *stmt, bool into, Judgement *judgement)
{
	PgAdmCounter exemption = pgadm_exemption_of_session(pgadm_nesting_session_user());

	if (exemption == PGADM_NOT_EXEMPT)
		exemption = pgadm_exemption_of_plan(stmt);

	memset(judgement, 0, sizeof(*judgement));
	judgement->workmem = pgadm_claim_of_plan(stmt, pgadm_gate_memory_capacity(),
											 &judgement->claim);
	judge_claim(exemption,
				into ? PGADM_LOAD_STATEMENT_WRITE : pgadm_statement_kind_of_plan(stmt),
				judgement);
}

/*
 * Judge a gated utility command.
 */
static void
judge_utility(const Node *stmt, Judgement *judgement)
{
	memset(judgement, 0, sizeof(*judgement));
	judgement->workmem = pgadm_claim_of_utility(stmt, pgadm_gate_memory_capacity(),
												&judgement->claim);
	judge_claim(pgadm_exemption_of_session(pgadm_nesting_session_user()),
				pgadm_statement_kind_of_utility(stmt), judgement);
}

/*
 * Judge queries that are run one after the other: the one that claims most
 * memory stands for all.
 */
static PlannedStmt *
judge_queries(List *queries, const char *query_string, int cursor_options,
			  bool into, Judgement *judgement)
{
	PlannedStmt *biggest = NULL;
	ListCell   *lc;

	foreach(lc, queries)
	{
		Query	   *query = lfirst_node(Query, lc);
		Judgement other;
		PlannedStmt *stmt;

		if (query->commandType == CMD_UTILITY)
			continue;
		stmt = plan(query, query_string, cursor_options);
		judge_plan(stmt, into, &other);
		if (biggest == NULL || other.claim.memory > judgement->claim.memory)
		{
			biggest = stmt;
			*judgement = other;
		}
	}
	return biggest;
}

/*
 * Judge whatever the text contains.  Returns the plan, if there is one.
 */
static PlannedStmt *
judge(const char *query_string, Judgement *judgement)
{
	RawStmt    *raw = parse(query_string);
	List	   *queries = analyze_and_rewrite(raw, query_string);
	int			cursor_options = CURSOR_OPT_PARALLEL_OK;
	bool		into = false;
	PlannedStmt *stmt;

	memset(judgement, 0, sizeof(*judgement));
	if (list_length(queries) == 1 &&
		linitial_node(Query, queries)->commandType == CMD_UTILITY)
	{
		Node	   *utility = linitial_node(Query, queries)->utilityStmt;

		if (pgadm_utility_is_gated(utility, PROCESS_UTILITY_TOPLEVEL))
		{
			judge_utility(utility, judgement);
			return NULL;
		}
		queries = wrapped_queries(utility, query_string, &cursor_options);
		into = makes_relation(utility);
	}

	stmt = judge_queries(queries, query_string, cursor_options, into, judgement);
	if (stmt == NULL)
	{
		judgement->bypassed = true;
		judgement->reason = "utility";
	}
	return stmt;
}

static const char *
verdict_name(const Judgement *judgement)
{
	if (judgement->bypassed)
		return "bypass";
	switch (judgement->outcome.verdict)
	{
		case PGADM_RUN:
		case PGADM_FORCE:
			return "run";
		case PGADM_QUEUE:
			return "queue";
		case PGADM_REJECT:
			return "reject";
	}
	return NULL;				/* keep compiler quiet */
}

static const char *
basis_name(PgAdmPlanBasis basis)
{
	switch (basis)
	{
		case PGADM_PLAN_BY_ROWS:
			return "rows";
		case PGADM_PLAN_AT_LIMIT:
			return "limit";
		case PGADM_PLAN_UNLIMITED:
			return "unlimited";
	}
	return NULL;				/* keep compiler quiet */
}

/*
 * The operators that make up the memory, biggest first.
 */
static Datum
describe_operators(const PlannedStmt *stmt, const PgAdmWorkmem *workmem)
{
	PgAdmPlanOperator items[MAX_OPERATORS];
	PgAdmPlanOperators operators = {items, MAX_OPERATORS, 0};
	StringInfoData json;

	if (stmt != NULL)
		pgadm_claim_list_operators(stmt, workmem, &operators);

	initStringInfo(&json);
	appendStringInfoChar(&json, '[');
	for (int i = 0; i < operators.count; i++)
	{
		appendStringInfoString(&json, i > 0 ? ", " : "");
		appendStringInfoString(&json, "{\"operator\": ");
		escape_json(&json, items[i].name);
		appendStringInfo(&json, ", \"memory_bytes\": " INT64_FORMAT
						 ", \"processes\": %d, \"by\": \"%s\"",
						 items[i].memory, items[i].processes,
						 basis_name(items[i].basis));
		if (items[i].plan_node_id >= 0)
			appendStringInfo(&json, ", \"plan_node_id\": %d", items[i].plan_node_id);
		appendStringInfoString(&json, ", \"keeps\": ");
		escape_json(&json, items[i].why);
		appendStringInfoChar(&json, '}');
	}
	appendStringInfoChar(&json, ']');

	return DirectFunctionCall1(jsonb_in, CStringGetDatum(json.data));
}

/*
 * What would a query claim, and what would become of it now?
 */
Datum
pgadm_estimate_1_0(PG_FUNCTION_ARGS)
{
	char	   *query_string = text_to_cstring(PG_GETARG_TEXT_PP(0));
	ErrorContextCallback callback = {
		error_context_stack, move_error_position, query_string
	};
	Judgement judgement;
	PlannedStmt *stmt;
	TupleDesc	tupdesc;
	Datum		values[7];
	bool		nulls[7] = {false};

	pgadm_shared_require();
	error_context_stack = &callback;
	stmt = judge(query_string, &judgement);
	error_context_stack = callback.previous;

	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE ||
		tupdesc->natts != lengthof(values))
		elog(ERROR, "return type must be a row type with %d columns",
			 (int) lengthof(values));

	values[0] = Int64GetDatum(judgement.memory);
	values[1] = Int32GetDatum(judgement.workers);
	values[2] = Float8GetDatum(stmt != NULL ? stmt->planTree->total_cost : 0);
	values[3] = CStringGetTextDatum(verdict_name(&judgement));
	if (judgement.reason != NULL)
		values[4] = CStringGetTextDatum(judgement.reason);
	else
		nulls[4] = true;
	if (judgement.workmem.kind != PGADM_WORKMEM_NONE)
		values[5] = Int32GetDatum(judgement.workmem.kb);
	else
		nulls[5] = true;
	values[6] = describe_operators(stmt, &judgement.workmem);

	return HeapTupleGetDatum(heap_form_tuple(tupdesc, values, nulls));
}
