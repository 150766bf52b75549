--
-- Who and what is exempt.  A claim that no budget can meet makes every query
-- fail that is subject to admission, whatever else the server does.
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS pg_admission;
RESET client_min_messages;
CREATE ROLE regress_admission_app;
CREATE ROLE regress_admission_monitor IN ROLE pg_monitor;
CREATE ROLE regress_admission_super SUPERUSER;
CREATE TABLE admission_t AS SELECT i FROM generate_series(1, 10) i;
GRANT SELECT ON admission_t TO PUBLIC;
CREATE FUNCTION admission_count() RETURNS bigint LANGUAGE plpgsql AS
	'BEGIN RETURN (SELECT count(*) FROM admission_t); END';
CREATE FUNCTION bt_index_check(regclass) RETURNS void LANGUAGE plpgsql AS 'BEGIN END';
CREATE FUNCTION pgstattuple(regclass) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN 1; END';
\set VERBOSITY sqlstate

SET pg_admission.mode = enforce;
SET pg_admission.query_workers = 1000000;

-- Superusers
SELECT count(*) FROM admission_t;
SET ROLE regress_admission_app;
SELECT count(*) FROM admission_t;
RESET ROLE;

-- An ordinary role
SET SESSION AUTHORIZATION regress_admission_app;
SELECT count(*) FROM admission_t;
WITH x AS (SELECT count(*) FROM admission_t) SELECT 1 FROM x;
SELECT 1 WHERE EXISTS (SELECT FROM admission_t);
SELECT relname FROM pg_class WHERE relpages = (SELECT max(i) FROM admission_t);
SELECT admission_count();
DO $$ BEGIN PERFORM count(*) FROM admission_t; END $$;
DO $$ BEGIN PERFORM 1; END $$;
COPY admission_t TO STDOUT;
COPY (SELECT * FROM admission_t) TO STDOUT;
PREPARE p AS SELECT count(*) FROM admission_t;
EXECUTE p;
EXPLAIN (COSTS OFF) SELECT count(*) FROM admission_t;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT count(*) FROM admission_t;
CREATE TEMP TABLE x AS SELECT * FROM admission_t;
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM admission_t;
ROLLBACK;

-- No relation of a user, and cheap
SELECT 1;
VALUES (1), (2);
SELECT count(*) > 0 FROM pg_class;
SELECT count(*) > 0 FROM information_schema.tables WHERE table_schema = 'pg_catalog';
SELECT count(*) > 0 FROM pg_stat_activity;
SELECT count(*) >= 0 FROM pg_admission_queries;
SELECT sum(i) FROM generate_series(1, 1000) i;
\d admission_t

-- No relation of a user, but expensive
SELECT count(*) FROM generate_series(1, 1000000000);
SELECT count(*) FROM generate_series(1, 1e9);
SELECT count(*) FROM pg_class a, pg_class b, pg_class c;

-- Nor a function that reads a whole relation itself
SELECT brin_summarize_new_values('admission_t');
SELECT gin_clean_pending_list(c.oid) FROM pg_class c WHERE relname = 'nothing';
SELECT 1 WHERE (SELECT bool_or(bt_index_check(c.oid) IS NULL) FROM pg_class c);
VALUES (1, pgstattuple('admission_t')), (2, NULL);
SELECT * FROM pgstattuple('admission_t');

-- Catalogs, which cost the more the more there is in them
SELECT count(*) > 0 FROM pg_attribute a, pg_class c;

-- Not subject to admission
BEGIN;
SAVEPOINT a;
SET LOCAL work_mem = '1MB';
SHOW work_mem;
ROLLBACK;

-- A member of an exempt role
SET SESSION AUTHORIZATION regress_admission_monitor;
SELECT count(*) FROM admission_t;
SELECT admission_count();

-- Somebody else, in their functions
SET SESSION AUTHORIZATION DEFAULT;
ALTER FUNCTION admission_count() OWNER TO regress_admission_super;
ALTER FUNCTION admission_count() SECURITY DEFINER;
SET SESSION AUTHORIZATION regress_admission_app;
SELECT admission_count();

-- Bypass
SET SESSION AUTHORIZATION DEFAULT;
SET pg_admission.bypass = on;
SET SESSION AUTHORIZATION regress_admission_app;
SELECT count(*) FROM admission_t;
SET SESSION AUTHORIZATION DEFAULT;
RESET pg_admission.bypass;

-- They are counted
SELECT bypassed, bypassed_superuser, bypassed_role, bypassed_setting, bypassed_no_relation, rejected_workers
FROM pg_stat_admission \gset before_
SELECT count(*) FROM admission_t;
SET SESSION AUTHORIZATION regress_admission_monitor;
SELECT count(*) FROM admission_t;
SET SESSION AUTHORIZATION regress_admission_app;
SELECT count(*) FROM admission_t;
SELECT 1;
SET SESSION AUTHORIZATION DEFAULT;
SET pg_admission.bypass = on;
SELECT 1;
RESET pg_admission.bypass;
SELECT bypassed > :before_bypassed AS bypassed,
       bypassed_superuser > :before_bypassed_superuser AS superuser,
       bypassed_role > :before_bypassed_role AS role,
       bypassed_setting > :before_bypassed_setting AS setting,
       bypassed_no_relation > :before_bypassed_no_relation AS no_relation,
       rejected_workers > :before_rejected_workers AS rejected
FROM pg_stat_admission;

-- Modes
SET pg_admission.mode = observe;
SELECT submitted, admitted, would_have_rejected, rejected_workers FROM pg_stat_admission \gset before_
SET SESSION AUTHORIZATION regress_admission_app;
SELECT count(*) FROM admission_t;
SET SESSION AUTHORIZATION DEFAULT;
SELECT submitted > :before_submitted AS submitted,
       admitted > :before_admitted AS admitted,
       would_have_rejected > :before_would_have_rejected AS would_have_rejected
FROM pg_stat_admission;
SET pg_admission.mode = off;
SET SESSION AUTHORIZATION regress_admission_app;
SELECT count(*) FROM admission_t;
SET SESSION AUTHORIZATION DEFAULT;

-- The errors
\set VERBOSITY default
SET pg_admission.mode = enforce;
SET SESSION AUTHORIZATION regress_admission_app;
DO $$
DECLARE
	detail text;
	hint text;
BEGIN
	PERFORM count(*) FROM admission_t;
EXCEPTION WHEN program_limit_exceeded THEN
	GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
	RAISE NOTICE '% %', SQLSTATE, SQLERRM;
	RAISE NOTICE '%', regexp_replace(detail, '=\d+', '=N', 'g');
	RAISE NOTICE '%', hint;
END $$;
SET SESSION AUTHORIZATION DEFAULT;
RESET pg_admission.query_workers;

-- Others see who, but not what
SET pg_admission.mode = observe;
SET SESSION AUTHORIZATION regress_admission_app;
BEGIN;
DECLARE c CURSOR FOR SELECT i FROM admission_t ORDER BY i;
FETCH c;
SELECT state, usename IS NOT NULL AS usename, memory_bytes, workers, plan_cost
FROM pg_admission_queries WHERE pid = pg_backend_pid();
SET LOCAL SESSION AUTHORIZATION DEFAULT;
GRANT pg_read_all_stats TO regress_admission_app;
SET LOCAL SESSION AUTHORIZATION regress_admission_app;
SELECT state, usename IS NOT NULL AS usename, memory_bytes > 0 AS memory, workers, plan_cost > 0 AS cost,
       queries, queue_position, enqueued_at, admitted_at IS NOT NULL AS admitted, wait_ms
FROM pg_admission_queries WHERE pid = pg_backend_pid();
COMMIT;
SET SESSION AUTHORIZATION DEFAULT;
SELECT count(*) FROM pg_admission_queries WHERE pid = pg_backend_pid();
RESET pg_admission.mode;

DROP FUNCTION admission_count(), bt_index_check(regclass), pgstattuple(regclass);
DROP TABLE admission_t;
DROP ROLE regress_admission_app, regress_admission_monitor, regress_admission_super;
