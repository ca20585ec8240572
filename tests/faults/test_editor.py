"""Several processes learn while a person's editor saves files of the same store in every way editors do."""

import select
import time
from pathlib import Path
from subprocess import Popen

import pytest

from engram import Engram
from tests.faults.consistency import assert_consistent, journal_lines, scratch, store_of
from tests.faults.processes import PATIENCE, ending, finish, learners, let_go, start
from tests.faults.workers.operations import sentence

SHARED = 8


def _seed(home: Path, cache: Path) -> dict[str, Path]:
    """Memories that both the learners and the editor change, with their files."""
    with Engram.open(home, cache=cache, directory=home) as mem:
        made = mem.add_batch([{"statement": sentence(900_000 + i)} for i in range(SHARED)])
        place = "SELECT path FROM places WHERE id = ?"
        run = store_of(mem).context.index.db.execute
        return {memory.id: home / run(place, (memory.id,)).fetchone()[0] for memory in made}


@pytest.mark.parametrize(("many", "each"), [(3, 10), pytest.param(8, 25, marks=pytest.mark.heavy)])
def test_learning_and_editing_at_once_loses_nothing(many: int, each: int) -> None:
    with scratch() as folder:
        home, cache = folder / "home", folder / "cache"
        shared = _seed(home, cache)
        everyone = learners(home, cache, many, each, list(shared))
        editor = start("editor", str(home), *map(str, shared.values()))
        with ending(everyone, editor):
            let_go(everyone, editor)
            answers = finish(everyone)
            edits = _last_saves(editor, home, cache)
        made = {memory_id: text for answer in answers for memory_id, text in answer["made"].items()}
        assert len(made) == many * each, "an id was given out twice"
        assert [answer["refused"] for answer in answers] == [0] * many, "somebody waited in vain"
        _assert_all_present(home, cache, made)
        _assert_no_save_lost(home, cache, edits)
        assert_consistent(home, cache, edited=True)


def _last_saves(editor: "Popen[str]", home: Path, cache: Path) -> list[dict[str, str]]:
    """Read what the editor saves until it says what that was; returns everything it saved.

    It is not awaited first: what it says can be more than a pipe holds, and it ends only once that is read.
    """
    assert editor.stdin is not None and editor.stdout is not None
    editor.stdin.write("stop\n")
    editor.stdin.flush()
    deadline = time.monotonic() + PATIENCE
    with Engram.open(home, cache=cache, directory=home) as mem:
        while not select.select([editor.stdout], [], [], 0)[0]:
            assert time.monotonic() < deadline, "the editor does not end"
            mem.upkeep.sync()
    [told] = finish(editor)
    saves: list[dict[str, str]] = told["saves"]
    return saves


def _assert_all_present(home: Path, cache: Path, made: dict[str, str]) -> None:
    with Engram.open(home, cache=cache, directory=home) as mem:
        assert mem.upkeep.sync().problems == []
        assert {memory_id: mem.get(memory_id).statement for memory_id in made} == made
        assert len(mem.list(limit=None, status="any", scope="everywhere")) == len(made) + SHARED


def _assert_no_save_lost(home: Path, cache: Path, saves: list[dict[str, str]]) -> None:
    """Every save is current or in the journal's history of its memory."""
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
