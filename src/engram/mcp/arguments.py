"""The arguments of each tool: one model is both the published schema and the check.

Every description is read by a model with every conversation, so each says only what the name does not.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from engram.model.arguments import MAX_WORDINGS
from engram.model.errors import UnreadableData
from engram.model.memory import FORMS, Signal
from engram.readers.json_reader import parse_json
from engram.recall.cutoff import MIN_KNOWN
from engram.rules.scopes import EVERYWHERE


def _listed(value: Any) -> Any:
    """A list; some clients send it as JSON text, or as words with commas."""
    if not isinstance(value, str):
        return value
    if value.lstrip().startswith("["):
        try:
            return parse_json(value)
        except UnreadableData as error:
            raise ValueError(str(error)) from None
    return [word.strip() for word in value.split(",") if word.strip()]


def _whole(value: Any) -> Any:
    """An integer; to JSON, 3.0 is one."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _one_scope(value: str) -> str:
    """One scope; `everywhere` is reserved for the store's owner, on the command line and in Python."""
    if value.strip() == EVERYWHERE:
        raise ValueError("name one scope, such as project:acme")
    return value


Words = Annotated[list[str], BeforeValidator(_listed)]
Wordings = Annotated[
    list[str],
    BeforeValidator(_listed),
    Field(max_length=MAX_WORDINGS, description="The same in other words: synonyms, terms, how an answer may be put."),
]
Whole = Annotated[int, BeforeValidator(_whole)]
Cues = Annotated[
    Words,
    Field(
        description="Up to 8 short phrases that a later question may use instead of these words: synonyms, the question it answers, "
        'the symptom. "Staging listens on 6543": ["psql connection refused", "which port does postgres use"].'
    ),
]
SessionId = Annotated[str, Field(description="From session_start.")]
Ref = Annotated[str, Field(min_length=1, description="Id, name or alias.")]
SeenFrom = Annotated[
    str,
    AfterValidator(_one_scope),
    Field(
        description="`here` (this project), user, global or kind:name, with the wider ones. Default: all seen from here."
    ),
]
OfOwner = Annotated[str, Field(description="Who asks, such as agent:shop/ana.")]
Since = Annotated[str, Field(description="From this time on, ISO 8601.")]
Until = Annotated[str, Field(description="Before this time.")]
MinRelevance = Annotated[
    float, Field(ge=0, le=1, description="Leave out what is less relevant; 0.5 keeps confident matches.")
]
Budget = Annotated[Whole, Field(description="Tokens of text, at least 50; 0: the owner's setting.")]
Kind = Literal[
    "preference", "tooling", "project", "infra", "identity", "fiscal", "people", "constraint", "location", "health"
]


class Arguments(BaseModel):
    """Base of all: an unknown argument is refused, so that no caller believes a claimed `source` was used."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _without_blanks(cls, given: Any) -> Any:
        """Drop null and "", which models send for optional arguments; where one is required, "" is refused as empty."""
        required = {name for name, field in cls.model_fields.items() if field.is_required()}
        return {name: value for name, value in given.items() if value is not None and (value != "" or name in required)}


class FormArguments(Arguments):
    """A statement, or one of the two forms it can be written in: feedback and fact."""

    statement: str = ""
    situation: str = Field(default="", description="The task in which it matters, such as: writing a migration.")
    behavior: str = Field(default="", description="Feedback: what was done.")
    impact: str = Field(default="", description="What that led to.")
    action: str = Field(default="", description="What to do instead.")
    subject: str = Field(default="", description="Fact: what it is about.")
    predicate: str = Field(default="", description="The relation, such as: uses.")
    object: str = Field(default="", description="The value.")


class Learn(FormArguments):
    """A statement for the gates."""

    statement: str = Field(
        default="",
        description="The fact, in 25 to 60 words that stand on their own. Or give situation with behavior, impact, action; or "
        "with subject, predicate, object.",
    )
    type: str = Field(
        default="",
        description="preference, correction, convention, decision, procedural, factual, behavioral …; constraint, identity, health "
        "and the like wait for a person.",
    )
    scope: str = Field(
        default="",
        description="Where it applies: `here` (this project), user, global or kind:name. Default: `here` for what is about "
        "this project, else global.",
    )
    rationale: str = Field(default="", description="Why it is so.")
    tags: Words = Field(default_factory=list)
    cues: Cues = Field(default_factory=list)
    domain: str = Field(default="", description="Topics, such as backend/database.")
    confidence: float = Field(default=0.5, ge=0, le=1)
    supersedes: Words = Field(default_factory=list, description="Ids of outdated memories that this replaces.")
    relation: Literal["update", "contradiction", "refinement", "same", "different"] = Field(
        default="update",
        description="To those in supersedes. contradiction: a person decides; refinement: they stay; different: they only look alike.",
    )
    autonomous: bool = Field(default=False, description="Nobody asked to store this: it is judged more strictly.")
    session_id: SessionId = ""

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        """Refuse a call that says nothing, half of a form, or parts of both."""
        begun = [form for form in FORMS if any(getattr(self, part) for part in form)]
        missing = [part for form in begun for part in ("situation", *form) if not getattr(self, part)]
        if not begun and not self.statement:
            raise PydanticCustomError("nothing", "give a statement, or all parts of a form")
        if len(begun) > 1:
            forms = "; or ".join(", ".join(form) for form in FORMS)
            raise PydanticCustomError(
                "two", "these are parts of two forms; give those of one: {forms}", {"forms": forms}
            )
        if missing:
            raise PydanticCustomError(
                "half", "a form needs all its parts; missing: {missing}", {"missing": ", ".join(missing)}
            )
        return self


class RememberArguments(Arguments):
    """Something the user asked to remember."""

    fact: str = Field(min_length=1, description="One sentence that stands on its own.")
    kind: Kind = Field(default="preference", description="From identity on, a person must approve it.")
    scope: str = Field(default="", description="As in learn.")
    cues: Words = Field(default_factory=list, description="As in learn.")
    supersedes: Words = Field(default_factory=list, description="As in learn.")
    confidence: float = Field(default=0.6, ge=0, le=1)
    session_id: SessionId = ""


class UpdateArguments(FormArguments):
    """A change of a memory in place."""

    id: Ref
    statement: str = Field(default="", description="What it says now.")
    type: str = ""
    tags: Words = Field(default_factory=list, description="These replace the old ones.")
    cues: Words = Field(default_factory=list, description="As in learn; these replace the old ones.")
    confidence: Annotated[float | None, WithJsonSchema({"type": "number"})] = Field(default=None, ge=0, le=1)
    reason: str = Field(default="", description="Why; its owner reads it.")
    scope: OfOwner = ""

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        """Refuse a call in which every field is empty: no text of a memory can be emptied."""
        if self.model_fields_set <= {"id", "reason", "scope"}:
            raise PydanticCustomError("nothing", "nothing to change: give at least one field, and not an empty one")
        return self


class RecallArguments(Arguments):
    """A question."""

    question: str = Field(default="", description="In the terms of the subject. Empty: the recent sessions here.")
    wordings: Wordings = Field(default_factory=list)
    sources: bool = Field(default=False, description="Search instruction files, rules, skills and past sessions, too.")
    scope: SeenFrom = ""
    limit: Whole = Field(default=10, ge=1, le=50)
    mode: Literal["hybrid", "semantic", "keyword"] = "hybrid"
    types: Words = Field(default_factory=list)
    since: Since = ""
    until: Until = ""
    min_relevance: MinRelevance = MIN_KNOWN
    session_id: SessionId = ""


class PrepareArguments(Arguments):
    """A task to be briefed about."""

    task: str = Field(min_length=1, description="What you are about to do.")
    wordings: Wordings = Field(default_factory=list)
    budget: Whole = Field(default=10_240, ge=500, le=100_000, description="Bytes of text.")


class FeedbackArguments(Arguments):
    """A rating."""

    id: Ref
    signal: Signal = Field(description="positive: it helped; negative: it misled; neutral: not useful here.")
    scope: OfOwner = ""
    session_id: SessionId = ""


class Forget(Arguments):
    """A memory to retire."""

    id: Ref
    reason: str = Field(default="", description="Why; its owner reads it.")
    scope: OfOwner = ""


class ShowArguments(Arguments):
    """A memory to show."""

    id: Ref
    scope: OfOwner = ""


class ListArguments(Arguments):
    """Which memories to list."""

    status: Literal["current", "candidate", "any"] = Field(
        default="current", description="candidate: those that wait for a person."
    )
    types: Words = Field(default_factory=list)
    tags: Words = Field(default_factory=list)
    domain: str = ""
    since: Since = ""
    until: Until = ""
    scope: SeenFrom = ""
    limit: Whole = Field(default=20, ge=1, le=100)
    offset: Whole = Field(default=0, ge=0)


class TimelineArguments(Arguments):
    """A span of time, and perhaps a subject."""

    about: str = Field(default="", description="A subject. Default: all memories and sessions of that time.")
    since: Since = ""
    until: Until = ""
    scope: SeenFrom = ""
    limit: Whole = Field(default=30, ge=1, le=100)


class EnrichArguments(Arguments):
    """Cues for the last batch, and the size of the next."""

    cues: dict[str, list[str]] = Field(default_factory=dict, description="As in learn, by id; [] if none fit.")
    limit: Whole = Field(default=50, ge=0, le=100)


class SessionStart(Arguments):
    """The start of a session."""

    task: str = Field(min_length=1, description="What the session is about.")
    scope: SeenFrom = ""
    budget: Budget = 0


class SessionEnd(Arguments):
    """The end of a session."""

    session_id: str = Field(min_length=1, description="From session_start.")
    summary: str = Field(default="", description="What was done and what is left, in a few sentences.")
    scope: OfOwner = ""
