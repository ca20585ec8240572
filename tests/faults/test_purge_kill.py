"""kill -9 during a purge: the second call finishes it, reports it, and every byte is gone."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from engram import Engram
from engram.model.errors import NotFound
from tests.faults.consistency import scratch
from tests.faults.processes import Zygote, zygote
from tests.faults.workers.purges import ALIAS, GONE, NAME, PURGES, store_doomed

MOST_STEPS = 600


@pytest.fixture(scope="module")
def forks() -> Iterator[Zygote]:
    with zygote() as warm:
        yield warm


@pytest.fixture(scope="module")
def doomed() -> Iterator[Path]:
    with scratch() as folder:
        store_doomed(folder / "home", folder / "cache")
        yield folder / "home"


@pytest.fixture
def folder(doomed: Path) -> Iterator[Path]:
    with scratch() as made:
        yield made


def _copy(doomed: Path, folder: Path, number: int) -> tuple[Path, Path]:
    home = folder / str(number) / "home"
    shutil.copytree(doomed, home)
    return home, folder / str(number) / "cache"


def _found(words: tuple[str, ...], *folders: Path) -> list[str]:
    """The files that contain any of the words."""
    needles = [text.encode() for text in words]
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    return [str(path) for path in files if any(needle in path.read_bytes() for needle in needles)]


@pytest.mark.parametrize("is_written_between", [False, True], ids=["at once", "after another write"])
@pytest.mark.parametrize("purge", PURGES)
def test_a_killed_purge_is_finished_by_the_second_call(
    purge: str, is_written_between: bool, doomed: Path, folder: Path, forks: Zygote, stride: int
) -> None:
    for fatal in range(1, MOST_STEPS, 1 if stride == 1 else 3 * stride):
        home, cache = _copy(doomed, folder, fatal)
        with Engram.open(home, cache=cache, directory=home) as mem:
            memory_id = mem.get(NAME).id
        if not forks.run(home, cache, purge, 0, fatal)["killed"]:
            assert fatal > 1, "the purge took no step at all"
            return
        with Engram.open(home, cache=cache, directory=home) as mem:
            if is_written_between:
                mem.add("Gulls return to the pier at dusk")
            # Killed after its record was removed, the purge is complete, and there is nothing to report.
            is_complete = not mem.store.states("purge/") and mem.store.get(memory_id) is None
            if not is_complete or purge != "purge_memory":
                purged = PURGES[purge](mem)
                assert memory_id in purged.ids or purge != "purge_memory"
                assert purged.remaining == (), (fatal, purged.remaining)
            assert [finding for finding in mem.doctor().findings if finding.code == "purge"] == []
            assert mem.store.states("purge/") == []
        assert _found(GONE[purge], home, cache) == [], fatal
        shutil.rmtree(home.parent)
    raise AssertionError(f"{purge} takes more than {MOST_STEPS} steps")


def test_a_killed_purge_is_found_by_id_name_and_alias_and_reported_once(
    doomed: Path, folder: Path, forks: Zygote
) -> None:
    steps = 0
    for number, ref in enumerate((ALIAS, NAME, "")):
        home, cache = _copy(doomed, folder, number)
        with Engram.open(home, cache=cache, directory=home) as mem:
            ref = ref or mem.get(NAME).id
        steps = steps or _steps(doomed, folder, forks)
        assert forks.run(home, cache, "purge_memory", 0, 2 * steps // 3)["killed"]
        with Engram.open(home, cache=cache, directory=home) as mem:
            assert [finding.level for finding in mem.doctor().findings if finding.code == "purge"][:1] == ["problem"]
            with pytest.raises(NotFound):
                mem.get(ref)
            mem.forget(ref, purge=True)
            with pytest.raises(NotFound):
                mem.forget(ref, purge=True)


def _steps(doomed: Path, folder: Path, forks: Zygote) -> int:
    home, cache = _copy(doomed, folder, 999)
    return int(forks.run(home, cache, "purge_memory", 0)["acks"][-1]["steps"])
