-- A stand-in for Citus on a plain server: the catalogs Engram asks, with the columns and types they have in Citus 11.1 to 13,
-- and the two functions it calls, with their signatures. They write down each call, refuse what Citus refuses, and copy the rows a
-- table has to a table of the schema citus_shards, as Citus copies them to its workers and leaves the old ones where they were.
-- It proves what Engram asks for, in which order, in which transaction and as whom. It does not prove what Citus does.

SET allow_system_table_mods = on;
INSERT INTO pg_extension (oid, extname, extowner, extnamespace, extrelocatable, extversion) VALUES (9999, 'citus', 10, 11, false, '13.2-1');
CREATE SCHEMA citus;
CREATE SCHEMA citus_shards;
CREATE TYPE citus.distribution_type AS ENUM ('hash', 'range', 'append');
CREATE TYPE pg_catalog.noderole AS ENUM ('primary', 'secondary', 'unavailable');
CREATE TABLE pg_catalog.pg_dist_local_group (groupid integer NOT NULL PRIMARY KEY);
CREATE TABLE pg_catalog.pg_dist_node (
    nodeid integer NOT NULL PRIMARY KEY,
    groupid integer NOT NULL,
    nodename text NOT NULL,
    nodeport integer NOT NULL DEFAULT 5432,
    noderack text NOT NULL DEFAULT 'default',
    hasmetadata boolean NOT NULL DEFAULT true,
    isactive boolean NOT NULL DEFAULT true,
    noderole noderole NOT NULL DEFAULT 'primary',
    nodecluster name NOT NULL DEFAULT 'default',
    metadatasynced boolean NOT NULL DEFAULT true,
    shouldhaveshards boolean NOT NULL DEFAULT true
);
CREATE TABLE pg_catalog.pg_dist_partition (
    logicalrelid regclass NOT NULL PRIMARY KEY,
    partmethod "char" NOT NULL,
    partkey text,
    colocationid integer NOT NULL DEFAULT 0,
    repmodel "char" NOT NULL DEFAULT 'c',
    autoconverted boolean NOT NULL DEFAULT false
);
CREATE TABLE pg_catalog.pg_dist_shard (
    logicalrelid regclass NOT NULL,
    shardid bigint NOT NULL PRIMARY KEY,
    shardstorage "char" NOT NULL,
    shardminvalue text,
    shardmaxvalue text
);
CREATE TABLE pg_catalog.pg_dist_authinfo (nodeid integer NOT NULL, rolename name NOT NULL, authinfo text NOT NULL);
GRANT SELECT ON pg_catalog.pg_dist_local_group, pg_catalog.pg_dist_node, pg_catalog.pg_dist_partition, pg_catalog.pg_dist_shard TO public;
INSERT INTO pg_dist_local_group VALUES (0);
INSERT INTO pg_dist_node (nodeid, groupid, nodename) VALUES (1, 1, 'worker-1'), (2, 2, 'worker-2');

-- What was called; `transaction` tells which calls belong together.
CREATE TABLE citus.calls (
    n bigint GENERATED ALWAYS AS IDENTITY,
    name text NOT NULL,
    relation text NOT NULL,
    beside text,
    caller name NOT NULL DEFAULT session_user,
    transaction xid8 NOT NULL DEFAULT pg_current_xact_id()
);
CREATE SEQUENCE citus.groups;
CREATE SEQUENCE citus.shards START 102008;
-- What goes wrong in the cluster: '', 'unreachable' or 'loses a row'.
CREATE TABLE citus.trouble (kind text NOT NULL);
INSERT INTO citus.trouble VALUES ('');

CREATE FUNCTION pg_catalog.create_distributed_table(
    table_name regclass, distribution_column text, distribution_type citus.distribution_type DEFAULT 'hash',
    colocate_with text DEFAULT 'default', shard_count integer DEFAULT NULL
) RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    held pg_class;
    bound boolean;
    rows bigint;
    columns text;
    chosen integer;
    shard bigint := nextval('citus.shards');
BEGIN
    SELECT * INTO held FROM pg_class c WHERE c.oid = table_name;
    IF NOT pg_has_role(session_user, held.relowner, 'USAGE') THEN
        RAISE insufficient_privilege USING MESSAGE = format('must be owner of table %s', held.relname);
    ELSIF EXISTS (SELECT FROM pg_dist_partition p WHERE p.logicalrelid = table_name) THEN
        RAISE invalid_table_definition USING MESSAGE = format('table "%s" is already distributed', held.relname);
    ELSIF (SELECT kind FROM citus.trouble) = 'unreachable' THEN
        RAISE connection_failure USING MESSAGE = 'connection to the remote node owner@worker-2:5432 failed',
            DETAIL = 'password authentication failed';
    END IF;
    IF EXISTS (SELECT FROM pg_policy y WHERE y.polrelid = table_name AND coalesce(y.polqual::text, '') || coalesce(y.polwithcheck::text, '') LIKE '%SUBLINK%') THEN
        RAISE feature_not_supported USING MESSAGE = 'cannot create policy',
            DETAIL = 'Subqueries are not supported in policies on distributed tables';
    END IF;
    EXECUTE format('SELECT count(*) FROM %s', table_name) INTO rows;
    SELECT NOT (rolsuper OR rolbypassrls) AND held.relrowsecurity AND held.relforcerowsecurity INTO bound
    FROM pg_roles WHERE rolname = session_user;
    IF rows > 0 AND bound THEN
        RAISE feature_not_supported USING MESSAGE = 'COPY FROM not supported with row-level security';
    END IF;
    IF colocate_with = 'none' THEN
        chosen := nextval('citus.groups');
    ELSE
        SELECT p.colocationid INTO STRICT chosen FROM pg_dist_partition p WHERE p.logicalrelid = colocate_with::regclass;
    END IF;
    INSERT INTO citus.calls (name, relation, beside) VALUES ('create_distributed_table', table_name::text, colocate_with);
    INSERT INTO pg_dist_partition VALUES (table_name, 'h', distribution_column, chosen, 's');
    INSERT INTO pg_dist_shard VALUES (table_name, shard, 't', '-2147483648', '2147483647');
    EXECUTE format('CREATE TABLE citus_shards.%I (LIKE %s INCLUDING ALL)', held.relname, table_name);
    SELECT string_agg(quote_ident(attname), ', ') INTO columns FROM pg_attribute
    WHERE attrelid = table_name AND attnum > 0 AND NOT attisdropped AND attgenerated = '';
    EXECUTE format('INSERT INTO citus_shards.%I (%s) SELECT %s FROM %s', held.relname, columns, columns, table_name);
    IF (SELECT kind FROM citus.trouble) = 'loses a row' THEN
        EXECUTE format('DELETE FROM %s WHERE ctid = (SELECT min(ctid) FROM %s)', table_name, table_name);
    END IF;
END $$;

CREATE FUNCTION pg_catalog.truncate_local_data_after_distributing_table(function_name regclass)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_dist_partition p WHERE p.logicalrelid = function_name) THEN
        RAISE EXCEPTION 'supplied parameter is not a distributed relation';
    END IF;
    INSERT INTO citus.calls (name, relation) VALUES ('truncate_local_data_after_distributing_table', function_name::text);
    EXECUTE format('TRUNCATE %s CASCADE', function_name);
END $$;
