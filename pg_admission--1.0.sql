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
    OUT cpu_wait_ratio double precision,
    OUT cpu_utilization double precision,
    OUT cpu_pressure double precision,
    OUT memory_usage double precision,
    OUT load_average double precision,
    OUT throttle_rate double precision,
    OUT reject_probability double precision,
    OUT sampled_at timestamp with time zone,
    OUT sampler_pid integer)
RETURNS record
AS 'MODULE_PATHNAME', 'pgadm_status_1_0'
LANGUAGE C VOLATILE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION pg_admission_status() IS
'state of admission control now; use the view of the same name (since 1.0)';

CREATE VIEW pg_admission_status AS
    SELECT * FROM pg_admission_status();

COMMENT ON VIEW pg_admission_status IS
'state of admission control now (since 1.0)';
COMMENT ON COLUMN pg_admission_status.mode IS
'off, observe or enforce: of sessions without a mode of their own; off for all if pg_admission.enabled is off';
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
COMMENT ON COLUMN pg_admission_status.cpu_wait_ratio IS
'time that the server''s processes wait for a CPU, by the time they run; null if unknown';
COMMENT ON COLUMN pg_admission_status.cpu_utilization IS
'share of the CPUs that the server may use which is in use, 0 to 1; null if unknown';
COMMENT ON COLUMN pg_admission_status.cpu_pressure IS
'share of the time in which any process of the machine waits for a CPU, 0 to 1; null if unknown';
COMMENT ON COLUMN pg_admission_status.memory_usage IS
'share of the memory limit of the server''s control group, or else of the machine''s memory, in use, page cache not counted, 0 to 1; null if unknown';
COMMENT ON COLUMN pg_admission_status.load_average IS
'load average of the last minute; null if unknown';
COMMENT ON COLUMN pg_admission_status.throttle_rate IS
'queries queued or refused per second in the last sample; null if unknown';
COMMENT ON COLUMN pg_admission_status.reject_probability IS
'probability with which a query of this session is refused because of cpu_wait_ratio';
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
    OUT wait_ms double precision,
    OUT waits_for text,
    OUT held_by integer[])
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pgadm_queries_1_0'
LANGUAGE C VOLATILE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION pg_admission_queries() IS
'queries that run or wait for admission; use the view of the same name (since 1.0)';

CREATE VIEW pg_admission_queries AS
    SELECT q.pid, a.usename, a.datname, a.application_name, q.state,
           q.queries, q.queue_position, q.memory_bytes, q.workers,
           q.plan_cost, q.query_id, q.enqueued_at, q.admitted_at, q.wait_ms,
           q.waits_for, q.held_by
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
COMMENT ON COLUMN pg_admission_queries.waits_for IS
'what a queued query waits for: workers, memory (and maybe workers too), or turn if there is enough for it, but others are before it or what is free is saved up; null if not queued';
COMMENT ON COLUMN pg_admission_queries.held_by IS
'process IDs of the backends that hold most of what a queued query lacks, at most 5, the largest first; null if it lacks nothing';

CREATE FUNCTION pg_stat_admission(
    OUT submitted bigint,
    OUT admitted bigint,
    OUT waited bigint,
    OUT completed bigint,
    OUT rejected bigint,
    OUT rejected_queue_full bigint,
    OUT rejected_queue_timeout bigint,
    OUT rejected_deadline bigint,
    OUT rejected_cpu_overload bigint,
    OUT rejected_breaker bigint,
    OUT rejected_memory bigint,
    OUT rejected_workers bigint,
    OUT dropped_connections bigint,
    OUT cancelled_while_queued bigint,
    OUT bypassed bigint,
    OUT bypassed_superuser bigint,
    OUT bypassed_role bigint,
    OUT bypassed_setting bigint,
    OUT bypassed_cost bigint,
    OUT bypassed_no_relation bigint,
    OUT would_have_waited bigint,
    OUT would_have_rejected bigint,
    OUT would_have_dropped_connections bigint,
    OUT forced bigint,
    OUT lent bigint,
    OUT throttled bigint,
    OUT rescued bigint,
    OUT wait_ms_total double precision,
    OUT wait_ms_max double precision,
    OUT wait_histogram bigint[],
    OUT cpu_wait_us_total bigint,
    OUT cpu_busy_us_total bigint,
    OUT stats_reset timestamp with time zone)
RETURNS record
AS 'MODULE_PATHNAME', 'pgadm_statistics_1_0'
LANGUAGE C VOLATILE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION pg_stat_admission() IS
'cumulative statistics of admission control; use the view of the same name (since 1.0)';

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
COMMENT ON COLUMN pg_stat_admission.rejected_deadline IS
'queries refused because their deadline could not be met; always 0 in 1.0, which knows no deadlines';
COMMENT ON COLUMN pg_stat_admission.rejected_cpu_overload IS
'queries refused because of the CPU wait ratio';
COMMENT ON COLUMN pg_stat_admission.rejected_breaker IS
'queries refused by a circuit breaker';
COMMENT ON COLUMN pg_stat_admission.rejected_memory IS
'queries refused because they need more than the memory budget';
COMMENT ON COLUMN pg_stat_admission.rejected_workers IS
'queries refused because they claim more than the worker budget';
COMMENT ON COLUMN pg_stat_admission.dropped_connections IS
'connections refused because of the CPU wait ratio; not counted as queries';
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
COMMENT ON COLUMN pg_stat_admission.would_have_dropped_connections IS
'connections that mode observe let in, and mode enforce would have refused';
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
COMMENT ON COLUMN pg_stat_admission.cpu_wait_us_total IS
'time that the server''s processes have waited for a CPU, in microseconds, as of the last sample';
COMMENT ON COLUMN pg_stat_admission.cpu_busy_us_total IS
'time that the server''s processes have run, in microseconds, as of the last sample';
COMMENT ON COLUMN pg_stat_admission.stats_reset IS
'when the statistics were last reset';

CREATE FUNCTION pg_stat_admission_roles(
    OUT usesysid oid,
    OUT datid oid,
    OUT submitted bigint,
    OUT admitted bigint,
    OUT waited bigint,
    OUT rejected bigint,
    OUT would_have_rejected bigint,
    OUT dropped_connections bigint,
    OUT wait_ms_total double precision)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pgadm_roles_1_0'
LANGUAGE C VOLATILE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION pg_stat_admission_roles() IS
'cumulative statistics of admission control by role and database; use the view of the same name (since 1.0)';

CREATE VIEW pg_stat_admission_roles AS
    SELECT s.usesysid, r.rolname AS usename, s.datid, d.datname,
           s.submitted, s.admitted, s.waited, s.rejected,
           s.would_have_rejected, s.dropped_connections, s.wait_ms_total
    FROM pg_stat_admission_roles() s
    LEFT JOIN pg_catalog.pg_roles r ON r.oid OPERATOR(pg_catalog.=) s.usesysid
    LEFT JOIN pg_catalog.pg_database d ON d.oid OPERATOR(pg_catalog.=) s.datid;

COMMENT ON VIEW pg_stat_admission_roles IS
'cumulative statistics of admission control by role and database since pg_stat_admission.stats_reset; of other roles only who they are (since 1.0)';
COMMENT ON COLUMN pg_stat_admission_roles.usesysid IS
'OID of the role; null for all those together for which there was no room';
COMMENT ON COLUMN pg_stat_admission_roles.usename IS
'name of the role that the session authenticated as';
COMMENT ON COLUMN pg_stat_admission_roles.datid IS
'OID of the database; null likewise';
COMMENT ON COLUMN pg_stat_admission_roles.datname IS
'name of the database';
COMMENT ON COLUMN pg_stat_admission_roles.submitted IS
'queries that asked for admission';
COMMENT ON COLUMN pg_stat_admission_roles.admitted IS
'queries admitted, at once or after a wait';
COMMENT ON COLUMN pg_stat_admission_roles.waited IS
'queries admitted after a wait';
COMMENT ON COLUMN pg_stat_admission_roles.rejected IS
'queries refused, for any reason';
COMMENT ON COLUMN pg_stat_admission_roles.would_have_rejected IS
'queries that mode observe let run, and mode enforce would have refused';
COMMENT ON COLUMN pg_stat_admission_roles.dropped_connections IS
'new connections refused because of the CPU wait ratio';
COMMENT ON COLUMN pg_stat_admission_roles.wait_ms_total IS
'time that admitted queries have waited, in milliseconds';

CREATE FUNCTION pg_stat_admission_memory(
    OUT queries bigint,
    OUT charged_bytes bigint,
    OUT allocated_bytes bigint,
    OUT underestimated bigint,
    OUT underestimated_bytes bigint,
    OUT overestimated bigint,
    OUT worst_underestimate_query_id bigint,
    OUT worst_underestimate_charged_bytes bigint,
    OUT worst_underestimate_allocated_bytes bigint,
    OUT worst_overestimate_query_id bigint,
    OUT worst_overestimate_charged_bytes bigint,
    OUT worst_overestimate_allocated_bytes bigint,
    OUT stats_reset timestamp with time zone)
RETURNS record
AS 'MODULE_PATHNAME', 'pgadm_memory_1_0'
LANGUAGE C VOLATILE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION pg_stat_admission_memory() IS
'charges compared with what queries really had allocated; use the view of the same name (since 1.0)';

CREATE VIEW pg_stat_admission_memory AS
    SELECT * FROM pg_stat_admission_memory();

COMMENT ON VIEW pg_stat_admission_memory IS
'charges compared with what queries really had allocated, since stats_reset (since 1.0)';
COMMENT ON COLUMN pg_stat_admission_memory.queries IS
'queries that ended without an error and were charged memory, or took more than 1 MB without';
COMMENT ON COLUMN pg_stat_admission_memory.charged_bytes IS
'memory that they were charged, summed, in bytes';
COMMENT ON COLUMN pg_stat_admission_memory.allocated_bytes IS
'memory that their executors had allocated when they ended, parallel workers included, summed, in bytes';
COMMENT ON COLUMN pg_stat_admission_memory.underestimated IS
'queries that had allocated more than they were charged';
COMMENT ON COLUMN pg_stat_admission_memory.underestimated_bytes IS
'by how much these exceeded their charges, summed, in bytes';
COMMENT ON COLUMN pg_stat_admission_memory.overestimated IS
'queries that were charged more than four times what they had allocated';
COMMENT ON COLUMN pg_stat_admission_memory.worst_underestimate_query_id IS
'identifier of the query that exceeded its charge most, 0 if compute_query_id is not enabled; shown to members of pg_read_all_stats';
COMMENT ON COLUMN pg_stat_admission_memory.worst_underestimate_charged_bytes IS
'its charge, in bytes; null if no query exceeded its charge';
COMMENT ON COLUMN pg_stat_admission_memory.worst_underestimate_allocated_bytes IS
'what it had allocated, in bytes';
COMMENT ON COLUMN pg_stat_admission_memory.worst_overestimate_query_id IS
'identifier of the query that stayed most below its charge, 0 if compute_query_id is not enabled; shown to members of pg_read_all_stats';
COMMENT ON COLUMN pg_stat_admission_memory.worst_overestimate_charged_bytes IS
'its charge, in bytes; null if no query stayed below its charge';
COMMENT ON COLUMN pg_stat_admission_memory.worst_overestimate_allocated_bytes IS
'what it had allocated, in bytes';
COMMENT ON COLUMN pg_stat_admission_memory.stats_reset IS
'when the statistics were last reset';

CREATE FUNCTION pg_admission_load(
    OUT sampled_at timestamp with time zone,
    OUT cpu_wait_us bigint,
    OUT cpu_busy_us bigint,
    OUT cpu_wait_ratio double precision,
    OUT cpu_utilization double precision,
    OUT cpu_pressure double precision,
    OUT memory_usage double precision,
    OUT load_average double precision,
    OUT running integer,
    OUT queued integer,
    OUT admitted bigint,
    OUT rejected bigint)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pgadm_load_1_0'
LANGUAGE C VOLATILE STRICT PARALLEL SAFE ROWS 6000;

COMMENT ON FUNCTION pg_admission_load() IS
'the last samples of the server''s load; use the view of the same name (since 1.0)';

CREATE VIEW pg_admission_load AS
    SELECT * FROM pg_admission_load();

COMMENT ON VIEW pg_admission_load IS
'samples of the server''s load, newest first, of the last 10 minutes at least (since 1.0)';
COMMENT ON COLUMN pg_admission_load.sampled_at IS
'when the sample was taken';
COMMENT ON COLUMN pg_admission_load.cpu_wait_us IS
'growing total of the time that the server''s processes have waited for a CPU, in microseconds; null if unknown';
COMMENT ON COLUMN pg_admission_load.cpu_busy_us IS
'growing total of the time that the server''s processes have run, in microseconds; null if unknown';
COMMENT ON COLUMN pg_admission_load.cpu_wait_ratio IS
'what the two have grown by lately, divided; null if unknown';
COMMENT ON COLUMN pg_admission_load.cpu_utilization IS
'share of the CPUs that the server may use which was in use, 0 to 1; null if unknown';
COMMENT ON COLUMN pg_admission_load.cpu_pressure IS
'share of the time in which any process of the machine waited for a CPU, 0 to 1; null if unknown';
COMMENT ON COLUMN pg_admission_load.memory_usage IS
'share of the memory limit in use, page cache not counted, 0 to 1; null if unknown';
COMMENT ON COLUMN pg_admission_load.load_average IS
'load average of the last minute; null if unknown';
COMMENT ON COLUMN pg_admission_load.running IS
'queries admitted and not ended';
COMMENT ON COLUMN pg_admission_load.queued IS
'queries that waited for admission';
COMMENT ON COLUMN pg_admission_load.admitted IS
'queries admitted since pg_stat_admission.stats_reset';
COMMENT ON COLUMN pg_admission_load.rejected IS
'queries refused since pg_stat_admission.stats_reset';

CREATE FUNCTION pg_admission_breakers(
    OUT name text,
    OUT threshold double precision,
    OUT value double precision,
    OUT tripped boolean,
    OUT warn_only boolean,
    OUT statements text[],
    OUT trips bigint,
    OUT warned bigint,
    OUT last_tripped_at timestamp with time zone,
    OUT expires_at timestamp with time zone,
    OUT reason text)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pgadm_breakers_1_0'
LANGUAGE C VOLATILE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION pg_admission_breakers() IS
'the circuit breakers; use the view of the same name (since 1.0)';

CREATE VIEW pg_admission_breakers AS
    SELECT * FROM pg_admission_breakers();

COMMENT ON VIEW pg_admission_breakers IS
'circuit breakers: built-in, of other extensions, and tripped by hand (since 1.0)';
COMMENT ON COLUMN pg_admission_breakers.name IS
'name of the breaker';
COMMENT ON COLUMN pg_admission_breakers.threshold IS
'value at which it trips, 0 if it is off';
COMMENT ON COLUMN pg_admission_breakers.value IS
'its value in the last sample; null if unknown, then it does not trip';
COMMENT ON COLUMN pg_admission_breakers.tripped IS
'whether it refuses statements now';
COMMENT ON COLUMN pg_admission_breakers.warn_only IS
'whether it only warns and counts';
COMMENT ON COLUMN pg_admission_breakers.statements IS
'kinds of statements that it refuses: read, write';
COMMENT ON COLUMN pg_admission_breakers.trips IS
'times that it has tripped since the server was started';
COMMENT ON COLUMN pg_admission_breakers.warned IS
'queries that it would have refused but for warn_only';
COMMENT ON COLUMN pg_admission_breakers.last_tripped_at IS
'when it tripped last; null if never';
COMMENT ON COLUMN pg_admission_breakers.expires_at IS
'when a breaker tripped by hand clears by itself';
COMMENT ON COLUMN pg_admission_breakers.reason IS
'reason given by whoever tripped it by hand';

CREATE FUNCTION pg_admission_warnings(
    OUT name text,
    OUT message text,
    OUT since timestamp with time zone,
    OUT value double precision,
    OUT threshold double precision)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pgadm_warnings_1_0'
LANGUAGE C VOLATILE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION pg_admission_warnings() IS
'the active overload warnings; use the view of the same name (since 1.0)';

CREATE VIEW pg_admission_warnings AS
    SELECT * FROM pg_admission_warnings();

COMMENT ON VIEW pg_admission_warnings IS
'overload warnings that are active now (since 1.0)';
COMMENT ON COLUMN pg_admission_warnings.name IS
'cpu_wait, memory, queue, sampler (it does not run) or connection_roles (some that should never be refused may be)';
COMMENT ON COLUMN pg_admission_warnings.message IS
'what is wrong, and what can be done about it';
COMMENT ON COLUMN pg_admission_warnings.since IS
'since when the value has been over the threshold, or the sampler missing; null for connection_roles';
COMMENT ON COLUMN pg_admission_warnings.value IS
'the value in the last sample: a ratio, a share, or queries throttled; a number of roles; null if unknown, and for sampler';
COMMENT ON COLUMN pg_admission_warnings.threshold IS
'value at which the warning is raised; null for sampler';

CREATE FUNCTION pg_admission_trip(name text, reason text, duration interval)
RETURNS void
AS 'MODULE_PATHNAME', 'pgadm_trip_1_0'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION pg_admission_trip(text, text, interval) IS
'trip a circuit breaker of that name by hand, so that all queries are refused for the duration (since 1.0)';

REVOKE ALL ON FUNCTION pg_admission_trip(text, text, interval) FROM PUBLIC;

CREATE FUNCTION pg_admission_untrip(name text)
RETURNS boolean
AS 'MODULE_PATHNAME', 'pgadm_untrip_1_0'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION pg_admission_untrip(text) IS
'clear a circuit breaker that was tripped by hand; returns whether it was tripped (since 1.0)';

REVOKE ALL ON FUNCTION pg_admission_untrip(text) FROM PUBLIC;

CREATE FUNCTION pg_admission_estimate(
    query text,
    OUT memory_bytes bigint,
    OUT workers integer,
    OUT plan_cost double precision,
    OUT verdict text,
    OUT reason text,
    OUT lowered_to_kb integer,
    OUT operators jsonb)
RETURNS record
AS 'MODULE_PATHNAME', 'pgadm_estimate_1_0'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION pg_admission_estimate(text) IS
'plan a query without running it, and tell what it would be charged, what would become of it now in this session (run, queue, reject or bypass; in mode observe, what mode enforce would do), why, the work_mem that it would be lowered to, and the operators that make up its memory, biggest first (since 1.0)';

CREATE FUNCTION pg_admission_reset()
RETURNS void
AS 'MODULE_PATHNAME', 'pgadm_reset_1_0'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION pg_admission_reset() IS
'reset the cumulative statistics; those queued now count as submitted again (since 1.0)';

REVOKE ALL ON FUNCTION pg_admission_reset() FROM PUBLIC;

GRANT SELECT ON pg_admission_status, pg_admission_queries, pg_stat_admission,
    pg_stat_admission_memory, pg_stat_admission_roles, pg_admission_load,
    pg_admission_breakers, pg_admission_warnings TO PUBLIC;
