/*-------------------------------------------------------------------------
 *
 * maintenance.c
 *		What a maintenance command can take of tables of that size.
 *
 * A command is admitted before it locks anything, so tables are looked at
 * without a lock: the catalog says what they are, the file system how large
 * they are.  A table may grow before the command gets to it, which is a reason
 * for generous factors but not for more.  What is not known is taken to need
 * the most.  No error comes from here that the command would not raise itself.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/maintenance.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/stat.h>

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/reloptions.h"
#include "access/table.h"
#include "catalog/index.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "catalog/pg_inherits.h"
#include "commands/defrem.h"
#include "compat.h"
#include "maintenance.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "optimizer/paths.h"
#include "storage/itemptr.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

/* Of more partitions than that the sizes are not looked up. */
#define MAX_TABLES			100

/* What a command has whatever the size of its tables, in kB */
#define LEAST_MEMORY_KB		1024

/*
 * What is sorted or collected of each page, in pages: for btree indexes rows of
 * the least width with their slots in an array that doubles; others collect
 * parts of values, which may be compressed in the table.
 */
#define BTREE_FACTOR		4
#define OTHER_FACTOR		16

/* An index build has no more workers than leave each process that much. */
#define SORT_MEMORY_KB		32768

/* What is known about one table */
typedef struct TableSize
{
	double		pages;
	double		toast_pages;
	int			workers_option; /* the table's parallel_workers, or -1 */
} TableSize;

/*
 * The pages of a relation, as told by its files, or -1 if it has none that could
 * be found.
 */
static double
file_pages(const FormData_pg_class *form)
{
	Oid			space = OidIsValid(form->reltablespace) ? form->reltablespace :
		MyDatabaseTableSpace;
	char		path[MAXPGPATH];
	char		segment[MAXPGPATH + 16];
	struct stat st;
	double		bytes;

	if (!OidIsValid(form->relfilenode) || form->relisshared ||
		form->relpersistence == RELPERSISTENCE_TEMP)
		return -1;

	PGADM_RELATION_PATH(path, space, form->relfilenode);
	if (stat(path, &st) != 0)
		return -1;
	bytes = st.st_size;
	for (int i = 1;; i++)
	{
		snprintf(segment, sizeof(segment), "%s.%d", path, i);
		if (stat(segment, &st) != 0)
			break;
		bytes += st.st_size;
	}
	return bytes / BLCKSZ;
}

static int
workers_option(HeapTuple tuple)
{
	bool		is_null;
	Datum		datum = SysCacheGetAttr(RELOID, tuple, Anum_pg_class_reloptions,
										&is_null);
	StdRdOptions *options;

	if (is_null)
		return -1;
	options = (StdRdOptions *) heap_reloptions(RELKIND_RELATION, datum, false);
	return options != NULL ? options->parallel_workers : -1;
}

static double
relation_pages(Oid relid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	double		pages;

	if (!HeapTupleIsValid(tuple))
		return -1;
	pages = file_pages((Form_pg_class) GETSTRUCT(tuple));
	ReleaseSysCache(tuple);
	return pages;
}

/*
 * Look up a table.  Returns whether its size is known.
 */
static bool
look_up_table(Oid relid, TableSize *table)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	Form_pg_class form;
	Oid			toast;

	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_class) GETSTRUCT(tuple);
	toast = form->reltoastrelid;
	table->pages = file_pages(form);
	table->workers_option = workers_option(tuple);
	ReleaseSysCache(tuple);

	table->toast_pages = OidIsValid(toast) ? relation_pages(toast) : 0;
	return table->pages >= 0 && table->toast_pages >= 0;
}

/*
 * The workers of an index build, as plan_create_index_workers() finds them.
 */
static int
build_workers(const TableSize *table, int most)
{
	int			workers = 0;

	if (table->workers_option >= 0)
		workers = table->workers_option;
	else if (table->pages >= min_parallel_table_scan_size)
	{
		double		threshold = Max(min_parallel_table_scan_size, 1);

		workers = 1;
		while (table->pages >= threshold * 3)
		{
			workers++;
			threshold *= 3;
		}
	}
	return Min(workers, most);
}

/*
 * The workers of a VACUUM, as parallel_vacuum_compute_workers() finds them: the
 * leader and each worker take an index that is large enough.
 */
static int
vacuum_workers(Oid relid, int most)
{
	Relation	catalog = table_open(IndexRelationId, AccessShareLock);
	int			indexes = 0;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, Anum_pg_index_indrelid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(relid));
	scan = systable_beginscan(catalog, IndexIndrelidIndexId, true, NULL, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		double		pages = relation_pages(((Form_pg_index) GETSTRUCT(tuple))->indexrelid);

		if (pages < 0 || pages >= min_parallel_index_scan_size)
			indexes++;
	}
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);

	return Min(Max(indexes - 1, 0), most);
}

static bool
has_option(const Node *stmt, const char *name)
{
	ListCell   *lc;

	foreach(lc, ((const VacuumStmt *) stmt)->options)
	{
		if (strcmp(lfirst_node(DefElem, lc)->defname, name) == 0)
			return true;
	}
	return false;
}

/*
 * Is it a VACUUM that goes through indexes, and does not build them again?
 * What FULL is set to does not matter here.
 */
static bool
is_plain_vacuum(const Node *stmt)
{
	return IsA(stmt, VacuumStmt) && ((const VacuumStmt *) stmt)->is_vacuumcmd &&
		!has_option(stmt, "full");
}

/*
 * What a command needs of memory for a table: row ids, of which there is a limit
 * for each page, or what it sorts or collects.
 */
static int64
memory_kb(const Node *stmt, const TableSize *table, int64 most)
{
	double		pages = table->pages;
	double		bytes;

	if (is_plain_vacuum(stmt) && !has_option(stmt, "analyze"))
		bytes = pages * MaxHeapTuplesPerPage * sizeof(ItemPointerData);
	else if (IsA(stmt, IndexStmt) &&
			 strcmp(((const IndexStmt *) stmt)->accessMethod, DEFAULT_INDEX_TYPE) == 0)
		bytes = (pages + table->toast_pages) * BLCKSZ * BTREE_FACTOR;
	else
		bytes = (pages + table->toast_pages) * BLCKSZ * OTHER_FACTOR;
	return (int64) Min(LEAST_MEMORY_KB + bytes / 1024, (double) most);
}

/*
 * Add a named relation's table, and what inherits from it, to those that a
 * command works on.  Returns whether all are known.
 */
static bool
add_tables(const RangeVar *name, List **tables)
{
	Oid			relid = name != NULL ? RangeVarGetRelid(name, NoLock, true) : InvalidOid;

	if (OidIsValid(relid) && (get_rel_relkind(relid) == RELKIND_INDEX ||
							  get_rel_relkind(relid) == RELKIND_PARTITIONED_INDEX))
		relid = IndexGetRelation(relid, true);
	if (!OidIsValid(relid))
		return false;

	*tables = list_concat(*tables, find_all_inheritors(relid, NoLock, NULL));
	return list_length(*tables) <= MAX_TABLES;
}

static bool
find_tables(const Node *stmt, List **tables)
{
	ListCell   *lc;

	switch (nodeTag(stmt))
	{
		case T_IndexStmt:
			return add_tables(((const IndexStmt *) stmt)->relation, tables);
		case T_ReindexStmt:
			return add_tables(((const ReindexStmt *) stmt)->relation, tables);
		case T_ClusterStmt:
			return add_tables(((const ClusterStmt *) stmt)->relation, tables);
		case T_AlterTableStmt:
			return add_tables(((const AlterTableStmt *) stmt)->relation, tables);
		case T_VacuumStmt:
			foreach(lc, ((const VacuumStmt *) stmt)->rels)
			{
				if (!add_tables(lfirst_node(VacuumRelation, lc)->relation, tables))
					return false;
			}
			return ((const VacuumStmt *) stmt)->rels != NIL;
		default:
			return false;
	}
}

/*
 * Lower what a command needs at the most to what it needs for its largest
 * table.  ALTER TABLE may join tables to check a foreign key, so its memory
 * does not depend on its own table only.
 */
void
pgadm_maintenance_lower(const Node *stmt, int *workers, int64 *memory)
{
	const bool	vacuums = is_plain_vacuum(stmt);
	int			most_workers = *workers;
	int			max_workers = 0;
	int64		max_memory = 0;
	List	   *tables = NIL;
	ListCell   *lc;

	while (!vacuums && !IsA(stmt, RefreshMatViewStmt) && most_workers > 0 &&
		   maintenance_work_mem / (most_workers + 1) < SORT_MEMORY_KB)
		most_workers--;
	*workers = most_workers;

	if (!find_tables(stmt, &tables))
		return;
	foreach(lc, tables)
	{
		TableSize	table;

		if (get_rel_relkind(lfirst_oid(lc)) == RELKIND_PARTITIONED_TABLE)
			continue;
		if (!look_up_table(lfirst_oid(lc), &table))
			return;
		max_workers = Max(max_workers, vacuums ?
						  vacuum_workers(lfirst_oid(lc), most_workers) :
						  build_workers(&table, most_workers));
		max_memory = Max(max_memory, memory_kb(stmt, &table, *memory));
	}
	*workers = max_workers;
	if (!IsA(stmt, AlterTableStmt))
		*memory = Min(*memory, Max(max_memory, LEAST_MEMORY_KB));
}
