/*-------------------------------------------------------------------------
 *
 * settings.h
 *		Every setting of pg_admission.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/settings.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGADM_SETTINGS_H
#define PGADM_SETTINGS_H

typedef enum PgAdmMode
{
	PGADM_MODE_OFF,
	PGADM_MODE_OBSERVE,
	PGADM_MODE_ENFORCE,
} PgAdmMode;

typedef enum PgAdmShedding
{
	PGADM_SHEDDING_MANAGED,
	PGADM_SHEDDING_ON,
	PGADM_SHEDDING_OFF,
} PgAdmShedding;

typedef enum PgAdmOversize
{
	PGADM_OVERSIZE_REJECT,
	PGADM_OVERSIZE_SHRINK,
	PGADM_OVERSIZE_ALONE,
} PgAdmOversize;

typedef enum PgAdmLogRejections
{
	PGADM_LOG_SUMMARY,
	PGADM_LOG_ALL,
	PGADM_LOG_NONE,
} PgAdmLogRejections;

/* The settings of a built-in circuit breaker */
typedef struct PgAdmBreakerSettings
{
	double		threshold;		/* 0: off */
	char	   *statement_list;
	int			statements;		/* the same, PGADM_LOAD_STATEMENT_... */
	bool		warn_only;
} PgAdmBreakerSettings;

/* What a session decides for itself; times in ms, memory in kB */
extern int	pgadm_mode;
extern bool pgadm_mode_is_local;
extern int	pgadm_queue_timeout;
extern bool pgadm_queue_timeout_is_local;
extern int	pgadm_query_memory_limit;
extern int	pgadm_query_memory;
extern int	pgadm_query_workers;
extern int	pgadm_oversize;
extern bool pgadm_bypass;
extern double pgadm_min_cpu_wait_ratio_to_reject;
extern double pgadm_max_cpu_wait_ratio_to_reject;

/* The server's, which backends read where a stale value does no harm */
extern bool pgadm_exempt_superuser;
extern char *pgadm_exempt_roles;
extern uint64 pgadm_exempt_roles_changes;	/* times it was assigned */
extern double pgadm_exempt_cost;
extern double pgadm_min_cpu_wait_ratio_to_drop;
extern double pgadm_max_cpu_wait_ratio_to_drop;
extern int	pgadm_log_rejections;
extern int	pgadm_log_interval;

/*
 * The server's, which backends do not read: the postmaster and the sampler
 * publish what follows from them in shared memory
 */
extern bool pgadm_enabled;
extern int	pgadm_load_shedding;
extern int	pgadm_queue_capacity;
extern double pgadm_cores;
extern double pgadm_cores_multiplier;
extern int	pgadm_total_memory;
extern double pgadm_memory_fraction;
extern int	pgadm_sample_interval;
extern int	pgadm_cpu_busy_time_threshold;
extern PgAdmBreakerSettings pgadm_memory_breaker;
extern PgAdmBreakerSettings pgadm_cpu_breaker;
extern PgAdmBreakerSettings pgadm_load_average_breaker;
extern double pgadm_cpu_wait_warn_ratio;
extern double pgadm_cpu_wait_clear_ratio;
extern int	pgadm_cpu_wait_warn_duration;
extern double pgadm_memory_warn_ratio;
extern double pgadm_memory_clear_ratio;
extern int	pgadm_memory_warn_duration;
extern int	pgadm_queue_warn_duration;

extern void pgadm_settings_init(void);
extern const char *pgadm_settings_mode_name(PgAdmMode mode);

#endif							/* PGADM_SETTINGS_H */
