"""The arguments of each tool: one model is both the published schema and the check."""

import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from engram.model.memory import Signal
from engram.recall.cutoff import ABOUT, HELPFUL


def _listed(value: Any) -> Any:
    """A list; some clients send it as JSON text, or as words with commas."""
    if not isinstance(value, str):
        return value
    if value.lstrip().startswith("["):
        return json.loads(value)
    return [word.strip() for word in value.split(",") if word.strip()]


Words = Annotated[list[str], BeforeValidator(_listed)]
SessionId = Annotated[str, Field(description="The session_id that session_start returned, if there is one.")]
Ref = Annotated[str, Field(description="Id, name or alias of the memory, such as ENG-2026-0131-001.")]
SeenFrom = Annotated[
    str,
    Field(
        description="Whose memories to search: `here` (this project), user, global, or kind:name such as project:acme/api; "
        "each sees the wider ones. Default: this project, the user and global."
    ),
]
OfOwner = Annotated[
    str,
    Field(
        description="Who asks, as a scope such as agent:shop/ana: memories outside it are not found. Default: anyone."
    ),
]
MinRelevance = Annotated[
    float,
    Field(
        strict=True,
        ge=0,
        le=1,
        description="Leave out memories with a lower relevance; 0.5 keeps only confident matches.",
    ),
]
Budget = Annotated[int, Field(description="Token budget for the text, at least 50; 0 uses the owner's setting.")]


class Arguments(BaseModel):
    """Base of all: an unknown argument is refused, so that no caller believes a claimed `source` was used."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _without_blanks(cls, given: Any) -> Any:
        """Drop null and "", which models send for optional arguments."""
        return {name: value for name, value in given.items() if value not in (None, "")}


class Learn(Arguments):
    """A statement for the gates."""

    statement: str = Field(description="The fact, in 25 to 60 words that stand on their own.")
    type: str = Field(
        default="",
        description="preference, correction, convention, constraint, decision, procedural, factual or behavioral (the default). "
        "Other types, such as identity or health, wait for a person's approval.",
    )
    scope: str = Field(
        default="",
        description="Where it applies: global (the default, or the scope of supersedes), user, `here` (this project), or kind:name such as project:acme/api.",
    )
    situation: str = Field(default="", description="When it matters, such as: writing a database migration.")
    rationale: str = Field(default="", description="Why it is so.")
    tags: Words = Field(default_factory=list, description="Tags to file it under.")
    domain: str = Field(default="", description="A path of topics, such as backend/database.")
    confidence: float = Field(default=0.5, ge=0, le=1, description="How sure it is.")
    supersedes: Words = Field(
        default_factory=list,
        description="Ids or names of memories that this one replaces. Pass them when the user changed their mind, or when a memory "
        "you were given is out of date.",
    )
    relation: Literal["update", "contradiction", "refinement", "same", "different"] = Field(
        default="update",
        description="How it relates to the memories in supersedes. update: it replaces them; contradiction: both cannot be true, a "
        "person decides; refinement: it adds detail, they stay; same: it says the same; different: they only look alike.",
    )
    autonomous: bool = Field(
        default=False,
        description="True when nobody asked to store this: it is judged more strictly and waits for review.",
    )
    session_id: SessionId = ""


class RecallArguments(Arguments):
    """A question."""

    question: str = Field(description="What you want to know, in the terms of the subject.")
    scope: SeenFrom = ""
    limit: int = Field(default=10, ge=1, le=50, description="At most this many memories.")
    mode: Literal["hybrid", "semantic", "keyword"] = Field(
        default="hybrid", description="By words and meaning, by meaning alone, or by words alone."
    )
    types: Words = Field(default_factory=list, description="Only memories of these types.")
    since: str = Field(default="", description="Only from this time on, ISO 8601.")
    until: str = Field(default="", description="Only before this time, ISO 8601.")
    min_relevance: MinRelevance = ABOUT
    session_id: SessionId = ""


class Inject(Arguments):
    """A task about to start."""

    task: str = Field(description="What you are about to do.")
    scope: SeenFrom = ""
    budget: Budget = 0
    min_relevance: MinRelevance = HELPFUL
    session_id: SessionId = ""


class FeedbackArguments(Arguments):
    """A rating."""

    id: Ref
    signal: Signal = Field(description="positive: it helped; negative: it misled; neutral: it was not useful here.")
    scope: OfOwner = ""
    session_id: SessionId = ""


class Forget(Arguments):
    """A memory to retire."""

    id: Ref
    reason: str = Field(default="", description="Why; the owner will read it in the memory's history.")
    scope: OfOwner = ""


class SessionStart(Arguments):
    """The start of a session."""

    task: str = Field(description="What the session is about; relevant memories are returned.")
    scope: SeenFrom = ""
    budget: Budget = 0


class SessionEnd(Arguments):
    """The end of a session."""

    session_id: str = Field(description="The session_id that session_start returned.")
    summary: str = Field(default="", description="What was done and what is left, in a few sentences.")
    scope: OfOwner = ""
