/*-------------------------------------------------------------------------
 *
 * torture.c
 *		Do everything at once, at random, and see that nothing is leaked or
 *		hangs.
 *
 * Each client is a thread with a connection that does what clients do, in
 * random order, and is rude about it: it cancels, leaves transactions in the
 * middle and goes away without a word.  A disturber cancels, terminates and
 * stops backends and changes every limit.  The main thread stops all of them
 * at random instants, and when they have come to rest compares the gauges with
 * 0 and the counters with each other.  While they work it looks for anybody
 * whose wait is longer than it may be.
 *
 * The seed decides what each client does, in which order; how that interleaves
 * is up to the machine.
 *
 * See --help.  The server and its roles, tables and functions are made by
 * test/t/robustness/290_torture.pl.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  test/torture/torture.c
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <libpq-fe.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MAX_CLIENTS			500

/*
 * Longer than anything may take, seconds.  If the main thread itself gets no
 * chance to look for STALL seconds, the machine stands still, and nobody is
 * late until everybody has had the time again.
 */
#define STALL				3
#define STATEMENT_TIMEOUT	15	/* set in every session */
#define STATEMENT_BOUND		40	/* a statement, from the client's side */
#define WAIT_BOUND			20	/* a wait in the queue, which with
									 * load_shedding = off only the statement
									 * timeout ends */
#define REST_BOUND			60	/* until everybody has come to rest */

#define HOT_ROWS			5
#define MANY_ROWS			20000

/* ---- what everybody shares ---------------------------------------------- */

typedef struct Client
{
	int			number;
	uint64_t	random;			/* the generator's state */
	PGconn	   *conn;
	bool		prepared;
	const char *volatile doing; /* a statement, or NULL */
	volatile time_t since;
} Client;

static int	nclients = 50;
static int	nseconds = 60;
static uint64_t seed = 0;
static const char *conninfo = "";
static bool stop_processes = false;
static bool verbose = false;
static bool scarce = false;		/* memory is */

static Client clients[MAX_CLIENTS];

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t resumed = PTHREAD_COND_INITIALIZER;
static int	nresting = 0;
static volatile bool resting = false;
static volatile bool finished = false;

static bool failed = false;

/* Results by SQLSTATE */
#define MAX_STATES 100
static struct
{
	char		state[6];
	long		n;
}			states[MAX_STATES];
static long statement_timeouts = 0;
static long disturbances = 0;

static void
problem(const char *format,...)
{
	va_list		args;

	pthread_mutex_lock(&mutex);
	failed = true;
	printf("PROBLEM: ");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
	pthread_mutex_unlock(&mutex);
}

/* splitmix64 */
static uint64_t
next_random(uint64_t *state)
{
	uint64_t	z = (*state += UINT64_C(0x9E3779B97F4A7C15));

	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

static int
below(Client *c, int n)
{
	return (int) (next_random(&c->random) % (uint64_t) n);
}

static bool
chance(Client *c, int percent)
{
	return below(c, 100) < percent;
}

static void
sleep_ms(int ms)
{
	struct timespec t = {ms / 1000, (ms % 1000) * 1000000L};

	nanosleep(&t, NULL);
}

static void
pause_up_to(Client *c, int ms)
{
	sleep_ms(below(c, ms + 1));
}

/* ---- results ------------------------------------------------------------ */

static void
count_state(const char *state)
{
	pthread_mutex_lock(&mutex);
	for (int i = 0; i < MAX_STATES; i++)
	{
		if (states[i].n == 0)
			snprintf(states[i].state, sizeof(states[i].state), "%s", state);
		if (strcmp(states[i].state, state) == 0)
		{
			states[i].n++;
			break;
		}
	}
	pthread_mutex_unlock(&mutex);
}

/*
 * Errors that are expected from so much at once.
 */
static bool
is_expected(const char *state, const char *message)
{
	static const char *const expected[] = {
		"53A01", "54A01",		/* ours */
		"57014", "57P01",		/* cancelled, terminated */
		"40P01", "40001", "55P03",	/* deadlock, serialization, lock timeout */
		"25P01", "25P02",		/* in no, or a failed, transaction */
		"25P03",				/* idle in transaction timeout */
		"22012",				/* division by zero, ours */
		"23503", "23505",		/* foreign key, unique */
		"42P01", "42P07", "42701", "42703", "42704", "42710",	/* DDL of others */
		"34000", "26000",		/* cursor, prepared statement is gone */
		"55000", "55006",		/* DDL of others, object in use */
		"0A000",				/* a cached plan's result type */
		"42P03",				/* cursor exists */
		"53300",				/* too many connections */
		"08006", "08001", "08003", "58000"	/* of dblink and postgres_fdw */
	};
	static const char *const messages[] = {
		"tuple concurrently updated", "tuple concurrently deleted",
		"could not open relation with OID", "cache lookup failed",
		"deadlock detected", "could not find",
	};

	for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++)
	{
		if (strcmp(state, expected[i]) == 0)
			return true;
	}
	for (size_t i = 0; i < sizeof(messages) / sizeof(*messages); i++)
	{
		if (strcmp(state, "XX000") == 0 && strstr(message, messages[i]) != NULL)
			return true;
	}
	return false;
}

static void
judge(Client *c, const PGresult *result)
{
	const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);

	switch (PQresultStatus(result))
	{
		case PGRES_FATAL_ERROR:
			break;
		case PGRES_NONFATAL_ERROR:
		case PGRES_BAD_RESPONSE:
			problem("client %d: %s", c->number, PQresultErrorMessage(result));
			return;
		default:
			return;
	}

	if (state == NULL)			/* the connection is gone */
	{
		count_state("gone");
		return;
	}
	count_state(state);
	if (strstr(message, "statement timeout") != NULL)
	{
		pthread_mutex_lock(&mutex);
		statement_timeouts++;
		pthread_mutex_unlock(&mutex);
	}
	if (!is_expected(state, message))
		problem("client %d: %s: %s in: %s", c->number, state, message,
				c->doing ? c->doing : "?");
}

static void
begin_doing(Client *c, const char *what)
{
	c->since = time(NULL);
	c->doing = what;
}

static void
end_doing(Client *c)
{
	c->doing = NULL;
}

/*
 * Take all results that are due.  COPY data is read; COPY IN is ended.
 */
static bool
take_results(Client *c)
{
	PGresult   *result;
	bool		good = true;

	while ((result = PQgetResult(c->conn)) != NULL)
	{
		ExecStatusType status = PQresultStatus(result);

		judge(c, result);
		PQclear(result);
		if (status == PGRES_FATAL_ERROR)
			good = false;
		if (status == PGRES_COPY_IN)
			PQputCopyEnd(c->conn, "no data");
		if (status == PGRES_COPY_OUT)
		{
			char	   *row;

			while (PQgetCopyData(c->conn, &row, 0) > 0)
				PQfreemem(row);
		}
		if (PQstatus(c->conn) != CONNECTION_OK)
			return false;
	}
	return good;
}

static bool
run(Client *c, const char *format,...)
{
	char		sql[2000];
	va_list		args;
	bool		good;

	va_start(args, format);
	vsnprintf(sql, sizeof(sql), format, args);
	va_end(args);

	begin_doing(c, sql);
	good = PQsendQuery(c->conn, sql) && take_results(c);
	end_doing(c);
	return good;
}

static bool
run_extended(Client *c, const char *sql, int argument)
{
	char		text[20];
	const char *values[1] = {text};
	bool		good;

	snprintf(text, sizeof(text), "%d", argument);
	begin_doing(c, sql);
	good = PQsendQueryParams(c->conn, sql, 1, NULL, values, NULL, NULL, 0) &&
		take_results(c);
	end_doing(c);
	return good;
}

/* ---- queries ------------------------------------------------------------ */

static void connect_client(Client *c);

/*
 * A query that reads, small or large, without side effects.
 */
static const char *
some_query(Client *c)
{
	/* Each claims 2 to 8 MB. */
	static const char *const hungry[] = {
		"SELECT count(*) FROM (SELECT pad FROM many ORDER BY pad OFFSET 0) s",
		"SELECT count(*) FROM (SELECT DISTINCT pad FROM many ORDER BY pad OFFSET 0) s",
		"SELECT count(*) FROM many a JOIN many b USING (pad)",
		"SELECT count(*), pg_sleep(0.3) FROM (SELECT pad FROM many ORDER BY pad OFFSET 0) s",
		"WITH m AS MATERIALIZED (SELECT * FROM many) SELECT count(*) FROM m a JOIN m b ON a.id = b.id",
	};
	static const char *const queries[] = {
		"SELECT count(*) FROM many",
		"SELECT sum(n) FROM hot",
		"SELECT * FROM many WHERE id = 77",
		"SELECT id, pad FROM many ORDER BY pad, id DESC LIMIT 10",
		"SELECT v, count(*) FROM many GROUP BY v ORDER BY 2 LIMIT 3",
		"SELECT count(*) FROM many a JOIN many b ON a.id = b.v",
		"SELECT count(*) FROM (SELECT DISTINCT pad FROM many) x",
		"SELECT * FROM ddl1 LIMIT 3",
		"SELECT * FROM ddl2 LIMIT 3",
		"SELECT count(*) FROM child JOIN parent ON parent = parent.id",
		"WITH m AS MATERIALIZED (SELECT * FROM many) SELECT max(pad) FROM m",
		"SELECT f_nested(5)",
		"SELECT f_exception(3)",
		"SELECT * FROM matview ORDER BY v LIMIT 3",
		"SELECT count(*) FROM generate_series(1, 300000)",
		"SELECT relname FROM pg_class ORDER BY relname LIMIT 5",
		"SELECT 1",
	};

	if (scarce && chance(c, 70))
		return hungry[below(c, sizeof(hungry) / sizeof(*hungry))];
	return queries[below(c, sizeof(queries) / sizeof(*queries))];
}

static void
do_simple(Client *c)
{
	run(c, "%s", some_query(c));
}

static void
do_several(Client *c)
{
	run(c, "%s; %s; %s", some_query(c), some_query(c), some_query(c));
}

static void
do_extended(Client *c)
{
	run_extended(c, "SELECT count(*) FROM many WHERE v < $1", below(c, 100));
}

static void
do_prepared(Client *c)
{
	char		text[20];
	const char *values[1] = {text};

	if (!c->prepared)
	{
		PGresult   *result;

		begin_doing(c, "PREPARE");
		result = PQprepare(c->conn, "p", "SELECT max(pad) FROM many WHERE v = $1", 1, NULL);
		end_doing(c);
		judge(c, result);
		c->prepared = PQresultStatus(result) == PGRES_COMMAND_OK;
		PQclear(result);
		if (!c->prepared)
			return;
	}
	snprintf(text, sizeof(text), "%d", below(c, 100));
	begin_doing(c, "EXECUTE");
	if (PQsendQueryPrepared(c->conn, "p", 1, values, NULL, NULL, 0))
		take_results(c);
	end_doing(c);
}

/*
 * Several queries in flight.
 */
static void
do_pipeline(Client *c)
{
	int			n = 1 + below(c, 6);
	int			syncs = 0;

	if (!PQenterPipelineMode(c->conn))
		return;
	begin_doing(c, "pipeline");
	for (int i = 0; i < n; i++)
	{
		PQsendQueryParams(c->conn, some_query(c), 0, NULL, NULL, NULL, NULL, 0);
		if (chance(c, 30) && PQpipelineSync(c->conn))
			syncs++;
	}
	if (PQpipelineSync(c->conn))
		syncs++;
	while (syncs > 0 && PQstatus(c->conn) == CONNECTION_OK)
	{
		PGresult   *result = PQgetResult(c->conn);

		if (result == NULL)
			continue;
		judge(c, result);
		if (PQresultStatus(result) == PGRES_PIPELINE_SYNC)
			syncs--;
		PQclear(result);
	}
	end_doing(c);
	if (PQstatus(c->conn) == CONNECTION_OK)
		PQexitPipelineMode(c->conn);
}

/*
 * A client that reads slowly.
 */
static void
do_slow_reader(Client *c)
{
	PGresult   *result;
	int			rows = 0;

	begin_doing(c, "slow reader");
	if (PQsendQuery(c->conn, "SELECT id, repeat(pad, 20) FROM many"))
	{
		PQsetSingleRowMode(c->conn);
		while ((result = PQgetResult(c->conn)) != NULL)
		{
			if (rows++ % 4000 == 0)
				pause_up_to(c, 300);
			judge(c, result);
			PQclear(result);
		}
	}
	end_doing(c);
}

/* ---- transactions ------------------------------------------------------- */

static void
do_transaction(Client *c)
{
	static const char *const begins[] = {
		"BEGIN", "BEGIN", "BEGIN",
		"BEGIN ISOLATION LEVEL REPEATABLE READ",
		"BEGIN ISOLATION LEVEL SERIALIZABLE",
		"BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE",
		"BEGIN READ ONLY",
	};

	run(c, "%s", begins[below(c, 7)]);
	for (int i = below(c, 5); i >= 0; i--)
	{
		run(c, "%s", some_query(c));
		if (chance(c, 20))
			pause_up_to(c, 200);
	}
	run(c, "%s", chance(c, 70) ? "COMMIT" : "ROLLBACK");
}

static void
do_hot_rows(Client *c)
{
	if (chance(c, 50))
	{
		run(c, "UPDATE hot SET n = n + 1 WHERE id = %d", below(c, HOT_ROWS));
		return;
	}
	run(c, "BEGIN");
	if (chance(c, 30))
		run(c, "%s", some_query(c));
	run(c, "UPDATE hot SET n = n + 1 WHERE id = %d", below(c, HOT_ROWS));
	if (chance(c, 40))
		pause_up_to(c, 300);
	if (chance(c, 30))
		run(c, "%s", some_query(c));
	run(c, chance(c, 50) ? "SELECT * FROM hot WHERE id = %d FOR UPDATE" :
		"UPDATE hot SET n = n + 1 WHERE id = %d", below(c, HOT_ROWS));
	run(c, "%s", chance(c, 80) ? "COMMIT" : "ROLLBACK");
}

static void
do_savepoints(Client *c)
{
	run(c, "BEGIN");
	for (int i = 1 + below(c, 3); i > 0; i--)
	{
		run(c, "SAVEPOINT s");
		if (chance(c, 40))
			run(c, "DECLARE sc%d CURSOR FOR SELECT * FROM many ORDER BY pad; FETCH 2 FROM sc%d", i, i);
		run(c, "%s", some_query(c));
		if (chance(c, 40))
			run(c, "UPDATE hot SET n = n + 1 WHERE id = %d", below(c, HOT_ROWS));
		if (chance(c, 60))
			run(c, "SELECT 1 / (id - 7) FROM many WHERE id < 10");
		run(c, "%s", chance(c, 70) ? "ROLLBACK TO s" : "RELEASE s");
	}
	run(c, "COMMIT");
}

static void
do_cursors(Client *c)
{
	static const char *const queries[] = {
		"SELECT * FROM many ORDER BY pad",
		"SELECT * FROM many",
		"SELECT v, count(*) FROM many GROUP BY v",
		"SELECT * FROM many a JOIN many b USING (id)",
		"SELECT * FROM ddl1",
	};
	int			n = 1 + below(c, 3);
	bool		hold = chance(c, 20);

	run(c, "BEGIN");
	for (int i = 0; i < n; i++)
		run(c, "DECLARE c%d %sCURSOR %sFOR %s", i,
			chance(c, 30) ? "SCROLL " : "", hold ? "WITH HOLD " : "",
			queries[below(c, 5)]);
	for (int i = below(c, 8); i > 0; i--)
	{
		int			which = below(c, n);

		if (chance(c, 85))
			run(c, "%s %d FROM c%d", chance(c, 80) ? "FETCH" : "MOVE",
				1 + below(c, 200), which);
		else
			run(c, "%s", some_query(c));
		if (chance(c, 25))
			pause_up_to(c, 250);
		if (chance(c, 5))
			run(c, "CLOSE c%d", which);
	}
	run(c, "%s", chance(c, 80) ? "COMMIT" : "ROLLBACK");
	if (hold)
		run(c, "FETCH 5 FROM c0; CLOSE ALL");
}

static void
do_refcursor(Client *c)
{
	run(c, "BEGIN");
	run(c, "SELECT f_open('r') FROM hot WHERE id = 1");
	run(c, "FETCH 3 FROM r");
	run(c, "%s", some_query(c));
	run(c, "FETCH 3 FROM r");
	run(c, "COMMIT");
}

static void
do_foreign_key(Client *c)
{
	run(c, "BEGIN");
	run(c, "INSERT INTO child (parent) VALUES (%d)", below(c, 60));
	if (chance(c, 40))
		pause_up_to(c, 150);
	if (chance(c, 50))
		run(c, "DELETE FROM parent WHERE id = %d", below(c, 50));
	if (chance(c, 50))
		run(c, "INSERT INTO parent VALUES (%d)", below(c, 50));
	run(c, "%s", chance(c, 60) ? "COMMIT" : "ROLLBACK");
}

static void
do_two_phase(Client *c)
{
	run(c, "BEGIN");
	run(c, "INSERT INTO child (parent) VALUES (%d)", below(c, 50));
	run(c, "%s", some_query(c));
	if (run(c, "PREPARE TRANSACTION 't%d'", c->number))
	{
		pause_up_to(c, 100);
		run(c, "%s PREPARED 't%d'", chance(c, 50) ? "COMMIT" : "ROLLBACK", c->number);
	}
	else
		run(c, "ROLLBACK");
}

/* ---- locks -------------------------------------------------------------- */

static void
do_lock_table(Client *c)
{
	static const char *const modes[] = {
		"ACCESS SHARE", "ROW EXCLUSIVE", "SHARE", "EXCLUSIVE", "ACCESS EXCLUSIVE"
	};

	run(c, "BEGIN");
	if (chance(c, 50))
		run(c, "%s", some_query(c));
	run(c, "LOCK TABLE ddl%d IN %s MODE%s", 1 + below(c, 2), modes[below(c, 5)],
		chance(c, 30) ? " NOWAIT" : "");
	if (chance(c, 50))
		pause_up_to(c, 200);
	run(c, "%s", some_query(c));
	run(c, "COMMIT");
}

static void
do_advisory(Client *c)
{
	if (chance(c, 50))
	{
		run(c, "SELECT pg_advisory_lock(%d)", below(c, 3));
		run(c, "%s", some_query(c));
		if (chance(c, 30))
			pause_up_to(c, 150);
		run(c, "SELECT pg_advisory_lock(%d), count(*) FROM hot", below(c, 3));
		run(c, "SELECT pg_advisory_unlock_all()");
		return;
	}
	run(c, "BEGIN");
	run(c, "SELECT pg_advisory_xact_lock(%d) FROM hot WHERE id = 1", below(c, 3));
	run(c, "%s", some_query(c));
	run(c, "SELECT pg_advisory_xact_lock_shared(%d)", below(c, 3));
	run(c, "%s", some_query(c));
	run(c, "COMMIT");
}

static void
do_ddl(Client *c)
{
	int			t = 1 + below(c, 2);

	switch (below(c, 8))
	{
		case 0:
			run(c, "ALTER TABLE ddl%d ADD COLUMN IF NOT EXISTS x%d int", t, below(c, 3));
			break;
		case 1:
			run(c, "ALTER TABLE ddl%d DROP COLUMN IF EXISTS x%d", t, below(c, 3));
			break;
		case 2:
			run(c, "ALTER TABLE ddl%d ALTER COLUMN b TYPE %s", t,
				chance(c, 50) ? "int" : "bigint");
			break;
		case 3:
			run(c, "TRUNCATE ddl%d", t);
			break;
		case 4:
			run(c, "BEGIN; DROP TABLE IF EXISTS own%d; CREATE TABLE own%d AS SELECT * FROM many LIMIT 500; COMMIT",
				c->number, c->number);
			run(c, "SELECT count(*) FROM own%d", c->number);
			break;
		case 5:
			run(c, "INSERT INTO ddl%d (b) SELECT v FROM many LIMIT 100", t);
			break;
		case 6:
			run(c, "BEGIN");
			run(c, "SELECT * FROM ddl%d LIMIT 1", t);
			pause_up_to(c, 150);
			run(c, "ALTER TABLE ddl%d ADD COLUMN IF NOT EXISTS x%d int DEFAULT 3", t, below(c, 3));
			run(c, "%s", some_query(c));
			run(c, "%s", chance(c, 50) ? "COMMIT" : "ROLLBACK");
			break;
		default:
			run(c, "COMMENT ON TABLE ddl%d IS 'x'", t);
	}
}

static void
do_maintenance(Client *c)
{
	int			t = 1 + below(c, 2);

	switch (below(c, 11))
	{
		case 0:
			run(c, "CREATE INDEX IF NOT EXISTS ddl%d_b ON ddl%d (b)", t, t);
			break;
		case 1:
			run(c, "DROP INDEX IF EXISTS ddl%d_b", t);
			break;
		case 2:
			if (!run(c, "CREATE INDEX CONCURRENTLY ddl%d_c ON ddl%d (b)", t, t))
				run(c, "DROP INDEX IF EXISTS ddl%d_c", t);
			break;
		case 3:
			run(c, "REINDEX TABLE ddl%d", t);
			break;
		case 4:
			run(c, "VACUUM %s ddl%d", chance(c, 50) ? "(FREEZE)" : "(ANALYZE)", t);
			break;
		case 5:
			run(c, "VACUUM FULL ddl%d", t);
			break;
		case 6:
			run(c, "ANALYZE ddl%d", t);
			break;
		case 7:
			run(c, "CLUSTER ddl%d USING ddl%d_pkey", t, t);
			break;
		case 8:
			run(c, "REFRESH MATERIALIZED VIEW %s matview",
				chance(c, 50) ? "CONCURRENTLY" : "");
			break;
		case 9:
			run(c, "VACUUM (FREEZE) hot");
			break;
		default:
			run(c, "EXPLAIN (ANALYZE, TIMING OFF) %s", some_query(c));
	}
}

/* ---- functions, procedures, COPY, the rest ------------------------------ */

static void
do_functions(Client *c)
{
	switch (below(c, 6))
	{
		case 0:
			run(c, "CALL p_commit(%d)", 1 + below(c, 5));
			break;
		case 1:
			run(c, "DO $$ BEGIN PERFORM count(*) FROM many; PERFORM f_exception(2); "
				"EXCEPTION WHEN others THEN PERFORM count(*) FROM hot; END $$");
			break;
		case 2:
			run(c, "SELECT f_nested(id) FROM hot");
			break;
		case 3:
			run(c, "SELECT f_exception(id) FROM hot");
			break;
		case 4:
			run(c, "DO $$ DECLARE r record; BEGIN FOR r IN SELECT * FROM many LIMIT 50 LOOP "
				"PERFORM max(n) FROM hot; END LOOP; END $$");
			break;
		default:
			run(c, "DO $$ DECLARE r record; BEGIN FOR r IN SELECT * FROM hot LOOP "
				"UPDATE hot SET n = n + 1 WHERE id = r.id; COMMIT; END LOOP; END $$");
	}
}

static void
do_copy(Client *c)
{
	PGresult   *result;

	switch (below(c, 4))
	{
		case 0:
			run(c, "COPY many TO STDOUT");
			return;
		case 1:
			run(c, "COPY (SELECT * FROM many ORDER BY pad LIMIT 1000) TO STDOUT");
			return;
	}

	begin_doing(c, "COPY FROM");
	result = PQexec(c->conn, "COPY child (parent) FROM STDIN");
	judge(c, result);
	if (PQresultStatus(result) == PGRES_COPY_IN)
	{
		for (int i = below(c, 20); i > 0; i--)
		{
			char		row[20];

			snprintf(row, sizeof(row), "%d\n", below(c, 50));
			PQputCopyData(c->conn, row, (int) strlen(row));
			if (chance(c, 10))
				pause_up_to(c, 200);
		}
		/* An error of the client's own is 57014, too. */
		PQputCopyEnd(c->conn, chance(c, 30) ? "changed my mind" : NULL);
	}
	PQclear(result);
	take_results(c);
	end_doing(c);
}

static void
do_temp(Client *c)
{
	run(c, "CREATE TEMP TABLE IF NOT EXISTS mine AS SELECT * FROM many LIMIT 200");
	run(c, "SELECT count(*) FROM mine");
	run(c, "INSERT INTO mine SELECT * FROM mine LIMIT 10");
	if (chance(c, 50))
		run(c, "DROP TABLE IF EXISTS mine");
}

static void
do_loopback(Client *c)
{
	switch (below(c, 3))
	{
		case 0:
			run(c, "SELECT f_dblink('SELECT count(*) FROM many') FROM hot WHERE id = 1");
			break;
		case 1:
			run(c, "SELECT count(*) FROM far_many");
			break;
		default:
			run(c, "SELECT f_dblink('SELECT count(*) FROM far_many') FROM hot WHERE id = 1");
	}
}

/*
 * Both halves of a query claim memory, of which there is perhaps enough for one.
 */
static void
do_hungry_loopback(Client *c)
{
	run(c, "SELECT f_dblink('SELECT count(*) FROM (SELECT pad FROM many ORDER BY pad OFFSET 0) s'), "
		"count(*) FROM (SELECT %s FROM %s ORDER BY 1 OFFSET 0) t",
		chance(c, 50) ? "pad" : "v", chance(c, 50) ? "many" : "far_many");
}

/*
 * A client that wants an answer on another connection while its cursor is open.
 */
static void
do_second_connection(Client *c)
{
	Client		other = *c;

	if (!run(c, "BEGIN; DECLARE c CURSOR FOR SELECT pad FROM many ORDER BY pad; FETCH 5 FROM c"))
	{
		run(c, "ROLLBACK");
		return;
	}
	other.conn = NULL;
	other.prepared = false;
	connect_client(&other);
	if (other.conn != NULL && PQstatus(other.conn) == CONNECTION_OK)
	{
		begin_doing(c, "another connection");
		run(&other, "%s", some_query(c));
		end_doing(c);
	}
	PQfinish(other.conn);
	c->random = other.random;
	run(c, "FETCH 5 FROM c; COMMIT");
}

static void
do_settings(Client *c)
{
	static const char *const settings[] = {
		"work_mem = '64kB'", "work_mem = '4MB'", "work_mem = '30MB'",
		"max_parallel_workers_per_gather = 0", "max_parallel_workers_per_gather = 4",
		"lock_timeout = '300ms'", "lock_timeout = 0",
		"pg_admission.queue_timeout = '1s'", "pg_admission.queue_timeout = '5s'",
		"pg_admission.queue_timeout = '20ms'",
		"plan_cache_mode = force_generic_plan", "plan_cache_mode = auto",
		"default_transaction_isolation = 'repeatable read'",
		"default_transaction_isolation = 'read committed'",
	};

	run(c, "SET %s", settings[below(c, sizeof(settings) / sizeof(*settings))]);
	run(c, "%s", some_query(c));
}

static void
do_sleep(Client *c)
{
	run(c, "BEGIN; SELECT count(*) FROM hot");
	pause_up_to(c, 400);
	run(c, "SELECT pg_sleep(%d * 0.001), count(*) FROM hot", below(c, 200));
	run(c, "COMMIT");
}

/* ---- rudeness ----------------------------------------------------------- */

static void
connect_client(Client *c)
{
	static const char *const roles[] = {
		"torture", "torture", "torture", "torture", "torture_observe"
	};

	while (!finished)
	{
		char		info[1000];

		snprintf(info, sizeof(info),
				 "%s user=%s application_name=client%d options='-c statement_timeout=%ds'",
				 conninfo, roles[below(c, 5)], c->number, STATEMENT_TIMEOUT);
		begin_doing(c, "connect");
		c->conn = PQconnectdb(info);
		end_doing(c);
		c->prepared = false;
		if (PQstatus(c->conn) == CONNECTION_OK)
			return;
		count_state("connect");
		PQfinish(c->conn);
		c->conn = NULL;
		sleep_ms(100);
	}
}

/*
 * Send a query, and cancel it.
 */
static void
do_cancel(Client *c)
{
	PGcancel   *cancel = PQgetCancel(c->conn);
	char		message[256];

	begin_doing(c, "cancel");
	if (cancel != NULL && PQsendQuery(c->conn, some_query(c)))
	{
		pause_up_to(c, 30);
		PQcancel(cancel, message, sizeof(message));
		take_results(c);
	}
	PQfreeCancel(cancel);
	end_doing(c);
}

/*
 * Send a query, and go away without waiting for the answer or a good-bye.
 */
static void
do_go_away(Client *c)
{
	if (chance(c, 50))
		run(c, "BEGIN; DECLARE c CURSOR FOR SELECT * FROM many ORDER BY pad; FETCH 1 FROM c");
	if (PQstatus(c->conn) == CONNECTION_OK && chance(c, 80))
	{
		PQsendQuery(c->conn, some_query(c));
		pause_up_to(c, 30);
	}
	if (PQsocket(c->conn) >= 0)
		shutdown(PQsocket(c->conn), SHUT_RDWR);
	PQfinish(c->conn);
	c->conn = NULL;
}

static void
do_reconnect(Client *c)
{
	PQfinish(c->conn);
	c->conn = NULL;
}

/*
 * What a client may do next, and how often.
 */
typedef struct Action
{
	void		(*action) (Client *c);
	int			weight;
} Action;

static const Action actions[] = {
	{do_simple, 12},
	{do_several, 4},
	{do_extended, 6},
	{do_prepared, 8},
	{do_pipeline, 5},
	{do_slow_reader, 2},
	{do_transaction, 6},
	{do_hot_rows, 8},
	{do_savepoints, 5},
	{do_cursors, 8},
	{do_refcursor, 3},
	{do_foreign_key, 4},
	{do_two_phase, 2},
	{do_lock_table, 3},
	{do_advisory, 4},
	{do_ddl, 4},
	{do_maintenance, 4},
	{do_functions, 5},
	{do_copy, 4},
	{do_temp, 2},
	{do_loopback, 3},
	{do_settings, 3},
	{do_sleep, 2},
	{do_cancel, 5},
	{do_go_away, 3},
	{do_reconnect, 1},
};

/* The same where memory is scarce. */
static const Action scarce_actions[] = {
	{do_simple, 20},
	{do_several, 6},
	{do_extended, 4},
	{do_prepared, 4},
	{do_pipeline, 6},
	{do_slow_reader, 2},
	{do_transaction, 10},
	{do_savepoints, 4},
	{do_cursors, 16},
	{do_refcursor, 6},
	{do_lock_table, 2},
	{do_maintenance, 2},
	{do_functions, 4},
	{do_loopback, 4},
	{do_hungry_loopback, 8},
	{do_second_connection, 8},
	{do_settings, 3},
	{do_sleep, 2},
	{do_cancel, 5},
	{do_go_away, 3},
	{do_reconnect, 1},
};

static void
act(Client *c)
{
	const Action *list = scarce ? scarce_actions : actions;
	size_t		n = scarce ? sizeof(scarce_actions) / sizeof(*list) :
		sizeof(actions) / sizeof(*list);
	int			total = 0;
	int			pick;
	int			i = 0;

	for (size_t j = 0; j < n; j++)
		total += list[j].weight;
	pick = below(c, total);
	while (pick >= list[i].weight)
		pick -= list[i++].weight;
	list[i].action(c);
}

/*
 * Come to rest: without transaction, cursor or lock, but connected.
 */
static void
rest(Client *c)
{
	if (c->conn != NULL && PQstatus(c->conn) == CONNECTION_OK)
	{
		run(c, "ROLLBACK");
		run(c, "CLOSE ALL");
		run(c, "SELECT pg_advisory_unlock_all()");
	}

	pthread_mutex_lock(&mutex);
	nresting++;
	while (resting && !finished)
		pthread_cond_wait(&resumed, &mutex);
	nresting--;
	pthread_mutex_unlock(&mutex);
}

static void *
client_main(void *arg)
{
	Client	   *c = arg;

	while (!finished)
	{
		if (resting)
			rest(c);
		if (finished)
			break;
		if (c->conn == NULL || PQstatus(c->conn) != CONNECTION_OK)
		{
			PQfinish(c->conn);
			c->conn = NULL;
			connect_client(c);
			continue;
		}
		if (PQtransactionStatus(c->conn) != PQTRANS_IDLE)
			run(c, "ROLLBACK");
		act(c);
	}
	PQfinish(c->conn);
	return NULL;
}

/* ---- the disturber and the judge ---------------------------------------- */

static PGconn *
connect_superuser(const char *name)
{
	char		info[1000];
	PGconn	   *conn;

	snprintf(info, sizeof(info), "%s application_name=%s", conninfo, name);
	conn = PQconnectdb(info);
	if (PQstatus(conn) != CONNECTION_OK)
	{
		fprintf(stderr, "%s", PQerrorMessage(conn));
		exit(2);
	}
	return conn;
}

/*
 * Run a superuser's query.  Returns the first column of the first row, in
 * memory that the next call uses again, or "" if there is none.
 */
static const char *
ask(PGconn *conn, const char *format,...)
{
	static __thread char answer[8000];
	char		sql[2000];
	va_list		args;
	PGresult   *result;

	va_start(args, format);
	vsnprintf(sql, sizeof(sql), format, args);
	va_end(args);

	result = PQexec(conn, sql);
	answer[0] = '\0';
	if (PQstatus(conn) != CONNECTION_OK)
	{
		printf("PROBLEM: the server is gone: %s\nFAILED: seed %llu\n",
			   PQresultErrorMessage(result), (unsigned long long) seed);
		fflush(stdout);
		_exit(1);
	}
	if (PQresultStatus(result) == PGRES_FATAL_ERROR)
		problem("superuser: %s in: %s", PQresultErrorMessage(result), sql);
	else if (PQntuples(result) > 0)
		snprintf(answer, sizeof(answer), "%s", PQgetvalue(result, 0, 0));
	PQclear(result);
	return answer;
}

static void
change_settings(Client *d)
{
	static const char *const values[][6] = {
		{"pg_admission.cores_multiplier", "0.5", "1", "2", "4", "20"},
		{"pg_admission.cores_multiplier", "1", "2", "3", "3", "6"},
		{"pg_admission.total_memory", "'20MB'", "'100MB'", "'60MB'", "'2GB'", "0"},
		{"pg_admission.memory_fraction", "0.1", "0.5", "0.9", "1", "0.3"},
		{"pg_admission.queue_capacity", "-1", "0", "2", "20", "1000"},
		{"pg_admission.queue_capacity", "100", "100", "20", "50", "-1"},
		{"pg_admission.load_shedding", "managed", "on", "off", "on", "managed"},
		{"pg_admission.mode", "enforce", "enforce", "enforce", "observe", "off"},
		{"pg_admission.mode", "enforce", "enforce", "enforce", "enforce", "enforce"},
		{"pg_admission.queue_timeout", "'3s'", "'5s'", "'100ms'", "'1s'", "'10ms'"},
		{"pg_admission.sample_interval", "'100ms'", "'500ms'", "'1s'", "'5s'", "'1s'"},
		{"pg_admission.exempt_cost", "0", "0", "0", "50", "5000"},
		{"pg_admission.oversize", "reject", "shrink", "alone", "reject", "alone"},
		{"pg_admission.log_rejections", "'all'", "none", "summary", "summary", "summary"},
		{"deadlock_timeout", "'100ms'", "'200ms'", "'1s'", "'500ms'", "'200ms'"},
	};
	static const char *const memory[] = {"'8MB'", "'16MB'", "'12MB'", "'30MB'", "'20MB'"};
	int			n = sizeof(values) / sizeof(*values);

	for (int i = 1 + below(d, 4); i > 0; i--)
	{
		int			which = below(d, n);

		const char *value = values[which][1 + below(d, 5)];

		if (scarce && strcmp(values[which][0], "pg_admission.total_memory") == 0)
			value = memory[below(d, 5)];
		ask(d->conn, "ALTER SYSTEM SET %s = %s", values[which][0], value);
	}
	ask(d->conn, "SELECT pg_reload_conf()");
}

static void
stop_somebody(Client *d)
{
	int			pid = atoi(ask(d->conn, "SELECT pid FROM pg_stat_activity "
							   "WHERE usename LIKE 'torture%%' ORDER BY random() LIMIT 1"));

	if (!stop_processes || pid <= 0 || kill(pid, SIGSTOP) != 0)
		return;
	sleep_ms(below(d, 1500));
	kill(pid, SIGCONT);
}

static void *
disturber_main(void *arg)
{
	Client	   *d = arg;

	d->conn = connect_superuser("disturber");
	while (!finished)
	{
		sleep_ms(below(d, 400));
		if (resting)
			continue;
		disturbances++;
		switch (below(d, 12))
		{
			case 0:
			case 1:
			case 2:
				change_settings(d);
				break;
			case 3:
				for (int i = below(d, 20); i > 0; i--)
					ask(d->conn, "SELECT pg_reload_conf()");
				break;
			case 4:
			case 5:
				ask(d->conn, "SELECT pg_cancel_backend(pid) FROM pg_stat_activity "
					"WHERE usename LIKE 'torture%%' ORDER BY random() LIMIT %d", 1 + below(d, 4));
				break;
			case 6:
				ask(d->conn, "SELECT pg_cancel_backend(pid) FROM pg_admission_queries "
					"WHERE state = 'queued' ORDER BY random() LIMIT %d", 1 + below(d, 4));
				break;
			case 7:
				ask(d->conn, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
					"WHERE usename LIKE 'torture%%' ORDER BY random() LIMIT %d", 1 + below(d, 3));
				break;
			case 8:
				ask(d->conn, "SELECT pg_terminate_backend(pid) FROM pg_admission_queries "
					"ORDER BY random() LIMIT %d", 1 + below(d, 3));
				break;
			case 9:
				if (below(d, 10) == 0)
					ask(d->conn, "SELECT pg_terminate_backend(sampler_pid) FROM pg_admission_status");
				break;
			case 10:
				stop_somebody(d);
				break;
			default:
				if (below(d, 20) == 0)
					ask(d->conn, "SELECT pg_admission_reset()");
		}
	}
	PQfinish(d->conn);
	return NULL;
}

static void
show(PGconn *conn)
{
	printf("status: %s\n", ask(conn, "SELECT s::text FROM pg_admission_status s"));
	printf("counters: %s\n", ask(conn, "SELECT s::text FROM pg_stat_admission s"));
	printf("queries: %s\n", ask(conn, "SELECT string_agg(q::text, E'\\n') FROM "
								"(SELECT * FROM pg_admission_queries LIMIT 50) q"));
	printf("activity: %s\n", ask(conn, "SELECT string_agg(a::text, E'\\n') FROM "
								 "(SELECT pid, state, wait_event_type, wait_event, "
								 "pg_blocking_pids(pid), now() - query_start, left(query, 60) "
								 "FROM pg_stat_activity WHERE backend_type = 'client backend' "
								 "AND state <> 'idle' LIMIT 60) a"));
	fflush(stdout);
}

/*
 * Whoever prepared a transaction may have been terminated since.
 */
static void
end_orphans(PGconn *conn)
{
	PGresult   *orphans = PQexec(conn, "SELECT format('ROLLBACK PREPARED %L', gid) "
								 "FROM pg_prepared_xacts WHERE prepared < now() - interval '2 s'");

	/* Its owner may be faster after all, so errors do not matter. */
	for (int i = 0; i < PQntuples(orphans); i++)
		PQclear(PQexec(conn, PQgetvalue(orphans, i, 0)));
	PQclear(orphans);
}

/*
 * While everybody works: has anybody waited for too long?
 */
static void
look(PGconn *conn)
{
	static time_t last_look = 0;
	static time_t lenient_until = 0;
	time_t		now = time(NULL);
	const char *late;

	if (last_look != 0 && now - last_look > STALL)
	{
		printf("the machine stood still for %ld s\n", (long) (now - last_look));
		lenient_until = now + STATEMENT_BOUND;
	}
	last_look = now;

	if (verbose)
		printf("%s", ask(conn, "SELECT string_agg(a::text, E'\\n') || E'\\n' FROM "
						 "(SELECT pid, application_name, wait_event_type, wait_event, "
						 "pg_blocking_pids(pid), now() - query_start, left(query, 60) "
						 "FROM pg_stat_activity WHERE backend_type = 'client backend' "
						 "AND state = 'active' AND now() - query_start > '8s' LIMIT 60) a"));
	end_orphans(conn);

	/* Where work takes longer because the CPUs are shared, so do waits. */
	late = ask(conn, "SELECT string_agg(q::text, '; ') FROM pg_admission_queries q "
			   "WHERE state = 'queued' AND wait_ms > %d * "
			   "(SELECT 1 + coalesce(max(cpu_wait_ratio), 0) FROM pg_admission_load "
			   "WHERE sampled_at > now() - interval '1 minute')", WAIT_BOUND * 1000);

	if (late[0] != '\0' && now > lenient_until)
	{
		problem("queued for too long: %s", late);
		show(conn);
	}
	for (int i = 0; i < nclients; i++)
	{
		const char *doing = clients[i].doing;
		time_t		since = clients[i].since;

		if (doing != NULL && now - since > STATEMENT_BOUND && now > lenient_until &&
			clients[i].doing == doing && clients[i].since == since)
		{
			problem("client %d hangs", i);
			show(conn);
			return;
		}
	}
	if (atol(ask(conn, "SELECT rescued FROM pg_stat_admission")) != 0)
		problem("somebody had to be rescued");
}

/*
 * When everybody rests: all gauges must come to 0, and counters add up.
 */
static void
check_at_rest(PGconn *conn)
{
	time_t		until = time(NULL) + REST_BOUND;
	bool		quiet = false;

	while (!quiet && time(NULL) < until)
	{
		quiet = strcmp(ask(conn, "SELECT running = 0 AND queued = 0 AND workers_used = 0 "
						   "AND workers_lent = 0 AND memory_used_bytes = 0 "
						   "FROM pg_admission_status"), "t") == 0;
		if (!quiet)
			sleep_ms(50);
		look(conn);
	}
	if (!quiet)
	{
		problem("the gauges do not return to 0");
		show(conn);
	}
	if (strcmp(ask(conn, "SELECT submitted = admitted + rejected + cancelled_while_queued "
				   "FROM pg_stat_admission"), "t") != 0)
	{
		problem("the counters do not add up");
		show(conn);
	}
	if (strcmp(ask(conn, "SELECT count(*) FROM pg_admission_queries"), "0") != 0)
		problem("there is a query although nobody does anything");
}

/*
 * Bring everybody to rest, check, and let them go on.
 */
static void
make_rest(PGconn *conn)
{
	time_t		until = time(NULL) + REST_BOUND;
	bool		all = false;

	resting = true;
	while (!all && time(NULL) < until)
	{
		sleep_ms(200);
		look(conn);
		pthread_mutex_lock(&mutex);
		all = (nresting == nclients);
		pthread_mutex_unlock(&mutex);
	}

	if (!all)
	{
		problem("not everybody comes to rest");
		show(conn);
	}
	else
		check_at_rest(conn);

	pthread_mutex_lock(&mutex);
	resting = false;
	pthread_cond_broadcast(&resumed);
	pthread_mutex_unlock(&mutex);
}

/* ---- the program -------------------------------------------------------- */

static void
usage(void)
{
	puts("Does everything at once, at random, to a server with pg_admission.\n\n"
		 "  --connect=CONNINFO  of a superuser\n"
		 "  --clients=N         default 50\n"
		 "  --seconds=N         default 60\n"
		 "  --seed=N            default: from the clock; it is printed\n"
		 "  --stop-processes    also stop (SIGSTOP) backends for a moment; needs to run as\n"
		 "                      the server's user, on its machine\n"
		 "  --scarce            most queries claim memory, of which there is little\n"
		 "  --verbose           show who takes long\n");
	exit(0);
}

static void
read_arguments(int argc, char **argv)
{
	static const struct option options[] = {
		{"connect", required_argument, NULL, 'c'},
		{"clients", required_argument, NULL, 'n'},
		{"seconds", required_argument, NULL, 't'},
		{"seed", required_argument, NULL, 's'},
		{"stop-processes", no_argument, NULL, 'p'},
		{"scarce", no_argument, NULL, 'm'},
		{"verbose", no_argument, NULL, 'v'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0}
	};
	int			o;

	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1)
	{
		switch (o)
		{
			case 'c':
				conninfo = optarg;
				break;
			case 'n':
				nclients = atoi(optarg);
				break;
			case 't':
				nseconds = atoi(optarg);
				break;
			case 's':
				seed = strtoull(optarg, NULL, 10);
				break;
			case 'p':
				stop_processes = true;
				break;
			case 'm':
				scarce = true;
				break;
			case 'v':
				verbose = true;
				break;
			case 'h':
				usage();
				break;
			default:
				exit(2);
		}
	}
	if (nclients < 1 || nclients > MAX_CLIENTS)
		exit(2);
	if (seed == 0)
		seed = (uint64_t) time(NULL) * 1000 + (uint64_t) getpid() % 1000;
}

static void
init_random(Client *c, int number)
{
	c->number = number;
	c->random = seed + (uint64_t) number * 1000003;
	next_random(&c->random);
}

static void
report(PGconn *conn, int rests)
{
	printf("counters: %s\n", ask(conn, "SELECT s::text FROM pg_stat_admission s"));
	printf("results:");
	for (int i = 0; i < MAX_STATES && states[i].n > 0; i++)
		printf(" %s=%ld", states[i].state, states[i].n);
	printf("\nstatement timeouts: %ld, disturbances: %ld, rests: %d\n",
		   statement_timeouts, disturbances, rests);
	printf("%s: seed %llu, %d clients, %d seconds\n", failed ? "FAILED" : "PASSED",
		   (unsigned long long) seed, nclients, nseconds);
}

int
main(int argc, char **argv)
{
	pthread_t	threads[MAX_CLIENTS + 1];
	static Client disturber;
	static Client judge_;
	time_t		end;
	time_t		next_rest;
	int			rests = 0;

	read_arguments(argc, argv);
	signal(SIGPIPE, SIG_IGN);
	printf("seed %llu, %d clients, %d seconds\n", (unsigned long long) seed,
		   nclients, nseconds);
	fflush(stdout);

	init_random(&judge_, MAX_CLIENTS + 1);
	judge_.conn = connect_superuser("judge");
	for (int i = 0; i < nclients; i++)
	{
		init_random(&clients[i], i);
		pthread_create(&threads[i], NULL, client_main, &clients[i]);
	}
	init_random(&disturber, MAX_CLIENTS);
	pthread_create(&threads[nclients], NULL, disturber_main, &disturber);

	end = time(NULL) + nseconds;
	next_rest = time(NULL) + 5 + below(&judge_, 20);
	while (time(NULL) < end && !failed)
	{
		sleep_ms(500);
		look(judge_.conn);
		if (time(NULL) >= next_rest && time(NULL) < end)
		{
			make_rest(judge_.conn);
			rests++;
			next_rest = time(NULL) + 5 + below(&judge_, 20);
		}
	}
	make_rest(judge_.conn);
	rests++;
	report(judge_.conn, rests);
	fflush(stdout);
	if (failed)
		_exit(1);

	pthread_mutex_lock(&mutex);
	finished = true;
	pthread_cond_broadcast(&resumed);
	pthread_mutex_unlock(&mutex);
	for (int i = 0; i <= nclients; i++)
		pthread_join(threads[i], NULL);
	PQfinish(judge_.conn);
	return 0;
}
