-- Tables and data of TPC-H, after the public specification of the benchmark:
-- its schema, cardinalities, value ranges and correlations, as far as its 22
-- queries depend on them.  Every value is computed from the row's key, so that
-- the same scale always gives the same data.
--
--		psql -v scale=0.05 -f data.sql

\set ON_ERROR_STOP on
SET client_min_messages = warning;

-- A number from lo to hi for that key; streams are independent of each other.
CREATE FUNCTION draw(key bigint, stream bigint, lo bigint, hi bigint)
RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
'SELECT $3 + (hashint8extended($1, $2) & 9223372036854775807) % ($4 - $3 + 1)';

CREATE FUNCTION pick(key bigint, stream bigint, words text[])
RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
'SELECT $3[draw($1, $2, 1, cardinality($3))]';

-- Some words of a comment
CREATE FUNCTION prose(key bigint, stream bigint, length bigint)
RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
	SELECT substr(string_agg(pick($1, $2 + i, ARRAY['furiously', 'quickly',
		'slyly', 'carefully', 'blithely', 'special', 'pending', 'unusual',
		'express', 'packages', 'requests', 'accounts', 'deposits', 'foxes',
		'ideas', 'theodolites', 'platelets', 'instructions', 'excuses', 'asymptotes',
		'sleep', 'wake', 'haggle', 'nag', 'cajole', 'above', 'according', 'even',
		'final', 'regular']), ' '), 1, $3::int)
	FROM generate_series(1, $3 / 7 + 1) i
$$;

CREATE TABLE region (
	r_regionkey int PRIMARY KEY,
	r_name char(25) NOT NULL,
	r_comment varchar(152));

CREATE TABLE nation (
	n_nationkey int PRIMARY KEY,
	n_name char(25) NOT NULL,
	n_regionkey int NOT NULL REFERENCES region,
	n_comment varchar(152));

CREATE TABLE supplier (
	s_suppkey int PRIMARY KEY,
	s_name char(25) NOT NULL,
	s_address varchar(40) NOT NULL,
	s_nationkey int NOT NULL,
	s_phone char(15) NOT NULL,
	s_acctbal decimal(15, 2) NOT NULL,
	s_comment varchar(101) NOT NULL);

CREATE TABLE customer (
	c_custkey int PRIMARY KEY,
	c_name varchar(25) NOT NULL,
	c_address varchar(40) NOT NULL,
	c_nationkey int NOT NULL,
	c_phone char(15) NOT NULL,
	c_acctbal decimal(15, 2) NOT NULL,
	c_mktsegment char(10) NOT NULL,
	c_comment varchar(117) NOT NULL);

CREATE TABLE part (
	p_partkey int PRIMARY KEY,
	p_name varchar(55) NOT NULL,
	p_mfgr char(25) NOT NULL,
	p_brand char(10) NOT NULL,
	p_type varchar(25) NOT NULL,
	p_size int NOT NULL,
	p_container char(10) NOT NULL,
	p_retailprice decimal(15, 2) NOT NULL,
	p_comment varchar(23) NOT NULL);

CREATE TABLE partsupp (
	ps_partkey int NOT NULL,
	ps_suppkey int NOT NULL,
	ps_availqty int NOT NULL,
	ps_supplycost decimal(15, 2) NOT NULL,
	ps_comment varchar(199) NOT NULL);

CREATE TABLE orders (
	o_orderkey bigint PRIMARY KEY,
	o_custkey int NOT NULL,
	o_orderstatus char(1) NOT NULL,
	o_totalprice decimal(15, 2) NOT NULL,
	o_orderdate date NOT NULL,
	o_orderpriority char(15) NOT NULL,
	o_clerk char(15) NOT NULL,
	o_shippriority int NOT NULL,
	o_comment varchar(79) NOT NULL);

CREATE TABLE lineitem (
	l_orderkey bigint NOT NULL,
	l_partkey int NOT NULL,
	l_suppkey int NOT NULL,
	l_linenumber int NOT NULL,
	l_quantity decimal(15, 2) NOT NULL,
	l_extendedprice decimal(15, 2) NOT NULL,
	l_discount decimal(15, 2) NOT NULL,
	l_tax decimal(15, 2) NOT NULL,
	l_returnflag char(1) NOT NULL,
	l_linestatus char(1) NOT NULL,
	l_shipdate date NOT NULL,
	l_commitdate date NOT NULL,
	l_receiptdate date NOT NULL,
	l_shipinstruct char(25) NOT NULL,
	l_shipmode char(10) NOT NULL,
	l_comment varchar(44) NOT NULL);

SELECT (10000 * :scale)::int AS suppliers, (150000 * :scale)::int AS customers,
	(200000 * :scale)::int AS parts, (1500000 * :scale)::int AS orders \gset

INSERT INTO region
SELECT ordinality - 1, name, prose(ordinality, 1, 60)
FROM unnest(ARRAY['AFRICA', 'AMERICA', 'ASIA', 'EUROPE', 'MIDDLE EAST'])
	WITH ORDINALITY AS r (name);

INSERT INTO nation
SELECT ordinality - 1, name, region, prose(ordinality, 2, 60)
FROM unnest(
	ARRAY['ALGERIA', 'ARGENTINA', 'BRAZIL', 'CANADA', 'EGYPT', 'ETHIOPIA',
		'FRANCE', 'GERMANY', 'INDIA', 'INDONESIA', 'IRAN', 'IRAQ', 'JAPAN',
		'JORDAN', 'KENYA', 'MOROCCO', 'MOZAMBIQUE', 'PERU', 'CHINA', 'ROMANIA',
		'SAUDI ARABIA', 'VIETNAM', 'RUSSIA', 'UNITED KINGDOM', 'UNITED STATES'],
	ARRAY[0, 1, 1, 1, 4, 0, 3, 3, 2, 2, 4, 4, 2, 4, 0, 0, 0, 1, 2, 3, 4, 2, 3, 3, 1])
	WITH ORDINALITY AS n (name, region);

INSERT INTO supplier
SELECT k, 'Supplier#' || lpad(k::text, 9, '0'), prose(k, 10, draw(k, 10, 10, 40)),
	nation, 10 + nation || '-' || draw(k, 11, 100, 999) || '-' ||
		draw(k, 12, 100, 999) || '-' || draw(k, 13, 1000, 9999),
	draw(k, 14, -99999, 999999) / 100.0,
	CASE WHEN draw(k, 15, 1, 200) = 1 THEN 'Customer slyly Complaints '
		WHEN draw(k, 15, 1, 200) = 2 THEN 'Customer slyly Recommends ' ELSE '' END
		|| prose(k, 16, draw(k, 16, 25, 70))
FROM generate_series(1, :suppliers) k, draw(k, 17, 0, 24) nation;

INSERT INTO customer
SELECT k, 'Customer#' || lpad(k::text, 9, '0'), prose(k, 20, draw(k, 20, 10, 40)),
	nation, 10 + nation || '-' || draw(k, 21, 100, 999) || '-' ||
		draw(k, 22, 100, 999) || '-' || draw(k, 23, 1000, 9999),
	draw(k, 24, -99999, 999999) / 100.0,
	pick(k, 25, ARRAY['AUTOMOBILE', 'BUILDING', 'FURNITURE', 'MACHINERY', 'HOUSEHOLD']),
	prose(k, 26, draw(k, 26, 29, 116))
FROM generate_series(1, :customers) k, draw(k, 27, 0, 24) nation;

INSERT INTO part
SELECT k,
	(SELECT string_agg(pick(k, 30 + i, ARRAY['almond', 'antique', 'aquamarine',
		'azure', 'beige', 'bisque', 'black', 'blanched', 'blue', 'blush', 'brown',
		'burlywood', 'burnished', 'chartreuse', 'chiffon', 'chocolate', 'coral',
		'cornflower', 'cornsilk', 'cream', 'cyan', 'dark', 'deep', 'dim',
		'dodger', 'drab', 'firebrick', 'floral', 'forest', 'frosted',
		'gainsboro', 'ghost', 'goldenrod', 'green', 'grey', 'honeydew', 'hot',
		'indian', 'ivory', 'khaki', 'lace', 'lavender', 'lawn', 'lemon',
		'light', 'lime', 'linen', 'magenta', 'maroon', 'medium']), ' ')
		FROM generate_series(1, 5) i),
	'Manufacturer#' || mfgr, 'Brand#' || mfgr || draw(k, 37, 1, 5),
	pick(k, 38, ARRAY['STANDARD', 'SMALL', 'MEDIUM', 'LARGE', 'ECONOMY', 'PROMO'])
		|| ' ' || pick(k, 39, ARRAY['ANODIZED', 'BURNISHED', 'PLATED', 'POLISHED', 'BRUSHED'])
		|| ' ' || pick(k, 40, ARRAY['TIN', 'NICKEL', 'BRASS', 'STEEL', 'COPPER']),
	draw(k, 41, 1, 50),
	pick(k, 42, ARRAY['SM', 'LG', 'MED', 'JUMBO', 'WRAP']) || ' ' ||
		pick(k, 43, ARRAY['CASE', 'BOX', 'BAG', 'JAR', 'PKG', 'PACK', 'CAN', 'DRUM']),
	(90000 + (k / 10) % 20001 + 100 * (k % 1000)) / 100.0,
	prose(k, 44, draw(k, 44, 5, 22))
FROM generate_series(1, :parts) k, draw(k, 36, 1, 5) mfgr;

-- The four suppliers of a part
CREATE FUNCTION supplier_of(part bigint, i bigint, suppliers bigint)
RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
'SELECT ($1 + $2 * ($3 / 4 + ($1 - 1) / $3)) % $3 + 1';

INSERT INTO partsupp
SELECT p_partkey, supplier_of(p_partkey, i, :suppliers), draw(k, 50, 1, 9999),
	draw(k, 51, 100, 100000) / 100.0, prose(k, 52, draw(k, 52, 49, 198))
FROM part, generate_series(0, 3) i, LATERAL (SELECT p_partkey * 4 + i) AS x (k);

-- One of three customers has no orders.  Keys are sparse.
CREATE TEMPORARY TABLE drafts AS
SELECT (k / 8) * 32 + k % 8 AS orderkey,
	(draw(k, 60, 0, :customers / 3 - 1) * 3 + draw(k, 61, 1, 2))::int AS custkey,
	date '1992-01-01' + draw(k, 62, 0, 2405)::int AS orderdate,
	draw(k, 63, 1, 7) AS lines
FROM generate_series(1, :orders) k;

INSERT INTO lineitem
SELECT orderkey, partkey, supplier_of(partkey, draw(k, 71, 0, 3), :suppliers), line,
	quantity, quantity * (90000 + (partkey / 10) % 20001 + 100 * (partkey % 1000)) / 100.0,
	draw(k, 73, 0, 10) / 100.0, draw(k, 74, 0, 8) / 100.0,
	CASE WHEN receiptdate > date '1995-06-17' THEN 'N' ELSE pick(k, 75, ARRAY['R', 'A']) END,
	CASE WHEN shipdate > date '1995-06-17' THEN 'O' ELSE 'F' END,
	shipdate, orderdate + draw(k, 76, 30, 90)::int, receiptdate,
	pick(k, 77, ARRAY['DELIVER IN PERSON', 'COLLECT COD', 'NONE', 'TAKE BACK RETURN']),
	pick(k, 78, ARRAY['REG AIR', 'AIR', 'RAIL', 'SHIP', 'TRUCK', 'MAIL', 'FOB']),
	prose(k, 79, draw(k, 79, 10, 43))
FROM drafts, generate_series(1, lines) line,
	LATERAL (SELECT orderkey * 8 + line) AS x (k),
	LATERAL (SELECT draw(k, 70, 1, :parts), draw(k, 72, 1, 50),
		orderdate + draw(k, 80, 1, 121)::int) AS y (partkey, quantity, shipdate),
	LATERAL (SELECT shipdate + draw(k, 81, 1, 30)::int) AS z (receiptdate);

INSERT INTO orders
SELECT orderkey, custkey, status, totalprice, orderdate,
	pick(orderkey, 90, ARRAY['1-URGENT', '2-HIGH', '3-MEDIUM', '4-NOT SPECIFIED', '5-LOW']),
	'Clerk#' || lpad(draw(orderkey, 91, 1, 1000)::text, 9, '0'), 0,
	prose(orderkey, 92, draw(orderkey, 92, 19, 78))
FROM drafts JOIN (
	SELECT l_orderkey AS orderkey,
		CASE WHEN min(l_linestatus) = max(l_linestatus) THEN min(l_linestatus) ELSE 'P' END AS status,
		sum(l_extendedprice * (1 + l_tax) * (1 - l_discount)) AS totalprice
	FROM lineitem GROUP BY l_orderkey) l USING (orderkey);

ALTER TABLE partsupp ADD PRIMARY KEY (ps_partkey, ps_suppkey);
ALTER TABLE lineitem ADD PRIMARY KEY (l_orderkey, l_linenumber);
CREATE INDEX ON supplier (s_nationkey);
CREATE INDEX ON customer (c_nationkey);
CREATE INDEX ON partsupp (ps_suppkey);
CREATE INDEX ON orders (o_custkey);
CREATE INDEX ON orders (o_orderdate);
CREATE INDEX ON lineitem (l_partkey, l_suppkey);
CREATE INDEX ON lineitem (l_shipdate);
ANALYZE region, nation, supplier, customer, part, partsupp, orders, lineitem;
