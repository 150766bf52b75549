/*-------------------------------------------------------------------------
 *
 * loadgen.c
 *	  An open-loop load generator: queries arrive at a fixed rate, whatever
 *	  becomes of the ones before.
 *
 * A benchmark like pgbench is a closed loop: each client waits for its answer
 * before it asks again, so a slow server is asked less, and is never
 * overloaded.  Users do not wait for each other.  Here arrivals are a Poisson
 * process, independent of the answers, and a query's latency counts from the
 * moment at which it was to arrive, not from the moment at which it could
 * be sent.
 *
 * An arrival takes the connection that has been idle longest, or waits in the
 * client's backlog, first come first served.  At its deadline the client
 * gives up: a query that has not been sent never is; for one that has been
 * sent, --give-up says what happens to it in the server.  Its connection can
 * be used again once the server has answered, as it would be in a driver.
 *
 * One thread does all of this, over nonblocking connections.  PQcancel()
 * blocks, so a few threads more do nothing but that.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  test/loadgen.c
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE				/* ppoll */

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <libpq-fe.h>

#define CANCEL_THREADS		16
#define CONNECT_TIMEOUT		30.0	/* seconds, for all connections */
#define RECONNECT_DELAY		0.1
#define DRAIN_TIMEOUT		10.0	/* after the last deadline */
#define MAX_SQLSTATES		64
#define REFUSED_SQLSTATE	"53A01"
#define CANCELLED_SQLSTATE	"57014"
#define DEFAULT_QUERY \
	"SELECT count(*) FROM (SELECT i FROM generate_series(1, 20000) i" \
	" ORDER BY md5(i::text)) s"

typedef enum GiveUp
{
	GIVE_UP_TIMEOUT,			/* the server stops by statement_timeout */
	GIVE_UP_CANCEL,				/* the client sends a cancel request */
	GIVE_UP_NOTHING				/* the server goes on to the end */
} GiveUp;

typedef enum Format
{
	FORMAT_HUMAN,
	FORMAT_TSV,
	FORMAT_JSON
} Format;

typedef struct Options
{
	const char *conninfo;
	const char *query;
	double		rate;			/* arrivals per second */
	double		duration;		/* seconds, measured */
	double		warmup;			/* seconds before that */
	double		deadline;		/* seconds */
	int			connections;
	long		seed;
	GiveUp		give_up;
	Format		format;
	bool		prepared;
	bool		calibrate;		/* closed loop: an idle client asks again */
	bool		header;
} Options;

typedef enum ClientState
{
	CLIENT_DOWN,				/* to be connected when it is time */
	CLIENT_CONNECTING,			/* libpq is at it */
	CLIENT_SETUP,				/* runs setup_query() */
	CLIENT_IDLE,
	CLIENT_BUSY,				/* somebody waits for the answer */
	CLIENT_ABANDONED			/* nobody does any more */
} ClientState;

typedef struct Client
{
	PGconn	   *conn;
	ClientState state;
	short		events;			/* what to poll for */
	double		arrival;		/* when the query was to arrive */
	double		sent;			/* when it was sent */
	double		idle_since;		/* or, when down, connect again then */
	char		sqlstate[6];	/* of its error, or empty */
	PGcancel   *cancel;			/* while a thread is cancelling */
} Client;

/* A growing array of numbers. */
typedef struct Samples
{
	double	   *values;
	size_t		count;
	size_t		allocated;
} Samples;

typedef struct ErrorCount
{
	char		sqlstate[6];
	long		count;
} ErrorCount;

/* What became of the arrivals in the measured time. */
typedef struct Results
{
	long		offered;
	long		sent;
	long		timeouts;
	long		unsent;			/* ... of them, never sent */
	long		errors;			/* neither refused nor timed out */
	int			nsqlstates;
	ErrorCount	sqlstates[MAX_SQLSTATES];
	Samples		latency;		/* answers in time, from the arrival */
	Samples		refusal;		/* refusals, from the sending */
	Samples		lag;			/* how late the generator itself was */
} Results;

/* Arrivals that no connection was free for, oldest first. */
typedef struct Backlog
{
	double	   *arrivals;
	size_t		head;
	size_t		tail;
	size_t		allocated;
} Backlog;

static Options options = {
	.conninfo = "",
	.query = DEFAULT_QUERY,
	.rate = 10,
	.duration = 10,
	.warmup = 2,
	.deadline = 1,
	.connections = 200,
	.seed = 1,
	.give_up = GIVE_UP_TIMEOUT,
	.format = FORMAT_HUMAN
};

static Client *clients;
static struct pollfd *pollfds;	/* one a client, and the threads' pipe */
static Client **polled;			/* whose pollfd it is */
static Backlog backlog;
static Results results;

/* Seconds of the monotonic clock. */
static double measure_from;
static double measure_to;
static double drain_to;
static double next_arrival;

static unsigned short random_state[3];

/* Clients whose query is to be cancelled, and threads that do it. */
static pthread_mutex_t cancel_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cancel_wanted = PTHREAD_COND_INITIALIZER;
static Client **cancel_ring;
static unsigned cancel_head;
static unsigned cancel_tail;
static int	cancel_pipe[2];		/* tells the main thread what is done */


static void fatal(const char *format,...)
			__attribute__((format(printf, 1, 2), noreturn));

static void
fatal(const char *format,...)
{
	va_list		args;

	va_start(args, format);
	fputs("loadgen: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	exit(1);
}

static void *
allocate(size_t count, size_t size)
{
	void	   *result = calloc(count, size);

	if (result == NULL)
		fatal("out of memory");
	return result;
}

static double
current_time(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

/* ---- samples ---- */

static void
add_sample(Samples *samples, double value)
{
	if (samples->count == samples->allocated)
	{
		samples->allocated = samples->allocated ? samples->allocated * 2 : 1024;
		samples->values = realloc(samples->values,
								  samples->allocated * sizeof(double));
		if (samples->values == NULL)
			fatal("out of memory");
	}
	samples->values[samples->count++] = value;
}

static int
compare_doubles(const void *a, const void *b)
{
	double		x = *(const double *) a;
	double		y = *(const double *) b;

	return (x > y) - (x < y);
}

/* The smallest sample that a fraction of them do not exceed, in ms. */
static double
percentile_ms(Samples *samples, double fraction)
{
	size_t		rank;

	if (samples->count == 0)
		return NAN;
	qsort(samples->values, samples->count, sizeof(double), compare_doubles);
	rank = (size_t) ceil(fraction * samples->count);
	return samples->values[rank > 0 ? rank - 1 : 0] * 1000;
}

/* ---- counting ---- */

static bool
is_measured(double arrival)
{
	return arrival >= measure_from && arrival < measure_to;
}

static void
count_sqlstate(const char *sqlstate)
{
	int			i;

	for (i = 0; i < results.nsqlstates; i++)
	{
		if (strcmp(results.sqlstates[i].sqlstate, sqlstate) == 0)
			break;
	}
	if (i == MAX_SQLSTATES)
		fatal("more than %d different SQLSTATEs", MAX_SQLSTATES);
	if (i == results.nsqlstates)
	{
		snprintf(results.sqlstates[i].sqlstate, 6, "%s", sqlstate);
		results.nsqlstates++;
	}
	results.sqlstates[i].count++;
}

static void
count_timeout(double arrival, bool sent)
{
	if (!is_measured(arrival))
		return;
	results.timeouts++;
	if (!sent)
		results.unsent++;
}

/* The answer to a query came while its client waited for it. */
static void
count_answer(Client *client, double now)
{
	if (!is_measured(client->arrival))
		return;

	if (client->sqlstate[0] == '\0')
		add_sample(&results.latency, now - client->arrival);
	else
	{
		count_sqlstate(client->sqlstate);
		if (strcmp(client->sqlstate, REFUSED_SQLSTATE) == 0)
			add_sample(&results.refusal, now - client->sent);
		else if (options.give_up == GIVE_UP_TIMEOUT &&
				 strcmp(client->sqlstate, CANCELLED_SQLSTATE) == 0)
			results.timeouts++; /* its clock was a bit ahead of ours */
		else
			results.errors++;
	}
}

/* ---- cancelling ---- */

static void *
cancel_main(void *arg)
{
	char		message[256];

	(void) arg;
	for (;;)
	{
		Client	   *client;

		pthread_mutex_lock(&cancel_mutex);
		while (cancel_head == cancel_tail)
			pthread_cond_wait(&cancel_wanted, &cancel_mutex);
		client = cancel_ring[cancel_head++ % options.connections];
		pthread_mutex_unlock(&cancel_mutex);

		/* A failure is like a lost cancel request: the query goes on. */
		(void) PQcancel(client->cancel, message, sizeof(message));

		if (write(cancel_pipe[1], &client, sizeof(client)) != sizeof(client))
			fatal("could not write to pipe: %s", strerror(errno));
	}
	return NULL;
}

static void
start_cancel_threads(void)
{
	pthread_t	thread;

	if (pipe(cancel_pipe) != 0 ||
		fcntl(cancel_pipe[0], F_SETFL, O_NONBLOCK) != 0)
		fatal("could not make a pipe: %s", strerror(errno));
	cancel_ring = allocate(options.connections, sizeof(Client *));
	for (int i = 0; i < CANCEL_THREADS; i++)
	{
		if (pthread_create(&thread, NULL, cancel_main, NULL) != 0)
			fatal("could not start a thread");
	}
}

static void
request_cancel(Client *client)
{
	client->cancel = PQgetCancel(client->conn);
	if (client->cancel == NULL)
		return;
	pthread_mutex_lock(&cancel_mutex);
	cancel_ring[cancel_tail++ % options.connections] = client;
	pthread_cond_signal(&cancel_wanted);
	pthread_mutex_unlock(&cancel_mutex);
}

/* ---- connections ---- */

/* What a new session runs first, or NULL. */
static const char *
setup_query(void)
{
	static char *setup = NULL;
	size_t		size = strlen(options.query) + 100;
	int			timeout = 0;

	if (!options.calibrate && options.give_up == GIVE_UP_TIMEOUT)
		timeout = (int) (options.deadline * 1000);
	if (timeout == 0 && !options.prepared)
		return NULL;
	if (setup == NULL)
	{
		setup = allocate(size, 1);
		if (timeout > 0)
			snprintf(setup, size, "SET statement_timeout = %d;", timeout);
		if (options.prepared)
			snprintf(setup + strlen(setup), size - strlen(setup),
					 "PREPARE loadgen AS %s", options.query);
	}
	return setup;
}

static void
become_idle(Client *client, double now)
{
	client->state = CLIENT_IDLE;
	client->events = 0;
	client->idle_since = now;
}

/* The connection is of no use any more; another one is made soon. */
static void
lose_connection(Client *client, double now)
{
	PQfinish(client->conn);
	client->conn = NULL;
	client->state = CLIENT_DOWN;
	client->events = 0;
	client->idle_since = now + RECONNECT_DELAY;
}

static void
start_connecting(Client *client, double now)
{
	client->conn = PQconnectStart(options.conninfo);
	if (client->conn == NULL)
		fatal("out of memory");
	client->state = CLIENT_CONNECTING;
	client->events = POLLOUT;
	if (PQstatus(client->conn) == CONNECTION_BAD)
		lose_connection(client, now);
}

/* Send what libpq has not sent yet, and wait for the answer. */
static void
flush_query(Client *client)
{
	client->events = POLLIN;
	if (PQflush(client->conn) == 1)
		client->events |= POLLOUT;
}

static void
start_setup(Client *client, double now)
{
	const char *setup = setup_query();

	PQsetnonblocking(client->conn, 1);
	if (setup == NULL)
		become_idle(client, now);
	else if (PQsendQuery(client->conn, setup) == 0)
		lose_connection(client, now);
	else
	{
		client->state = CLIENT_SETUP;
		client->sqlstate[0] = '\0';
		flush_query(client);
	}
}

static void
go_on_connecting(Client *client, double now)
{
	switch (PQconnectPoll(client->conn))
	{
		case PGRES_POLLING_READING:
			client->events = POLLIN;
			break;
		case PGRES_POLLING_WRITING:
			client->events = POLLOUT;
			break;
		case PGRES_POLLING_OK:
			start_setup(client, now);
			break;
		default:
			/* At the start this is a mistake, later it may be overload. */
			if (measure_to == 0)
				fatal("%s", PQerrorMessage(client->conn));
			lose_connection(client, now);
			break;
	}
}

/* ---- queries ---- */

static bool
send_query(Client *client, double arrival, double now)
{
	int			ok;

	if (options.prepared)
		ok = PQsendQueryPrepared(client->conn, "loadgen",
								 0, NULL, NULL, NULL, 0);
	else
		ok = PQsendQuery(client->conn, options.query);
	if (!ok)
	{
		lose_connection(client, now);
		return false;
	}
	client->state = CLIENT_BUSY;
	client->arrival = arrival;
	client->sent = now;
	client->sqlstate[0] = '\0';
	flush_query(client);
	if (is_measured(arrival))
		results.sent++;
	return true;
}

static void
note_result(Client *client, const PGresult *result)
{
	const char *sqlstate;

	switch (PQresultStatus(result))
	{
		case PGRES_COPY_IN:
		case PGRES_COPY_OUT:
		case PGRES_COPY_BOTH:
			fatal("COPY is not supported");
			break;
		case PGRES_BAD_RESPONSE:
		case PGRES_FATAL_ERROR:
			/* The first error counts; one of libpq's own has no code. */
			sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
			if (client->sqlstate[0] == '\0')
				snprintf(client->sqlstate, sizeof(client->sqlstate), "%s",
						 sqlstate ? sqlstate : "lost");
			if (client->state == CLIENT_SETUP && measure_to == 0)
				fatal("%s", PQresultErrorMessage(result));
			break;
		default:
			break;
	}
}

/* The server has answered completely. */
static void
finish_query(Client *client, double now)
{
	if (client->state == CLIENT_BUSY)
	{
		if (now - client->arrival <= options.deadline)
			count_answer(client, now);
		else
			count_timeout(client->arrival, true);
	}

	/* A cancel request under way must not hit the next query. */
	if (client->cancel != NULL)
	{
		client->state = CLIENT_ABANDONED;
		client->events = 0;
	}
	else if (PQstatus(client->conn) == CONNECTION_BAD)
		lose_connection(client, now);
	else
		become_idle(client, now);
}

static void
receive_answer(Client *client, double now)
{
	PGresult   *result;

	(void) PQconsumeInput(client->conn);
	while (!PQisBusy(client->conn))
	{
		result = PQgetResult(client->conn);
		if (result == NULL)
		{
			finish_query(client, now);
			return;
		}
		note_result(client, result);
		PQclear(result);
	}
	flush_query(client);
}

/* The main thread hears that a cancel request has been delivered. */
static void
collect_cancels(double now)
{
	Client	   *client;

	while (read(cancel_pipe[0], &client, sizeof(client)) == sizeof(client))
	{
		PQfreeCancel(client->cancel);
		client->cancel = NULL;
		if (client->events == 0)
			finish_query(client, now);
	}
}

/* ---- the loop ---- */

static void
add_to_backlog(double arrival)
{
	if (backlog.tail == backlog.allocated)
	{
		size_t		used = backlog.tail - backlog.head;

		if (used * 2 >= backlog.allocated)
		{
			backlog.allocated = backlog.allocated * 2 + 1024;
			backlog.arrivals = realloc(backlog.arrivals,
									   backlog.allocated * sizeof(double));
			if (backlog.arrivals == NULL)
				fatal("out of memory");
		}
		memmove(backlog.arrivals, backlog.arrivals + backlog.head,
				used * sizeof(double));
		backlog.head = 0;
		backlog.tail = used;
	}
	backlog.arrivals[backlog.tail++] = arrival;
}

static void
take_arrivals(double now)
{
	while (next_arrival <= now && next_arrival < measure_to)
	{
		if (is_measured(next_arrival))
		{
			results.offered++;
			add_sample(&results.lag, now - next_arrival);
		}
		add_to_backlog(next_arrival);
		next_arrival += -log(1.0 - erand48(random_state)) / options.rate;
	}
}

/* Calibrating, each idle connection is an arrival. */
static void
take_closed_loop_arrivals(double now)
{
	for (int i = 0; i < options.connections; i++)
	{
		if (clients[i].state == CLIENT_IDLE && now < measure_to)
		{
			if (is_measured(now))
				results.offered++;
			add_to_backlog(now);
		}
	}
}

/*
 * Clients give up what has not been answered by its deadline.  Calibrating
 * there is none, but what is still not answered at the very end is given up,
 * lest it be missing from the report.
 */
static void
give_up_late(double now)
{
	double		oldest = now - options.deadline;

	if (options.calibrate && now > drain_to)
		oldest = now;
	while (backlog.head < backlog.tail &&
		   backlog.arrivals[backlog.head] < oldest)
		count_timeout(backlog.arrivals[backlog.head++], false);

	for (int i = 0; i < options.connections; i++)
	{
		Client	   *client = &clients[i];

		if (client->state == CLIENT_BUSY && client->arrival < oldest)
		{
			client->state = CLIENT_ABANDONED;
			count_timeout(client->arrival, true);
			if (options.give_up == GIVE_UP_CANCEL)
				request_cancel(client);
		}
	}
}

/* The connection that has been idle longest, so that all take part. */
static Client *
find_idle_client(void)
{
	Client	   *best = NULL;

	for (int i = 0; i < options.connections; i++)
	{
		Client	   *client = &clients[i];

		if (client->state == CLIENT_IDLE &&
			(best == NULL || client->idle_since < best->idle_since))
			best = client;
	}
	return best;
}

static void
send_backlog(double now)
{
	while (backlog.head < backlog.tail)
	{
		Client	   *client = find_idle_client();

		if (client == NULL)
			break;
		if (send_query(client, backlog.arrivals[backlog.head], now))
			backlog.head++;
	}
}

/* The next time at which something is to be done without any input. */
static double
next_event(double now)
{
	double		next = now + 1;

	if (!options.calibrate && next_arrival < measure_to)
		next = fmin(next, next_arrival);
	if (backlog.head < backlog.tail)
		next = fmin(next, backlog.arrivals[backlog.head] + options.deadline);
	for (int i = 0; i < options.connections; i++)
	{
		if (clients[i].state == CLIENT_BUSY)
			next = fmin(next, clients[i].arrival + options.deadline);
		else if (clients[i].state == CLIENT_DOWN)
			next = fmin(next, clients[i].idle_since);
	}
	return next;
}

static void
serve_client(Client *client, double now)
{
	if (client->state == CLIENT_CONNECTING)
		go_on_connecting(client, now);
	else
		receive_answer(client, now);
}

/* Wait for answers, until a moment at the latest, and take them. */
static void
wait_and_receive(double until)
{
	double		delay = fmax(until - current_time(), 0);
	struct timespec timeout;
	int			npolled = 0;
	double		now;

	for (int i = 0; i < options.connections; i++)
	{
		if (clients[i].events == 0)
			continue;
		pollfds[npolled].fd = PQsocket(clients[i].conn);
		pollfds[npolled].events = clients[i].events;
		polled[npolled++] = &clients[i];
	}
	pollfds[npolled].fd = cancel_pipe[0];
	pollfds[npolled].events = POLLIN;

	timeout.tv_sec = (time_t) delay;
	timeout.tv_nsec = (long) ((delay - timeout.tv_sec) * 1e9);
	if (ppoll(pollfds, npolled + 1, &timeout, NULL) < 0)
	{
		if (errno == EINTR)
			return;
		fatal("could not poll: %s", strerror(errno));
	}

	now = current_time();
	for (int i = 0; i < npolled; i++)
	{
		if (pollfds[i].revents != 0)
			serve_client(polled[i], now);
	}
	if (pollfds[npolled].revents != 0)
		collect_cancels(now);
}

static void
connect_again(double now)
{
	for (int i = 0; i < options.connections; i++)
	{
		if (clients[i].state == CLIENT_DOWN && clients[i].idle_since <= now)
			start_connecting(&clients[i], now);
	}
}

static bool
all_clients_idle(void)
{
	for (int i = 0; i < options.connections; i++)
	{
		if (clients[i].state != CLIENT_IDLE)
			return false;
	}
	return true;
}

static void
open_connections(void)
{
	double		start = current_time();

	clients = allocate(options.connections, sizeof(Client));
	pollfds = allocate(options.connections + 1, sizeof(struct pollfd));
	polled = allocate(options.connections, sizeof(Client *));
	for (int i = 0; i < options.connections; i++)
	{
		start_connecting(&clients[i], start);
		if (clients[i].state == CLIENT_DOWN)
			fatal("could not connect; try psql \"%s\"", options.conninfo);
	}
	while (!all_clients_idle())
	{
		if (current_time() > start + CONNECT_TIMEOUT)
			fatal("could not open %d connections in %.0f s",
				  options.connections, CONNECT_TIMEOUT);
		wait_and_receive(current_time() + 1);
	}
}

static void
close_connections(void)
{
	for (int i = 0; i < options.connections; i++)
		PQfinish(clients[i].conn);
}

static void
run_load(void)
{
	double		now = current_time();

	random_state[0] = 0x330e;
	random_state[1] = (unsigned short) options.seed;
	random_state[2] = (unsigned short) (options.seed >> 16);
	measure_from = now + options.warmup;
	measure_to = measure_from + options.duration;
	drain_to = measure_to + DRAIN_TIMEOUT;
	if (!options.calibrate)
		drain_to += options.deadline;
	next_arrival = now;

	for (;;)
	{
		now = current_time();
		if (options.calibrate)
			take_closed_loop_arrivals(now);
		else
			take_arrivals(now);
		give_up_late(now);
		connect_again(now);
		send_backlog(now);
		if (now >= measure_to && backlog.head == backlog.tail &&
			(all_clients_idle() || now > drain_to))
			break;
		wait_and_receive(next_event(now));
	}
}

/* ---- reporting ---- */

static void
print_sqlstates(const char *start, const char *quote, const char *assign,
				const char *separator, const char *end)
{
	fputs(start, stdout);
	for (int i = 0; i < results.nsqlstates; i++)
		printf("%s%s%s%s%s%ld", i > 0 ? separator : "",
			   quote, results.sqlstates[i].sqlstate, quote, assign,
			   results.sqlstates[i].count);
	fputs(end, stdout);
}

/* A column of the report; counts have no decimals. */
typedef struct Column
{
	const char *name;
	int			decimals;
	double		value;
} Column;

static void
print_tsv(const Column *columns, int ncolumns)
{
	if (options.header)
	{
		for (int i = 0; i < ncolumns; i++)
			printf("%s\t", columns[i].name);
		puts("sqlstates");
	}
	for (int i = 0; i < ncolumns; i++)
	{
		if (isnan(columns[i].value))
			fputs("-\t", stdout);
		else
			printf("%.*f\t", columns[i].decimals, columns[i].value);
	}
	if (results.nsqlstates == 0)
		puts("-");
	else
		print_sqlstates("", "", "=", ",", "\n");
}

static void
print_json(const Column *columns, int ncolumns)
{
	putchar('{');
	for (int i = 0; i < ncolumns; i++)
	{
		if (isnan(columns[i].value))
			printf("\"%s\": null, ", columns[i].name);
		else
			printf("\"%s\": %.*f, ", columns[i].name,
				   columns[i].decimals, columns[i].value);
	}
	print_sqlstates("\"sqlstates\": {", "\"", ": ", ", ", "}}\n");
}

static void
print_human(const Column *columns, int ncolumns)
{
	for (int i = 0; i < ncolumns; i++)
	{
		if (isnan(columns[i].value))
			printf("%-20s%12s\n", columns[i].name, "-");
		else
			printf("%-20s%12.*f\n", columns[i].name,
				   columns[i].decimals, columns[i].value);
	}
	print_sqlstates("sqlstates           ", "", " ", ", ",
					results.nsqlstates > 0 ? "\n" : "           -\n");
}

static void
report(void)
{
	Results    *r = &results;
	Column		columns[] = {
		{"offered_per_s", 1, r->offered / options.duration},
		{"in_time_per_s", 1, r->latency.count / options.duration},
		{"offered", 0, r->offered},
		{"sent", 0, r->sent},
		{"in_time", 0, r->latency.count},
		{"latency_median_ms", 1, percentile_ms(&r->latency, 0.5)},
		{"latency_p99_ms", 1, percentile_ms(&r->latency, 0.99)},
		{"refused", 0, r->refusal.count},
		{"refusal_median_ms", 3, percentile_ms(&r->refusal, 0.5)},
		{"refusal_p99_ms", 3, percentile_ms(&r->refusal, 0.99)},
		{"timeouts", 0, r->timeouts},
		{"timeouts_unsent", 0, r->unsent},
		{"errors", 0, r->errors},
		{"lag_p99_ms", 3, percentile_ms(&r->lag, 0.99)},
	};
	int			ncolumns = sizeof(columns) / sizeof(columns[0]);

	switch (options.format)
	{
		case FORMAT_HUMAN:
			print_human(columns, ncolumns);
			break;
		case FORMAT_TSV:
			print_tsv(columns, ncolumns);
			break;
		case FORMAT_JSON:
			print_json(columns, ncolumns);
			break;
	}
}

/* ---- options ---- */

static void
usage(void)
{
	printf("loadgen offers queries to a PostgreSQL server at a fixed rate and tells what\n"
		   "became of them.\n\n"
		   "Usage:\n"
		   "  loadgen [OPTION]... [CONNECTION-STRING]\n\n"
		   "Options:\n"
		   "  -r, --rate=NUM         arrivals per second (default %g)\n"
		   "  -t, --duration=SEC     time measured (default %g)\n"
		   "  -w, --warmup=SEC       time before that, with the same load (default %g)\n"
		   "  -d, --deadline=MS      a client gives up so long after the arrival (default %g)\n"
		   "  -c, --connections=NUM  number of connections (default %d)\n"
		   "  -q, --query=SQL        the query (default: a sort of 20,000 rows)\n"
		   "  -P, --prepared         prepare it once per connection\n"
		   "  -g, --give-up=HOW      what ends a query in the server when its client gives up:\n"
		   "                         timeout, cancel or nothing (default timeout)\n"
		   "  -s, --seed=NUM         seed of the arrivals (default %ld)\n"
		   "  -C, --calibrate        closed loop: each connection asks again when answered;\n"
		   "                         neither rate nor deadline apply, but %g s after the\n"
		   "                         time measured clients give up\n"
		   "  -f, --format=FORMAT    human, tsv or json (default human)\n"
		   "  -H, --header           with tsv: a line with the columns' names first\n"
		   "  -h, --help             show this help, then exit\n\n",
		   options.rate, options.duration, options.warmup,
		   options.deadline * 1000, options.connections, options.seed,
		   DRAIN_TIMEOUT);
	printf("Arrivals are a Poisson process: they do not wait for each other's answers.\n"
		   "An arrival that finds no idle connection waits for one in the client.\n\n"
		   "When a client gives up, its query counts as a timeout, whatever the server\n"
		   "makes of it.  With --give-up=timeout the server itself ends it by a\n"
		   "statement_timeout as long as the deadline, which costs it least; with cancel\n"
		   "the client sends a cancel request over a connection of its own, as a driver's\n"
		   "query timeout does; with nothing the query runs to its end.  In every case the\n"
		   "connection takes no other query before the server has answered.\n\n"
		   "What is reported, for the arrivals in the time measured:\n"
		   "  offered_per_s, in_time_per_s    arrivals, and answers before their deadline\n"
		   "  offered, sent, in_time          their numbers\n"
		   "  latency_median_ms, _p99_ms      of answers in time, from the arrival on\n"
		   "  refused                         errors with SQLSTATE %s\n"
		   "  refusal_median_ms, _p99_ms      from sending the query to that error\n"
		   "  timeouts, timeouts_unsent       given up, and of those never sent\n"
		   "  errors                          other errors before the deadline\n"
		   "  lag_p99_ms                      how late this program saw an arrival: above a\n"
		   "                                  few ms it is itself short of CPU time\n"
		   "  sqlstates                       all errors before the deadline by SQLSTATE\n",
		   REFUSED_SQLSTATE);
}

static double
parse_number(const char *name, const char *text, double min, double max)
{
	char	   *end;
	double		value = strtod(text, &end);

	if (end == text || *end != '\0' || !(value >= min && value <= max))
		fatal("--%s must be a number from %g to %g, not \"%s\"",
			  name, min, max, text);
	return value;
}

/* The place of a word in a list that ends with NULL. */
static int
parse_word(const char *name, const char *text, const char *const *words)
{
	for (int i = 0; words[i] != NULL; i++)
	{
		if (strcmp(text, words[i]) == 0)
			return i;
	}
	fatal("unknown --%s \"%s\"; try --help", name, text);
	return -1;
}

static const struct option long_options[] = {
	{"rate", required_argument, NULL, 'r'},
	{"duration", required_argument, NULL, 't'},
	{"warmup", required_argument, NULL, 'w'},
	{"deadline", required_argument, NULL, 'd'},
	{"connections", required_argument, NULL, 'c'},
	{"query", required_argument, NULL, 'q'},
	{"prepared", no_argument, NULL, 'P'},
	{"give-up", required_argument, NULL, 'g'},
	{"seed", required_argument, NULL, 's'},
	{"calibrate", no_argument, NULL, 'C'},
	{"format", required_argument, NULL, 'f'},
	{"header", no_argument, NULL, 'H'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0}
};

static void
set_option(int c)
{
	static const char *const give_ups[] = {"timeout", "cancel", "nothing", NULL};
	static const char *const formats[] = {"human", "tsv", "json", NULL};

	switch (c)
	{
		case 'r':
			options.rate = parse_number("rate", optarg, 0.001, 1e6);
			break;
		case 't':
			options.duration = parse_number("duration", optarg, 0.1, 1e5);
			break;
		case 'w':
			options.warmup = parse_number("warmup", optarg, 0, 1e5);
			break;
		case 'd':
			options.deadline = parse_number("deadline", optarg, 1, 1e6) / 1000;
			break;
		case 'c':
			options.connections = (int) parse_number("connections", optarg, 1, 10000);
			break;
		case 'q':
			options.query = optarg;
			break;
		case 'P':
			options.prepared = true;
			break;
		case 'g':
			options.give_up = (GiveUp) parse_word("give-up", optarg, give_ups);
			break;
		case 's':
			options.seed = (long) parse_number("seed", optarg, 0, 4294967295.0);
			break;
		case 'C':
			options.calibrate = true;
			break;
		case 'f':
			options.format = (Format) parse_word("format", optarg, formats);
			break;
		case 'H':
			options.header = true;
			break;
		case 'h':
			usage();
			exit(0);
		default:
			fputs("Try \"loadgen --help\".\n", stderr);
			exit(1);
	}
}

static void
parse_options(int argc, char **argv)
{
	int			c;

	while ((c = getopt_long(argc, argv, "r:t:w:d:c:q:Pg:s:Cf:Hh",
							long_options, NULL)) != -1)
		set_option(c);
	if (optind < argc)
		options.conninfo = argv[optind++];
	if (optind < argc)
		fatal("too many arguments: \"%s\"", argv[optind]);
	if (options.calibrate)
		options.deadline = 1e9;
}

int
main(int argc, char **argv)
{
	parse_options(argc, argv);
	start_cancel_threads();
	open_connections();
	run_load();
	report();
	close_connections();
	return 0;
}
