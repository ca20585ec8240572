"""Parsers for data that others wrote: TOML, JSON, YAML and frontmatter of a clone, another program, an export or a client.

Each parser limits size, depth and numbers, and raises `UnreadableData` with the file and the line for everything that it refuses.
No other module parses such data (`tests/readers/test_one_reader.py`).
"""
