"""What a process keeps of earlier searches does not hide what was written since."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from engram import Engram
from engram.store.protocol import Filters, Query

LANTERN = "The lantern in the harbour is painted cobalt"


@pytest.fixture
def clients(tmp_path: Path) -> Iterator[tuple[Engram, Engram]]:
    """Two processes' clients of one store with a memory."""
    with (
        Engram.open(tmp_path / "home", directory=tmp_path) as mem,
        Engram.open(tmp_path / "home", directory=tmp_path) as other,
    ):
        mem.add(LANTERN, scope="global")
        yield mem, other


def test_a_term_that_occurred_nowhere_counts_as_soon_as_a_memory_contains_it(clients: tuple[Engram, Engram]) -> None:
    mem, other = clients
    counts = [dict(mem.store.frequencies(["lantern", "saffron"]))]
    for client in (other, mem):
        client.add(f"The cook of {client.directory} number {len(counts)} buys saffron", scope="global")
        counts.append(dict(mem.store.frequencies(["lantern", "saffron"])))
    assert counts[0] == {"lantern": 1}
    assert all("saffron" in found for found in counts[1:])


def test_memories_of_another_project_are_found_from_the_first_one_on(clients: tuple[Engram, Engram]) -> None:
    mem, other = clients
    assert mem.recall("What colour is the lantern?").elsewhere == ()
    other.add("The lantern of the lighthouse is red", scope="project:lighthouse")
    found = mem.recall("What colour is the lantern?").elsewhere
    assert [(each.scope, each.count) for each in found] == [("project:lighthouse", 1)]


def test_archived_memories_are_candidates_from_the_first_one_on(clients: tuple[Engram, Engram]) -> None:
    mem, other = clients
    archived, asked = Filters(statuses=("archived",)), Query(terms=("lantern",))
    assert mem.store.candidates(asked, archived).lexical == []
    other.update(mem.list()[0].id, status="archived")
    assert len(mem.store.candidates(asked, archived).lexical) == 1


def test_each_wording_gets_the_candidates_that_it_gets_alone(clients: tuple[Engram, Engram]) -> None:
    mem, _ = clients
    mem.add_batch([{"statement": f"Lantern number {at} hangs over the meadow", "scope": "global"} for at in range(40)])
    wordings = [Query(terms=terms, limit=5) for terms in (("lantern",), ("meadow", "cobalt"), ("saffron",), ())]
    together = mem.store.candidates_of_each(wordings, Filters())
    assert [found.lexical for found in together] == [
        mem.store.candidates(wording, Filters()).lexical for wording in wordings
    ]
    assert [bool(found.lexical) for found in together] == [True, True, False, False]
