/*-------------------------------------------------------------------------
 *
 * statement.c
 *		What kind of statement is it?
 *
 * A statement reads or writes, which is what breakers ask, and it may be
 * light: cheap, and without any relation of a user.  Both are told from a
 * plan, and before there is one, as far as possible, from the query.  Of
 * utility commands utility.c has the table.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/statement.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/transam.h"
#include "catalog/pg_class.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_type.h"
#include "load.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/plancat.h"
#include "statement.h"
#include "utility.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

/*
 * A plan without any user's relation is light if it costs less than this, and
 * this much more for each row of the catalogs that it reads: tools read them
 * whole and join them, which costs the more the more tables there are.
 */
#define LIGHT_PLAN_COST			10000
#define LIGHT_COST_PER_ROW		20

static bool is_heavy(Plan *plan);

/*
 * Does a query read or write?  Locking rows and a modifying WITH write, at
 * any query level.
 */
int
pgadm_statement_kind_of_plan(const PlannedStmt *stmt)
{
	if (stmt->commandType == CMD_SELECT && stmt->rowMarks == NIL &&
		!stmt->hasModifyingCTE)
		return PGADM_LOAD_STATEMENT_READ;
	return PGADM_LOAD_STATEMENT_WRITE;
}

/*
 * The same of a query that is about to run.  What it reads may go into a new
 * relation.
 */
int
pgadm_statement_kind_of_query_desc(const QueryDesc *queryDesc)
{
	if (queryDesc->dest != NULL && queryDesc->dest->mydest == DestIntoRel)
		return PGADM_LOAD_STATEMENT_WRITE;
	return pgadm_statement_kind_of_plan(queryDesc->plannedstmt);
}

static bool
writes_walker(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Query))
	{
		Query	   *query = (Query *) node;

		return query->commandType != CMD_SELECT || query->rowMarks != NIL ||
			query_tree_walker(query, writes_walker, context, 0);
	}
	return expression_tree_walker(node, writes_walker, context);
}

/*
 * The same of a query that is not planned yet, which takes a walk through it.
 */
int
pgadm_statement_kind_of_query(Query *query)
{
	return writes_walker((Node *) query, NULL) ?
		PGADM_LOAD_STATEMENT_WRITE : PGADM_LOAD_STATEMENT_READ;
}

/*
 * The same of a gated utility command.
 */
int
pgadm_statement_kind_of_utility(const Node *stmt)
{
	return pgadm_utility_only_reads(stmt) ?
		PGADM_LOAD_STATEMENT_READ : PGADM_LOAD_STATEMENT_WRITE;
}

/*
 * Functions of PostgreSQL's extensions that read a whole relation which is not
 * in the range table, but their argument.  Statistics of files are not among
 * them, nor functions that run statements, which are admitted themselves.
 */
static const char *const relation_readers[] = {
	"bt_index_check",			/* amcheck */
	"bt_index_parent_check",
	"gin_index_check",
	"verify_heapam",
	"pgstattuple",				/* pgstattuple */
	"pgstattuple_approx",
	"pgstatindex",
	"pgstathashindex",
	"pg_prewarm",				/* pg_prewarm */
	"pg_visibility",			/* pg_visibility */
	"pg_check_frozen",
	"pg_check_visible",
	"pgrowlocks",				/* pgrowlocks */
};

/*
 * Is a function one of these?  It is known by its name, and by a relation, by
 * OID or name, as its first argument, whatever schema it is in.
 */
static bool
is_relation_reader(Oid function)
{
	Oid		   *types;
	int			ntypes;
	char	   *name;
	bool		found = false;

	if (function < FirstNormalObjectId)
		return function == F_BRIN_SUMMARIZE_NEW_VALUES ||
			function == F_GIN_CLEAN_PENDING_LIST;

	name = get_func_name(function);
	for (int i = 0; name != NULL && !found && i < lengthof(relation_readers); i++)
		found = strcmp(name, relation_readers[i]) == 0;
	if (!found)
		return false;

	(void) get_func_signature(function, &types, &ntypes);
	return ntypes > 0 && (types[0] == REGCLASSOID || types[0] == TEXTOID);
}

/*
 * Is that a relation with rows of a user?  A system catalog is not, nor what an
 * extension has put into pg_catalog, nor is a view, since the relations that it
 * reads are looked at themselves.
 */
static bool
is_user_relation(const RangeTblEntry *rte)
{
	return rte->rtekind == RTE_RELATION &&
		rte->relkind != RELKIND_VIEW &&
		rte->relid >= FirstNormalObjectId &&
		get_rel_namespace(rte->relid) != PG_CATALOG_NAMESPACE;
}

/*
 * Does a function make a series whose length the planner cannot know?  The
 * planner asks the support function of generate_series(), but in some versions
 * some variants have none, and then a billion rows look cheap.
 */
static bool
is_unknown_series(Oid function)
{
	switch (function)
	{
		case F_GENERATE_SERIES_NUMERIC_NUMERIC:
		case F_GENERATE_SERIES_NUMERIC_NUMERIC_NUMERIC:
		case F_GENERATE_SERIES_TIMESTAMP_TIMESTAMP_INTERVAL:
		case F_GENERATE_SERIES_TIMESTAMPTZ_TIMESTAMPTZ_INTERVAL:
			return !OidIsValid(get_func_support(function));
		default:
			return false;
	}
}

/*
 * Does an expression call a function that may take long whatever it costs?
 */
static bool
heavy_walker(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, FuncExpr))
	{
		Oid			function = ((FuncExpr *) node)->funcid;

		if (is_unknown_series(function) || is_relation_reader(function))
			return true;
	}
	return expression_tree_walker(node, heavy_walker, context);
}

static bool
any_is_heavy(List *plans)
{
	ListCell   *lc;

	foreach(lc, plans)
	{
		if (is_heavy(lfirst(lc)))
			return true;
	}
	return false;
}

/*
 * Does a plan node itself call such a function?
 */
static bool
calls_heavy(Plan *plan)
{
	if (heavy_walker((Node *) plan->targetlist, NULL) ||
		heavy_walker((Node *) plan->qual, NULL))
		return true;

	switch (nodeTag(plan))
	{
		case T_Result:
			return heavy_walker(((Result *) plan)->resconstantqual, NULL);
		case T_FunctionScan:
			return heavy_walker((Node *) ((FunctionScan *) plan)->functions, NULL);
		case T_ValuesScan:
			return heavy_walker((Node *) ((ValuesScan *) plan)->values_lists, NULL);
		case T_NestLoop:
		case T_MergeJoin:
		case T_HashJoin:
			return heavy_walker((Node *) ((Join *) plan)->joinqual, NULL);
		default:
			return false;
	}
}

/*
 * Is such a function called anywhere in a plan?
 */
static bool
is_heavy(Plan *plan)
{
	if (plan == NULL)
		return false;
	check_stack_depth();

	if (calls_heavy(plan))
		return true;
	switch (nodeTag(plan))
	{
		case T_SubqueryScan:
			if (is_heavy(((SubqueryScan *) plan)->subplan))
				return true;
			break;
		case T_Append:
			if (any_is_heavy(((Append *) plan)->appendplans))
				return true;
			break;
		case T_MergeAppend:
			if (any_is_heavy(((MergeAppend *) plan)->mergeplans))
				return true;
			break;
		default:
			break;
	}
	return is_heavy(outerPlan(plan)) || is_heavy(innerPlan(plan));
}

/*
 * The rows of a catalog, by the planner's estimate, which knows its size.
 */
static double
catalog_rows(Oid relid)
{
	Relation	relation = try_relation_open(relid, AccessShareLock);
	BlockNumber pages;
	double		tuples = 0;
	double		visible;

	if (relation == NULL)
		return 0;
	if (relation->rd_rel->relkind == RELKIND_RELATION)
		estimate_rel_size(relation, NULL, &pages, &tuples, &visible);
	relation_close(relation, NoLock);
	return tuples;
}

/*
 * What a plan without any user's relation may cost.  Each catalog counts once,
 * however often it is read, so that to join one to itself is not made light by
 * that.
 */
static double
light_cost(const PlannedStmt *stmt)
{
	List	   *seen = NIL;
	double		rows = 0;
	ListCell   *lc;

	foreach(lc, stmt->rtable)
	{
		const RangeTblEntry *rte = lfirst_node(RangeTblEntry, lc);

		if (rte->rtekind != RTE_RELATION || rte->relkind != RELKIND_RELATION ||
			list_member_oid(seen, rte->relid))
			continue;
		seen = lappend_oid(seen, rte->relid);
		rows += catalog_rows(rte->relid);
	}
	list_free(seen);
	return LIGHT_PLAN_COST + LIGHT_COST_PER_ROW * rows;
}

/*
 * Is a plan cheap, and has no relation of a user?
 */
bool
pgadm_statement_is_light(const PlannedStmt *stmt)
{
	const double cost = stmt->planTree->total_cost;
	ListCell   *lc;

	if (stmt->parallelModeNeeded)
		return false;

	/* The range table has the relations of all query levels. */
	foreach(lc, stmt->rtable)
	{
		if (is_user_relation(lfirst_node(RangeTblEntry, lc)))
			return false;
	}
	return (cost < LIGHT_PLAN_COST || cost < light_cost(stmt)) &&
		!is_heavy(stmt->planTree) && !any_is_heavy(stmt->subplans);
}

static bool
user_relation_walker(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, RangeTblEntry))
		return is_user_relation((RangeTblEntry *) node);
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, user_relation_walker, context,
								 QTW_EXAMINE_RTES_BEFORE);
	return expression_tree_walker(node, user_relation_walker, context);
}

/*
 * Might the plan of a query be light?
 */
bool
pgadm_statement_may_be_light(Query *query)
{
	return !user_relation_walker((Node *) query, NULL);
}
