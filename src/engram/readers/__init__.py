"""Parsers for external data: TOML, JSON, YAML and frontmatter from a clone, another program, an export or a client.

Each parser limits size, depth and numbers, and raises `UnreadableData` with the file and the line for everything it
refuses. No other module parses such data (`tests/readers/test_one_reader.py`).
"""
