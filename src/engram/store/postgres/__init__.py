"""The Postgres backend: the same memory for many workers, many machines and many tenants."""
