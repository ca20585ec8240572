"""The embedded backend: plain-text files are the truth, a SQLite index is derived from them."""
