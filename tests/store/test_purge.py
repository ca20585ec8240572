"""After a purge no byte of the words is left in the store, and everything else is unchanged."""

import json
from pathlib import Path

import pytest

from engram import Engram
from engram.model.records import Session
from engram.store.files.store import purge
from engram.store.files.store.purge_plan import MARKER_FILE
from tests.faults.consistency import assert_consistent, free_of, index_terms, last_images, store_of
from tests.faults.processes import ending, finish, learners, let_go
from tests.homes import home_of

SECRETS = {
    "plain": "The quagga enclosure opens with the brindled keycard",
    "many lines": 'First "brindled" line: 10% — yes\n\n  second quagga line\twith tab\nlast line: # no comment',
    "Chinese": "動物園的斑驢圍欄需要鑰匙卡才能開啟",
    "emoji": "🦓 quagga 🔑 brindled keycard 🇫🇷",
    "escapes": "quagga \\ brindled \u00a0 \u2028 and {a: [b]} 'single' \"double\"",
}
UNIQUE = ("quagga", "brindl")


def _opened(tmp_path: Path) -> Engram:
    return Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path)


def _spellings(text: str) -> list[bytes]:
    lines = [line.strip() for line in text.splitlines() if len(line.strip()) > 5]
    texts = [text, *lines, *(line.replace('"', '\\"') for line in lines)]
    spelled = {
        spelling
        for one in texts
        for spelling in (one, json.dumps(one)[1:-1], json.dumps(one, ensure_ascii=False)[1:-1])
    }
    return [one.encode(encoding) for one in spelled for encoding in ("utf-8", "utf-16-le", "utf-16-be")]


def _assert_gone(tmp_path: Path, text: str) -> None:
    for folder in (tmp_path / "home", tmp_path / "cache"):
        for spelling in _spellings(text):
            assert free_of(folder, spelling), spelling
        for word in UNIQUE:
            assert free_of(folder, word.encode()), word
    assert not index_terms(tmp_path / "cache") & set(UNIQUE)


def _live_through(mem: Engram, text: str) -> str:
    """A memory with traces everywhere: changed, used, rated, quoted, edited by hand, split, undone."""
    memory = mem.add(text, situation=f"when {text}", rationale=text, tags=["quagga"], cues=["brindled cue", "a quagga"], name="quagga-rule", context=text,
                     metadata={"note": text}, entities=["Quagga"], anchors=[{"path": "quagga.md", "snippet": text}])  # fmt: skip
    mem.update(memory.id, statement=f"{text} (brindled)", reason=f"quagga: {text}")
    mem.feedback(memory.id, "positive")
    with mem.session(f"About this: {text}") as session:
        session.observe("user", f"They said: {text}", key="quagga", payload={"q": text}, metadata={"m": text})
        session.observe("assistant", "Understood, nothing more to say")
        session.end(f"We talked about {text}")
    folder = store_of(mem).context.path(_place(mem, memory.id)).parent
    name = store_of(mem).context.path(_place(mem, memory.id)).name
    for left in (f"{name}~", f".{name}.4711.tmp", f"{name}.orig", f"{name[:-5]}.sync-conflict-2026.yaml"):
        (folder / left).write_bytes((folder / name).read_bytes())
    (home_of(mem).quarantine / "torn.txt").write_text(f"half a line with {text}", "utf-8")
    mem.forget(memory.id)
    mem.undo(memory.id)
    return memory.id


def _place(mem: Engram, memory_id: str) -> str:
    row = store_of(mem).context.index.db.execute("SELECT path FROM places WHERE id = ?", (memory_id,)).fetchone()
    return str(row[0])


@pytest.mark.parametrize("kind", SECRETS)
def test_no_file_contains_a_purged_statement_or_its_words(tmp_path: Path, kind: str) -> None:
    text = SECRETS[kind]
    with Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path) as mem:
        kept = mem.add("Okapis are fed at noon", associations=[{"target": "ENG-2026-0101-001"}])
        target = _live_through(mem, text)
        told = mem.upkeep.purge([target])
        assert told.remaining == ()
        assert any("backup" in place for place in told.out_of_reach)
        assert any("git" in place for place in told.out_of_reach)
        _assert_gone(tmp_path, text)

        assert mem.store.get(target) is None and mem.store.get("quagga-rule") is None
        assert not [hit for hit in mem.search(text, kinds=("memory",)) if hit.id != kept.id]
        assert mem.store.verify_ledgers() == []
        assert [image.memory for image in mem.store.history(target)] == [None] * len(mem.store.history(target))
        assert mem.get(kept.id).statement == "Okapis are fed at noon"
        assert len(mem.search("understood nothing more", kinds=("event",))) == 1
    assert_consistent(tmp_path / "home", tmp_path / "cache")
    _assert_gone(tmp_path, text)


def test_a_purged_id_is_never_used_again(tmp_path: Path) -> None:
    with Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path) as mem:
        last = [mem.add(f"Number {n}") for n in range(3)][-1]
        mem.forget(last.id, purge=True)
        assert mem.add("Number four").id not in (last.id,)
        mem.rebuild_index()
        assert mem.add("Number five").id != last.id
        path = home_of(mem).engrams / "back.yaml"
        path.write_text(f"- id: {last.id}\n  statement: I am back\n", "utf-8")
        assert any("was purged" in problem for problem in mem.upkeep.sync().problems)
        assert mem.store.get(last.id) is None
    assert last_images(tmp_path / "home")[last.id] == (None, "")


def test_a_purge_reaches_an_index_another_process_has_open(tmp_path: Path) -> None:
    text = SECRETS["plain"]
    with Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path) as mem:
        target = _live_through(mem, text)
        others = learners(tmp_path / "home", tmp_path / "cache", 2, 8)
        with ending(others):
            let_go(others)
            mem.upkeep.purge([target])
            finish(others)
        assert mem.store.get(target) is None
    _assert_gone(tmp_path, text)
    assert_consistent(tmp_path / "home", tmp_path / "cache")


def test_an_event_can_be_purged_and_its_chain_still_verifies(tmp_path: Path) -> None:
    with Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path) as mem:
        said = [mem.observe("talk", "user", text) for text in ("before", SECRETS["plain"])]
        again = mem.observe("other", "user", f"quoting: {SECRETS['plain']}")
        told = mem.upkeep.purge([said[1].id])
        assert set(told.ids) == {said[1].id}
        assert [line.split(":")[0] for line in told.remaining] == [again.id]
        assert mem.upkeep.purge([again.id]).remaining == ()
        assert mem.store.verify_ledgers() == []
        assert mem.observe("talk", "user", "after").seq == 3
        assert [event.content for event in mem.store.events("talk")] == ["before", "", "after"]
        assert mem.store.verify_ledgers() == []
    _assert_gone(tmp_path, SECRETS["plain"])


def test_an_interrupted_redaction_keeps_the_words_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path) as mem:
        made = mem.add_conversation("I prefer oolong tea.", scope="global", session="S-1")
        mem.observe("S-2", "user", "I prefer oolong tea.")
        with monkeypatch.context() as crashing:
            crashing.setattr(purge, "_remove_files", lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                mem.upkeep.purge(made.events)
    with Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path) as again:
        again.add("The next writer ends it")
        assert again.store.get(made[0].id) is None
        assert [event.content for name in ("S-1", "S-2") for event in again.store.events(name)] == [
            "",
            "I prefer oolong tea.",
        ]
        assert again.store.verify_ledgers() == []


def test_a_purge_keeps_the_other_memories_of_a_shared_file(tmp_path: Path) -> None:
    with Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path) as mem:
        shared = home_of(mem).engrams / "shared.yaml"
        shared.write_text(
            f"- id: ENG-2026-0101-001\n  statement: {SECRETS['plain']}\n- id: ENG-2026-0101-002\n  statement: Kept\n"
        )
        mem.upkeep.sync()
        mem.upkeep.purge(["ENG-2026-0101-001"])
        assert mem.get("ENG-2026-0101-002").statement == "Kept"
    _assert_gone(tmp_path, SECRETS["plain"])
    assert_consistent(tmp_path / "home", tmp_path / "cache")


def test_words_that_also_occur_elsewhere_are_reported(tmp_path: Path) -> None:
    with Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path) as mem:
        first = mem.add(SECRETS["plain"])
        second = mem.add(SECRETS["plain"], scope="project:zoo")
        told = mem.upkeep.purge([first.id])
        assert any(second.id in place for place in told.remaining)
        assert mem.get(second.id).statement == SECRETS["plain"]
        assert mem.upkeep.purge([second.id]).remaining == ()
    _assert_gone(tmp_path, SECRETS["plain"])


def test_concurrent_callers_wait_for_a_purge(tmp_path: Path) -> None:
    home, cache = tmp_path / "home", tmp_path / "cache"
    with Engram.open(home, cache=cache, directory=tmp_path) as mem:
        target = mem.add(SECRETS["plain"])
    others = learners(home, cache, 2, 5)
    with ending(others), Engram.open(home, cache=cache, directory=tmp_path) as mem:
        let_go(others)
        mem.upkeep.purge([target.id])
        assert sum(len(answer["made"]) for answer in finish(others)) == 10
    _assert_gone(tmp_path, SECRETS["plain"])


def test_a_purge_killed_after_its_words_were_removed_is_finished(tmp_path: Path) -> None:
    """There is nothing left to search for, and the store must open all the same."""
    with _opened(tmp_path) as mem:
        begun = mem.session(task="feed the animals")
        memory = mem.add(SECRETS["plain"])
        mem.forget(memory.id, purge=True)
    marker = tmp_path / "home" / "state" / MARKER_FILE
    marker.write_text(json.dumps({"ids": [memory.id], "actor": "human"}))
    with _opened(tmp_path) as mem:
        assert mem.list() == [] and marker.exists()
        mem.add("The next writer ends it")
        assert not marker.exists()
        held = mem.store.load_record(Session, begun.id)
        assert held is not None and held.task == "feed the animals"
    assert_consistent(tmp_path / "home", tmp_path / "cache")


def test_a_word_too_short_to_search_for_can_be_purged_next_to_a_session(tmp_path: Path) -> None:
    with _opened(tmp_path) as mem:
        mem.session(task="feed the animals")
        memory = mem.add("tea")
        mem.forget(memory.id, purge=True)
        assert mem.list(status="any") == []
