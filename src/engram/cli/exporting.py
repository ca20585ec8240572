"""Writing memories out, one function per format."""

import os
import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from engram.cli.progress import Report
from engram.dialects import engram_yaml
from engram.dialects.json_records import dump_json
from engram.model.errors import InvalidInput
from engram.model.memory import Memory
from engram.store.files.home import scope_folder, write_private

Written = dict[str, Any]
Exporter = Callable[[Path, Sequence[Memory], datetime, bool, Report], Written]


def as_engram(path: Path, memories: Sequence[Memory], now: datetime, force: bool, report: Report) -> Written:
    """Spec 1's YAML: one file per memory in a directory, or one list if the path is a .yaml file or `-`."""
    if path.suffix in (".yaml", ".yml") or str(path) == "-":
        _write(path, engram_yaml.dump(memories), force)
        return {"written": len(memories)}
    for done, memory in enumerate(memories, 1):
        file = path / scope_folder(memory.scope) / f"{memory.id}.yaml"
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write(file, engram_yaml.dump([memory]), force)
        report("Exporting", done, len(memories))
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return {"written": len(memories)}


def as_json(path: Path, memories: Sequence[Memory], now: datetime, force: bool, report: Report) -> Written:
    """A JSON list of the same records."""
    _write(path, dump_json(memories), force)
    return {"written": len(memories)}


def as_plur(path: Path, memories: Sequence[Memory], now: datetime, force: bool, report: Report) -> Written:
    """Merged into a PLUR directory under PLUR's own lock; what others wrote there stays."""
    from engram.dialects.plur import write_plur

    done = write_plur(path, [_without_stamp(memory) for memory in memories], now=now, actor="engram")
    written = len(done.created) + len(done.updated) + len(done.unchanged)
    return {
        "written": written,
        "created": done.created,
        "updated": done.updated,
        "unchanged": done.unchanged,
        "left_out": done.left_out,
        "kept": done.kept,
    }


FORMATS: dict[str, Exporter] = {"engram": as_engram, "json": as_json, "plur": as_plur}


def _without_stamp(memory: Memory) -> Memory:
    """PLUR gets its own entries back as they were: that Engram imported them is Engram's note, not theirs."""
    if memory.learned_by != "import" or not memory.source.startswith("import:"):
        return memory
    return memory.but(source="", learned_by="")


def _write(path: Path, text: str, force: bool) -> None:
    if str(path) == "-":
        sys.stdout.write(text)
        return
    if path.is_dir():
        raise InvalidInput(f"{path} is a directory; give a file")
    if path.exists() and not force:
        raise InvalidInput(f"{path} exists; choose another name, or --force to replace it")
    fresh = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    write_private(fresh, text.encode("utf-8", "surrogatepass"))
    fresh.replace(path)
