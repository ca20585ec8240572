"""People edit the files any time: what they write wins, is history, and is never overwritten unread."""

import json
from collections.abc import Callable

import pytest

from engram import Engram
from tests.homes import home_of

FACT = "The staging server is called nightshift and runs in Frankfurt"


def test_a_hand_edit_wins_and_is_history(files: Engram) -> None:
    kept = files.add(FACT)
    path = next(home_of(files).engrams.rglob("*.yaml"))
    path.write_text(path.read_text().replace("Frankfurt", "Dublin"))
    assert "Dublin" in files.search("nightshift")[0].text
    assert [(step.op, step.actor) for step in files.history(kept.id)][-1] == ("edit", "hand")
    assert "Frankfurt" in files.undo(kept.id).statement
    assert "Frankfurt" in path.read_text()


def test_a_new_file_is_found_and_a_removed_one_retires(files: Engram) -> None:
    kept = files.add(FACT)
    path = next(home_of(files).engrams.rglob("*.yaml"))
    extra = path.with_name("ENG-2026-0228-007.yaml")
    extra.write_text("- id: ENG-2026-0228-007\n  statement: Written by hand about zebras\n")
    path.unlink()
    files.upkeep.sync()
    assert files.get("ENG-2026-0228-007").statement == "Written by hand about zebras"
    assert files.get(kept.id).status == "retired"


@pytest.mark.parametrize("folder", ["", "ports/http"])
@pytest.mark.parametrize("call", ["get", "search", "learn", "update", "feedback"])
def test_a_renamed_file_stays_the_same_memory(files: Engram, call: str, folder: str) -> None:
    said = "The api listens on port 8080 in production"
    memory = files.add(said)
    files.search("anything")
    (path,) = [one for one in home_of(files).engrams.rglob("*.yaml") if memory.id in one.read_text("utf-8")]
    target = path.parent / folder / "api-port.yaml"
    target.parent.mkdir(parents=True, exist_ok=True)
    path.rename(target)
    target.write_text(target.read_text("utf-8").replace("8080", "7070"), "utf-8")
    calls: dict[str, Callable[[], object]] = {
        "get": lambda: files.get(memory.id),
        "search": lambda: files.search("api port"),
        "learn": lambda: files.learn(said),
        "update": lambda: files.update(memory.id, importance=0.9),
        "feedback": lambda: files.feedback(memory.id, "positive"),
    }
    calls[call]()
    files.upkeep.sync()
    assert (files.get(memory.id).status, files.get(memory.id).statement) == ("active", said.replace("8080", "7070"))
    assert "remove" not in [step.op for step in files.history(memory.id)]
    assert files.doctor().ok


def test_an_edit_that_does_not_parse_leaves_the_last_good_version_in_force(files: Engram) -> None:
    kept = files.add(FACT)
    path = next(home_of(files).engrams.rglob("*.yaml"))
    broken = path.read_text() + "  tags: [unclosed\n"
    path.write_text(broken)
    assert files.search("nightshift")[0].text == FACT
    assert path.read_text() == broken
    report = files.doctor()
    assert not report.ok
    assert f"{path}:" in report.findings[0].message
    path.write_text(broken.replace("[unclosed", "[closed]"))
    assert files.get(kept.id).tags == ("closed",)
    assert files.doctor().findings[0].ok


def test_a_file_of_many_is_read_and_split_by_the_first_change(files: Engram) -> None:
    folder = home_of(files).engrams / "global" / "2026-01"
    folder.mkdir(parents=True)
    many = folder / "engrams.yaml"
    many.write_text(
        "- id: ENG-2026-0101-001\n  statement: First of many\n- id: ENG-2026-0101-002\n  statement: Second of many\n"
    )
    files.upkeep.sync()
    files.pin("ENG-2026-0101-002")
    assert not many.exists()
    assert many.with_name("engrams.yaml.orig").exists()
    assert files.get("ENG-2026-0101-001").statement == "First of many"
    assert files.get("ENG-2026-0101-002").pinned
    assert len(list(home_of(files).engrams.rglob("ENG-*.yaml"))) == 2


def test_the_chain_shows_what_was_altered_reordered_or_dropped(files: Engram) -> None:
    files.observe_batch("talk", [{"role": "user", "content": f"line {n}"} for n in range(5)])
    path = next(home_of(files).ledger.glob("*.jsonl"))
    lines = path.read_text().splitlines()
    assert files.store.verify_ledgers() == []
    altered = json.loads(lines[2]) | {"content": "something else"}
    for tampered in (
        [*lines[:2], json.dumps(altered), *lines[3:]],
        [lines[0], *lines[2:]],
        [lines[1], lines[0], *lines[2:]],
    ):
        path.write_text("\n".join(tampered) + "\n")
        assert files.store.verify_ledgers()
