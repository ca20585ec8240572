"""One memory as PLUR's entry and back, one entry as a memory and back."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given

from engram.dialects.engram_yaml import dump, load
from engram.dialects.plur import from_plur, to_plur
from engram.model.errors import InvalidInput, UnknownVersion
from engram.model.memory import Activation, Anchor, Association, Feedback, Memory
from engram.text.content_hash import content_hash
from tests.properties import examples
from tests.tables import table

from .memories import memories
from .plur_schema import ENTRY, NULLABLE, entries

TODAY = "2026-11-15"


@given(memories.filter(lambda memory: memory.statement != ""))
@examples(60)
def test_a_memory_becomes_a_valid_entry_and_comes_back_whole(memory: Memory) -> None:
    entry = to_plur(memory, today=TODAY)
    visible = {key: value for key, value in entry.items() if key not in memory.extra}
    assert ENTRY(visible)
    assert from_plur(entry) == memory


@given(entries)
@examples(150)
def test_an_entry_becomes_a_memory_and_comes_back_with_every_value(entry: dict[str, Any]) -> None:
    memory = from_plur(entry)
    written = to_plur(memory, today=TODAY)
    assert {key: written.get(key, "absent") for key in entry} == entry
    assert ENTRY(written)
    assert from_plur(written) == memory


@given(entries)
@examples(60)
def test_an_imported_entry_survives_engrams_own_file(entry: dict[str, Any]) -> None:
    memory = from_plur(entry)
    assert load(dump([memory])) == [memory]


def memory(**fields: Any) -> Memory:
    """A memory with every field PLUR lacks or limits."""
    return Memory(**{"id": "ENG-2026-0131-001", "statement": "Use tabs.", **fields})


def test_the_five_required_fields_are_always_there_and_nothing_optional_is_null() -> None:
    entry = to_plur(memory(), today=TODAY)
    assert {"id", "status", "type", "scope", "statement"} <= entry.keys()
    assert not [key for key, value in entry.items() if value is None and key not in NULLABLE]


@table(
    ("ours", "theirs"),
    [
        ("behavioral", "behavioral"),
        ("correction", "behavioral"),
        ("preference", "behavioral"),
        ("convention", "architectural"),
        ("procedural", "procedural"),
        ("factual", "terminological"),
        ("decision", "architectural"),
        ("episodic", "terminological"),
        ("a word of mine", "terminological"),
    ],
)
def test_types_are_mapped_and_the_original_comes_back(ours: str, theirs: str) -> None:
    entry = to_plur(memory(type=ours), today=TODAY)
    assert entry["type"] == theirs
    assert from_plur(entry).type == ours


@pytest.mark.parametrize("status", ["superseded", "archived", "rejected"])
def test_states_plur_lacks_are_retired_there_and_themselves_here(status: str) -> None:
    entry = to_plur(memory(status=status), today=TODAY)
    assert entry["status"] == "retired"
    assert from_plur(entry).status == status


@pytest.mark.parametrize("accessed", [None, datetime(2025, 1, 1, tzinfo=UTC)])
@pytest.mark.parametrize("updated", [None, datetime(2026, 1, 1, tzinfo=UTC)])
def test_dates_plur_demands_are_filled_in_there_and_stay_absent_here(
    accessed: datetime | None, updated: datetime | None
) -> None:
    original = memory(
        updated=updated,
        valid_until=datetime(2027, 1, 1, tzinfo=UTC),
        activation=Activation(frequency=1, last_accessed=accessed),
        extra={"metadata": {"feedback_signals": {"saved": 1}}},
    )
    entry = to_plur(original, today=TODAY)
    assert entry["temporal"]["learned_at"] == TODAY
    assert ENTRY(entry)
    assert from_plur(entry) == original


def test_an_id_plur_does_not_allow_is_replaced_everywhere_by_the_same_one() -> None:
    first = memory(id="mem 1", associations=(Association("mem 2"),), superseded_by="mem 2")
    entry, other = to_plur(first, today=TODAY), to_plur(memory(id="mem 2"), today=TODAY)
    assert entry["associations"][0]["target"] == other["id"] == entry["relations"]["superseded_by"][0]
    assert from_plur(entry) == first


def test_numbers_and_texts_beyond_plurs_limits_are_cut_there_and_whole_here() -> None:
    original = memory(
        confidence=0.07,
        emotional_weight=7.25,
        associations=(Association("ENG-1", "supports", 1.0, weight=2),),
        anchors=(Anchor("notes.md", "long " * 100),),
    )
    entry = to_plur(original, today=TODAY)
    assert entry["episodic"] == {"emotional_weight": 7, "confidence": 1}
    assert entry["associations"] == [{"target_type": "engram", "target": "ENG-1", "strength": 0.95, "type": "semantic"}]
    assert len(entry["knowledge_anchors"][0]["snippet"]) == 200
    assert from_plur(entry) == original


def test_a_change_made_in_plur_counts_and_the_rest_of_engrams_fields_stay() -> None:
    original = memory(type="correction", importance=0.9, situation="Before commits", status="archived", confidence=0.33)
    entry = to_plur(original, today=TODAY)
    entry["type"] = "procedural"
    entry["status"] = "active"
    entry["statement"] = "Use spaces."
    entry["episodic"]["confidence"] = 8
    entry["feedback_signals"]["positive"] = 4
    assert from_plur(entry) == original.replace(
        type="procedural", status="active", statement="Use spaces.", confidence=0.8, feedback=Feedback(4, 0, 0)
    )


def test_a_change_made_in_engram_counts_and_the_rest_of_plurs_fields_stay() -> None:
    entry = {
        "id": "ENG-2026-11-15-001",
        "status": "active",
        "type": "architectural",
        "scope": "global",
        "statement": "Pods roll one by one.",
        "entities": [{"name": "pods", "type": "technology"}, {"name": "ops", "type": "organization"}],
        "commitment": "leaning",
        "episodic": {"confidence": 8, "journal_ref": "j/1"},
    }
    changed = from_plur(entry).replace(confidence=0.9, entities=("pods", "kubernetes"), type="preference")
    written = to_plur(changed, today=TODAY)
    assert written["entities"] == [{"name": "pods", "type": "technology"}, {"name": "kubernetes", "type": "other"}]
    assert written["episodic"] == {"emotional_weight": 5, "confidence": 9, "journal_ref": "j/1"}
    assert written["commitment"] == "leaning"
    assert written["type"] == "behavioral"
    assert from_plur(written).type == "preference"


def test_plurs_fields_fill_engrams() -> None:
    read = from_plur(
        {
            "id": "ENG-2026-11-15-002",
            "status": "active",
            "type": "terminological",
            "scope": "project:demo",
            "created_at": "2026-11-15T01:53:08.495Z",
            "statement": "A pod is a group of containers.",
            "activation": {
                "retrieval_strength": 0.7,
                "storage_strength": 1,
                "frequency": 2,
                "last_accessed": "2026-11-15",
            },
            "associations": [
                {
                    "target_type": "engram",
                    "target": "ENG-1",
                    "strength": 0.3,
                    "type": "co_accessed",
                    "updated_at": "2026-11-14",
                }
            ],
            "knowledge_anchors": [{"path": "notes.md", "relevance": "primary", "snippet": "pods"}],
            "relations": {"supersedes": ["ENG-0"], "superseded_by": [], "broader": ["ENG-9"]},
            "temporal": {"learned_at": "2026-11-15", "valid_until": "2027-01-01"},
            "episodic": {"emotional_weight": 8, "confidence": 7, "trigger_context": "review"},
        }
    )
    assert read == Memory(
        id="ENG-2026-11-15-002",
        statement="A pod is a group of containers.",
        type="factual",
        scope="project:demo",
        created=datetime(2026, 11, 15, 1, 53, 8, 495000, tzinfo=UTC),
        valid_until=datetime(2027, 1, 2, tzinfo=UTC),
        activation=Activation(0.7, 1, 2, datetime(2026, 11, 15, tzinfo=UTC)),
        associations=(
            Association("ENG-1", "co_accessed", 0.3, last_reinforced=datetime(2026, 11, 14, tzinfo=UTC)),
            Association("ENG-9", "broader", 0.5),
        ),
        anchors=(Anchor("notes.md", "pods", {"relevance": "primary"}),),
        supersedes=("ENG-0",),
        confidence=0.7,
        emotional_weight=8,
        trigger_context="review",
        extra={"temporal": {"learned_at": "2026-11-15"}},
    )


def test_spec_1s_own_fields_in_a_plur_entry_count_and_plurs_stay_beside_them() -> None:
    entry = {
        "id": "ENG-1",
        "status": "active",
        "type": "behavioral",
        "scope": "global",
        "statement": "s",
        "created_at": "2026-11-15T00:00:00.000Z",
        "confidence": 9,
        "metadata": {"created": "2026-01-31", "emotional_weight": 7},
        "episodic": {"confidence": 4, "emotional_weight": 2},
    }
    read = from_plur(entry)
    assert (read.confidence, read.emotional_weight, read.created) == (0.9, 7, datetime(2026, 1, 31, tzinfo=UTC))
    assert read.extra["episodic"] == {"confidence": 4, "emotional_weight": 2}
    assert read.extra["created_at"] == "2026-11-15T00:00:00.000Z"
    assert from_plur(to_plur(read, today=TODAY)) == read


def test_the_content_hash_is_written_for_the_statement_it_stands_beside() -> None:
    entry = to_plur(memory(), today=TODAY)
    assert entry["content_hash"] == content_hash("Use tabs.")
    entry["statement"] = "Use spaces."
    assert to_plur(from_plur(entry), today=TODAY)["content_hash"] == content_hash("Use spaces.")


def test_an_entry_that_is_no_memory_is_refused_by_field() -> None:
    with pytest.raises(InvalidInput, match=r"activation.last_accessed of ENG-1: must be a date"):
        from_plur({"id": "ENG-1", "statement": "s", "activation": {"last_accessed": "never"}})
    with pytest.raises(UnknownVersion):
        from_plur({"id": "ENG-1", "statement": "s", "version": 3})


@pytest.mark.parametrize("own", ["text", {"set": 3, "unset": "x"}, {"set": {"status": "gone"}}, {"unset": ["id"]}])
def test_a_damaged_remainder_costs_nothing_but_itself(own: Any) -> None:
    assert from_plur({"id": "ENG-1", "statement": "s", "x_engram": own}) == Memory(id="ENG-1", statement="s")
