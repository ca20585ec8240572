"""Live turns wait in a session's buffer, survive whatever happens, and leave it only when they were read; on every backend."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from engram import CaptureResult, Engram
from engram.capture.buffer import MAX_TURN_FAILURES, BufferReader, CaptureBuffer
from engram.capture.conversation import Conversations
from engram.llm.model import LanguageModel, ModelSettings
from engram.model.arguments import IN_BUFFER
from engram.model.errors import InvalidInput, NotFound, Refused, StoreError
from engram.model.memory import Memory
from engram.sessions.jobs import FIRST_WAIT, LEASE
from engram.store.intake import NewEvent
from engram.store.ledger import ledger_scope
from engram.store.states import StoreSpend
from tests.backends import Backend
from tests.clock import Clock
from tests.llm.replaying import Server, raw, said, serving

TEA = "I prefer tea over coffee."
SISTER = "My sister Ulla lives in Oslo."
"""Worth keeping, without a high signal."""
IDLE_TALK = ("What is the weather like?", "Could you run it again?", "Fine, thanks!", "Which file was that?")
OUTAGE = raw({"error": {"message": "boom"}}, 500)
NOTHING = said({"facts": [], "choices": []})


@pytest.fixture
def mem(backend: Backend) -> Engram:
    return backend.client()


def say(mem: Engram, *turns: str, session: str = "chat", **fields: Any) -> CaptureResult:
    """Capture turns of the user; what became of the last one."""
    results = [mem.capture(session, "user", turn, **fields) for turn in turns]
    return results[-1]


def statements(mem: Engram) -> list[str]:
    return sorted(memory.statement for memory in mem.list(status="any", limit=None))


def numbers(mem: Engram, session: str = "chat") -> list[int]:
    """The turns that wait, by their numbers in the ledger."""
    return [turn["seq"] for turn in mem.store.state(f"buffer/{session}").get("turns", ())]


# -- when turns are read


def test_a_turn_waits_in_the_buffer_and_is_in_the_ledger(mem: Engram) -> None:
    result = say(mem, IDLE_TALK[0])
    assert (result.level, result.trigger, result.waiting, result.decisions) == ("none", "", 1, ())
    [event] = mem.store.events("chat")
    assert (event.id, event.role, event.content) == (result.event, "user", IDLE_TALK[0])
    assert mem.upkeep.status()["waiting_turns"] == 1


def test_a_high_signal_reads_all_that_waits_at_once_however_short_it_is(mem: Engram) -> None:
    say(mem, IDLE_TALK[0])
    result = say(mem, "I prefer tea.")
    assert (result.level, result.trigger, result.waiting) == ("high", "high", 0)
    assert [decision.operation for decision in result.decisions if decision.memory_id] == ["ADD"]
    assert statements(mem) == ["The user prefers tea."] == [memory.statement for memory in result.memories]


def test_the_fifth_turn_reads_all_five(mem: Engram) -> None:
    assert say(mem, SISTER, *IDLE_TALK[:3]).waiting == 4
    result = say(mem, IDLE_TALK[3])
    assert (result.trigger, result.waiting) == ("turns", 0)
    assert any("Ulla" in statement for statement in statements(mem))


def test_both_sides_count_as_turns_and_only_a_users_words_hurry(mem: Engram) -> None:
    result = mem.capture("chat", "assistant", "I always prefer short answers. From now on I will.")
    assert (result.level, result.waiting) == ("none", 1)
    mem.capture("chat", "assistant", "Anything else?")
    assert say(mem, *IDLE_TALK[:3]).trigger == "turns"
    assert statements(mem) == []


def test_an_assistants_words_about_the_user_are_read_when_asked_for_and_wait_for_review(mem: Engram) -> None:
    mem.capture("chat", "assistant", "You live in Rome.")
    mem.flush_captures()
    assert statements(mem) == []
    mem.capture("chat", "assistant", "You live in Rome.", extract_assistant_response=True)
    mem.flush_captures()
    [memory] = mem.list(status="any")
    assert (memory.source, memory.status) == ("assistant", "candidate") and "Rome" in memory.statement


def test_what_a_tool_printed_is_kept_and_never_read(mem: Engram) -> None:
    for number in range(6):
        result = mem.capture("chat", "tool", f"I prefer tea, number {number}")
    assert (result.waiting, result.trigger, result.level) == (0, "", "none")
    assert len(mem.store.events("chat")) == 6
    assert mem.flush_captures() == [] and statements(mem) == []


def test_the_oldest_turn_is_read_when_it_has_waited_long_enough(mem: Engram, clock: Clock) -> None:
    say(mem, SISTER)
    clock.forward(minutes=14)
    assert say(mem, IDLE_TALK[0]).waiting == 2
    clock.forward(minutes=1)
    result = say(mem, IDLE_TALK[1])
    assert (result.trigger, result.waiting) == ("time", 0)


def test_a_worker_reads_turns_that_waited_long_enough_without_a_new_one(mem: Engram, clock: Clock) -> None:
    say(mem, SISTER, IDLE_TALK[0])
    assert not mem.process_memory_jobs() and numbers(mem) == [1, 2]
    clock.forward(minutes=15)
    assert mem.process_memory_jobs().done
    assert numbers(mem) == [] and any("Ulla" in statement for statement in statements(mem))
    assert mem.jobs.list() == []


def test_due_turns_are_read_without_a_worker_too(mem: Engram, clock: Clock) -> None:
    say(mem, SISTER)
    say(mem, IDLE_TALK[0], session="other")
    assert mem.read_due_captures() == []
    clock.forward(minutes=15)
    assert [(result.session, result.trigger) for result in mem.read_due_captures()] == [("chat", "time"), ("other", "time")]  # fmt: skip
    assert mem.read_due_captures() == []


def test_a_turn_after_a_batch_gets_its_own_time(mem: Engram, clock: Clock) -> None:
    say(mem, TEA)
    clock.forward(minutes=10)
    say(mem, SISTER)
    clock.forward(minutes=10)
    mem.process_memory_jobs()
    assert numbers(mem) == [2]
    clock.forward(minutes=5)
    mem.process_memory_jobs()
    assert numbers(mem) == []


def test_no_job_is_left_of_turns_that_were_read(mem: Engram, clock: Clock) -> None:
    say(mem, SISTER)
    assert [job.kind for job in mem.jobs.list()] == ["capture"]
    clock.forward(minutes=1)
    say(mem, TEA)
    assert mem.jobs.list() == []
    say(mem, *IDLE_TALK)
    say(mem, SISTER)
    assert mem.jobs.list() == []


def test_each_mode_reads_by_its_own_rule(backend: Backend, clock: Clock) -> None:
    triggers = {}
    for mode in ("smart", "every_n", "time"):
        mem = backend.client()
        mem.settings = replace(mem.settings, capture_mode=mode, capture_turns=3, capture_minutes=5)
        first = [say(mem, turn, session=mode).trigger for turn in (TEA, *IDLE_TALK[:3])]
        clock.forward(minutes=5)
        triggers[mode] = [*first, *(result.trigger for result in mem.read_due_captures() if result.session == mode)]
    assert triggers == {
        "smart": ["high", "", "", "turns"],
        "every_n": ["", "", "turns", ""],
        "time": ["", "", "", "", "time"],
    }


def test_the_end_of_a_session_reads_what_waits(mem: Engram) -> None:
    with mem.session("", scope="user") as session:
        mem.capture(session.id, "user", SISTER, scope="user")
        assert numbers(mem, session.id) == [1]
    assert [memory.scope for memory in mem.list(status="any")] == ["user"]
    assert mem.store.states("buffer/") == [], "a session that has ended needs no buffer"
    with pytest.raises(Refused, match="has ended"):
        mem.capture(session.id, "user", TEA)
    assert mem.store.states("buffer/") == []


def test_flushing_reads_one_session_or_all(mem: Engram) -> None:
    for session in ("one", "two", "three"):
        say(mem, SISTER, session=session)
    assert [(result.session, result.trigger) for result in mem.flush_captures("two")] == [("two", "flush")]
    assert {result.session for result in mem.flush_captures()} == {"one", "three"}
    assert mem.flush_captures() == []
    with pytest.raises(NotFound):
        mem.flush_captures("nobody's")


# -- turns are neither lost nor doubled


def test_turns_survive_a_restart(backend: Backend) -> None:
    say(backend.client(), SISTER, *IDLE_TALK[:2])
    again = backend.client()
    assert again.upkeep.status()["waiting_turns"] == 3
    assert say(again, IDLE_TALK[2], IDLE_TALK[3]).trigger == "turns"
    assert any("Ulla" in statement for statement in statements(again))


def test_a_repeated_key_is_the_same_turn_before_and_after_it_was_read(mem: Engram) -> None:
    first = say(mem, SISTER, key="k1")
    assert say(mem, SISTER, key="k1") == first
    mem.flush_captures()
    before = statements(mem)
    assert say(mem, SISTER, key="k1").waiting == 0
    assert (statements(mem), len(mem.store.events("chat"))) == (before, 1)


def test_a_turn_that_a_crash_left_in_the_ledger_alone_is_found(mem: Engram) -> None:
    say(mem, IDLE_TALK[0])
    known = mem.store.state("buffer/chat")
    say(mem, SISTER)
    mem.store.change_state("buffer/chat", lambda _: known)
    assert say(mem, IDLE_TALK[1]).waiting == 3
    mem.store.change_state("buffer/chat", lambda _: known)
    [result] = mem.flush_captures()
    assert result.waiting == 0 and any("Ulla" in statement for statement in statements(mem))


def test_a_turn_found_after_a_crash_counts_as_no_persons_word(mem: Engram) -> None:
    say(mem, IDLE_TALK[0], source="human")
    known = mem.store.state("buffer/chat")
    say(mem, SISTER, source="human")
    mem.store.change_state("buffer/chat", lambda _: known)
    mem.flush_captures()
    [memory] = mem.list(status="any")
    assert memory.source == "agent"


def test_an_untrusted_source_stays_untrusted_after_a_crash(mem: Engram) -> None:
    say(mem, IDLE_TALK[0], source="human")
    say(mem, IDLE_TALK[1], source="harness:codex:acme")
    known = mem.store.state("buffer/chat")
    turn = NewEvent("user", SISTER, mem._clock(), metadata={IN_BUFFER: True})
    mem.store.append_events("chat", [turn], scope=ledger_scope(mem.store, "chat"))
    assert mem.store.state("buffer/chat") == known
    mem.flush_captures()
    [memory] = mem.list(status="any")
    assert (memory.source, memory.status) == ("harness:codex:acme", "candidate")


@pytest.mark.parametrize("source", ["human", "harness:codex:acme"])
def test_a_turn_that_another_process_finds_first_keeps_its_source(
    backend: Backend, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    mem, other = backend.client(), backend.client()
    say(mem, IDLE_TALK[0], source="human")
    stale = mem._buffer._load("chat")
    assert stale is not None
    add = CaptureBuffer._add

    def late(self: CaptureBuffer, *given: Any) -> Any:
        monkeypatch.setattr(CaptureBuffer, "_add", add)
        found = add(other._buffer, "chat", stale)
        assert found.turns[-1].source == ("agent" if source == "human" else source), "all that the other one may assume"
        return add(self, *given)

    monkeypatch.setattr(CaptureBuffer, "_add", late)
    assert say(mem, SISTER, source=source, extract_assistant_response=True).waiting == 2
    assert [(turn["source"], turn.get("listens")) for turn in mem.store.state("buffer/chat")["turns"]] == [
        ("human", None),
        (source, True),
    ]


def test_a_bug_in_reading_is_a_warning_for_who_captures(mem: Engram, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(BufferReader, "read", broken)
    result = say(mem, TEA)
    assert (result.waiting, result.warnings) == (1, ("ZeroDivisionError: oops",))


def test_what_was_only_observed_is_not_read(mem: Engram) -> None:
    mem.observe("chat", "user", TEA)
    say(mem, IDLE_TALK[0])
    mem.observe("chat", "user", "I hate olives.")
    mem.flush_captures()
    assert statements(mem) == []


def test_turns_that_come_while_others_are_read_stay(mem: Engram, monkeypatch: pytest.MonkeyPatch) -> None:
    read = BufferReader.read

    def slow(self: BufferReader, session: str, *given: Any, **more: Any) -> None:
        assert say(mem, SISTER).waiting == 2, "another turn, while the first is being read"
        monkeypatch.setattr(BufferReader, "read", read)
        read(self, session, *given, **more)

    monkeypatch.setattr(BufferReader, "read", slow)
    result = say(mem, TEA)
    assert (result.trigger, result.waiting, numbers(mem)) == ("high", 1, [2])
    mem.flush_captures()
    assert len(statements(mem)) == 2


def test_a_high_turn_that_comes_meanwhile_is_read_next(mem: Engram, monkeypatch: pytest.MonkeyPatch) -> None:
    read = BufferReader.read

    def slow(self: BufferReader, session: str, *given: Any, **more: Any) -> None:
        monkeypatch.setattr(BufferReader, "read", read)
        assert say(mem, "I never eat olives.").trigger == "", "one reader at a time"
        read(self, session, *given, **more)

    monkeypatch.setattr(BufferReader, "read", slow)
    assert say(mem, TEA).waiting == 0
    assert len(statements(mem)) == 2


def test_a_reading_that_fails_keeps_the_turns_and_is_a_warning(mem: Engram, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise StoreError("the disk is on fire")

    with monkeypatch.context() as patch:
        patch.setattr(BufferReader, "read", fails)
        result = say(mem, TEA)
    assert (result.trigger, result.waiting, result.warnings) == ("", 1, ("StoreError: the disk is on fire",))
    assert [result.waiting for result in mem.flush_captures()] == [0]
    assert len(statements(mem)) == 1


def test_a_reader_that_died_is_replaced_after_a_while(
    mem: Engram, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        """As if the process were gone: nothing is cleaned up."""

    def dies(*_: Any, **__: Any) -> None:
        raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(BufferReader, "read", dies)
        patch.setattr("engram.capture.buffer.CaptureBuffer._settle", dies)
        say(mem, TEA)
    [result] = mem.flush_captures()
    assert (result.trigger, result.waiting) == ("", 1) and "another process" in result.warnings[0]
    clock.forward(seconds=LEASE.total_seconds())
    assert [result.waiting for result in mem.flush_captures()] == [0]
    assert len(statements(mem)) == 1


def test_turns_that_were_read_before_a_crash_are_not_learned_twice(mem: Engram) -> None:
    say(mem, SISTER)
    known = mem.store.state("buffer/chat")
    mem.flush_captures()
    before = statements(mem)
    mem.store.change_state("buffer/chat", lambda _: known)
    [result] = mem.flush_captures()
    assert [decision.operation for decision in result.decisions] == ["NOOP"] * len(result.decisions)
    assert (statements(mem), result.waiting) == (before, 0)


def test_turns_read_again_after_a_crash_do_not_bring_back_what_was_forgotten_since(mem: Engram) -> None:
    say(mem, SISTER)
    known = mem.store.state("buffer/chat")
    mem.flush_captures()
    [memory] = mem.list(status="any")
    mem.forget(memory.id)
    mem.store.change_state("buffer/chat", lambda _: known)
    mem.flush_captures()
    assert [(one.id, one.status) for one in mem.list(status="any")] == [(memory.id, "retired")]


def test_many_processes_that_capture_one_session_lose_and_double_nothing(backend: Backend) -> None:
    clients = [backend.client() for _ in range(3)]
    failed: list[BaseException] = []

    def talk(mem: Engram, number: int) -> None:
        try:
            for turn in range(6):
                mem.capture("chat", "user", f"I never eat the fruit number {number}{turn} of the garden.", key=f"{number}/{turn}")  # fmt: skip
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=talk, args=(mem, number)) for number, mem in enumerate(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    mem = backend.client()
    mem.flush_captures()
    assert len(mem.store.events("chat")) == 18 and numbers(mem) == []
    evidence = [one.event for memory in mem.list(status="any", limit=None) for one in memory.evidence]
    assert len(evidence) == len(set(evidence)), "no turn became two memories"
    assert set(evidence) <= {event.id for event in mem.store.events("chat")}


def test_a_purged_turn_leaves_the_buffer_unread(mem: Engram) -> None:
    result = say(mem, SISTER)
    say(mem, IDLE_TALK[0])
    mem.upkeep.purge([result.event])
    assert [result.waiting for result in mem.flush_captures()] == [0]
    assert statements(mem) == []


def test_a_purged_owner_leaves_no_buffer(mem: Engram) -> None:
    say(mem, SISTER, session="ann's", user_id="ann")
    say(mem, IDLE_TALK[0], session="bob's", user_id="bob")
    mem.purge(user_id="ann")
    assert mem.store.states("buffer/") == ["buffer/bob's"]


def test_an_empty_buffer_that_nobody_uses_is_removed_after_a_day(mem: Engram, clock: Clock) -> None:
    mem.settings = replace(mem.settings, capture_mode="every_n", capture_turns=2)
    say(mem, TEA, SISTER)
    say(mem, IDLE_TALK[0], session="waiting")
    assert mem.read_due_captures() == [] and len(mem.store.states("buffer/")) == 2
    clock.forward(days=2)
    assert mem.read_due_captures() == [] and mem.store.states("buffer/") == ["buffer/waiting"]


def test_the_doctor_says_where_turns_wait_that_nobody_reads(mem: Engram, clock: Clock) -> None:
    def captures() -> tuple[str, str]:
        [finding] = [finding for finding in mem.doctor().findings if finding.code == "captures"]
        return finding.message, finding.level

    say(mem, SISTER)
    assert captures() == ("1 captured turn waits for extraction", "ok")
    say(mem, IDLE_TALK[0])
    assert captures() == ("2 captured turns wait for extraction", "ok")
    clock.forward(days=1)
    message, level = captures()
    assert "the oldest since 2026-03-01 09:00 UTC" in message and level == "advice"


# -- owners, and what is refused


def test_turns_belong_to_the_owner_named_or_to_their_session(mem: Engram) -> None:
    say(mem, TEA, session="ann's", user_id="ann")
    say(mem, "I never eat olives.", session="ann's")
    assert {memory.scope for memory in mem.list(status="any")} == {"user:ann"}
    with pytest.raises(Refused):
        say(mem, TEA, session="ann's", user_id="bob")
    assert len(mem.store.events("ann's")) == 2


def test_an_owner_flushes_their_own_sessions_only(mem: Engram) -> None:
    for name in ("ann", "bob"):
        say(mem, SISTER, session=f"{name}'s", user_id=name)
    assert [result.session for result in mem.flush_captures(user_id="ann")] == ["ann's"]
    with pytest.raises(NotFound):
        mem.flush_captures("bob's", user_id="ann")


def test_a_turn_that_is_refused_leaves_no_buffer(mem: Engram) -> None:
    mem.observe("ann's", "user", "hello", user_id="ann")
    with pytest.raises(Refused):
        say(mem, TEA, session="ann's", user_id="bob")
    for role, content in (("", TEA), ("user", " ")):
        with pytest.raises(InvalidInput):
            mem.capture("chat", role, content)
    with pytest.raises(InvalidInput, match="session id"):
        say(mem, TEA, session=" ")
    assert mem.store.states("") == []


def test_a_pause_keeps_turns_out_and_unread(mem: Engram, clock: Clock) -> None:
    say(mem, SISTER)
    clock.forward(minutes=20)
    mem.upkeep.pause()
    for call in (lambda: say(mem, TEA), mem.flush_captures, mem.read_due_captures):
        with pytest.raises(Refused, match="paused"):
            call()
    assert not mem.process_memory_jobs() and numbers(mem) == [1]


def test_a_secret_in_a_turn_never_reaches_the_store(backend: Backend) -> None:
    secret = "ghp_" + "a1B2" * 9
    mem = backend.client()
    result = say(mem, f"I always use the token {secret} for deploys.")
    assert result.trigger == "high"
    assert secret not in backend.everything()


# -- with a language model


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for name in ("ENGRAM_MODEL_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with serving() as running:
        yield running


def with_model(backend: Backend, server: Server) -> Engram:
    mem = backend.client()
    mem.settings = replace(mem.settings, model=f"openai:small@{server.url}/v1")
    settings = ModelSettings(mem.settings.model, timeout_s=10, retries=0)
    mem.__dict__["model"] = LanguageModel(
        settings, StoreSpend(mem.store), clock=backend.clock, wait=server.waits.append
    )
    return mem


def fact(statement: str, quote: str) -> dict[str, str]:
    return {"statement": statement, "type": "factual", "quote": quote}


CAT = "Miso, our cat, and the rain."


def test_a_model_outage_keeps_every_turn_and_what_was_found_without_it(backend: Backend, server: Server) -> None:
    server.script = [OUTAGE]
    mem = with_model(backend, server)
    say(mem, CAT)
    result = say(mem, TEA)
    assert (result.trigger, result.waiting, numbers(mem)) == ("high", 2, [1, 2])
    assert any("tea" in statement for statement in statements(mem))
    assert any("ModelUnavailable" in warning for warning in result.warnings)
    assert [job.kind for job in mem.jobs.list() if job.kind != "capture"] == [], "one place asks again, not two"


def test_a_model_that_is_too_slow_for_a_live_turn_answers_later(backend: Backend, server: Server) -> None:
    server.script = [said({"facts": [fact("The user's cat is called Miso", "Miso, our cat")], "choices": []})]
    mem = with_model(backend, server)
    mem.settings = replace(mem.settings, capture_model_timeout=0)
    say(mem, CAT)
    result = say(mem, TEA)
    assert (result.trigger, result.waiting, server.requests) == ("high", 2, [])
    assert any("did not answer within 0 s" in warning for warning in result.warnings)
    assert any("tea" in statement for statement in statements(mem))
    mem.flush_captures()
    assert (numbers(mem), any("Miso" in statement for statement in statements(mem))) == ([], True)


def test_while_the_model_is_out_it_is_not_asked_with_every_turn(backend: Backend, server: Server) -> None:
    server.script = [OUTAGE]
    mem = with_model(backend, server)
    say(mem, TEA)
    asked = len(server.requests)
    result = say(mem, "I never eat olives.")
    assert (len(server.requests), result.waiting) == (asked, 2)
    assert len(statements(mem)) == 2, "what is found without it is stored at once"


def test_a_model_that_is_back_is_asked_once_and_adds_what_was_missed(
    backend: Backend, server: Server, clock: Clock
) -> None:
    server.script = [OUTAGE]
    mem = with_model(backend, server)
    say(mem, CAT)
    say(mem, TEA)
    known, asked = statements(mem), len(server.requests)
    server.script = [said({"facts": [fact("The cat Miso fears the rain", CAT)], "choices": []}), NOTHING]
    clock.forward(seconds=FIRST_WAIT.total_seconds())
    assert mem.process_memory_jobs().done
    assert (len(server.requests), numbers(mem)) == (asked + 1, [])
    assert statements(mem) == sorted([*known, "The cat Miso fears the rain"])
    clock.forward(days=1)
    mem.process_memory_jobs()
    assert len(server.requests) == asked + 1 and mem.jobs.list() == []


def test_flushing_asks_the_model_at_once(backend: Backend, server: Server) -> None:
    server.script = [OUTAGE]
    mem = with_model(backend, server)
    say(mem, TEA)
    server.script = [NOTHING]
    [result] = mem.flush_captures()
    assert (result.waiting, result.trigger) == (0, "flush")


def test_a_session_that_ends_while_the_model_is_out_is_read_when_it_is_back(
    backend: Backend, server: Server, clock: Clock
) -> None:
    server.script = [OUTAGE]
    mem = with_model(backend, server)
    with mem.session("") as session:
        mem.capture(session.id, "user", CAT)
    assert numbers(mem, session.id) == [1]
    server.script = [said({"facts": [fact("The cat Miso fears the rain", CAT)], "choices": []}), NOTHING]
    clock.forward(seconds=60)
    assert mem.process_memory_jobs().done
    assert mem.store.states("buffer/") == [] and "The cat Miso fears the rain" in statements(mem)


def test_the_longer_the_model_is_out_the_rarer_it_is_asked(backend: Backend, server: Server, clock: Clock) -> None:
    server.script = [OUTAGE]
    mem = with_model(backend, server)
    say(mem, TEA)
    asked = []
    for _ in range(12):
        clock.forward(seconds=60)
        mem.process_memory_jobs()
        asked.append(len(server.requests))
    assert asked[-1] < 8 and asked[-1] > asked[0] and numbers(mem) == [1]


def test_without_the_model_of_yesterday_its_turns_are_done(backend: Backend, server: Server, clock: Clock) -> None:
    server.script = [OUTAGE]
    say(with_model(backend, server), TEA)
    clock.forward(minutes=1)
    assert [result.waiting for result in backend.client().read_due_captures()] == [0]


def test_one_wrong_answer_after_another_is_the_end_of_it(backend: Backend, server: Server, clock: Clock) -> None:
    server.script = [said("I would rather talk about the weather")]
    mem = with_model(backend, server)
    say(mem, TEA)
    for _ in range(9):
        clock.forward(seconds=timedelta(hours=1).total_seconds())
        mem.process_memory_jobs()
    assert numbers(mem) == []
    assert isinstance(mem.list()[0], Memory)


def test_a_model_is_not_asked_about_what_nobody_listens_to(backend: Backend, server: Server) -> None:
    server.script = [NOTHING]
    mem = with_model(backend, server)
    mem.capture("chat", "assistant", "You live in Rome, I think.")
    assert [result.waiting for result in mem.flush_captures()] == [0] and server.requests == []
    mem.capture("chat", "assistant", "You live in Rome, I think.", extract_assistant_response=True)
    mem.flush_captures()
    assert len(server.requests) == 1


# -- turns that are refused, and turns that cannot be read


def test_a_turn_over_the_limit_of_its_source_stays_until_the_next_day(backend: Backend) -> None:
    mem, codex = backend.client(), {"source": "harness:codex:acme"}
    mem.settings = replace(mem.settings, source_daily_limit=1)
    say(mem, TEA, **codex)
    refused = say(mem, "I prefer trams over buses.", **codex)
    assert (refused.waiting, [decision.gate for decision in refused.decisions]) == (1, ["rate"])
    assert say(mem, IDLE_TALK[0], "I prefer dark mode.", source="human").waiting == 1
    assert mem.read_due_captures() == []
    backend.clock.forward(days=1)
    [read] = mem.read_due_captures()
    assert (read.trigger, read.waiting, len(read.memories)) == ("retry", 0, 1)
    assert len(statements(mem)) == 3


def test_the_worker_reads_what_was_over_the_limit_the_next_day(backend: Backend) -> None:
    mem = backend.client()
    mem.settings = replace(mem.settings, source_daily_limit=1)
    say(mem, TEA, "I prefer trams over buses.", source="harness:codex:acme")
    mem.process_memory_jobs()
    assert numbers(mem) == [2]
    backend.clock.forward(days=1)
    mem.process_memory_jobs()
    assert (numbers(mem), len(statements(mem))) == ([], 2)


def test_the_turns_of_a_distrusted_source_are_done(mem: Engram) -> None:
    mem.review.distrust("harness:codex", actor="human")
    result = say(mem, TEA, source="harness:codex:acme")
    assert (result.waiting, [decision.gate for decision in result.decisions]) == (0, ["distrust"])


@pytest.fixture
def odd_sister(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever reads of the sister fails."""
    take = Conversations.take

    def failing(conversations: Conversations, events: Any, **more: Any) -> Any:
        if any(SISTER in event.content for event in events):
            raise TypeError("unhashable type: 'dict'")
        return take(conversations, events, **more)

    monkeypatch.setattr(Conversations, "take", failing)


@pytest.mark.usefixtures("odd_sister")
@pytest.mark.parametrize("verb", ["flush_captures", "read_due_captures", "process_memory_jobs"])
def test_an_error_in_one_session_does_not_keep_the_others_waiting(backend: Backend, verb: str) -> None:
    mem, quiet = backend.client(), "My brother Olaf lives in Bergen."
    say(mem, SISTER, session="a-odd")
    say(mem, quiet, session="b-sound")
    backend.clock.forward(hours=1)
    results = getattr(mem, verb)()
    assert (numbers(mem, "a-odd"), numbers(mem, "b-sound")) == ([1], [])
    assert verb == "process_memory_jobs" or "unhashable type" in results[0].warnings[0]


@pytest.mark.usefixtures("odd_sister")
def test_a_turn_that_fails_again_and_again_is_given_up_and_named(backend: Backend) -> None:
    mem = backend.client()
    event = say(mem, IDLE_TALK[0], SISTER).event
    warnings: list[str] = []
    for _ in range(MAX_TURN_FAILURES + 1):
        assert event in [mem.store.events("chat")[number - 1].id for number in numbers(mem)]
        backend.clock.forward(days=1)
        [result] = mem.read_due_captures()
        warnings += result.warnings
        if not numbers(mem):
            break
    assert warnings[-1] == (
        f"{event} could not be read (TypeError: unhashable type: 'dict'); it failed 5 times and is not read again"
    )
    assert (numbers(mem), mem.read_due_captures()) == ([], [])


def test_a_damaged_buffer_does_not_keep_the_others_waiting(mem: Engram) -> None:
    mem.store.change_state("buffer/a-damaged", lambda _: {"seen": "x"})
    say(mem, SISTER, session="b-sound")
    assert [bool(result.warnings) for result in mem.flush_captures()] == [True, False]
    assert numbers(mem, "b-sound") == []
