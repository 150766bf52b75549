/*-------------------------------------------------------------------------
 *
 * plan_memory.c
 *		What a plan can take: PlannedStmt -> workers and memory.
 *
 * A query needs 1 + its planned parallel workers, as far as they can be launched,
 * and the memory of every operator that keeps tuples.  An operator keeps its estimated rows, at their
 * estimated width and with what the executor adds to each, or as much as its
 * limit allows, whichever is less: work_mem, times hash_mem_multiplier for
 * hashes.  Every process that runs the operator has its own, unless they share
 * it.  Most operators keep what they have until the query ends, so all of them
 * are added up.  The table "rules" says which node keeps what and why.
 *
 * The walk is pure: no shared memory, no lock, no catalog, no setting.  It
 * allocates nothing, unless the plan has subplans.  A cheap plan without any
 * operator that keeps tuples needs exactly 0 bytes, so that plain OLTP has
 * nothing to wait for.  Otherwise the executor's own state is charged too, by
 * the plan's nodes, because it is most of what a small query allocates.
 *
 * Amounts are what the executor's memory contexts allocate, not what the tuples
 * fill: chunks are rounded up, blocks and tables double.  The constants below
 * are facts about PostgreSQL 15.  Later releases put smaller headers on chunks,
 * so the same figures are a little too high there, which is the safe side.
 *
 * What cannot be known from the plan, and is not charged: rows that the planner
 * underestimates; statements inside functions; queued AFTER triggers and their
 * transition tables; results that a portal holds (WITH HOLD, RETURNING); the
 * generated code of JIT; a parallel worker's caches, as little as a backend's.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/plan_memory.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_type.h"
#include "plan_memory.h"
#include "miscadmin.h"
#include "nodes/bitmapset.h"
#include "nodes/nodeFuncs.h"
#include "utils/memutils.h"

/*
 * The planner's estimate of rows is multiplied by this before anything else.
 * For a whole table the estimate is good; for a function it is good or worthless.
 * Other estimates are often too low, and small ones are relatively further off
 * than large ones.  A single comparison of two columns is enough to be wrong by
 * a factor of two: the planner takes it to be true for a third of the rows.
 */
#define SURE_FACTOR				1.2
#define UNSURE_FACTOR			2.0
#define UNSURE_ROWS				100

/* Memory contexts (aset.c, generation.c). */
#define CONTEXT_BYTES			8192	/* the first block of any context */
#define CHUNK_HEADER			16	/* before each allocation */
#define SORT_CHUNK_HEADER		24	/* the same in an unbounded sort */

/* Hash joins (hashjoin.h, buffile.c, sharedtuplestore.c). */
#define HASH_TUPLE_HEADER		16	/* next tuple and hash value */
#define HASH_CHUNK_BYTES		(32 * 1024)
#define HASH_MIN_BUCKETS		1024
#define BATCH_FILE_BYTES		(BLCKSZ + 256)	/* a batch file's buffer */
#define SHARED_BATCH_BYTES		(5 * BLCKSZ + 256)	/* and a shared one's */

/* Hash tables of grouping (simplehash.h, execGrouping.c). */
#define HASH_FILL				0.9
#define HASH_ENTRY_BYTES		24
#define PER_GROUP_BYTES			16	/* an aggregate's state, or SetOp's counts */
#define INTERNAL_STATE_FACTOR	2.5 /* numeric's is so much more than declared */
#define JSONB_FACTOR			8	/* jsonb is so much larger while collected */

/* Sorts and tuplestores. */
#define SORT_SLOT_BYTES			24
#define SORT_MIN_SLOTS			1024
#define STORE_SLOT_BYTES		8
#define STORE_MIN_SLOTS			2048
#define INCREMENTAL_MIN_GROUP	64	/* rows that are always sorted at once */
#define TAPES_BYTES				(32 * BLCKSZ)	/* buffers when spilling, measured */

/* Bitmaps (tidbitmap.c). */
#define BITMAP_PAGE_BYTES		48
#define BITMAP_PAGE_LIST_BYTES	16
#define BITMAP_MIN_PAGES		128

/* Parallel query (execParallel.c, parallel.c, dsa.c, nodeGatherMerge.c). */
#define PARALLEL_QUERY_BYTES	(128 * 1024)	/* plan, snapshot, settings */
#define PARALLEL_WORKER_BYTES	(64 * 1024 + 16 * 1024) /* its two queues */
#define DSA_SEGMENT_BYTES		(1024 * 1024.0)
#define MERGE_BUFFER_TUPLES		11

/*
 * The executor's own state: for each node a context of 8 kB, and with measured
 * queries about as much again for slots, descriptors and expressions.  An index
 * scan has another context, and room for two index pages of row addresses; an
 * index-only scan for two of tuples; an aggregate has two more contexts.
 */
#define EXECUTOR_BYTES			(16 * 1024)
#define NODE_BYTES				(20 * 1024)
#define INDEX_SCAN_BYTES		(CONTEXT_BYTES + 28 * 1024)
#define INDEX_TUPLES_BYTES		(2 * BLCKSZ)
#define AGG_NODE_BYTES			(2 * CONTEXT_BYTES)

/* Below this a plan that keeps no tuples is free, see above. */
#define EXECUTOR_MIN_COST		1000

/* The most fields with expressions that a kind of node has, see "rules". */
#define MAX_EXPRS				5

typedef struct CostWalk CostWalk;

/* What is known about a kind of plan node. */
typedef struct NodeRule
{
	const char *name;			/* as EXPLAIN names it */
	const char *why;			/* what it keeps, or why nothing */
	void		(*charge) (const Plan *plan, CostWalk *walk);
	uint16		children;		/* offset of further plans: a Plan or a List */
	uint16		exprs[MAX_EXPRS];	/* offsets of expressions that may hold
									 * SubPlans, besides targetlist and qual */
} NodeRule;

/* The state of one walk. */
struct CostWalk
{
	const PlannedStmt *stmt;
	const PgAdmPlanParams *params;
	PgAdmPlanNeed *cost;
	PgAdmPlanOperators *operators;	/* or NULL */
	double		work_mem;		/* bytes */
	double		hash_mem;		/* bytes */
	double		planned_hash_mem;	/* the same before work_mem was lowered */
	double		memory;			/* charged so far */
	double		shared_area;	/* in the current Gather's shared area */
	double		executor;		/* bytes of the executor's own state */
	Bitmapset  *subplans_seen;	/* by plan_id */

	/* What the nodes above mean for the node that is being walked: */
	int			processes;		/* this many run it */
	int			workers;		/* of the Gather above it, or 0 */
	double		bound;			/* a Limit asks for this many rows, or -1 */
	double		pages;			/* a bitmap covers at most this many, or -1 */
	bool		in_bitmap_or;	/* it adds to its parent's bitmap */
};

static void walk_plan(const Plan *plan, CostWalk *walk);
static bool walk_subplans_in(Node *node, CostWalk *walk);

static void charge_agg(const Plan *plan, CostWalk *walk);
static void charge_bitmap(const Plan *plan, CostWalk *walk);
static void charge_function_scan(const Plan *plan, CostWalk *walk);
static void charge_gather(const Plan *plan, CostWalk *walk);
static void charge_hash(const Plan *plan, CostWalk *walk);
static void charge_incremental_sort(const Plan *plan, CostWalk *walk);
static void charge_input_store(const Plan *plan, CostWalk *walk);
static void charge_memoize(const Plan *plan, CostWalk *walk);
static void charge_output_store(const Plan *plan, CostWalk *walk);
static void charge_project_set(const Plan *plan, CostWalk *walk);
static void charge_recursive_union(const Plan *plan, CostWalk *walk);
static void charge_setop(const Plan *plan, CostWalk *walk);
static void charge_sort(const Plan *plan, CostWalk *walk);
static void charge_unknown(const Plan *plan, CostWalk *walk);

/*
 * Which node takes what and why.
 *
 * A node that is not listed here, of a later release or of a fork, is charged
 * work_mem: it is better to wait a little too often than to run out of memory,
 * and no statement may fail because its plan has something new in it.
 */
#define AT(type, field)		offsetof(type, field)

static const NodeRule rules[] = {
	[T_Result] = {
		.name = "Result",
		.why = "computes one row at a time",
		.exprs = {AT(Result, resconstantqual)},
	},
	[T_ProjectSet] = {
		.name = "ProjectSet",
		.why = "a user's set-returning function may store its rows for one input "
		"row, up to work_mem; built-in ones return one at a time",
		.charge = charge_project_set,
	},
	[T_ModifyTable] = {
		.name = "ModifyTable",
		.why = "changes one row at a time; the queue of AFTER triggers is not in the plan",
		.exprs = {AT(ModifyTable, returningLists),
			AT(ModifyTable, withCheckOptionLists),
			AT(ModifyTable, onConflictSet),
			AT(ModifyTable, onConflictWhere),
		AT(ModifyTable, mergeActionLists)},
	},
	[T_Append] = {
		.name = "Append",
		.why = "nothing itself; children keep what they have to the end, so they add up",
		.children = AT(Append, appendplans),
	},
	[T_MergeAppend] = {
		.name = "Merge Append",
		.why = "a row of each child; children are all read at once, so they add up",
		.children = AT(MergeAppend, mergeplans),
	},
	[T_RecursiveUnion] = {
		.name = "Recursive Union",
		.why = "two tables of one step's rows, up to work_mem each; UNION also a "
		"hash table of all rows, to which the executor sets no limit",
		.charge = charge_recursive_union,
	},
	[T_BitmapAnd] = {
		.name = "BitmapAnd",
		.why = "nothing itself, its children have their bitmaps",
		.children = AT(BitmapAnd, bitmapplans),
	},
	[T_BitmapOr] = {
		.name = "BitmapOr",
		.why = "one bitmap that its index scans add to, up to work_mem",
		.charge = charge_bitmap,
		.children = AT(BitmapOr, bitmapplans),
	},
	[T_SeqScan] = {
		.name = "Seq Scan",
		.why = "one row at a time",
	},
	[T_SampleScan] = {
		.name = "Sample Scan",
		.why = "one row at a time",
		.exprs = {AT(SampleScan, tablesample)},
	},
	[T_IndexScan] = {
		.name = "Index Scan",
		.why = "one row at a time",
		.exprs = {AT(IndexScan, indexqual), AT(IndexScan, indexorderby)},
	},
	[T_IndexOnlyScan] = {
		.name = "Index Only Scan",
		.why = "one row at a time",
		.exprs = {AT(IndexOnlyScan, indexqual), AT(IndexOnlyScan, indexorderby)},
	},
	[T_BitmapIndexScan] = {
		.name = "Bitmap Index Scan",
		.why = "an entry for each page with a match, up to work_mem",
		.charge = charge_bitmap,
		.exprs = {AT(BitmapIndexScan, indexqual)},
	},
	[T_BitmapHeapScan] = {
		.name = "Bitmap Heap Scan",
		.why = "nothing itself, the bitmap is its child's",
	},
	[T_TidScan] = {
		.name = "Tid Scan",
		.why = "the row addresses that the query itself gives",
		.exprs = {AT(TidScan, tidquals)},
	},
	[T_TidRangeScan] = {
		.name = "Tid Range Scan",
		.why = "one row at a time",
		.exprs = {AT(TidRangeScan, tidrangequals)},
	},
	[T_SubqueryScan] = {
		.name = "Subquery Scan",
		.why = "one row at a time",
		.children = AT(SubqueryScan, subplan),
	},
	[T_FunctionScan] = {
		.name = "Function Scan",
		.why = "all rows of each function, up to work_mem",
		.charge = charge_function_scan,
		.exprs = {AT(FunctionScan, functions)},
	},
	[T_ValuesScan] = {
		.name = "Values Scan",
		.why = "one row at a time, of those in the plan",
		.exprs = {AT(ValuesScan, values_lists)},
	},
	[T_TableFuncScan] = {
		.name = "Table Function Scan",
		.why = "all its rows, up to work_mem",
		.charge = charge_output_store,
		.exprs = {AT(TableFuncScan, tablefunc)},
	},
	[T_CteScan] = {
		.name = "CTE Scan",
		.why = "all rows of the CTE, up to work_mem, once for all scans of it",
	},
	[T_NamedTuplestoreScan] = {
		.name = "Named Tuplestore Scan",
		.why = "nothing, the rows are kept by the trigger that it runs in",
	},
	[T_WorkTableScan] = {
		.name = "WorkTable Scan",
		.why = "nothing, the rows are kept by its Recursive Union",
	},
	[T_ForeignScan] = {
		.name = "Foreign Scan",
		.why = "unknown; taken to fetch all its rows at once, up to work_mem",
		.charge = charge_output_store,
		.exprs = {AT(ForeignScan, fdw_exprs)},
	},
	[T_CustomScan] = {
		.name = "Custom Scan",
		.why = "unknown; taken to keep all its rows, up to work_mem",
		.charge = charge_output_store,
		.children = AT(CustomScan, custom_plans),
		.exprs = {AT(CustomScan, custom_exprs)},
	},
	[T_NestLoop] = {
		.name = "Nested Loop",
		.why = "a row of each side",
		.exprs = {AT(Join, joinqual)},
	},
	[T_MergeJoin] = {
		.name = "Merge Join",
		.why = "a row of each side",
		.exprs = {AT(Join, joinqual), AT(MergeJoin, mergeclauses)},
	},
	[T_HashJoin] = {
		.name = "Hash Join",
		.why = "nothing itself, the table is its Hash's",
		.exprs = {AT(Join, joinqual), AT(HashJoin, hashclauses)},
	},
	[T_Material] = {
		.name = "Materialize",
		.why = "all its input, up to work_mem",
		.charge = charge_input_store,
	},
	[T_Memoize] = {
		.name = "Memoize",
		.why = "the rows of as many keys as are expected, up to the hash limit",
		.charge = charge_memoize,
		.exprs = {AT(Memoize, param_exprs)},
	},
	[T_Sort] = {
		.name = "Sort",
		.why = "all its input, or under a Limit twice the rows asked for, up to work_mem",
		.charge = charge_sort,
	},
	[T_IncrementalSort] = {
		.name = "Incremental Sort",
		.why = "the rows of one group of presorted keys, up to work_mem",
		.charge = charge_incremental_sort,
	},
	[T_Group] = {
		.name = "Group",
		.why = "one row at a time",
	},
	[T_Agg] = {
		.name = "Aggregate",
		.why = "all groups if hashed, in all its hash tables up to the hash limit; "
		"sorts for grouping sets, DISTINCT, ORDER BY and WITHIN GROUP, up to "
		"work_mem each; what array_agg and its like collect, without limit",
		.charge = charge_agg,
	},
	[T_WindowAgg] = {
		.name = "WindowAgg",
		.why = "the rows of a partition, which may be all, up to work_mem",
		.charge = charge_input_store,
		.exprs = {AT(WindowAgg, startOffset), AT(WindowAgg, endOffset),
		AT(WindowAgg, runCondition)},
	},
	[T_Unique] = {
		.name = "Unique",
		.why = "one row at a time",
	},
	[T_Gather] = {
		.name = "Gather",
		.why = "queues of its workers, and what Parallel Hash and parallel bitmap "
		"scans leave unused of their shared area",
		.charge = charge_gather,
	},
	[T_GatherMerge] = {
		.name = "Gather Merge",
		.why = "as Gather, and a few rows of each worker",
		.charge = charge_gather,
	},
	[T_Hash] = {
		.name = "Hash",
		.why = "all its input, up to the hash limit, and then a buffer for each "
		"batch on disk; Parallel Hash shares a table of all processes' limits",
		.charge = charge_hash,
	},
	[T_SetOp] = {
		.name = "SetOp",
		.why = "all distinct rows if hashed, to which the executor sets no limit",
		.charge = charge_setop,
	},
	[T_LockRows] = {
		.name = "LockRows",
		.why = "one row at a time",
	},
	[T_Limit] = {
		.name = "Limit",
		.why = "one row at a time",
		.exprs = {AT(Limit, limitOffset), AT(Limit, limitCount)},
	},
};

static const NodeRule unknown_rule = {
	.name = "Unknown",
	.why = "not known to this release, charged work_mem",
	.charge = charge_unknown,
};

/* These are no plan nodes, but keep memory all the same. */
static const NodeRule executor_rule = {
	.name = "Executor",
	.why = "its own state: contexts, slots and expressions of each node",
};

static const NodeRule hashed_subplan_rule = {
	.name = "Hashed SubPlan",
	.why = "all distinct rows of the subquery, to which the executor sets no limit",
};

static const NodeRule array_subplan_rule = {
	.name = "Array SubPlan",
	.why = "all rows of the subquery, without limit",
};

static inline const NodeRule *
rule_of(const Plan *plan)
{
	NodeTag		tag = nodeTag(plan);

	if ((size_t) tag < lengthof(rules) && rules[tag].name != NULL)
		return &rules[tag];
	return &unknown_rule;
}

/* ------------------------------------------------------------------------
 * How memory is allocated
 * ------------------------------------------------------------------------
 */

static double
next_power_of_2(double n)
{
	int			exponent;
	double		fraction = frexp(n, &exponent);

	return fraction == 0.5 ? n : ldexp(1.0, exponent);
}

/* One allocation of this size: aset.c rounds small ones up. */
static double
chunk_bytes(double size)
{
	if (size > ALLOCSET_SEPARATE_THRESHOLD)
		return MAXALIGN((Size) size) + 3 * CHUNK_HEADER;
	return next_power_of_2(Max(size, 8)) + CHUNK_HEADER;
}

/* The blocks that hold this much in small chunks: they double to a maximum. */
static double
block_bytes(double used, double max_block)
{
	double		block = CONTEXT_BYTES;
	double		total = CONTEXT_BYTES;

	while (total < used && block < max_block)
	{
		total += block;
		block *= 2;
	}
	if (total < used)
		total += ceil((used - total) / max_block) * max_block;
	return total;
}

/* Does a node return all rows of what it reads, so that their number is known? */
static bool
rows_are_known(const Plan *plan)
{
	ListCell   *lc;

	if (plan == NULL || plan->qual != NIL)
		return false;

	switch (nodeTag(plan))
	{
		case T_SeqScan:
		case T_FunctionScan:
		case T_ValuesScan:
			return true;
		case T_IndexScan:
			return ((const IndexScan *) plan)->indexqual == NIL;
		case T_IndexOnlyScan:
			return ((const IndexOnlyScan *) plan)->indexqual == NIL;
		case T_SubqueryScan:
			return rows_are_known(((const SubqueryScan *) plan)->subplan);
		case T_Sort:
		case T_IncrementalSort:
		case T_Material:
		case T_Gather:
		case T_GatherMerge:
			return rows_are_known(outerPlan(plan));
		case T_Append:
			foreach(lc, ((const Append *) plan)->appendplans)
			{
				if (!rows_are_known((const Plan *) lfirst(lc)))
					return false;
			}
			return true;
		default:
			return false;
	}
}

/* Rows to reckon with where a node is expected to return that many. */
static double
with_margin(const Plan *plan, double expected)
{
	if (rows_are_known(plan))
		return Max(expected, 1) * SURE_FACTOR;
	return Max(expected, 1) * UNSURE_FACTOR + UNSURE_ROWS;
}

/* Rows that a node returns, in each of the processes that run it. */
static double
rows_of(const Plan *plan)
{
	return with_margin(plan, plan->plan_rows);
}

/* Groups to reckon with: there are no more than rows. */
static double
groups_of(const Plan *input, double expected)
{
	return Min(Max(expected, 1) * UNSURE_FACTOR, rows_of(input));
}

/* A row as the executor keeps it, a MinimalTuple, without chunk header. */
static double
tuple_bytes(const Plan *plan)
{
	int			columns = list_length(plan->targetlist);
	int			header = MAXALIGN(SizeofMinimalTupleHeader + BITMAPLEN(columns));

	/* widths are without alignment; about 2 bytes a column go there */
	return header + MAXALIGN(Max(plan->plan_width, 0) + 2 * columns);
}

/*
 * What an operator allocates that counts what it uses, and keeps that within its
 * limit.  It allocates more than it counts, since the last block is not full, nor
 * is a table that has just been doubled.
 */
static double
at_limit(double limit, PgAdmPlanBasis *basis)
{
	*basis = PGADM_PLAN_AT_LIMIT;
	return limit + Min(limit / 3, ALLOCSET_DEFAULT_MAXSIZE);
}

/* What a sort keeps of rows with that much outside of their slot. */
static double
sort_bytes(double rows, double chunk, double limit, PgAdmPlanBasis *basis)
{
	double		slots = Max(next_power_of_2(rows + 1), SORT_MIN_SLOTS) * SORT_SLOT_BYTES;

	if (slots + rows * chunk > limit)
		return at_limit(limit, basis) + TAPES_BYTES;
	return 2 * CONTEXT_BYTES + slots +
		block_bytes(rows * chunk, ALLOCSET_DEFAULT_MAXSIZE);
}

/* What a tuplestore keeps of rows of that size. */
static double
store_bytes(double rows, double tuple, double limit, PgAdmPlanBasis *basis)
{
	double		slots = Max(next_power_of_2(rows + 1), STORE_MIN_SLOTS) * STORE_SLOT_BYTES;
	double		chunk = chunk_bytes(tuple);

	if (slots + rows * chunk > limit)
		return at_limit(limit, basis);
	return slots + block_bytes(rows * chunk, ALLOCSET_DEFAULT_MAXSIZE);
}

/* The array of a hash table for that many entries. */
static double
table_bytes(double entries, double entry)
{
	return next_power_of_2(Max(entries / HASH_FILL, 2)) * entry;
}

/* A whole hash table that keeps a tuple and more of each group. */
static double
group_table_bytes(double groups, double group, double max_block)
{
	return 2 * CONTEXT_BYTES + table_bytes(groups, HASH_ENTRY_BYTES) +
		block_bytes(groups * group, max_block);
}

/*
 * Values collected for one result, as by array_agg: an array of them, a copy of
 * each unless it is passed by value (value = 0), the result and its conversion.
 */
static double
collected_bytes(double rows, double value)
{
	double		bytes = next_power_of_2(rows) * (sizeof(Datum) + sizeof(bool)) +
		2 * rows * Max(value, sizeof(Datum));

	if (value > 0)
		bytes += block_bytes(rows * chunk_bytes(value + VARHDRSZ), ALLOCSET_DEFAULT_MAXSIZE);
	return bytes;
}

/* Types whose values a sort keeps in the slot. */
static bool
is_type_by_value(Oid type)
{
	switch (type)
	{
		case BOOLOID:
		case CHAROID:
		case INT2OID:
		case INT4OID:
		case INT8OID:
		case OIDOID:
		case FLOAT4OID:
		case FLOAT8OID:
		case DATEOID:
		case TIMEOID:
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
			return true;
		default:
			return false;
	}
}

/*
 * Does a sort by that column alone keep its values in the slot?  exprType()
 * would have to look in the catalog for the type of a subplan that makes an
 * array, and may find none; but arrays are never kept there.
 */
static bool
is_by_value(const TargetEntry *column)
{
	const Node *expr = (const Node *) column->expr;

	if (IsA(expr, SubPlan) &&
		((const SubPlan *) expr)->subLinkType == ARRAY_SUBLINK)
		return false;
	return is_type_by_value(exprType(expr));
}

/* ------------------------------------------------------------------------
 * Charging
 * ------------------------------------------------------------------------
 */

/* Put one operator at its place among the biggest, if it is one of them. */
static void
list_operator(PgAdmPlanOperators *operators, const PgAdmPlanOperator *entry)
{
	int			place;

	if (operators->count < operators->capacity)
		operators->count++;
	else if (operators->count == 0 ||
			 operators->items[operators->count - 1].memory >= entry->memory)
		return;

	place = operators->count - 1;
	while (place > 0 && operators->items[place - 1].memory < entry->memory)
	{
		operators->items[place] = operators->items[place - 1];
		place--;
	}
	operators->items[place] = *entry;
}

static void
charge_as(CostWalk *walk, const NodeRule *rule, const Plan *plan,
		  double bytes, int processes, PgAdmPlanBasis basis)
{
	walk->memory += bytes * processes;

	if (walk->operators != NULL)
	{
		PgAdmPlanOperator entry;

		entry.name = rule->name;
		entry.why = rule->why;
		entry.plan_node_id = plan ? plan->plan_node_id : -1;
		entry.processes = processes;
		entry.basis = basis;
		entry.memory = (int64) Min(bytes * processes, (double) PGADM_PLAN_MAX_MEMORY);
		list_operator(walk->operators, &entry);
	}
}

/* Charge a node in each process that runs it. */
static void
charge(CostWalk *walk, const Plan *plan, double bytes, PgAdmPlanBasis basis)
{
	charge_as(walk, rule_of(plan), plan, bytes, walk->processes, basis);
}

static void
charge_unknown(const Plan *plan, CostWalk *walk)
{
	charge(walk, plan, walk->work_mem, PGADM_PLAN_AT_LIMIT);
}

/* A tuplestore of the rows that go in. */
static void
charge_input_store(const Plan *plan, CostWalk *walk)
{
	const Plan *input = outerPlan(plan);
	PgAdmPlanBasis basis = PGADM_PLAN_BY_ROWS;
	double		bytes = store_bytes(rows_of(input), tuple_bytes(input),
									walk->work_mem, &basis);

	charge(walk, plan, bytes, basis);
}

/* A tuplestore of the rows that come out, before any condition. */
static void
charge_output_store(const Plan *plan, CostWalk *walk)
{
	PgAdmPlanBasis basis = PGADM_PLAN_BY_ROWS;
	double		bytes = store_bytes(rows_of(plan), tuple_bytes(plan),
									walk->work_mem, &basis);

	charge(walk, plan, bytes, basis);
}

/* Each function has a tuplestore with all its columns. */
static void
charge_function_scan(const Plan *plan, CostWalk *walk)
{
	ListCell   *lc;

	foreach(lc, ((const FunctionScan *) plan)->functions)
	{
		RangeTblFunction *function = lfirst_node(RangeTblFunction, lc);
		PgAdmPlanBasis basis = PGADM_PLAN_BY_ROWS;
		double		tuple = Max(tuple_bytes(plan), 16 + 8 * function->funccolcount);
		double		bytes = store_bytes(rows_of(plan), tuple, walk->work_mem, &basis);

		charge(walk, plan, bytes, basis);
	}
}

/* Only functions of users are taken to store their rows. */
static void
charge_project_set(const Plan *plan, CostWalk *walk)
{
	const Plan *input = outerPlan(plan);
	double		rows = plan->plan_rows;
	ListCell   *lc;

	if (input != NULL)
		rows /= Max(input->plan_rows, 1);

	foreach(lc, plan->targetlist)
	{
		Expr	   *expr = lfirst_node(TargetEntry, lc)->expr;
		PgAdmPlanBasis basis = PGADM_PLAN_BY_ROWS;

		if (IsA(expr, FuncExpr) && ((FuncExpr *) expr)->funcretset &&
			((FuncExpr *) expr)->funcid >= FirstNormalObjectId)
		{
			double		bytes = store_bytes(with_margin(NULL, rows), tuple_bytes(plan),
											walk->work_mem, &basis);

			charge(walk, plan, bytes, basis);
		}
	}
}

/*
 * A sort keeps its input.  Under a Limit it keeps up to twice the rows that are
 * asked for before it begins to throw rows away.
 */
static double
sort_node_bytes(const Plan *plan, double rows, CostWalk *walk, PgAdmPlanBasis *basis)
{
	double		chunk = tuple_bytes(plan);
	bool		bounded = walk->bound >= 0;

	if (bounded)
		rows = Min(rows, 2 * walk->bound + 1);

	if (list_length(plan->targetlist) == 1 && IsA(plan, Sort) &&
		is_by_value(linitial_node(TargetEntry, plan->targetlist)))
		chunk = 0;
	else
		chunk = bounded ? chunk_bytes(chunk) : chunk + SORT_CHUNK_HEADER;

	return sort_bytes(rows, chunk, walk->work_mem, basis);
}

static void
charge_sort(const Plan *plan, CostWalk *walk)
{
	PgAdmPlanBasis basis = PGADM_PLAN_BY_ROWS;
	double		bytes = sort_node_bytes(plan, rows_of(outerPlan(plan)), walk, &basis);

	charge(walk, plan, bytes, basis);
}

/*
 * The plan does not say how large a group is, but its startup cost does: it is
 * the cost of reading and sorting the first group.  Sorting takes a part of it,
 * so the share of the input comes out too high rather than too low.  Groups
 * differ, hence twice that.  There is a second, short sort for small groups.
 */
static void
charge_incremental_sort(const Plan *plan, CostWalk *walk)
{
	const Plan *input = outerPlan(plan);
	double		rows = rows_of(input);
	double		first_group = plan->startup_cost - input->startup_cost;
	double		whole_input = input->total_cost - input->startup_cost;
	PgAdmPlanBasis basis = PGADM_PLAN_BY_ROWS;
	double		bytes;

	if (whole_input > 0 && first_group >= 0)
		rows = Min(rows, rows * 2 * first_group / whole_input);

	bytes = sort_node_bytes(plan, Max(rows, INCREMENTAL_MIN_GROUP), walk, &basis) +
		sort_node_bytes(plan, INCREMENTAL_MIN_GROUP, walk, &basis);
	charge(walk, plan, bytes, basis);
}

/* The number of batches when that much does not fit the limit. */
static double
batches_of(double total, double tuple, double limit)
{
	double		buckets = next_power_of_2(Max(limit / (tuple + sizeof(void *)), 1));
	double		room = limit - buckets * sizeof(void *);
	double		most = limit / sizeof(void *);

	return Max(Min(next_power_of_2(ceil(total / Max(room, 1))), most), 2);
}

/*
 * A hash table that does not fit keeps what does, and a buffer for each of the
 * other batches of both sides.  With a small limit there can be so many that
 * they need more than the limit: that much is charged, as that much is taken.
 *
 * Processes share the table of a Parallel Hash.  It may take all their limits
 * together; when it does not fit that either, each works at a batch of its own,
 * so that the total is the same.
 */
static void
charge_hash(const Plan *plan, CostWalk *walk)
{
	const Plan *input = outerPlan(plan);
	bool		shared = plan->parallel_aware;
	double		rows = shared ? with_margin(input, ((const Hash *) plan)->rows_total) :
		rows_of(input);
	double		tuple = HASH_TUPLE_HEADER + tuple_bytes(input);
	double		buckets = Max(next_power_of_2(rows), HASH_MIN_BUCKETS) * sizeof(void *);
	double		limit = walk->hash_mem * (shared ? walk->workers + 1 : 1);
	double		bytes = rows * tuple + buckets;
	PgAdmPlanBasis basis = PGADM_PLAN_BY_ROWS;
	double		files = 0;

	if (bytes > limit)
	{
		double		batches = batches_of(rows * tuple, tuple, walk->hash_mem);

		basis = PGADM_PLAN_AT_LIMIT;
		bytes = limit;
		if (shared)
			files = batches * SHARED_BATCH_BYTES * walk->processes;
		else
			files = 2 * (batches - 1) * BATCH_FILE_BYTES;
	}
	bytes += HASH_CHUNK_BYTES * (shared ? walk->processes : 1);

	if (shared)
	{
		walk->shared_area += bytes;
		charge_as(walk, rule_of(plan), plan, bytes + files, 1, basis);
	}
	else
		charge(walk, plan, bytes + files + 2 * CONTEXT_BYTES, basis);
}

/*
 * The cache counts its keys and tuples without what their allocation adds, so
 * that it may take about twice its limit.
 */
static void
charge_memoize(const Plan *plan, CostWalk *walk)
{
	const Memoize *memoize = (const Memoize *) plan;
	const Plan *input = outerPlan(plan);
	double		rows = Max(input->plan_rows, 1);
	double		tuple = tuple_bytes(input);
	double		key = 16 + 16 * memoize->numKeys;
	double		counted = HASH_ENTRY_BYTES + 24 + key + rows * (16 + tuple);
	double		taken = chunk_bytes(24) + chunk_bytes(key) +
		rows * (chunk_bytes(16) + chunk_bytes(tuple));
	double		entries = memoize->est_entries * UNSURE_FACTOR;
	PgAdmPlanBasis basis = PGADM_PLAN_BY_ROWS;

	if (entries == 0 || entries * counted > walk->hash_mem)
	{
		basis = PGADM_PLAN_AT_LIMIT;
		entries = Max(walk->hash_mem / counted, 1);
	}
	charge(walk, plan,
		   CONTEXT_BYTES + table_bytes(entries, HASH_ENTRY_BYTES) +
		   block_bytes(entries * taken, ALLOCSET_DEFAULT_MAXSIZE),
		   basis);
}

/*
 * A bitmap has an entry for each page, of which there are no more than rows, nor
 * more than the scan above it pays for.  Those of a parallel scan share one.
 */
static void
charge_bitmap(const Plan *plan, CostWalk *walk)
{
	double		pages = rows_of(plan);
	double		limit = walk->work_mem / (BITMAP_PAGE_BYTES + BITMAP_PAGE_LIST_BYTES);
	PgAdmPlanBasis basis = PGADM_PLAN_BY_ROWS;
	double		bytes;
	bool		shared = IsA(plan, BitmapOr) ? ((const BitmapOr *) plan)->isshared :
		((const BitmapIndexScan *) plan)->isshared;

	if (walk->in_bitmap_or && IsA(plan, BitmapIndexScan))
		return;

	if (walk->pages >= 0)
		pages = Min(pages, with_margin(NULL, walk->pages));
	if (pages > limit)
	{
		basis = PGADM_PLAN_AT_LIMIT;
		pages = limit;
	}
	bytes = table_bytes(Max(pages, BITMAP_MIN_PAGES), BITMAP_PAGE_BYTES) +
		pages * BITMAP_PAGE_LIST_BYTES;

	if (shared)
	{
		walk->shared_area += bytes;
		charge_as(walk, rule_of(plan), plan, bytes, 1, basis);
	}
	else
		charge(walk, plan, bytes, basis);
}

/*
 * The tables of one step's rows are charged as the rows of the recursive term.
 *
 * UNION has a hash table for want of another way, not because the planner expects
 * it to fit, and the number of its rows is a mere guess: ten steps.  No query may
 * be too big to run because of this guess alone, so the table is charged no more
 * than the hash limit, although the executor does not keep to that.
 */
static void
charge_recursive_union(const Plan *plan, CostWalk *walk)
{
	const RecursiveUnion *node = (const RecursiveUnion *) plan;
	double		rows = Max(rows_of(outerPlan(plan)), rows_of(innerPlan(plan)));
	double		tuple = tuple_bytes(plan);
	PgAdmPlanBasis basis = PGADM_PLAN_BY_ROWS;
	double		bytes = 2 * store_bytes(rows, tuple, walk->work_mem, &basis);

	charge(walk, plan, bytes, basis);
	if (node->numCols > 0)
	{
		bytes = group_table_bytes(Max(node->numGroups, 1) * UNSURE_FACTOR,
								  chunk_bytes(tuple), ALLOCSET_DEFAULT_MAXSIZE);
		charge(walk, plan, Min(bytes, walk->planned_hash_mem), PGADM_PLAN_UNLIMITED);
	}
}

/* The planner chose hashing because it expected the rows to fit. */
static void
charge_setop(const Plan *plan, CostWalk *walk)
{
	const SetOp *setop = (const SetOp *) plan;

	if (setop->strategy == SETOP_HASHED)
		charge(walk, plan,
			   group_table_bytes(groups_of(outerPlan(plan), setop->numGroups),
								 chunk_bytes(tuple_bytes(outerPlan(plan))) +
								 chunk_bytes(PER_GROUP_BYTES),
								 ALLOCSET_DEFAULT_MAXSIZE),
			   PGADM_PLAN_UNLIMITED);
}

/* How many of a Gather's planned workers can be launched. */
static int
possible_workers(int planned, const CostWalk *walk)
{
	return Min(planned, walk->params->max_workers);
}

/*
 * Called with what is below already walked.  The shared area grows by segments
 * that double every second time, and the rest of the last one is lost.
 */
static void
charge_gather(const Plan *plan, CostWalk *walk)
{
	int			workers;
	double		bytes = PARALLEL_QUERY_BYTES;
	double		area = 0;

	if (IsA(plan, Gather))
		workers = possible_workers(((const Gather *) plan)->num_workers, walk);
	else
	{
		workers = possible_workers(((const GatherMerge *) plan)->num_workers, walk);
		bytes += workers * MERGE_BUFFER_TUPLES * chunk_bytes(tuple_bytes(plan));
	}
	walk->cost->workers += workers;

	for (int segment = 1; area < walk->shared_area; segment++)
		area += ldexp(DSA_SEGMENT_BYTES, segment / 2);
	bytes += workers * PARALLEL_WORKER_BYTES + area - walk->shared_area;
	walk->shared_area = 0;
	charge_as(walk, rule_of(plan), plan, bytes, 1, PGADM_PLAN_BY_ROWS);
}

/* ------------------------------------------------------------------------
 * Aggregates
 * ------------------------------------------------------------------------
 */

/* What the aggregate functions of a node are like. */
typedef struct AggShape
{
	int			states;			/* separate transition states */
	uint64		seen;			/* numbers of those below 64 */
	int			internal;		/* those of them of type internal */
	int			sorts;			/* those of them that sort their input */
	int			ordered_sets;	/* those of these that are WITHIN GROUP */
	double		sort_chunk;		/* largest row of such a sort outside its slot */
	double		value;			/* largest value that internal ones collect */
	const Plan *input;
} AggShape;

static void
add_to_shape(const Aggref *aggref, AggShape *shape)
{
	bool		by_value = list_length(aggref->args) == 1 &&
		is_by_value(linitial_node(TargetEntry, aggref->args));
	double		value;

	shape->states++;
	if (AGGKIND_IS_ORDERED_SET(aggref->aggkind))
		shape->ordered_sets++;
	else if (aggref->aggtranstype == INTERNALOID)
	{
		shape->internal++;
		value = by_value ? 0 : shape->input->plan_width;
		if (aggref->aggtype == JSONBOID)
			value *= JSONB_FACTOR;
		shape->value = Max(shape->value, value);
	}
	if (aggref->aggorder != NIL || aggref->aggdistinct != NIL ||
		AGGKIND_IS_ORDERED_SET(aggref->aggkind))
	{
		double		chunk = tuple_bytes(shape->input) + SORT_CHUNK_HEADER;

		shape->sorts++;
		shape->sort_chunk = Max(shape->sort_chunk, by_value ? 0 : chunk);
	}
}

/* Aggregates that share a transition state come with the same number. */
static bool
find_agg_shape(Node *node, AggShape *shape)
{
	if (node == NULL)
		return false;
	if (IsA(node, Aggref))
	{
		Aggref	   *aggref = (Aggref *) node;

		if (aggref->aggtransno < 64)
		{
			if (shape->seen & (UINT64CONST(1) << aggref->aggtransno))
				return false;
			shape->seen |= UINT64CONST(1) << aggref->aggtransno;
		}
		add_to_shape(aggref, shape);
		return false;
	}
	return expression_tree_walker(node, find_agg_shape, (void *) shape);
}

/*
 * The planner reckons with 8 kB for a state of type internal whose size is not
 * declared: those of array_agg, string_agg, json_agg and the like, which collect
 * all their input.  The plan has only the sum of all states, so as many are taken
 * to be such states as fit into the sum.
 */
static int
agg_collectors(const Agg *agg, const AggShape *shape)
{
	double		fit = floor((double) agg->transitionSpace / ALLOCSET_DEFAULT_INITSIZE);

	return (int) Max(Min(fit - shape->ordered_sets, shape->internal), 0);
}

/* The hash tables of a node share one limit. */
static void
charge_agg_hash(const Agg *agg, const AggShape *shape, CostWalk *walk)
{
	const Plan *plan = &agg->plan;
	double		state = (double) agg->transitionSpace -
		agg_collectors(agg, shape) * ALLOCSET_DEFAULT_INITSIZE;
	double		group = chunk_bytes(tuple_bytes(shape->input));
	double		max_block = Min(walk->work_mem / 16, ALLOCSET_DEFAULT_MAXSIZE);
	PgAdmPlanBasis basis = PGADM_PLAN_BY_ROWS;
	double		bytes;
	ListCell   *lc;

	if (shape->states > 0)
		group += chunk_bytes(shape->states * PER_GROUP_BYTES);
	if (state > 0)
		group += chunk_bytes(state) * (shape->internal > 0 ? INTERNAL_STATE_FACTOR : 1);

	bytes = group_table_bytes(groups_of(shape->input, agg->numGroups), group, max_block);
	foreach(lc, agg->chain)
	{
		const Agg  *link = lfirst_node(Agg, lc);

		if (link->aggstrategy == AGG_HASHED)
			bytes += group_table_bytes(groups_of(shape->input, link->numGroups),
									   group, max_block);
	}
	if (bytes > walk->hash_mem)
		bytes = at_limit(walk->hash_mem, &basis) + TAPES_BYTES;
	charge(walk, plan, bytes, basis);
}

/*
 * Grouping sets that are not a prefix of each other need the input in another
 * order: one sort is being read while the next one is filled.
 */
static void
charge_agg_chain(const Agg *agg, CostWalk *walk)
{
	const Plan *input = outerPlan(agg);
	int			sorts = agg->aggstrategy == AGG_MIXED ? -1 : 0;
	PgAdmPlanBasis basis = PGADM_PLAN_BY_ROWS;
	double		bytes;
	ListCell   *lc;

	foreach(lc, agg->chain)
	{
		if (lfirst_node(Agg, lc)->aggstrategy != AGG_HASHED)
			sorts++;
	}
	if (sorts <= 0)
		return;

	bytes = sort_bytes(rows_of(input), tuple_bytes(input) + SORT_CHUNK_HEADER,
					   walk->work_mem, &basis);
	charge(walk, &agg->plan, Min(sorts, 2) * bytes, basis);
}

/*
 * Rows of one group: all without GROUP BY and for grouping sets, whose last may
 * be the empty one.  Groups differ, hence twice the average.
 */
static double
rows_per_group(const Agg *agg)
{
	double		rows = rows_of(outerPlan(agg));
	double		groups = Max(agg->numGroups, 1);

	if (agg->aggstrategy == AGG_PLAIN || agg->groupingSets != NIL || groups < 2)
		return rows;
	return Min(rows, rows * 2 / groups);
}

/*
 * DISTINCT, ORDER BY and WITHIN GROUP: a sort for each, in each of the grouping
 * sets that are computed in one pass.
 */
static void
charge_agg_sorts(const Agg *agg, const AggShape *shape, CostWalk *walk)
{
	int			sets = Max(list_length(agg->groupingSets), 1);
	PgAdmPlanBasis basis = PGADM_PLAN_BY_ROWS;
	double		bytes = sort_bytes(rows_per_group(agg), shape->sort_chunk,
								   walk->work_mem, &basis);
	ListCell   *lc;

	foreach(lc, agg->chain)
		sets = Max(sets, list_length(lfirst_node(Agg, lc)->groupingSets));
	charge(walk, &agg->plan, sets * shape->sorts * bytes, basis);
}

/* What array_agg and its like collect. */
static void
charge_agg_collectors(const Agg *agg, const AggShape *shape, CostWalk *walk)
{
	bool		all_groups = agg->aggstrategy == AGG_HASHED || agg->aggstrategy == AGG_MIXED;
	double		rows = all_groups ? rows_of(outerPlan(agg)) : rows_per_group(agg);

	charge(walk, &agg->plan,
		   agg_collectors(agg, shape) * collected_bytes(rows, shape->value),
		   PGADM_PLAN_UNLIMITED);
}

static void
charge_agg(const Plan *plan, CostWalk *walk)
{
	const Agg  *agg = (const Agg *) plan;
	AggShape	shape = {0};

	shape.input = outerPlan(plan);
	find_agg_shape((Node *) plan->targetlist, &shape);
	find_agg_shape((Node *) plan->qual, &shape);

	if (agg->aggstrategy == AGG_HASHED || agg->aggstrategy == AGG_MIXED)
		charge_agg_hash(agg, &shape, walk);
	if (agg->chain != NIL)
		charge_agg_chain(agg, walk);
	if (shape.sorts > 0)
		charge_agg_sorts(agg, &shape, walk);
	if (agg_collectors(agg, &shape) > 0)
		charge_agg_collectors(agg, &shape, walk);
}

/* ------------------------------------------------------------------------
 * Subplans
 * ------------------------------------------------------------------------
 */

/*
 * The executor keeps the distinct rows of a hashed subplan however much memory
 * they take.  The planner chose hashing because it expected them to fit.  Rows
 * with NULLs go to a second, small table.
 */
static void
charge_hashed_subplan(const SubPlan *subplan, const Plan *plan, CostWalk *walk)
{
	double		rows = rows_of(plan);
	double		bytes = CONTEXT_BYTES +
		group_table_bytes(rows, chunk_bytes(tuple_bytes(plan)), ALLOCSET_DEFAULT_MAXSIZE);

	if (!subplan->unknownEqFalse)
		bytes += table_bytes(list_length(subplan->paramIds) == 1 ? 1 : rows / 16,
							 HASH_ENTRY_BYTES);
	charge_as(walk, &hashed_subplan_rule, plan, bytes, walk->processes,
			  PGADM_PLAN_UNLIMITED);
}

/* What the expression itself keeps of the rows of its plan. */
static void
charge_subplan_result(const SubPlan *subplan, const Plan *plan, CostWalk *walk)
{
	PgAdmPlanBasis basis = PGADM_PLAN_BY_ROWS;
	double		bytes;

	if (subplan->useHashTable)
		charge_hashed_subplan(subplan, plan, walk);
	else if (subplan->subLinkType == ARRAY_SUBLINK)
	{
		double		value = is_type_by_value(subplan->firstColType) ? 0 : plan->plan_width;

		bytes = collected_bytes(rows_of(plan), value);
		charge_as(walk, &array_subplan_rule, plan, bytes, walk->processes,
				  PGADM_PLAN_UNLIMITED);
	}
	else if (subplan->subLinkType == CTE_SUBLINK && plan->targetlist != NIL)
	{
		bytes = store_bytes(rows_of(plan), tuple_bytes(plan), walk->work_mem, &basis);
		charge_as(walk, &rules[T_CteScan], plan, bytes, walk->processes, basis);
	}
}

/* A subplan's plan is run where it is used, and once however often used. */
static void
walk_subplan_by_id(int plan_id, CostWalk *walk)
{
	const Plan *plan = (const Plan *) list_nth(walk->stmt->subplans, plan_id - 1);
	double		bound = walk->bound;
	double		pages = walk->pages;
	bool		in_bitmap_or = walk->in_bitmap_or;

	if (plan == NULL || bms_is_member(plan_id, walk->subplans_seen))
		return;
	walk->subplans_seen = bms_add_member(walk->subplans_seen, plan_id);
	walk->bound = -1;
	walk->pages = -1;
	walk->in_bitmap_or = false;
	walk_plan(plan, walk);
	walk->bound = bound;
	walk->pages = pages;
	walk->in_bitmap_or = in_bitmap_or;
}

static void
walk_subplan(const SubPlan *subplan, CostWalk *walk)
{
	const Plan *plan = (const Plan *) list_nth(walk->stmt->subplans,
											   subplan->plan_id - 1);

	if (plan == NULL)
		return;
	charge_subplan_result(subplan, plan, walk);
	walk_subplan_by_id(subplan->plan_id, walk);
}

/* Find the SubPlans in an expression, or in a list of them. */
static bool
walk_subplans_in(Node *node, CostWalk *walk)
{
	if (node == NULL)
		return false;
	if (IsA(node, SubPlan))
		walk_subplan((SubPlan *) node, walk);
	return expression_tree_walker(node, walk_subplans_in, (void *) walk);
}

static void
walk_expressions(const Plan *plan, const NodeRule *rule, CostWalk *walk)
{
	walk_subplans_in((Node *) plan->initPlan, walk);
	walk_subplans_in((Node *) plan->targetlist, walk);
	walk_subplans_in((Node *) plan->qual, walk);
	for (int i = 0; i < MAX_EXPRS && rule->exprs[i] != 0; i++)
		walk_subplans_in(*(Node *const *) ((const char *) plan + rule->exprs[i]), walk);
}

/* ------------------------------------------------------------------------
 * The walk
 * ------------------------------------------------------------------------
 */

/* How many rows a Limit asks for, as far as the plan says; or -1. */
static double
limit_bound(const Limit *limit)
{
	const Const *count = (const Const *) limit->limitCount;
	const Const *offset = (const Const *) limit->limitOffset;
	double		bound;

	if (count == NULL || !IsA(count, Const) || count->constisnull ||
		limit->limitOption == LIMIT_OPTION_WITH_TIES)
		return -1;
	bound = (double) DatumGetInt64(count->constvalue);
	if (offset != NULL)
	{
		if (!IsA(offset, Const))
			return -1;
		if (!offset->constisnull)
			bound += (double) DatumGetInt64(offset->constvalue);
	}
	return bound;
}

/* The processes that run what is below a Gather. */
static void
enter_gather(int planned, bool single_copy, CostWalk *walk)
{
	int			workers = possible_workers(planned, walk);

	walk->workers = workers;
	if (single_copy)
		walk->processes = 1;
	else
		walk->processes = Max(workers + (walk->params->leader_participates ? 1 : 0), 1);
}

/*
 * The most pages that a bitmap heap scan can have in mind: each costs at least
 * seq_page_cost.  Of a scan that is repeated the plan has averages that count on
 * pages being cached, which say nothing about one bitmap.
 */
static double
bitmap_pages(const Plan *plan, CostWalk *walk)
{
	bool		repeated = !plan->parallel_aware && !bms_is_empty(plan->allParam);

	if (walk->params->seq_page_cost <= 0 || repeated)
		return -1;
	return ceil((plan->total_cost - plan->startup_cost) / walk->params->seq_page_cost);
}

/* Set in the walk what a node means for those below it. */
static void
enter_node(const Plan *plan, CostWalk *walk)
{
	double		bound = walk->bound;

	walk->bound = -1;
	walk->in_bitmap_or = false;
	switch (nodeTag(plan))
	{
		case T_Limit:
			walk->bound = limit_bound((const Limit *) plan);
			break;
		case T_Append:
		case T_MergeAppend:
		case T_Result:
			walk->bound = bound;
			break;
		case T_SubqueryScan:
			walk->bound = plan->qual == NIL ? bound : -1;
			break;
		case T_Gather:
			walk->bound = bound;
			enter_gather(((const Gather *) plan)->num_workers,
						 ((const Gather *) plan)->single_copy, walk);
			break;
		case T_GatherMerge:
			walk->bound = bound;
			enter_gather(((const GatherMerge *) plan)->num_workers, false, walk);
			break;
		case T_BitmapHeapScan:
			walk->pages = bitmap_pages(plan, walk);
			break;
		case T_BitmapAnd:
			walk->pages = -1;
			break;
		case T_BitmapOr:
			walk->in_bitmap_or = true;
			break;
		default:
			break;
	}
}

/*
 * Children in a field of the node.  Of a Parallel Append, those that are not
 * partial run in one process each.
 */
static void
walk_children(const Plan *plan, const NodeRule *rule, CostWalk *walk)
{
	Node	   *children = *(Node *const *) ((const char *) plan + rule->children);
	int			processes = walk->processes;
	ListCell   *lc;

	if (children == NULL)
		return;
	if (!IsA(children, List))
	{
		walk_plan((Plan *) children, walk);
		return;
	}
	foreach(lc, (List *) children)
	{
		if (IsA(plan, Append) && plan->parallel_aware &&
			foreach_current_index(lc) < ((const Append *) plan)->first_partial_plan)
			walk->processes = 1;
		walk_plan((Plan *) lfirst(lc), walk);
		walk->processes = processes;
	}
}

/* What the executor has for a node, whatever the rows. */
static double
node_bytes(const Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_IndexOnlyScan:
			return NODE_BYTES + INDEX_SCAN_BYTES + INDEX_TUPLES_BYTES;
		case T_IndexScan:
		case T_BitmapIndexScan:
			return NODE_BYTES + INDEX_SCAN_BYTES;
		case T_Agg:
			return NODE_BYTES + AGG_NODE_BYTES;
		default:
			return NODE_BYTES;
	}
}

static void
walk_plan(const Plan *plan, CostWalk *walk)
{
	const NodeRule *rule;
	int			processes = walk->processes;
	int			workers = walk->workers;
	double		bound = walk->bound;
	double		pages = walk->pages;
	bool		in_bitmap_or = walk->in_bitmap_or;

	if (plan == NULL)
		return;
	check_stack_depth();

	rule = rule_of(plan);
	walk->executor += processes * node_bytes(plan);
	if (walk->stmt->subplans != NIL)
		walk_expressions(plan, rule, walk);

	enter_node(plan, walk);
	walk_plan(outerPlan(plan), walk);
	walk_plan(innerPlan(plan), walk);
	if (rule->children != 0)
		walk_children(plan, rule, walk);

	walk->processes = processes;
	walk->workers = workers;
	walk->bound = bound;
	walk->pages = pages;
	walk->in_bitmap_or = in_bitmap_or;
	if (rule->charge != NULL)
		rule->charge(plan, walk);
}

/* Subplans that were not found in any expression are in the executor too. */
static void
walk_other_subplans(CostWalk *walk)
{
	for (int plan_id = 1; plan_id <= list_length(walk->stmt->subplans); plan_id++)
		walk_subplan_by_id(plan_id, walk);
	bms_free(walk->subplans_seen);
}

/*
 * The need of a plan whose operators get this work_mem, which may be less than
 * the parameters', and its biggest operators if the caller wants them.
 *
 * All Gathers of a plan count, as if they ran at the same time: they do in a
 * join, and below an Append or in an initplan they may.  All together they have
 * no more workers than can be launched.
 */
static void
cost_with_work_mem(const PlannedStmt *stmt, const PgAdmPlanParams *params,
				   int work_mem_kb, PgAdmPlanNeed *cost,
				   PgAdmPlanOperators *operators)
{
	CostWalk	walk = {0};

	memset(cost, 0, sizeof(PgAdmPlanNeed));
	cost->workers = 1;
	if (operators != NULL)
		operators->count = 0;
	if (stmt->planTree == NULL)
		return;

	cost->plan_cost = stmt->planTree->total_cost;
	walk.stmt = stmt;
	walk.params = params;
	walk.cost = cost;
	walk.operators = operators;
	walk.work_mem = work_mem_kb * 1024.0;
	walk.hash_mem = walk.work_mem * params->hash_mem_multiplier;
	walk.planned_hash_mem = params->work_mem_kb * 1024.0 * params->hash_mem_multiplier;
	walk.processes = 1;
	walk.bound = -1;
	walk.pages = -1;

	walk_plan(stmt->planTree, &walk);
	if (stmt->subplans != NIL)
		walk_other_subplans(&walk);
	cost->workers = Min(cost->workers, 1 + params->max_workers);

	if (walk.memory > 0 || cost->plan_cost >= EXECUTOR_MIN_COST)
		charge_as(&walk, &executor_rule, NULL, EXECUTOR_BYTES + walk.executor, 1,
				  PGADM_PLAN_UNLIMITED);
	cost->memory = (int64) Min(ceil(walk.memory), (double) PGADM_PLAN_MAX_MEMORY);
}

static pg_attribute_hot bool
keeps_nothing(const Plan *plan)
{
	const NodeRule *rule;

	if (plan == NULL)
		return true;

	rule = rule_of(plan);
	return rule->charge == NULL && rule->children == 0 &&
		keeps_nothing(outerPlan(plan)) && keeps_nothing(innerPlan(plan));
}

/*
 * Can it be seen without any parameter that a query needs one worker and no
 * memory?  For many short queries it can.
 */
bool
pgadm_plan_memory_is_nothing(const PlannedStmt *stmt)
{
	const Plan *plan = stmt->planTree;

	return plan != NULL && stmt->subplans == NIL && !stmt->parallelModeNeeded &&
		plan->total_cost < EXECUTOR_MIN_COST && keeps_nothing(plan);
}

/* The need of a plan. */
void
pgadm_plan_memory_of_plan(const PlannedStmt *stmt, const PgAdmPlanParams *params,
						  PgAdmPlanNeed *cost)
{
	cost_with_work_mem(stmt, params, params->work_mem_kb, cost, NULL);
}

/* The need of a plan, and the operators that make it up. */
void
pgadm_plan_memory_list_operators(const PlannedStmt *stmt, const PgAdmPlanParams *params,
								 PgAdmPlanNeed *cost, PgAdmPlanOperators *operators)
{
	cost_with_work_mem(stmt, params, params->work_mem_kb, cost, operators);
}

/* ------------------------------------------------------------------------
 * Lowered claims
 * ------------------------------------------------------------------------
 */

/*
 * The largest work_mem in kB, no more than the parameters', with which the plan
 * needs at most target bytes, and the need with it.
 *
 * If the plan needs more with any work_mem, the one with the least need.  That is
 * not always the least work_mem: a hash join with less memory has more batches,
 * each with a buffer.  For the same reason the search goes down by halves, and
 * then looks closer between the last two only.
 */
int
pgadm_plan_memory_fit_work_mem(const PlannedStmt *stmt, const PgAdmPlanParams *params,
							   int64 target, PgAdmPlanNeed *cost)
{
	PgAdmPlanNeed need;
	int			work_mem = params->work_mem_kb;
	int			best = work_mem;
	int			too_much = work_mem;

	pgadm_plan_memory_of_plan(stmt, params, cost);
	while (cost->memory > target && work_mem > PGADM_MIN_WORK_MEM_KB)
	{
		too_much = work_mem;
		work_mem = Max(work_mem / 2, PGADM_MIN_WORK_MEM_KB);
		cost_with_work_mem(stmt, params, work_mem, &need, NULL);
		if (need.memory < cost->memory)
		{
			best = work_mem;
			*cost = need;
		}
	}

	while (cost->memory <= target && too_much - best > 1)
	{
		work_mem = best + (too_much - best) / 2;
		cost_with_work_mem(stmt, params, work_mem, &need, NULL);
		if (need.memory <= target)
		{
			best = work_mem;
			*cost = need;
		}
		else
			too_much = work_mem;
	}
	return best;
}

/* ------------------------------------------------------------------------
 * Utilities
 * ------------------------------------------------------------------------
 */

/*
 * CREATE INDEX, VACUUM and the like.  maintenance_work_mem is for the whole
 * command: parallel index builds divide it among their workers, and so do
 * parallel vacuums, whose dead row ids are shared.
 */
void
pgadm_plan_memory_of_maintenance(int64 maintenance_work_mem_kb, int parallel_workers,
								 PgAdmPlanNeed *cost)
{
	memset(cost, 0, sizeof(PgAdmPlanNeed));
	cost->workers = 1 + Max(parallel_workers, 0);
	cost->memory = maintenance_work_mem_kb * 1024;
}
