"""Health checks of a files store: its files, its index (also compared with the files), its embedder, and missing records."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from engram.disk import json_object, read_bytes, reading
from engram.model.errors import EngramError, StoreBusy, StoreReadOnly
from engram.model.lazy import dataclass, field, lazy_pattern, replace
from engram.model.memory import Memory
from engram.store.files import memories
from engram.store.files.log.journal import SEQ_LINE, Journal, Mark, read_mark, write_mark
from engram.store.files.memories import Stamp
from engram.store.files.reconcile.file_repair import repair_report
from engram.store.files.reconcile.index_state import IndexContext, LogContext
from engram.store.files.states.work import checkpoints_path, is_lost, session_path, task_path
from engram.store.files.store.purge_plan import has_unfinished_purge, marker_problem
from engram.store.home import Home
from engram.store.ledger import LEDGER_OP, TASK_OP, parse_checkpoint
from engram.store.records import decode_record
from engram.store.reports import Check, SyncReport

_LOCK_WAIT_SECONDS = 0.05
"""Seconds that a check waits for a writer."""


def facts(context: IndexContext) -> dict[str, Any]:
    """The figures that `status` and `doctor` show."""
    rows = context.index.db.execute("SELECT status, count(*) FROM docs WHERE kind = 'memory' GROUP BY status")
    broken = context.index.db.execute("SELECT error FROM files WHERE error <> ''")
    return {
        "store": str(context.home.root),
        "statuses": dict(rows.fetchall()),
        "problems": [error for (error,) in broken.fetchall()],
        "decisions": context.seq,
        "index": context.index.facts(),
        "embedder": context.embedder.name if context.embedder else None,
    }


def checks(known: Mapping[str, Any], problems: Sequence[str]) -> list[Check]:
    """Checks of the facts, and of problems found in the files."""
    return [_files([*problems, *known["problems"]]), _index(known), _embedder(known)]


def read_only(error: StoreReadOnly) -> Check:
    """The check for a read-only home, which can be queried but cannot store anything."""
    return Check("home", False, f"{error}; recent hand edits were not checked", "let Engram's user write there")


def busy(error: StoreBusy) -> Check:
    """The check for a store that another process is writing to: only the index is examined."""
    return Check("home", False, f"{error}; recent hand edits were not checked", "run `engram doctor` again")


def check_interrupted_purge(context: LogContext) -> list[Check]:
    """The check for an interrupted purge, if there is one that no other process is carrying out."""
    try:
        with context.lock.hold(_LOCK_WAIT_SECONDS):
            left = has_unfinished_purge(context.home)
    except StoreBusy:
        left = False
    except StoreReadOnly:
        left = has_unfinished_purge(context.home)
    if not left:
        return []
    if broken := marker_problem(context.home):
        return [Check("purge", False, broken, "`engram doctor --repair` moves the file to quarantine")]
    detail = "a purge was interrupted; its records are no longer found, but some of its words are still in files"
    return [Check("purge", False, detail, "`engram doctor --repair`, or the next write, finishes it")]


def _files(problems: Sequence[str]) -> Check:
    unique = list(dict.fromkeys(problems))
    if not unique:
        return Check("files", True, "every memory file can be read")
    return Check(
        "files",
        False,
        "; ".join(unique[:10]),
        "repair these files, or update Engram for those of a newer version; their last good versions stay current",
    )


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
        detail = f"configured {here}, the index has vectors of {there or 'none'}; search is by keyword"
        return Check("embedder", False, detail, "run `engram index --reembed`")
    return Check("embedder", True, str(here))


def foreign_vectors(context: IndexContext) -> list[str]:
    """The warning of a search without vectors: they were made by another embedder."""
    made_by, here = context.index.get("embedder"), context.embedder
    if here is None or made_by == here.name:
        return []
    return [
        f"searched by keyword: the index has vectors of {made_by or 'no embedder'}, this process uses {here.name}; "
        "run `engram index --reembed`"
    ]


BEGUN, CHECKPOINT = "begun", "checkpoint"
"""Reasons of a task's journal entries; the second is followed by a number."""
MAX_REPORTED_PROBLEMS = 5
_TASK_ID = lazy_pattern(r"TASK-\d{8}-\d{6}-[0-9a-f]+")
_WORD = re.compile(rb'"op":"(?:%s|%s)"' % (TASK_OP.encode(), LEDGER_OP.encode()))


@dataclass(slots=True)
class _JournalRecord:
    """What was written according to the journal."""

    numbers: list[tuple[int, int]] = field(default_factory=list)
    """First and last number of each gap in the decisions."""
    tasks: dict[str, int] = field(default_factory=dict)
    """The number of each task's last checkpoint."""
    ledgers: dict[str, bool] = field(default_factory=dict)
    """Whether each ledger was pruned."""


def missing_records(context: LogContext) -> list[Check]:
    """Checks for decisions, tasks and sessions that were written and are missing."""
    mark = read_mark(context.home) or Mark()
    found = _read(context.journal, mark)
    return [
        _decisions(found.numbers),
        _build_check("tasks", "every task and checkpoint is present", _tasks(context.home, found)),
        _build_check("sessions", "every session is present", _sessions(context.home, found)),
        Check("power", True, repair_report(mark) if mark.repaired else "no power loss has damaged any file"),
    ]


def accept_gaps(home: Home, journal: Journal) -> list[str]:
    """Accept missing decisions; returns messages that name them. The caller holds the writer lock."""
    mark = read_mark(home)
    missing = _read(journal, mark).numbers if mark is not None else []
    if mark is None or not missing:
        return []
    write_mark(home, replace(mark, unbroken_since=max(last for _, last in missing)))
    return [f"{home.journal}: continuing without {_decisions(missing).detail.partition(': ')[2]}"]


def _build_check(name: str, well: str, problems: Sequence[str]) -> Check:
    if not problems:
        return Check(name, True, well)
    more = f"; and {len(problems) - MAX_REPORTED_PROBLEMS} more" if len(problems) > MAX_REPORTED_PROBLEMS else ""
    return Check(name, False, "; ".join(problems[:MAX_REPORTED_PROBLEMS]) + more, "restore what is named from a backup")


def _decisions(missing: Sequence[tuple[int, int]]) -> Check:
    if not missing:
        return Check("journal", True, "no decision is missing")
    named = [str(first) if first == last else f"{first} to {last}" for first, last in missing]
    detail = f"lines of the journal are missing: decision {', '.join(named[:MAX_REPORTED_PROBLEMS])}"
    return Check(
        "journal",
        False,
        detail + (", …" if len(named) > MAX_REPORTED_PROBLEMS else ""),
        "restore the journal from a backup, or run `engram doctor --repair` to continue without them",
    )


def _read(journal: Journal, mark: Mark) -> _JournalRecord:
    found, last = _JournalRecord(), mark.unbroken_since
    for line in _lines(journal):
        number = SEQ_LINE.match(line)
        seq = int(number[1]) if number else 0
        if seq > last + 1:
            found.numbers.append((last + 1, seq - 1))
        last = max(last, seq)
        if _WORD.search(line):
            _add_entry(found, line)
    if mark.seq > last:
        found.numbers.append((last + 1, mark.seq))
    return found


def _lines(journal: Journal) -> Iterator[bytes]:
    for month in journal.months():
        with reading(journal.path(month)) as file:
            yield from (line for line in file if line.endswith(b"\n"))


def _add_entry(found: _JournalRecord, line: bytes) -> None:
    fields = json_object(line)
    name, reason = str(fields.get("session", "")), str(fields.get("reason", ""))
    if fields.get("op") == TASK_OP:
        number = reason.removeprefix(f"{CHECKPOINT} ")
        found.tasks[name] = max(found.tasks.get(name, 0), int(number) if number.isascii() and number.isdigit() else 0)
    elif fields.get("op") == LEDGER_OP:
        anchor = parse_checkpoint(reason)
        found.ledgers[name] = anchor is not None and anchor.is_pruned
        if _TASK_ID.fullmatch(name):
            found.tasks.setdefault(name, 0)


def _tasks(home: Home, found: _JournalRecord) -> list[str]:
    suffix = checkpoints_path(home, "").name
    ids = {*found.tasks, *(path.name.removesuffix(suffix) for path in home.tasks.glob(f"*{suffix}"))}
    problems = []
    for task_id in sorted(ids):
        path = task_path(home, task_id)
        if path is None:
            continue
        if not path.exists():
            problems.append(f"{path} is missing, but the task was started")
        elif not json_object(_bytes(path)):
            problems.append(f"{path} is empty or cannot be read")
        problems += _checkpoints(checkpoints_path(home, task_id), found.tasks.get(task_id, 0))
    return problems


def _checkpoints(path: Path, last: int) -> list[str]:
    """Missing checkpoints of a task: they are numbered from 1, and the last is in the journal."""
    lines = [json_object(line) for line in _bytes(path).splitlines() if line.strip()]
    numbers = {line["number"] for line in lines if type(line.get("number")) is int}
    # A number in a damaged line may be huge: count no more than are shown.
    lost = islice((n for n in range(1, max([*numbers, last]) + 1) if n not in numbers), MAX_REPORTED_PROBLEMS)
    named = ", ".join(map(str, lost))
    return [f"{path}: checkpoint {named} was written and is missing"] if named else []


def _sessions(home: Home, found: _JournalRecord) -> list[str]:
    lost = [session for session, pruned in sorted(found.ledgers.items()) if not pruned and is_lost(home, session)]
    named = {session_path(home, session): f"{session_path(home, session)} is missing or cannot be read; the events of "
             f"{session} are shown in that session only" for session in lost}  # fmt: skip
    for path in sorted((home.state / "sessions").glob("*.json")):
        if path not in named and not json_object(_bytes(path)):
            named[path] = f"{path} is empty or cannot be read"
    return list(named.values())


def _bytes(path: Path) -> bytes:
    try:
        return read_bytes(path)
    except OSError:
        return b""


SAMPLED_FILES = 300
"""Files that are read again, spread evenly over all; it takes about a tenth of a second."""
MAX_REPORTED_IDS = 5
REBUILD_ADVICE = "run `engram index --rebuild`"


def find_drift(context: IndexContext, noticed: SyncReport) -> Check:
    """The check of the index against the files; `noticed` is what was just read from changed files."""
    read = [
        f"{len(ids):,} {what}"
        for what, ids in (("added", noticed.added), ("edited", noticed.edited), ("removed", noticed.removed))
        if ids
    ]
    news = f"; files changed by hand and read now: {', '.join(read)}" if read else ""
    problems = list(_gaps(context))
    sample = context.index.all("sampled_files", SAMPLED_FILES)
    if differing := [row[0] for row in sample if _differs(context, *row)]:
        problems.append(f"{_list_some(differing)} differ from their files")
    if problems:
        return Check("drift", False, "; ".join(problems) + news, REBUILD_ADVICE)
    return Check("drift", True, f"index and files agree ({len(sample):,} files compared){news}")


def _gaps(context: IndexContext) -> Iterator[str]:
    for statement, meaning in (
        ("unindexed_files", "have a file and no entry in the index"),
        ("entries_without_file", "are in the index and have no file"),
        ("incomplete_entries", "are only partly in the index"),
    ):
        if found := [memory_id for (memory_id,) in context.index.all(statement, MAX_REPORTED_IDS + 1)]:
            yield f"{_list_some(found)} {meaning}"
    ((texts, words),) = context.index.all("word_counts")
    if texts != words:
        yield f"the keyword index has {words:,} of {texts:,} documents"


def _list_some(ids: Sequence[str]) -> str:
    return ", ".join(ids[:MAX_REPORTED_IDS]) + (" and more" if len(ids) > MAX_REPORTED_IDS else "")


def _differs(context: LogContext, memory_id: str, stored: str, record: str, *stamp: int) -> bool:
    """Whether a file differs from the index.

    A file that has changed since the index read it is read with the next sync, and an unreadable one is reported by
    another check.
    """
    try:
        path = context.safe_path(stored)
        found = memories.read(path)
    except EngramError:
        return False
    if memories.stamp_of(path) != Stamp(*stamp):
        return False
    there = next((memory for memory in found if memory.id == memory_id), None)
    return there is None or _content(there) != _content(decode_record(record))


def _content(memory: Memory) -> tuple[object, ...]:
    return (
        memory.statement,
        memory.situation,
        memory.scope,
        memory.type,
        memory.status,
        memory.pinned,
        memory.confidence,
    )
