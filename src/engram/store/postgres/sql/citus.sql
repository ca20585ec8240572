-- What Citus has in its catalogs, as they are since Citus 11.1. Asked only where the extension is in the database.

-- name: citus_version
SELECT extversion FROM pg_catalog.pg_extension WHERE extname = 'citus'

-- name: citus_nodes
-- The group of this node, 0 for the coordinator, and how many nodes may hold shards.
SELECT l.groupid, (
    SELECT count(*) FROM pg_catalog.pg_dist_node n WHERE n.isactive AND n.noderole = 'primary' AND n.shouldhaveshards
) FROM pg_catalog.pg_dist_local_group l

-- name: citus_tables
-- Every table with rows of tenants. If the coordinator stores shards, they are next to the tables they belong to.
SELECT c.relname, pg_get_userbyid(c.relowner), pg_has_role(c.relowner, 'USAGE'), c.relkind = 'p', coalesce(p.partmethod = 'h', false),
    p.colocationid, pg_relation_size(c.oid) > 0
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant' AND NOT a.attisdropped
LEFT JOIN pg_catalog.pg_dist_partition p ON p.logicalrelid = c.oid
WHERE c.relnamespace = 'engram'::regnamespace AND c.relkind IN ('r', 'p') AND NOT EXISTS (
    SELECT FROM pg_catalog.pg_dist_shard s JOIN pg_catalog.pg_class o ON o.oid = s.logicalrelid
    WHERE c.relname = o.relname || '_' || s.shardid
)
ORDER BY c.relname

-- name: citus_distribute
SELECT pg_catalog.create_distributed_table(%(table)s::regclass, 'tenant'::text, colocate_with => %(beside)s::text)

-- name: citus_empty
SELECT pg_catalog.truncate_local_data_after_distributing_table(%(table)s::regclass)

-- name: citus_setting
SELECT d.datname, pg_has_role(d.datdba, 'USAGE'), coalesce('citus.propagate_set_commands=local' = ANY(s.setconfig), false)
FROM pg_catalog.pg_database d LEFT JOIN pg_catalog.pg_db_role_setting s ON s.setdatabase = d.oid AND s.setrole = 0
WHERE d.datname = current_database()

-- name: citus_reached
-- Answered where the tenant's rows are, whether there are any or not.
SELECT current_setting('engram.tenant', true), count(*) FROM engram.store_facts WHERE tenant = %(tenant)s
