"""Chooses the scope of a memory whose caller named none: the project of the directory, or `global`."""

from pathlib import Path
from typing import TYPE_CHECKING

from engram.gates.nature import ProjectPlace, locality
from engram.model.memory import Memory
from engram.rules.scopes import GLOBAL
from engram.store.documents import meaning_of
from engram.store.protocol import Store
from engram.store.scopes import is_within, repository_of
from engram.text.content_hash import content_hash

if TYPE_CHECKING:
    from engram.gates.policies import MemoryPolicy


def inferred_scope(
    scope: str | None, directory: Path, draft: Memory, type_name: str, store: Store, policy: "MemoryPolicy"
) -> tuple[str, str]:
    """The scope of a draft, and why it belongs to the project; `global` and "" if it holds everywhere."""
    top = repository_of(directory)
    if scope is None or top is None:
        return GLOBAL, ""
    folders = dict.fromkeys((directory, top))
    place = ProjectPlace(scope, lambda path: any(is_within(folder, path) for folder in folders))
    reason = locality(draft.statement, place, type_name=type_name, situation=draft.situation)
    typed = draft.replace(type=type_name) if type_name else draft
    is_local = reason and not _is_known_everywhere(typed, bool(type_name), store, policy)
    return (scope, reason) if is_local else (GLOBAL, "")


def _is_known_everywhere(draft: Memory, is_typed: bool, store: Store, policy: "MemoryPolicy") -> bool:
    """Whether `global` has the same statement, or an older value of it; this one then belongs there too."""
    key = policy.apply(draft, typed=is_typed).conflict_key
    if store.exact(content_hash(draft.statement), GLOBAL) is not None or (key and store.heads(key, GLOBAL)):
        return True
    return _is_near_in_global(draft, store)


def _is_near_in_global(draft: Memory, store: Store) -> bool:
    """Whether `global` has the statement in other words, or a lesson or fact in a form that this one contradicts."""
    from engram.decisions.admission import StoreLookup, propose
    from engram.gates.neighbourhood import Neighbourhood

    proposal, vectors = propose(draft.replace(scope=GLOBAL)), store.embed([meaning_of(draft)])
    known = StoreLookup(store, vectors[0] if vectors is not None else None).near(proposal)
    near = Neighbourhood(proposal, known)
    return near.duplicate() is not None or (bool(draft.form) and any(one.is_likely for one in near.conflicts()))
