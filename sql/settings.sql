--
-- The settings: what there is, and what is refused.  Nothing is changed for
-- the server: ALTER SYSTEM is only used with values that it must refuse.
--
SELECT name, vartype, boot_val, unit, context, min_val, max_val, enumvals
FROM pg_settings WHERE name LIKE 'pg\_admission.%'
ORDER BY name COLLATE "C";

-- Every one has a description
SELECT name FROM pg_settings
WHERE name LIKE 'pg\_admission.%' AND (short_desc IS NULL OR short_desc !~ '^[A-Z0-9].*\.$')
ORDER BY name COLLATE "C";

-- Out of range, below and above, and of the wrong kind
SELECT format('ALTER SYSTEM SET %I = %L', name, min_val::numeric - 1)
FROM pg_settings
WHERE name LIKE 'pg\_admission.%' AND vartype IN ('integer', 'real')
ORDER BY name COLLATE "C" \gexec
SELECT format('ALTER SYSTEM SET %I = %L', name, max_val::numeric + 1)
FROM pg_settings
WHERE name LIKE 'pg\_admission.%' AND vartype IN ('integer', 'real') AND max_val::numeric < 2147483647
ORDER BY name COLLATE "C" \gexec
SELECT format('ALTER SYSTEM SET %I = %L', name, 'nonsense')
FROM pg_settings
WHERE name LIKE 'pg\_admission.%' AND vartype <> 'string'
ORDER BY name COLLATE "C" \gexec

-- A percentage is no fraction
ALTER SYSTEM SET pg_admission.memory_fraction = 75;
ALTER SYSTEM SET pg_admission.memory_fraction = '50%';
ALTER SYSTEM SET pg_admission.memory_fraction = 'NaN';

-- Lists
ALTER SYSTEM SET pg_admission.exempt_roles = 'a,,b';

-- Unknown settings
SET pg_admission.quue_capacity = 5;
ALTER SYSTEM SET pg_admission.quue_capacity = 5;
ALTER ROLE CURRENT_USER SET pg_admission.quue_capacity = 5;
SHOW pg_admission.quue_capacity;

-- In a session
SET pg_admission.mode = 'enforced';
SET pg_admission.mode = 'ENFORCE';
SHOW pg_admission.mode;
RESET pg_admission.mode;
SET pg_admission.queue_timeout = -1;
SET pg_admission.queue_timeout = '5 parsec';
SET pg_admission.queue_timeout = '90s';
SHOW pg_admission.queue_timeout;
RESET pg_admission.queue_timeout;
SET pg_admission.queue_capacity = 5;
SET pg_admission.load_shedding = on;

-- Who may
CREATE ROLE regress_admission_user;
ALTER ROLE regress_admission_user SET pg_admission.mode = 'enforced';
ALTER ROLE regress_admission_user SET pg_admission.queue_capacity = 5;
ALTER ROLE regress_admission_user SET pg_admission.mode = 'enforce';
SET SESSION AUTHORIZATION regress_admission_user;
SET pg_admission.mode = off;
SET pg_admission.bypass = on;
SET pg_admission.query_memory = '1kB';
SET pg_admission.query_workers = 1;
SET pg_admission.oversize = alone;
SET pg_admission.queue_timeout = '1s';
RESET pg_admission.queue_timeout;
RESET SESSION AUTHORIZATION;
DROP ROLE regress_admission_user;
