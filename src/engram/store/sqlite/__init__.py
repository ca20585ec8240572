"""The derived index: SQLite with FTS5, vectors, and the positions up to which files were read.

Deleting it loses nothing.
"""
