/*-------------------------------------------------------------------------
 *
 * hooks.c
 *		Where PostgreSQL calls pg_admission.
 *
 * Every hook calls the one that was there before it, or the standard
 * function.  The decisions are made in other files.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/hooks.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "admission.h"
#include "capacity.h"
#include "connection.h"
#include "cpu.h"
#include "errors.h"
#include "executor/executor.h"
#include "hooks.h"
#include "libpq/auth.h"
#include "miscadmin.h"
#include "nesting.h"
#include "optimizer/planner.h"
#include "shared.h"
#include "stand_in.h"
#include "storage/ipc.h"
#include "tcop/utility.h"
#include "utils/resowner.h"

static shmem_request_hook_type prev_shmem_request = NULL;
static shmem_startup_hook_type prev_shmem_startup = NULL;
static planner_hook_type prev_planner = NULL;
static ExecutorStart_hook_type prev_ExecutorStart = NULL;
static ExecutorRun_hook_type prev_ExecutorRun = NULL;
static ExecutorFinish_hook_type prev_ExecutorFinish = NULL;
static ExecutorEnd_hook_type prev_ExecutorEnd = NULL;
static ProcessUtility_hook_type prev_ProcessUtility = NULL;
static ClientAuthentication_hook_type prev_ClientAuthentication = NULL;
static emit_log_hook_type prev_emit_log = NULL;

/*
 * A phase of a statement, around the call of the hook before: the frame is
 * that of nested statements, and a lowered work_mem is in force.
 */
typedef struct PgAdmPhase
{
	PgAdmFrame	outer;
	PgAdmWorkmemLevel level;
	QueryDesc  *queryDesc;		/* NULL for a utility command */
	PgAdmAdmission *command;	/* an admitted utility command, or NULL */
} PgAdmPhase;

/*
 * A query begins a phase; nested statements pass if it is admitted.  What
 * could fail comes first, so that nothing has been entered then.
 */
static inline void
begin_query_phase(PgAdmPhase *phase, QueryDesc *queryDesc, bool admitted)
{
	phase->queryDesc = queryDesc;
	phase->command = NULL;
	phase->level = pgadm_admission_put_on_workmem(queryDesc);
	phase->outer = pgadm_nesting_enter(admitted);
}

/*
 * The same for a utility command, which has a single one.
 */
static inline void
begin_command_phase(PgAdmPhase *phase, const PlannedStmt *pstmt,
					ProcessUtilityContext context)
{
	phase->queryDesc = NULL;
	phase->command = pgadm_admission_start_utility(pstmt, context, &phase->level);
	phase->outer = pgadm_nesting_enter_utility(phase->command != NULL,
											   pstmt->utilityStmt);
}

/*
 * The phase is over.  If it ends in an error, the setting is left to the
 * abort.
 */
static inline void
end_phase(PgAdmPhase *phase, bool succeeded)
{
	if (!succeeded)
		phase->level.watched = false;

	pgadm_nesting_leave(phase->outer);
	if (phase->queryDesc != NULL)
		pgadm_admission_take_off_workmem(phase->queryDesc, phase->level);
	else if (phase->command != NULL)
		pgadm_admission_end_utility(phase->command, phase->level);
}

static void
shmem_request(void)
{
	if (prev_shmem_request)
		prev_shmem_request();
	pgadm_shared_request();
}

static void
shmem_startup(void)
{
	if (prev_shmem_startup)
		prev_shmem_startup();
	pgadm_shared_startup();
	if (!IsUnderPostmaster)
		pgadm_capacity_publish(false);
}

static pg_attribute_hot PlannedStmt *
planner_entry(Query *parse, const char *query_string, int cursorOptions,
			  ParamListInfo boundParams)
{
	PlannedStmt *result;
	PgAdmFrame	outer;

	if (pgadm_nesting_is_outermost())
		pgadm_stand_in_at_statement();
	pgadm_admission_plan(parse);

	outer = pgadm_nesting_enter_planner();
	PG_TRY();
	{
		if (prev_planner)
			result = prev_planner(parse, query_string, cursorOptions, boundParams);
		else
			result = standard_planner(parse, query_string, cursorOptions,
									  boundParams);
	}
	PG_FINALLY();
	{
		pgadm_nesting_leave(outer);
	}
	PG_END_TRY();

	return result;
}

static pg_attribute_hot void
executor_start(QueryDesc *queryDesc, int eflags)
{
	PgAdmPhase	phase;

	if (pgadm_nesting_is_outermost())
		pgadm_stand_in_at_statement();
	begin_query_phase(&phase, queryDesc,
					  pgadm_admission_start(queryDesc, eflags));
	PG_TRY();
	{
		if (prev_ExecutorStart)
			prev_ExecutorStart(queryDesc, eflags);
		else
			standard_ExecutorStart(queryDesc, eflags);
		pgadm_admission_started(queryDesc);
	}
	PG_CATCH();
	{
		end_phase(&phase, false);
		PG_RE_THROW();
	}
	PG_END_TRY();
	end_phase(&phase, true);
}

static pg_attribute_hot void
executor_run(QueryDesc *queryDesc, ScanDirection direction, uint64 count,
			 bool execute_once)
{
	PgAdmPhase	phase;

	begin_query_phase(&phase, queryDesc,
					  pgadm_admission_run(queryDesc, direction));
	PG_TRY();
	{
		if (prev_ExecutorRun)
			prev_ExecutorRun(queryDesc, direction, count, execute_once);
		else
			standard_ExecutorRun(queryDesc, direction, count, execute_once);
	}
	PG_CATCH();
	{
		end_phase(&phase, false);
		PG_RE_THROW();
	}
	PG_END_TRY();
	end_phase(&phase, true);

	pgadm_admission_ran(queryDesc, execute_once);
}

static pg_attribute_hot void
executor_finish(QueryDesc *queryDesc)
{
	PgAdmPhase	phase;

	begin_query_phase(&phase, queryDesc, pgadm_admission_is_admitted(queryDesc));
	PG_TRY();
	{
		if (prev_ExecutorFinish)
			prev_ExecutorFinish(queryDesc);
		else
			standard_ExecutorFinish(queryDesc);
	}
	PG_CATCH();
	{
		end_phase(&phase, false);
		PG_RE_THROW();
	}
	PG_END_TRY();
	end_phase(&phase, true);
}

static pg_attribute_hot void
executor_end(QueryDesc *queryDesc)
{
	PgAdmWorkmemLevel level = pgadm_admission_put_on_workmem(queryDesc);

	pgadm_admission_ending(queryDesc);
	if (prev_ExecutorEnd)
		prev_ExecutorEnd(queryDesc);
	else
		standard_ExecutorEnd(queryDesc);

	pgadm_admission_take_off_workmem(queryDesc, level);
	pgadm_admission_end(queryDesc);
}

static pg_attribute_hot void
process_utility(PlannedStmt *pstmt, const char *queryString,
				bool readOnlyTree, ProcessUtilityContext context,
				ParamListInfo params, QueryEnvironment *queryEnv,
				DestReceiver *dest, QueryCompletion *qc)
{
	DeclareCursorStmt *declare = IsA(pstmt->utilityStmt, DeclareCursorStmt) ?
		castNode(DeclareCursorStmt, pstmt->utilityStmt) : NULL;
	PgAdmPhase	phase;

	if (pgadm_nesting_is_outermost())
		pgadm_stand_in_at_statement();
	begin_command_phase(&phase, pstmt, context);
	PG_TRY();
	{
		if (prev_ProcessUtility)
			prev_ProcessUtility(pstmt, queryString, readOnlyTree, context,
								params, queryEnv, dest, qc);
		else
			standard_ProcessUtility(pstmt, queryString, readOnlyTree, context,
									params, queryEnv, dest, qc);
	}
	PG_CATCH();
	{
		end_phase(&phase, false);
		PG_RE_THROW();
	}
	PG_END_TRY();
	end_phase(&phase, true);

	/* Other commands may have freed their statement by now. */
	if (declare != NULL)
		pgadm_admission_declared(declare);
}

/*
 * After the locks: other queries may hold workers while they wait for those.
 */
static pg_attribute_hot void
resource_release(ResourceReleasePhase phase, bool isCommit, bool isTopLevel,
				 void *arg)
{
	if (phase == RESOURCE_RELEASE_AFTER_LOCKS)
		pgadm_admission_release_owner(CurrentResourceOwner);
}

static void
client_authentication(Port *port, int status)
{
	pgadm_cpu_join();
	if (prev_ClientAuthentication)
		prev_ClientAuthentication(port, status);
	if (status == STATUS_OK)
		pgadm_connection_admit(port);
}

static void
emit_log(ErrorData *edata)
{
	pgadm_errors_filter_log(edata);
	if (prev_emit_log)
		prev_emit_log(edata);
}

void
pgadm_hooks_install(void)
{
	prev_shmem_request = shmem_request_hook;
	shmem_request_hook = shmem_request;
	prev_shmem_startup = shmem_startup_hook;
	shmem_startup_hook = shmem_startup;
	prev_planner = planner_hook;
	planner_hook = planner_entry;
	prev_ExecutorStart = ExecutorStart_hook;
	ExecutorStart_hook = executor_start;
	prev_ExecutorRun = ExecutorRun_hook;
	ExecutorRun_hook = executor_run;
	prev_ExecutorFinish = ExecutorFinish_hook;
	ExecutorFinish_hook = executor_finish;
	prev_ExecutorEnd = ExecutorEnd_hook;
	ExecutorEnd_hook = executor_end;
	prev_ProcessUtility = ProcessUtility_hook;
	ProcessUtility_hook = process_utility;
	prev_ClientAuthentication = ClientAuthentication_hook;
	ClientAuthentication_hook = client_authentication;
	prev_emit_log = emit_log_hook;
	emit_log_hook = emit_log;

	RegisterResourceReleaseCallback(resource_release, NULL);
}
