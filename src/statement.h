/*-------------------------------------------------------------------------
 *
 * statement.h
 *		What kind of statement is it?
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/statement.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGADM_STATEMENT_H
#define PGADM_STATEMENT_H

#include "executor/execdesc.h"
#include "nodes/parsenodes.h"

/* PGADM_LOAD_STATEMENT_READ or _WRITE */
extern int	pgadm_statement_kind_of_plan(const PlannedStmt *stmt);
extern int	pgadm_statement_kind_of_query_desc(const QueryDesc *queryDesc) pg_attribute_hot;
extern int	pgadm_statement_kind_of_query(Query *query);
extern int	pgadm_statement_kind_of_utility(const Node *stmt);

extern bool pgadm_statement_is_light(const PlannedStmt *stmt) pg_attribute_hot;
extern bool pgadm_statement_may_be_light(Query *query);

#endif							/* PGADM_STATEMENT_H */
