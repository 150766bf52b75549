/*-------------------------------------------------------------------------
 *
 * utility.c
 *		Which utility commands are subject to admission.
 *
 * Those that read or write whole relations without the executor, or with
 * transactions of their own.  They are admitted once per command, before they
 * take any lock.  Commands that hand a query to the executor (CREATE TABLE AS,
 * EXPLAIN ANALYZE, EXECUTE, DECLARE, COPY of a query) are not in this table:
 * that query is admitted when it starts.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/utility.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "utility.h"

/* COPY of a relation, to or from; that of a query runs the executor. */
static bool
copies_relation(const Node *stmt)
{
	return castNode(CopyStmt, stmt)->relation != NULL;
}

/*
 * ALTER TABLE that may rewrite or scan the table.  Whether it does is known
 * only with a lock on it.
 */
static bool
may_rewrite(const Node *stmt)
{
	ListCell   *lc;

	foreach(lc, castNode(AlterTableStmt, stmt)->cmds)
	{
		switch (lfirst_node(AlterTableCmd, lc)->subtype)
		{
			case AT_AddColumn:
			case AT_AlterColumnType:
			case AT_SetNotNull:
			case AT_AddConstraint:
			case AT_ValidateConstraint:
			case AT_AddIndex:
			case AT_SetLogged:
			case AT_SetUnLogged:
			case AT_SetAccessMethod:
			case AT_SetTableSpace:
			case AT_AttachPartition:
				return true;
			default:
				break;
		}
	}
	return false;
}

/*
 * What each of them is charged: maintenance_work_mem if it may build an index
 * or keeps dead row ids, and the parallel workers that it may launch.  How
 * many it will launch is known only with a lock on the table, so it is as many
 * as it may.
 */
static const struct
{
	NodeTag		tag;
	bool		(*applies) (const Node *stmt);	/* NULL: always */
	bool		uses_memory;
	bool		parallel;
}			gated[] =
{
	{T_CopyStmt, copies_relation, false, false},
	{T_IndexStmt, NULL, true, true},
	{T_ReindexStmt, NULL, true, true},
	{T_ClusterStmt, NULL, true, true},
	{T_VacuumStmt, NULL, true, false},	/* also ANALYZE */
	{T_RefreshMatViewStmt, NULL, true, false},
	{T_AlterTableStmt, may_rewrite, true, false},
};

/*
 * The row of the table for a command, or -1.
 */
static int
find_row(const Node *stmt)
{
	for (int i = 0; i < lengthof(gated); i++)
	{
		if (nodeTag(stmt) == gated[i].tag)
			return gated[i].applies == NULL || gated[i].applies(stmt) ? i : -1;
	}
	return -1;
}

bool
pgadm_utility_is_gated(const Node *stmt)
{
	return stmt != NULL && find_row(stmt) >= 0;
}

/*
 * A gated command that changes nothing that a client can see.
 */
bool
pgadm_utility_only_reads(const Node *stmt)
{
	return IsA(stmt, CopyStmt) && !castNode(CopyStmt, stmt)->is_from;
}

bool
pgadm_utility_uses_memory(const Node *stmt)
{
	return gated[find_row(stmt)].uses_memory;
}

/*
 * Does a gated command run in transactions of its own, at least possibly?
 */
bool
pgadm_utility_may_commit(const Node *stmt)
{
	switch (nodeTag(stmt))
	{
		case T_IndexStmt:
			return castNode(IndexStmt, stmt)->concurrent;
		case T_ReindexStmt:		/* of several tables, or CONCURRENTLY */
		case T_ClusterStmt:
		case T_VacuumStmt:
			return !IsTransactionBlock();
		default:
			return false;
	}
}

/*
 * The parallel workers that a gated command may launch.
 */
int
pgadm_utility_workers(const Node *stmt)
{
	return gated[find_row(stmt)].parallel ? max_parallel_maintenance_workers : 0;
}
