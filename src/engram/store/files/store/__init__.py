"""The files backend: decisions, queries, purge and upkeep."""
