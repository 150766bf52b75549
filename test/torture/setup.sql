-- What test/torture/torture.c works on.

CREATE EXTENSION pg_admission;
CREATE EXTENSION dblink;
CREATE EXTENSION postgres_fdw;

CREATE ROLE torture LOGIN;
CREATE ROLE torture_observe LOGIN IN ROLE torture;
ALTER ROLE torture_observe SET pg_admission.mode = 'observe';
ALTER ROLE torture_observe SET role = 'torture';	-- who owns everything
GRANT ALL ON SCHEMA public TO torture;

SET ROLE torture;

CREATE TABLE many (id int PRIMARY KEY, v int, pad text);
INSERT INTO many SELECT i, i % 100, md5(i::text) FROM generate_series(1, 20000) i;
CREATE TABLE hot (id int PRIMARY KEY, n bigint);
INSERT INTO hot SELECT i, 0 FROM generate_series(0, 4) i;
CREATE TABLE parent (id int PRIMARY KEY);
INSERT INTO parent SELECT generate_series(0, 49);
CREATE TABLE child (id bigserial PRIMARY KEY, parent int REFERENCES parent DEFERRABLE);
CREATE TABLE ddl1 (a serial PRIMARY KEY, b int);
CREATE TABLE ddl2 (a serial PRIMARY KEY, b int);
INSERT INTO ddl1 (b) SELECT generate_series(1, 500);
INSERT INTO ddl2 (b) SELECT generate_series(1, 500);
CREATE MATERIALIZED VIEW matview AS SELECT v, count(*) FROM many GROUP BY v;
CREATE UNIQUE INDEX ON matview (v);
ANALYZE many, hot, parent, child, ddl1, ddl2, matview;

-- recursion
CREATE FUNCTION f_nested(depth bigint) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    IF depth <= 0 THEN RETURN 0; END IF;
    RETURN (SELECT count(*) FROM hot WHERE id = depth) + f_nested(depth - 1);
END $$;

-- errors, also those of the admission, that are caught
CREATE FUNCTION f_exception(which bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    result bigint;
BEGIN
    BEGIN
        SELECT count(*) INTO result FROM many WHERE v = which;
        IF which % 2 = 1 THEN
            PERFORM 1 / (id - id) FROM hot;
        END IF;
        RETURN result;
    EXCEPTION
        WHEN division_by_zero THEN
            SELECT sum(h.n) INTO result FROM hot h;
            RETURN result;
        WHEN insufficient_resources THEN
            RETURN -1;
    END;
END $$;

CREATE FUNCTION f_open(name refcursor) RETURNS refcursor LANGUAGE plpgsql AS $$
BEGIN
    OPEN name FOR SELECT * FROM many ORDER BY pad;
    RETURN name;
END $$;

CREATE PROCEDURE p_commit(n int) LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1 .. n LOOP
        INSERT INTO child (parent) VALUES (i);
        IF i % 3 = 0 THEN ROLLBACK; ELSE COMMIT; END IF;
        PERFORM count(*) FROM many WHERE v = i;
    END LOOP;
END $$;

RESET ROLE;

-- this server itself, as a remote one
SELECT format('host=%s port=%s dbname=%s user=torture options=''-c statement_timeout=10s''',
              split_part(current_setting('unix_socket_directories'), ',', 1),
              current_setting('port'), current_database()) AS conninfo \gset

CREATE FUNCTION f_dblink(query text) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    RETURN (SELECT n FROM public.dblink(current_setting('torture.conninfo'), query) AS t (n bigint));
END $$;
SELECT format('ALTER FUNCTION f_dblink SET torture.conninfo = %L', :'conninfo') \gexec

SELECT format('CREATE SERVER self FOREIGN DATA WRAPPER postgres_fdw '
              'OPTIONS (host %L, port %L, dbname %L, options ''-c statement_timeout=10s'', keep_connections ''off'')',
              split_part(current_setting('unix_socket_directories'), ',', 1),
              current_setting('port'), current_database()) \gexec
CREATE USER MAPPING FOR torture SERVER self OPTIONS (user 'torture', password_required 'false');
CREATE USER MAPPING FOR torture_observe SERVER self OPTIONS (user 'torture', password_required 'false');
CREATE FOREIGN TABLE far_many (id int, v int, pad text) SERVER self OPTIONS (table_name 'many');
GRANT SELECT ON far_many TO torture;
