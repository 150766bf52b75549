/*-------------------------------------------------------------------------
 *
 * nesting.h
 *		Where in the nest of statements this backend is.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/nesting.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGADM_NESTING_H
#define PGADM_NESTING_H

#include "miscadmin.h"
#include "nodes/nodes.h"

/*
 * What is around the statement that comes next.
 */
typedef struct PgAdmFrame
{
	int			depth;			/* statements around whatever comes next */
	bool		covered;		/* admitted, or at commit: nested ones pass */
	bool		planning;		/* the planner runs: nested ones pass */
	bool		may_commit;		/* CALL or DO, which may commit inside */
	int			trigger_depth;	/* when that began */
	Oid			session_user;	/* of the outermost statement */
} PgAdmFrame;

/* Changed by nesting.c only; others ask the functions below. */
extern PgAdmFrame pgadm_nesting_frame;

extern PgAdmFrame pgadm_nesting_enter(bool covered) pg_attribute_hot;
extern PgAdmFrame pgadm_nesting_enter_utility(bool covered, const Node *stmt);
extern PgAdmFrame pgadm_nesting_enter_planner(void) pg_attribute_hot;
extern void pgadm_nesting_leave(PgAdmFrame outer) pg_attribute_hot;
extern bool pgadm_nesting_is_at_commit(void) pg_attribute_hot;

/*
 * Is no statement around the next one?
 */
static inline bool
pgadm_nesting_is_outermost(void)
{
	return pgadm_nesting_frame.depth == 0;
}

/*
 * Does the charge of a statement around the next one cover it, too?
 */
static inline bool
pgadm_nesting_is_covered(void)
{
	return pgadm_nesting_frame.covered;
}

/*
 * Does the planner evaluate a function that the next statement is in?
 */
static inline bool
pgadm_nesting_is_planning(void)
{
	return pgadm_nesting_frame.planning;
}

/*
 * The session's user when the outermost statement began, since a statement may
 * change it.
 */
static inline Oid
pgadm_nesting_session_user(void)
{
	return pgadm_nesting_is_outermost() ? GetSessionUserId() :
		pgadm_nesting_frame.session_user;
}

#endif							/* PGADM_NESTING_H */
