/*-------------------------------------------------------------------------
 *
 * nesting.c
 *		Where in the nest of statements this backend is.
 *
 * Statements nested in an admitted one pass, since its charge covers them.
 * Those inside one that was bypassed, or that is only a shell (DO, CALL,
 * EXPLAIN, EXECUTE ...), are admitted each for itself.  What runs because a
 * transaction commits must neither wait nor be refused, so it is not subject
 * to admission, nor is anything that it calls.
 *
 * There is one frame.  A phase of a statement changes it when it begins, and
 * restores it when it ends, also by an error.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/nesting.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "cpu.h"
#include "nesting.h"
#include "nodes/parsenodes.h"
#include "utils/fmgrprotos.h"

PgAdmFrame	pgadm_nesting_frame;

/* Do other libraries' callbacks run because a transaction commits? */
static bool in_commit_callbacks = false;

/*
 * In how many triggers is this backend?
 */
static int
trigger_depth(void)
{
	return DatumGetInt32(DirectFunctionCall1(pg_trigger_depth, (Datum) 0));
}

/*
 * A transaction begins to commit, or it has ended.  While it commits, deferred
 * triggers come first, then open cursors, then such callbacks of others.
 */
static void
note_commit(XactEvent event, void *arg)
{
	in_commit_callbacks = (event == XACT_EVENT_PRE_COMMIT ||
						   event == XACT_EVENT_PRE_PREPARE);
}

/*
 * Hear of commits before the callbacks of libraries that have been loaded by
 * now: the last to register is called first.
 */
static void
watch_commits(void)
{
	static bool registered = false;

	if (registered)
		return;
	RegisterXactCallback(note_commit, NULL);
	registered = true;
}

/*
 * Does the next statement run because a transaction commits, that is, in a
 * deferred trigger or in a callback?  A deferred trigger is not fired by a
 * statement, so there is none around it, or it is directly inside of CALL or
 * DO.  Whether there is a portal does not tell: cursors in the trigger have
 * one, and what runs while a client's statement is analyzed, while its
 * parameters are read, or by the fast path, has none.
 */
bool
pgadm_nesting_is_at_commit(void)
{
	const PgAdmFrame *frame = &pgadm_nesting_frame;

	if (in_commit_callbacks)
		return true;
	if (frame->depth > 0)
		return frame->may_commit && trigger_depth() > frame->trigger_depth;
	return trigger_depth() > 0;
}

/*
 * Enter a statement, or one of its phases.  Returns what must be given to
 * pgadm_nesting_leave(), also after an error.
 */
PgAdmFrame
pgadm_nesting_enter(bool covered)
{
	PgAdmFrame *frame = &pgadm_nesting_frame;
	PgAdmFrame	outer = *frame;

	frame->covered |= covered || pgadm_nesting_is_at_commit();
	frame->may_commit = false;
	if (frame->depth++ == 0)
	{
		watch_commits();
		frame->session_user = GetSessionUserId();
		pgadm_cpu_begin_statement();
	}
	return outer;
}

/*
 * The same for a utility command.
 */
PgAdmFrame
pgadm_nesting_enter_utility(bool covered, const Node *stmt)
{
	PgAdmFrame *frame = &pgadm_nesting_frame;
	PgAdmFrame	outer = pgadm_nesting_enter(covered);

	frame->may_commit = IsA(stmt, CallStmt) || IsA(stmt, DoStmt);
	if (frame->may_commit)
		frame->trigger_depth = trigger_depth();
	return outer;
}

/*
 * The same for the planner, which may evaluate functions.
 */
PgAdmFrame
pgadm_nesting_enter_planner(void)
{
	PgAdmFrame	outer = pgadm_nesting_frame;

	pgadm_nesting_frame.planning = true;
	return outer;
}

/*
 * Leave what has been entered.
 */
void
pgadm_nesting_leave(PgAdmFrame outer)
{
	pgadm_nesting_frame = outer;
	if (outer.depth == 0)
		pgadm_cpu_end_statement();
}
