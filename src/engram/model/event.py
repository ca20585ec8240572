"""The records of a ledger: events and sessions."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from engram.model.display import Displayed
from engram.model.lazy import dataclass, field

DOCUMENT_ROLE = "document"
"""The role of a document's chunk, which is ranked without its neighbours."""
SUMMARY_ROLE = "summary"
"""The role of the event that a session's summary becomes when it ends, so that a search finds it."""
_REDACTED = re.compile(r"\[redacted:[a-z0-9-]+\]")
EVENT_TYPES = ("message", "tool_call", "tool_result", "observation", "error", "artifact")


@dataclass(frozen=True, slots=True, repr=False)
class Event(Displayed):
    """One line of a ledger. `digest` chains it to the event before it; `key` is the caller's idempotency key."""

    _SHOWN = ("id", "role", "content")
    _HIDDEN = frozenset(("seq", "at", "salt", "body", "prev", "digest"))

    id: str
    session: str
    seq: int
    role: str
    content: str
    at: datetime
    event_type: str = "message"
    task: str = ""
    key: str = ""
    payload: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    salt: str = ""
    body: str = ""
    """Salted digest of the content; it stays when the content is purged, so the chain still verifies."""
    prev: str = ""
    digest: str = ""
    scope: str = ""
    """Its owner's scope, set when it is written; "" in events written before they carried one."""

    @property
    def redactions(self) -> int:
        """How many secrets of its content and payload were replaced by `[redacted:kind]`."""
        return _count_redactions((self.content, self.payload))


@dataclass(frozen=True, slots=True, repr=False)
class Session(Displayed):
    """A conversation with a beginning, an end and what was injected at its start."""

    _SHOWN = ("id", "task", "scopes")
    _HIDDEN = frozenset(("summary_through", "summary_style", "summary_by"))

    id: str
    task: str
    scopes: tuple[str, ...]
    started: datetime
    ended: datetime | None = None
    summary: str = ""
    summary_through: int = 0
    """The number of the last event the summary covers; 0 for one that was given."""
    summary_style: str = ""
    summary_by: str = ""
    """`rules`, a model's name, or "" for one that a caller gave."""

    @property
    def owner(self) -> str:
        """The scope it belongs to: the first of those it sees."""
        return self.scopes[0] if self.scopes else "global"

    @property
    def redactions(self) -> int:
        """How many secrets of its task and summary were replaced by `[redacted:kind]`."""
        return _count_redactions((self.task, self.summary))


def _count_redactions(value: Any) -> int:
    if isinstance(value, str):
        return len(_REDACTED.findall(value))
    if isinstance(value, Mapping):
        return _count_redactions((*value, *value.values()))
    return sum(map(_count_redactions, value)) if isinstance(value, list | tuple) else 0


def quotes_ledger(session: str) -> str:
    """The ledger of the exact words that were kept of a session."""
    return f"artifacts-{session}"
