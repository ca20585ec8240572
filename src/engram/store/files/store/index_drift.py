"""Whether the index still says what the files say: entries without a file, files without an entry, and other content."""

from collections.abc import Iterator, Sequence

from engram.model.errors import EngramError
from engram.model.memory import Memory
from engram.store.files import memories
from engram.store.files.log.context import LogContext
from engram.store.files.memories import Stamp
from engram.store.files.reconcile.context import IndexContext
from engram.store.records import decode_record
from engram.store.reports import Check, SyncReport

SAMPLED_FILES = 300
"""Files that are read again; spread evenly over all of them, it takes about a tenth of a second."""
MAX_REPORTED_IDS = 5
REBUILD_ADVICE = "run `engram index --rebuild`"


def drift(context: IndexContext, noticed: SyncReport) -> Check:
    """The check; `noticed` is what has just been read from files that had changed."""
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
    """Whether a file says something else. One that has changed since the index read it is read with the next sync, and one
    that cannot be read is another check's finding.
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
