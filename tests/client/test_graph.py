"""`mem.graph`: relating memories, taking it back, and what is reached."""

from typing import Any

import pytest

from engram import Engram
from engram.gates.secrets.scan import refuse_secrets_in
from engram.graph.graph import Graph
from engram.model.errors import InvalidInput, NotFound, SecretRefused
from engram.model.memory import Association
from tests.client.conftest import Clock
from tests.conformance.keeping import Keep

KEY = "AKIA" + "IOSFODNN7ABCDEFG"


@pytest.fixture
def graph(mem: Engram, clock: Clock) -> Graph:
    return Graph(mem.store, clock, refuse_secrets_in)


@pytest.fixture
def ids(mem: Engram) -> list[str]:
    """A decision, a constraint, a project and a fact."""
    texts = {
        "Use Postgres for the billing store": "decision",
        "Two people run all operations": "constraint",
        "The billing rewrite ends in June": "project",
        "Invoices are numbered by country": "fact",
    }
    items = [{"statement": text, "type": kind, "name": f"m{n}"} for n, (text, kind) in enumerate(texts.items())]
    return [memory.id for memory in mem.add_batch(items)]


def superseded(mem: Engram, clock: Clock, old: str, statement: str) -> str:
    """A new memory in the place of an old one."""
    keep, before = Keep(mem.store, clock), mem.get(old)
    new = keep(statement, supersedes=(old,))
    keep.again(before, status="superseded", superseded_by=new.id, name="")
    return new.id


def test_relate_links_two_memories(mem: Engram, graph: Graph, ids: list[str]) -> None:
    memory = graph.relate("m1", ids[0], "supports", weight=0.5, actor="human", reason="they said so")
    assert memory.id == ids[1]
    assert mem.get(ids[1]).associations == (Association(ids[0], "supports", weight=0.5),)
    last = mem.history(ids[1])[-1]
    assert (last.op, last.actor, last.reason) == ("relate", "human", "they said so")


def test_a_relation_said_again_sets_its_weight_and_leaves_what_was_learned(
    mem: Engram, graph: Graph, ids: list[str], clock: Clock
) -> None:
    learned = Association(ids[0], "supports", strength=0.8, last_reinforced=clock())
    Keep(mem.store, clock).again(mem.get(ids[1]), associations=(learned,))
    graph.relate(ids[1], ids[0], "supports", weight=3)
    (link,) = mem.get(ids[1]).associations
    assert (link.weight, link.strength, link.last_reinforced) == (3.0, 0.8, learned.last_reinforced)


def test_the_same_again_is_no_decision(mem: Engram, graph: Graph, ids: list[str]) -> None:
    graph.relate(ids[1], ids[0], "supports")
    before = len(mem.history(ids[1]))
    graph.relate(ids[1], ids[0], "supports")
    assert len(mem.history(ids[1])) == before


def test_two_relations_between_two_memories_stand_side_by_side(mem: Engram, graph: Graph, ids: list[str]) -> None:
    graph.relate(ids[0], ids[1], "supports")
    graph.relate(ids[0], ids[1], "depends_on")
    assert {link.type for link in mem.get(ids[0]).associations} == {"supports", "depends_on"}


def test_a_relation_can_be_undone(mem: Engram, graph: Graph, ids: list[str]) -> None:
    graph.relate(ids[0], ids[1])
    mem.undo(ids[0])
    assert mem.get(ids[0]).associations == ()
    assert graph.traverse(ids[0]) == []


def test_metadata_of_a_relation_is_kept_until_it_is_said_anew(mem: Engram, graph: Graph, ids: list[str]) -> None:
    graph.relate(ids[0], ids[1], metadata={"by": "Ann", "pages": [1, 2]})
    graph.relate(ids[0], ids[1], weight=2)
    assert mem.get(ids[0]).associations[0].extra == {"metadata": {"by": "Ann", "pages": [1, 2]}}
    graph.relate(ids[0], ids[1], metadata={})
    assert mem.get(ids[0]).associations[0].extra == {}


def test_a_secret_in_the_data_of_a_relation_is_refused(graph: Graph, ids: list[str], everything: Any) -> None:
    with pytest.raises(SecretRefused, match=r"^metadata\.note contains"):
        graph.relate(ids[0], ids[1], metadata={"note": f"the key is {KEY} here"})
    with pytest.raises(SecretRefused, match=r"^the reason contains"):
        graph.relate(ids[0], ids[1], reason=f"as {KEY} says")
    assert KEY not in everything()


@pytest.mark.parametrize(
    ("wrong", "error", "said"),
    [
        ({"target": "m0"}, InvalidInput, "itself"),
        ({"target": "nobody"}, NotFound, "'nobody'"),
        ({"source": "nobody"}, NotFound, "'nobody'"),
        ({"target": None}, NotFound, "None"),
        ({"type": "admires"}, InvalidInput, "known: "),
        ({"type": "supersedes"}, InvalidInput, "revise"),
        ({"weight": -1}, InvalidInput, "weight -1"),
        ({"weight": 0}, InvalidInput, "weight 0"),
        ({"weight": float("nan")}, InvalidInput, "weight nan"),
        ({"weight": float("inf")}, InvalidInput, "weight inf"),
        ({"metadata": {"a": float("nan")}}, InvalidInput, "metadata"),
    ],
)
def test_a_wrong_relation_is_refused_and_nothing_is_written(
    mem: Engram, graph: Graph, ids: list[str], wrong: dict[str, Any], error: type[Exception], said: str
) -> None:
    before = [len(mem.history(i)) for i in ids]
    with pytest.raises(error, match=said):
        graph.relate(**{"source": "m0", "target": "m1", **wrong})
    assert [len(mem.history(i)) for i in ids] == before


def test_a_retired_memory_is_not_related(mem: Engram, graph: Graph, ids: list[str]) -> None:
    mem.forget(ids[1])
    with pytest.raises(InvalidInput, match=f"{ids[1]} is retired"):
        graph.relate(ids[0], ids[1])


def test_unrelate_takes_one_relation_or_all(mem: Engram, graph: Graph, ids: list[str]) -> None:
    for kind in ("supports", "depends_on", "blocks"):
        graph.relate(ids[0], ids[1], kind)
    graph.relate(ids[0], ids[2], "supports")
    graph.unrelate("m0", "m1", "supports")
    assert len(mem.get(ids[0]).associations) == 3
    graph.unrelate("m0", "m1")
    assert [link.target for link in mem.get(ids[0]).associations] == [ids[2]]
    with pytest.raises(NotFound, match="no relation to 'm1'"):
        graph.unrelate("m0", "m1")


def test_a_relation_to_what_was_purged_can_be_taken_back(mem: Engram, graph: Graph, ids: list[str]) -> None:
    graph.relate(ids[0], ids[1])
    mem.forget(ids[1], purge=True)
    assert graph.traverse(ids[0]) == []
    if mem.get(ids[0]).associations:
        graph.unrelate(ids[0], ids[1])
    assert mem.get(ids[0]).associations == ()


def test_traverse_returns_memories_with_their_paths(graph: Graph, ids: list[str]) -> None:
    graph.relate(ids[0], ids[1], "depends_on", weight=0.5)
    graph.relate(ids[1], ids[2], "part_of", weight=0.5)
    near, far = graph.traverse("m0")
    assert (near.memory.id, near.depth, near.path) == (ids[1], 1, (ids[0], ids[1]))
    assert (far.memory.statement, far.relations, far.score) == (
        "The billing rewrite ends in June",
        ("depends_on", "part_of"),
        0.25,
    )
    assert [one.memory.id for one in graph.traverse("m0", max_depth=1)] == [ids[1]]
    assert [one.memory.id for one in graph.traverse("m0", limit=1)] == [ids[1]]
    assert [one.memory.id for one in graph.traverse("m2", direction="inbound")] == [ids[1], ids[0]]
    assert [one.memory.id for one in graph.traverse("m0", types="depends_on")] == [ids[1]]
    assert graph.traverse("m0", min_weight=0.6) == []


def test_traverse_many_names_the_seeds_and_returns_each_memory_once(graph: Graph, ids: list[str]) -> None:
    graph.relate(ids[0], ids[2], weight=0.5)
    graph.relate(ids[1], ids[2], weight=0.7)
    graph.relate(ids[1], ids[0], weight=0.1)
    best, seed = graph.traverse_many(["m0", "m1"])
    assert (best.memory.id, best.path, best.seeds) == (ids[2], (ids[1], ids[2]), (ids[1], ids[0]))
    assert (seed.memory.id, seed.seeds) == (ids[0], (ids[1],))
    assert len(graph.traverse_many(["m0", "m1"], total_limit=1)) == 1
    assert graph.traverse_many([]) == []


def test_an_unknown_start_and_a_single_word_for_seeds_are_refused(graph: Graph, ids: list[str]) -> None:
    with pytest.raises(NotFound, match="'nobody'"):
        graph.traverse("nobody")
    with pytest.raises(NotFound, match="'nobody'"):
        graph.traverse_many([ids[0], "nobody"])
    for wrong in ("m0", None, 5):
        with pytest.raises(InvalidInput, match="seeds is a list"):
            graph.traverse_many(wrong)  # type: ignore[arg-type]


def test_seeds_that_can_be_read_only_once_are_walked_from(graph: Graph, ids: list[str]) -> None:
    graph.relate(ids[0], ids[1])
    (reached,) = graph.traverse_many(iter(ids[:1]))  # type: ignore[arg-type]
    assert reached.memory.id == ids[1]


def test_a_retired_memory_is_skipped_unless_it_is_asked_for(mem: Engram, graph: Graph, ids: list[str]) -> None:
    graph.relate(ids[0], ids[1])
    mem.forget(ids[1])
    assert graph.traverse(ids[0]) == []
    assert [one.memory.id for one in graph.traverse(ids[0], status="any")] == [ids[1]]


def test_what_is_no_longer_true_is_skipped(mem: Engram, graph: Graph, ids: list[str], clock: Clock) -> None:
    graph.relate(ids[0], ids[1])
    mem.update(ids[1], valid_until=clock().isoformat())
    assert graph.traverse(ids[0]) == []


def test_relations_follow_a_fact_to_its_new_version(mem: Engram, graph: Graph, ids: list[str], clock: Clock) -> None:
    graph.relate(ids[0], ids[1], "depends_on")
    new = superseded(mem, clock, ids[1], "Three people run all operations")
    assert [one.memory.id for one in graph.traverse(ids[0])] == [new]
    assert [one.memory.id for one in graph.traverse(new, direction="inbound")] == [ids[0]]
    graph.relate(ids[0], ids[1], "depends_on", weight=0.3)
    assert [(link.target, link.weight) for link in mem.get(ids[0]).associations] == [(new, 0.3)]
    graph.unrelate(ids[0], ids[1])
    assert mem.get(ids[0]).associations == ()


def test_a_relation_to_an_old_version_is_taken_back_by_the_name_of_the_new(
    mem: Engram, graph: Graph, ids: list[str], clock: Clock
) -> None:
    graph.relate(ids[0], ids[1])
    new = superseded(mem, clock, ids[1], "Three people run all operations")
    graph.unrelate(ids[0], new)
    assert mem.get(ids[0]).associations == ()


def test_a_walk_from_an_old_version_begins_at_the_new_one(
    mem: Engram, graph: Graph, ids: list[str], clock: Clock
) -> None:
    new = superseded(mem, clock, ids[0], "Use SQLite for the billing store")
    graph.relate(new, ids[1])
    (one,) = graph.traverse(ids[0])
    assert one.path == (new, ids[1])


def test_render_tells_the_start_too_and_keeps_to_its_budget(graph: Graph, ids: list[str]) -> None:
    graph.relate(ids[0], ids[1], "depends_on")
    graph.relate(ids[1], ids[2], "part_of")
    found = graph.traverse(ids[0])
    first, second = graph.render(found).splitlines()
    assert first.startswith(
        f"{ids[0]} Decision: “Use Postgres for the billing store” —depends_on→ {ids[1]} Constraint: "
    )
    assert second.startswith(f"{ids[1]} —part_of→ {ids[2]} Project: ")
    assert graph.render(found, max_tokens=50).splitlines() == [first]
    with pytest.raises(InvalidInput, match="max_tokens"):
        graph.render(found, max_tokens=0)


def test_a_link_drawn_by_hand_in_the_file_is_followed(files: Engram, clock: Clock) -> None:
    from pathlib import Path

    one, other = files.add("Use Postgres for the billing store"), files.add("Two people run all operations")
    path = Path(files.store.file_of(one.id))
    text = path.read_text("utf-8")
    path.write_text(f"{text.rstrip()}\n  associations:\n    - target: {other.id}\n      type: admires\n", "utf-8")
    files.upkeep.sync()
    (reached,) = Graph(files.store, clock).traverse(one.id)
    assert (reached.memory.id, reached.relations, reached.score) == (other.id, ("admires",), 1.0)
