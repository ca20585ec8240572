"""The typed keyword arguments of callers: owners, filters, and the options of `open`; every value is checked."""

from collections.abc import Callable, Mapping
from datetime import datetime, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from engram.model.arguments import (
    ANY_STATUS,
    checked_kinds,
    checked_mapping,
    checked_statuses,
    checked_window,
    read_words,
)
from engram.model.errors import InvalidInput
from engram.model.memory import FILTER_ALIASES, aware, resolve_aliases
from engram.rules.scopes import parse_scope

if TYPE_CHECKING:
    from engram.gates.policies import MemoryPolicy


class OpenOptions(TypedDict, total=False):
    """The options of `Engram.open`, for `AsyncEngram.open`."""

    url: str | None
    tenant: str | None
    cache: "str | Path | None"
    ephemeral: bool
    create: bool
    directory: "str | Path | None"
    embedder: str | None
    policy: "str | MemoryPolicy"
    clock: Callable[[], datetime] | None
    time_zone: str | tzinfo | None


OWNERS = ("agent_id", "user_id")
FILTER_TIMES = ("since", "until", "as_of", "known_at")
_EVENT_FILTERS = ("session", "roles")
"""Filters that only apply to events."""


def owner_scope(agent_id: str | None = None, user_id: str | None = None) -> str:
    """The scope of an agent and user as spec 2 names them: `agent:bot`, `agent:bot/ana`, or `user:ana` for a user of any agent.

    All users of an agent see the agent's own scope; two users never see each other's.
    """
    named = {name: given for name, given in (("agent_id", agent_id), ("user_id", user_id)) if given is not None}
    for name, given in named.items():
        _check_owner(given, name)
    if not named:
        raise InvalidInput("name an owner: agent_id, user_id or both")
    parts = [_escape_name(given) for given in named.values()]
    return parse_scope(f"{'user' if agent_id is None else 'agent'}:{'/'.join(parts)}")


def _check_owner(given: Any, name: str) -> None:
    """Raise `InvalidInput` for an empty id, which must not mean everyone."""
    if not isinstance(given, str) or not given or given != given.strip():
        raise InvalidInput(
            f"{name} {given!r} must be text, not empty and without surrounding blanks; leave it out or give None for none"
        )


def _escape_name(name: str) -> str:
    """The name with `/` escaped, so that the agent a/b differs from the user b of the agent a."""
    return name.replace("%", "%25").replace("/", "%2F")


def resolve_owner(given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with the owner's scope in place of the ids.

    Raises `InvalidInput` if they have both an owner and a scope.
    """
    rest = dict(given)
    owner = {name: rest.pop(name) for name in OWNERS if name in rest}
    if all(given is None for given in owner.values()):
        return rest
    if rest.get("scope"):
        raise InvalidInput(
            "give agent_id and user_id, or a scope, not both: an owner's scope is `scope_for(agent_id, user_id)`"
        )
    return {**rest, "scope": owner_scope(**owner)}


def named_owner(given: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The scopes that name an owner; None if nobody is named."""
    return read_words(resolve_owner(given).get("scope"), "scope")


def attach_zone(given: Mapping[str, Any], names: tuple[str, ...], zone: tzinfo) -> dict[str, Any]:
    """The arguments with the zone added to each of these times that has none."""
    times = {name: aware(given[name], zone) for name in names if given.get(name) is not None}
    return {**given, **times}


def build_filters(given: Mapping[str, Any], zone: tzinfo) -> dict[str, Any]:
    """Filters as `ScopeResolver` takes them. Raises `InvalidInput` for a combination that could never match."""
    found = attach_zone(resolve_owner(resolve_aliases(given, FILTER_ALIASES)), FILTER_TIMES, zone)
    for name in ("scope", "types", "tags", "roles"):
        if name in found:
            found[name] = read_words(found[name], name)
    found["kinds"] = checked_kinds(found.get("kinds")) or ("memory",)
    if "status" in found:
        status = checked_statuses(found["status"])
        found["status"] = ANY_STATUS if ANY_STATUS in (status or ()) else status
    if "metadata" in found:
        found["metadata"] = checked_mapping(found["metadata"], "metadata")
    checked_window(found.get("since"), found.get("until"))
    lost = next((name for name in _EVENT_FILTERS if found.get(name) and "event" not in found["kinds"]), None)
    if lost is not None:
        raise InvalidInput(f'{lost} only applies to events: add kinds=("event",)')
    return found
