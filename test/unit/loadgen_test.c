/*-------------------------------------------------------------------------
 *
 * loadgen_test.c
 *		Does the load generator account for every arrival?
 *
 *		Links: nothing, it includes test/loadgen.c
 *
 * The clock, libpq and the server are made up here: time passes only where the
 * load generator waits, so that minutes take no time, and nothing depends on
 * how fast this machine is.
 *
 *		cc -I$(pg_config --includedir-server) -I$(pg_config --includedir) \
 *			test/unit/loadgen_test.c -lm
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  test/unit/loadgen_test.c
 *
 *-------------------------------------------------------------------------
 */
#include <poll.h>
#include <signal.h>
#include <time.h>

#undef _GNU_SOURCE				/* that file defines it */
#define clock_gettime	made_up_clock
#define ppoll			made_up_poll
#define main			loadgen_main
static int	made_up_clock(clockid_t id, struct timespec *ts);
static int	made_up_poll(struct pollfd *fds, nfds_t n,
						 const struct timespec *timeout, const sigset_t *mask);

#include "../loadgen.c"

#undef main

#include "c.h"

#include "tap.h"

#define NEVER			1e12
#define MAX_CONNECTIONS	50

/* ---- the clock ---- */

static double clock_now;

/* It never stands still: what is due at a moment is done after it. */
static int
made_up_clock(clockid_t id, struct timespec *ts)
{
	(void) id;
	clock_now += 1e-6;
	ts->tv_sec = (time_t) clock_now;
	ts->tv_nsec = (long) ((clock_now - ts->tv_sec) * 1e9);
	return 0;
}

/* ---- the server ---- */

static double answer_takes;		/* seconds, for each query */
static const char *answer_error;	/* SQLSTATE, or NULL: it succeeds */
static double server_dies;		/* when it loses all, and accepts nobody */

struct pg_conn
{
	bool		in_use;
	double		answer_at;
	bool		has_result;
};

static PGconn connections[MAX_CONNECTIONS];

static bool
server_is_dead(void)
{
	return clock_now >= server_dies;
}

static double
next_answer(const PGconn *conn)
{
	return fmin(conn->answer_at, server_dies);
}

/* Sleeps to the end or to the first answer, like that of the system. */
static int
made_up_poll(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
			 const sigset_t *mask)
{
	double		wake = clock_now + timeout->tv_sec + timeout->tv_nsec / 1e9;
	int			ready = 0;

	(void) mask;
	for (nfds_t i = 0; i < n - 1; i++)
	{
		if (fds[i].events & POLLOUT)
			wake = clock_now;
		wake = fmin(wake, next_answer(&connections[fds[i].fd]));
	}
	clock_now = fmax(clock_now, wake);
	for (nfds_t i = 0; i < n - 1; i++)
	{
		bool		answered = next_answer(&connections[fds[i].fd]) <= clock_now;

		fds[i].revents = (fds[i].events & POLLOUT) | (answered ? POLLIN : 0);
		ready += fds[i].revents != 0;
	}
	fds[n - 1].revents = 0;		/* the pipe of those who cancel */
	return ready;
}

/* ---- libpq ---- */

PGconn *
PQconnectStart(const char *conninfo)
{
	PGconn	   *conn = connections;

	(void) conninfo;
	while (conn->in_use)
		conn++;
	conn->in_use = true;
	conn->answer_at = NEVER;
	return conn;
}

ConnStatusType
PQstatus(const PGconn *conn)
{
	(void) conn;
	return server_is_dead() ? CONNECTION_BAD : CONNECTION_OK;
}

PostgresPollingStatusType
PQconnectPoll(PGconn *conn)
{
	(void) conn;
	return server_is_dead() ? PGRES_POLLING_FAILED : PGRES_POLLING_OK;
}

int
PQsocket(const PGconn *conn)
{
	return conn - connections;
}

int
PQsendQuery(PGconn *conn, const char *query)
{
	bool		setup = strncmp(query, "SET", 3) == 0;

	if (server_is_dead())
		return 0;
	conn->answer_at = clock_now + (setup ? 0 : answer_takes);
	conn->has_result = !setup && answer_error != NULL;
	return 1;
}

int
PQsendQueryPrepared(PGconn *conn, const char *name, int n,
					const char *const *values, const int *lengths,
					const int *formats, int format)
{
	(void) n, (void) values, (void) lengths, (void) formats, (void) format;
	return PQsendQuery(conn, name);
}

int
PQisBusy(PGconn *conn)
{
	return next_answer(conn) > clock_now;
}

/* An error, if there is one, then the end. */
PGresult *
PQgetResult(PGconn *conn)
{
	bool		failed = conn->has_result || server_is_dead();

	if (conn->answer_at == NEVER || !failed)
	{
		conn->answer_at = NEVER;
		return NULL;
	}
	conn->has_result = false;
	if (server_is_dead())
		conn->answer_at = NEVER;
	return (PGresult *) conn;
}

ExecStatusType
PQresultStatus(const PGresult *result)
{
	(void) result;
	return PGRES_FATAL_ERROR;
}

char *
PQresultErrorField(const PGresult *result, int field)
{
	(void) result, (void) field;
	return server_is_dead() ? NULL : (char *) answer_error;
}

char *
PQresultErrorMessage(const PGresult *result)
{
	(void) result;
	return "an error";
}

char *
PQerrorMessage(const PGconn *conn)
{
	(void) conn;
	return "an error";
}

int
PQsetnonblocking(PGconn *conn, int arg)
{
	(void) conn, (void) arg;
	return 0;
}

int
PQflush(PGconn *conn)
{
	(void) conn;
	return 0;
}

int
PQconsumeInput(PGconn *conn)
{
	(void) conn;
	return 1;
}

void
PQclear(PGresult *result)
{
	(void) result;
}

void
PQfinish(PGconn *conn)
{
	if (conn != NULL)
		conn->in_use = false;
}

PGcancel *
PQgetCancel(PGconn *conn)
{
	(void) conn;
	return NULL;
}

int
PQcancel(PGcancel *cancel, char *message, int size)
{
	(void) cancel, (void) message, (void) size;
	return 0;
}

void
PQfreeCancel(PGcancel *cancel)
{
	(void) cancel;
}

/* ---- the tests ---- */

typedef enum Outcome
{
	IN_TIME,
	REFUSED,
	TIMEOUT,
	ERROR_OTHER,
	MIXED						/* whichever of them */
} Outcome;

typedef struct Case
{
	const char *name;
	Outcome		outcome;		/* of all that is measured */
	double		deadline;		/* seconds; 0: calibrate */
	double		answer_takes;
	int			connections;	/* 0: enough of them */
	const char *answer_error;
	double		server_dies;	/* seconds after the start; 0: never */
} Case;

static const Case cases[] = {
	{"an answer after 0.1 s", IN_TIME, 1, 0.1},
	{"one after the deadline", TIMEOUT, 1, 3},
	{"one after 13 s, within a deadline of 60 s", IN_TIME, 60, 13},
	{"one after 59 s, within a deadline of 60 s", IN_TIME, 60, 59},
	{"no answer, with a deadline of 60 s", TIMEOUT, 60, NEVER},
	{"one connection for all, with a deadline of 60 s", MIXED, 60, 13, 1},
	{"a refusal after 13 s", REFUSED, 60, 13, 0, REFUSED_SQLSTATE},
	{"another error after 13 s", ERROR_OTHER, 60, 13, 0, "22012"},
	{"a server that dies after 13 s", ERROR_OTHER, 60, NEVER, 0, NULL, 13},
	{"a server that dies meanwhile", MIXED, 60, 1, 2, NULL, 1.5},
	{"calibrating: an answer after 0.1 s", IN_TIME, 0, 0.1, 2},
	{"calibrating: an answer after 9 s", IN_TIME, 0, 9, 2},
	{"calibrating: one after 13 s, which is too late", TIMEOUT, 0, 13, 2},
	{"calibrating: no answer", TIMEOUT, 0, NEVER, 2},
	{"calibrating: a server that dies meanwhile", MIXED, 0, 0.4, 2, NULL, 1.5},
};

static void
run_case(const Case *c)
{
	Results    *r = &results;
	long		answers,
				counts[MIXED + 1];

	memset(&results, 0, sizeof(results));
	backlog.head = backlog.tail = 0;
	answer_takes = c->answer_takes;
	answer_error = c->answer_error;
	server_dies = c->server_dies > 0 ? clock_now + c->server_dies : NEVER;

	options.query = "query";
	options.rate = 10;
	options.duration = 2;
	options.warmup = 0;
	options.calibrate = c->deadline == 0;
	options.deadline = options.calibrate ? 1e9 : c->deadline;
	options.connections = c->connections ? c->connections : MAX_CONNECTIONS;

	measure_to = 0;
	open_connections();
	run_load();
	close_connections();

	counts[IN_TIME] = r->latency.count;
	counts[REFUSED] = r->refusal.count;
	counts[TIMEOUT] = r->timeouts;
	counts[ERROR_OTHER] = r->errors;
	answers = r->latency.count + r->refusal.count + r->timeouts + r->errors;
	counts[MIXED] = answers;
	ok(r->offered > 0 && counts[c->outcome] == r->offered &&
	   answers == r->offered, "%s", c->name);
	diag("offered %ld, sent %ld: in time %ld, refused %ld, timeouts %ld (unsent %ld), errors %ld; %.0f s",
		 r->offered, r->sent, counts[IN_TIME], counts[REFUSED], r->timeouts,
		 r->unsent, r->errors, clock_now - measure_from);

	free(r->latency.values);
	free(r->refusal.values);
	free(r->lag.values);
	free(clients);
	free(pollfds);
	free(polled);
}

int
main(void)
{
	for (size_t i = 0; i < lengthof(cases); i++)
		run_case(&cases[i]);
	return done_testing();
}
