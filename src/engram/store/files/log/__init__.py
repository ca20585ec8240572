"""Append-only files of a store: journal, ledgers and uses. Nothing here knows the index."""
