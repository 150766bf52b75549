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

#include "access/transam.h"
#include "catalog/pg_class.h"
#include "load.h"
#include "nodes/nodeFuncs.h"
#include "statement.h"
#include "utility.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

/* A plan without any user's relation is light if it costs less than this */
#define LIGHT_PLAN_COST		10000

static bool makes_series(Plan *plan);

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
 * Is that a relation with rows of a user?  A system catalog is not, nor is a
 * view, since the relations that it reads are looked at themselves.
 */
static bool
is_user_relation(const RangeTblEntry *rte)
{
	return rte->rtekind == RTE_RELATION &&
		rte->relkind != RELKIND_VIEW &&
		rte->relid >= FirstNormalObjectId;
}

/*
 * Does an expression make a series whose length the planner cannot know?  The
 * planner asks the support function of generate_series(), but in some versions
 * some variants have none, and then a billion rows look cheap.
 */
static bool
series_walker(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, FuncExpr))
	{
		switch (((FuncExpr *) node)->funcid)
		{
			case F_GENERATE_SERIES_NUMERIC_NUMERIC:
			case F_GENERATE_SERIES_NUMERIC_NUMERIC_NUMERIC:
			case F_GENERATE_SERIES_TIMESTAMP_TIMESTAMP_INTERVAL:
			case F_GENERATE_SERIES_TIMESTAMPTZ_TIMESTAMPTZ_INTERVAL:
				if (!OidIsValid(get_func_support(((FuncExpr *) node)->funcid)))
					return true;
				break;
			default:
				break;
		}
	}
	return expression_tree_walker(node, series_walker, context);
}

static bool
any_makes_series(List *plans)
{
	ListCell   *lc;

	foreach(lc, plans)
	{
		if (makes_series(lfirst(lc)))
			return true;
	}
	return false;
}

/*
 * Is there such a series anywhere in a plan?
 */
static bool
makes_series(Plan *plan)
{
	ListCell   *lc;

	if (plan == NULL)
		return false;

	switch (nodeTag(plan))
	{
		case T_FunctionScan:
			foreach(lc, ((FunctionScan *) plan)->functions)
			{
				if (series_walker(lfirst_node(RangeTblFunction, lc)->funcexpr, NULL))
					return true;
			}
			break;
		case T_ProjectSet:
			if (series_walker((Node *) plan->targetlist, NULL))
				return true;
			break;
		case T_SubqueryScan:
			if (makes_series(((SubqueryScan *) plan)->subplan))
				return true;
			break;
		case T_Append:
			if (any_makes_series(((Append *) plan)->appendplans))
				return true;
			break;
		case T_MergeAppend:
			if (any_makes_series(((MergeAppend *) plan)->mergeplans))
				return true;
			break;
		default:
			break;
	}
	return makes_series(outerPlan(plan)) || makes_series(innerPlan(plan));
}

/*
 * Is a plan cheap, and has no relation of a user?
 */
bool
pgadm_statement_is_light(const PlannedStmt *stmt)
{
	ListCell   *lc;

	if (stmt->parallelModeNeeded || stmt->planTree->total_cost >= LIGHT_PLAN_COST)
		return false;

	/* The range table has the relations of all query levels. */
	foreach(lc, stmt->rtable)
	{
		if (is_user_relation(lfirst_node(RangeTblEntry, lc)))
			return false;
	}
	return !makes_series(stmt->planTree) && !any_makes_series(stmt->subplans);
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
