/*-------------------------------------------------------------------------
 *
 * snapshot.c
 *		Gives up a query's snapshot while it waits.
 *
 * A query that waits with the snapshot it arrived with holds back vacuum, and
 * its result is as old as its wait is long.  In READ COMMITTED nothing has
 * been read with that snapshot yet, so it can be exchanged for a new one at
 * admission, as if the query had arrived only then.
 *
 * That is safe only if the snapshot has no other user.  It has none if a
 * portal has just taken it for this one query (PortalStart() for a SELECT,
 * PortalRunMulti() for others) and nothing else is on the stack: then it is
 * pushed once, and registered once by the query descriptor.  Statements that a
 * rule has added share their snapshot and keep it.  A utility command has the
 * one that PortalRunUtility() took, which can be made again on demand.
 *
 * The catalog snapshot that planning has left is given up too, since it would
 * hold back vacuum just as well.
 *
 * The statement must not be inside of any other one: a function around it that
 * catches an error of the wait would be left without the snapshot.
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
 * Is the active snapshot this query's alone?
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
 * Is the active snapshot that of the utility command in the active portal
 * alone?
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
 * possible: that of a query, or of a utility command if there is none.  If it
 * was given up, true is returned, and pgadm_snapshot_renew() must be called
 * before the statement is executed, unless an error ends it.
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
