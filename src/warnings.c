/*-------------------------------------------------------------------------
 *
 * warnings.c
 *		Warnings about a server that has been overloaded for long.
 *
 * When a warning is raised and cleared is for load.c to say.  Each change is
 * logged once, with the biggest consumers of that moment.
 *
 * Locking: warnings are part of the shared load, under the admission lock.  Only
 * the sampler changes them, so it reads them without.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/warnings.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/pg_authid.h"
#include "common/string.h"
#include "exemption.h"
#include "gate.h"
#include "lib/stringinfo.h"
#include "settings.h"
#include "shared.h"
#include "utils/formatting.h"
#include "utils/rel.h"
#include "utils/timestamp.h"
#include "warnings.h"

/*
 * The sampler may start late, or again, without anybody being told.  If it does
 * not, that is logged at intervals.
 */
#define SAMPLER_MAY_MISS_MS		5000
#define SAMPLER_MISSED_LOG_MS	300000

/* What the names of roles have in them that look after the server */
static const char *const caretakers[] = {
	"backup", "barman", "haproxy", "health", "keepalive", "monitor", "patroni",
	"pgbackrest", "pgpool", "probe", "repl", "repmgr", "watchdog",
};

/* Roles that a warning names */
#define MAX_NAMED_ROLES		10

static const struct
{
	const char *name;
	const char *message;
	const char *remedy;
}			wording[PGADM_NWARNINGS] =
{
	[PGADM_WARNING_CPU] = {
		"cpu_wait",
		gettext_noop("the server's processes have been waiting long for a CPU"),
		gettext_noop("Lower pg_admission.cores_multiplier, refuse queries with pg_admission.max_cpu_wait_ratio_to_reject, or add CPUs."),
	},
	[PGADM_WARNING_MEMORY] = {
		"memory",
		gettext_noop("memory has been nearly used up"),
		gettext_noop("Lower pg_admission.memory_fraction or work_mem, or add memory."),
	},
	[PGADM_WARNING_QUEUE] = {
		"queue",
		gettext_noop("queries have been throttled all the time"),
		gettext_noop("Reduce the load, make the queries cheaper, or add CPUs and raise pg_admission.cores_multiplier."),
	},
};

const char *
pgadm_warnings_name(PgAdmWarningId id)
{
	return wording[id].name;
}

/*
 * A warning in one line, with its remedy.
 */
const char *
pgadm_warnings_message(PgAdmWarningId id)
{
	return psprintf("%s; remedy: %s", _(wording[id].message), _(wording[id].remedy));
}

/* The biggest charge of memory; pid 0 if there is none */
typedef struct Charge
{
	pid_t		pid;
	int64		memory;
} Charge;

/*
 * Find the running query with the biggest charge of memory.
 */
static void
find_biggest_charge(void *arg)
{
	Charge	   *biggest = arg;

	for (int i = 0; i < pgadm_shared->nbackends; i++)
	{
		const PgAdmBackend *backend = &pgadm_shared->backends[i];

		for (int j = 0; j < PGADM_ENTRIES_PER_BACKEND; j++)
		{
			const PgAdmEntry *entry = &backend->holdings.entries[j];

			if (entry->memory <= biggest->memory)
				continue;
			biggest->memory = entry->memory;
			biggest->pid = backend->pid;
		}
	}
}

/*
 * Name the processes that use most CPU time at the moment.
 */
static char *
describe_cpu_time(const PgAdmCpuConsumer *consumers)
{
	StringInfoData text;

	initStringInfo(&text);
	appendStringInfoString(&text, _("Most CPU time since the last sample:"));
	for (int i = 0; i < PGADM_CPU_NCONSUMERS && consumers[i].pid != 0; i++)
		appendStringInfo(&text, "%s PID %d (%lld ms)", i > 0 ? "," : "",
						 consumers[i].pid, (long long) (consumers[i].busy_us / 1000));
	if (consumers[0].pid == 0)
		appendStringInfoString(&text, _(" none"));
	appendStringInfoChar(&text, '.');
	return text.data;
}

/*
 * Name the process whose query has been charged most memory.
 */
static char *
describe_charge(void)
{
	Charge		biggest = {0};

	pgadm_gate_locked(find_biggest_charge, &biggest);
	if (biggest.pid == 0)
		return pstrdup(_("No query has been charged any memory."));
	return psprintf(_("Most memory charged: PID %d (%lld kB)."),
					biggest.pid, (long long) (biggest.memory / 1024));
}

static void
log_event(PgAdmLoadEvent event, PgAdmWarningId id, const PgAdmLoadWarning *warning,
		  const PgAdmCpuConsumer *consumers)
{
	char	   *detail;

	if (event == PGADM_LOAD_UNCHANGED)
		return;
	if (event == PGADM_LOAD_CLEARED)
	{
		ereport(LOG,
				(errmsg("overload warning \"%s\" has been cleared", wording[id].name)));
		return;
	}

	detail = id == PGADM_WARNING_MEMORY ? describe_charge() :
		describe_cpu_time(consumers);
	ereport(WARNING,
			(errmsg("overload warning \"%s\": %s", wording[id].name,
					_(wording[id].message)),
			 errdetail("The value is %g, the threshold %g. %s",
					   warning->value.value, warning->warn, detail),
			 errhint("%s", _(wording[id].remedy))));
	pfree(detail);
}

/*
 * Update one warning, and return what changed.
 */
static PgAdmLoadEvent
update_warning(PgAdmWarningId id, PgAdmLoadWarning *warning,
			   const PgAdmLoadSample *sample, int64 throttled)
{
	PgAdmLoadWarningLimits cpu = {
		pgadm_cpu_wait_warn_ratio, pgadm_cpu_wait_clear_ratio,
		pgadm_cpu_wait_warn_duration
	};
	PgAdmLoadWarningLimits memory = {
		pgadm_memory_warn_ratio, pgadm_memory_clear_ratio,
		pgadm_memory_warn_duration
	};

	switch (id)
	{
		case PGADM_WARNING_CPU:
			return pgadm_load_warning_update(warning, &cpu, sample->cpu_wait_ratio,
											 sample->sampled_at, pgadm_sample_interval);
		case PGADM_WARNING_MEMORY:
			return pgadm_load_warning_update(warning, &memory, sample->memory_usage,
											 sample->sampled_at, pgadm_sample_interval);
		case PGADM_WARNING_QUEUE:
			return pgadm_load_queue_warning_update(warning, pgadm_queue_warn_duration,
												   throttled, sample->sampled_at,
												   pgadm_sample_interval);
	}
	return PGADM_LOAD_UNCHANGED;
}

/* A warning that has been updated */
typedef struct Update
{
	PgAdmWarningId id;
	PgAdmLoadWarning warning;
} Update;

static void
publish(void *arg)
{
	const Update *update = arg;

	pgadm_shared->load.warnings[update->id] = update->warning;
}

/*
 * Update every warning from a sample, and log what is raised or cleared.
 */
void
pgadm_warnings_update(const PgAdmLoadSample *sample, int64 throttled,
					  const PgAdmCpuConsumer *consumers)
{
	for (int id = 0; id < PGADM_NWARNINGS; id++)
	{
		Update		update = {id, pgadm_shared->load.warnings[id]};
		PgAdmLoadEvent event = update_warning(id, &update.warning, sample, throttled);

		pgadm_gate_locked(publish, &update);
		log_event(event, id, &update.warning, consumers);
	}
}

/*
 * Has the sampler been missing for longer than it takes to start it?
 */
bool
pgadm_warnings_sampler_is_missing(TimestampTz now)
{
	return pgadm_shared_sampler_missing(now) &&
		TimestampDifferenceExceeds(pgadm_shared->sampler.alive_at, now,
								   SAMPLER_MAY_MISS_MS);
}

/*
 * What is lost with the sampler.
 */
static const char *
missing_detail(void)
{
	return _("Settings are still followed, but the load is unknown: no circuit breaker trips by itself, nothing is refused and no warning raised because of the load.");
}

/*
 * What brings it back.
 */
static const char *
missing_hint(void)
{
	pid_t		pid = pgadm_shared->sampler.pid;

	if (pid == 0)
		return _("Raise max_worker_processes and restart the server.");
	return psprintf(_("Process %d does not go on: send it SIGCONT if it is stopped, else SIGTERM."),
					(int) pid);
}

/*
 * The warning in one line, with its remedy.
 */
const char *
pgadm_warnings_missing_sampler(void)
{
	return psprintf("%s %s %s", _("The sampler of pg_admission is not running."),
					missing_detail(), missing_hint());
}

/*
 * Log that the sampler is missing, unless some process has done so lately.
 */
void
pgadm_warnings_log_missing_sampler(TimestampTz now)
{
	pg_atomic_uint64 *missed_at = &pgadm_shared->sampler.missed_at;
	uint64		last = pg_atomic_read_u64(missed_at);

	if (!pgadm_warnings_sampler_is_missing(now) ||
		(last != 0 &&
		 !TimestampDifferenceExceeds((TimestampTz) last, now, SAMPLER_MISSED_LOG_MS)) ||
		!pg_atomic_compare_exchange_u64(missed_at, &last, (uint64) now))
		return;

	ereport(LOG_SERVER_ONLY,
			(errmsg("the sampler of pg_admission is not running"),
			 errdetail_internal("%s", missing_detail()),
			 errhint("%s", missing_hint())));
}

/*
 * Does a role look like one of a health check, a backup or a replication
 * manager?  A "check" counts at the end of a name only, since there are shops.
 */
static bool
is_caretaker(Form_pg_authid role)
{
	char	   *name = asc_tolower(NameStr(role->rolname), strlen(NameStr(role->rolname)));
	bool		found = role->rolreplication || pg_str_endswith(name, "check") ||
		pg_str_endswith(name, "checker");

	for (int i = 0; i < lengthof(caretakers); i++)
		found |= strstr(name, caretakers[i]) != NULL;
	pfree(name);
	return found;
}

/*
 * Find the roles that may connect and should never be refused, but could be.
 * Returns how many there are, and appends the names of the first.
 */
static int
find_caretakers(StringInfo names)
{
	Relation	authid = table_open(AuthIdRelationId, AccessShareLock);
	SysScanDesc scan = systable_beginscan(authid, InvalidOid, false, NULL, 0, NULL);
	HeapTuple	tuple;
	int			n = 0;

	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_authid role = (Form_pg_authid) GETSTRUCT(tuple);

		if (!role->rolcanlogin || role->rolsuper || !is_caretaker(role) ||
			pgadm_exemption_of_role(role->oid))
			continue;
		if (n < MAX_NAMED_ROLES)
			appendStringInfo(names, "%s\"%s\"", n > 0 ? ", " : "",
							 NameStr(role->rolname));
		n++;
	}
	systable_endscan(scan);
	table_close(authid, AccessShareLock);

	if (n > MAX_NAMED_ROLES)
		appendStringInfoString(names, ", ...");
	return n;
}

/*
 * If new connections may be refused, look whether that could hit those that
 * look after the server.  The sampler cannot read the catalogs, so this is found
 * by who looks at the warnings.  Returns the number of such roles.
 */
int
pgadm_warnings_connection_roles(const char **message)
{
	StringInfoData names;
	int			n;

	if (pgadm_min_cpu_wait_ratio_to_drop >= pgadm_max_cpu_wait_ratio_to_drop ||
		pgadm_shared_server_mode() == PGADM_MODE_OFF)
		return 0;

	initStringInfo(&names);
	n = find_caretakers(&names);
	*message = psprintf(_("connections of roles that look like health checks, backups or replication managers may be refused: %s; remedy: %s"),
						names.data,
						_("Add them to pg_admission.exempt_roles."));
	return n;
}
