"""A file of records that others write too: read whole, changed record by record, replaced in one step.

Records nobody changed keep their very characters, comments included. Before the new text replaces the old one it is read
back; if it does not hold exactly what it should, the file is laid out afresh instead.
"""

import itertools
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from engram.dialects.emitter import emit_list, emit_mapping
from engram.dialects.reader import decode, read_yaml
from engram.model.errors import StoreCorrupt, StoreError, StoreReadOnly

LONGEST_FILE = 256 * 1024 * 1024
"""PLUR keeps every engram in one file; 30,000 of them are 60 MB."""

_counter = itertools.count()
_DASH = re.compile(r"( *)- ")
_ODD_BREAKS = re.compile("[\r\x85\u2028\u2029]")


def read_records(path: Path, key: str = "") -> tuple[str, list[Any]]:
    """A file's text and its records, under `key` or as a bare list. No file holds no records; a broken one is refused."""
    try:
        text = decode(path.read_bytes(), where=str(path))
    except FileNotFoundError:
        return "", []
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror}") from error
    tree = read_yaml(text, where=str(path), longest=LONGEST_FILE)
    records = tree.get(key) if key and isinstance(tree, dict) else tree
    if not isinstance(records, list) or (key and not isinstance(tree, dict)):
        wanted = f"a mapping with the list `{key}:`" if key else "a list"
        raise StoreCorrupt(f"{path}:1: holds no records; expected {wanted}. The file was left as it is")
    return text, records


def changed_text(
    text: str, key: str, records: Sequence[Any], changes: Mapping[int, Any], added: Sequence[Mapping[str, Any]]
) -> str:
    """The text with some records replaced (by index) and some added at the end."""
    expected = [changes.get(index, record) for index, record in enumerate(records)] + list(added)
    spliced = _spliced(text, records, changes, added)
    if spliced is not None and _holds(spliced, key, expected):
        return spliced
    if not key:
        return emit_list(expected)
    tree = read_yaml(text, longest=LONGEST_FILE) if text else {}
    others = {name: value for name, value in tree.items() if name != key}
    head = emit_mapping(others) if others else ""
    return head + (f"{key}:\n{emit_list(expected, '  ')}" if expected else f"{key}: []\n")


def _holds(text: str, key: str, expected: Sequence[Any]) -> bool:
    try:
        tree = read_yaml(text, longest=LONGEST_FILE)
    except StoreCorrupt:
        return False
    return bool((tree.get(key) if key and isinstance(tree, dict) else tree) == expected)


def _spliced(
    text: str, records: Sequence[Any], changes: Mapping[int, Any], added: Sequence[Mapping[str, Any]]
) -> str | None:
    """The text with only the changed lines changed, or None where its layout does not allow that."""
    if not records or _ODD_BREAKS.search(text):
        return None
    lines = text.split("\n")
    pad = next((match[1] for line in lines if (match := _DASH.match(line))), "")
    starts = [index for index, line in enumerate(lines) if line.startswith(f"{pad}- ")]
    if len(starts) != len(records):
        return None
    out = lines[: starts[0]]
    for index, (start, end) in enumerate(itertools.pairwise([*starts, len(lines)])):
        own = lines[start:end]
        if index in changes:
            own = emit_list([changes[index]], pad).split("\n")[:-1] + _trailing_comments(own)
        out += own
    while out and not out[-1].strip():
        out.pop()
    return "\n".join(out) + "\n" + (emit_list(added, pad) if added else "")


def _trailing_comments(lines: Sequence[str]) -> list[str]:
    """Comments after a record's last line belong to what follows and outlive the record's change."""
    end = len(lines)
    while end and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
        end -= 1
    return list(lines[end:])


def replace_file(path: Path, text: str) -> None:
    """Replace a file in one step and durably: temporary file, fsync, rename, fsync of the directory; its mode is kept."""
    target = path.resolve()
    draft = target.with_name(f"{target.name}.{os.getpid()}.{next(_counter)}.tmp")
    try:
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o600
        _write_synced(draft, text, mode)
        draft.replace(target)
        _sync_directory(target.parent)
    except OSError as error:
        draft.unlink(missing_ok=True)
        kind = StoreReadOnly if isinstance(error, PermissionError) else StoreError
        raise kind(f"{path}: cannot be written: {error.strerror}; the file is as it was") from error


def _write_synced(draft: Path, text: str, mode: int) -> None:
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(handle, "wb") as file:
        os.fchmod(handle, mode)
        file.write(text.encode())
        file.flush()
        os.fsync(handle)


def append_synced(path: Path, lines: str) -> None:
    """Append lines with one write, durably."""
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    with os.fdopen(handle, "ab") as file:
        file.write(lines.encode())
        file.flush()
        os.fsync(handle)
    _sync_directory(path.parent)


def _sync_directory(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
