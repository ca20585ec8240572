"""Where a memory belongs whose caller named no scope: to the project of the directory, or everywhere."""

from pathlib import Path
from typing import TYPE_CHECKING

from engram.gates.locality import ProjectPlace, locality
from engram.model.forms import FACT, form_name
from engram.model.memory import Memory
from engram.rules.scopes import GLOBAL
from engram.store.protocol import Filters, Store
from engram.store.scopes import is_within, repository_of
from engram.text.content_hash import content_hash

if TYPE_CHECKING:
    from engram.gates.policies import MemoryPolicy

_MOST_COMPARED = 500
"""Facts of `global` that a new one is compared with, the newest first."""


def inferred_scope(
    scope: str | None, directory: Path, draft: Memory, type_name: str, store: Store, policy: "MemoryPolicy"
) -> tuple[str, str]:
    """The scope of a draft, and why it is the project's; `global` and "" for what holds everywhere."""
    top = repository_of(directory)
    if scope is None or top is None:
        return GLOBAL, ""
    folders = dict.fromkeys((directory, top))
    place = ProjectPlace(scope, lambda path: any(is_within(folder, path) for folder in folders))
    reason = locality(draft.statement, place, type_name=type_name, situation=draft.situation)
    typed = draft.but(type=type_name) if type_name else draft
    is_local = reason and not _is_known_everywhere(typed, bool(type_name), store, policy)
    return (scope, reason) if is_local else (GLOBAL, "")


def _is_known_everywhere(draft: Memory, is_typed: bool, store: Store, policy: "MemoryPolicy") -> bool:
    """Whether `global` has the same statement, or the fact that this is a new value of: it then belongs there."""
    key = policy.applied(draft, typed=is_typed).conflict_key
    if store.exact(content_hash(draft.statement), GLOBAL) is not None or (key and store.heads(key, GLOBAL)):
        return True
    return form_name(draft.form) == FACT and _has_fact_about(draft, store)


def _has_fact_about(draft: Memory, store: Store) -> bool:
    """Whether `global` has a fact in a form with the same subject and predicate: this repeats it, or contradicts it."""
    from engram.gates.forms import compare_forms

    filters = Filters(scopes=(GLOBAL,), types=(FACT,))
    known = store.listing(filters, _MOST_COMPARED)
    return any(form_name(one.form) == FACT and compare_forms(draft, one).relation != "distinct" for one in known)
