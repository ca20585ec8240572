"""Given relations and learned links side by side; what reinforces, what lifts a score, what a file may say."""

from pathlib import Path

import pytest

from engram import Engram
from engram.model.memory import Memory
from tests.backends import Backend
from tests.clock import Clock


def three(mem: Engram) -> tuple[str, str, str]:
    a = mem.add("Deploys of the billing service run on Fridays", type="constraint", pinned=True)
    b = mem.add("The billing service keeps its ledger in Postgres", type="constraint", pinned=True)
    c = mem.add("Two people operate the billing service", type="constraint", pinned=True)
    return a.id, b.id, c.id


def injected_together(mem: Engram, *ids: str) -> None:
    with mem.session(task="billing service") as session:
        assert set(ids) <= set(session.injection.ids)


def links(memory: Memory) -> dict[tuple[str, str], float]:
    return {(link.target, link.type): link.weight for link in memory.associations}


def test_a_given_relation_is_not_hidden_by_the_link_that_use_makes(backend: Backend) -> None:
    mem = backend.client()
    a, b, c = three(mem)
    mem.relate(a, c, "supports", weight=0.8)
    injected_together(mem, a, b, c)
    assert {(c, "supports"), (c, "co_accessed")} <= set(links(mem.get(a)))
    (reached,) = [one for one in mem.traverse(a, max_depth=1) if one.memory.id == c]
    assert (reached.relations, reached.score) == (("supports",), 0.8)


@pytest.mark.parametrize("direction", ["outbound", "inbound", "any"])
def test_nor_by_a_learned_link_that_is_held_more_strongly(backend: Backend, direction: str) -> None:
    mem = backend.client()
    a, b, c = three(mem)
    first, second = (a, c) if direction != "inbound" else (c, a)
    mem.relate(first, second, "supports", weight=0.3)
    for _ in range(8):
        injected_together(mem, a, b, c)
    (reached,) = [one for one in mem.traverse(a, max_depth=1, direction=direction) if one.memory.id == c]
    assert (reached.relations, reached.score) == (("supports",), 0.3)
    (learned,) = [
        one for one in mem.traverse(a, max_depth=1, direction=direction, types="co_accessed") if one.memory.id == c
    ]
    assert learned.score == pytest.approx(0.1 + 7 * 0.05, abs=0.001)


def test_a_relation_that_points_the_other_way_is_not_hidden_either(backend: Backend) -> None:
    mem = backend.client()
    a, b, c = three(mem)
    mem.relate(c, a, "supports", weight=0.05)
    injected_together(mem, a, b, c)
    (reached,) = [one for one in mem.traverse(a, max_depth=1, direction="any") if one.memory.id == c]
    assert (reached.relations, reached.forward, reached.score) == (("supports",), (False,), 0.05)


def test_a_learned_link_weighs_what_it_is_held_by_fades_and_is_gone(backend: Backend, clock: Clock) -> None:
    mem = backend.client()
    a, b, c = three(mem)
    injected_together(mem, a, b, c)
    assert [one.score for one in mem.traverse(a, max_depth=1)] == [pytest.approx(0.1, abs=0.001)] * 2
    clock.forward(days=10)
    assert [one.score for one in mem.traverse(a, max_depth=1)] == [pytest.approx(0.1 * 0.95**10, abs=0.001)] * 2
    assert mem.traverse(a, max_depth=1, min_weight=0.09) == []
    clock.forward(days=4)
    assert mem.traverse(a, max_depth=1) == []
    assert mem.traverse(a, max_depth=1, direction="any") == []
    assert "links to" not in mem.explain_memory(a).text


def test_a_related_memory_is_named_by_the_given_relation(backend: Backend) -> None:
    mem = backend.client()
    a, b, c = three(mem)
    far = mem.add("Coffee beans come from Lima", type="preference", pinned=True)
    mem.relate(a, far.id, "supports")
    for _ in range(10):
        injected_together(mem, a, b, c, far.id)
    mem.pin(far.id, False)
    (related,) = mem.inject("billing service deploys").related
    assert (related.memory.id, related.score > 0.5) == (far.id, True)
    assert "supports" in related.reason


def test_what_was_derived_again_scores_a_little_more(backend: Backend) -> None:
    mem = backend.client()
    once = mem.add("The nightly backup goes to the north vault", derivation_count=1)
    often = mem.add("The nightly backup goes to the south vault", derivation_count=4)
    found = {hit.id: hit for hit in mem.search("nightly backup vault", explain=True)}
    weights = {
        memory_id: [part.value for part in hit.trace.parts if part.name == "derived"] if hit.trace else []
        for memory_id, hit in found.items()
    }
    assert weights == {once.id: [], often.id: [pytest.approx(1.06)]}
    assert found[often.id].score > found[once.id].score


@pytest.mark.parametrize("how", ["verify", "approve"])
def test_verification_and_approval_reinforce(backend: Backend, clock: Clock, how: str) -> None:
    mem = backend.client()
    memory = mem.add("Invoices are numbered by year", status="candidate" if how == "approve" else "active")
    clock.forward(days=5)
    after = mem.verify(memory.id) if how == "verify" else mem.review.approve(memory.id)
    assert after.activation.frequency == 1
    assert after.activation.storage_strength == pytest.approx(0.525)
    assert after.activation.last_accessed is not None and (clock.now - after.activation.last_accessed).seconds == 0


BAD = {
    "confidence": "confidence: 0",
    "emotional_weight": "metadata:\n    emotional_weight: 0",
    "negative": "metadata:\n    feedback_signals: {positive: 0, negative: -3, neutral: 0}",
}


@pytest.mark.parametrize("name", BAD)
def test_a_number_out_of_its_range_in_a_file_is_reported_and_the_last_version_stays(tmp_path: Path, name: str) -> None:
    with Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path) as mem:
        kept = mem.add("Invoices are numbered by year", confidence=0.7)
        path = Path(mem.store.file_of(kept.id))
        head = f"- id: {kept.id}\n  version: 2\n  status: active\n  type: behavioral\n  scope: global\n"
        path.write_text(f"{head}  statement: Invoices are numbered by month\n  {BAD[name]}\n", "utf-8")
        problems = mem.store.sync().problems
        assert any(str(path) in problem and name in problem for problem in problems), problems
        assert mem.get(kept.id).statement == "Invoices are numbered by year"


def test_a_new_file_with_a_number_out_of_range_is_reported(tmp_path: Path) -> None:
    with Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path) as mem:
        folder = Path(mem.store.file_of(mem.add("Invoices are numbered by year").id)).parent
        made = folder / "ENG-2026-0101-777.yaml"
        made.write_text("- id: ENG-2026-0101-777\n  statement: Never invoice twice\n  confidence: 0\n", "utf-8")
        problems = mem.store.sync().problems
        assert any("confidence" in problem and made.name in problem for problem in problems), problems
        assert len(mem.list()) == 1


def test_what_engram_wrote_itself_is_read_again(tmp_path: Path) -> None:
    """A confidence below .1 is legal in Python; an edit of another field does not trip over it."""
    with Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path) as mem:
        kept = mem.add("Invoices are numbered by year", confidence=0.05)
        path = Path(mem.store.file_of(kept.id))
        path.write_text(path.read_text("utf-8").replace("by year", "by month"), "utf-8")
        assert not mem.store.sync().problems
        assert mem.get(kept.id).statement == "Invoices are numbered by month"
