/*-------------------------------------------------------------------------
 *
 * utility.c
 *		Which utility commands are subject to admission.
 *
 * These read or write whole relations without the executor, or in transactions
 * of their own.  Such a command is admitted once, before it takes any lock.
 * Commands that hand a query to the executor (CREATE TABLE AS, EXPLAIN
 * ANALYZE, EXECUTE, DECLARE, COPY of a query) are not in this table: the query
 * is admitted when it starts.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/utility.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "optimizer/cost.h"
#include "parser/parse_type.h"
#include "utility.h"
#include "utils/lsyscache.h"

/* COPY of a relation, to or from; that of a query runs the executor. */
static bool
copies_relation(const Node *stmt)
{
	return ((const CopyStmt *) stmt)->relation != NULL;
}

/*
 * Is an expression, as it was written, one value for all rows?  Then a new
 * column with that default needs no rewrite.
 */
static bool
is_constant(const Node *expr, bool *is_null)
{
	while (IsA(expr, TypeCast))
		expr = ((const TypeCast *) expr)->arg;
	*is_null = IsA(expr, A_Const) && ((const A_Const *) expr)->isnull;
	return IsA(expr, A_Const) || IsA(expr, SQLValueFunction);
}

/*
 * Is it a base type of PostgreSQL's own?  The rows of a new column of a domain
 * are checked, serial is an expression that differs from row to row, and what
 * becomes of a default depends on the type.
 */
static bool
is_plain_type(const TypeName *name)
{
	Oid			type = LookupTypeNameOid(NULL, name, true);

	return OidIsValid(type) && type < FirstNormalObjectId &&
		get_typtype(type) != TYPTYPE_DOMAIN;
}

/*
 * Does the definition of a new column say that there is nothing to do for the
 * rows that there are?  Those are only looked at if the column may not be null
 * and has no default.
 */
static bool
adds_column_at_once(const ColumnDef *column)
{
	bool		not_null = column->is_not_null;
	bool		has_value = false;
	ListCell   *lc;

	if (column->typeName == NULL || !is_plain_type(column->typeName))
		return false;

	foreach(lc, column->constraints)
	{
		const Constraint *constraint = lfirst_node(Constraint, lc);
		bool		is_null;

		switch (constraint->contype)
		{
			case CONSTR_NULL:
				break;
			case CONSTR_NOTNULL:
				not_null = true;
				break;
			case CONSTR_DEFAULT:
				if (!is_constant(constraint->raw_expr, &is_null))
					return false;
				has_value = !is_null;
				break;
			default:
				return false;
		}
	}
	return has_value || !not_null;
}

/*
 * Does a form of ALTER TABLE, by its own text, neither rewrite nor scan?
 */
static bool
adds_constraint_at_once(const Constraint *constraint)
{
	switch (constraint->contype)
	{
		case CONSTR_CHECK:
		case CONSTR_FOREIGN:
			return constraint->skip_validation;
		case CONSTR_UNIQUE:		/* a primary key's columns may be scanned */
			return constraint->indexname != NULL;
		default:
			return false;
	}
}

static bool
subcommand_may_rewrite(const AlterTableCmd *cmd)
{
	switch (cmd->subtype)
	{
		case AT_AddColumn:
			return !adds_column_at_once(castNode(ColumnDef, cmd->def));
		case AT_AddConstraint:
			return !adds_constraint_at_once(castNode(Constraint, cmd->def));
		case AT_AlterColumnType:
		case AT_SetNotNull:
		case AT_ValidateConstraint:
		case AT_AddIndex:
		case AT_SetLogged:
		case AT_SetUnLogged:
		case AT_SetAccessMethod:
		case AT_SetTableSpace:
		case AT_AttachPartition:
			return true;
		default:
			return false;
	}
}

/*
 * ALTER TABLE that may rewrite or scan the table.  Whether it does may be known
 * only with a lock on it.
 */
static bool
may_rewrite(const Node *stmt)
{
	ListCell   *lc;

	switch (((const AlterTableStmt *) stmt)->objtype)
	{
		case OBJECT_TYPE:
		case OBJECT_VIEW:
		case OBJECT_SEQUENCE:
		case OBJECT_FOREIGN_TABLE:
			return false;
		default:
			break;
	}

	foreach(lc, ((const AlterTableStmt *) stmt)->cmds)
	{
		if (subcommand_may_rewrite(lfirst_node(AlterTableCmd, lc)))
			return true;
	}
	return false;
}

/* ALTER DATABASE ... SET TABLESPACE copies all its files. */
static bool
moves_database(const Node *stmt)
{
	ListCell   *lc;

	foreach(lc, ((const AlterDatabaseStmt *) stmt)->options)
	{
		if (strcmp(lfirst_node(DefElem, lc)->defname, "tablespace") == 0)
			return true;
	}
	return false;
}

/* ALTER DOMAIN that scans the tables that use the domain. */
static bool
checks_domain(const Node *stmt)
{
	switch (((const AlterDomainStmt *) stmt)->subtype)
	{
		case 'C':				/* ADD CONSTRAINT */
		case 'V':				/* VALIDATE CONSTRAINT */
		case 'O':				/* SET NOT NULL */
			return true;
		default:
			return false;
	}
}

/*
 * How many parallel workers a command may launch is known only with a lock on
 * the table, so these tell the most that it can be.
 */
static int
workers_of_index_build(const Node *stmt)
{
	return max_parallel_maintenance_workers;
}

/* A plain VACUUM has them for indexes, VACUUM FULL builds those again. */
static int
workers_of_vacuum(const Node *stmt)
{
	const VacuumStmt *vacuum = (const VacuumStmt *) stmt;
	ListCell   *lc;

	if (!vacuum->is_vacuumcmd)
		return 0;

	foreach(lc, vacuum->options)
	{
		const DefElem *option = lfirst_node(DefElem, lc);

		if (strcmp(option->defname, "parallel") == 0 &&
			option->arg != NULL && IsA(option->arg, Integer))
			return Min(Max(intVal(option->arg), 0), max_parallel_maintenance_workers);
	}
	return max_parallel_maintenance_workers;
}

static int
workers_of_refresh(const Node *stmt)
{
	return max_parallel_workers_per_gather;
}

static bool
builds_index(const AlterTableCmd *cmd)
{
	switch (cmd->subtype)
	{
		case AT_AlterColumnType:
		case AT_AddIndex:
		case AT_SetLogged:
		case AT_SetUnLogged:
		case AT_SetAccessMethod:
			return true;
		case AT_AddConstraint:
			{
				const Constraint *constraint = castNode(Constraint, cmd->def);

				return constraint->indexname == NULL &&
					(constraint->contype == CONSTR_PRIMARY ||
					 constraint->contype == CONSTR_UNIQUE ||
					 constraint->contype == CONSTR_EXCLUSION);
			}
		default:
			return false;
	}
}

static int
workers_of_alter_table(const Node *stmt)
{
	ListCell   *lc;

	foreach(lc, ((const AlterTableStmt *) stmt)->cmds)
	{
		if (builds_index(lfirst_node(AlterTableCmd, lc)))
			return max_parallel_maintenance_workers;
	}
	return 0;
}

/*
 * What each of them is charged: maintenance_work_mem if it may build an index,
 * sort, or keep dead row ids, and the parallel workers that it may launch.
 *
 * A part of another command is not looked at: an index made with its table is
 * empty, and what ALTER TABLE does is charged to that.
 */
static const struct
{
	NodeTag		tag;
	bool		(*applies) (const Node *stmt);	/* NULL: always */
	bool		uses_memory;
	int			(*workers) (const Node *stmt);	/* NULL: none */
}			gated[] =
{
	{T_CopyStmt, copies_relation, false, NULL},
	{T_IndexStmt, NULL, true, workers_of_index_build},
	{T_ReindexStmt, NULL, true, workers_of_index_build},
	{T_ClusterStmt, NULL, true, workers_of_index_build},
	{T_VacuumStmt, NULL, true, workers_of_vacuum},	/* also ANALYZE */
	{T_RefreshMatViewStmt, NULL, true, workers_of_refresh},
	{T_AlterTableStmt, may_rewrite, true, workers_of_alter_table},
	{T_AlterTableMoveAllStmt, NULL, false, NULL},
	{T_AlterDomainStmt, checks_domain, false, NULL},
	{T_CreatedbStmt, NULL, false, NULL},	/* by either strategy it copies */
	{T_AlterDatabaseStmt, moves_database, false, NULL},
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
pgadm_utility_is_gated(const Node *stmt, ProcessUtilityContext context)
{
	return stmt != NULL && context != PROCESS_UTILITY_SUBCOMMAND &&
		find_row(stmt) >= 0;
}

/*
 * Does a gated command only read?
 */
bool
pgadm_utility_only_reads(const Node *stmt)
{
	return IsA(stmt, CopyStmt) && !((const CopyStmt *) stmt)->is_from;
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
	const int	row = find_row(stmt);

	return gated[row].workers == NULL ? 0 : gated[row].workers(stmt);
}
