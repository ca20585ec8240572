"""Eight processes learn while a person's editor saves files of the same store in every way editors do."""

from pathlib import Path

from engram import Engram
from tests.faults.consistency import assert_consistent, journal_lines, scratch, store_of
from tests.faults.processes import finish, start, together
from tests.faults.workers.operations import sentence

LEARNERS = 8
EACH = 50
SHARED = 8
LONGEST_WAIT = 2.0


def _seed(home: Path, cache: Path) -> dict[str, Path]:
    """Memories that both the learners and the editor change, with their files."""
    with Engram.open(home, cache=cache, directory=home) as mem:
        made = mem.add_batch([{"statement": sentence(900_000 + i)} for i in range(SHARED)])
        place = "SELECT path FROM places WHERE id = ?"
        run = store_of(mem).parts.index.db.execute
        return {memory.id: home / run(place, (memory.id,)).fetchone()[0] for memory in made}


def test_learning_and_editing_at_once_loses_nothing() -> None:
    with scratch() as folder:
        home, cache = folder / "home", folder / "cache"
        shared = _seed(home, cache)
        learners = [start("learner", str(home), str(cache), str(n), str(EACH), *shared) for n in range(LEARNERS)]
        editor = start("editor", str(home), *map(str, shared.values()))
        answers = together([*learners], 120, also=editor)
        [edits] = finish(editor)
        made = {memory_id: text for [answer] in answers for memory_id, text in answer["made"].items()}
        assert len(made) == LEARNERS * EACH, "an id was given out twice"
        assert max(answer["longest"] for [answer] in answers) < LONGEST_WAIT
        _assert_all_present(home, cache, made)
        _assert_no_save_lost(home, cache, edits["saves"])
        assert_consistent(home, cache, edited=True)


def _assert_all_present(home: Path, cache: Path, made: dict[str, str]) -> None:
    with Engram.open(home, cache=cache, directory=home) as mem:
        assert mem.upkeep.sync().problems == []
        assert {memory_id: mem.get(memory_id).statement for memory_id in made} == made
        assert len(mem.list(limit=None, status="any")) == len(made) + SHARED


def _assert_no_save_lost(home: Path, cache: Path, saves: list[dict[str, str]]) -> None:
    """Every save is in force or in the journal's history of its memory."""
    assert len(saves) > 20
    assert len({(save["way"], save["stale"]) for save in saves}) == 10
    history: dict[str, str] = {}
    for line in journal_lines(home):
        for change in line["changes"]:
            history[change["id"]] = history.get(change["id"], "") + "\n" + change["after"]["statement"]
    lost = [save for save in saves if save["token"] not in history[Path(save["path"]).stem]]
    assert lost == []
    with Engram.open(home, cache=cache, directory=home) as mem:
        newest = {Path(save["path"]).stem: save["token"] for save in saves}
        assert all(token in mem.get(memory_id).statement for memory_id, token in newest.items())
