/*-------------------------------------------------------------------------
 *
 * admission.h
 *		The conductor: one statement's life under admission control.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/admission.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGADM_ADMISSION_H
#define PGADM_ADMISSION_H

#include "executor/execdesc.h"
#include "nodes/parsenodes.h"
#include "tcop/utility.h"
#include "utils/resowner.h"

/*
 * Where in the nest of statements this backend is.
 */
typedef struct PgAdmFrame
{
	int			depth;			/* statements around whatever comes next */
	bool		covered;		/* admitted, or at commit: nested ones pass */
	bool		planning;		/* the planner runs: nested ones pass */
	Oid			session_user;	/* of the outermost statement */
} PgAdmFrame;

/* An admitted query of this backend */
typedef struct PgAdmAdmission PgAdmAdmission;

extern PgAdmFrame pgadm_admission_enter(bool covered) pg_attribute_hot;
extern PgAdmFrame pgadm_admission_enter_planner(void) pg_attribute_hot;
extern void pgadm_admission_leave(PgAdmFrame outer) pg_attribute_hot;

extern void pgadm_admission_plan(Query *query) pg_attribute_hot;
extern bool pgadm_admission_start(QueryDesc *queryDesc, int eflags) pg_attribute_hot;
extern bool pgadm_admission_run(QueryDesc *queryDesc, ScanDirection direction) pg_attribute_hot;
extern void pgadm_admission_ran(QueryDesc *queryDesc, bool execute_once) pg_attribute_hot;
extern void pgadm_admission_declared(const DeclareCursorStmt *stmt);
extern bool pgadm_admission_finish(QueryDesc *queryDesc) pg_attribute_hot;
extern void pgadm_admission_end(QueryDesc *queryDesc) pg_attribute_hot;
extern void pgadm_admission_release_owner(ResourceOwner owner) pg_attribute_hot;

extern PgAdmAdmission *pgadm_admission_start_utility(const PlannedStmt *pstmt,
													 ProcessUtilityContext context);
extern void pgadm_admission_end_utility(PgAdmAdmission *admission);

#endif							/* PGADM_ADMISSION_H */
