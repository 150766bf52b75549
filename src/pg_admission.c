/*-------------------------------------------------------------------------
 *
 * pg_admission.c
 *		Admission control and overload protection for PostgreSQL.
 *
 * This file loads the library; see src/README for what is where.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/pg_admission.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "hooks.h"
#include "miscadmin.h"
#include "sampler.h"
#include "settings.h"

PG_MODULE_MAGIC;

PGDLLEXPORT void _PG_init(void);

void
_PG_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
	{
		/* The schema of an upgraded database is restored without us. */
		if (IsBinaryUpgrade)
			return;
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("pg_admission must be loaded via shared_preload_libraries"),
				 errhint("Add pg_admission to \"shared_preload_libraries\" and restart the server.")));
	}

	pgadm_settings_init();
	pgadm_hooks_install();
	pgadm_sampler_register();
}
