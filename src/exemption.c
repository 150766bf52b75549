/*-------------------------------------------------------------------------
 *
 * exemption.c
 *		Which roles, sessions and statements are exempt from admission.
 *
 * A role is exempt if it is a member of one of the roles in a setting.  That
 * takes a look at the catalog, so the last answer is kept, in this process,
 * until the catalog or the setting changes.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/exemption.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "exemption.h"
#include "miscadmin.h"
#include "settings.h"
#include "statement.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/syscache.h"
#include "utils/varlena.h"

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

/* How often answers have become invalid, also while one was looked up */
static uint64 forgotten = 0;

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
 * Look up and keep the answer, unless an error is raised or the catalog
 * changes meanwhile.  The database's owner is a member of pg_database_owner.
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
 * Is this plan exempt, whatever role runs it?
 */
PgAdmCounter
pgadm_exemption_of_plan(const PlannedStmt *stmt)
{
	if (pgadm_exempt_cost > 0 && stmt->planTree->total_cost < pgadm_exempt_cost)
		return PGADM_BYPASSED_COST;
	if (pgadm_statement_is_light(stmt))
		return PGADM_BYPASSED_NO_RELATION;
	return PGADM_NOT_EXEMPT;
}

/*
 * Might a query, not planned yet, turn out to be exempt because of its plan?
 */
bool
pgadm_exemption_may_be_of_query(Query *query)
{
	return pgadm_exempt_cost > 0 || pgadm_statement_may_be_light(query);
}

/*
 * The name of the reason for an exemption.
 */
const char *
pgadm_exemption_name(PgAdmCounter exemption)
{
	return pgadm_stats_exemption(exemption);
}
