--
-- The objects of the extension
--
CREATE EXTENSION pg_admission;

-- Every one has a comment, and so has every column of a view
SELECT pg_describe_object(classid, objid, 0) AS without_comment
FROM pg_depend d
WHERE deptype = 'e' AND refclassid = 'pg_extension'::regclass
  AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'pg_admission')
  AND obj_description(objid, classid::regclass::name) IS NULL
ORDER BY 1;
SELECT attrelid::regclass, attname
FROM pg_attribute
WHERE attnum > 0 AND NOT attisdropped
  AND attrelid IN (SELECT objid FROM pg_depend
                   WHERE deptype = 'e' AND classid = 'pg_class'::regclass
                     AND refclassid = 'pg_extension'::regclass
                     AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'pg_admission'))
  AND col_description(attrelid, attnum) IS NULL
ORDER BY 1, 2;

-- Who may do what: all may read, but only superusers may act
CREATE ROLE regress_admission_reader;
SELECT objid::regclass AS object, has_table_privilege('regress_admission_reader', objid, 'SELECT') AS may
FROM pg_depend d JOIN pg_class c ON c.oid = objid
WHERE deptype = 'e' AND classid = 'pg_class'::regclass
  AND refclassid = 'pg_extension'::regclass
  AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'pg_admission')
ORDER BY objid::regclass::text COLLATE "C";
SELECT objid::regprocedure AS object, has_function_privilege('regress_admission_reader', objid, 'EXECUTE') AS may,
       provolatile AS volatile, proparallel AS parallel, proisstrict AS strict
FROM pg_depend d JOIN pg_proc p ON p.oid = objid
WHERE deptype = 'e' AND classid = 'pg_proc'::regclass
  AND refclassid = 'pg_extension'::regclass
  AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'pg_admission')
ORDER BY objid::regprocedure::text COLLATE "C";
SET ROLE regress_admission_reader;
SELECT count(*) FROM pg_admission_status;
SELECT count(*) FROM pg_stat_admission;
SELECT count(*) >= 0 AS ok FROM pg_admission_queries;
SELECT pg_admission_reset();
RESET ROLE;
GRANT EXECUTE ON FUNCTION pg_admission_reset() TO regress_admission_reader;
SET ROLE regress_admission_reader;
SELECT pg_admission_reset();
RESET ROLE;
SELECT stats_reset > now() - interval '1 hour' AS ok FROM pg_stat_admission;

-- It works in any schema, and whatever the search path
CREATE SCHEMA regress_admission;
ALTER EXTENSION pg_admission SET SCHEMA regress_admission;
SET search_path = pg_catalog;
SELECT running >= 0 AS ok FROM regress_admission.pg_admission_status;
SELECT count(*) >= 0 AS ok FROM regress_admission.pg_admission_queries;
RESET search_path;
ALTER EXTENSION pg_admission SET SCHEMA public;
DROP SCHEMA regress_admission;

-- The state makes sense
SELECT mode IN ('off', 'observe', 'enforce') AS mode,
       load_shedding IN ('on', 'off') AS load_shedding,
       running >= 0 AS running, queued >= 0 AS queued,
       workers_used >= 0 AS workers_used, workers_lent >= 0 AS workers_lent,
       workers_total > 0 AS workers_total,
       memory_used_bytes >= 0 AS memory_used, memory_total_bytes > 0 AS memory_total,
       sampled_at > now() - interval '10 minutes' AS sampled
FROM pg_admission_status;

-- Dropped and made again, it goes on
DROP EXTENSION pg_admission;
CREATE EXTENSION pg_admission;
SELECT running >= 0 AS ok FROM pg_admission_status;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA public FROM regress_admission_reader;
DROP ROLE regress_admission_reader;
