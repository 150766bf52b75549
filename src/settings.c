/*-------------------------------------------------------------------------
 *
 * settings.c
 *		Every setting of pg_admission.
 *
 * What the settings of a server limit is not read from these variables when
 * a query is admitted: backends re-read the configuration files only between
 * commands, and queued queries must follow a reload.  The sampler publishes
 * those limits in shared memory, see limits.c.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/settings.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <float.h>
#include <limits.h>

#include "compat.h"
#include "load.h"
#include "fault.h"
#include "settings.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/varlena.h"

int			pgadm_mode = PGADM_MODE_OBSERVE;
bool		pgadm_mode_is_local = false;
int			pgadm_queue_timeout = 30000;
bool		pgadm_queue_timeout_is_local = false;
int			pgadm_query_memory_limit = 0;
int			pgadm_query_memory = 0;
int			pgadm_query_workers = 0;
int			pgadm_oversize = PGADM_OVERSIZE_REJECT;
bool		pgadm_bypass = false;

bool		pgadm_exempt_superuser = true;
char	   *pgadm_exempt_roles = NULL;
uint64		pgadm_exempt_roles_changes = 0;
double		pgadm_exempt_cost = 0;
int			pgadm_log_rejections = PGADM_LOG_SUMMARY;
int			pgadm_log_interval = 10000;

int			pgadm_load_shedding = PGADM_SHEDDING_MANAGED;
int			pgadm_queue_capacity = -1;
double		pgadm_cores = 0;
double		pgadm_cores_multiplier = 3;
int			pgadm_total_memory = 0;
double		pgadm_memory_fraction = 0.5;
int			pgadm_sample_interval = 1000;
int			pgadm_cpu_busy_time_threshold = -1;
double		pgadm_min_cpu_wait_ratio_to_reject = 0;
double		pgadm_max_cpu_wait_ratio_to_reject = 0;
double		pgadm_min_cpu_wait_ratio_to_drop = 0;
double		pgadm_max_cpu_wait_ratio_to_drop = 0;
PgAdmBreakerSettings pgadm_memory_breaker;
PgAdmBreakerSettings pgadm_cpu_breaker;
PgAdmBreakerSettings pgadm_load_average_breaker;
double		pgadm_cpu_wait_warn_ratio = 0.9;
double		pgadm_cpu_wait_clear_ratio = 0.8;
int			pgadm_cpu_wait_warn_duration = 600000;
double		pgadm_memory_warn_ratio = 0.9;
double		pgadm_memory_clear_ratio = 0.8;
int			pgadm_memory_warn_duration = 600000;
int			pgadm_queue_warn_duration = 300000;

static const struct config_enum_entry mode_options[] = {
	{"off", PGADM_MODE_OFF, false},
	{"observe", PGADM_MODE_OBSERVE, false},
	{"enforce", PGADM_MODE_ENFORCE, false},
	{NULL, 0, false}
};

static const struct config_enum_entry shedding_options[] = {
	{"managed", PGADM_SHEDDING_MANAGED, false},
	{"on", PGADM_SHEDDING_ON, false},
	{"off", PGADM_SHEDDING_OFF, false},
	{NULL, 0, false}
};

static const struct config_enum_entry oversize_options[] = {
	{"reject", PGADM_OVERSIZE_REJECT, false},
	{"shrink", PGADM_OVERSIZE_SHRINK, false},
	{"alone", PGADM_OVERSIZE_ALONE, false},
	{NULL, 0, false}
};

static const struct config_enum_entry log_rejections_options[] = {
	{"summary", PGADM_LOG_SUMMARY, false},
	{"all", PGADM_LOG_ALL, false},
	{"none", PGADM_LOG_NONE, false},
	{NULL, 0, false}
};

/*
 * Remember whether a setting was made for this role, database or session: then
 * it stays as it is when that of the server changes while a query waits.
 */
static bool
check_is_local(int *newval, void **extra, GucSource source)
{
	bool	   *is_local = (bool *) PGADM_GUC_MALLOC(sizeof(bool));

	if (is_local == NULL)
		return false;

	*is_local = (source > PGC_S_ARGV);
	*extra = is_local;
	return true;
}

static void
assign_mode(int newval, void *extra)
{
	pgadm_mode_is_local = (extra != NULL && *(bool *) extra);
}

static void
assign_queue_timeout(int newval, void *extra)
{
	pgadm_queue_timeout_is_local = (extra != NULL && *(bool *) extra);
}

/*
 * Check the form of a list of roles.  Names that do not exist are no error:
 * the role may be created later, and the files are read without a database.
 */
static bool
check_exempt_roles(char **newval, void **extra, GucSource source)
{
	char	   *copy = pstrdup(*newval);
	List	   *names;
	bool		valid = SplitIdentifierString(copy, ',', &names);

	if (!valid)
		GUC_check_errdetail("List syntax is invalid.");

	list_free(names);
	pfree(copy);
	return valid;
}

static void
assign_exempt_roles(const char *newval, void *extra)
{
	pgadm_exempt_roles_changes++;
}

/*
 * Add kinds of statements, by name, to a set of them.
 */
static bool
collect_statements(const List *names, int *statements)
{
	ListCell   *lc;

	foreach(lc, names)
	{
		const char *name = (const char *) lfirst(lc);

		if (strcmp(name, "read") == 0)
			*statements |= PGADM_LOAD_STATEMENT_READ;
		else if (strcmp(name, "write") == 0)
			*statements |= PGADM_LOAD_STATEMENT_WRITE;
		else
		{
			GUC_check_errdetail("Unrecognized key word: \"%s\".", name);
			GUC_check_errhint("Available values: read, write.");
			return false;
		}
	}
	return true;
}

/*
 * Parse a list of kinds of statements into a set of them.
 */
static bool
check_statements(char **newval, void **extra, GucSource source)
{
	char	   *copy = pstrdup(*newval);
	List	   *names;
	int			statements = 0;
	bool		valid = SplitIdentifierString(copy, ',', &names);

	if (valid)
		valid = collect_statements(names, &statements);
	else
		GUC_check_errdetail("List syntax is invalid.");
	list_free(names);
	pfree(copy);
	if (!valid)
		return false;

	*extra = PGADM_GUC_MALLOC(sizeof(int));
	if (*extra == NULL)
		return false;
	*(int *) *extra = statements;
	return true;
}

static void
assign_memory_breaker_statements(const char *newval, void *extra)
{
	pgadm_memory_breaker.statements = *(int *) extra;
}

static void
assign_cpu_breaker_statements(const char *newval, void *extra)
{
	pgadm_cpu_breaker.statements = *(int *) extra;
}

static void
assign_load_average_breaker_statements(const char *newval, void *extra)
{
	pgadm_load_average_breaker.statements = *(int *) extra;
}

static void
define_policy_settings(void)
{
	DefineCustomEnumVariable("pg_admission.mode",
							 "Whether queries are only observed, or made to wait and refused.",
							 "\"observe\" charges, decides and counts, but nothing waits or is refused.",
							 &pgadm_mode, PGADM_MODE_OBSERVE, mode_options,
							 PGC_SUSET, 0,
							 check_is_local, assign_mode, NULL);
	DefineCustomEnumVariable("pg_admission.load_shedding",
							 "Whether the queue is bounded and queries are refused when it is full.",
							 "\"managed\" leaves it to the system, which bounds the queue.",
							 &pgadm_load_shedding, PGADM_SHEDDING_MANAGED,
							 shedding_options,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("pg_admission.queue_capacity",
							"Number of queries that may wait in the admission queue.",
							"-1 means four times the worker budget, 0 that nothing waits.",
							&pgadm_queue_capacity, -1, -1, INT_MAX,
							PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("pg_admission.queue_timeout",
							"Longest time that a query waits in the admission queue.",
							"0 means no limit.",
							&pgadm_queue_timeout, 30000, 0, INT_MAX,
							PGC_USERSET, GUC_UNIT_MS,
							check_is_local, assign_queue_timeout, NULL);
	DefineCustomEnumVariable("pg_admission.oversize",
							 "What happens to a query whose plan needs more than the memory budget.",
							 NULL,
							 &pgadm_oversize, PGADM_OVERSIZE_REJECT,
							 oversize_options,
							 PGC_SUSET, 0, NULL, NULL, NULL);
}

static void
define_budget_settings(void)
{
	DefineCustomRealVariable("pg_admission.cores",
							 "Number of CPU cores that this server may use.",
							 "0 means as many as are detected.",
							 &pgadm_cores, 0, 0, 65536,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomRealVariable("pg_admission.cores_multiplier",
							 "Number of query workers per core.",
							 "The worker budget is the product with the number of cores, rounded up.",
							 &pgadm_cores_multiplier, 3, 0.001, 10000,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("pg_admission.total_memory",
							"Memory that this server may use for its processes.",
							"0 means as much as is detected.",
							&pgadm_total_memory, 0, 0, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_KB, NULL, NULL, NULL);
	DefineCustomRealVariable("pg_admission.memory_fraction",
							 "Share of the total memory that queries may use.",
							 NULL,
							 &pgadm_memory_fraction, 0.5, 0, 1,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("pg_admission.query_memory_limit",
							"Largest amount of memory that a query is charged, and gets.",
							"A query that would need more is given less work_mem.  0 means no limit.",
							&pgadm_query_memory_limit, 0, 0, INT_MAX,
							PGC_USERSET, GUC_UNIT_KB, NULL, NULL, NULL);
	DefineCustomIntVariable("pg_admission.query_memory",
							"Memory that a query is charged instead of the estimate from its plan.",
							"0 means the estimate.",
							&pgadm_query_memory, 0, 0, INT_MAX,
							PGC_SUSET, GUC_UNIT_KB, NULL, NULL, NULL);
	DefineCustomIntVariable("pg_admission.query_workers",
							"Workers that a query is charged instead of those in its plan.",
							"0 means those in the plan.",
							&pgadm_query_workers, 0, 0, 1000000,
							PGC_SUSET, 0, NULL, NULL, NULL);
}

static void
define_exemption_settings(void)
{
	DefineCustomBoolVariable("pg_admission.exempt_superuser",
							 "Whether superusers are exempt from admission.",
							 NULL,
							 &pgadm_exempt_superuser, true,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomStringVariable("pg_admission.exempt_roles",
							   "Roles whose members are exempt from admission.",
							   NULL,
							   &pgadm_exempt_roles, "pg_monitor",
							   PGC_SIGHUP, GUC_LIST_INPUT,
							   check_exempt_roles, assign_exempt_roles, NULL);
	DefineCustomBoolVariable("pg_admission.bypass",
							 "Exempts this role, database or session from admission.",
							 NULL,
							 &pgadm_bypass, false,
							 PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomRealVariable("pg_admission.exempt_cost",
							 "Plans cheaper than this are exempt from admission.",
							 NULL,
							 &pgadm_exempt_cost, 0, 0, DBL_MAX,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
}

/*
 * A ratio of CPU wait to CPU busy time.
 */
static void
define_ratio(const char *name, const char *short_desc, const char *long_desc,
			 double *variable, double boot_value, GucContext context)
{
	DefineCustomRealVariable(name, short_desc, long_desc, variable, boot_value,
							 0, 1000000, context, 0, NULL, NULL, NULL);
}

static void
define_load_settings(void)
{
	DefineCustomIntVariable("pg_admission.sample_interval",
							"Time between two samples of the server's load.",
							NULL,
							&pgadm_sample_interval, 1000, 100, 60000,
							PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomIntVariable("pg_admission.cpu_busy_time_threshold",
							"CPU time of the server, in ms per second, below which the CPU wait ratio is 0.",
							"-1 means half of the usable CPUs.",
							&pgadm_cpu_busy_time_threshold, -1, -1, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL);
	define_ratio("pg_admission.min_cpu_wait_ratio_to_reject",
				 "CPU wait ratio at which the server begins to refuse queries.",
				 "Off unless it is less than max_cpu_wait_ratio_to_reject.",
				 &pgadm_min_cpu_wait_ratio_to_reject, 0, PGC_SUSET);
	define_ratio("pg_admission.max_cpu_wait_ratio_to_reject",
				 "CPU wait ratio at which the server refuses all queries.",
				 NULL,
				 &pgadm_max_cpu_wait_ratio_to_reject, 0, PGC_SUSET);
	define_ratio("pg_admission.min_cpu_wait_ratio_to_drop_connection",
				 "CPU wait ratio at which the server begins to refuse connections.",
				 "Off unless it is less than max_cpu_wait_ratio_to_drop_connection.",
				 &pgadm_min_cpu_wait_ratio_to_drop, 0, PGC_SIGHUP);
	define_ratio("pg_admission.max_cpu_wait_ratio_to_drop_connection",
				 "CPU wait ratio at which the server refuses all connections.",
				 NULL,
				 &pgadm_max_cpu_wait_ratio_to_drop, 0, PGC_SIGHUP);
}

static void
define_breaker_thresholds(void)
{
	DefineCustomRealVariable("pg_admission.memory_breaker_threshold",
							 "Share of the memory limit in use at which the memory breaker trips.",
							 "0 turns the breaker off.",
							 &pgadm_memory_breaker.threshold, 0, 0, 1,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomRealVariable("pg_admission.cpu_breaker_threshold",
							 "Utilization of the usable CPUs at which the CPU breaker trips.",
							 "0 turns the breaker off.",
							 &pgadm_cpu_breaker.threshold, 0, 0, 1,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomRealVariable("pg_admission.load_average_breaker_threshold",
							 "1-minute load average at which the load average breaker trips.",
							 "0 turns the breaker off.",
							 &pgadm_load_average_breaker.threshold, 0, 0, 1000000,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
}

static void
define_breaker_statements(void)
{
	DefineCustomStringVariable("pg_admission.memory_breaker_statements",
							   "Kinds of statements that the memory breaker refuses.",
							   NULL,
							   &pgadm_memory_breaker.statement_list, "read",
							   PGC_SIGHUP, GUC_LIST_INPUT, check_statements,
							   assign_memory_breaker_statements, NULL);
	DefineCustomStringVariable("pg_admission.cpu_breaker_statements",
							   "Kinds of statements that the CPU breaker refuses.",
							   NULL,
							   &pgadm_cpu_breaker.statement_list, "read",
							   PGC_SIGHUP, GUC_LIST_INPUT, check_statements,
							   assign_cpu_breaker_statements, NULL);
	DefineCustomStringVariable("pg_admission.load_average_breaker_statements",
							   "Kinds of statements that the load average breaker refuses.",
							   NULL,
							   &pgadm_load_average_breaker.statement_list, "read",
							   PGC_SIGHUP, GUC_LIST_INPUT, check_statements,
							   assign_load_average_breaker_statements, NULL);
}

static void
define_breaker_actions(void)
{
	DefineCustomBoolVariable("pg_admission.memory_breaker_warn_only",
							 "Whether the memory breaker only warns and refuses nothing.",
							 NULL,
							 &pgadm_memory_breaker.warn_only, false,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("pg_admission.cpu_breaker_warn_only",
							 "Whether the CPU breaker only warns and refuses nothing.",
							 NULL,
							 &pgadm_cpu_breaker.warn_only, false,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("pg_admission.load_average_breaker_warn_only",
							 "Whether the load average breaker only warns and refuses nothing.",
							 NULL,
							 &pgadm_load_average_breaker.warn_only, false,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
}

static void
define_warning_settings(void)
{
	define_ratio("pg_admission.cpu_wait_warn_ratio",
				 "CPU wait ratio at which a warning is raised.",
				 "0 turns the warning off.",
				 &pgadm_cpu_wait_warn_ratio, 0.9, PGC_SIGHUP);
	define_ratio("pg_admission.cpu_wait_clear_ratio",
				 "CPU wait ratio under which the warning is cleared.",
				 NULL,
				 &pgadm_cpu_wait_clear_ratio, 0.8, PGC_SIGHUP);
	DefineCustomIntVariable("pg_admission.cpu_wait_warn_duration",
							"Time that the CPU wait ratio must stay there for a warning to be raised or cleared.",
							NULL,
							&pgadm_cpu_wait_warn_duration, 600000, 0, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomRealVariable("pg_admission.memory_warn_ratio",
							 "Share of the memory limit in use at which a warning is raised.",
							 "0 turns the warning off.",
							 &pgadm_memory_warn_ratio, 0.9, 0, 1,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomRealVariable("pg_admission.memory_clear_ratio",
							 "Share of the memory limit in use under which the warning is cleared.",
							 NULL,
							 &pgadm_memory_clear_ratio, 0.8, 0, 1,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("pg_admission.memory_warn_duration",
							"Time that memory usage must stay there for a warning to be raised or cleared.",
							NULL,
							&pgadm_memory_warn_duration, 600000, 0, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomIntVariable("pg_admission.queue_warn_duration",
							"Time during which queries must be throttled for a warning to be raised.",
							NULL,
							&pgadm_queue_warn_duration, 300000, 0, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL);
}

#ifdef PGADM_ASSERTIONS

int			pgadm_fail_at = PGADM_FAIL_NEVER;

static const struct config_enum_entry fail_at_options[] = {
	{"never", PGADM_FAIL_NEVER, false},
	{"record", PGADM_FAIL_RECORD, false},
	{"queued", PGADM_FAIL_QUEUED, false},
	{"waiting", PGADM_FAIL_WAITING, false},
	{"charged", PGADM_FAIL_CHARGED, false},
	{NULL, 0, false}
};

#endif

static void
define_test_settings(void)
{
#ifdef PGADM_ASSERTIONS
	DefineCustomEnumVariable("pg_admission.fail_at",
							 "Where to fail, for tests.",
							 NULL,
							 &pgadm_fail_at, PGADM_FAIL_NEVER, fail_at_options,
							 PGC_SUSET, GUC_NO_SHOW_ALL | GUC_NOT_IN_SAMPLE,
							 NULL, NULL, NULL);
#endif
}

static void
define_reporting_settings(void)
{
	DefineCustomEnumVariable("pg_admission.log_rejections",
							 "How refused queries are written to the server log.",
							 "\"summary\" writes at most one line per log_interval.",
							 &pgadm_log_rejections, PGADM_LOG_SUMMARY,
							 log_rejections_options,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("pg_admission.log_interval",
							"Shortest time between two summaries of refused queries in the server log.",
							NULL,
							&pgadm_log_interval, 10000, 0, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL);
}

/*
 * Define all settings.  Called once, while the library is loaded.
 */
void
pgadm_settings_init(void)
{
	define_policy_settings();
	define_budget_settings();
	define_exemption_settings();
	define_load_settings();
	define_breaker_thresholds();
	define_breaker_statements();
	define_breaker_actions();
	define_warning_settings();
	define_reporting_settings();
	define_test_settings();

	MarkGUCPrefixReserved("pg_admission");
}

const char *
pgadm_settings_mode_name(PgAdmMode mode)
{
	return mode_options[mode].name;
}
