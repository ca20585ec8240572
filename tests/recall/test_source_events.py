"""Memories, events and chunks of documents in one ranking."""

from pathlib import Path

import pytest

from engram import Engram
from engram.model.records import DOCUMENT_ROLE
from tests.backends import Backend

SAID = "I moved the tracking page to Cloudflare this morning"
HANDBOOK = "# Handbook\n\nThe auditors get the access logs of the warehouse tablets at the end of the month.\n"


@pytest.fixture
def mem(backend: Backend) -> Engram:
    return backend.client()


def record(mem: Engram, content: str) -> str:
    task = mem.start_task("Work on the tracking page", scope="global")
    return mem.record_event(task.id, "user", content, derive=False).id


def test_search_finds_memories_and_events(mem: Engram) -> None:
    event = record(mem, SAID)
    memory = mem.add("The tracking page is built with Svelte", scope="global")
    assert {event, memory.id} <= {hit.id for hit in mem.search("tracking page")}


def test_a_filter_of_memories_finds_memories_alone(mem: Engram) -> None:
    record(mem, SAID)
    mem.add("The tracking page is built with Svelte", scope="global", tags=["web"])
    assert {hit.kind for hit in mem.search("tracking page", tags=["web"])} == {"memory"}


def test_an_event_is_folded_into_the_memory_extracted_from_it(mem: Engram) -> None:
    event = record(mem, SAID)
    memory = mem.add("The tracking page is on Cloudflare", scope="global", evidence=[{"event": event}])
    assert [hit.id for hit in mem.search("tracking page Cloudflare")] == [memory.id]
    assert event in {hit.id for hit in mem.search("tracking page Cloudflare", kinds=("event",))}


def test_the_record_of_a_document_is_no_hit(mem: Engram, tmp_path: Path) -> None:
    place = tmp_path / "handbook.md"
    place.write_text(HANDBOOK)
    task = mem.start_task("Read the handbook", scope="global")
    mem.ingest(place, task=task.id)
    found = [hit.event for hit in mem.search("handbook.md markdown characters chunks") if hit.event is not None]
    assert {event.event_type for event in found if event.role == DOCUMENT_ROLE} == {"artifact"}


def test_a_chunk_that_hardly_bears_on_the_question_is_not_cited(mem: Engram, tmp_path: Path) -> None:
    place = tmp_path / "handbook.md"
    place.write_text(HANDBOOK)
    task = mem.start_task("Read the handbook", scope="global")
    mem.ingest(place, task=task.id)
    assert not mem.recall("which cheese goes with pears?", scope="global").possible
    assert mem.recall("who gets the access logs of the tablets?", scope="global").hits
