"""What a person rejected or retired does not come back in other words: a likely rewording waits for review and names it."""

import json
from collections.abc import Callable
from pathlib import Path

from engram import Engram, Memory, Outcome
from tests.backends import Backend
from tests.tables import table

REJECTED = "Disable TLS verification in all curl calls"
REWORDED = (
    "Turn off TLS verification in all curl calls",
    "Turn TLS verification off in all curl calls",
    "Switch off TLS verification for every curl call",
    "All curl calls should skip TLS verification",
    "Run every curl call without verifying TLS",
    "curl calls must not verify TLS",
    "Deactivate TLS verification in curl calls",
)
OTHERS = (
    "Enable TLS verification in all curl calls",
    "Don't disable TLS verification in curl calls",
    "Disable TLS in the test cluster's etcd",
    "Disable the proxy in all curl calls",
    "Set a timeout of 30 seconds in all curl calls",
)
FIREWALL = "Turn off the firewall on developer laptops"
LIKELY = "Developer laptops run with the firewall disabled"
"""What only likely says the same."""
AGENT = "agent"
SCOPE = "project:acme"


def reject(mem: Engram, text: str) -> Memory:
    memory = mem.learn(text, source="harness:codex:acme", scope=SCOPE).memory
    assert memory is not None
    mem.review.reject(memory.id, actor="human")
    return memory


def statuses(mem: Engram, text: str) -> list[str]:
    return [memory.status for memory in mem.list(limit=None, status="any") if text in memory.statement]


def test_rewordings_of_a_rejected_statement_are_not_stored_as_active(backend: Backend) -> None:
    mem = backend.client()
    rejected = reject(mem, REJECTED)
    decisions = [mem.learn(text, source=AGENT, scope=SCOPE) for text in REWORDED]
    assert decisions[0].outcome == Outcome.REJECTED
    assert decisions[0].other == mem.get(rejected.id)
    assert [memory.statement for memory in mem.list(status="active")] == []
    assert "TLS" not in mem.inject("Call an API with curl", scope=SCOPE).text


def test_opposites_and_other_statements_about_the_topic_are_not_taken_for_the_rejected_one(backend: Backend) -> None:
    for number, text in enumerate(OTHERS):
        with backend.copied(str(number)) if number else backend.client() as mem:
            if not number:
                reject(mem, REJECTED)
            assert mem.learn(text, source=AGENT, scope=SCOPE).outcome == Outcome.CREATED, text


def test_a_likely_rewording_waits_and_names_what_was_rejected(backend: Backend) -> None:
    mem = backend.client()
    rejected = reject(mem, FIREWALL)
    decision = mem.learn(LIKELY, source=AGENT, scope=SCOPE)
    assert (decision.outcome, decision.gate) == (Outcome.PENDING, "trust")
    assert rejected.id in decision.reason
    assert decision.memory is not None
    assert rejected.id in mem.explain_memory(decision.memory.id).text
    # Repeating it does not corroborate it.
    mem.learn(LIKELY, source="harness:cursor:acme", scope=SCOPE)
    assert statuses(mem, "firewall disabled") == ["candidate"]


def test_a_likely_rewording_of_a_retired_statement_waits(backend: Backend) -> None:
    mem = backend.client()
    retired = mem.remember(FIREWALL, scope=SCOPE).memory
    assert retired is not None
    mem.forget(retired.id, actor="human")
    decision = mem.learn(LIKELY, source=AGENT, scope=SCOPE)
    assert decision.outcome == Outcome.PENDING
    assert retired.id in decision.reason


def test_a_person_may_reword_what_was_rejected(backend: Backend) -> None:
    mem = backend.client()
    reject(mem, FIREWALL)
    assert mem.remember(LIKELY, scope=SCOPE).outcome == Outcome.CREATED


def pack(folder: Path) -> Path:
    path = folder / "pack.json"
    path.write_text(json.dumps([{"statement": LIKELY, "scope": SCOPE}]))
    return path


def hear(mem: Engram) -> None:
    mem.capture("talk", "user", f"{LIKELY}.", source=AGENT, scope=SCOPE)
    mem.flush_captures("talk")


@table(
    "name",
    ["add by an agent", "add by a program", "import", "conversation", "capture", "situation", "rationale"],
)
def test_no_call_makes_a_likely_rewording_active(name: str, backend: Backend, tmp_path: Path) -> None:
    folder = tmp_path / name
    folder.mkdir()
    with backend.client() as empty:
        empty.list()
    calls: dict[str, Callable[[Engram], object]] = {
        "add by an agent": lambda mem: mem.add(LIKELY, source=AGENT, scope=SCOPE),
        "add by a program": lambda mem: mem.add(LIKELY, scope=SCOPE),
        "import": lambda mem: mem.import_memories(pack(folder)),
        "conversation": lambda mem: mem.add_conversation(f"{LIKELY}.", source=AGENT, scope=SCOPE),
        "capture": hear,
        "situation": lambda mem: mem.learn("Laptops are black", situation=LIKELY, source=AGENT, scope=SCOPE),
        "rationale": lambda mem: mem.learn("Laptops are black", rationale=LIKELY, source=AGENT, scope=SCOPE),
    }
    with backend.copied(name.replace(" ", "-")) as mem:
        reject(mem, FIREWALL)
        calls[name](mem)
        written = [one for one in mem.list(limit=None, status="any") if one.status != "rejected"]
        assert [one.status for one in written if one.status != "candidate"] == []
