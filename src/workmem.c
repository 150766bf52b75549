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
 * A claim that is not lowered is enforced in the same way, for a query whose
 * session raises its settings between two of its runs.  Then there is a level
 * only around the runs for which they are higher than when it made its claim.
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
set_text(const char *name, const char *text, GucAction action)
{
	(void) set_config_option(name, text, PGC_USERSET, PGC_S_SESSION, action,
							 true, 0, false);
}

static void
set(PgAdmWorkmemKind kind, int kb, GucAction action)
{
	char		text[12];

	snprintf(text, sizeof(text), "%d", kb);
	set_text(settings[kind].name, text, action);
}

static void
set_multiplier(double multiplier, GucAction action)
{
	char		text[32];

	snprintf(text, sizeof(text), "%.17g", multiplier);
	set_text("hash_mem_multiplier", text, action);
}

/*
 * What is in force now, of that kind.
 */
static PgAdmWorkmem
in_force(PgAdmWorkmemKind kind)
{
	PgAdmWorkmem now = {
		.kind = kind,
		.kb = *settings[kind].value,
		.hash_mem_multiplier = hash_mem_multiplier,
	};

	return now;
}

/*
 * The work_mem of a query that is to keep to what it claims under the present
 * settings: the lowered one, if it has been lowered, else the session's.
 */
PgAdmWorkmem
pgadm_workmem_keep(PgAdmWorkmem workmem)
{
	PgAdmWorkmem kept = in_force(PGADM_WORKMEM_WORK_MEM);

	if (workmem.kind == PGADM_WORKMEM_WORK_MEM)
		kept.kb = Min(kept.kb, workmem.kb);
	return kept;
}

/*
 * The lower of two limits, of which either may be none.
 */
PgAdmWorkmem
pgadm_workmem_least(PgAdmWorkmem a, PgAdmWorkmem b)
{
	if (a.kind == PGADM_WORKMEM_NONE)
		return b;
	if (b.kind == a.kind)
		a.kb = Min(a.kb, b.kb);
	return a;
}

/*
 * Is that less memory than the session itself gives?
 */
bool
pgadm_workmem_is_lower(const PgAdmWorkmem *workmem)
{
	return workmem->kind != PGADM_WORKMEM_NONE &&
		workmem->kb < *settings[workmem->kind].value;
}

/*
 * Would the session give more than that?
 */
static bool
exceeds(const PgAdmWorkmem *now, const PgAdmWorkmem *most)
{
	return now->kb > most->kb ||
		(most->hash_mem_multiplier > 0 &&
		 now->hash_mem_multiplier > most->hash_mem_multiplier);
}

/*
 * A phase of the statement begins.  Returns what pgadm_workmem_take_off() must
 * be given when it is over, unless it ends in an error.
 */
PgAdmWorkmemLevel
pgadm_workmem_put_on(const PgAdmWorkmem *workmem)
{
	PgAdmWorkmemLevel level = {0};
	PgAdmWorkmem now;

	if (workmem->kind == PGADM_WORKMEM_NONE)
		return level;

	level.watched = true;
	level.lxid = PGADM_MY_LXID;
	now = in_force(workmem->kind);

	/* It is never more than what the session itself would give. */
	if (exceeds(&now, workmem))
	{
		level.nest_level = NewGUCNestLevel();
		if (now.kb > workmem->kb)
			set(workmem->kind, workmem->kb, GUC_ACTION_SAVE);
		if (workmem->hash_mem_multiplier > 0 &&
			now.hash_mem_multiplier > workmem->hash_mem_multiplier)
			set_multiplier(workmem->hash_mem_multiplier, GUC_ACTION_SAVE);
	}
	level.in_force = in_force(workmem->kind);
	return level;
}

/*
 * End a level, and do again in the level around it what was SET LOCAL inside.
 */
static void
end_level(PgAdmWorkmemLevel level, const PgAdmWorkmem *now)
{
	AtEOXact_GUC(true, level.nest_level);

	if (now->kb != level.in_force.kb && now->kb != *settings[now->kind].value)
		set(now->kind, now->kb, GUC_ACTION_LOCAL);
	if (now->hash_mem_multiplier != level.in_force.hash_mem_multiplier &&
		now->hash_mem_multiplier != hash_mem_multiplier)
		set_multiplier(now->hash_mem_multiplier, GUC_ACTION_LOCAL);
}

/*
 * That phase is over.  If a command has committed its transaction inside, that
 * has ended the level.
 */
void
pgadm_workmem_take_off(PgAdmWorkmem *workmem, PgAdmWorkmemLevel level)
{
	PgAdmWorkmem now;

	if (!level.watched || level.lxid != PGADM_MY_LXID)
		return;

	now = in_force(level.in_force.kind);
	if (level.nest_level != 0)
		end_level(level, &now);

	if (now.kb != level.in_force.kb ||
		now.hash_mem_multiplier != level.in_force.hash_mem_multiplier)
		workmem->kind = PGADM_WORKMEM_NONE;
}
