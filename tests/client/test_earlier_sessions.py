"""A session's summary is found: by recall, and at the start of the next session."""

from datetime import timedelta

from engram import Engram
from engram.embedding.word_pieces import count_tokens
from tests.client.conftest import Clock

SUMMARY = "Fixed the tokenizer; the grammar tests still fail on Windows because of line endings."


def ended(mem: Engram, task: str, summary: str, *, scope: str = "project:parser", said: str = "") -> str:
    session = mem.session(task, scope=scope)
    if said:
        session.observe("user", said)
    session.end(summary)
    return session.id


def test_the_next_session_about_the_same_work_starts_with_it(mem: Engram, clock: Clock) -> None:
    first = ended(mem, "Repair the parser", SUMMARY)
    clock.forward(days=60)
    ended(mem, "Order cakes", "Ordered twelve cakes for the summer party.")
    clock.forward(days=1)
    injection = mem.session("Make the grammar tests pass on Windows", scope="project:parser").injection
    assert [session.id for session in injection.sessions] == [first]
    assert "the grammar tests still fail on Windows" in injection.text
    assert "cakes" not in injection.text
    assert injection.tokens == count_tokens(injection.text) <= injection.budget


def test_the_last_session_is_mentioned_where_none_is_about_the_task(mem: Engram, clock: Clock) -> None:
    last = ended(mem, "Repair the parser", SUMMARY)
    clock.forward(days=1)
    injection = mem.session("carry on where we left off", scope="project:parser").injection
    assert [session.id for session in injection.sessions] == [last]
    clock.forward(days=30)
    assert mem.session("carry on", scope="project:parser").injection.sessions == ()


def test_memories_come_first_and_the_whole_keeps_to_the_budget(mem: Engram) -> None:
    mem.add("The grammar tests run with pytest -k grammar", scope="project:parser")
    ended(mem, "Repair the parser", f"{SUMMARY} " * 60)
    injection = mem.session("Make the grammar tests pass", scope="project:parser", budget=400).injection
    assert "pytest -k grammar" in injection.text
    assert injection.text.index("pytest -k grammar") < injection.text.index("Earlier sessions")
    assert injection.tokens <= injection.budget == 400
    small = mem.session("Make the grammar tests pass", scope="project:parser", budget=120).injection
    assert small.sessions == () and "pytest -k grammar" in small.text


def test_a_session_of_another_owner_is_never_mentioned(mem: Engram) -> None:
    ended(mem, "Repair the parser", SUMMARY, scope="agent:bot/eve")
    ended(mem, "Repair the parser", SUMMARY, scope="project:rival")
    for scope in ("agent:bot/ana", "project:parser"):
        assert mem.session("Make the grammar tests pass on Windows", scope=scope).injection.sessions == ()


def test_a_session_without_a_summary_given_is_found_by_what_was_said(mem: Engram, clock: Clock) -> None:
    rule = "We decided to keep Windows line endings in the grammar fixtures."
    first = ended(mem, "Repair the parser", "", said=rule)
    clock.forward(days=60)
    injection = mem.session("Rewrite the grammar fixtures", scope="project:parser").injection
    assert [session.id for session in injection.sessions] == [first]
    assert "Windows line endings" in injection.text


def test_recall_finds_what_a_summary_says(mem: Engram) -> None:
    session = ended(mem, "Repair the parser", SUMMARY)
    found = mem.recall("Why do the grammar tests fail on Windows?", scope="project:parser")
    assert found.hits and found.hits[0].event is not None, found.text
    assert found.hits[0].event.session == session and found.hits[0].event.role == "summary"
    assert "line endings" in found.text


def test_a_summary_stands_in_the_ledger_once_and_is_not_summarised_again(mem: Engram) -> None:
    session = ended(mem, "Repair the parser", SUMMARY, said="Please repair the parser today.")
    mem.sessions.end(session, "another one")
    assert [event.role for event in mem.sessions.events(session)] == ["user", "summary"]
    assert mem.sessions.get(session).summary == SUMMARY
    assert "tokenizer" not in mem.sessions.summarise(session).summary


def test_no_summary_is_recorded_where_rules_only_repeat_the_ledger(mem: Engram) -> None:
    session = ended(mem, "Repair the parser", "", said="We decided to drop the old parser.")
    assert [event.role for event in mem.sessions.events(session)] == ["user"]
    assert "old parser" in mem.sessions.get(session).summary


def test_a_secret_in_a_summary_reaches_no_ledger(mem: Engram) -> None:
    session = ended(mem, "Rotate keys", "The new key is ghp_" + "a1B2" * 9)
    (event,) = mem.sessions.events(session)
    assert "a1B2a1B2" not in event.content


def test_summaries_go_with_their_scope(mem: Engram, clock: Clock) -> None:
    ended(mem, "Repair the parser", SUMMARY)
    mem.purge("project:parser")
    clock.forward(seconds=timedelta(hours=1).total_seconds())
    assert mem.session("Make the grammar tests pass", scope="project:parser").injection.sessions == ()


def test_of_two_sessions_about_a_task_the_newest_comes_first_with_its_day(mem: Engram, clock: Clock) -> None:
    older = ended(
        mem,
        "Repair the parser",
        "The grammar tests fail on Windows, and the fix is to skip the grammar tests on Windows.",
    )
    clock.forward(days=40)
    newer = ended(mem, "Repair the parser", "Line endings were normalised, so all tests pass on Windows.")
    clock.forward(days=20)
    injection = mem.session("Make the grammar tests pass on Windows", scope="project:parser").injection
    assert [session.id for session in injection.sessions] == [newer, older]
    assert all(f"{session.ended:%Y-%m-%d}" in session.text for session in injection.sessions)


def test_of_two_summaries_in_an_answer_the_newest_comes_first_with_its_day(mem: Engram, clock: Clock) -> None:
    outdated = "The grammar tests fail on Windows, and the fix is to skip the grammar tests on Windows."
    ended(mem, "Repair the parser", outdated, scope="global")
    clock.forward(days=40)
    ended(
        mem, "Repair the parser", "The line endings of the grammar tests were normalised for Windows.", scope="global"
    )
    text = mem.recall_context("What about the grammar tests on Windows?", memories_only=True).text
    summaries = [line for line in text.splitlines() if " summary: " in line]
    assert ["normalised" in line for line in summaries] == [True, False], text
    assert all("(2026-" in line for line in summaries)
