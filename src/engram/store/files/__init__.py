"""The embedded backend: plain-text files are the source of truth, and a SQLite index is derived from them."""
