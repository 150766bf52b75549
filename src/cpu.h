/*-------------------------------------------------------------------------
 *
 * cpu.h
 *		CPU wait and busy time of this server's processes.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/cpu.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGADM_CPU_H
#define PGADM_CPU_H

#include "load.h"
#include "storage/spin.h"

/* A process that has used much CPU time since the sample before */
typedef struct PgAdmCpuConsumer
{
	int			pid;
	int64		busy_us;
} PgAdmCpuConsumer;

#define PGADM_CPU_NCONSUMERS	3

/*
 * CPU time of the server's processes, under a spinlock of its own; see cpu.c.
 */
typedef struct PgAdmCpu
{
	slock_t		mutex;
	int64		busy_ns;
	int64		wait_ns;
} PgAdmCpu;

/* How much of a process is in the sums */
typedef struct PgAdmCpuAccount
{
	int			pid;
	bool		exited;
	int64		run_ns;
	int64		wait_ns;
} PgAdmCpuAccount;

extern void pgadm_cpu_join(void) pg_attribute_hot;
extern void pgadm_cpu_note_activity(void) pg_attribute_hot;
extern void pgadm_cpu_begin_statement(void) pg_attribute_hot;
extern void pgadm_cpu_end_statement(void) pg_attribute_hot;
extern void pgadm_cpu_sample(PgAdmLoadTotals *totals,
							 PgAdmCpuConsumer *consumers);

#endif							/* PGADM_CPU_H */
