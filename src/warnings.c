/*-------------------------------------------------------------------------
 *
 * warnings.c
 *		Warnings about a server that has been overloaded for long.
 *
 * When a warning is raised and cleared is for load.c to say.  Each change is
 * logged once, with the biggest consumers of that moment.
 *
 * Locking: the sampler is the only one that changes warnings, which are part
 * of the shared load, under the admission lock; it reads them without.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/warnings.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "settings.h"
#include "shared.h"
#include "utils/timestamp.h"
#include "warnings.h"

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

/*
 * Find the running query with the biggest charge of memory.
 */
static int
biggest_charge(int64 *memory)
{
	int			pid = 0;

	*memory = 0;
	LWLockAcquire(&pgadm_shared->lock, LW_EXCLUSIVE);
	for (int i = 0; i < pgadm_shared->nbackends; i++)
	{
		PgAdmBackend  *slot = &pgadm_shared->backends[i];

		for (int j = 0; j < PGADM_ENTRIES_PER_BACKEND; j++)
		{
			if (slot->holdings.entries[j].memory <= *memory)
				continue;
			*memory = slot->holdings.entries[j].memory;
			pid = slot->pid;
		}
	}
	LWLockRelease(&pgadm_shared->lock);

	return pid;
}

/*
 * Who uses most CPU time at the moment.
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
 * Who has been charged most memory.
 */
static char *
describe_charge(void)
{
	int64		memory;
	int			pid = biggest_charge(&memory);

	if (pid == 0)
		return pstrdup(_("No query has been charged any memory."));
	return psprintf(_("Most memory charged: PID %d (%lld kB)."),
					pid, (long long) (memory / 1024));
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

/*
 * Update every warning from a sample, and log what is raised or cleared.
 */
void
pgadm_warnings_update(const PgAdmLoadSample *sample, int64 throttled,
					  const PgAdmCpuConsumer *consumers)
{
	for (int id = 0; id < PGADM_NWARNINGS; id++)
	{
		PgAdmLoadWarning warning = pgadm_shared->load.warnings[id];
		PgAdmLoadEvent event = update_warning(id, &warning, sample, throttled);

		LWLockAcquire(&pgadm_shared->lock, LW_EXCLUSIVE);
		pgadm_shared->load.warnings[id] = warning;
		LWLockRelease(&pgadm_shared->lock);

		log_event(event, id, &warning, consumers);
	}
}
