"""Saves memory files in every way editors do, until it is told to stop and has saved enough; then says what it saved.

A file is saved again only once the journal shows that the save before was seen: what an editor overwrites by itself,
before anyone looked, no store can keep.
"""

import json
import re
import select
import sys
import time
from collections.abc import Callable
from pathlib import Path

PAUSE = 0.004
ENOUGH = 24
"""Saves at least; among them every way of saving, of a fresh buffer and of an old one."""


def in_place(path: Path, text: str) -> None:
    path.write_text(text, "utf-8")


def slowly_in_place(path: Path, text: str) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.flush()
        time.sleep(0.02)
        file.write(text[: len(text) // 2])
        file.flush()
        time.sleep(0.01)
        file.write(text[len(text) // 2 :])


def by_rename(path: Path, text: str) -> None:
    fresh = path.with_name(f".{path.name}.swp")
    fresh.write_text(text, "utf-8")
    fresh.replace(path)


def with_backup(path: Path, text: str) -> None:
    path.replace(path.with_name(path.name + "~"))
    path.write_text(text, "utf-8")


def delete_and_create(path: Path, text: str) -> None:
    path.unlink()
    time.sleep(0.002)
    path.write_text(text, "utf-8")


WAYS: tuple[Callable[[Path, str], None], ...] = (in_place, by_rename, with_backup, delete_and_create, slowly_in_place)


def _seen(home: Path, token: str) -> bool:
    return any(token.encode() in path.read_bytes() for path in (home / "journal").glob("*.jsonl"))


def _load(path: Path) -> str | None:
    """What an editor shows; a file in the middle of being replaced it opens again later."""
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return None
    return text if "statement:" in text else None


def _enough(saves: list[dict[str, str]]) -> bool:
    return len(saves) >= ENOUGH and len({(save["way"], save["stale"]) for save in saves}) == 2 * len(WAYS)


def main(home: Path, paths: list[Path]) -> None:
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    buffers: dict[Path, str] = {}
    pending: dict[Path, str] = {}
    saves: list[dict[str, str]] = []
    number = 0
    while not (select.select([sys.stdin], [], [], 0)[0] and _enough(saves)):
        time.sleep(PAUSE)
        path = paths[number % len(paths)]
        way = WAYS[number % len(WAYS)]
        number += 1
        if path in pending and not _seen(home, pending[path]):
            continue
        shown = _load(path)
        if shown is None:
            continue
        # Every third save is of a buffer that was loaded long ago.
        text = buffers.get(path, shown) if number % 3 == 0 else shown
        buffers.setdefault(path, shown)
        token = f"token{number:06d}"
        text = re.sub(r"(?m)^(\s*-?\s*statement:).*$", rf"\1 Written by hand {token} into {path.stem}", text, count=1)
        way(path, text)
        pending[path] = token
        saves.append({"path": str(path), "token": token, "way": way.__name__, "stale": str(number % 3 == 0)})
    sys.stdout.write(json.dumps({"saves": saves}) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(argument) for argument in sys.argv[2:]])
