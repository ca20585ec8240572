-- Three roles with no more than they need. Run it with psql as an administrator, in the database that holds (or will hold)
-- Engram, before the first `engram init` or at any time after; running it again changes nothing.
--
--     psql -d engram -f roles.sql
--     psql -d engram -v owner=memory_owner -v app=memory_app -v reader=memory_reader -f roles.sql
--
-- owner    owns the schema: `engram init` (migrations), `engram index --nearest`, VACUUM
-- app      everything Engram does day to day: reads and writes rows, of the tenant its transaction names, nothing else
-- reader   answers questions; every write is refused
--
-- They are made without a password: give them one with \password, or let the server authenticate them another way.

\set ON_ERROR_STOP on
\if :{?owner} \else \set owner engram_owner
\endif
\if :{?app} \else \set app engram_app
\endif
\if :{?reader} \else \set reader engram_reader
\endif

BEGIN;

SELECT format('CREATE ROLE %I LOGIN', wanted.role) FROM (VALUES (:'owner'), (:'app'), (:'reader')) AS wanted(role)
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = wanted.role) \gexec

GRANT CONNECT ON DATABASE :"DBNAME" TO :"owner", :"app", :"reader";
CREATE EXTENSION IF NOT EXISTS vector;
CREATE SCHEMA IF NOT EXISTS engram;
-- Here already, so that the default privileges below do not let the application write to it.
CREATE TABLE IF NOT EXISTS engram.schema_versions (version integer PRIMARY KEY, applied timestamptz NOT NULL DEFAULT now());

-- Whoever made them: from now on they belong to the owner.
ALTER SCHEMA engram OWNER TO :"owner";
SELECT format('ALTER %s engram.%I OWNER TO %I', CASE relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, relname, :'owner')
FROM pg_class WHERE relnamespace = 'engram'::regnamespace AND relkind IN ('r', 'p', 'S')
    AND relowner <> (SELECT oid FROM pg_roles WHERE rolname = :'owner') \gexec

REVOKE ALL ON SCHEMA engram FROM PUBLIC, :"app", :"reader";
REVOKE ALL ON ALL TABLES IN SCHEMA engram FROM PUBLIC, :"app", :"reader";
REVOKE ALL ON ALL SEQUENCES IN SCHEMA engram FROM PUBLIC, :"app", :"reader";
GRANT USAGE ON SCHEMA engram TO :"app", :"reader";
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA engram TO :"app";
REVOKE INSERT, UPDATE, DELETE ON engram.schema_versions FROM :"app";
GRANT USAGE ON ALL SEQUENCES IN SCHEMA engram TO :"app";
GRANT SELECT ON ALL TABLES IN SCHEMA engram TO :"reader";

-- What later migrations make is covered too.
ALTER DEFAULT PRIVILEGES FOR ROLE :"owner" IN SCHEMA engram GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO :"app";
ALTER DEFAULT PRIVILEGES FOR ROLE :"owner" IN SCHEMA engram GRANT USAGE ON SEQUENCES TO :"app";
ALTER DEFAULT PRIVILEGES FOR ROLE :"owner" IN SCHEMA engram GRANT SELECT ON TABLES TO :"reader";

COMMIT;
