/*-------------------------------------------------------------------------
 *
 * shed.c
 *		Load shedding: what is refused by chance because of the CPU.
 *
 * The probability grows with the CPU wait ratio of the last sample.  Without a
 * sample, or with a stale one, it is 0.
 *
 * Locking: the caller holds the admission lock, unless a stale answer does no
 * harm.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/shed.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "settings.h"
#include "shared.h"
#include "shed.h"

static double
probability(double min, double max, TimestampTz now)
{
	const PgAdmServerLoad *load = &pgadm_shared->load;

	return pgadm_load_reject_probability(pgadm_load_fresh(load->sample.cpu_wait_ratio,
														  load->sample.sampled_at,
														  now, load->interval_ms),
										 min, max);
}

/*
 * Is a query to be refused?  "draw" is a random number that it has drawn.
 */
bool
pgadm_shed_query(double min_wait_ratio, double max_wait_ratio, double draw,
				 TimestampTz now)
{
	if (min_wait_ratio >= max_wait_ratio)
		return false;
	return pgadm_load_draw(probability(min_wait_ratio, max_wait_ratio, now), draw);
}

/*
 * Is a new connection to be refused?  One draw holds for a role, an address and
 * a sample.
 */
bool
pgadm_shed_connection(const char *role, const char *address, TimestampTz now)
{
	return pgadm_load_draw(probability(pgadm_min_cpu_wait_ratio_to_drop,
									   pgadm_max_cpu_wait_ratio_to_drop, now),
						   pgadm_load_connection_uniform(role, address,
														 pgadm_shared->load.number));
}
