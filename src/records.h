/*-------------------------------------------------------------------------
 *
 * records.h
 *		Finds the records of admitted queries.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/records.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGADM_RECORDS_H
#define PGADM_RECORDS_H

#include "executor/execdesc.h"
#include "lib/ilist.h"
#include "utils/resowner.h"

/* What a record is found by; it is inside of what it is about */
typedef struct PgAdmRecord
{
	dlist_node	link;			/* in the list of all */
	dlist_node	by_query;		/* in the index, if there is one */
	dlist_node	by_owner;
	QueryDesc  *queryDesc;		/* NULL for a utility command */
	ResourceOwner owner;		/* likewise */
} PgAdmRecord;

extern void pgadm_records_add(PgAdmRecord *record) pg_attribute_hot;
extern void pgadm_records_remove(PgAdmRecord *record) pg_attribute_hot;
extern void pgadm_records_forget_all(void);
extern bool pgadm_records_is_empty(void) pg_attribute_hot;
extern PgAdmRecord *pgadm_records_of_query(const QueryDesc *queryDesc) pg_attribute_hot;
extern PgAdmRecord *pgadm_records_of_owner(ResourceOwner owner) pg_attribute_hot;

#endif							/* PGADM_RECORDS_H */
