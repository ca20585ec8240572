"""With a model configured everything still works when it fails: warnings, never an exception; what it costs is counted."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import date

import pytest

from engram import Engram
from engram.llm.model import LanguageModel, ModelSettings
from engram.store.states import StoreSpend
from tests.backends import Backend
from tests.llm.replaying import SILENCE, Answer, Server, raw, said, serving

DAY = date(2026, 3, 1)
SUMMARY = {
    "goal": "an importer", "constraints": ["no production"], "progress": [], "decisions": ["Postgres"], "next_steps": [],
    "critical_context": [],
}  # fmt: skip
FAILURES: dict[str, Answer | None] = {
    "nonsense": said("I would rather talk about the weather"),
    "another shape": said({"colour": "red"}),
    "refusal": said("", refusal="I will not"),
    "cut off": said('{"facts": [', finish="length"),
    "rate limit": raw({"error": {"message": "slow down"}}, 429),
    "outage": raw({"error": {"message": "boom"}}, 500),
    "turned away": raw({"error": {"message": "no such model"}}, 404),
    "garbage": raw(b"<html>not json</html>"),
    "silence": SILENCE,
}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for name in ("ENGRAM_MODEL_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OLLAMA_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with serving() as running:
        yield running


def with_model(backend: Backend, server: Server, *, cap: int = 0, timeout: float = 10) -> Engram:
    """A memory whose model is at the server; pauses between attempts are noted, not waited for."""
    mem = backend.client()
    mem.settings = replace(mem.settings, model=f"openai:small@{server.url}/v1", model_daily_tokens=cap)
    settings = ModelSettings(mem.settings.model, timeout_s=timeout, daily_token_cap=cap)
    mem.__dict__["model"] = LanguageModel(
        settings, StoreSpend(mem.store), clock=backend.clock, wait=server.waits.append
    )
    return mem


def test_the_settings_name_the_model(backend: Backend, server: Server) -> None:
    mem = backend.client()
    assert mem.model is None
    other = backend.client()
    other.settings = replace(
        other.settings, model=f"openai:small@{server.url}/v1", model_daily_tokens=7, model_timeout=3
    )
    assert other.model is not None
    assert other.model.settings == ModelSettings(other.settings.model, timeout_s=3, daily_token_cap=7)


@pytest.mark.parametrize("failure", FAILURES)
def test_whatever_the_model_does_the_verbs_answer(backend: Backend, server: Server, failure: str) -> None:
    server.script = [FAILURES[failure]]
    mem = with_model(backend, server, timeout=0.3 if failure == "silence" else 10)
    lives = mem.add("I live in Lisbon", scope="global")

    taken = mem.add_conversation("I prefer tea without sugar.", "Noted.")
    assert taken.pending
    assert taken.warnings
    assert any("tea" in memory.statement for memory in taken)
    (job,) = mem.jobs.list()
    assert job.kind == "conversation"

    answer = mem.recall("my home town")
    assert lives.id in {hit.id for hit in answer.hits}
    assert answer.intent == "current"

    deep = mem.deep_search("Which town do I live in?")
    assert lives.id in {hit.id for hit in deep}
    assert any("worded by rules" in warning for warning in deep.warnings)

    with mem.session("importer") as session:
        session.observe("user", "Build an importer for the bank's CSV exports.")
    assert session.session.summary_by == "rules"
    assert "importer" in session.session.summary

    assert mem.process_memory_jobs().retried == [job.id]
    assert mem.store.verify_ledgers() == []


def test_a_question_the_model_could_not_read_says_so(backend: Backend, server: Server) -> None:
    server.script = [FAILURES["outage"]]
    mem = with_model(backend, server)
    answer = mem.recall("my home town")
    assert any("read by rules" in warning and "small" in warning for warning in answer.warnings)


def test_turns_that_waited_are_asked_about_when_the_model_is_back(backend: Backend, server: Server) -> None:
    server.script = [FAILURES["turned away"]]
    mem = with_model(backend, server)
    assert mem.add_conversation("Miso, our cat, hates rain.").pending
    fact = {"statement": "The cat Miso hates rain", "type": "factual", "quote": "Miso, our cat, hates rain."}
    server.script = [said({"facts": [fact]}), said({"choices": []})]
    assert mem.process_memory_jobs().done
    assert any("hates rain" in memory.statement for memory in mem.list(status="any"))
    assert mem.jobs.list() == []


def test_a_question_is_read_by_the_model_where_the_rules_see_no_sign(backend: Backend, server: Server) -> None:
    mem = with_model(backend, server)
    mem.add("I live in Lisbon", conflict_key="user:home", scope="global")
    mem.add("I live in Porto", conflict_key="user:home", scope="global")
    server.script = [said({"intent": "lineage", "since": "", "until": ""})]
    answer = mem.recall("live in Porto")
    assert answer.intent == "lineage"
    assert [hit.text for hit in answer.hits] == ["I live in Lisbon", "I live in Porto"]
    asked = len(server.requests)
    assert mem.recall("Where did I live before?").intent == "historical"
    assert len(server.requests) == asked, "what the rules can read is not asked about"


@pytest.mark.parametrize(
    ("since", "until"), [("tomorrow-ish", ""), ("2026-02-30", "2026-03-01"), ("2026-03-05", "2026-03-01"), ("9999-12-31", "x")]
)  # fmt: skip
def test_a_window_that_is_none_does_no_harm(backend: Backend, server: Server, since: str, until: str) -> None:
    mem = with_model(backend, server)
    kept = mem.add("I live in Lisbon", scope="global")
    server.script = [said({"intent": "current", "since": since, "until": until})]
    answer = mem.recall("home town Lisbon")
    assert answer.window is None
    assert [hit.id for hit in answer.hits] == [kept.id]


def test_wordings_of_the_model_are_searched_too(backend: Backend, server: Server) -> None:
    mem = with_model(backend, server)
    kept = mem.add("Kestrel nests under the bridge", scope="global")
    server.script = [said({"queries": ["kestrel bridge", "", "falcon"]})]
    found = mem.deep_search("small raptor", mode="keyword")
    assert [hit.id for hit in found] == [kept.id]
    assert found.warnings == []


def test_a_session_is_summed_up_in_the_models_words(backend: Backend, server: Server) -> None:
    mem = with_model(backend, server)
    server.script = [said(SUMMARY)]
    with mem.session("") as session:
        session.observe("user", "Build an importer. Use Postgres. Never touch production.")
    assert (
        session.session.summary == "## Goal\n- an importer\n## Constraints\n- no production\n## Decisions\n- Postgres"
    )
    assert session.session.summary_by == f"openai:small@{server.url}/v1"


def test_tokens_are_counted_for_every_process_and_day(backend: Backend, server: Server) -> None:
    mem = with_model(backend, server)
    server.script = [said({"queries": ["a"]}, tokens=(70, 30))]
    mem.deep_search("kestrel nests")
    mem.deep_search("bridge nests")
    assert StoreSpend(mem.store).tokens_spent(DAY) == 200
    assert mem.model is not None and mem.model.spent_today() == 200
    backend.clock.forward(days=1)
    assert mem.model.spent_today() == 0
    mem.deep_search("kestrel nests")
    assert (StoreSpend(mem.store).tokens_spent(DAY), mem.model.spent_today()) == (200, 100)


def test_a_day_that_is_spent_costs_nothing_more(backend: Backend, server: Server) -> None:
    mem = with_model(backend, server, cap=5)
    server.script = [said({"queries": ["a"]})]
    found = mem.deep_search("kestrel nests")
    assert any("tokens" in warning for warning in found.warnings)
    assert mem.add_conversation("I prefer tea without sugar.").pending
    assert server.requests == []
    assert StoreSpend(mem.store).tokens_spent(DAY) == 0


def test_the_models_facts_of_a_tasks_turn_keep_their_evidence_and_come_once(backend: Backend, server: Server) -> None:
    mem = with_model(backend, server)
    task = mem.start_task("Care for the cat", scope="global").id
    (event,) = mem.record_turn(task, "Miso, our cat, hates rain.")
    fact = {"statement": "The cat Miso hates rain", "type": "factual", "quote": "hates rain"}
    server.script = [said({"facts": [fact], "choices": []})]
    (job,) = mem.jobs.list()
    assert mem.process_memory_jobs().done
    (memory,) = mem.list()
    assert (memory.task, memory.evidence[0].event) == (task, event.id)
    assert memory.evidence[0].span == (15, 25)
    mem.jobs.handlers["derive"](job)
    assert mem.list(status="any") == [memory]
