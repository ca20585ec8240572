"""What the files backend can say about its own health: its files, its index, its embedder."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from engram.model.errors import StoreBusy, StoreReadOnly
from engram.store.files.confinement import MALFORMED, read_bytes, reading
from engram.store.files.context import StoreContext
from engram.store.files.durability import Mark, read_mark, write_mark
from engram.store.files.home import Home
from engram.store.files.journal import Journal
from engram.store.files.power_loss import told
from engram.store.files.purge_plan import damage, unfinished
from engram.store.files.sessions import is_lost, session_path
from engram.store.files.tasks import checkpoints_path, task_path
from engram.store.ledger_checkpoints import LEDGER_OP, TASK, parse_checkpoint
from engram.store.protocol import Check


def facts(parts: StoreContext) -> dict[str, Any]:
    """What `status` and `doctor` say of the store."""
    rows = parts.index.db.execute("SELECT status, count(*) FROM docs WHERE kind = 'memory' GROUP BY status")
    broken = parts.index.db.execute("SELECT error FROM files WHERE error <> ''")
    return {
        "store": str(parts.home.root),
        "statuses": dict(rows.fetchall()),
        "problems": [error for (error,) in broken.fetchall()],
        "decisions": parts.seq,
        "index": parts.index.facts(),
        "embedder": parts.embedder.name if parts.embedder else None,
    }


def checks(known: Mapping[str, Any], problems: Sequence[str]) -> list[Check]:
    """The doctor's checks of facts, and of problems met while the files were looked at."""
    return [_files([*problems, *known["problems"]]), _index(known), _embedder(known)]


def read_only(error: StoreReadOnly) -> Check:
    """A home that can only be read: everything in it answers, and nothing new is kept."""
    return Check(
        "home", False, f"{error}; what was edited by hand since is not looked at", "let Engram's user write there"
    )


def busy(error: StoreBusy) -> Check:
    """A store that somebody else is writing to: what the index has is examined."""
    return Check("home", False, f"{error}; what was edited by hand since is not looked at", "run `engram doctor` again")


def interrupted(parts: StoreContext) -> list[Check]:
    """A purge that a crash interrupted, where there is one."""
    if not unfinished(parts.home):
        return []
    if broken := damage(parts.home):
        return [Check("purge", False, broken, "`engram doctor --repair` moves the file to quarantine")]
    detail = "a purge was interrupted; what it is about is found no more, and some of its words are still in files"
    return [Check("purge", False, detail, "`engram doctor --repair`, or the next write, carries it to its end")]


def _files(problems: Sequence[str]) -> Check:
    unique = list(dict.fromkeys(problems))
    if not unique:
        return Check("files", True, "every memory file can be read")
    return Check("files", False, "; ".join(unique[:10]), "mend the files named; their last good versions stay in force")


def _index(known: Mapping[str, Any]) -> Check:
    documents = sum(known["index"]["documents"].values())
    missing = documents - known["index"]["vectors"]
    detail = f"{documents} documents, {known['index']['vectors']} vectors"
    if missing > 0 and known["embedder"]:
        return Check("index", False, f"{detail}; {missing} lack a vector", "run `engram index --reembed`")
    return Check("index", True, detail)


def _embedder(known: Mapping[str, Any]) -> Check:
    here, there = known["embedder"], known["index"]["embedder"]
    if here is None:
        return Check("embedder", True, "none: search is by keyword")
    if here != there:
        detail = f"configured {here}, the index holds {there or 'none'}; search is by keyword"
        return Check("embedder", False, detail, "run `engram index --reembed`")
    return Check("embedder", True, str(here))


def foreign_vectors(parts: StoreContext) -> list[str]:
    """What a search without vectors has to say: that they were made by another embedder."""
    made_by, here = parts.index.get("embedder"), parts.embedder
    if here is None or made_by == here.name:
        return []
    return [
        f"searched by keyword: the index holds vectors of {made_by or 'no embedder'}, this process has {here.name}; "
        "run `engram index --reembed`"
    ]


BEGUN, CHECKPOINT = "begun", "checkpoint"
"""What the journal says of a task; behind the second word stands the number."""
MOST_NAMED = 5
_TASK_ID = re.compile(r"TASK-\d{8}-\d{6}-[0-9a-f]+")
_WORD = re.compile(rb'"op":"(?:%s|%s)"' % (TASK.encode(), LEDGER_OP.encode()))
_SEQ = re.compile(rb'\{"seq":(\d+)')


@dataclass(slots=True)
class _Told:
    """What the journal says was written."""

    numbers: list[tuple[int, int]] = field(default_factory=list)
    """First and last of each run of decisions that are missing."""
    tasks: dict[str, int] = field(default_factory=dict)
    """Each task with the number of its last checkpoint."""
    ledgers: dict[str, bool] = field(default_factory=dict)
    """Each ledger, and whether it was let go."""


def missing_records(parts: StoreContext) -> list[Check]:
    """The doctor's checks."""
    mark = read_mark(parts.home) or Mark()
    found = _read(parts.journal, mark)
    return [
        _decisions(found.numbers),
        _named("tasks", "every task and checkpoint is there", _tasks(parts.home, found)),
        _named("sessions", "every session is there", _sessions(parts.home, found)),
        Check("power", True, told(mark) if mark.repaired else "no power loss has taken anything"),
    ]


def accept_gaps(home: Home, journal: Journal) -> list[str]:
    """Go on without decisions that are missing; says which. For the holder of the writer lock."""
    mark = read_mark(home)
    missing = _read(journal, mark).numbers if mark is not None else []
    if mark is None or not missing:
        return []
    write_mark(home, replace(mark, unbroken_since=max(last for _, last in missing)))
    return [f"{home.journal}: goes on without {_decisions(missing).detail.partition(': ')[2]}"]


def _named(name: str, well: str, problems: Sequence[str]) -> Check:
    if not problems:
        return Check(name, True, well)
    more = f"; and {len(problems) - MOST_NAMED} more" if len(problems) > MOST_NAMED else ""
    return Check(name, False, "; ".join(problems[:MOST_NAMED]) + more, "restore what is named from a backup")


def _decisions(missing: Sequence[tuple[int, int]]) -> Check:
    if not missing:
        return Check("journal", True, "no decision is missing")
    named = [str(first) if first == last else f"{first} to {last}" for first, last in missing]
    detail = f"lines of the journal are missing: decision {', '.join(named[:MOST_NAMED])}"
    return Check(
        "journal",
        False,
        detail + (", …" if len(named) > MOST_NAMED else ""),
        "restore the journal from a backup, or run `engram doctor --repair` to go on without them",
    )


def _read(journal: Journal, mark: Mark) -> _Told:
    found, last = _Told(), mark.unbroken_since
    for line in _lines(journal):
        number = _SEQ.match(line)
        seq = int(number[1]) if number else 0
        if seq > last + 1:
            found.numbers.append((last + 1, seq - 1))
        last = max(last, seq)
        if _WORD.search(line):
            _hear(found, line)
    if mark.seq > last:
        found.numbers.append((last + 1, mark.seq))
    return found


def _lines(journal: Journal) -> Iterator[bytes]:
    for month in journal.months():
        with reading(journal.path(month)) as file:
            yield from (line for line in file if line.endswith(b"\n"))


def _hear(found: _Told, line: bytes) -> None:
    fields = _fields(line)
    name, reason = str(fields.get("session", "")), str(fields.get("reason", ""))
    if fields.get("op") == TASK:
        number = reason.removeprefix(f"{CHECKPOINT} ")
        found.tasks[name] = max(found.tasks.get(name, 0), int(number) if number.isascii() and number.isdigit() else 0)
    elif fields.get("op") == LEDGER_OP:
        anchor = parse_checkpoint(reason)
        found.ledgers[name] = anchor is not None and anchor.is_pruned
        if _TASK_ID.fullmatch(name):
            found.tasks.setdefault(name, 0)


def _fields(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except MALFORMED:
        return {}
    return found if isinstance(found, dict) else {}


def _tasks(home: Home, found: _Told) -> list[str]:
    suffix = checkpoints_path(home, "").name
    ids = {*found.tasks, *(path.name.removesuffix(suffix) for path in home.tasks.glob(f"*{suffix}"))}
    problems = []
    for task_id in sorted(ids):
        path = task_path(home, task_id)
        if path is None:
            continue
        if not path.exists():
            problems.append(f"{path} is not there, and the task was begun")
        elif not _fields(_bytes(path)):
            problems.append(f"{path} is empty or cannot be read")
        problems += _checkpoints(checkpoints_path(home, task_id), found.tasks.get(task_id, 0))
    return problems


def _checkpoints(path: Path, last: int) -> list[str]:
    """A task's checkpoints are numbered from 1 without a gap; the journal saw the last."""
    lines = [_fields(line) for line in _bytes(path).splitlines() if line.strip()]
    numbers = {line["number"] for line in lines if type(line.get("number")) is int}
    # A number out of a damaged line may be of any size: no more are counted than are named.
    lost = islice((n for n in range(1, max([*numbers, last]) + 1) if n not in numbers), MOST_NAMED)
    named = ", ".join(map(str, lost))
    return [f"{path}: checkpoint {named} was written and is not there"] if named else []


def _sessions(home: Home, found: _Told) -> list[str]:
    lost = [session for session, pruned in sorted(found.ledgers.items()) if not pruned and is_lost(home, session)]
    named = {session_path(home, session): f"{session_path(home, session)} is not there or cannot be read; the events of "
             f"{session} are shown in that session only" for session in lost}  # fmt: skip
    for path in sorted((home.state / "sessions").glob("*.json")):
        if path not in named and not _fields(_bytes(path)):
            named[path] = f"{path} is empty or cannot be read"
    return list(named.values())


def _bytes(path: Path) -> bytes:
    try:
        return read_bytes(path)
    except OSError:
        return b""
