"""What a purge calls clean is clean: a word planted by every road is gone from every byte, or `remaining` names its place."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engram import AsyncEngram, Engram
from engram.cli.main import main
from engram.dialects.source import ImportSource
from engram.disk import keep_aside
from engram.model.memory import Memory
from engram.model.records import Session
from engram.store.reports import Purged
from tests.backends import Backend
from tests.clock import Clock
from tests.faults.consistency import free_of, index_terms
from tests.homes import home_of
from tests.importing import imported

WORD = "quaggaword"
ANA: dict[str, Any] = {"agent_id": "bot", "user_id": "ana"}
BEN: dict[str, Any] = {"agent_id": "bot", "user_id": "ben"}


def _memories(mem: Engram) -> str:
    """A memory with the word in every field, in several versions, and its life."""
    memory = mem.add(
        f"The {WORD} is a fact about Ana", name=f"{WORD}-name", aliases=[f"{WORD}-alias"], tags=[WORD], entities=[WORD],
        domain=f"{WORD}/zoo", context=f"{WORD} was said", rationale=f"{WORD}, of course", situation=f"when {WORD}",
        metadata={WORD: {"deep": [WORD]}}, anchors=[{"path": f"{WORD}.md", "snippet": f"see {WORD}"}], **ANA,
    )  # fmt: skip
    mem.learn(f"Ana prefers {WORD} with milk", **ANA)
    mem.remember(f"Ana never eats {WORD} at night", **ANA)
    mem.update(memory.id, statement=f"The {WORD} is another fact about Ana", reason=f"because of {WORD}")
    newest = mem.revise(memory.id, statement=f"The {WORD} is the last fact about Ana", reason=f"{WORD} again")
    other = mem.add(f"One more thing about {WORD}", **ANA)
    mem.relate(newest.id, other.id, "supports", metadata={"why": WORD}, reason=f"{WORD} supports it")
    mem.forget(other.id, reason=f"{WORD} is over")
    return newest.id


def _talk(mem: Engram) -> None:
    """Conversations with and without facts, and a session with a rolling summary and one that was given."""
    mem.add_conversation(f"My landlord is called {WORD.title()}.", f"Noted: {WORD}", **ANA)
    mem.add_conversation(f"What do you make of {WORD}?", **ANA)
    with mem.session(f"Plan the {WORD}", **ANA) as session:
        session.observe("user", f"We start at {WORD}", key=WORD, payload={"q": WORD}, metadata={WORD: WORD})
        session.end(f"We talked about {WORD}")
    running = mem.session(f"Plan another {WORD}", **ANA)
    running.observe("user", f"I love {WORD} and cakes very much")
    running.observe("assistant", f"So {WORD} it is")
    running.summarise()


def _work(mem: Engram) -> None:
    """A task with turns, tool results, checkpoints, jobs and a long input."""
    task = mem.start_task(f"Book the {WORD}", metadata={"x": WORD}, session=f"S-{WORD}", **ANA)
    mem.record_turn(task.id, f"Which pier for {WORD}?", f"The one of {WORD}")
    mem.record_event(task.id, "tool", f"out: {WORD}", payload={WORD: [WORD]}, metadata={WORD: WORD}, key=WORD)
    mem.create_checkpoint(task.id, f"went to {WORD}", pending_steps=[WORD], decisions=[WORD], data={WORD: WORD})
    text = f"# The {WORD} lease\n\nThe tenant must not keep {WORD} reptiles. Cats are welcome.\n"
    mem.record_long_input(task.id, text, title=f"{WORD} lease.md", path=f"{WORD}/lease.md")


def _plant(mem: Engram) -> str:
    memory_id = _memories(mem)
    _talk(mem)
    _work(mem)
    mem.feedback(memory_id, "positive")
    mem.inject(f"what about {WORD}", **ANA)
    mem.recall(f"what is {WORD}", **ANA)
    return memory_id


def test_everything_of_an_owner_is_gone_by_every_road(backend: Backend) -> None:
    mem = backend.client()
    kept = mem.add("Quito is where Ben was born", **BEN)
    _plant(mem)
    assert WORD in backend.everything()
    purged = mem.purge(**ANA)
    assert purged.remaining == ()
    assert WORD not in backend.everything().casefold()
    assert [memory.id for memory in mem.list(status="any")] == [kept.id]
    assert mem.store.verify_ledgers() == []


def test_no_index_made_before_the_home_was_moved_keeps_a_word(tmp_path: Path) -> None:
    def opened(name: str) -> Engram:
        return Engram.open(tmp_path / name, cache=tmp_path / "cache", directory=tmp_path)

    with opened("home") as mem:
        _plant(mem)
        torn = f"torn: We start at {WORD}".encode()
        keep_aside(home_of(mem).ledger / "x.jsonl", torn, home_of(mem).quarantine, "torn last line")
    with Engram.open(tmp_path / "another", cache=tmp_path / "cache", directory=tmp_path) as other:
        neighbour = other.add("A store of its own in the same cache")
    (tmp_path / "home").rename(tmp_path / "moved")
    with opened("moved") as mem:
        mem.add_conversation(f"What became of {WORD}?", **ANA)
        assert mem.purge(**ANA).remaining == ()
    assert free_of(tmp_path, WORD.encode()) and not index_terms(tmp_path / "cache") & {WORD}
    assert len(list((tmp_path / "cache").iterdir())) == 2
    with opened("another") as other:
        assert [memory.id for memory in other.list()] == [neighbour.id]


def test_a_title_does_not_stay_in_the_journal_as_who_decided(backend: Backend) -> None:
    mem = backend.client()
    task = mem.start_task("Read", scope="global").id
    report = mem.record_long_input(task, "The tenant must not keep reptiles.\n", title=f"{WORD} lease.md")
    mem.upkeep.purge([event.id for event in mem.list_events(task)])
    assert next(image.actor for image in mem.store.history(report.facts[0])) == "document"
    assert mem.store.events(task)[0].content == ""
    assert f"document:{WORD}" not in backend.everything()


def test_a_session_of_the_owners_goes_whatever_its_caller_named_it(backend: Backend) -> None:
    mem = backend.client()
    mem.store.save_record(Session("chat-7", "", (mem.scope_for("bot", "ana"),), backend.clock()))
    mem.observe("chat-7", "user", f"What do you make of {WORD}?")
    assert mem.purge(**ANA).remaining == ()
    assert WORD not in backend.everything()


def test_words_spoken_in_a_session_its_caller_named_go_with_their_owner(backend: Backend) -> None:
    mem = backend.client()
    mem.add_conversation(f"What do you make of {WORD}?", f"A fine {WORD}", session="chat-7", **ANA)
    kept = mem.add_conversation("What do you make of Antananarivo?", session="chat-8", **BEN)
    assert mem.purge(**ANA).remaining == ()
    assert WORD not in backend.everything()
    said = mem.store.event(kept.events[0])
    assert said is not None and said.content.endswith("Antananarivo?")


def test_a_session_named_after_what_was_said_is_named(backend: Backend) -> None:
    mem = backend.client()
    mem.store.save_record(Session(f"{WORD}-1", "", (mem.scope_for("bot", "ana"),), backend.clock()))
    mem.observe(f"{WORD}-1", "user", f"What do you make of {WORD}?")
    (line,) = mem.purge(**ANA).remaining
    assert line.startswith(f"{WORD}-1: the session's name stays")


def test_the_reason_of_another_decision_quotes_it_no_longer(backend: Backend) -> None:
    mem = backend.client()
    mine, other = mem.add(f"The {WORD} lies under the mat"), mem.add("The spare key is lost")
    mem.update(other.id, statement="The spare key is found", reason=f"they say: The {WORD} lies under the mat")
    assert mem.upkeep.purge([mine.id]).remaining == ()
    assert WORD not in backend.everything()
    assert mem.store.history(other.id)[-1].reason == "they say: [purged]"


# -- who is named


@pytest.mark.parametrize("common", ["coffee", "Thanks!", "Berlin", "good morning"])
def test_a_word_in_common_accuses_nobody(mem_of: Callable[[], Engram], common: str) -> None:
    mem = mem_of()
    mem.observe("ben", "user", f"I had {common} with my breakfast")
    mem.add(f"Ben is fond of {common}", **BEN)
    mem.start_task(f"Say {common} to Ben", **BEN)
    mine = mem.add(common, situation=f"when {common}", **ANA)
    said = mem.observe("ana", "user", common)
    remaining = [*mem.upkeep.purge([mine.id]).remaining, *mem.upkeep.purge([said.id]).remaining]
    if " " not in common:
        assert remaining == []
    assert mem.store.events("ben")[0].content == f"I had {common} with my breakfast"


def test_part_of_a_longer_word_is_not_the_word(mem_of: Callable[[], Engram]) -> None:
    mem = mem_of()
    mem.add("my cathedral is tall", scope="global")
    mine = mem.add("my cat", scope="global")
    assert mem.upkeep.purge([mine.id]).remaining == ()


def test_a_shared_line_of_a_longer_text_accuses_nobody(mem_of: Callable[[], Engram]) -> None:
    mem = mem_of()
    closing = "With the very best regards from all of us"
    mem.add("A letter of Ben", context=f"Dear Ben\n{closing}\n", scope="global")
    mine = mem.add("A letter of Ana", context=f"Dear Ana, you are invited\n{closing}\n", scope="global")
    assert mem.upkeep.purge([mine.id]).remaining == ()


def test_ids_and_digests_that_came_along_are_nobodys_words(backend: Backend) -> None:
    mem = backend.client()
    task = mem.start_task("Paint the fence", scope="global")
    point = mem.create_checkpoint(task.id, "One side is painted")
    payload = {"task": task.id, "checkpoint": point.id, "digest": "sha256:83bdca8fa57bca87af1bab1a07bd19d4"}
    said = mem.observe("talk", "user", "Something that must go away", payload=payload)
    assert mem.upkeep.purge([said.id]).remaining == ()
    assert mem.get_task(task.id) == task and mem.tasks.checkpoints(task.id) == [point]


def test_what_engram_notes_about_documents_accuses_no_other_document(backend: Backend) -> None:
    mem = backend.client()
    for number, (owner, text) in enumerate([(BEN, "Dogs are welcome here."), (ANA, "Cats must stay outside.")]):
        task = mem.start_task("Read the house rules", **owner).id
        mem.record_long_input(task, text, title=f"rules {number}", path=f"rules-{number}.md")
    notes = [name for name in mem.store.ledgers() if name.startswith("document:")]
    purged = mem.upkeep.purge([event.id for event in mem.store.events(notes[0])])
    assert purged.remaining == ()


def test_records_of_other_owners_are_counted_and_not_named(backend: Backend) -> None:
    mem = backend.client()
    ben = mem.add("The key lies under the third flower pot", **BEN)
    mine = mem.add("The key lies under the third flower pot", **ANA)
    (line,) = mem.upkeep.purge([mine.id]).remaining
    assert line.startswith("1 record of other owners") and ben.id not in line
    assert mem.get(ben.id).statement == "The key lies under the third flower pot"


def test_a_purge_leaves_nothing_for_the_doctor(backend: Backend) -> None:
    mem = backend.client()
    mem.observe("chat", "user", "The key lies under the third flower pot, I think")
    mem.forget(mem.add("The key lies under the third flower pot").id, purge=True)
    assert [event.content for event in mem.store.events("chat")] == [""]
    assert not mem.doctor().problems


def test_an_owner_cannot_purge_or_probe_what_another_one_said(backend: Backend) -> None:
    mem = backend.client()
    secret = "Ben was fired from Initech last week"
    mem.observe("bens-chat", "user", f"{secret}, he says.", **BEN)
    mem.session(secret, **BEN).end(f"Ben said: {secret}")
    task = mem.start_task(secret, **BEN)
    noted = mem.add(f"For Ben: {secret}", **BEN)
    reports = []
    for probe in (secret, "Ben was promoted at Initech last week"):
        mine = mem.add(probe, **ANA)
        report = mem.forget(mine.id, purge=True, **ANA)
        assert isinstance(report, Purged) and report.ids == (mine.id,)
        reports.append(report.remaining)
    assert reports == [(), ()]
    assert [event.content for event in mem.store.events("bens-chat")] == [f"{secret}, he says."]
    assert mem.get_task(task.id).goal == secret and mem.get(noted.id).statement == f"For Ben: {secret}"
    assert [(one.task, one.summary) for one in mem.store.list_records(Session) if one.task] == [
        (secret, f"Ben said: {secret}")
    ]


def test_a_record_next_to_it_that_says_the_same_is_named(backend: Backend) -> None:
    mem = backend.client()
    kept = mem.add("The key lies under the third flower pot", scope="project:house")
    mine = mem.add("The key lies under the third flower pot", scope="project:garden")
    (line,) = mem.upkeep.purge([mine.id]).remaining
    assert line == f"{kept.id}: contains the same words; `engram forget {kept.id} --purge` destroys it, too"


# -- what is another owner's


SHARED = "The spare key lies under the third flower pot"


def test_purging_one_owner_leaves_what_another_says_in_the_same_words(backend: Backend) -> None:
    mem = backend.client()
    tasks = []
    for owner in (ANA, BEN):
        mem.add(SHARED, **owner)
        task = mem.start_task(SHARED, **owner)
        mem.create_checkpoint(task.id, SHARED)
        mem.record_event(task.id, "user", SHARED)
        mem.session(SHARED, **owner).end(SHARED)
        other = mem.add(f"Something else of {owner['user_id']}", **owner)
        mem.update(other.id, statement=f"Something new of {owner['user_id']}", reason=SHARED)
        tasks.append(task.id)
    ids = {memory.id for memory in mem.list(**ANA)}
    purged = mem.purge(**ANA)
    assert ids <= set(purged.ids)
    assert purged.remaining and all("of other owners" in line for line in purged.remaining), purged.remaining
    assert mem.get_task(tasks[0]).goal != SHARED and mem.tasks.checkpoints(tasks[0])[0].summary != SHARED
    assert mem.get_task(tasks[1]).goal == SHARED and mem.tasks.checkpoints(tasks[1])[0].summary == SHARED
    (theirs,) = [one for one in mem.store.list_records(Session) if one.scopes[:1] == ("agent:bot/ben",) and one.task]
    assert (theirs.task, theirs.summary) == (SHARED, SHARED)
    assert [event.content for event in mem.list_events(tasks[1])] == [SHARED]
    kept = mem.list(**BEN)
    assert {memory.statement for memory in kept} == {SHARED, "Something new of ben"}
    assert SHARED in {image.reason for memory in kept for image in mem.store.history(memory.id)}


@pytest.mark.parametrize("whole", [True, False])
def test_naming_an_event_as_evidence_does_not_make_it_ones_own(backend: Backend, whole: bool) -> None:
    mem = backend.client()
    task = mem.start_task("Talk", **BEN).id
    said = mem.record_event(task, "user", "I was born in Quito")
    mine = mem.add("Ana has a cat and two dogs", **ANA)
    mem.update(mine.id, evidence=[{"event": said.id}])  # the store's operator may
    purged = mem.purge(**ANA) if whole else mem.upkeep.purge([mine.id])
    assert mine.id in purged.ids and said.id not in purged.ids
    assert [event.content for event in mem.list_events(task)] == ["I was born in Quito"]


@pytest.mark.parametrize("trusted", [False, True])
def test_a_file_does_not_make_what_was_said_here_its_own(mem_of: Callable[[], Engram], trusted: bool) -> None:
    mem = mem_of()
    said = mem.observe("talk", "user", "I was born in Quito")
    planted = {
        "id": "ENG-2026-0101-001", "statement": "Rivers run to the sea", "scope": "global",
        "evidence": [{"event": said.id}, {"event": "EVT-20260101-elsewhere"}],
    }  # fmt: skip
    reading = ImportSource([("1", planted)])
    done = imported(mem, reading, "rivers.json", by_person=trusted, trusted=trusted)
    assert done.created == ["ENG-2026-0101-001"]
    kept = [one.event for one in mem.get("ENG-2026-0101-001").evidence]
    assert kept == ([said.id] if trusted else []) + ["EVT-20260101-elsewhere"]
    assert (said.id in mem.upkeep.purge(done.created).ids) is trusted


def test_evidence_that_was_vouched_for_once_stays(mem_of: Callable[[], Engram]) -> None:
    mem = mem_of()
    said = mem.observe("talk", "user", "I was born in Quito")
    record = {"id": "ENG-2026-0101-001", "statement": "Rivers run to the sea", "evidence": [{"event": said.id}]}
    for trusted in (True, False):
        source = ImportSource([("1", {**record, "created": "2026-01-01"})])
        done = imported(mem, source, "rivers.json", by_person=True, trusted=trusted)
    assert done.unchanged == ["ENG-2026-0101-001"]
    assert [one.event for one in mem.get("ENG-2026-0101-001").evidence] == [said.id]


# -- what forget returns


def test_forget_returns_the_proof_of_a_purge_and_the_memory_it_retires(backend: Backend) -> None:
    mem = backend.client()
    one, two = mem.add("The key lies under the mat"), mem.add("The spare key is lost")
    proof = mem.forget(one.id, purge=True)
    assert isinstance(proof, Purged) and proof.ids == (one.id,) and proof.remaining == () and proof.out_of_reach
    retired = mem.forget(two.id)
    assert isinstance(retired, Memory) and retired.status == "retired"


async def _forgotten(folder: Path) -> object:
    async with await AsyncEngram.open(folder / "home", cache=folder / "cache", directory=folder) as mem:
        made = await mem.add("The key lies under the mat")
        return await mem.forget(made.id, purge=True)


def test_so_does_the_async_client(tmp_path: Path) -> None:
    import asyncio

    assert isinstance(asyncio.run(_forgotten(tmp_path)), Purged)


def test_so_does_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ENGRAM_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    with Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path) as mem:
        made = mem.add("The key lies under the mat")
    main(["forget", made.id, "--purge", "--yes", "--json", "--home", str(tmp_path / "home")])
    told = json.loads(capsys.readouterr().out)
    assert told["purged"] == [made.id] and told["remaining"] == [] and told["out_of_reach"]


@pytest.fixture
def mem_of(tmp_path: Path, clock: Clock, request: pytest.FixtureRequest) -> Callable[[], Engram]:
    def opened() -> Engram:
        mem = Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path, clock=clock)
        request.addfinalizer(mem.close)
        return mem

    return opened
