-- name: standbys
-- The standbys of this server, as far as the role may see them; running backups are excluded.
SELECT application_name, state, sync_state, pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn)::bigint
FROM pg_stat_replication WHERE state IS DISTINCT FROM 'backup' ORDER BY application_name, pid

-- name: following
-- Of the server this one follows: bytes received and not yet replayed, seconds since the last change, whether it is connected.
SELECT pg_wal_lsn_diff(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn())::bigint,
    extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp())::float8, EXISTS (SELECT FROM pg_stat_wal_receiver)

-- name: commit_waits_for
SELECT current_setting('synchronous_standby_names'), (SELECT reset_val FROM pg_settings WHERE name = 'synchronous_commit')

-- name: jit
SELECT reset_val FROM pg_settings WHERE name = 'jit'
