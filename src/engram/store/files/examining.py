"""What the files backend can say about its own health: its files, its index, its embedder."""

from collections.abc import Mapping, Sequence
from typing import Any

from engram.model.errors import StoreBusy, StoreReadOnly
from engram.store.files.parts import Parts
from engram.store.files.purge_plan import damage, unfinished
from engram.store.protocol import Check


def facts(parts: Parts) -> dict[str, Any]:
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


def interrupted(parts: Parts) -> list[Check]:
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


def foreign_vectors(parts: Parts) -> list[str]:
    """What a search without vectors has to say: that they were made by another embedder."""
    made_by, here = parts.index.get("embedder"), parts.embedder
    if here is None or made_by == here.name:
        return []
    return [
        f"searched by keyword: the index holds vectors of {made_by or 'no embedder'}, this process has {here.name}; "
        "run `engram index --reembed`"
    ]
