/*-------------------------------------------------------------------------
 *
 * settings.c
 *		Every setting of pg_admission.
 *
 * The limits of the server are not read from these variables when a query is
 * admitted: backends re-read the configuration files only between commands, and
 * queued queries must follow a reload.  The sampler publishes the limits in
 * shared memory, see capacity.c.
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
double		pgadm_min_cpu_wait_ratio_to_reject = 0;
double		pgadm_max_cpu_wait_ratio_to_reject = 0;

bool		pgadm_exempt_superuser = true;
char	   *pgadm_exempt_roles = NULL;
uint64		pgadm_exempt_roles_changes = 0;
double		pgadm_exempt_cost = 0;
double		pgadm_min_cpu_wait_ratio_to_drop = 0;
double		pgadm_max_cpu_wait_ratio_to_drop = 0;
int			pgadm_log_rejections = PGADM_LOG_SUMMARY;
int			pgadm_log_interval = 10000;

bool		pgadm_enabled = true;
int			pgadm_load_shedding = PGADM_SHEDDING_MANAGED;
int			pgadm_queue_capacity = -1;
double		pgadm_cores = 0;
double		pgadm_cores_multiplier = 3;
int			pgadm_total_memory = 0;
double		pgadm_memory_fraction = 0.5;
int			pgadm_sample_interval = 1000;
int			pgadm_cpu_busy_time_threshold = -1;
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
 * Remember whether a setting was made for this role, database or session.  If
 * so, it stays as it is when the server's changes while a query waits.
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
 * Split a list into names, and have them checked unless "check" is NULL.
 */
static bool
check_list(const char *value, bool (*check) (const List *names, int *result),
		   int *result)
{
	char	   *copy = pstrdup(value);
	List	   *names;
	bool		valid = SplitIdentifierString(copy, ',', &names);

	if (!valid)
		GUC_check_errdetail("List syntax is invalid.");
	else if (check != NULL)
		valid = check(names, result);

	list_free(names);
	pfree(copy);
	return valid;
}

/*
 * Check the form of a list of roles.  Names that do not exist are no error:
 * the role may be created later, and the files are read without a database.
 */
static bool
check_exempt_roles(char **newval, void **extra, GucSource source)
{
	return check_list(*newval, NULL, NULL);
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
	int			statements = 0;

	if (!check_list(*newval, collect_statements, &statements))
		return false;

	*extra = PGADM_GUC_MALLOC(sizeof(int));
	if (*extra == NULL)
		return false;
	*(int *) *extra = statements;
	return true;
}

/*
 * The three settings of a built-in circuit breaker.
 */
typedef struct BreakerDefinition
{
	const char *threshold_name;
	const char *threshold_desc;
	double		threshold_max;
	const char *statements_name;
	const char *statements_desc;
	GucStringAssignHook assign_statements;
	const char *warn_only_name;
	const char *warn_only_desc;
	PgAdmBreakerSettings *settings;
} BreakerDefinition;

/*
 * An assign hook is not told which setting it is for, so each list has one.
 */
#define ASSIGN_STATEMENTS(name) \
static void \
assign_##name##_statements(const char *newval, void *extra) \
{ \
	pgadm_##name##_breaker.statements = *(int *) extra; \
}

ASSIGN_STATEMENTS(memory)
ASSIGN_STATEMENTS(cpu)
ASSIGN_STATEMENTS(load_average)

#define BREAKER(name, title, measure, max) \
{ \
	.threshold_name = "pg_admission." #name "_breaker_threshold", \
	.threshold_desc = measure " at which the " title " breaker trips.", \
	.threshold_max = (max), \
	.statements_name = "pg_admission." #name "_breaker_statements", \
	.statements_desc = "Kinds of statements that the " title " breaker refuses.", \
	.assign_statements = assign_##name##_statements, \
	.warn_only_name = "pg_admission." #name "_breaker_warn_only", \
	.warn_only_desc = "Whether the " title " breaker only warns and refuses nothing.", \
	.settings = &pgadm_##name##_breaker, \
}

static const BreakerDefinition breaker_definitions[] = {
	BREAKER(memory, "memory", "Share of the memory limit in use", 1),
	BREAKER(cpu, "CPU", "Utilization of the usable CPUs", 1),
	BREAKER(load_average, "load average", "1-minute load average", 1000000),
};

static void
define_policy_settings(void)
{
	DefineCustomBoolVariable("pg_admission.enabled",
							 "Whether pg_admission does anything.",
							 "\"off\" lets every query and connection pass, whatever else is set.",
							 &pgadm_enabled, true,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
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

/*
 * An amount of memory, in kB; 0 stands for what the long description says.
 */
static void
define_memory(const char *name, const char *short_desc, const char *long_desc,
			  int *variable, GucContext context)
{
	DefineCustomIntVariable(name, short_desc, long_desc, variable, 0,
							0, INT_MAX, context, GUC_UNIT_KB, NULL, NULL, NULL);
}

/*
 * A share of what there is.
 */
static void
define_fraction(const char *name, const char *short_desc, const char *long_desc,
				double *variable, double boot_value)
{
	DefineCustomRealVariable(name, short_desc, long_desc, variable, boot_value,
							 0, 1, PGC_SIGHUP, 0, NULL, NULL, NULL);
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
	define_memory("pg_admission.total_memory",
				  "Memory that this server may use for its processes.",
				  "0 means as much as is detected.",
				  &pgadm_total_memory, PGC_SIGHUP);
	define_fraction("pg_admission.memory_fraction",
					"Share of the total memory that queries may use.",
					NULL,
					&pgadm_memory_fraction, 0.5);
	define_memory("pg_admission.query_memory_limit",
				  "Largest amount of memory that a query is charged, and gets.",
				  "A query that would need more is given less work_mem.  0 means no limit.",
				  &pgadm_query_memory_limit, PGC_USERSET);
	define_memory("pg_admission.query_memory",
				  "Memory that a query is charged instead of the estimate from its plan.",
				  "0 means the estimate.",
				  &pgadm_query_memory, PGC_SUSET);
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
define_breaker(const BreakerDefinition *breaker)
{
	DefineCustomRealVariable(breaker->threshold_name, breaker->threshold_desc,
							 "0 turns the breaker off.",
							 &breaker->settings->threshold, 0,
							 0, breaker->threshold_max,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomStringVariable(breaker->statements_name, breaker->statements_desc,
							   NULL,
							   &breaker->settings->statement_list, "read",
							   PGC_SIGHUP, GUC_LIST_INPUT,
							   check_statements, breaker->assign_statements, NULL);
	DefineCustomBoolVariable(breaker->warn_only_name, breaker->warn_only_desc,
							 NULL,
							 &breaker->settings->warn_only, false,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
}

static void
define_breaker_settings(void)
{
	for (int i = 0; i < lengthof(breaker_definitions); i++)
		define_breaker(&breaker_definitions[i]);
}

/*
 * A time that a state of the server lasts, in ms.
 */
static void
define_duration(const char *name, const char *short_desc,
				int *variable, int boot_value)
{
	DefineCustomIntVariable(name, short_desc, NULL, variable, boot_value,
							0, INT_MAX, PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL);
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
	define_duration("pg_admission.cpu_wait_warn_duration",
					"Time that the CPU wait ratio must stay there for a warning to be raised or cleared.",
					&pgadm_cpu_wait_warn_duration, 600000);
	define_fraction("pg_admission.memory_warn_ratio",
					"Share of the memory limit in use at which a warning is raised.",
					"0 turns the warning off.",
					&pgadm_memory_warn_ratio, 0.9);
	define_fraction("pg_admission.memory_clear_ratio",
					"Share of the memory limit in use under which the warning is cleared.",
					NULL,
					&pgadm_memory_clear_ratio, 0.8);
	define_duration("pg_admission.memory_warn_duration",
					"Time that memory usage must stay there for a warning to be raised or cleared.",
					&pgadm_memory_warn_duration, 600000);
	define_duration("pg_admission.queue_warn_duration",
					"Time during which queries must be throttled for a warning to be raised.",
					&pgadm_queue_warn_duration, 300000);
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
	define_duration("pg_admission.log_interval",
					"Shortest time between two summaries of refused queries in the server log.",
					&pgadm_log_interval, 10000);
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
	define_breaker_settings();
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
