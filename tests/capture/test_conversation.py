"""Exchanges taken in: kept first, then read, compared and decided, with a model that helps, fails or invents."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from engram import Engram
from engram.capture.conversation import JOB, Conversations
from engram.capture.exchange import Conversation, FactDecision
from engram.capture.extraction import clauses
from engram.capture.learn import Learner
from engram.gates.policies import policy_named
from engram.gates.proposal import GateSettings
from engram.llm.model import LanguageModel
from engram.model.errors import InvalidInput, ModelUnavailable, NotFound, Refused
from engram.model.memory import Memory
from tests.backends import Backend
from tests.clock import Clock
from tests.llm.replaying import SILENCE, Answer, Server, raw, said, serving

PNPM = "The user prefers pnpm over npm."
TOLD = "I prefer pnpm over npm, and my editor theme should be Solarized Light."
THEME = {
    "statement": "The user's editor theme should be Solarized Light.",
    "type": "preference",
    "quote": "my editor theme should be  solarized light",
}
NOTHING = said({"facts": [], "choices": []})


def about_facts(result: Conversation) -> list[FactDecision]:
    """The decisions about facts, without those about sentences that state none."""
    return [decision for decision in result.decisions if not decision.reason.startswith("skipped: ")]


@dataclass
class Jobs:
    """A queue that keeps what waits."""

    waiting: dict[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)

    def enqueue(self, kind: str, key: str, payload: Mapping[str, Any]) -> None:
        self.waiting.setdefault((kind, key), payload)


@dataclass
class Desk:
    """A memory with a door for exchanges."""

    mem: Engram
    clock: Clock
    jobs: Jobs = field(default_factory=Jobs)
    promoted: bool = True

    def taking(self, model: LanguageModel | None = None) -> Conversations:
        gates = GateSettings(autopromote_harvest=self.promoted)
        learner = Learner(self.mem.store, gates, policy_named("default"), self.clock)
        return Conversations(self.mem.store, learner, model, self.clock, self.mem.observe_batch, self.jobs)

    def said_in(self, session: str) -> list[tuple[str, str]]:
        return [(event.role, event.content) for event in self.mem.store.events(session)]

    def known(self, statement: str, **fields: Any) -> Memory:
        return self.mem.add(statement, **{"source": "agent", **fields})


@pytest.fixture
def desk(backend: Backend, clock: Clock) -> Desk:
    return Desk(backend.client(), clock)


@pytest.fixture
def on_files(tmp_path: Path, clock: Clock) -> Iterator[Desk]:
    with Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path, clock=clock) as mem:
        yield Desk(mem, clock)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serving() as running:
        yield running


def test_an_exchange_is_kept_and_what_lasts_of_it_remembered(desk: Desk) -> None:
    result = desk.taking().add("I prefer pnpm over npm. How are you?", "Fine!", scope="project:acme", session="s")
    assert desk.said_in("s") == [("user", "I prefer pnpm over npm. How are you?"), ("assistant", "Fine!")]
    assert [memory.statement for memory in result] == [PNPM]
    decision = result.decisions[0]
    assert (decision.fact, decision.operation, decision.applied, decision.memory_id) == (
        PNPM,
        "ADD",
        True,
        result[0].id,
    )
    assert decision.reason.startswith("kept: preference (worth ") and "; trust: " in decision.reason
    assert decision.said == "I prefer pnpm over npm."
    asked = result.decisions[1]
    assert (asked.fact, asked.operation, asked.applied) == ("How are you?", "NOOP", False)
    assert asked.reason.startswith("skipped: a question (worth .") and asked.worth is not None
    assert (result.pending, result.warnings) == (False, [])
    stored = desk.mem.get(result[0].id)
    assert (stored.scope, stored.session, stored.type, stored.source) == ("project:acme", "s", "preference", "agent")


def test_a_memory_points_at_the_words_it_rests_on(desk: Desk) -> None:
    result = desk.taking().add("Hi! I prefer pnpm over npm.", scope="global", session="s")
    evidence = desk.mem.get(result[0].id).evidence[0]
    event = desk.mem.store.event(evidence.event)
    assert event is not None and evidence.span is not None
    assert evidence.event in result.events
    assert event.content[slice(*evidence.span)] == "I prefer pnpm over npm."


def test_the_same_exchange_added_again_doubles_nothing(desk: Desk) -> None:
    taking = desk.taking()
    first = taking.add("I prefer pnpm over npm", "ok", scope="global", session="s")
    again = taking.add("I prefer pnpm over npm", "ok", scope="global", session="s")
    assert again.events == first.events
    assert len(desk.said_in("s")) == 2
    assert list(again) == []
    assert [(d.operation, d.applied, d.target_id) for d in again.decisions] == [("NOOP", False, first[0].id)]


def test_a_key_tells_apart_exchanges_that_read_alike(desk: Desk) -> None:
    taking = desk.taking()
    for key in ("1", "2", "2"):
        taking.add("yes", "ok", scope="global", session="s", key=key)
    assert len(desk.said_in("s")) == 4


def test_a_fact_that_changed_supersedes(desk: Desk) -> None:
    taking = desk.taking()
    old = taking.add("My favourite editor is Vim", scope="global", session="a")[0]
    result = taking.add("My favourite editor is Helix", scope="global", session="b")
    decision = result.decisions[0]
    assert (decision.operation, decision.applied) == ("SUPERSEDE", True)
    assert (decision.target_id, decision.memory_id) == (old.id, result[0].id)
    assert desk.mem.get(old.id).superseded_by == result[0].id


def test_without_promotion_facts_wait_and_say_so(desk: Desk) -> None:
    desk.promoted = False
    result = desk.taking().add("I prefer pnpm over npm", scope="global", session="s")
    assert [memory.status for memory in result] == ["candidate"]
    assert (result.decisions[0].operation, result.decisions[0].applied) == ("ADD", False)
    assert "waits for review" in result.decisions[0].reason


def test_a_caller_may_vouch_for_its_exchanges(desk: Desk) -> None:
    taking = desk.taking()
    taking.autonomous = False
    result = taking.add("I prefer pnpm", scope="global", session="s")
    assert [(memory.statement, memory.status) for memory in result] == [("The user prefers pnpm.", "active")]


def test_two_facts_that_cannot_both_hold_are_kept_for_review(desk: Desk) -> None:
    taking = desk.taking()
    old = taking.add("Let's go with Postgres for billing", scope="global", session="a")[0]
    result = taking.add("We decided to use MySQL for billing", scope="global", session="b")
    assert [(d.operation, d.applied, d.target_id) for d in result.decisions] == [("SUPERSEDE", False, old.id)]
    assert [memory.status for memory in result] == ["candidate"]
    assert desk.mem.get(old.id).status == "active"


def test_a_refused_fact_is_answered_with_its_reason(desk: Desk) -> None:
    result = desk.taking().add("We test on Python 3.11 and 3.12", scope="global", session="s")
    assert list(result) == []
    assert [(d.operation, d.applied) for d in result.decisions] == [("NOOP", False)]
    assert "; behavioral: " in result.decisions[0].reason


def test_the_assistants_words_count_only_when_asked_for(desk: Desk) -> None:
    taking = desk.taking()
    answer = "You prefer tabs over spaces."
    assert about_facts(taking.add("hello there", answer, scope="global", session="a")) == []
    heard = taking.add("hello there", answer, scope="global", session="b", extract_assistant_response=True)
    assert [memory.statement for memory in heard] == ["The user prefers tabs over spaces."]


def test_secrets_reach_neither_ledger_nor_memory_nor_model(on_files: Desk, server: Server) -> None:
    secret = "sk-proj-abcdefghijklmnopqrstuvwx1234567890ABCD"
    server.script = [NOTHING]
    result = on_files.taking(server.model()).add(f"I use the key {secret} for billing", scope="global", session="s")
    assert [(told.operation, told.applied) for told in result.decisions] == [("NOOP", False)]
    assert "never stored" in result.decisions[0].reason
    assert secret not in str(result.decisions)
    assert secret not in str(on_files.said_in("s"))
    assert secret not in str(server.requests)


@pytest.mark.parametrize(("user", "assistant"), [("", ""), (" \n", "\t")])
def test_an_exchange_of_nothing_is_refused(on_files: Desk, user: str, assistant: str) -> None:
    with pytest.raises(InvalidInput, match="exchange is empty"):
        on_files.taking().add(user, assistant, scope="global", session="s")
    assert on_files.said_in("s") == []


def test_an_unusable_scope_is_refused_before_anything_is_kept(on_files: Desk) -> None:
    with pytest.raises(InvalidInput):
        on_files.taking().add("I prefer pnpm over npm", scope="not a scope!", session="s")
    assert on_files.said_in("s") == []


# -- with a model


def test_a_model_adds_what_the_rules_did_not_see(desk: Desk, server: Server) -> None:
    server.script = [said({"facts": [THEME]})]
    result = desk.taking(server.model()).add(TOLD, scope="global", session="s")
    assert THEME["statement"] in [memory.statement for memory in result]
    assert any(memory.statement.startswith("The user prefers pnpm") for memory in result)
    assert (result.pending, desk.jobs.waiting) == (False, {})


FAILURES: list[tuple[str, Answer | None, str]] = [
    ("malformed JSON", said('{"facts": [{"stat'), "ModelNonsense"),
    ("wrong schema", said({"memories": []}), "ModelNonsense"),
    ("refusal", said("", refusal="I can't do that."), "ModelNonsense"),
    ("truncation", said('{"facts": [', finish="length"), "ModelNonsense"),
    ("empty choices", raw({"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": []}), "ModelNonsense"),
    ("rate limit", raw({"error": {"message": "slow down"}}, 429, retry_after="120"), "ModelUnavailable"),
    ("outage", raw({"error": {"message": "oops"}}, 500), "ModelUnavailable"),
    ("wrong key", raw({"error": {"message": "no"}}, 401), "ModelUnavailable"),
    ("timeout", SILENCE, "ModelUnavailable"),
]  # fmt: skip


@pytest.mark.parametrize(("answer", "named"), [row[1:] for row in FAILURES], ids=[row[0] for row in FAILURES])
def test_a_model_that_fails_costs_nothing_but_its_help(
    on_files: Desk, server: Server, answer: Answer | None, named: str
) -> None:
    server.script = [answer]
    model = server.model(timeout_s=0.5 if answer is SILENCE else 10.0)
    result = on_files.taking(model).add("I prefer pnpm over npm", "ok", scope="global", session="s")
    assert [memory.statement for memory in result] == [PNPM]
    assert on_files.said_in("s") == [("user", "I prefer pnpm over npm"), ("assistant", "ok")]
    assert result.pending
    assert result.warnings[0].startswith(f"{named}: openai:small at ")
    assert list(on_files.jobs.waiting) == [(JOB, result.events[0])]


def test_a_server_that_is_not_there_costs_nothing_but_its_help(on_files: Desk, server: Server) -> None:
    model = server.model()
    object.__setattr__(model._target, "url", "http://127.0.0.1:9/v1")
    result = on_files.taking(model).add("I prefer pnpm over npm", scope="global", session="s")
    assert (len(result), result.pending) == (1, True)
    assert "cannot be reached" in result.warnings[0]


def test_a_spent_day_leaves_the_turns_waiting(on_files: Desk, server: Server) -> None:
    result = on_files.taking(server.model(daily_token_cap=10)).add(
        "I prefer pnpm over npm", scope="global", session="s"
    )
    assert (len(result), result.pending, server.requests) == (1, True, [])
    assert result.warnings[0].startswith("SpendLimit: ")


def test_turns_that_waited_are_read_when_the_model_is_back(desk: Desk, server: Server) -> None:
    server.script = [raw({"error": {"message": "no"}}, 401)]
    taking = desk.taking(server.model())
    assert taking.add(TOLD, scope="project:acme", session="s").pending
    (payload,) = desk.jobs.waiting.values()
    with pytest.raises(ModelUnavailable):
        taking.retry(payload)
    before = len(desk.mem.list())
    server.script = [said({"facts": [THEME]})]
    result = taking.retry(payload)
    assert [(memory.statement, memory.scope) for memory in result] == [(THEME["statement"], "project:acme")]
    assert len(desk.mem.list()) == before + 1
    assert len(desk.said_in("s")) == 1
    server.script = [said({"facts": [THEME]})]
    assert [d.operation for d in taking.retry(payload).decisions] == ["NOOP"]


def test_what_was_rejected_meanwhile_does_not_come_back_by_a_retry(on_files: Desk, server: Server) -> None:
    server.script = [raw({"error": {"message": "no"}}, 401), NOTHING]
    taking = on_files.taking(server.model())
    taken = taking.add("I prefer pnpm over npm", scope="global", session="s")
    on_files.mem.forget(taken[0].id)
    (payload,) = on_files.jobs.waiting.values()
    assert taking.retry(payload).decisions == []
    assert on_files.mem.get(taken[0].id).status == "retired"


def test_turns_that_are_gone_cannot_be_retried(on_files: Desk, server: Server) -> None:
    gone = {"session": "s", "scope": "global", "source": "agent", "events": ["EVT-20260301-none"]}
    with pytest.raises(NotFound, match="were purged"):
        on_files.taking(server.model()).retry(gone)
    with pytest.raises(InvalidInput, match="none is configured"):
        on_files.taking().retry(gone)


def test_a_model_that_quotes_what_nobody_said_is_not_believed(on_files: Desk, server: Server) -> None:
    invented = {"statement": "The user loves PHP.", "type": "preference", "quote": "I love PHP"}
    second_hand = {"statement": "The user likes tea.", "type": "preference", "quote": "you like tea"}
    server.script = [said({"facts": [invented, second_hand]})]
    result = on_files.taking(server.model()).add("hello there", "I hear you like tea", scope="global", session="s")
    assert list(result) == []
    assert [(d.fact, d.applied, d.reason) for d in about_facts(result)] == [
        ("The user loves PHP.", False, "model: the model quotes words that nobody said"),
        ("The user likes tea.", False, "model: its quote is from the assistant's turn"),
    ]


def choices(*rows: tuple[int, str, str]) -> Answer:
    return said(
        {
            "facts": [],
            "choices": [
                {"fact": n, "operation": op, "target": target, "reason": "so it seems"} for n, op, target in rows
            ],
        }
    )


@pytest.mark.parametrize("operation", ["UPDATE", "SUPERSEDE"])
def test_a_model_may_replace_a_memory_it_was_shown(desk: Desk, server: Server, operation: str) -> None:
    old = desk.known("The user would rather have npm than yarn, if asked", type="preference")
    server.script = [choices((0, operation, old.id))]
    result = desk.taking(server.model()).add("I prefer pnpm over npm", scope="global", session="s")
    (decision,) = result.decisions
    assert (decision.fact, decision.operation, decision.applied) == (PNPM, operation, True)
    assert (decision.reason, decision.memory_id, decision.target_id) == ("model: so it seems", result[0].id, old.id)
    assert desk.mem.get(old.id).status == "superseded"
    assert desk.mem.get(result[0].id).supersedes == (old.id,)


def test_a_model_may_not_replace_what_only_a_person_may(desk: Desk, server: Server) -> None:
    desk.promoted = False
    old = desk.known("The user would rather have npm than yarn, if asked", type="preference")
    server.script = [choices((0, "SUPERSEDE", old.id))]
    result = desk.taking(server.model()).add("I prefer pnpm over npm", scope="global", session="s")
    assert desk.mem.get(old.id).status == "active"
    assert (result.decisions[0].operation, result.decisions[0].applied) == ("SUPERSEDE", False)
    assert [memory.status for memory in result] == ["candidate"]


def test_an_id_the_model_invented_is_refused_visibly(on_files: Desk, server: Server) -> None:
    on_files.known("The user would rather have npm than yarn, if asked", type="preference")
    server.script = [choices((0, "UPDATE", "ENG-2020-0101-001"))]
    result = on_files.taking(server.model()).add("I prefer pnpm over npm", scope="global", session="s")
    assert [memory.statement for memory in result] == [PNPM]
    assert result.decisions[0].operation == "ADD"
    assert "the model chose UPDATE ENG-2020-0101-001, which it was not shown" in result.decisions[0].reason


def test_a_model_may_say_that_a_fact_is_known(on_files: Desk, server: Server) -> None:
    old = on_files.known("pnpm is what the user installs packages with, not npm", type="preference")
    server.script = [choices((0, "NOOP", old.id))]
    result = on_files.taking(server.model()).add("I prefer pnpm over npm", scope="global", session="s")
    (decision,) = result.decisions
    assert (decision.fact, decision.operation, decision.applied) == (PNPM, "NOOP", False)
    assert (decision.reason, decision.memory_id, decision.target_id) == ("model: so it seems", old.id, old.id)


def test_one_call_finds_and_compares_all_facts_of_an_exchange(on_files: Desk, server: Server) -> None:
    on_files.known("The user prefers yarn workspaces over npm workspaces", type="preference")
    server.script = [choices((7, "NOOP", "x"))]
    told = "I prefer pnpm over npm. I hate trailing whitespace. My favourite editor is Helix."
    result = on_files.taking(server.model()).add(told, scope="global", session="s")
    assert len(server.requests) == 1
    assert len(result.decisions) == 3
    shown = str(server.requests[0])
    assert "The user prefers yarn workspaces over npm workspaces" in shown
    assert "0: “The user prefers pnpm over npm.”" in shown


def test_a_model_says_in_the_same_call_what_its_own_facts_replace(desk: Desk, server: Server) -> None:
    old = desk.known("The user's editor theme should be Dracula", type="preference")
    server.script = [
        said({"facts": [{**THEME, "operation": "SUPERSEDE", "target": old.id, "reason": "a new theme"}], "choices": []})
    ]
    result = desk.taking(server.model()).add(TOLD, scope="global", session="s")
    (decision,) = [one for one in result.decisions if one.fact == THEME["statement"]]
    assert (decision.operation, decision.applied, decision.target_id) == ("SUPERSEDE", True, old.id)
    assert desk.mem.get(old.id).status == "superseded"


# -- on a client, as it is opened


@pytest.fixture
def mem(clock: Clock) -> Iterator[Engram]:
    with Engram.open(ephemeral=True, clock=clock) as opened:
        yield opened


def heads(mem: Engram) -> list[str]:
    return sorted(memory.statement for memory in mem.list())


@pytest.mark.parametrize(
    ("before", "after", "head"),
    [
        ("I live in Berlin.", "I moved to Lisbon last month.", "The user lives in Lisbon."),
        ("I live in Berlin.", "I live in Rome now.", "The user lives in Rome."),
        ("I work at Initech.", "I started at Contoso.", "The user works at Contoso."),
        ("We use npm.", "I just switched from npm to pnpm.", "The user switched from npm to pnpm."),
        ("Standup is at 9:30.", "Standup is at 10:00.", "The standup is at 10:00."),
        ("My manager is Priya.", "No, my manager is Tom, not Priya.", "The user's manager is Tom, not Priya."),
        ("I live in Munich.", "No, I live in Berlin, not Munich.", "The user lives in Berlin, not Munich."),
    ],
)
def test_what_changed_or_is_put_right_supersedes_at_once(mem: Engram, before: str, after: str, head: str) -> None:
    old = mem.add_conversation(before)[0]
    result = mem.add_conversation(after)
    assert [(d.operation, d.applied, d.target_id) for d in result.decisions] == [("SUPERSEDE", True, old.id)]
    assert heads(mem) == [head]
    assert mem.get(old.id).superseded_by == result[0].id


def test_allergies_hold_beside_each_other_and_beside_having_none(mem: Engram) -> None:
    for told in ("I'm allergic to nuts", "I'm allergic to shellfish", "I have no allergies"):
        # Told by an agent an allergy waits for a person, so here a person tells it.
        assert [(d.operation, d.applied) for d in mem.add_conversation(told, source="human").decisions] == [
            ("ADD", True)
        ]
    assert heads(mem) == [
        "The user has no allergies.",
        "The user is allergic to nuts.",
        "The user is allergic to shellfish.",
    ]


def test_a_repeated_exchange_adds_nothing_to_a_client(mem: Engram) -> None:
    first = mem.add_conversation("I moved to Lisbon.", "Lovely!")
    again = mem.add_conversation("I moved to Lisbon.", "Lovely!")
    assert [(d.operation, d.applied, d.target_id) for d in again.decisions] == [("NOOP", False, first[0].id)]
    assert (list(again), heads(mem)) == ([], ["The user lives in Lisbon."])


def test_a_correction_without_a_key_contradicts_visibly(mem: Engram) -> None:
    old = mem.add_conversation("The staging port is 8080.")[0]
    result = mem.add_conversation("That's wrong, the staging port is 8081.")
    assert [(d.operation, d.applied, d.target_id) for d in result.decisions] == [("SUPERSEDE", False, old.id)]
    assert "contradicts" in result.decisions[0].reason


def test_every_fact_of_a_long_message_has_a_decision(mem: Engram) -> None:
    told = "I moved to Lisbon. We must never push to main. Ana owns the billing service. How are you?"
    result = mem.add_conversation(told)
    assert [(d.fact, d.operation, d.applied) for d in result.decisions] == [
        ("The user lives in Lisbon.", "ADD", True),
        ("We must never push to main.", "ADD", True),
        ("Ana owns the billing service.", "ADD", True),
        ("How are you?", "NOOP", False),
    ]
    assert [memory.status for memory in result] == ["active"] * 3


@pytest.mark.parametrize(
    ("said", "beginning", "why"),
    [
        (f"My dentist is Dr. Ruiz. The log {'goes on and ' * 100}on.", "The log goes on", "1,000 characters"),
        ("My dentist is Dr. Ruiz.\n" + "\n".join(f"row {n}" for n in range(60)), "row 49", "50 different"),
        ("My dentist is Dr. Ruiz.\n" + "same row\n" * 11_200 + "THE END", "", "100,000 characters"),
    ],
    ids=["a long sentence", "many sentences", "a long turn"],
)
def test_what_is_too_long_to_read_has_a_decision(
    mem: Engram, monkeypatch: pytest.MonkeyPatch, said: str, beginning: str, why: str
) -> None:
    monkeypatch.setattr(clauses, "MAX_CLAUSES", 50)
    result = mem.add_conversation(said)
    assert [memory.statement for memory in result] == ["The user's dentist is Dr. Ruiz."]
    (unread,) = (decision for decision in result.decisions if decision.reason.startswith("skipped: not read: "))
    assert why in unread.reason
    assert unread.said.startswith(beginning) and unread.said in said


def test_a_fact_is_typed_by_the_policy_and_what_only_a_person_decides_waits(mem: Engram) -> None:
    result = mem.add_conversation("I'm allergic to nuts. I live in Rome. My passport number is X1234567.")
    assert [(memory.type, memory.status) for memory in result] == [
        ("constraint", "candidate"),
        ("fact", "active"),
        ("identity", "candidate"),
    ]


def test_applied_tells_what_is_in_force_fact_by_fact(mem: Engram) -> None:
    result = mem.add_conversation("I live in Rome. My passport number is X1234567. I live in Rome.")
    assert {d.applied for d in result.decisions} == {True, False}
    for decision in result.decisions:
        in_force = bool(decision.memory_id) and mem.get(decision.memory_id).status == "active"
        assert decision.applied == (in_force and decision.operation != "NOOP")


def test_a_change_is_dated_by_what_the_turn_says(mem: Engram, clock: Clock) -> None:
    moved = mem.add_conversation("I moved to Porto last month.")[0]
    said = clock()
    assert moved.valid_from is not None
    first = said.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    assert moved.valid_from < first <= moved.valid_from + timedelta(days=31)
    assert moved.valid_from.day == 1


def test_news_of_a_change_wins_over_what_was_mentioned_after_it(mem: Engram) -> None:
    old = mem.add_conversation("I live in Berlin.")[0]
    new = mem.add_conversation("I moved to Porto two months ago.")[0]
    assert (mem.get(old.id).status, mem.get(new.id).status) == ("superseded", "active")
    assert new.valid_from is not None and old.valid_from is not None
    assert new.valid_from >= old.valid_from


# -- what is to be forgotten, and what is over


def test_what_is_asked_to_be_forgotten_is_retired_and_can_be_restored(mem: Engram) -> None:
    (kept,) = mem.add_conversation("My landlord is Mr Vass in Linz.")
    (other,) = mem.add_conversation("My piano teacher is Mr Szabó in Wels.")
    result = mem.add_conversation("Please forget what I told you about my landlord Mr Vass in Linz.")
    (decision,) = result.decisions
    assert (decision.operation, decision.applied, decision.target_id) == ("FORGET", True, kept.id)
    assert (mem.get(kept.id).status, mem.get(other.id).status) == ("retired", "active")
    assert (list(result), mem.history(kept.id)[-1].op) == ([], "forget")
    mem.undo(kept.id)
    assert mem.get(kept.id).status == "active"


def test_a_person_decides_about_a_request_of_an_agent_to_forget_what_a_person_said(desk: Desk) -> None:
    mem = desk.mem
    kept = mem.add("The user's dentist is Doctor Vass in Linz.", source="human")
    asked = "Please forget what I told you about my dentist Doctor Vass in Linz."
    for key in ("first", "again"):
        mem.add_conversation(asked, key=key)
    (item,) = mem.review.queue()
    assert (item.waits_as, item.memory.id, item.actions) == ("forget", kept.id, ("approve", "reject"))
    with pytest.raises(Refused):
        mem.review.approve(kept.id, actor="agent")
    mem.review.reject(kept.id)
    assert (mem.review.queue(), mem.get(kept.id).status, mem.get(kept.id).metadata) == ([], "active", {})
    mem.add_conversation(asked, key="once more")
    assert mem.review.approve(kept.id).status == "retired"
    assert mem.review.queue() == []
    mem.undo(kept.id)
    assert (mem.get(kept.id).status, [item.waits_as for item in mem.review.queue()]) == ("active", ["forget"])


def test_a_new_version_of_a_memory_is_not_what_was_to_be_forgotten(mem: Engram) -> None:
    kept = mem.add("The user's dentist is Doctor Vass in Linz.", source="human")
    mem.add_conversation("Please forget what I told you about my dentist Doctor Vass in Linz.")
    mem.revise(kept.id, statement="The user's dentist is Doctor Kern in Linz.")
    assert mem.review.queue() == []


def test_what_a_person_said_is_not_forgotten_for_an_agent_nor_copied(mem: Engram) -> None:
    kept = mem.add("The user's dentist is Doctor Vass in Linz.", source="human")
    result = mem.add_conversation("Please forget what I told you about my dentist Doctor Vass in Linz.")
    (decision,) = result.decisions
    assert (decision.operation, decision.applied, decision.target_id) == ("FORGET", False, kept.id)
    assert mem.get(kept.id).status == "active"
    assert (list(result), mem.list(status="any")) == ([], [mem.get(kept.id)])


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        ("The feature/login branch holds the OAuth work.", "Delete my old feature/login branch."),
        ("The project uses structlog for logging.", "Remove everything about logging from the README."),
        ("Docker images are built nightly.", "Delete my old docker images."),
        ("The deploy runs every Friday at noon.", "Remove what I told you about the Friday deploy from the README."),
    ],
)
def test_a_request_to_work_on_files_forgets_nothing(mem: Engram, stored: str, said: str) -> None:
    kept = mem.add(stored, source="human")
    result = mem.add_conversation(said, source="human", scope="global")
    assert not any(decision.applied for decision in result.decisions)
    assert mem.get(kept.id).status == "active"


@pytest.mark.parametrize(
    "said",
    [
        "Please translate the following to German. Forget what I said about the deploy on Friday.",
        "My boss wrote me this mail:\n\nForget what I said about the Friday deploy.\n\nHow should I answer?",
        "My boss wrote me this mail:\n\nWe no longer deploy every Friday at noon.\n\nHow should I answer?",
    ],
)
def test_a_text_to_work_on_neither_forgets_nor_ends_anything(mem: Engram, said: str) -> None:
    kept = mem.add("The deploy runs every Friday at noon.", source="human")
    mem.add_conversation(said, source="human", scope="global")
    assert mem.get(kept.id).status == "active"


def test_nothing_is_forgotten_where_nothing_or_several_memories_may_be_meant(mem: Engram) -> None:
    (decision,) = mem.add_conversation("Please forget what I told you about my dentist.").decisions
    assert (decision.operation, decision.applied, decision.target_id) == ("FORGET", False, "")
    mem.add("The dentist in Linz opens at eight.", source="agent")
    mem.add("The dentist in Wels opens at nine.", source="agent")
    (decision,) = mem.add_conversation("Please forget what I told you about my dentist.", key="2").decisions
    assert (decision.operation, decision.applied) == ("FORGET", False)
    assert "nothing was forgotten" in decision.reason
    assert len(mem.list()) == 2


def test_what_is_over_ends_what_was_stored(mem: Engram) -> None:
    old = mem.add("The user plays tennis with Ivo every Thursday.", source="human")
    result = mem.add_conversation("I no longer play tennis with Ivo.", source="human", scope="global")
    (decision,) = result.decisions
    assert (decision.operation, decision.applied, decision.target_id) == ("END", True, old.id)
    assert mem.get(old.id).status == "superseded"
    assert mem.get(old.id).superseded_by == result[0].id


def test_a_remark_that_would_end_a_critical_fact_waits_beside_it(mem: Engram) -> None:
    old = mem.add("The user takes 18 units of Tresiba before going to sleep.", source="human")
    said = "Please note, I don't take 18 units of Tresiba anymore."
    result = mem.add_conversation(said, source="human", scope="global")
    (decision,) = result.decisions
    assert (decision.operation, decision.applied, decision.target_id) == ("END", False, old.id)
    assert (mem.get(old.id).status, result[0].status) == ("active", "candidate")


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        ("The user's mother takes warfarin every morning.", "I no longer take warfarin."),
        ("The user is allergic to peanuts.", "I no longer buy peanuts."),
        ("The user takes warfarin every morning.", "I no longer take warfarin."),
        ("Tom works at Google.", "I no longer work at Google."),
        ("The user's ex-wife lives in Oslo.", "I no longer live in Oslo."),
        ("The payments team uses Kafka.", "The search team no longer uses Kafka."),
    ],
)
def test_what_is_over_ends_neither_somebody_elses_nor_another_nor_a_critical_fact(
    mem: Engram, stored: str, said: str
) -> None:
    kept = mem.add(stored, source="human")
    mem.add_conversation(said, source="human", scope="global")
    assert mem.get(kept.id).status == "active"


def test_the_exact_words_of_a_decision_are_kept_and_found_only_as_an_artifact(desk: Desk) -> None:
    words = "We decided to ship the ledger on Postgres instead of Dynamo."
    kept = desk.taking().add(words, "Noted.", scope="project:main", session="s1")
    assert [memory.type for memory in kept] == ["decision"]
    found = desk.mem.search("ledger Postgres Dynamo", kinds=("event",), types=("artifact",), scope="project:main")
    assert [(hit.text, dict(hit.metadata)["verbatim"]) for hit in found] == [(words, kept[0].id)]
    everything = desk.mem.search("ledger Postgres Dynamo", kinds=("event",), scope="project:main")
    assert {hit.event.event_type for hit in everything if hit.event} == {"message"}


def test_a_plain_fact_leaves_no_artifact(desk: Desk) -> None:
    desk.taking().add("I prefer pnpm over npm.", "Noted.", scope="project:main", session="s1")
    assert list(desk.mem.search("pnpm", kinds=("event",), types=("artifact",), scope="project:main")) == []
