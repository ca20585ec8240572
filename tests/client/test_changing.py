"""Update, pin, forget, undo, history: every decision can be read and taken back."""

import pytest

from engram import Engram
from engram.model.errors import InvalidInput, NotFound
from tests.client.conftest import Clock

FACT = "The staging server is called nightshift and runs in Frankfurt"


def test_forgetting_retires_and_can_be_undone(mem: Engram) -> None:
    kept = mem.add(FACT)
    mem.forget(kept.id)
    assert mem.search("nightshift") == []
    assert mem.get(kept.id).status == "retired"
    assert mem.undo(kept.id).status == "active"
    assert [hit.id for hit in mem.search("nightshift")] == [kept.id]


def test_an_update_can_be_undone_and_done_again(mem: Engram) -> None:
    kept = mem.add(FACT)
    mem.update(kept.id, statement="The staging server is called dayshift")
    assert mem.undo(kept.id).statement == FACT
    assert mem.undo(kept.id).statement == "The staging server is called dayshift"


def test_undoing_the_creation_retires(mem: Engram) -> None:
    kept = mem.add(FACT)
    assert mem.undo(kept.id).status == "retired"


def test_history_tells_every_decision_in_order(mem: Engram) -> None:
    kept = mem.add(FACT)
    mem.pin(kept.id)
    mem.update(kept.id, tags=["infra"], reason="tidying up")
    mem.forget(kept.id)
    steps = mem.history(kept.id)
    assert [step.op for step in steps] == ["add", "pin", "update", "forget"]
    assert steps[2].reason == "tidying up"
    assert steps[2].memory is not None
    assert steps[2].memory.tags == ("infra",)


def test_purging_leaves_no_byte_and_no_id_to_reuse(mem: Engram) -> None:
    kept = mem.add(FACT, rationale="Klaus moved it there in spring")
    mem.add("An unrelated fact about the coffee machine")
    mem.forget(kept.id, purge=True)
    with pytest.raises(NotFound):
        mem.get(kept.id)
    places = [*mem.home.root.rglob("*"), *mem.home.index.rglob("*")]
    contents = [path.read_bytes() for path in places if path.is_file()]
    for word in (b"nightshift", b"Frankfurt", b"Klaus", b"frankfurt"):
        assert not any(word in data for data in contents)
    assert mem.add("A third fact to number").id.endswith("-003")


def test_a_hand_edit_wins_and_is_history(mem: Engram) -> None:
    kept = mem.add(FACT)
    path = next(mem.home.engrams.rglob("*.yaml"))
    path.write_text(path.read_text().replace("Frankfurt", "Dublin"))
    assert "Dublin" in mem.search("nightshift")[0].text
    assert [(step.op, step.actor) for step in mem.history(kept.id)][-1] == ("edit", "hand")
    assert "Frankfurt" in mem.undo(kept.id).statement
    assert "Frankfurt" in path.read_text()


def test_a_new_file_is_found_and_a_removed_one_retires(mem: Engram) -> None:
    kept = mem.add(FACT)
    path = next(mem.home.engrams.rglob("*.yaml"))
    extra = path.with_name("ENG-2026-0228-007.yaml")
    extra.write_text("- id: ENG-2026-0228-007\n  statement: Written by hand about zebras\n")
    path.unlink()
    mem.upkeep.sync()
    assert mem.get("ENG-2026-0228-007").statement == "Written by hand about zebras"
    assert mem.get(kept.id).status == "retired"


def test_an_edit_that_does_not_parse_leaves_the_last_good_version_in_force(mem: Engram) -> None:
    kept = mem.add(FACT)
    path = next(mem.home.engrams.rglob("*.yaml"))
    broken = path.read_text() + "  tags: [unclosed\n"
    path.write_text(broken)
    assert mem.search("nightshift")[0].text == FACT
    assert path.read_text() == broken
    report = mem.doctor()
    assert not report["ok"]
    assert f"{path}:" in report["checks"][0]["detail"]
    path.write_text(broken.replace("[unclosed", "[closed]"))
    assert mem.get(kept.id).tags == ("closed",)
    assert mem.doctor()["checks"][0]["ok"]


def test_a_file_of_many_is_read_and_split_by_the_first_change(mem: Engram) -> None:
    folder = mem.home.engrams / "global" / "2026-01"
    folder.mkdir(parents=True)
    many = folder / "engrams.yaml"
    many.write_text(
        "- id: ENG-2026-0101-001\n  statement: First of many\n- id: ENG-2026-0101-002\n  statement: Second of many\n"
    )
    mem.upkeep.sync()
    mem.pin("ENG-2026-0101-002")
    assert not many.exists()
    assert many.with_name("engrams.yaml.orig").exists()
    assert mem.get("ENG-2026-0101-001").statement == "First of many"
    assert mem.get("ENG-2026-0101-002").pinned
    assert len(list(mem.home.engrams.rglob("ENG-*.yaml"))) == 2


def test_feedback_moves_strength_and_order(mem: Engram, clock: Clock) -> None:
    liked = mem.add("Deploy the api with the blue script")
    disliked = mem.add("Deploy the api with the green script")
    for _ in range(3):
        mem.feedback(disliked.id, "negative")
        mem.feedback(liked.id, "positive")
    assert mem.get(liked.id).feedback.positive == 3
    assert [hit.id for hit in mem.search("deploy the api script")] == [liked.id, disliked.id]
    with pytest.raises(InvalidInput):
        mem.feedback(liked.id, "meh")


def test_the_queue_offers_what_has_faded_away(mem: Engram, clock: Clock) -> None:
    kept = mem.add("A passing fact nobody ever asked for", type="factual")
    mem.add("Always ask before deleting branches", type="preference")
    clock.forward(days=120)
    assert [(item.kind, item.memory.id) for item in mem.review.queue()] == [("retirement", kept.id)]
    mem.review.reinforce(kept.id)
    clock.forward(days=1)
    mem.review.reinforce(kept.id)
    assert mem.review.queue() == []
