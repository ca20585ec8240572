"""Size limits of memories and of every argument of a verb; errors name the argument, its size and the maximum.
Later steps may read all of an argument, so its size bounds the work of a call.
"""

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
"""The maximum number of tags, aliases, entities, anchors, evidence entries or superseded ids."""
MAX_LISTED_CHARS = 1_000
"""The maximum length of one tag, alias or entity."""
MAX_LISTED_TOTAL = 50_000
"""The maximum total length of all tags, all aliases or all entities."""
MAX_LINKS = 10_000
MAX_DETAIL_CHARS = 100_000
"""The maximum length of the situation, the rationale and the domain. Whole sources belong in `context`, which is not indexed."""

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
"""The maximum length of an argument not listed in `MAX_CHARS`, such as an id, name, label or date."""
MAX_PATH_CHARS = 4_096
MAX_PART_CHARS = 4_000
"""The maximum length of a situation, and of each part of feedback or a fact."""
MAX_NOTE_CHARS = 32_000
"""The maximum length of a reason, rationale or summary; also of a reference, since an id may be written by hand."""
MAX_QUESTION_CHARS = 100_000
"""The maximum length of a question or task. Only its beginning is read, see `engram.recall.search.MAX_QUESTION`."""
MAX_TEXT_CHARS = 8 * 1024 * 1024
"""The maximum length of a text stored as is, and of all texts in a mapping together."""
MAX_ITEMS = 100_000
"""The maximum number of entries in a list of names."""
CHECKED_BY_VERB = frozenset({("add_batch", "items")})
"""Arguments whose entries the verb itself checks one by one, because it reports or skips an entry that is too large."""

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
"""The maximum length of each argument, by name."""
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
    """The total length of all texts in a value, at any depth."""
    waiting, seen, size = [value], set[int](), 0
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            size += len(item)
        elif id(item) in seen:  # the value contains itself; it is refused later
            continue
        seen.add(id(item))
        if isinstance(item, Mapping):
            waiting += [*item.keys(), *item.values()]
        elif isinstance(item, list | tuple | set | frozenset):
            waiting += item
    return size


def limit_verb(verb: Verb) -> Verb:
    """The function, wrapped to check its arguments by name before it runs."""
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
    """The class, with public methods that check their arguments by name before they run."""
    limited: dict[FunctionType, Any] = {}
    for name, part in list(vars(cls).items()):
        if isinstance(part, FunctionType) and not name.startswith("_"):
            setattr(cls, name, limited.setdefault(part, limit_verb(part)))
    return cls
