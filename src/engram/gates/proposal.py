"""The input and output of the gates, and the first check, of shape and size.

Defines the proposal, its view without look-alike letters, the lookup in the store, and the verdict.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any, Protocol

from engram.model.decision import Outcome
from engram.model.errors import InvalidInput
from engram.model.lazy import dataclass, fields, is_dataclass, replace
from engram.model.memory import Activation, Feedback, Memory, Status
from engram.model.types import memory_type
from engram.rules.limits import limit_problem
from engram.rules.scopes import MAX_SCOPE_PART_BYTES
from engram.rules.sources import may_replace
from engram.text.confusables import fold_text
from engram.text.display import remove_invisible

__all__ = [
    "BARE_SCOPES",
    "RECORD_SEPARATOR",
    "TEXT_FIELDS",
    "WORD_FIELDS",
    "Conflict",
    "FoldedLookup",
    "GateSettings",
    "Lookup",
    "Neighbour",
    "Proposal",
    "Verdict",
    "added_problem",
    "fold_memory",
    "fold_proposal",
    "label_fields",
    "label_items",
    "scope_problem",
    "statement_problem",
    "strings",
    "texts",
    "without_invisible",
]

# A statement is 25–60 words (spec 1); longer text is a document and belongs to `ingest`.
MAX_STATEMENT_CHARS = 32_000
# `add` trusts its caller, who may store whole documents; a larger file of the store would be unreadable.
MAX_ADDED_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Proposal:
    """A memory as it would be stored, before the gates have judged it. Its id may be empty."""

    memory: Memory
    autonomous: bool
    """Captured without an explicit request by a person or a caller; the five quality gates apply."""
    content_hash: str
    tokens: tuple[str, ...]
    named: tuple[Memory, ...] = ()
    """The stored memories named by the caller."""
    relation: str = ""
    """How it relates to them according to the caller: one of `model.decision.RELATIONS`."""
    alone: bool = False
    """Its subject is unclear, so it replaces only memories that the caller names."""
    is_typed: bool = True
    """Whether the caller gave the type; an inferred type makes nothing wait."""

    def leaves_out(self, memory_id: str) -> bool:
        """Whether to ignore a memory because the caller has declared its relation.

        An agent may not dismiss a person's statement.
        """
        if memory_id in self.memory.supersedes:
            return True
        return any(memory_id == named.id and self._is_free_beside(named) for named in self.named)

    def _is_free_beside(self, named: Memory) -> bool:
        return self.relation not in ("different", "refinement") or may_replace(self.memory.source, named)


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A stored memory similar to a proposal. Without an embedder the cosine is nan or negative."""

    memory: Memory
    cosine: float
    decided: str = ""
    """If a person removed it: who, how and when."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """A stored memory that a proposal outdates or contradicts."""

    other: Memory
    relation: str
    """`update` or `contradiction`."""
    probability: float
    why: str
    is_sure: bool = False
    """The update is certain enough to need no review."""
    is_likely: bool = True
    """Certain enough to wait for review; otherwise only reported."""


class Lookup(Protocol):
    """The lookups that the gates need from a store."""

    def exact(self, content_hash: str, scope: str) -> Memory | None:
        """A live memory of that scope with that content hash."""

    def heads(self, conflict_key: str, scope: str) -> Sequence[Memory]:
        """The current memories with a conflict key in a scope."""

    def near(self, proposal: Proposal) -> Sequence[Neighbour]:
        """The nearest live memories in the proposal's scope, by meaning and by words."""

    def rejected_neighbours(self, proposal: Proposal) -> Sequence[Neighbour]:
        """The nearest memories that a person rejected, in the scopes that see the proposal or that it sees."""

    def withdrawn_neighbours(self, proposal: Proposal) -> Sequence[Neighbour]:
        """Like `rejected_neighbours`, for memories that a person retired or replaced."""


@dataclass(frozen=True, slots=True)
class GateSettings:
    """The settings of the gates that the owner of a store may change."""

    autopromote_remember: bool = True
    """An explicit `remember` or `learn` of tier 1 becomes active at once."""
    autopromote_harvest: bool = False
    """Tier 1 memories that were captured, harvested or imported without an explicit request also become active at once."""
    autopromote_kinds: frozenset[str] = frozenset()
    """The only kinds that become active without review; if empty, every kind of tiers 1 and 2 may."""
    most_per_source: int = 500
    """Maximum candidates that one untrusted source may add a day; 0 for no limit."""
    max_statement_chars: int = MAX_STATEMENT_CHARS
    """For `learn` and `remember`."""
    max_added_bytes: int = MAX_ADDED_BYTES
    """For `add`, in UTF-8."""
    allowed_values: Callable[[], tuple[str, ...]] = tuple
    """Returns patterns of values that are not secrets: the setting `secrets.allow`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The gates' result: the outcome, the gate that decided, and a readable reason."""

    outcome: Outcome
    gate: str
    reason: str
    other: Memory | None = None
    status: Status = "active"
    passed: tuple[str, ...] = ()
    """The gates passed before that one, in order."""
    conflicts: tuple[Conflict, ...] = ()
    """The current memories that it may outdate or contradict, most likely first."""
    withdrawn: str = ""
    """The id of the removed memory that it repeats."""
    waits_alone: bool = False
    """It waits for review only because of a conflict; otherwise its source could have stored it as active."""

    @property
    def is_admitted(self) -> bool:
        """Whether the memory is stored."""
        return self.outcome in {Outcome.CREATED, Outcome.PENDING, Outcome.CONTRADICTION, Outcome.SUPERSEDED}


TEXT_FIELDS = ("statement", "situation", "context", "rationale", "trigger_context", "domain", "name")
WORD_FIELDS = ("tags", "cues", "entities", "aliases")
"""The fields that an agent may read or that a memory is judged by, including the parts of a form."""
MAX_FOLDED_CHARS = 20_000
"""Maximum characters of a text that are folded for the gates; longer texts are documents, compared by their hash alone."""


def fold_memory(memory: Memory) -> Memory:
    """The memory with folded texts; the memory itself if they are folded already.

    Only the beginning of a long text, which the gates read, is folded.
    """
    return _with_texts(memory, _fold_beginning)


def without_invisible(memory: Memory) -> Memory:
    """The memory without invisible characters, as it is stored."""
    return _with_texts(memory, remove_invisible)


def fold_proposal(proposal: Proposal) -> Proposal:
    """The proposal with its own texts and those of the memories it names folded.

    Its hash and tokens already use folded text.

    The stored memory keeps its characters. Every gate, model and comparison reads this view, so that look-alike letters
    and invisible characters cannot change a decision.
    """
    memory, named = fold_memory(proposal.memory), tuple(map(fold_memory, proposal.named))
    if memory is proposal.memory and all(one is other for one, other in zip(named, proposal.named, strict=True)):
        return proposal
    return replace(proposal, memory=memory, named=named)


def _fold_beginning(text: str) -> str:
    return (
        fold_text(text)
        if len(text) <= MAX_FOLDED_CHARS
        else fold_text(text[:MAX_FOLDED_CHARS]) + text[MAX_FOLDED_CHARS:]
    )


def _with_texts(memory: Memory, change: Callable[[str], str]) -> Memory:
    changes: dict[str, object] = {}
    for name in TEXT_FIELDS:
        text = getattr(memory, name)
        if text and (changed := change(text)) != text:
            changes[name] = changed
    for name in WORD_FIELDS:
        words = getattr(memory, name)
        if words and (changed_words := tuple(filter(None, map(change, words)))) != words:
            changes[name] = changed_words
    if memory.form and (form := {part: change(text) for part, text in memory.form.items()}) != memory.form:
        changes["form"] = form
    return memory.replace(**changes) if changes else memory


class FoldedLookup:
    """The gates' lookups with folded texts. It keeps the stored memories for the verdict."""

    def __init__(self, known: Lookup, named: Sequence[Memory]) -> None:
        self._known = known
        self._originals: dict[str, Memory] = {memory.id: memory for memory in named}

    def exact(self, content_hash: str, scope: str) -> Memory | None:
        """A live memory of that scope with that content hash."""
        found = self._known.exact(content_hash, scope)
        return None if found is None else self._fold_stored(found)

    def heads(self, conflict_key: str, scope: str) -> Sequence[Memory]:
        """The current memories with a conflict key in a scope."""
        return list(map(self._fold_stored, self._known.heads(conflict_key, scope)))

    def near(self, proposal: Proposal) -> Sequence[Neighbour]:
        """The nearest live memories in the proposal's scope."""
        return self._fold_neighbours(self._known.near(proposal))

    def rejected_neighbours(self, proposal: Proposal) -> Sequence[Neighbour]:
        """The nearest memories that a person rejected."""
        return self._fold_neighbours(self._known.rejected_neighbours(proposal))

    def withdrawn_neighbours(self, proposal: Proposal) -> Sequence[Neighbour]:
        """The nearest memories that a person retired or replaced."""
        return self._fold_neighbours(self._known.withdrawn_neighbours(proposal))

    def original(self, memory: Memory) -> Memory:
        """A looked-up memory as it is stored."""
        return self._originals.get(memory.id, memory)

    def restore(self, verdict: Verdict) -> Verdict:
        """The verdict with its memories as they are stored."""
        other = None if verdict.other is None else self.original(verdict.other)
        if other is verdict.other and not verdict.conflicts:
            return verdict
        conflicts = tuple(replace(one, other=self.original(one.other)) for one in verdict.conflicts)
        return replace(verdict, other=other, conflicts=conflicts)

    def _fold_stored(self, memory: Memory) -> Memory:
        folded = fold_memory(memory)
        if folded is not memory:
            self._originals[memory.id] = memory
        return folded

    def _fold_neighbours(self, near: Sequence[Neighbour]) -> Sequence[Neighbour]:
        return [
            one if (folded := self._fold_stored(one.memory)) is one.memory else replace(one, memory=folded)
            for one in near
        ]


BARE_SCOPES = ("global", "user", "local", "public")
_MAX_SCOPE_CHARS = 512
RECORD_SEPARATOR = "\n;\n"
"""Separates two values; no pattern matches across it."""
# Numbers and times contain no text; skipping them halves the walk that `add` makes for every memory.
_NO_TEXT = (bool, int, float, datetime)
_TEXTLESS = (*_NO_TEXT, datetime | None, float | None, Activation, Feedback)
_FIELDS = tuple(part.name for part in fields(Memory) if part.type not in _TEXTLESS)
_values = attrgetter(*_FIELDS)
# Keys of a mapping whose value is a name, and keys whose value is the content for that name.
_NAMING = frozenset((
    "name", "key", "field", "label", "id", "title", "variable", "var", "env", "property", "param", "parameter",
    "header", "attribute", "setting", "k",
))  # fmt: skip
_GENERIC = frozenset((
    "value", "val", "content", "data", "text", "default", "string", "secret", "current", "raw", "plain", "v",
    "literal", "answer",
))  # fmt: skip
_LONGEST_LABEL = 80
_KIND = re.compile(r"[a-z][a-z0-9_-]{0,31}\Z")
# C0 and C1 controls but tab, line feed and carriage return; lone surrogates cannot be written as UTF-8.
_UNWRITABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")
_UNSAFE_IN_SCOPE = re.compile("[\\\\\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
_VISIBLE = re.compile(r"[^\s\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\u00ad\u115f\u1160\u3164\uffa0\u2800]")


def statement_problem(memory: Memory, settings: GateSettings) -> str:
    """Why `learn` cannot accept this memory; "" if it can."""
    size = len(memory.statement)
    if size > settings.max_statement_chars:
        return (
            f"the statement has {size:,} characters (maximum {settings.max_statement_chars:,});"
            " shorten it to 25–60 words, put the source into `context`, or ingest it as a document"
        )
    return _problem(memory)


def added_problem(memory: Memory, settings: GateSettings) -> str:
    """Why `add` cannot accept this memory; "" if it can."""
    size = len(memory.statement.encode("utf-8", "surrogatepass"))
    if size > settings.max_added_bytes:
        return f"the statement has {size:,} bytes (maximum {settings.max_added_bytes:,}); ingest it as a document"
    return _problem(memory)


def texts(memory: Memory) -> Iterator[tuple[str, str]]:
    """Every text in a memory with the name of its field, at any depth, including keys."""
    for name, value in zip(_FIELDS, _values(memory), strict=True):
        if not value:
            continue
        if isinstance(value, str):
            yield name, value
        elif found := RECORD_SEPARATOR.join(strings(value)):
            yield name, found


def strings(value: object) -> Iterator[str]:
    """The strings in a value, each prefixed with its key, because the key can describe the value."""
    stack: list[tuple[str, object]] = [("", value)]
    while stack:
        key, item = stack.pop()
        if isinstance(item, str):
            yield f"{key}: {item}" if key else item
        elif inner := _inside(key, item):
            stack += inner
        elif key:
            # The key itself may be a secret, or say that a number is one.
            yield f"{key}: {item}" if isinstance(item, int | float) else key


def _inside(key: str, item: object) -> list[tuple[str, object]]:
    """The parts of a value; a mapping's own key is one of its texts."""
    if isinstance(item, _NO_TEXT) or not item:
        return []
    if isinstance(item, list | tuple | set | frozenset):
        return label_items(item, key)
    if isinstance(item, Mapping):
        return [
            ("", key),
            *(
                ((label if label == name else f"{name} {label}"), deeper)
                for name, label, deeper in label_fields(item, key)
            ),
        ]
    if is_dataclass(item):
        return [("", getattr(item, part.name)) for part in fields(item)]
    return []


def label_fields(data: Mapping[Any, Any], key: str = "") -> Iterator[tuple[str, str, Any]]:
    """Each key of a mapping, the label that describes its value, and the value. The label is usually the key.

    In `{"name": "password", "value": …}` and `{"password": {"value": …}}` the label of "value" is "password".
    """
    called = next(
        (word for name in data if str(name).casefold() in _NAMING and isinstance(word := data[name], str)), key
    )
    for name, value in data.items():
        generic = str(name).casefold() in _GENERIC
        yield str(name), called[:_LONGEST_LABEL] if generic and called else str(name), value


def label_items(items: Iterable[Any], key: str = "") -> list[tuple[str, Any]]:
    """Each item of a list with its label: the list's key, or in `["--password", …]` the option before it."""
    found: list[tuple[str, Any]] = []
    for item in items:
        before = found[-1][1] if found else None
        is_option = isinstance(before, str) and before.startswith("-") and len(before) <= _LONGEST_LABEL
        found.append((str(before).lstrip("-") if is_option else key, item))
    return found


def _problem(memory: Memory) -> str:
    if not memory.statement or not _VISIBLE.search(memory.statement):
        return "the statement is empty"
    if problem := limit_problem(memory):
        return problem
    for field, text in texts(memory):
        # A file written by hand may have any id, and its memory must stay editable.
        if field != "id" and (bad := _UNWRITABLE.search(text)):
            return f"{field} contains the control character U+{ord(bad[0]):04X}, which cannot be stored; remove it"
    return _type_problem(memory.type) or scope_problem(memory.scope)


def _type_problem(name: str) -> str:
    try:
        memory_type(name)
    except InvalidInput as unknown:
        return str(unknown)
    return ""


def scope_problem(scope: str) -> str:
    """Why a scope is invalid; "" if it is valid: `global`, `user`, `local`, `public`, or `kind:name[/part…]`."""
    if scope in BARE_SCOPES:
        return ""
    if len(scope) > _MAX_SCOPE_CHARS:
        return f"the scope has {len(scope):,} characters (maximum {_MAX_SCOPE_CHARS})"
    if _UNSAFE_IN_SCOPE.search(scope):
        return f"the scope {scope!r} contains a backslash or a control character"
    kind, colon, name = scope.partition(":")
    if not colon or not _KIND.match(kind):
        return f"the scope {scope!r} is invalid; use {', '.join(BARE_SCOPES)} or kind:name[/part…]"
    return next((problem for part in name.split("/") if (problem := _part_problem(scope, part))), "")


def _part_problem(scope: str, part: str) -> str:
    if not part or part != part.strip():
        return f"the scope {scope!r} has an empty part, or a part that starts or ends with a space"
    if part.strip(".") == "" or part.startswith("~"):
        return f"the scope {scope!r} contains {part!r}, which would point outside its folder"
    if len(part.encode("utf-8")) > MAX_SCOPE_PART_BYTES:
        return f"a part of the scope {scope[:40]!r}… is longer than {MAX_SCOPE_PART_BYTES} bytes"
    return ""
