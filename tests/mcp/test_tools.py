"""What the server says of itself: tools, schemas, hints, instructions."""

import json
import re

import pytest

from engram import Engram
from engram.embedding.word_pieces import count_tokens
from engram.mcp.results import Learned
from engram.mcp.tools import TOOLS
from tests.mcp.talking import Talk

NAMES = [
    "recall", "prepare", "learn", "remember", "update", "feedback", "forget", "show", "list", "timeline",
    "enrich", "session_start", "session_end",
]  # fmt: skip
REQUIRED = {
    "recall": [],
    "prepare": ["task"],
    "learn": [],
    "remember": ["fact"],
    "update": ["id"],
    "feedback": ["id", "signal"],
    "forget": ["id"],
    "show": ["id"],
    "list": [],
    "timeline": [],
    "enrich": [],
    "session_start": ["task"],
    "session_end": ["session_id"],
}
DECIDED = {"outcome", "reason", "gate", "memory", "other", "related", "placed", "warnings"}
PREPARED = {"directives", "consider", "related", "unconfirmed", "text", "tokens", "warnings"}
RETURNED = {
    "recall": {"memories", "text", "possible", "unconfirmed", "older", "elsewhere", "warnings"},
    "prepare": {"queries", "passages", "text", "warnings"},
    "learn": DECIDED,
    "remember": DECIDED,
    "update": {"memory", "warnings"},
    "feedback": {"memory", "positive", "negative", "neutral", "warnings"},
    "forget": {"memory"},
    "show": {
        "memory",
        "situation",
        "rationale",
        "cues",
        "form",
        "tags",
        "domain",
        "state",
        "state_reason",
        "versions",
        "current",
        "text",
    },
    "list": {"memories", "more"},
    "timeline": {"entries"},
    "enrich": {"left", "refused", "text"},
    "session_start": {"session_id", *PREPARED},
    "session_end": {"session_id", "started", "ended", "summary"},
}
READ_ONLY = {"recall", "prepare", "show", "list", "timeline"}


def test_the_tools_are_listed_and_what_else_is_offered_is_declared(agent: Talk) -> None:
    assert list(agent.tools()) == NAMES
    offered = agent.client.server_capabilities
    assert all((offered.tools, offered.resources, offered.prompts, offered.completions, offered.logging))


def test_what_a_model_reads_of_all_tools_stays_short(agent: Talk) -> None:
    read = [[tool.name, tool.description, tool.input_schema] for tool in agent.tools().values()]
    assert len(json.dumps(read, ensure_ascii=False, separators=(",", ":"))) < 11_300


def test_the_list_of_tools_costs_a_client_few_tokens(agent: Talk) -> None:
    listed = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in agent.tools().values()]
    assert count_tokens(json.dumps(listed, ensure_ascii=False, separators=(",", ":"))) <= 11_255


@pytest.mark.parametrize("name", NAMES)
def test_every_argument_is_typed_and_no_other_is_taken(agent: Talk, name: str) -> None:
    schema = agent.tools()[name].input_schema
    assert schema.get("required", []) == REQUIRED[name]
    assert schema["additionalProperties"] is False
    for argument in schema["properties"].values():
        assert argument["type"] in {"string", "integer", "number", "boolean", "array", "object"}


@pytest.mark.parametrize("name", NAMES)
def test_every_tool_publishes_what_it_returns(agent: Talk, name: str) -> None:
    schema = agent.tools()[name].output_schema
    assert schema is not None
    assert schema["type"] == "object"
    assert set(schema["properties"]) == set(schema["required"]) == RETURNED[name]


def test_nobody_can_say_who_the_source_is(agent: Talk) -> None:
    for tool in agent.tools().values():
        claims = {"source", "actor", "learned_by", "purge", *(["status"] if tool.name != "list" else [])}
        assert claims.isdisjoint(tool.input_schema["properties"])


def test_the_hints_are_honest(agent: Talk) -> None:
    hints = {name: tool.annotations for name, tool in agent.tools().items()}
    assert all(hint is not None and hint.open_world_hint is False for hint in hints.values())
    assert {name for name, hint in hints.items() if hint and hint.read_only_hint} == READ_ONLY
    assert {name for name, hint in hints.items() if hint and hint.destructive_hint} == {"update", "forget"}
    assert {name for name, hint in hints.items() if hint and hint.idempotent_hint} == {*READ_ONLY, "session_end"}


def test_the_instructions_name_every_tool_and_call_memories_evidence(agent: Talk) -> None:
    instructions = agent.client.instructions or ""
    assert set(TOOLS) <= set(re.findall(r"\w+", instructions))
    assert "evidence" in instructions
    assert "not orders" in instructions
    assert len(instructions.split()) < 260


def test_the_server_gives_its_name_and_version(agent: Talk) -> None:
    from engram import __version__

    server = agent.client.server_info
    assert server is not None
    assert (server.name, server.version) == ("engram", __version__)


def test_of_two_memories_that_wait_neither_is_called_current() -> None:
    with Engram.open(ephemeral=True) as mem:
        mem.learn("The user's salary is 4000 euros.")
        waiting = Learned.of(mem.learn("The user's salary is 5000 euros."))
        assert waiting.other is not None and waiting.other.status == "candidate"
        assert "Neither is used until a person decides" in waiting.as_text()
        mem.learn("The api listens on port 8080.")
        beside = Learned.of(mem.learn("The api listens on port 9090."))
        assert "The older memory stays current" in beside.as_text()
