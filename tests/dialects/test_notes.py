"""Spec 5's notes: the text of a file, and the memory it holds."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.dialects.notes import is_notes, name_for, read_notes
from engram.dialects.notes.note_files import note_of, parse_note, read_note, render_note
from engram.model.errors import InvalidInput
from engram.model.memory import Memory
from tests.dialects.memories import text

NOTE = """---
id: decision-1768470000000-k3x9
category: decision
created: 2026-01-15T09:40:00.000Z
updated: 2026-01-16T08:00:00.000Z
source: extraction: turn 4
confidence: 0.92
confidenceTier: implied
tags: ["db", "postgres\\u002c 16"]
entityRef: project-acme
supersedes: fact-1768460000000-a1b2
status: superseded
supersededBy: decision-1768480000000-zz01
lifecycleState: validated
importanceScore: 0.5
importanceLevel: normal
links:
  - targetId: fact-1768460000000-a1b2
    linkType: supports
    strength: 0.7
    reason: same migration
structuredAttributes: {"engine": "postgres"}
contentHash: 0f3a
futureKey: kept as it is
---

We move from MySQL to Postgres.

[Attributes: engine: postgres]
"""


def memory_of(source: str, folder: str = "facts/2026-01-15") -> Memory:
    keys, body = parse_note(source)
    return read_note(keys, body, name="a-name", folder=folder)


def text_of(memory: Memory) -> str:
    _, keys, body = note_of(memory, memory.id, lambda target: target)
    return render_note(keys, body)


def test_a_note_becomes_a_memory() -> None:
    memory = memory_of(NOTE)
    assert memory.statement == "We move from MySQL to Postgres."
    assert (memory.type, memory.status, memory.confidence) == ("decision", "superseded", 0.92)
    assert memory.tags == ("db", "postgres, 16")
    assert (memory.entities, memory.metadata) == (("project-acme",), {"engine": "postgres"})
    assert memory.superseded_by == "decision-1768480000000-zz01"
    assert (memory.associations[0].target, memory.associations[0].strength) == ("fact-1768460000000-a1b2", 0.7)
    assert memory.source == "extraction: turn 4"


def test_a_note_is_written_as_it_was_with_the_keys_nobody_knows() -> None:
    assert text_of(memory_of(NOTE)) == NOTE


def test_what_changed_is_written_and_the_rest_stays() -> None:
    changed = text_of(memory_of(NOTE).replace(importance=0.8, statement="We stay with MySQL."))
    assert "importanceScore: 0.8\nimportanceLevel: high\n" in changed
    assert "futureKey: kept as it is" in changed and "We stay with MySQL." in changed


@pytest.mark.parametrize("line", ['tags: ["a", "b"]', "tags: [a, b]", 'tags: ["a","b"]', "tags:\n  - a\n  - b"])
def test_lists_are_read_in_every_way_they_are_written(line: str) -> None:
    assert memory_of(f"---\ncategory: fact\n{line}\n---\n\nTabs.\n").tags == ("a", "b")


def test_no_comma_or_quote_stands_bare_inside_a_tag() -> None:
    written = text_of(Memory(id="x", statement="s", tags=('a, "b"', "c")))
    assert 'tags: ["a\\u002c \\u0022b\\u0022", "c"]' in written
    assert memory_of(written).tags == ('a, "b"', "c")


def test_missing_keys_have_their_defaults() -> None:
    memory = memory_of("---\nsource: manual\n---\n\nNever force-push.\n", folder="corrections")
    assert (memory.id, memory.type, memory.confidence, memory.status) == ("a-name", "correction", 0.8, "active")


def test_what_lies_in_the_archive_is_archived_whatever_it_says() -> None:
    source = NOTE.replace("status: superseded\n", "")
    memory = memory_of(source, folder="archive/2026-02-01")
    assert memory.status == "archived"
    assert text_of(memory) == source


def test_the_words_behind_a_note_stay_out_of_plain_recall() -> None:
    memory = memory_of(
        "---\ncategory: fact\nartifactType: decision\n---\n\nWe go with Postgres!\n", folder="artifacts/2026-01-15"
    )
    assert memory.status == "dormant"
    assert note_of(memory, "x", str)[0].startswith("artifacts/")


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ("category: dream", "Unknown category"),
        ("category: fact\nstatus: sleeping", "Unknown status"),
        ("category: fact\nconfidence: 7", "confidence must be"),
        ("category: fact\ncreated: yesterday", "created must be"),
    ],
)
def test_what_cannot_be_used_is_named(keys: str, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        memory_of(f"---\n{keys}\n---\n\nTabs.\n")


def test_a_directory_is_read_and_what_is_no_memory_is_reported(tmp_path: Path) -> None:
    for place in (
        "facts/2026-01-15/a.md",
        "corrections/b.md",
        "cold/facts/2026-01-01/c.md",
        "entities/person-x.md",
        "profile.md",
    ):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(
            f"---\ncategory: fact\nid: fact-1768470000{len(place):03d}-abcd\n---\n\n{place}\n"
        )
    (tmp_path / "facts" / "broken.md").write_text("no frontmatter\n")
    assert is_notes(tmp_path)
    source = read_notes(tmp_path)
    assert {place for place, _ in source.found} == {
        "facts/2026-01-15/a.md",
        "corrections/b.md",
        "cold/facts/2026-01-01/c.md",
    }
    assert [what for what, _ in source.skipped] == ["facts/broken.md"]
    assert [line.partition(":")[0] for line in source.not_read] == ["entities", "profile.md"]


def test_a_link_out_of_the_directory_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "notes" / "facts").mkdir(parents=True)
    (tmp_path / "outside.md").write_text("---\ncategory: fact\n---\n\nOutside.\n")
    (tmp_path / "notes" / "facts" / "in.md").symlink_to(tmp_path / "outside.md")
    source = read_notes(tmp_path / "notes")
    assert source.found == [] and "symbolic link out" in source.skipped[0][1]


times = st.datetimes(datetime(1971, 1, 1), datetime(9000, 1, 1)).map(
    lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000, tzinfo=UTC)
)
notes = st.builds(
    Memory,
    id=st.just("fact-1768460000000-a1b2"),
    statement=text.map(str.strip).filter(bool),
    type=st.sampled_from(("fact", "health", "decision", "correction", "procedural", "moment")),
    status=st.sampled_from(("active", "candidate", "archived", "superseded", "rejected", "retired", "dormant")),
    tags=st.lists(text.filter(bool), max_size=3).map(tuple),
    entities=st.lists(text.filter(bool), max_size=1).map(tuple),
    created=times,
    updated=st.none() | times,
    valid_until=st.none() | times,
    confidence=st.integers(0, 100).map(lambda n: n / 100),
    importance=st.integers(0, 100).map(lambda n: n / 100),
    source=text.filter(bool),
    metadata=st.dictionaries(st.sampled_from(("engine", "port")), text, max_size=2),
    scope=st.sampled_from(("global", "project:acme")),
)


@given(notes)
def test_writing_reading_and_writing_again_gives_the_same_bytes(memory: Memory) -> None:
    folder, keys, body = note_of(memory, memory.id, lambda target: target)
    written = render_note(keys, body)
    keys_again, body_again = parse_note(written)
    assert keys_again == keys
    again = read_note(keys_again, body_again, name="x", folder=folder)
    assert note_of(again, again.id, lambda target: target)[0] == folder
    assert text_of(again) == written


def test_the_name_of_a_note_has_its_category_and_its_time() -> None:
    memory = Memory(id="ENG-2026-0115-001", statement="x", type="correction", created=datetime(2026, 1, 15, tzinfo=UTC))
    assert name_for(memory).startswith("correction-1768435200000-")


def test_a_list_keeps_its_plain_items_next_to_blocks() -> None:
    keys = {"links": [{"targetId": "a", "strength": "0.5"}, "plain, with a comma", "b: c", {"targetId": "d"}]}
    assert parse_note(render_note(keys, "text")) == (keys, "text")
