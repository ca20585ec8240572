"""The derived index: SQLite with FTS5, vectors, and what is needed to follow the files. Deleting it loses nothing."""
