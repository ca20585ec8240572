"""Resolves references, the ids, names and aliases that a caller gives, to records.

Every operation resolves its references here, for its caller's scopes (`OwnerScopes`, a plain collection of scopes, or
None for the store's operator). A record that the caller does not see raises `NotFound`, with the message of an unknown
id. A record that they see but may not change raises `Refused`.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from engram.model.errors import NotFound, Refused
from engram.model.lazy import replace
from engram.model.memory import Retelling
from engram.model.records import Job, Session, TaskRun
from engram.rules.scopes import GLOBAL, changeable_scopes, is_scope_visible, may_change
from engram.store.ledger import ledger_scope
from engram.store.records import locked_memory

if TYPE_CHECKING:
    from engram.model.memory import Evidence, Memory
    from engram.model.records import Event, Job, Session, TaskRun
    from engram.store.protocol import Image, Store, Transaction

Scopes = Collection[str] | None
"""The scopes that a caller sees; None is everything, for the store's operator."""

REFERENCE_FIELDS = ("lineage", "superseded_by", "supersedes", "associations", "evidence")
"""The fields of a memory that name other records."""


def find_memory(store: "Store", ref: object, scopes: Scopes = None, *, to_change: bool = False) -> "Memory":
    """The memory with this id, name or alias."""
    memory = store.get(ref, scopes) if isinstance(ref, str) else None
    if memory is None:
        raise no_memory(ref)
    if to_change:
        refuse_change(memory.id, memory.scope, scopes)
    return memory


def hide_foreign_links(store: "Store", memory: "Memory", scopes: Scopes) -> "Memory":
    """The memory without the links to memories that the caller does not see."""
    if scopes is None or not memory.associations:
        return memory
    seen = tuple(link for link in memory.associations if is_scope_visible(scopes, store.owner_of(link.target) or ""))
    return memory if len(seen) == len(memory.associations) else memory.replace(associations=seen)


def find_lineage(store: "Store", ref: object, scopes: Scopes = None) -> str:
    """The id of the lineage that a new version joins, given that id or one of its versions.

    The caller must be able to change every version.
    """
    versions = store.lineage(ref) if isinstance(ref, str) else []
    lineage = str(ref)
    if not versions:
        found = find_memory(store, ref, scopes)
        lineage = found.lineage or found.id
        versions = store.lineage(lineage) or [found]
    if not all(is_scope_visible(scopes, version.scope) for version in versions):
        raise no_memory(ref)
    for version in versions:
        refuse_change(version.id, version.scope, scopes)
    return lineage


def resolve_links(
    store: "Store", fields: Mapping[str, Any], scopes: Scopes, known: "Memory | None" = None
) -> dict[str, Any]:
    """Resolve the lineage, links and evidence in the checked fields of a memory.

    Links and evidence of `known`, the stored memory that the fields change, stay unchanged.
    """
    found = dict(fields)
    if scopes is None:
        return found
    if fields.get("lineage"):
        found["lineage"] = find_lineage(store, fields["lineage"], scopes)
    if fields.get("superseded_by"):
        found["superseded_by"] = find_memory(store, fields["superseded_by"], scopes).id
    if fields.get("associations"):
        stored = [link.target for link in known.associations] if known is not None else []
        found["associations"] = tuple(
            link if link.target in stored else replace(link, target=find_memory(store, link.target, scopes).id)
            for link in fields["associations"]
        )
    for evidence in fields.get("evidence", ()):
        if known is None or evidence not in known.evidence:
            _check_evidence(store, evidence, scopes)
    return found


def _check_evidence(store: "Store", evidence: "Evidence", scopes: Scopes) -> None:
    """Raise `NotFound` for evidence that names an event which the caller does not see."""
    find_event(store, evidence.event, scopes)
    if isinstance(evidence.retelling, Retelling):
        find_event(store, evidence.retelling.event, scopes)


def find_event(store: "Store", event_id: object, scopes: Scopes = None, *, to_change: bool = False) -> "Event":
    """The ledger event with this id: a turn, a chunk of a document, or the document itself."""
    event = store.event(event_id) if isinstance(event_id, str) else None
    owner = (store.owner_of(event.id) or "") if event is not None and scopes is not None else ""
    if event is None or not is_scope_visible(scopes, owner):
        raise NotFound(f"no event {event_id!r}")
    if to_change:
        refuse_change(event.id, owner, scopes)
    return event


def find_document(store: "Store", ref: str, scopes: Scopes = None) -> str:
    """The id of the memory or event that a caller wants to change. `NotFound` has the same message for both."""
    owner = store.owner_of(ref)
    if owner is None:
        return find_memory(store, ref, scopes, to_change=True).id
    if not is_scope_visible(scopes, owner):
        raise no_memory(ref)
    refuse_change(ref, owner, scopes)
    return ref


def find_session(store: "Store", session_id: str, scopes: Scopes = None, *, to_change: bool = False) -> "Session":
    """The session with this id."""
    session = store.load_record(Session, session_id)
    if session is None:
        raise no_session(session_id)
    check_ledger(store, session_id, scopes, to_change=to_change)
    return session


def check_ledger(store: "Store", name: str, scopes: Scopes, *, to_change: bool = False) -> None:
    """Raise `NotFound` for a session's ledger that the caller does not see."""
    owner = (ledger_scope(store, name) or GLOBAL) if scopes is not None else ""
    if not is_scope_visible(scopes, owner):
        raise no_session(name)
    if to_change:
        refuse_change(name, owner, scopes)


def find_task(store: "Store", task_id: str, scopes: Scopes = None, *, to_change: bool = False) -> "TaskRun":
    """The task with this id."""
    task = store.load_record(TaskRun, task_id)
    if task is None or not is_scope_visible(scopes, task.scope):
        raise NotFound(f"no task {task_id!r}; `engram task list` shows what there is")
    if to_change:
        refuse_change(task.id, task.scope, scopes)
    return task


def find_dead_job(store: "Store", job_id: str, scopes: Scopes = None) -> "Job":
    """The dead job with this id, for a change."""
    job = next(
        (job for job in store.list_records(Job, statuses=["dead"], limit=None, scopes=scopes) if job.id == job_id), None
    )
    if job is None:
        raise NotFound(f"no dead job {job_id!r}; `engram worker --list` shows what there is")
    refuse_change(job.id, job.scope, scopes)
    return job


def find_bulk_decision(store: "Store", decision: str, scopes: Scopes = None) -> "Sequence[Image]":
    """The entries of a bulk decision; for a caller, only one that changed no memories but theirs."""
    parts = store.decisions(session=decision)
    ids = dict.fromkeys(memory_id for part in parts for memory_id in part.ids)
    if not parts or (scopes is not None and has_foreign(store, ids, scopes)):
        raise no_bulk_decision(decision)
    return parts


def has_foreign(store: "Store", memory_ids: Iterable[str], scopes: Scopes) -> bool:
    """Whether one of these memories is not the caller's to change."""
    if scopes is None:
        return False
    owners = (store.owner_of(memory_id) for memory_id in memory_ids)
    return not all(owner is None or may_change(scopes, owner) for owner in owners)


def refuse_change(record_id: str, scope: str, scopes: Scopes) -> None:
    """Raise `Refused` for a record that the caller sees and may not change."""
    if not may_change(scopes, scope):
        own = ", ".join(changeable_scopes(scopes) or ())
        raise Refused(f"{record_id} belongs to {scope}, not to {own}; nothing was changed")


def refuse_move(scope: str, scopes: Scopes) -> None:
    """Raise `Refused` if a caller would move a record to a scope that is not theirs."""
    if not may_change(scopes, scope):
        own = ", ".join(changeable_scopes(scopes) or ())
        raise Refused(f"{own} may not move a memory to {scope}; nothing was changed")


def find_locked(deciding: "Transaction", memory_id: str, scopes: Scopes = None) -> "Memory":
    """A memory inside a transaction, for a change; it may have moved to another owner before the lock was taken."""
    memory = locked_memory(deciding, memory_id)
    if not is_scope_visible(scopes, memory.scope):
        raise no_memory(memory_id)
    refuse_change(memory.id, memory.scope, scopes)
    return memory


def no_memory(ref: object) -> NotFound:
    """The error for an id, name or alias that matches none of the caller's memories."""
    return NotFound(f"no memory {ref!r}; `engram list` shows what there is")


def no_bulk_decision(decision: object) -> NotFound:
    """The error for an id that matches none of the caller's bulk decisions."""
    return NotFound(f"no bulk decision {decision!r}; `engram history ID` names the one a memory was decided in")


def no_session(session_id: object) -> NotFound:
    """The error for an id that matches none of the caller's sessions."""
    return NotFound(f"no session {session_id!r}; `engram session start` begins one")
