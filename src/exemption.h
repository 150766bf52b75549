/*-------------------------------------------------------------------------
 *
 * exemption.h
 *		Which roles, sessions and statements are exempt from admission.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/exemption.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGADM_EXEMPTION_H
#define PGADM_EXEMPTION_H

#include "nodes/plannodes.h"
#include "stats.h"

/* The counter that a bypassed statement goes to, or none */
#define PGADM_NOT_EXEMPT	PGADM_NCOUNTERS

extern bool pgadm_exemption_of_role(Oid role) pg_attribute_hot;
extern void pgadm_exemption_forget(void);
extern PgAdmCounter pgadm_exemption_of_session(Oid session_user) pg_attribute_hot;
extern PgAdmCounter pgadm_exemption_of_plan(const PlannedStmt *stmt) pg_attribute_hot;
extern const char *pgadm_exemption_name(PgAdmCounter exemption);
extern bool pgadm_exemption_may_be_of_query(Query *query);

#endif							/* PGADM_EXEMPTION_H */
