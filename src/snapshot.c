/*-------------------------------------------------------------------------
 *
 * snapshot.c
 *		Gives up a query's snapshot while it waits.
 *
 * A query that waits with the snapshot it arrived with holds back vacuum,
 * and its result is as old as its wait is long.  In READ COMMITTED nobody has
 * seen anything of that snapshot yet, so it can be exchanged for a new one at
 * admission, as if the query had arrived only then.
 *
 * That is safe only if nobody else has the snapshot.  It is the case where a
 * portal has just taken it for this one query (PortalStart() for a SELECT,
 * PortalRunMulti() for the others) and nothing else is on the stack: pushed
 * once, and registered once by the query descriptor.  Statements that a rule
 * has added share their snapshot and keep it.  A utility command has one that
 * PortalRunUtility() took; without it the portal's is made again on demand.
 *
 * The catalog snapshot that planning has left goes too, since it would hold
 * back vacuum just as well.  Callers must make sure that they are not inside
 * any other statement: popping the snapshot of a caller that catches an error
 * of the wait would leave it without one.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/snapshot.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "snapshot.h"
#include "tcop/pquery.h"
#include "utils/portal.h"
#include "utils/snapmgr.h"

/*
 * Is the active snapshot this query's, and nobody else's?
 */
static bool
is_ours_alone(const QueryDesc *queryDesc)
{
	Snapshot	snapshot = queryDesc->snapshot;

	if (ActivePortal == NULL || ActivePortal->holdSnapshot != NULL ||
		list_length(ActivePortal->stmts) != 1 ||
		(ActivePortal->strategy != PORTAL_ONE_SELECT &&
		 ActivePortal->strategy != PORTAL_MULTI_QUERY))
		return false;

	return ActiveSnapshotSet() && snapshot == GetActiveSnapshot() &&
		snapshot->active_count == 1 && snapshot->regd_count == 1 &&
		queryDesc->crosscheck_snapshot == InvalidSnapshot;
}

/*
 * Is the active snapshot that of the utility command in the active portal,
 * and nobody else's?
 */
static bool
is_portals_alone(void)
{
	Snapshot	snapshot;

	if (ActivePortal == NULL || ActivePortal->holdSnapshot != NULL ||
		ActivePortal->portalSnapshot == NULL || !ActiveSnapshotSet())
		return false;

	snapshot = GetActiveSnapshot();
	return snapshot == ActivePortal->portalSnapshot &&
		snapshot->active_count == 1 && snapshot->regd_count == 0;
}

/*
 * Give up the snapshot of a statement that is about to wait, if that is
 * possible: a query's, or without one a utility command's.  Returns whether it
 * was; then pgadm_snapshot_renew() must be called before the statement is
 * executed, or an error must end it.
 */
bool
pgadm_snapshot_give_up(QueryDesc *queryDesc)
{
	if (IsolationUsesXactSnapshot() ||
		!(queryDesc != NULL ? is_ours_alone(queryDesc) : is_portals_alone()))
		return false;

	if (queryDesc != NULL)
	{
		UnregisterSnapshot(queryDesc->snapshot);
		queryDesc->snapshot = InvalidSnapshot;
	}
	else
		ActivePortal->portalSnapshot = NULL;
	PopActiveSnapshot();
	InvalidateCatalogSnapshot();
	return true;
}

/*
 * Take a new snapshot, in the same way as the one that was given up.
 */
void
pgadm_snapshot_renew(QueryDesc *queryDesc)
{
	if (queryDesc != NULL)
	{
		PushActiveSnapshot(GetTransactionSnapshot());
		queryDesc->snapshot = RegisterSnapshot(GetActiveSnapshot());
	}
	else
		EnsurePortalSnapshotExists();
}
