"""Arguments and options that several verbs take: each is declared, and worded, once."""

from typing import TYPE_CHECKING, Annotated, Any

from engram.cli.parser import Argument, Option, Options
from engram.model.errors import InvalidInput
from engram.model.memory import STATUSES
from engram.model.types import known_types, memory_type
from engram.rules.scopes import EVERYWHERE

if TYPE_CHECKING:
    from engram.client import Engram

KINDS = ("memory", "event")
"""What a search can find."""

Ref = Annotated[str, Argument("ID", "Id, name or alias of a memory.")]
Named = Annotated[str, Argument("[ID]", "Id, name or alias of a memory; or give --name.")]
Text = Annotated[str, Argument("TEXT", "The statement; - reads it from stdin.")]
Question = Annotated[str, Argument("QUESTION", "What to look for; - reads it from stdin.")]
Yes = Annotated[bool, Option("--yes", "-y", help="Do not ask for confirmation.")]
Reason = Annotated[str, Option("--reason", metavar="TEXT", help="The reason, for the journal.")]

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
        help="Only what is visible from this scope, such as agent:shop/ana (repeatable). Default: everything here.",
    ),
]
Statuses = Annotated[
    list[str] | None,
    Option("--status", metavar="STATUS", help="Only this status (repeatable); `any` for all. Default: current ones."),
]
Since = Annotated[str | None, Option("--since", metavar="TIME", help="Only from this time on (ISO 8601).")]
Until = Annotated[str | None, Option("--until", metavar="TIME", help="Only before this time (ISO 8601).")]
Limit = Annotated[int, Option("--limit", "-n", metavar="N", help="At most this many.")]
Mode = Annotated[str, Option("--mode", metavar="MODE", help="hybrid, semantic or keyword.")]
Fusion = Annotated[str | None, Option("--fusion", metavar="NAME", help="rrf for reciprocal rank fusion.")]
MinRelevance = Annotated[
    float,
    Option("--min-relevance", metavar="0–1", help="Leave out hits that are less likely to be about the question."),
]
Session = Annotated[
    str, Option("--session", metavar="ID", envvar="ENGRAM_SESSION", help="The session this belongs to.")
]
Metadata = Annotated[list[str] | None, Option("--meta", metavar="KEY=VALUE", help="Your own metadata (repeatable).")]


class MemoryFilters(Options):
    """Which memories: recall, search and list."""

    scope: Scopes = None
    everywhere: Annotated[
        bool, Option("--everywhere", help="Look in every scope, not only the directory's, the user's and global.")
    ] = False
    type_: Annotated[list[str] | None, Option("--type", "-t", metavar="TYPE", help="Only this type (repeatable).")] = (
        None
    )
    tag: Annotated[list[str] | None, Option("--tag", metavar="TAG", help="Only with this tag (repeatable: all).")] = (
        None
    )
    domain: Annotated[str | None, Option("--domain", metavar="A/B", help="Only this domain and those below it.")] = None
    since: Since = None
    until: Until = None
    as_of: Annotated[str | None, Option("--as-of", metavar="TIME", help="What was true at this time.")] = None
    known_at: Annotated[str | None, Option("--known-at", metavar="TIME", help="What Engram knew at this time.")] = None

    @property
    def wider(self) -> str:
        """The end of a hint: how to search every scope, if the caller chose none."""
        return "" if self.everywhere or self.scope else "; --everywhere looks in every scope"

    def chosen(self, **more: Any) -> dict[str, Any]:
        """The filters that were given, as the client takes them. Raises `InvalidInput` for an unknown status or kind."""
        if self.everywhere and self.scope:
            raise InvalidInput("give --everywhere or --scope, not both")
        return filters(
            scope=[EVERYWHERE] if self.everywhere else self.scope, types=self.type_, tags=self.tag, domain=self.domain, since=self.since, until=self.until,
            as_of=self.as_of, known_at=self.known_at, **more,
        )  # fmt: skip


class StoreFilters(MemoryFilters):
    """The same with a status and metadata: search and list."""

    status: Statuses = None
    meta: Annotated[
        list[str] | None, Option("--meta", metavar="KEY=VALUE", help="Only with this metadata (repeatable).")
    ] = None

    def chosen(self, **more: Any) -> dict[str, Any]:
        """The filters that were given, as the client takes them. Raises `InvalidInput` for an unknown status or kind."""
        return super().chosen(status=self.status, meta=self.meta, **more)


class Ranking(Options):
    """How hits are found and ranked: recall and search."""

    limit: Limit = 10
    mode: Mode = "hybrid"
    fusion: Fusion = None
    explain: Annotated[bool, Option("--explain", help="Show how each score was computed.")] = False


class MemoryOptions(Options):
    """What a memory says about itself: learn, remember, add, update and revise."""

    scope: Annotated[
        str | None, Option("--scope", "-s", metavar="SCOPE", help="Where it applies; `here` is this directory's.")
    ] = None
    type_: Annotated[
        str | None, Option("--type", "-t", metavar="TYPE", help="preference, correction, convention, factual, …")
    ] = None
    tag: Annotated[list[str] | None, Option("--tag", metavar="TAG", help="A tag (repeatable).")] = None
    cue: Annotated[
        list[str] | None,
        Option("--cue", metavar="TEXT", help="A phrase under which somebody may look for it (repeatable, up to 8)."),
    ] = None
    domain: Annotated[str | None, Option("--domain", metavar="A/B", help="The domain it belongs to.")] = None
    when: Annotated[
        str | None,
        Option(
            "--when",
            "--situation",
            metavar="TEXT",
            help="The situation in which it matters: a task, such as “writing migrations”.",
        ),
    ] = None
    why: Annotated[str | None, Option("--why", metavar="TEXT", help="The reason behind it.")] = None
    context: Annotated[
        str | None, Option("--context", metavar="TEXT", help="Where it comes from; stored, never searched.")
    ] = None
    confidence: Annotated[
        float | None, Option("--confidence", metavar="0–1", help="How certain it is, from 0 to 1.")
    ] = None
    importance: Annotated[
        float | None, Option("--importance", metavar="0–1", help="How important it is, from 0 to 1.")
    ] = None
    name: Annotated[str | None, Option("--name", metavar="NAME", help="A name for it.")] = None
    valid_from: Annotated[str | None, Option("--valid-from", metavar="TIME", help="True from this time on.")] = None
    valid_until: Annotated[str | None, Option("--valid-until", metavar="TIME", help="True until this time.")] = None
    meta: Metadata = None

    def given(self) -> dict[str, Any]:
        """The fields that were given, as the client takes them; an empty text empties a field."""
        fields = {
            "scope": self.scope, "type": self.type_, "tags": self.tag, "domain": self.domain, "situation": self.when,
            "rationale": self.why, "context": self.context, "confidence": self.confidence, "name": self.name,
            "importance": self.importance, "valid_from": self.valid_from, "valid_until": self.valid_until,
            "cues": [] if self.cue == [""] else self.cue, "metadata": pairs(self.meta) or None,
        }  # fmt: skip
        return {name: value for name, value in fields.items() if value is not None}


class NewMemory(MemoryOptions):
    """The fields of a memory that does not exist yet: learn, remember and add."""

    pin: Annotated[bool, Option("--pin", help="Never let it fade; offer it first.")] = False
    at: Annotated[str | None, Option("--at", metavar="TIME", help="When it happened (ISO 8601).")] = None

    def given(self) -> dict[str, Any]:
        """The fields that were given and are not empty, as the client takes them."""
        fields = {**super().given(), "pinned": self.pin, "occurred_at": self.at}
        return {name: value for name, value in fields.items() if value not in ("", None, False)}


class ChangedMemory(MemoryOptions):
    """The fields of a memory that exists: update and revise. Lists replace the previous ones, and --scope moves it."""

    reason: Reason = ""

    def given(self) -> dict[str, Any]:
        """The fields that were given, as the client takes them for a change."""
        fields = super().given()
        return fields | ({"new_scope": fields.pop("scope")} if "scope" in fields else {})


def memory_fields(given: dict[str, Any]) -> dict[str, Any]:
    """The fields of a new memory that are not empty; no cues is an answer too."""
    fields = {**given, **({"cues": []} if given.get("cues") == [""] else {})}
    return {name: value for name, value in fields.items() if value not in ("", None, False)}


def filters_of(scope: list[str] | None = None, *, everywhere: bool = False, as_of: str | None = None) -> dict[str, Any]:
    """The filters of a question that were given, as the client takes them."""
    if everywhere and scope:
        raise InvalidInput("give --everywhere or --scope, not both")
    chosen = {"scope": [EVERYWHERE] if everywhere else scope, "as_of": as_of}
    return {name: value for name, value in chosen.items() if value}


def wider(scope: list[str] | None, *, everywhere: bool) -> str:
    """The end of a hint: how to search every scope, if the caller chose none."""
    return "" if everywhere or scope else "; --everywhere looks in every scope"


class FormParts(Options):
    """The parts of feedback and of a fact: learn, update and revise."""

    behavior: Annotated[str | None, Option("--behavior", metavar="TEXT", help="Feedback: what was done.")] = None
    impact: Annotated[str | None, Option("--impact", metavar="TEXT", help="Feedback: what it led to.")] = None
    action: Annotated[
        str | None, Option("--action", metavar="TEXT", help="Feedback: what to do instead, or again.")
    ] = None
    subject: Annotated[str | None, Option("--subject", metavar="TEXT", help="Fact: what it is about.")] = None
    predicate: Annotated[str | None, Option("--predicate", metavar="TEXT", help="Fact: what is stated of it.")] = None
    object_: Annotated[str | None, Option("--object", metavar="TEXT", help="Fact: the value.")] = None

    def parts(self) -> dict[str, str]:
        """The parts that were given, by their names."""
        named = {
            "behavior": self.behavior, "impact": self.impact, "action": self.action,
            "subject": self.subject, "predicate": self.predicate, "object": self.object_,
        }  # fmt: skip
        return {part: text for part, text in named.items() if text is not None}


class FormOptions(FormParts):
    """The same with spec 3's source: learn and update."""

    source: Annotated[
        str | None,
        Option(
            "--source", metavar="SOURCE", help="human or agent. Without a terminal it is an agent's word all the same."
        ),
    ] = None

    def claimed(self) -> str:
        """The source that was given. Raises `InvalidInput` for one that is neither human nor agent."""
        if self.source is not None and self.source not in ("human", "agent"):
            raise InvalidInput(f"--source takes human or agent, not {self.source!r}")
        return self.source or ""


class EventOptions(Options):
    """What goes into a ledger: session observe and task event."""

    role: Annotated[str, Argument("ROLE", "Who speaks: user, assistant, tool, …")] = ""
    content: Annotated[str, Argument("TEXT", "What was said; - reads it from stdin.")] = ""
    event_type: Annotated[
        str,
        Option("--event-type", metavar="TYPE", help="message, tool_call, tool_result, observation, error, artifact."),
    ] = "message"
    key: Annotated[str, Option("--key", metavar="KEY", help="Your own key; the same key is the same event.")] = ""
    at: Annotated[str | None, Option("--at", metavar="TIME", help="When it happened (ISO 8601). Default: now.")] = None
    batch: Annotated[
        bool, Option("--batch", help="Read events from stdin, one JSON object per line: role, content, at, key, …")
    ] = False


def filters(**given: Any) -> dict[str, Any]:
    """The filters that were given, as the client takes them. Raises `InvalidInput` for an unknown status or kind."""
    meta = pairs(given.pop("meta", None))
    status = given.pop("status", None)
    _check_known("status", status, (*STATUSES, "any"))
    _check_known("kind", given.get("kinds"), KINDS)
    chosen = {name: value for name, value in given.items() if value}
    if status:
        chosen["status"] = "any" if "any" in status else status
    if meta:
        chosen["metadata"] = meta
    return chosen


def _check_known(what: str, given: list[str] | None, known: tuple[str, ...]) -> None:
    for value in given or ():
        if value not in known:
            raise InvalidInput(f"Unknown {what} {value!r}; choose {', '.join(known)}")


def check_types(mem: "Engram", types: list[str] | None) -> None:
    """Refuse a type that neither the registry nor any memory here has: imported files may bring their own."""
    for name in types or ():
        if not any(entry.name == name for entry in known_types()) and not mem.list(
            limit=1, types=[name], status="any", scope=EVERYWHERE
        ):
            memory_type(name)


def check_least(option: str, value: int | None, least: int) -> None:
    """Refuse a number that is too small."""
    if value is not None and value < least:
        raise InvalidInput(f"{option} takes a number of at least {least}, not {value}")


def pairs(items: list[str] | None) -> dict[str, Any]:
    """`key=value` texts as a mapping; a value that is JSON is read as such."""
    from engram.readers.json_reader import NotJson, parse_json

    found: dict[str, Any] = {}
    for item in items or ():
        key, equals, value = item.partition("=")
        if not equals or not key.strip():
            raise InvalidInput(f"{item!r} does not have the form key=value")
        try:
            found[key.strip()] = parse_json(value, characters="any")
        except NotJson:
            found[key.strip()] = value
    return found
