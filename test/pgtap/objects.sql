-- The objects that users and their programs can rely on: names, types, rights,
-- comments.  Tests of the extension's SQL objects live here, and only here;
-- those of ../../sql are about what settings and functions do.
BEGIN;
SELECT * FROM no_plan();

SELECT has_extension('pg_admission');

-- Views, and the columns that each has at least

CREATE TEMP TABLE wanted (rel name, col name, type text);
INSERT INTO wanted
SELECT rel, split_part(c, ' ', 1), CASE split_part(c, ' ', 2)
         WHEN 'f8' THEN 'double precision' WHEN 'i4' THEN 'integer' WHEN 'i8' THEN 'bigint'
         WHEN 'ts' THEN 'timestamp with time zone' ELSE split_part(c, ' ', 2) END
FROM (VALUES
  ('pg_admission_status', 'mode text, load_shedding text, running i4, queued i4, queue_capacity i4, workers_used i4, workers_lent i4, workers_total i4, memory_used_bytes i8, memory_total_bytes i8, cpu_wait_ratio f8, cpu_utilization f8, memory_usage f8, load_average f8, throttle_rate f8, reject_probability f8, sampled_at ts, sampler_pid i4'),
  ('pg_admission_queries', 'pid i4, usename name, datname name, application_name text, state text, queue_position i4, memory_bytes i8, workers i4, plan_cost f8, query_id i8, enqueued_at ts, admitted_at ts, wait_ms f8, waits_for text, held_by integer[]'),
  ('pg_stat_admission', 'submitted i8, admitted i8, waited i8, completed i8, rejected i8, rejected_queue_full i8, rejected_queue_timeout i8, rejected_deadline i8, rejected_cpu_overload i8, rejected_breaker i8, rejected_memory i8, rejected_workers i8, dropped_connections i8, cancelled_while_queued i8, bypassed i8, bypassed_superuser i8, bypassed_role i8, bypassed_setting i8, bypassed_cost i8, bypassed_no_relation i8, would_have_waited i8, would_have_rejected i8, forced i8, lent i8, throttled i8, wait_ms_total f8, wait_ms_max f8, wait_histogram bigint[], cpu_wait_us_total i8, cpu_busy_us_total i8, stats_reset ts'),
  ('pg_stat_admission_roles', 'submitted i8, admitted i8, waited i8, rejected i8, would_have_rejected i8, dropped_connections i8, wait_ms_total f8'),
  ('pg_stat_admission_memory', 'queries i8, charged_bytes i8, allocated_bytes i8, underestimated i8, underestimated_bytes i8, overestimated i8, worst_underestimate_query_id i8, worst_underestimate_charged_bytes i8, worst_underestimate_allocated_bytes i8, worst_overestimate_query_id i8, worst_overestimate_charged_bytes i8, worst_overestimate_allocated_bytes i8, stats_reset ts'),
  ('pg_admission_load', 'sampled_at ts, cpu_wait_us i8, cpu_busy_us i8, cpu_wait_ratio f8, cpu_utilization f8, memory_usage f8, load_average f8, running i4, queued i4, admitted i8, rejected i8'),
  ('pg_admission_breakers', 'name text, threshold f8, value f8, tripped boolean, warn_only boolean, trips i8, last_tripped_at ts'),
  ('pg_admission_warnings', 'name text, message text, since ts, value f8, threshold f8')
) v (rel, cols), string_to_table(cols, ', ') c;

SELECT has_view(rel) FROM (SELECT DISTINCT rel FROM wanted ORDER BY rel) w;
SELECT col_type_is(rel, col, type) FROM wanted;
SELECT view_owner_is(rel, current_user) FROM (SELECT DISTINCT rel FROM wanted ORDER BY rel) w;

-- That is all there is, and all of it is explained

CREATE TEMP VIEW members AS
SELECT classid, objid FROM pg_depend
WHERE deptype = 'e' AND refclassid = 'pg_extension'::regclass
  AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'pg_admission');

SELECT set_eq($$SELECT relname FROM members JOIN pg_class ON oid = objid WHERE classid = 'pg_class'::regclass$$,
              'SELECT rel FROM wanted', 'no other relations');
SELECT is_empty($$SELECT pg_describe_object(classid, objid, 0) FROM members
                  WHERE obj_description(objid, classid::regclass::name) IS NULL$$,
                'every object has a comment');
SELECT is_empty($$SELECT attrelid::regclass, attname FROM members JOIN pg_attribute ON attrelid = objid
                  WHERE classid = 'pg_class'::regclass AND attnum > 0 AND NOT attisdropped
                    AND col_description(attrelid, attnum) IS NULL$$,
                'every column of a view has a comment');

-- All may read the views, and do nothing else with them

CREATE ROLE regress_admission_tap;
SELECT table_privs_are(rel, 'regress_admission_tap', '{SELECT}')
FROM (SELECT DISTINCT rel FROM wanted ORDER BY rel) w;

SELECT ok(has_table_privilege('regress_admission_tap', rel, 'SELECT'), 'all may read ' || rel)
FROM (SELECT DISTINCT rel::text FROM wanted ORDER BY rel) w;

-- Functions: who may call them; volatile, parallel safe and strict as they are

SELECT set_eq($$SELECT objid::regprocedure::text, has_function_privilege('regress_admission_tap', objid, 'EXECUTE'),
                       provolatile::text, proparallel::text, proisstrict
                FROM members JOIN pg_proc ON oid = objid WHERE classid = 'pg_proc'::regclass$$,
  $$VALUES ('pg_admission_breakers()', true, 'v', 's', true),
           ('pg_admission_estimate(text)', true, 'v', 'u', true),
           ('pg_admission_load()', true, 'v', 's', true),
           ('pg_admission_queries()', true, 'v', 's', true),
           ('pg_admission_reset()', false, 'v', 'r', true),
           ('pg_admission_status()', true, 'v', 's', true),
           ('pg_admission_trip(text,text,interval)', false, 'v', 'r', false),
           ('pg_admission_untrip(text)', false, 'v', 'r', true),
           ('pg_admission_warnings()', true, 'v', 's', true),
           ('pg_stat_admission()', true, 'v', 's', true),
           ('pg_stat_admission_memory()', true, 'v', 's', true),
           ('pg_stat_admission_roles()', true, 'v', 's', true)$$,
  'functions, and no others: rights, volatility, parallel safety, strictness');

-- Functions behind the views: all may call them

SELECT t FROM (SELECT DISTINCT rel FROM wanted ORDER BY rel) w, LATERAL (VALUES
  (has_function(rel, '{}'::name[])),
  (function_lang_is(rel, '{}'::name[], 'c')),
  (volatility_is(rel, '{}'::name[], 'volatile')),
  (isnt_definer(rel, '{}'::name[])),
  (function_privs_are(rel, '{}'::name[], 'regress_admission_tap', '{EXECUTE}'))) v (t);

-- What a query would claim: for all, too

SELECT has_function('pg_admission_estimate', '{text}'::name[]);
SELECT function_privs_are('pg_admission_estimate', '{text}'::name[], 'regress_admission_tap', '{EXECUTE}');
SELECT ok(col = ANY (proargnames), col || ' is estimated')
FROM pg_proc, unnest('{memory_bytes,workers,plan_cost,verdict,reason}'::text[]) col
WHERE proname = 'pg_admission_estimate';

-- Functions that act: only superusers, until that is granted

SELECT t FROM (VALUES
  ('pg_admission_reset', '{}', 'void'),
  ('pg_admission_trip', '{text,text,interval}', 'void'),
  ('pg_admission_untrip', '{text}', 'boolean')) v (f, args, result), LATERAL (VALUES
  (has_function(f, args::name[])),
  (function_returns(f, args::name[], result)),
  (volatility_is(f, args::name[], 'volatile')),
  (function_privs_are(f, args::name[], 'regress_admission_tap', '{}'::name[]))) w (t);

SET LOCAL ROLE regress_admission_tap;
SELECT throws_ok('SELECT pg_admission_reset()', '42501');
SELECT throws_ok($$SELECT pg_admission_trip('x', 'y', '1 min')$$, '42501');
SELECT throws_ok($$SELECT pg_admission_untrip('x')$$, '42501');
SELECT lives_ok('TABLE ' || rel) FROM unnest(ARRAY['pg_admission_status', 'pg_admission_queries', 'pg_stat_admission', 'pg_stat_admission_roles', 'pg_stat_admission_memory', 'pg_admission_load', 'pg_admission_breakers', 'pg_admission_warnings']) rel;
SELECT is(count(*)::int, 1, 'to anybody, pg_admission_status has one row') FROM pg_admission_status;
SELECT is(count(*)::int, 1, 'and so has pg_stat_admission') FROM pg_stat_admission;
SELECT ok(count(*) >= 0, 'anybody may count the queries') FROM pg_admission_queries;
RESET ROLE;

GRANT EXECUTE ON FUNCTION pg_admission_reset() TO regress_admission_tap;
SET LOCAL ROLE regress_admission_tap;
SELECT lives_ok('SELECT pg_admission_reset()', 'once that is granted, others may reset');
RESET ROLE;
SELECT ok(stats_reset > now() - interval '1 hour', 'and that has been done') FROM pg_stat_admission;

-- A dump does not contain the extension's state, nor anything of a user

SELECT is(extconfig, NULL, 'the extension has no configuration tables') FROM pg_extension WHERE extname = 'pg_admission';

-- What the views say

SELECT is(count(*)::int, 1, rel || ' has one row') FROM (
  SELECT 'pg_admission_status' AS rel FROM pg_admission_status
  UNION ALL SELECT 'pg_stat_admission' FROM pg_stat_admission) x GROUP BY rel ORDER BY rel;
SELECT ok(submitted >= admitted + rejected + cancelled_while_queued, 'counters add up') FROM pg_stat_admission;
SELECT is(bypassed, bypassed_superuser + bypassed_role + bypassed_setting + bypassed_cost + bypassed_no_relation,
          'so do those of bypassed statements') FROM pg_stat_admission;
SELECT is(rejected, rejected_queue_full + rejected_queue_timeout + rejected_deadline + rejected_cpu_overload
          + rejected_breaker + rejected_memory + rejected_workers, 'and of refusals') FROM pg_stat_admission;
SELECT ok(array_length(wait_histogram, 1) > 10, 'waits have a histogram') FROM pg_stat_admission;
SELECT set_eq('SELECT name FROM pg_admission_breakers WHERE name IN (''memory'', ''cpu'', ''load_average'')',
              ARRAY['memory', 'cpu', 'load_average'], 'the built-in breakers are there');
SELECT ok(NOT bool_or(tripped), 'none is tripped by default') FROM pg_admission_breakers WHERE threshold = 0 AND name IN ('memory', 'cpu', 'load_average');

SELECT ok(t.ok, t.col || ' makes sense') FROM pg_admission_status, LATERAL (VALUES
  ('mode', mode IN ('off', 'observe', 'enforce')),
  ('load_shedding', load_shedding IN ('on', 'off')),
  ('running', running >= 0),
  ('queued', queued >= 0),
  ('workers_used', workers_used >= 0),
  ('workers_lent', workers_lent >= 0),
  ('workers_total', workers_total > 0),
  ('memory_used_bytes', memory_used_bytes >= 0),
  ('memory_total_bytes', memory_total_bytes > 0),
  ('sampled_at', sampled_at > now() - interval '10 minutes')) t (col, ok);

-- It works in any schema, and whatever the search path.  (pgTAP does not, so it
-- is told afterwards.)

CREATE SCHEMA regress_admission;
SELECT lives_ok('ALTER EXTENSION pg_admission SET SCHEMA regress_admission', 'it can be moved to another schema');
SET LOCAL search_path = pg_catalog;
SELECT running >= 0 AS status_found FROM regress_admission.pg_admission_status \gset
SELECT count(*) >= 0 AS queries_found FROM regress_admission.pg_admission_queries \gset
RESET search_path;
SELECT ok(:'status_found', 'there, pg_admission_status is found without a search path');
SELECT ok(:'queries_found', 'and so is pg_admission_queries');
SELECT lives_ok('ALTER EXTENSION pg_admission SET SCHEMA public', 'it can be moved back');

-- Dropped and made again, it goes on.  This takes the grant with it.

DROP VIEW members;
SELECT lives_ok('DROP EXTENSION pg_admission', 'it can be dropped');
SELECT lives_ok('CREATE EXTENSION pg_admission', 'and made again');
SELECT ok(running >= 0, 'and goes on') FROM pg_admission_status;
SELECT lives_ok('REVOKE ALL ON ALL FUNCTIONS IN SCHEMA public FROM regress_admission_tap', 'rights can be taken away');
SELECT lives_ok('DROP ROLE regress_admission_tap', 'nothing else depends on a role that had some');

SELECT * FROM finish();
ROLLBACK;
