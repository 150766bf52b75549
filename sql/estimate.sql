-- pg_admission_estimate()
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS pg_admission;
RESET client_min_messages;
CREATE ROLE regress_estimate LOGIN;
CREATE SCHEMA regress_estimate AUTHORIZATION regress_estimate;
SET search_path = regress_estimate, public;
SET max_parallel_workers_per_gather = 0;
SET SESSION AUTHORIZATION regress_estimate;
CREATE TABLE big AS
    SELECT i, md5(i::text) AS filler FROM generate_series(1, 20000) i;
CREATE TABLE secret (s text);
ANALYZE big;
RESET SESSION AUTHORIZATION;
REVOKE ALL ON secret FROM PUBLIC;
ALTER TABLE secret OWNER TO CURRENT_USER;
SET pg_admission.mode = enforce;

-- What is shown, without the figures
CREATE FUNCTION estimate(query text, OUT needs_memory boolean, OUT workers int,
    OUT has_cost boolean, OUT verdict text, OUT reason text, OUT lowered boolean,
    OUT operators text)
LANGUAGE sql AS $$
    SELECT memory_bytes > 0, workers, plan_cost > 0, verdict, reason,
           lowered_to_kb IS NOT NULL,
           (SELECT string_agg(o->>'operator', ', ')
            FROM jsonb_array_elements(operators) o)
    FROM pg_admission_estimate($1)
$$;

-- The superuser bypasses
SELECT * FROM estimate('SELECT * FROM big ORDER BY filler');

SET SESSION AUTHORIZATION regress_estimate;
SELECT * FROM estimate('SELECT * FROM big WHERE i = 1');
SELECT * FROM estimate('SELECT * FROM big ORDER BY filler');
SELECT * FROM estimate('SELECT filler, count(*) FROM big GROUP BY 1 ORDER BY 1');
SELECT * FROM estimate('SELECT 1');
SELECT * FROM estimate('INSERT INTO big SELECT * FROM big ORDER BY filler');
SELECT * FROM estimate('UPDATE big SET i = 0');
SELECT count(*), min(i) FROM big;

-- Figures
SELECT memory_bytes > 1000000, plan_cost > 1000, o->>'operator', o->>'by',
       (o->>'processes')::int, (o->>'memory_bytes')::bigint > 1000000, o ? 'keeps'
FROM pg_admission_estimate('SELECT * FROM big ORDER BY filler') e,
     jsonb_array_elements(e.operators) o LIMIT 1;
SELECT memory_bytes = (SELECT sum((o->>'memory_bytes')::bigint)
                       FROM jsonb_array_elements(operators) o)
FROM pg_admission_estimate('SELECT * FROM big ORDER BY filler');
SELECT bool_and(bytes <= before)
FROM (SELECT (o->>'memory_bytes')::bigint AS bytes,
             lag((o->>'memory_bytes')::bigint, 1, 1e12::bigint) OVER (ORDER BY n) AS before
      FROM pg_admission_estimate(
               'SELECT DISTINCT filler FROM big JOIN (SELECT i FROM big ORDER BY i DESC) b USING (i) ORDER BY 1') e,
           jsonb_array_elements(e.operators) WITH ORDINALITY x (o, n)) s;

-- Workers
SET max_parallel_workers_per_gather = 2;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SELECT (estimate('SELECT count(*) FROM big')).workers BETWEEN 2 AND 3 AS parallel;
-- A cursor's plan is not
SELECT (estimate('DECLARE c CURSOR FOR SELECT count(*) FROM big')).workers;
SELECT (estimate('EXPLAIN ANALYZE DECLARE c CURSOR FOR SELECT count(*) FROM big')).workers;
RESET max_parallel_workers_per_gather;
RESET min_parallel_table_scan_size;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
SET max_parallel_workers_per_gather = 0;

-- Lowered, and refused
SET pg_admission.query_memory_limit = '1MB';
SELECT * FROM estimate('SELECT * FROM big ORDER BY filler');
SELECT memory_bytes <= 1024 * 1024 FROM pg_admission_estimate('SELECT * FROM big ORDER BY filler');
RESET pg_admission.query_memory_limit;
RESET SESSION AUTHORIZATION;
SET pg_admission.query_memory = 2147483647;
SET SESSION AUTHORIZATION regress_estimate;
SELECT * FROM estimate('SELECT * FROM big WHERE i = 1');
RESET SESSION AUTHORIZATION;
RESET pg_admission.query_memory;
SET pg_admission.query_workers = 1000000;
SET SESSION AUTHORIZATION regress_estimate;
SELECT * FROM estimate('SELECT * FROM big WHERE i = 1');
RESET SESSION AUTHORIZATION;
RESET pg_admission.query_workers;

-- Exempt in other ways
SET pg_admission.bypass = on;
SET SESSION AUTHORIZATION regress_estimate;
SELECT verdict, reason FROM pg_admission_estimate('SELECT * FROM big');
RESET SESSION AUTHORIZATION;
RESET pg_admission.bypass;
SET pg_admission.mode = off;
SET SESSION AUTHORIZATION regress_estimate;
SELECT verdict, reason FROM pg_admission_estimate('SELECT * FROM big');
RESET SESSION AUTHORIZATION;
SET pg_admission.mode = enforce;
SET SESSION AUTHORIZATION regress_estimate;

-- Commands
SELECT * FROM estimate('VACUUM big');
SELECT * FROM estimate('COPY big TO STDOUT');
SELECT * FROM estimate('COPY (SELECT * FROM big ORDER BY filler) TO STDOUT');
SELECT * FROM estimate('CREATE TABLE x AS SELECT * FROM big ORDER BY filler');
SELECT * FROM estimate('CREATE TABLE x AS SELECT * FROM big ORDER BY filler WITH NO DATA');
SELECT * FROM estimate('EXPLAIN SELECT * FROM big ORDER BY filler');
SELECT * FROM estimate('EXPLAIN (ANALYZE) SELECT * FROM big ORDER BY filler');
SELECT * FROM estimate('EXPLAIN (ANALYZE) CREATE TABLE x AS SELECT * FROM big ORDER BY filler');
SELECT * FROM estimate('DECLARE c CURSOR FOR SELECT * FROM big ORDER BY filler');
SELECT * FROM estimate('SET work_mem = 64');
SHOW work_mem;
SELECT * FROM estimate('DO $$ BEGIN RAISE EXCEPTION ''was run''; END $$');
SELECT to_regclass('x');

-- Rules
CREATE VIEW v AS SELECT * FROM big ORDER BY filler;
CREATE RULE r AS ON INSERT TO v DO INSTEAD NOTHING;
SELECT * FROM estimate('SELECT * FROM v');
SELECT * FROM estimate('INSERT INTO v VALUES (1)');
CREATE RULE u AS ON UPDATE TO v DO INSTEAD
    (DELETE FROM big WHERE i = 1; INSERT INTO big SELECT * FROM big ORDER BY filler);
SELECT * FROM estimate('UPDATE v SET i = 1');

-- Nothing is run
CREATE FUNCTION runs() RETURNS int LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'was run'; END $$;
SELECT * FROM estimate('SELECT runs() FROM big');

-- Errors
SELECT pg_admission_estimate('SELECT * FROM big WHERE i = $1');
SELECT pg_admission_estimate('CREATE TABLE x AS SELECT * FROM big WHERE i = $2');
SELECT pg_admission_estimate('');
SELECT pg_admission_estimate('SELECT 1; SELECT 2');
SELECT pg_admission_estimate('SELECT nonsense FROM big');
SELECT pg_admission_estimate('SELECT FROM FROM');
SELECT pg_admission_estimate('EXECUTE p');
SELECT pg_admission_estimate('CREATE TABLE x AS EXECUTE p');
SELECT pg_admission_estimate(NULL) IS NULL;

-- Privileges are those of the caller
SELECT pg_admission_estimate('SELECT * FROM secret');
SELECT pg_admission_estimate('INSERT INTO secret VALUES (1)');
SELECT pg_admission_estimate('EXPLAIN ANALYZE SELECT * FROM secret');
RESET SESSION AUTHORIZATION;
CREATE FUNCTION forbidden(int) RETURNS int LANGUAGE plpgsql VOLATILE AS
    'BEGIN RETURN 1; END';
REVOKE ALL ON FUNCTION forbidden(int) FROM PUBLIC;
SET SESSION AUTHORIZATION regress_estimate;
SELECT pg_admission_estimate('SELECT forbidden(i) FROM big');

-- Neither counted nor charged
RESET SESSION AUTHORIZATION;
SELECT submitted AS submitted_before FROM pg_stat_admission \gset
SET SESSION AUTHORIZATION regress_estimate;
SELECT verdict FROM pg_admission_estimate('SELECT * FROM big ORDER BY filler');
SELECT submitted - :submitted_before AS counted FROM pg_stat_admission;
SELECT running, memory_used_bytes FROM pg_admission_status;

RESET SESSION AUTHORIZATION;
SET client_min_messages = warning;
DROP SCHEMA regress_estimate CASCADE;
DROP ROLE regress_estimate;
