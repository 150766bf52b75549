/*-------------------------------------------------------------------------
 *
 * workmem.c
 *		A query's lowered work_mem, put on and taken off.
 *
 * A lowered claim is enforced by giving the operators of this query less.  So
 * the setting is changed in a GUC nest level of its own, as for a function
 * with a SET clause; if the variable were only assigned to, parallel workers
 * would not hear of it.  Nest levels have to be left in reverse order, but
 * cursors interleave.  So there is a level around each phase of the executor
 * instead of one from start to end, and the session's own setting is in force
 * whenever this query's executor does not run.
 *
 * If a phase fails, its level is left to the abort of the transaction or
 * subtransaction, which ends it together with all levels inside.
 *
 * A function inside of the query may change the setting.  Then the new value
 * counts, for the rest of the query and afterwards, as it would without
 * pg_admission.  A level that ends as a commit hands on what was SET in it,
 * but not what was SET LOCAL, so that is done again in the level around.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/workmem.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat.h"
#include "miscadmin.h"
#include "utils/guc.h"
#include "workmem.h"

static const struct
{
	const char *name;
	int		   *value;			/* in kB */
}			settings[] =
{
	[PGADM_WORKMEM_WORK_MEM] = {"work_mem", &work_mem},
	[PGADM_WORKMEM_MAINTENANCE] = {"maintenance_work_mem", &maintenance_work_mem},
};

static void
set(PgAdmWorkmemKind kind, int kb, GucAction action)
{
	char		text[12];

	snprintf(text, sizeof(text), "%d", kb);
	(void) set_config_option(settings[kind].name, text, PGC_USERSET,
							 PGC_S_SESSION, action, true, 0, false);
}

/*
 * A phase of the statement begins.  Returns what pgadm_workmem_take_off() must
 * be given when it is over, unless it ends in an error.
 */
PgAdmWorkmemLevel
pgadm_workmem_put_on(const PgAdmWorkmem *workmem)
{
	PgAdmWorkmemLevel level = {0};

	/* It is never more than what the session itself would give. */
	if (workmem->kind == PGADM_WORKMEM_NONE ||
		*settings[workmem->kind].value <= workmem->kb)
		return level;

	level.nest_level = NewGUCNestLevel();
	level.lxid = PGADM_MY_LXID;
	set(workmem->kind, workmem->kb, GUC_ACTION_SAVE);
	return level;
}

/*
 * That phase is over.  If a command has committed its transaction inside, that
 * has ended the level.
 */
void
pgadm_workmem_take_off(PgAdmWorkmem *workmem, PgAdmWorkmemLevel level)
{
	PgAdmWorkmemKind kind = workmem->kind;
	int			kb;

	if (level.nest_level == 0 || level.lxid != PGADM_MY_LXID)
		return;

	kb = *settings[kind].value;
	AtEOXact_GUC(true, level.nest_level);

	if (kb != workmem->kb)
	{
		workmem->kind = PGADM_WORKMEM_NONE;
		if (kb != *settings[kind].value)
			set(kind, kb, GUC_ACTION_LOCAL);
	}
}
