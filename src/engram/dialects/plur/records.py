"""PLUR's files of records: read whole, and written new."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from engram.dialects.engram_yaml import decode
from engram.dialects.record import TEXT_KEYS
from engram.dialects.yaml_parser import parse_yaml
from engram.dialects.yaml_writer import emit_list
from engram.model.errors import StoreCorrupt, StoreError

LONGEST_FILE = 256 * 1024 * 1024
"""PLUR keeps every engram in one file; 30,000 of them are 60 MB."""


def read_records(path: Path, key: str = "") -> tuple[list[Any], list[int]]:
    """A file's records, under `key` or as a bare list, and the line of each. No file means no records.

    Raises `StoreCorrupt` where a file cannot be parsed.
    """
    try:
        text = decode(path.read_bytes(), where=str(path))
    except FileNotFoundError:
        return [], []
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror}") from error
    document = parse_yaml(text, where=str(path), longest=LONGEST_FILE, text_keys=TEXT_KEYS, list_key=key)
    tree = document.tree
    records = tree.get(key) if key and isinstance(tree, dict) else tree
    if not isinstance(records, list) or (key and not isinstance(tree, dict)):
        wanted = f"a mapping with the list `{key}:`" if key else "a list"
        raise StoreCorrupt(f"{path}:1: no records; expected {wanted}. The file is unchanged")
    return records, document.lines


def records_text(records: Sequence[Mapping[str, Any]], key: str = "") -> str:
    """A file's text for some records, under `key` or as a bare list."""
    if not key:
        return emit_list(records) if records else "[]\n"
    return f"{key}:\n{emit_list(records, '  ')}" if records else f"{key}: []\n"


def write_new(path: Path, text: str) -> None:
    """Write a file that is not there yet, durably. Raises `OSError`."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(text.encode())
        file.flush()
        os.fsync(handle)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
