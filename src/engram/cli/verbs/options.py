"""Arguments and options that several verbs take, with their one wording."""

from typing import TYPE_CHECKING, Annotated, Any

from engram.cli.declared import Argument, Option
from engram.model.errors import InvalidInput
from engram.model.memory import STATUSES
from engram.model.types import known_types, memory_type

if TYPE_CHECKING:
    from engram.client import Engram

KINDS = ("memory", "event")
"""What a search can find."""

Ref = Annotated[str, Argument("ID", "Id, name or alias of a memory.")]
Text = Annotated[str, Argument("TEXT", "The statement; - reads it from stdin.")]
Yes = Annotated[bool, Option("--yes", "-y", help="Do it without asking.")]

Scopes = Annotated[
    list[str] | None,
    Option("--scope", "-s", metavar="SCOPE", help="Only this scope (repeatable); `here` is this directory's."),
]
SeenFrom = Annotated[
    list[str] | None,
    Option(
        "--scope",
        "-s",
        metavar="SCOPE",
        help="Only what is seen from this scope, such as agent:shop/ana (repeatable). Default: everything here.",
    ),
]
Types = Annotated[list[str] | None, Option("--type", "-t", metavar="TYPE", help="Only this type (repeatable).")]
Tags = Annotated[list[str] | None, Option("--tag", metavar="TAG", help="Only with this tag (repeatable: all).")]
Domain = Annotated[str | None, Option("--domain", metavar="A/B", help="Only this domain and those below it.")]
Since = Annotated[str | None, Option("--since", metavar="TIME", help="Only from this time on (ISO 8601).")]
Until = Annotated[str | None, Option("--until", metavar="TIME", help="Only before this time (ISO 8601).")]
AsOf = Annotated[str | None, Option("--as-of", metavar="TIME", help="What was true at this time.")]
KnownAt = Annotated[str | None, Option("--known-at", metavar="TIME", help="What Engram knew at this time.")]
Statuses = Annotated[
    list[str] | None,
    Option("--status", metavar="STATUS", help="Only this status (repeatable); `any` for all. Default: in force."),
]
Meta = Annotated[list[str] | None, Option("--meta", metavar="KEY=VALUE", help="Only with this metadata (repeatable).")]
Limit = Annotated[int, Option("--limit", "-n", metavar="N", help="At most this many.")]
Mode = Annotated[str, Option("--mode", metavar="MODE", help="hybrid, semantic or keyword.")]
Fusion = Annotated[str | None, Option("--fusion", metavar="NAME", help="rrf for reciprocal rank fusion.")]
Explain = Annotated[bool, Option("--explain", help="Show how each score came about.")]
MinRelevance = Annotated[
    float,
    Option(
        "--min-relevance", metavar="0–1", help="Leave out hits with a lower probability of being about the question."
    ),
]
Session = Annotated[
    str,
    Option("--session", metavar="ID", envvar="ENGRAM_SESSION", help="The session this belongs to."),
]


def filters(**given: Any) -> dict[str, Any]:
    """The filters that were given, as the client takes them."""
    meta = pairs(given.pop("meta", None))
    status = given.pop("status", None)
    _known("status", status, (*STATUSES, "any"))
    _known("kind", given.get("kinds"), KINDS)
    chosen = {name: value for name, value in given.items() if value}
    if chosen.get("scope"):
        chosen["scope"] = list(chosen["scope"])
    if status:
        chosen["status"] = "any" if "any" in status else status
    if meta:
        chosen["metadata"] = meta
    return chosen


def _known(what: str, given: list[str] | None, known: tuple[str, ...]) -> None:
    for value in given or ():
        if value not in known:
            raise InvalidInput(f"unknown {what} {value!r}; known: {', '.join(known)}")


def check_types(mem: "Engram", types: list[str] | None) -> None:
    """Refuse a type that neither the registry nor any memory here has: files from elsewhere may bring words of their own."""
    for name in types or ():
        if not any(entry.name == name for entry in known_types()) and not mem.list(limit=1, types=[name], status="any"):
            memory_type(name)


def pairs(items: list[str] | None) -> dict[str, Any]:
    """`key=value` texts as a mapping; a value that is JSON is read as such."""
    from engram.cli import strict_json

    found: dict[str, Any] = {}
    for item in items or ():
        key, equals, value = item.partition("=")
        if not equals or not key.strip():
            raise InvalidInput(f"{item!r} is not of the form key=value")
        try:
            found[key.strip()] = strict_json.loads(value)
        except ValueError:
            found[key.strip()] = value
    return found
