/*-------------------------------------------------------------------------
 *
 * admission.h
 *		The admitted queries of this backend, and its requests.
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
#include "gate.h"
#include "nodes/parsenodes.h"
#include "tcop/utility.h"
#include "utils/resowner.h"
#include "workmem.h"

/* An admitted query of this backend */
typedef struct PgAdmAdmission PgAdmAdmission;

extern PgAdmWorkmemLevel pgadm_admission_put_on_workmem(const QueryDesc *queryDesc) pg_attribute_hot;
extern void pgadm_admission_take_off_workmem(const QueryDesc *queryDesc,
											 PgAdmWorkmemLevel level) pg_attribute_hot;

extern void pgadm_admission_plan(Query *query) pg_attribute_hot;
extern bool pgadm_admission_start(QueryDesc *queryDesc, int eflags) pg_attribute_hot;
extern bool pgadm_admission_run(QueryDesc *queryDesc, ScanDirection direction) pg_attribute_hot;
extern void pgadm_admission_ran(QueryDesc *queryDesc, bool execute_once) pg_attribute_hot;
extern void pgadm_admission_declared(const DeclareCursorStmt *stmt);
extern void pgadm_admission_ending(const QueryDesc *queryDesc) pg_attribute_hot;
extern bool pgadm_admission_is_admitted(const QueryDesc *queryDesc) pg_attribute_hot;
extern void pgadm_admission_started(QueryDesc *queryDesc) pg_attribute_hot;
extern void pgadm_admission_end(QueryDesc *queryDesc) pg_attribute_hot;
extern void pgadm_admission_release_owner(ResourceOwner owner) pg_attribute_hot;

extern void pgadm_admission_preview(const PgAdmClaim *claim, int statements,
									PgAdmOutcome *outcome);

extern PgAdmAdmission *pgadm_admission_start_utility(const PlannedStmt *pstmt,
													 ProcessUtilityContext context,
													 PgAdmWorkmemLevel *level);
extern void pgadm_admission_end_utility(PgAdmAdmission *admission,
										PgAdmWorkmemLevel level);

#endif							/* PGADM_ADMISSION_H */
