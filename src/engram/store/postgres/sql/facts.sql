-- name: facts
SELECT key, value FROM engram.store_facts WHERE tenant = %(tenant)s

-- name: put_fact
INSERT INTO engram.store_facts (tenant, key, value) VALUES (%(tenant)s, %(key)s, %(value)s)
ON CONFLICT (tenant, key) DO UPDATE SET value = excluded.value

-- name: drop_fact
DELETE FROM engram.store_facts WHERE tenant = %(tenant)s AND key = %(key)s

-- name: lock_facts
INSERT INTO engram.store_facts (tenant, key, value) VALUES (%(tenant)s, 'lock', 'null')
ON CONFLICT (tenant, key) DO UPDATE SET value = excluded.value
