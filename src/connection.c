/*-------------------------------------------------------------------------
 *
 * connection.c
 *		Refuses new connections while the server is overloaded.
 *
 * This is decided once the client has authenticated, so that a client without
 * a password does not learn the server's state or a role's exemptions; but
 * before the session has loaded anything.  The settings of its role and
 * database are not known yet, so the limits are the server's.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/connection.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_authid.h"
#include "commands/dbcommands.h"
#include "connection.h"
#include "errors.h"
#include "exemption.h"
#include "gate.h"
#include "miscadmin.h"
#include "replication/walsender.h"
#include "settings.h"
#include "shared.h"
#include "utils/acl.h"

/*
 * Superusers and the exempt roles always get in, since an operator must be
 * able to help.  The session has no user id yet, so the catalog is asked by
 * name.
 *
 * The session has no database either, so the memberships looked up here lack
 * pg_database_owner.  exemption.c and PostgreSQL both keep what was looked up
 * for one role.  Both are made to forget it, since it is not complete.
 */
static bool
is_exempt(Oid role)
{
	bool		exempt;

	/* If the role does not exist, PostgreSQL will say so. */
	exempt = !OidIsValid(role) || superuser_arg(role) ||
		pgadm_exemption_of_role(role);

	pgadm_exemption_forget();

	/* PostgreSQL keeps one role's memberships: look up those of another one. */
	(void) is_member_of_role_nosuper(ROLE_PG_DATABASE_OWNER, ROLE_PG_MONITOR);
	return exempt;
}

void
pgadm_connection_admit(Port *port)
{
	PgAdmOutcome outcome;
	Oid			role;
	Oid			database;

	if (pgadm_shared == NULL || am_walsender || MyBackendType != B_BACKEND ||
		pgadm_shared_mode() == PGADM_MODE_OFF ||
		pgadm_min_cpu_wait_ratio_to_drop >= pgadm_max_cpu_wait_ratio_to_drop)
		return;

	role = get_role_oid(port->user_name, true);
	if (is_exempt(role))
		return;

	/* Only to count it; if it does not exist, it is counted without one. */
	database = get_database_oid(port->database_name, true);
	if (pgadm_gate_drops_connection(port->user_name, port->remote_host,
									role, database,
									pgadm_shared_mode() == PGADM_MODE_ENFORCE,
									&outcome))
		pgadm_errors_raise(&outcome);
}
