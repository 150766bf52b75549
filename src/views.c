/*-------------------------------------------------------------------------
 *
 * views.c
 *		SQL functions over copies of the shared state.
 *
 * Whatever is shown together is copied together under the admission lock, and
 * formatted after it has been released.  Memory for a copy is allocated, and
 * zeroed, before: the kernel provides it when it is first written to, which
 * should not be while a lock is held.  C functions carry the extension version
 * in which their result took its form.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/views.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "breakers.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_type.h"
#include "compat.h"
#include "funcapi.h"
#include "gate.h"
#include "memory_feedback.h"
#include "miscadmin.h"
#include "order.h"
#include "settings.h"
#include "shared.h"
#include "stats.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "warnings.h"

PG_FUNCTION_INFO_V1(pgadm_status_1_0);
PG_FUNCTION_INFO_V1(pgadm_queries_1_0);
PG_FUNCTION_INFO_V1(pgadm_statistics_1_0);
PG_FUNCTION_INFO_V1(pgadm_memory_1_0);
PG_FUNCTION_INFO_V1(pgadm_load_1_0);
PG_FUNCTION_INFO_V1(pgadm_breakers_1_0);
PG_FUNCTION_INFO_V1(pgadm_warnings_1_0);
PG_FUNCTION_INFO_V1(pgadm_roles_1_0);
PG_FUNCTION_INFO_V1(pgadm_reset_1_0);

#define MAX_COLUMNS		40

/* Backends that are named as those that hold what a waiter lacks */
#define MAX_HOLDERS		5

/* A row that is being made */
typedef struct Row
{
	int			n;
	Datum		values[MAX_COLUMNS];
	bool		nulls[MAX_COLUMNS];
} Row;

static void
add(Row *row, Datum value)
{
	Assert(row->n < MAX_COLUMNS);
	row->nulls[row->n] = false;
	row->values[row->n++] = value;
}

static void
add_null(Row *row)
{
	Assert(row->n < MAX_COLUMNS);
	row->nulls[row->n] = true;
	row->values[row->n++] = (Datum) 0;
}

static void
add_text(Row *row, const char *value)
{
	add(row, CStringGetTextDatum(value));
}

static void
add_timestamp(Row *row, TimestampTz value)
{
	if (value == 0)
		add_null(row);
	else
		add(row, TimestampTzGetDatum(value));
}

static void
add_load_value(Row *row, PgAdmLoadValue value)
{
	if (value.known)
		add(row, Float8GetDatum(value.value));
	else
		add_null(row);
}

static void
add_ms(Row *row, int64 us)
{
	add(row, Float8GetDatum(us / 1000.0));
}

/*
 * Return the row as the function's result.
 */
static Datum
row_result(FunctionCallInfo fcinfo, Row *row)
{
	TupleDesc	tupdesc;

	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	if (row->n != tupdesc->natts)
		elog(ERROR, "wrong number of columns: %d instead of %d",
			 tupdesc->natts, row->n);
	return HeapTupleGetDatum(heap_form_tuple(tupdesc, row->values, row->nulls));
}

/*
 * A sampled value; unknown if the sample is stale.
 */
static PgAdmLoadValue
fresh(const PgAdmServerLoad *load, PgAdmLoadValue value, TimestampTz now)
{
	return pgadm_load_fresh(value, load->sample.sampled_at, now, load->interval_ms);
}

/*
 * May the caller see what a role does?  As in pg_stat_activity.
 */
static bool
may_see(Oid role)
{
	return has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS) ||
		(OidIsValid(role) && has_privs_of_role(GetUserId(), role));
}

/*
 * Memory for a copy of what is aligned to cache lines, never to be freed by
 * itself.
 */
static void *
palloc_lines(Size size)
{
	return (void *) TYPEALIGN(PGADM_CACHE_LINE_SIZE,
							  palloc0(size + PGADM_CACHE_LINE_SIZE - 1));
}

/*
 * A copy of all that pg_admission_status shows.
 */
typedef struct Status
{
	PgAdmMode	mode;
	PgAdmPool	pool;
	PgAdmSamplerState sampler;
	PgAdmServerLoad load;
} Status;

static void
copy_status(void *arg)
{
	Status	   *status = arg;

	status->mode = pgadm_shared_server_mode();
	status->pool = pgadm_shared->pools[0];
	status->sampler = pgadm_shared->sampler;
	status->load = pgadm_shared->load;
}

/*
 * The state of the server.
 */
Datum
pgadm_status_1_0(PG_FUNCTION_ARGS)
{
	Status	   *status = palloc_lines(sizeof(Status));
	const PgAdmPool *pool = &status->pool;
	const PgAdmServerLoad *load = &status->load;
	TimestampTz now = GetCurrentTimestamp();
	PgAdmLoadValue ratio;
	Row			row = {0};

	pgadm_shared_require();
	pgadm_gate_locked(copy_status, status);

	add_text(&row, pgadm_settings_mode_name(status->mode));
	add_text(&row, pool->rules.shedding ? "on" : "off");
	add(&row, Int32GetDatum(pool->usage.running));
	add(&row, Int32GetDatum(pool->queued));
	if (pool->rules.queue_capacity < 0)
		add_null(&row);
	else
		add(&row, Int32GetDatum(pool->rules.queue_capacity));
	add(&row, Int32GetDatum(pool->usage.workers_used));
	add(&row, Int32GetDatum(pool->usage.workers_lent));
	add(&row, Int32GetDatum(pool->capacity.workers));
	add(&row, Int64GetDatum(pool->usage.memory_used));
	add(&row, Int64GetDatum(pool->capacity.memory));
	ratio = fresh(load, load->sample.cpu_wait_ratio, now);
	add_load_value(&row, ratio);
	add_load_value(&row, fresh(load, load->sample.cpu_utilization, now));
	add_load_value(&row, fresh(load, load->sample.cpu_pressure, now));
	add_load_value(&row, fresh(load, load->sample.memory_usage, now));
	add_load_value(&row, fresh(load, load->sample.load_average, now));
	add_load_value(&row, fresh(load, load->throttle_rate, now));
	add(&row, Float8GetDatum(pgadm_load_reject_probability(ratio,
														   pgadm_min_cpu_wait_ratio_to_reject,
														   pgadm_max_cpu_wait_ratio_to_reject)));
	add_timestamp(&row, load->sample.sampled_at);
	if (status->sampler.pid == 0)
		add_null(&row);
	else
		add(&row, Int32GetDatum(status->sampler.pid));

	return row_result(fcinfo, &row);
}

static const char *
entry_state(const PgAdmEntry *entry)
{
	if (entry->lent)
		return "lent";
	return entry->workers > 0 ? "running" : "suspended";
}

static void
add_entry(Row *row, const PgAdmEntry *entry)
{
	int64		waited = entry->enqueued_at == 0 ? 0 :
		Max(entry->admitted_at - entry->enqueued_at, 0);

	add_text(row, entry_state(entry));
	add(row, Int32GetDatum(entry->count));
	add_null(row);				/* queue_position */
	add(row, Int64GetDatum(entry->memory));
	add(row, Int32GetDatum(entry->workers));
	add(row, Float8GetDatum(entry->plan_cost));
	add(row, Int64GetDatum((int64) entry->query_id));
	add_timestamp(row, entry->enqueued_at);
	add_timestamp(row, entry->admitted_at);
	add_ms(row, waited);
}

/*
 * A copy of all that pg_admission_queries shows, and what follows from it.
 */
typedef struct Queries
{
	PgAdmPool	pool;			/* its links lead to what is not copied */
	PgAdmBackend *backends;
	int		   *positions;		/* in the queue, of each backend; from 1 */
	Datum		holders[PGADM_NSHORTAGES];	/* arrays of pids; or 0 */
} Queries;

/* What a backend holds of something that others wait for */
typedef struct Holder
{
	int			pid;
	int64		amount;
} Holder;

/*
 * Those that hold memory include the idle, whose workers have been lent.
 */
static int64
amount_held(const PgAdmBackend *backend, bool memory)
{
	int64		amount = 0;

	for (int i = 0; i < PGADM_ENTRIES_PER_BACKEND; i++)
	{
		const PgAdmEntry *entry = &backend->holdings.entries[i];

		if (memory)
			amount += entry->memory;
		else if (!entry->lent)
			amount += entry->workers;
	}
	return amount;
}

/*
 * Put a holder among the largest, if it is one of them.
 */
static int
insert_holder(Holder *largest, int n, Holder holder)
{
	int			i = n < MAX_HOLDERS ? n++ : MAX_HOLDERS - 1;

	if (largest[i].amount >= holder.amount)
		return n;
	for (; i > 0 && largest[i - 1].amount < holder.amount; i--)
		largest[i] = largest[i - 1];
	largest[i] = holder;
	return n;
}

/*
 * The pids of the backends that hold most of the memory, or of the workers, the
 * largest first.  A waiter never lacks what it holds itself: its workers have
 * been lent, and if it holds memory, it does not wait for any.
 */
static Datum
find_holders(const Queries *queries, bool memory)
{
	Holder		largest[MAX_HOLDERS] = {{0}};
	Datum		pids[MAX_HOLDERS];
	int			n = 0;

	for (int i = 0; i < pgadm_shared->nbackends; i++)
	{
		const PgAdmBackend *backend = &queries->backends[i];
		Holder		holder = {
			.pid = backend->pid,
			.amount = amount_held(backend, memory),
		};

		if (holder.amount > 0)
			n = insert_holder(largest, n, holder);
	}
	if (n == 0)
		return (Datum) 0;
	for (int i = 0; i < n; i++)
		pids[i] = Int32GetDatum(largest[i].pid);
	return PointerGetDatum(construct_array(pids, n, INT4OID, sizeof(int32), true,
										   TYPALIGN_INT));
}

/* What a waiter waits for, as it is shown */
static const char *const shortage_names[PGADM_NSHORTAGES] = {
	[PGADM_SHORT_OF_TURN] = "turn",
	[PGADM_SHORT_OF_WORKERS] = "workers",
	[PGADM_SHORT_OF_MEMORY] = "memory",
	[PGADM_SHORT_OF_IDLE_MEMORY] = "memory",
};

static void
add_waiter(Row *row, const PgAdmWaiter *waiter, int position,
		   const Queries *queries, TimestampTz now)
{
	const PgAdmResources *capacity = &queries->pool.capacity;
	PgAdmShortage shortage = pgadm_order_shortage(&queries->pool, &waiter->claim);

	add_text(row, "queued");
	add(row, Int32GetDatum(1));
	add(row, Int32GetDatum(position));
	add(row, Int64GetDatum(pgadm_policy_memory(&waiter->claim, capacity->memory)));
	add(row, Int32GetDatum(pgadm_policy_workers(&waiter->claim, capacity->workers)));
	add(row, Float8GetDatum(waiter->plan_cost));
	add(row, Int64GetDatum((int64) waiter->query_id));
	add_timestamp(row, waiter->enqueued_at);
	add_null(row);				/* admitted_at */
	add_ms(row, Max(now - waiter->enqueued_at, 0));
	add_text(row, shortage_names[shortage]);
	if (queries->holders[shortage] != (Datum) 0)
		add(row, queries->holders[shortage]);
}

static void
number_waiters(dlist_head *list, int *positions, int *n)
{
	dlist_iter	iter;

	dlist_foreach(iter, list)
	{
		PgAdmBackend *backend = dlist_container(PgAdmBackend, waiter.link, iter.cur);

		positions[backend - pgadm_shared->backends] = ++(*n);
	}
}

/*
 * Copy what is shown of a backend, if there is anything.
 */
static void
copy_backend(PgAdmBackend *copy, const PgAdmBackend *backend)
{
	bool		used = backend->waiter.state == PGADM_WAITING;

	for (int i = 0; i < PGADM_ENTRIES_PER_BACKEND; i++)
		used |= backend->holdings.entries[i].count > 0;
	if (!used)
		return;

	copy->pid = backend->pid;
	copy->role = backend->role;
	copy->waiter = backend->waiter;
	memcpy(copy->holdings.entries, backend->holdings.entries, sizeof(copy->holdings.entries));
}

static void
copy_queries(void *arg)
{
	Queries    *queries = arg;
	PgAdmShared *shared = pgadm_shared;
	int			n = 0;

	queries->pool = shared->pools[0];
	for (int i = 0; i < shared->nbackends; i++)
		copy_backend(&queries->backends[i], &shared->backends[i]);
	number_waiters(&shared->pools[0].priority, queries->positions, &n);
	number_waiters(&shared->pools[0].ordinary, queries->positions, &n);
}

/*
 * Begin a row; the view adds what pg_stat_activity knows by the pid.  Returns
 * whether the caller may see the rest.
 */
static bool
begin_query_row(Row *row, const PgAdmBackend *backend)
{
	row->n = 0;
	add(row, Int32GetDatum(backend->pid));
	return may_see(backend->role);
}

static void
emit_row(ReturnSetInfo *rsinfo, Row *row)
{
	while (row->n < rsinfo->setDesc->natts)
		add_null(row);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, row->values, row->nulls);
}

static void
emit_backend(ReturnSetInfo *rsinfo, const Queries *queries, int number, TimestampTz now)
{
	const PgAdmBackend *backend = &queries->backends[number];
	Row			row;

	for (int i = 0; i < PGADM_ENTRIES_PER_BACKEND; i++)
	{
		if (backend->holdings.entries[i].count == 0)
			continue;
		if (begin_query_row(&row, backend))
			add_entry(&row, &backend->holdings.entries[i]);
		emit_row(rsinfo, &row);
	}
	if (backend->waiter.state == PGADM_WAITING)
	{
		if (begin_query_row(&row, backend))
			add_waiter(&row, &backend->waiter, queries->positions[number],
					   queries, now);
		emit_row(rsinfo, &row);
	}
}

/*
 * The queries that run or wait.
 */
Datum
pgadm_queries_1_0(PG_FUNCTION_ARGS)
{
	Queries    *queries = palloc_lines(sizeof(Queries));
	TimestampTz now;

	pgadm_shared_require();
	InitMaterializedSRF(fcinfo, 0);

	queries->backends = palloc_lines(pgadm_shared->nbackends * sizeof(PgAdmBackend));
	queries->positions = palloc0(pgadm_shared->nbackends * sizeof(int));
	pgadm_gate_locked(copy_queries, queries);

	queries->holders[PGADM_SHORT_OF_WORKERS] = find_holders(queries, false);
	queries->holders[PGADM_SHORT_OF_MEMORY] =
		queries->holders[PGADM_SHORT_OF_IDLE_MEMORY] = find_holders(queries, true);

	now = GetCurrentTimestamp();
	for (int i = 0; i < pgadm_shared->nbackends; i++)
		emit_backend((ReturnSetInfo *) fcinfo->resultinfo, queries, i, now);

	return (Datum) 0;
}

static Datum
histogram(const uint64 *buckets)
{
	Datum		values[PGADM_WAIT_BUCKETS];

	for (int i = 0; i < PGADM_WAIT_BUCKETS; i++)
		values[i] = Int64GetDatum((int64) buckets[i]);
	return PointerGetDatum(construct_array(values, PGADM_WAIT_BUCKETS, INT8OID,
										   sizeof(int64), FLOAT8PASSBYVAL,
										   TYPALIGN_DOUBLE));
}

/*
 * A copy of all that pg_stat_admission shows.
 */
typedef struct Statistics
{
	uint64		counters[PGADM_NCOUNTERS];
	uint64		wait_histogram[PGADM_WAIT_BUCKETS];
	int64		wait_us_total;
	int64		wait_us_max;
	int64		cpu_wait_us;
	int64		cpu_busy_us;
	TimestampTz reset_at;
} Statistics;

static void
copy_statistics(void *arg)
{
	Statistics *copy = arg;
	const PgAdmStats *stats = &pgadm_shared->stats;
	const PgAdmLoadSample *sample = &pgadm_shared->load.sample;

	for (int i = 0; i < PGADM_NCOUNTERS; i++)
		copy->counters[i] = pgadm_stats_get(i);
	memcpy(copy->wait_histogram, stats->wait_histogram, sizeof(copy->wait_histogram));
	copy->wait_us_total = stats->wait_us_total;
	copy->wait_us_max = stats->wait_us_max;
	copy->cpu_wait_us = sample->cpu_wait_us - stats->cpu_wait_us_base;
	copy->cpu_busy_us = sample->cpu_busy_us - stats->cpu_busy_us_base;
	copy->reset_at = stats->reset_at;
}

/*
 * The sum of the bypassed statements.  It is made from the copy, since they are
 * counted without the lock.
 */
static uint64
sum_of_bypassed(const Statistics *stats)
{
	uint64		bypassed = 0;

	for (int i = 0; i < PGADM_NCOUNTERS; i++)
	{
		if (pgadm_stats_exemption(i) != NULL)
			bypassed += stats->counters[i];
	}
	return bypassed;
}

/*
 * Add the value of a column, by its name.
 */
static void
add_statistic(Row *row, const Statistics *stats, const char *column)
{
	PgAdmCounter counter = pgadm_stats_counter(column);

	if (counter != PGADM_NCOUNTERS)
		add(row, Int64GetDatum((int64) stats->counters[counter]));
	else if (strcmp(column, "rejected_deadline") == 0)
		add(row, Int64GetDatum(0)); /* nothing is refused for that yet */
	else if (strcmp(column, "bypassed") == 0)
		add(row, Int64GetDatum((int64) sum_of_bypassed(stats)));
	else if (strcmp(column, "wait_ms_total") == 0)
		add_ms(row, stats->wait_us_total);
	else if (strcmp(column, "wait_ms_max") == 0)
		add_ms(row, stats->wait_us_max);
	else if (strcmp(column, "wait_histogram") == 0)
		add(row, histogram(stats->wait_histogram));
	else if (strcmp(column, "cpu_wait_us_total") == 0)
		add(row, Int64GetDatum(stats->cpu_wait_us));
	else if (strcmp(column, "cpu_busy_us_total") == 0)
		add(row, Int64GetDatum(stats->cpu_busy_us));
	else if (strcmp(column, "stats_reset") == 0)
		add_timestamp(row, stats->reset_at);
	else
		elog(ERROR, "unknown statistic \"%s\"", column);
}

/*
 * The cumulative statistics of the server.  Which there are, and in which
 * order, is up to the SQL function.
 */
Datum
pgadm_statistics_1_0(PG_FUNCTION_ARGS)
{
	Statistics	stats;
	TupleDesc	tupdesc;
	Row			row = {0};

	pgadm_shared_require();
	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");

	pgadm_gate_locked(copy_statistics, &stats);
	for (int i = 0; i < tupdesc->natts; i++)
		add_statistic(&row, &stats, NameStr(TupleDescAttr(tupdesc, i)->attname));

	return row_result(fcinfo, &row);
}

static void
add_oid(Row *row, Oid oid)
{
	if (OidIsValid(oid))
		add(row, ObjectIdGetDatum(oid));
	else
		add_null(row);
}

/*
 * A copy of all that pg_admission_roles shows.
 */
typedef struct Roles
{
	int			n;
	PgAdmRoleStats *stats;
} Roles;

static void
copy_roles(void *arg)
{
	Roles	   *roles = arg;

	roles->n = pgadm_shared->nroles;
	memcpy(roles->stats, pgadm_shared->roles, roles->n * sizeof(PgAdmRoleStats));
}

static void
emit_role(ReturnSetInfo *rsinfo, const PgAdmRoleStats *stats)
{
	Row			row = {0};

	add_oid(&row, stats->role);
	add_oid(&row, stats->database);
	if (may_see(stats->role))
	{
		add(&row, Int64GetDatum((int64) stats->submitted));
		add(&row, Int64GetDatum((int64) stats->admitted));
		add(&row, Int64GetDatum((int64) stats->waited));
		add(&row, Int64GetDatum((int64) stats->rejected));
		add(&row, Int64GetDatum((int64) stats->would_have_rejected));
		add(&row, Int64GetDatum((int64) stats->dropped_connections));
		add_ms(&row, stats->wait_us_total);
	}
	emit_row(rsinfo, &row);
}

/*
 * The cumulative statistics of each role and database.
 */
Datum
pgadm_roles_1_0(PG_FUNCTION_ARGS)
{
	Roles		roles;

	pgadm_shared_require();
	InitMaterializedSRF(fcinfo, 0);

	roles.stats = palloc_lines(sizeof(pgadm_shared->roles));
	pgadm_gate_locked(copy_roles, &roles);

	for (int i = 0; i < roles.n; i++)
	{
		if (roles.stats[i].submitted > 0 || roles.stats[i].dropped_connections > 0)
			emit_role((ReturnSetInfo *) fcinfo->resultinfo, &roles.stats[i]);
	}

	return (Datum) 0;
}

static void
add_misestimate(Row *row, const PgAdmMisestimate *worst)
{
	if (worst->error == 0)
	{
		add_null(row);
		add_null(row);
		add_null(row);
		return;
	}

	if (has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS))
		add(row, Int64GetDatum((int64) worst->query_id));
	else
		add_null(row);
	add(row, Int64GetDatum(worst->charged));
	add(row, Int64GetDatum(worst->allocated));
}

/*
 * How the charges compare with what queries really had allocated.
 */
Datum
pgadm_memory_1_0(PG_FUNCTION_ARGS)
{
	PgAdmMemoryStats stats;
	Row			row = {0};

	pgadm_shared_require();
	stats = pgadm_memory_feedback_get();
	add(&row, Int64GetDatum(stats.queries));
	add(&row, Int64GetDatum(stats.charged));
	add(&row, Int64GetDatum(stats.allocated));
	add(&row, Int64GetDatum(stats.underestimated));
	add(&row, Int64GetDatum(stats.missing));
	add(&row, Int64GetDatum(stats.overestimated));
	add_misestimate(&row, &stats.worst_under);
	add_misestimate(&row, &stats.worst_over);
	add_timestamp(&row, *(volatile TimestampTz *) &pgadm_shared->stats.reset_at);

	return row_result(fcinfo, &row);
}

/*
 * Samples that are copied from the history at once, so that the sampler
 * never waits long for its lock.
 */
#define HISTORY_CHUNK	256

/*
 * Copy up to n samples, from the one that was written as number "last" on,
 * newest first.  Returns how many there are; those overwritten since the
 * reader began are gone.
 */
static int
copy_samples(uint64 last, PgAdmLoadSample *samples, int n)
{
	PgAdmHistory *history = &pgadm_shared->history;
	int			copied = 0;

	LWLockAcquire(&history->lock, LW_SHARED);
	while (copied < n && copied < last)
	{
		uint64		age = history->written - (last - copied);
		int			place = pgadm_load_history_nth(history->written, (int) age);

		if (place < 0)
			break;
		samples[copied++] = history->samples[place];
	}
	LWLockRelease(&history->lock);

	return copied;
}

static void
emit_sample(ReturnSetInfo *rsinfo, const PgAdmLoadSample *sample)
{
	Row			row = {0};

	add_timestamp(&row, sample->sampled_at);
	if (sample->cpu_known)
	{
		add(&row, Int64GetDatum(sample->cpu_wait_us));
		add(&row, Int64GetDatum(sample->cpu_busy_us));
	}
	else
	{
		add_null(&row);
		add_null(&row);
	}
	add_load_value(&row, sample->cpu_wait_ratio);
	add_load_value(&row, sample->cpu_utilization);
	add_load_value(&row, sample->cpu_pressure);
	add_load_value(&row, sample->memory_usage);
	add_load_value(&row, sample->load_average);
	add(&row, Int32GetDatum(sample->running));
	add(&row, Int32GetDatum(sample->queued));
	add(&row, Int64GetDatum(sample->admitted));
	add(&row, Int64GetDatum(sample->rejected));
	emit_row(rsinfo, &row);
}

/*
 * The last samples, newest first.
 */
Datum
pgadm_load_1_0(PG_FUNCTION_ARGS)
{
	PgAdmLoadSample *samples = palloc(HISTORY_CHUNK * sizeof(PgAdmLoadSample));
	uint64		last;
	int			n;

	pgadm_shared_require();
	InitMaterializedSRF(fcinfo, 0);

	LWLockAcquire(&pgadm_shared->history.lock, LW_SHARED);
	last = pgadm_shared->history.written;
	LWLockRelease(&pgadm_shared->history.lock);

	while ((n = copy_samples(last, samples, HISTORY_CHUNK)) > 0)
	{
		for (int i = 0; i < n; i++)
			emit_sample((ReturnSetInfo *) fcinfo->resultinfo, &samples[i]);
		last -= n;
	}

	return (Datum) 0;
}

/*
 * Copy the shared load.
 */
static void
copy_load(void *arg)
{
	PgAdmServerLoad *load = arg;

	*load = pgadm_shared->load;
}

static void
add_statements(Row *row, int statements)
{
	Datum		names[2];
	int			n = 0;

	if (statements & PGADM_LOAD_STATEMENT_READ)
		names[n++] = CStringGetTextDatum("read");
	if (statements & PGADM_LOAD_STATEMENT_WRITE)
		names[n++] = CStringGetTextDatum("write");
	add(row, PointerGetDatum(construct_array(names, n, TEXTOID, -1, false,
											 TYPALIGN_INT)));
}

static void
emit_breaker(ReturnSetInfo *rsinfo, const PgAdmServerLoad *load,
			 const PgAdmBreaker *breaker, TimestampTz now)
{
	bool		is_fresh = !pgadm_load_stale(load->sample.sampled_at, now,
											 load->interval_ms);
	bool		tripped = pgadm_breakers_is_tripped(breaker, -1, is_fresh, now);
	bool		by_hand = breaker->kind == PGADM_BREAKER_OPERATOR;
	char		reason[PGADM_BREAKER_REASON];
	Row			row = {0};

	add_text(&row, breaker->name);
	add(&row, Float8GetDatum(breaker->state.threshold));
	if (by_hand)
		add(&row, Float8GetDatum(tripped ? 1 : 0));
	else
		add_load_value(&row, fresh(load, breaker->state.value, now));
	add(&row, BoolGetDatum(tripped));
	add(&row, BoolGetDatum(breaker->warn_only));
	add_statements(&row, breaker->statements);
	add(&row, Int64GetDatum(breaker->state.trips));
	add(&row, Int64GetDatum(breaker->warned));
	add_timestamp(&row, breaker->state.last_tripped_at);
	add_timestamp(&row, by_hand && tripped ? breaker->expires_at : 0);
	if (by_hand && tripped)
	{
		pgadm_breakers_copy_reason(breaker, reason);
		add_text(&row, reason);
	}
	else
		add_null(&row);
	emit_row(rsinfo, &row);
}

/*
 * The circuit breakers.
 */
Datum
pgadm_breakers_1_0(PG_FUNCTION_ARGS)
{
	PgAdmServerLoad *load = palloc0(sizeof(PgAdmServerLoad));
	TimestampTz now;

	pgadm_shared_require();
	InitMaterializedSRF(fcinfo, 0);

	pgadm_gate_locked(copy_load, load);
	now = GetCurrentTimestamp();
	for (int i = 0; i < PGADM_MAX_BREAKERS; i++)
	{
		if (load->breakers[i].kind != PGADM_BREAKER_UNUSED)
			emit_breaker((ReturnSetInfo *) fcinfo->resultinfo, load,
						 &load->breakers[i], now);
	}

	return (Datum) 0;
}

/*
 * The warning that the sampler is missing, if it is.
 */
static void
emit_missing_sampler(ReturnSetInfo *rsinfo, TimestampTz now)
{
	Row			row = {0};

	if (!pgadm_warnings_sampler_is_missing(now))
		return;
	add_text(&row, PGADM_WARNING_SAMPLER);
	add_text(&row, pgadm_warnings_missing_sampler());
	add_timestamp(&row, pgadm_shared->sampler.alive_at);
	emit_row(rsinfo, &row);
}

/*
 * The warning that connections may be refused that should not, if so.
 */
static void
emit_connection_roles(ReturnSetInfo *rsinfo)
{
	const char *message;
	int			n = pgadm_warnings_connection_roles(&message);
	Row			row = {0};

	if (n == 0)
		return;
	add_text(&row, PGADM_WARNING_ROLES);
	add_text(&row, message);
	add_null(&row);				/* since */
	add(&row, Float8GetDatum(n));
	add(&row, Float8GetDatum(1));
	emit_row(rsinfo, &row);
}

/*
 * The warnings that are active.
 */
Datum
pgadm_warnings_1_0(PG_FUNCTION_ARGS)
{
	PgAdmServerLoad *load = palloc0(sizeof(PgAdmServerLoad));
	TimestampTz now;

	pgadm_shared_require();
	InitMaterializedSRF(fcinfo, 0);

	pgadm_gate_locked(copy_load, load);
	now = GetCurrentTimestamp();
	for (int id = 0; id < PGADM_NWARNINGS; id++)
	{
		PgAdmLoadWarning *warning = &load->warnings[id];
		Row			row = {0};

		if (!warning->active)
			continue;

		add_text(&row, pgadm_warnings_name(id));
		add_text(&row, pgadm_warnings_message(id));
		add_timestamp(&row, warning->since);
		add_load_value(&row, fresh(load, warning->value, now));
		add(&row, Float8GetDatum(warning->warn));
		emit_row((ReturnSetInfo *) fcinfo->resultinfo, &row);
	}

	emit_missing_sampler((ReturnSetInfo *) fcinfo->resultinfo, now);
	emit_connection_roles((ReturnSetInfo *) fcinfo->resultinfo);

	return (Datum) 0;
}

static void
reset_statistics(void *arg)
{
	pgadm_stats_reset();
}

/*
 * Set the cumulative statistics to zero.
 */
Datum
pgadm_reset_1_0(PG_FUNCTION_ARGS)
{
	pgadm_shared_require();

	pgadm_gate_locked(reset_statistics, NULL);
	pgadm_memory_feedback_reset();

	PG_RETURN_VOID();
}
