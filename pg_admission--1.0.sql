/* pg_admission--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION pg_admission" to load this file. \quit

CREATE FUNCTION pg_admission_status(
    OUT mode text,
    OUT load_shedding text,
    OUT running integer,
    OUT queued integer,
    OUT queue_capacity integer,
    OUT workers_used integer,
    OUT workers_lent integer,
    OUT workers_total integer,
    OUT memory_used_bytes bigint,
    OUT memory_total_bytes bigint,
    OUT throttle_rate double precision,
    OUT sampled_at timestamp with time zone,
    OUT sampler_pid integer)
RETURNS record
AS 'MODULE_PATHNAME', 'pgadm_status_1_0'
LANGUAGE C VOLATILE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION pg_admission_status() IS
'state of admission control now; use the view of the same name';

CREATE VIEW pg_admission_status AS
    SELECT * FROM pg_admission_status();

COMMENT ON VIEW pg_admission_status IS
'state of admission control now (since 1.0)';
COMMENT ON COLUMN pg_admission_status.mode IS
'off, observe or enforce: of sessions without a mode of their own';
COMMENT ON COLUMN pg_admission_status.load_shedding IS
'on if the queue is bounded and queries are refused when it is full, else off';
COMMENT ON COLUMN pg_admission_status.running IS
'queries admitted and not ended';
COMMENT ON COLUMN pg_admission_status.queued IS
'queries that wait for admission';
COMMENT ON COLUMN pg_admission_status.queue_capacity IS
'queries that may wait; null if there is no bound';
COMMENT ON COLUMN pg_admission_status.workers_used IS
'workers that running queries hold; more than workers_total if some were forced, or took back what they had lent';
COMMENT ON COLUMN pg_admission_status.workers_lent IS
'workers of running queries that wait for a lock, a client or a remote server, lent to the queue meanwhile';
COMMENT ON COLUMN pg_admission_status.workers_total IS
'the worker budget';
COMMENT ON COLUMN pg_admission_status.memory_used_bytes IS
'memory charged to running queries, in bytes';
COMMENT ON COLUMN pg_admission_status.memory_total_bytes IS
'the memory budget, in bytes';
COMMENT ON COLUMN pg_admission_status.throttle_rate IS
'queries queued or refused per second in the last sample; null if unknown';
COMMENT ON COLUMN pg_admission_status.sampled_at IS
'when the sampler took its last sample';
COMMENT ON COLUMN pg_admission_status.sampler_pid IS
'process ID of the sampler; null if it does not run';

CREATE FUNCTION pg_admission_queries(
    OUT pid integer,
    OUT state text,
    OUT queries integer,
    OUT queue_position integer,
    OUT memory_bytes bigint,
    OUT workers integer,
    OUT plan_cost double precision,
    OUT query_id bigint,
    OUT enqueued_at timestamp with time zone,
    OUT admitted_at timestamp with time zone,
    OUT wait_ms double precision)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pgadm_queries_1_0'
LANGUAGE C VOLATILE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION pg_admission_queries() IS
'queries that run or wait for admission; use the view of the same name';

CREATE VIEW pg_admission_queries AS
    SELECT q.pid, a.usename, a.datname, a.application_name, q.state,
           q.queries, q.queue_position, q.memory_bytes, q.workers,
           q.plan_cost, q.query_id, q.enqueued_at, q.admitted_at, q.wait_ms
    FROM pg_admission_queries() q
    LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid OPERATOR(pg_catalog.=) q.pid;

COMMENT ON VIEW pg_admission_queries IS
'queries that run or wait for admission; of other roles only who they are, as in pg_stat_activity (since 1.0)';
COMMENT ON COLUMN pg_admission_queries.pid IS
'process ID of the backend';
COMMENT ON COLUMN pg_admission_queries.usename IS
'name of the user of the backend';
COMMENT ON COLUMN pg_admission_queries.datname IS
'name of the database of the backend';
COMMENT ON COLUMN pg_admission_queries.application_name IS
'name of the application of the backend';
COMMENT ON COLUMN pg_admission_queries.state IS
'running, lent (running, but waits for somebody else), suspended (a cursor between two fetches) or queued';
COMMENT ON COLUMN pg_admission_queries.queries IS
'1, or more if further queries of one backend are summed in this row';
COMMENT ON COLUMN pg_admission_queries.queue_position IS
'place in the queue, from 1; null if not queued';
COMMENT ON COLUMN pg_admission_queries.memory_bytes IS
'memory charged, or claimed by a queued query, in bytes';
COMMENT ON COLUMN pg_admission_queries.workers IS
'workers held, lent, or claimed by a queued query';
COMMENT ON COLUMN pg_admission_queries.plan_cost IS
'total cost of the plan, 0 for a utility command';
COMMENT ON COLUMN pg_admission_queries.query_id IS
'identifier of the query if compute_query_id is enabled, else 0';
COMMENT ON COLUMN pg_admission_queries.enqueued_at IS
'when the query began to wait; null if it did not';
COMMENT ON COLUMN pg_admission_queries.admitted_at IS
'when the query was admitted; null if queued';
COMMENT ON COLUMN pg_admission_queries.wait_ms IS
'time waited for admission, so far if queued, in milliseconds';

CREATE FUNCTION pg_stat_admission(
    OUT submitted bigint,
    OUT admitted bigint,
    OUT waited bigint,
    OUT completed bigint,
    OUT rejected bigint,
    OUT rejected_queue_full bigint,
    OUT rejected_queue_timeout bigint,
    OUT rejected_memory bigint,
    OUT rejected_workers bigint,
    OUT cancelled_while_queued bigint,
    OUT bypassed bigint,
    OUT bypassed_superuser bigint,
    OUT bypassed_role bigint,
    OUT bypassed_setting bigint,
    OUT bypassed_cost bigint,
    OUT bypassed_no_relation bigint,
    OUT would_have_waited bigint,
    OUT would_have_rejected bigint,
    OUT forced bigint,
    OUT lent bigint,
    OUT throttled bigint,
    OUT rescued bigint,
    OUT wait_ms_total double precision,
    OUT wait_ms_max double precision,
    OUT wait_histogram bigint[],
    OUT stats_reset timestamp with time zone)
RETURNS record
AS 'MODULE_PATHNAME', 'pgadm_statistics_1_0'
LANGUAGE C VOLATILE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION pg_stat_admission() IS
'cumulative statistics of admission control; use the view of the same name';

CREATE VIEW pg_stat_admission AS
    SELECT * FROM pg_stat_admission();

COMMENT ON VIEW pg_stat_admission IS
'cumulative statistics of admission control since stats_reset (since 1.0)';
COMMENT ON COLUMN pg_stat_admission.submitted IS
'queries that asked for admission: admitted + rejected + cancelled_while_queued and those queued now';
COMMENT ON COLUMN pg_stat_admission.admitted IS
'queries admitted, at once or after a wait';
COMMENT ON COLUMN pg_stat_admission.waited IS
'queries admitted after a wait';
COMMENT ON COLUMN pg_stat_admission.completed IS
'admitted queries that have ended, also in an error';
COMMENT ON COLUMN pg_stat_admission.rejected IS
'queries refused, for any reason';
COMMENT ON COLUMN pg_stat_admission.rejected_queue_full IS
'queries refused because the queue was full';
COMMENT ON COLUMN pg_stat_admission.rejected_queue_timeout IS
'queries refused after waiting for pg_admission.queue_timeout';
COMMENT ON COLUMN pg_stat_admission.rejected_memory IS
'queries refused because they need more than the memory budget';
COMMENT ON COLUMN pg_stat_admission.rejected_workers IS
'queries refused because they claim more than the worker budget';
COMMENT ON COLUMN pg_stat_admission.cancelled_while_queued IS
'queries that left the queue because they were cancelled, timed out, terminated, or their client had gone';
COMMENT ON COLUMN pg_stat_admission.bypassed IS
'statements not subject to admission: the sum of the following';
COMMENT ON COLUMN pg_stat_admission.bypassed_superuser IS
'statements of superusers';
COMMENT ON COLUMN pg_stat_admission.bypassed_role IS
'statements of members of pg_admission.exempt_roles';
COMMENT ON COLUMN pg_stat_admission.bypassed_setting IS
'statements of sessions with pg_admission.bypass';
COMMENT ON COLUMN pg_stat_admission.bypassed_cost IS
'statements whose plan is cheaper than pg_admission.exempt_cost';
COMMENT ON COLUMN pg_stat_admission.bypassed_no_relation IS
'cheap statements that touch no relation of a user';
COMMENT ON COLUMN pg_stat_admission.would_have_waited IS
'queries that mode observe let run, and mode enforce would have made wait';
COMMENT ON COLUMN pg_stat_admission.would_have_rejected IS
'queries that mode observe let run, and mode enforce would have refused';
COMMENT ON COLUMN pg_stat_admission.forced IS
'queries admitted over the budget because waiting could have hurt others';
COMMENT ON COLUMN pg_stat_admission.lent IS
'times that a query lent its workers';
COMMENT ON COLUMN pg_stat_admission.throttled IS
'queries queued or refused';
COMMENT ON COLUMN pg_stat_admission.rescued IS
'waiting queries that nobody woke but the sampler; anything but 0 is a defect';
COMMENT ON COLUMN pg_stat_admission.wait_ms_total IS
'time that admitted queries have waited, in milliseconds';
COMMENT ON COLUMN pg_stat_admission.wait_ms_max IS
'longest wait of an admitted query, in milliseconds';
COMMENT ON COLUMN pg_stat_admission.wait_histogram IS
'waits of admitted queries by duration: under 1 ms, under 2 ms, under 4 ms and so on; the last are all longer ones';
COMMENT ON COLUMN pg_stat_admission.stats_reset IS
'when the statistics were last reset';

CREATE FUNCTION pg_admission_reset()
RETURNS void
AS 'MODULE_PATHNAME', 'pgadm_reset_1_0'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION pg_admission_reset() IS
'reset the cumulative statistics; those queued now count as submitted again (since 1.0)';

REVOKE ALL ON FUNCTION pg_admission_reset() FROM PUBLIC;

GRANT SELECT ON pg_admission_status, pg_admission_queries, pg_stat_admission TO PUBLIC;
