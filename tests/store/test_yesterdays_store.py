"""A store that an earlier version wrote opens as it is, with everything in it."""

import shutil
from pathlib import Path

import pytest

from engram import Engram
from engram.model.errors import Refused
from tests.faults.consistency import assert_consistent, digest_of_tree

FIXTURE = Path(__file__).parent / "fixtures" / "store-format-1"
SESSION = "S-20260107-093000-4bcd6f"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    shutil.copytree(FIXTURE, tmp_path / "home")
    return tmp_path / "home"


@pytest.fixture
def mem(home: Path, tmp_path: Path) -> Engram:
    return Engram.open(home, cache=tmp_path / "cache", directory=tmp_path)


def test_opening_it_changes_nothing(mem: Engram, home: Path) -> None:
    before = digest_of_tree(home)
    assert not mem.upkeep.sync()
    mem.close()
    assert digest_of_tree(home) == before == digest_of_tree(FIXTURE)


def test_every_memory_has_all_its_fields(mem: Engram) -> None:
    port = mem.get("ENG-2026-0105-002")
    assert port.statement == "The staging database listens on port 5434"
    assert port.metadata == {"ticket": "OPS-1", "n": 1}
    assert (port.feedback.positive, port.activation.frequency) == (1, 1)
    assert mem.get("use-tabs-never-spaces-in-makefiles").tags == ("make",)
    assert mem.get("ENG-2026-0105-003").decay_days == 180
    assert mem.get("ENG-2026-0105-004").confidence == 0.9
    assert mem.get("ENG-2026-0107-001").status == "retired"
    assert mem.get("ENG-2025-1231-001").extra == {"colour": "blue"}
    assert len(mem.list(limit=None, status="any", scope="everywhere")) == 7
    mem.close()


def test_every_memory_is_found(mem: Engram) -> None:
    assert mem.search("staging database port")[0].id == "ENG-2026-0105-002"
    assert mem.search("数据库备份", mode="keyword")[0].id == "ENG-2026-0105-004"
    assert mem.search("rotate logs")[0].id == "ENG-2025-1231-001"
    assert mem.inject("write a Makefile", scope="project:acme/api").items
    mem.close()


def test_its_history_ledger_and_uses_are_complete(mem: Engram) -> None:
    assert [image.op for image in mem.history("ENG-2026-0105-002")] == ["add", "update", "use", "use"]
    assert mem.history("ENG-2026-0105-002")[1].reason == "moved"
    assert [event.content for event in mem.store.events(SESSION)] == ["Which port does staging use?", "Port 5434."]
    assert mem.store.verify_ledgers() == []
    [asked] = [
        hit
        for hit in mem.search("which port does staging use", kinds=("event",), scope="everywhere")
        if hit.text.endswith("?")
    ]
    assert asked.metadata == {"channel": "cli"}
    assert mem.sessions.get(SESSION).summary == "Told them the port"
    assert {use.kind for use in mem.store.uses(["ENG-2026-0105-002"])} == {"rated", "injected"}
    assert mem.upkeep.fold() == [], "its uses were folded in by the version that wrote it"
    mem.close()


def test_the_purged_memory_stays_purged(mem: Engram, home: Path) -> None:
    [gone] = [image for image in mem.store.history("ENG-2026-0206-001") if image.op == "purge"]
    assert gone.memory is None
    (home / "engrams" / "back.yaml").write_text("- id: ENG-2026-0206-001\n  statement: Back\n")
    assert any("was purged" in problem for problem in mem.upkeep.sync().problems)
    mem.close()


def test_it_can_be_written_to(mem: Engram, home: Path, tmp_path: Path) -> None:
    mem.update("ENG-2025-1231-001", rationale="agreed with operations")
    assert (home / "engrams" / "by-hand.yaml.orig").exists()
    mem.feedback("ENG-2026-0105-002", "negative")
    with pytest.raises(Refused, match="has ended"):
        mem.observe(SESSION, "user", "Thanks")
    mem.observe("another talk", "user", "Thanks")
    assert mem.undo("ENG-2026-0105-001").status == "retired"
    assert mem.store.states("") == []
    assert mem.store.change_state("buffer/another talk", lambda held: {**held, "turns": [1]}) == {"turns": [1]}
    mem.close()
    assert_consistent(home, tmp_path / "cache")
