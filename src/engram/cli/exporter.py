"""Writing memories out, one function per format."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from engram.cli.display import Report
from engram.cli.import_source import is_origin, without_origin
from engram.dialects import engram_yaml
from engram.dialects.json_records import dump_json
from engram.disk import replace_file
from engram.model.errors import InvalidInput
from engram.model.memory import Memory
from engram.rules.strength import links_at
from engram.store.files.home import file_name, scope_folder

Written = dict[str, Any]
Exporter = Callable[[Path, Sequence[Memory], datetime, bool, Report], Written]


def as_engram(path: Path, memories: Sequence[Memory], now: datetime, force: bool, report: Report) -> Written:
    """Spec 1's YAML: one file per memory in a directory, or one list if the path is a .yaml file or `-`."""
    if path.suffix in (".yaml", ".yml") or str(path) == "-":
        _write(path, engram_yaml.dump(memories), force)
        return {"written": len(memories)}
    for done, memory in enumerate(memories, 1):
        file = path / scope_folder(memory.scope) / f"{file_name(memory.id)}.yaml"
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
    """A new PLUR directory. One that is there is PLUR's own, and `--force` does not change that."""
    from engram.dialects.plur import write_plur

    done = write_plur(path, [_for_plur(memory, now) for memory in memories], now=now, actor="engram")
    return {"written": len(done.created), "created": done.created, "left_out": done.left_out}


FORMATS: dict[str, Exporter] = {"engram": as_engram, "json": as_json, "plur": as_plur}


def _for_plur(memory: Memory, now: datetime) -> Memory:
    """PLUR gets its own entries back as they were: that Engram imported them is Engram's note. Links that faded stay here."""
    alive = {(link.target, link.type) for link in links_at(memory, now)}
    links = (link for link in memory.associations if (link.target, link.type) in alive)
    memory = memory.but(
        aliases=tuple(alias for alias in memory.aliases if not is_origin(alias)),
        associations=tuple(replace(link, target=without_origin(link.target)) for link in links),
        supersedes=tuple(map(without_origin, memory.supersedes)),
        superseded_by=without_origin(memory.superseded_by),
        lineage=without_origin(memory.lineage),
    )
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
        raise InvalidInput(f"{path} already exists; choose another name, or add --force to replace it")
    replace_file(path, text.encode("utf-8", "surrogatepass"), durable=False)
