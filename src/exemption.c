/*-------------------------------------------------------------------------
 *
 * exemption.c
 *		Who and what is not subject to admission.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/exemption.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "catalog/pg_class.h"
#include "exemption.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "settings.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/varlena.h"

/* A plan without any user's relation is exempt if it costs less than this */
#define LIGHT_PLAN_COST		10000

/*
 * The last answer about membership in the exempt roles.  It is for one role
 * and one value of the setting, until the catalog changes.
 */
static struct
{
	bool		valid;
	Oid			role;
	uint64		changes;		/* of the setting */
	bool		is_member;
}			membership;

/* Raised by whatever makes an answer invalid, also while it is looked up */
static uint64 forgotten = 0;

static bool makes_series(Plan *plan);

/*
 * Look up anew when asked next.
 */
void
pgadm_exemption_forget(void)
{
	membership.valid = false;
	forgotten++;
}

static void
forget_membership(Datum arg, int cacheid, uint32 hashvalue)
{
	pgadm_exemption_forget();
}

/*
 * Look up whether a role is a member of any of the exempt roles.  A role that
 * does not exist has no members.
 */
static bool
lookup_membership(Oid role)
{
	char	   *copy = pstrdup(pgadm_exempt_roles);
	List	   *names;
	ListCell   *lc;
	bool		is_member = false;

	if (SplitIdentifierString(copy, ',', &names))
	{
		foreach(lc, names)
		{
			Oid			exempt = get_role_oid((char *) lfirst(lc), true);

			if (OidIsValid(exempt) && is_member_of_role_nosuper(role, exempt))
				is_member = true;
		}
	}
	list_free(names);
	pfree(copy);

	return is_member;
}

/*
 * Look up and keep the answer, unless an error is raised meanwhile, or it is
 * invalid already.  Who owns the database is a member of pg_database_owner.
 */
static bool
renew_membership(Oid role)
{
	static bool registered = false;
	uint64		before;

	if (!registered)
	{
		CacheRegisterSyscacheCallback(AUTHOID, forget_membership, (Datum) 0);
		CacheRegisterSyscacheCallback(AUTHMEMROLEMEM, forget_membership, (Datum) 0);
		CacheRegisterSyscacheCallback(DATABASEOID, forget_membership, (Datum) 0);
		registered = true;
	}

	membership.valid = false;
	before = forgotten;
	membership.role = role;
	membership.changes = pgadm_exempt_roles_changes;
	membership.is_member = lookup_membership(role);
	membership.valid = (forgotten == before);
	return membership.is_member;
}

/*
 * Is a role a member of any of the exempt roles?
 */
bool
pgadm_exemption_of_role(Oid role)
{
	if (membership.valid && membership.role == role &&
		membership.changes == pgadm_exempt_roles_changes)
		return membership.is_member;
	return renew_membership(role);
}

/*
 * Is everything that a session does exempt?
 */
PgAdmCounter
pgadm_exemption_of_session(Oid session_user)
{
	if (pgadm_bypass)
		return PGADM_BYPASSED_SETTING;
	if (pgadm_exempt_superuser && superuser_arg(session_user))
		return PGADM_BYPASSED_SUPERUSER;
	if (pgadm_exemption_of_role(session_user))
		return PGADM_BYPASSED_ROLE;
	return PGADM_NOT_EXEMPT;
}

/*
 * Is that a relation whose rows somebody has stored?  System catalogs are
 * not, nor is a view, whose relations stand for themselves.
 */
static bool
is_user_relation(const RangeTblEntry *rte)
{
	return rte->rtekind == RTE_RELATION &&
		rte->relkind != RELKIND_VIEW &&
		rte->relid >= FirstNormalObjectId;
}

/*
 * Does an expression make a series whose length the planner cannot know?  It
 * takes that of generate_series() from its support function, which not all
 * variants have in all versions; without one, a billion rows look cheap.
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
 * Is this plan exempt, whoever runs it?
 */
PgAdmCounter
pgadm_exemption_of_plan(const PlannedStmt *stmt)
{
	Cost		cost = stmt->planTree->total_cost;
	ListCell   *lc;

	if (pgadm_exempt_cost > 0 && cost < pgadm_exempt_cost)
		return PGADM_BYPASSED_COST;
	if (stmt->parallelModeNeeded || cost >= LIGHT_PLAN_COST)
		return PGADM_NOT_EXEMPT;

	/* The range table has the relations of all query levels. */
	foreach(lc, stmt->rtable)
	{
		if (is_user_relation(lfirst_node(RangeTblEntry, lc)))
			return PGADM_NOT_EXEMPT;
	}
	if (makes_series(stmt->planTree) || any_makes_series(stmt->subplans))
		return PGADM_NOT_EXEMPT;
	return PGADM_BYPASSED_NO_RELATION;
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
 * Might a query, not planned yet, turn out to be exempt because its plan is
 * cheap or has no user's relation?
 */
bool
pgadm_exemption_query_is_light(Query *query)
{
	return pgadm_exempt_cost > 0 || !user_relation_walker((Node *) query, NULL);
}

/*
 * The name of the reason for an exemption.
 */
const char *
pgadm_exemption_name(PgAdmCounter exemption)
{
	return pgadm_stats_exemption(exemption);
}
