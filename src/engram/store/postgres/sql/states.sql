-- name: state
SELECT value::text FROM engram.named_states WHERE tenant = %(tenant)s AND name = %(name)s

-- name: lock_state
-- The row is locked whether it was there or not: two that add it at the same time take turns, too.
INSERT INTO engram.named_states AS known (tenant, name, value) VALUES (%(tenant)s, %(name)s, %(value)s::json)
ON CONFLICT (tenant, name) DO UPDATE SET value = known.value RETURNING value::text

-- name: put_state
INSERT INTO engram.named_states (tenant, name, value) VALUES (%(tenant)s, %(name)s, %(value)s::json)
ON CONFLICT (tenant, name) DO UPDATE SET value = excluded.value

-- name: drop_state
DELETE FROM engram.named_states WHERE tenant = %(tenant)s AND name = %(name)s

-- name: state_names
SELECT name FROM engram.named_states
WHERE tenant = %(tenant)s AND name >= %(prefix)s AND starts_with(name, %(prefix)s) ORDER BY name

-- name: all_states
SELECT name, value::text FROM engram.named_states WHERE tenant = %(tenant)s ORDER BY name

-- name: drop_states
DELETE FROM engram.named_states WHERE tenant = %(tenant)s
