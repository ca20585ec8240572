"""How large a memory and every argument of a verb may be; an error names the argument, its size and the maximum.
Whatever comes later may read all of an argument, so its size bounds the work of a call."""

from collections.abc import Callable, Mapping
from functools import wraps
from types import FunctionType
from typing import Any, TypeVar, cast

from engram.model.errors import InvalidInput
from engram.model.memory import Memory
from engram.rules.labels import cues_problem

__all__ = [
    "MAX_CHARS",
    "MAX_DETAIL_CHARS",
    "MAX_LINKS",
    "MAX_LISTED",
    "MAX_LISTED_CHARS",
    "MAX_LISTED_TOTAL",
    "MAX_NAME_CHARS",
    "MAX_QUESTION_CHARS",
    "check_argument",
    "limit_arguments",
    "limit_problem",
    "limit_verb",
]

MAX_LISTED = 1_000
"""Entries in each of: tags, aliases, entities, anchors, evidence, supersedes."""
MAX_LISTED_CHARS = 1_000
"""Characters of one tag, alias or entity."""
MAX_LISTED_TOTAL = 50_000
"""Characters of all tags, all aliases or all entities together."""
MAX_LINKS = 10_000
MAX_DETAIL_CHARS = 100_000
"""Characters of the situation, the rationale and the domain. Whole sources belong in `context`, which is not indexed."""

_MAX_ENTRIES = {
    **dict.fromkeys(("tags", "aliases", "entities", "anchors", "evidence", "supersedes"), MAX_LISTED),
    "associations": MAX_LINKS,
}
_LISTED_FIELDS = ("tags", "aliases", "entities")
_DETAIL_FIELDS = ("situation", "rationale", "domain")


def limit_problem(memory: Memory) -> str:
    """Which limit a memory exceeds; "" for none."""
    for field, most in _MAX_ENTRIES.items():
        if (count := len(getattr(memory, field))) > most:
            return f"{field} has {count:,} entries (maximum {most:,})"
    for field in _LISTED_FIELDS:
        if any(len(word) > MAX_LISTED_CHARS for word in getattr(memory, field)):
            return f"{field} has an entry of more than {MAX_LISTED_CHARS:,} characters; put long text into `context`"
        if (size := sum(map(len, getattr(memory, field)))) > MAX_LISTED_TOTAL:
            return (
                f"{field} have {size:,} characters in all (maximum {MAX_LISTED_TOTAL:,}); put long text into `context`"
            )
    for field in _DETAIL_FIELDS:
        if (size := len(getattr(memory, field))) > MAX_DETAIL_CHARS:
            return f"{field} has {size:,} characters (maximum {MAX_DETAIL_CHARS:,}); put long text into `context`"
    return cues_problem(memory.cues)


MAX_NAME_CHARS = MAX_LISTED_CHARS
"""Characters of any argument that is not listed in `MAX_CHARS`: ids, names, labels, dates."""
MAX_PATH_CHARS = 4_096
MAX_PART_CHARS = 4_000
"""Characters of a situation, and of each part of feedback or a fact."""
MAX_NOTE_CHARS = 32_000
"""Characters of a reason, a rationale, a summary; and of a reference, since an id may be written by hand."""
MAX_QUESTION_CHARS = 100_000
"""Characters of a question or a task. Its beginning is what is read, see `engram.recall.search.MAX_QUESTION`."""
MAX_TEXT_CHARS = 8 * 1024 * 1024
"""Characters of a text that is stored as it is, and of all texts in a mapping together."""
MAX_ITEMS = 100_000
"""Entries of a list of names."""
CHECKED_BY_VERB = frozenset({("add_batch", "items")})
"""Arguments whose entries a verb checks one by one, since it names or skips the one that is too large."""

_BY_SIZE: dict[int, tuple[str, ...]] = {
    MAX_PATH_CHARS: ("path", "paths", "directory", "project", "source", "target"),
    MAX_PART_CHARS: (
        "situation", "situations", "behavior", "impact", "action", "subject", "predicate", "object", "form",
        "trigger_context",
    ),
    MAX_NOTE_CHARS: (
        "ref", "refs", "title", "rationale", "reason", "outcome", "summary", "header", "goal", "blockers",
        "completed_steps", "pending_steps", "decisions", "expected_terms", "artifacts",
    ),
    MAX_QUESTION_CHARS: ("query", "question", "task", "about"),
    MAX_TEXT_CHARS: (
        "statement", "content", "fact", "context", "main_content", "text", "user", "assistant", "user_message",
        "assistant_response", "metadata", "payload", "data", "tool_calls", "tool_results",
    ),
}  # fmt: skip
MAX_CHARS: Mapping[str, int] = {name: most for most, names in _BY_SIZE.items() for name in names}
"""The most characters of an argument, by its name."""
_ADVICE = {
    MAX_NAME_CHARS: "; shorten it",
    MAX_PART_CHARS: "; put long text into `context`",
    MAX_QUESTION_CHARS: "; ask with the sentences that matter",
    MAX_TEXT_CHARS: "; ingest it as a document",
}

Verb = TypeVar("Verb", bound=Callable[..., Any])
Checked = TypeVar("Checked", bound=type)


def check_argument(name: str, value: Any) -> None:
    """Raise `InvalidInput` if a value is larger than an argument of that name may be."""
    most = MAX_CHARS.get(name, MAX_NAME_CHARS)
    if isinstance(value, str):
        _check_size(name, len(value), most)
    elif isinstance(value, Mapping):
        if name in MAX_CHARS and name != "form":
            _check_size(name, _chars_in(value), most)
        else:
            for key, part in value.items():
                check_argument(key if isinstance(key, str) else name, part)
    elif isinstance(value, list | tuple | set | frozenset):
        if len(value) > MAX_ITEMS and not any(isinstance(item, Mapping) for item in value):
            raise InvalidInput(f"{name} has {len(value):,} entries (maximum {MAX_ITEMS:,}); give fewer at a time")
        for item in value:
            check_argument(name, item)


def _check_size(name: str, size: int, most: int) -> None:
    if size > most:
        raise InvalidInput(f"{name} has {size:,} characters (maximum {most:,}){_ADVICE.get(most, '')}")


def _chars_in(value: Any) -> int:
    """The characters of all texts in a value, at any depth."""
    waiting, seen, size = [value], set[int](), 0
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            size += len(item)
        elif id(item) in seen:  # a value inside itself; it is refused later
            continue
        seen.add(id(item))
        if isinstance(item, Mapping):
            waiting += [*item.keys(), *item.values()]
        elif isinstance(item, list | tuple | set | frozenset):
            waiting += item
    return size


def limit_verb(verb: Verb) -> Verb:
    """A function that checks its arguments by their names before it runs."""
    code = cast(FunctionType, getattr(verb, "__wrapped__", verb)).__code__
    names = code.co_varnames[: code.co_argcount]

    @wraps(verb)
    def check_and_call(*args: Any, **given: Any) -> Any:
        for name, value in (*zip(names, args, strict=False), *given.items()):
            if (verb.__name__, name) not in CHECKED_BY_VERB:
                check_argument(name, value)
        return verb(*args, **given)

    return cast(Verb, check_and_call)


def limit_arguments(cls: Checked) -> Checked:
    """A class whose public methods check their arguments by their names before they run."""
    limited: dict[FunctionType, Any] = {}
    for name, part in list(vars(cls).items()):
        if isinstance(part, FunctionType) and not name.startswith("_"):
            setattr(cls, name, limited.setdefault(part, limit_verb(part)))
    return cls
