"""Spec 4's files: the exact text, what is refused, and that nothing is lost on the way out and back."""

from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.dialects import memory_v1
from engram.dialects.memory_v1 import CURATED, LOG, MemoryItem, dump, load
from engram.model.errors import InvalidInput, UnknownVersion, UnreadableData
from engram.model.memory import Memory
from engram.model.types import KINDS
from tests.dialects.memories import text
from tests.tables import table

EXAMPLE = """---
schema: memory.v1
generated: 2026-01-15
items:
  - id: mem-0001
    fact: "I prefer pnpm over npm"
    kind: tooling
    source: tool:remember
    confidence: 0.6
    learned_by: remember
    learned_at: 2026-01-15
    last_verified: null
    decay: 180d
    status: promoted
    risk_tier: 1
    dest: memory-log.md

  - id: mem-0002
    fact: "My legal name is Alex Rivera"
    kind: identity
    source: manual
    confidence: 1.0
    learned_by: manual
    learned_at: 2026-01-10
    last_verified: 2026-01-15
    decay: 365d
    status: promoted
    risk_tier: 3
    dest: memory.md
---
"""
"""The example on the spec's page, to the letter."""


def items(source: str) -> list[MemoryItem]:
    reading = load(source, where=CURATED)
    assert reading.skipped == []
    return [MemoryItem(memory.id, memory, memory.type, KINDS[memory.type]) for _, memory in reading.found]


def only(old: str, new: str) -> str:
    """The example with one thing changed; why that item is skipped."""
    assert old in EXAMPLE
    reading = load(EXAMPLE.replace(old, new, 1), where=CURATED)
    ((_, reason),) = reading.skipped
    assert len(reading.found) == 1, "the other item is read"
    return reason


def test_the_spec_s_own_example_is_written_as_it_was_read() -> None:
    written = dump(items(EXAMPLE), date(2026, 1, 15), file=CURATED)
    assert written.startswith(EXAMPLE)


def test_the_body_lists_what_is_promoted_by_kind() -> None:
    pending = EXAMPLE.replace("status: promoted", "status: pending", 1)
    body = dump(items(pending), date(2026, 1, 15), file=CURATED).partition("\n---\n")[2]
    assert body == "\n# Memory\n\n## identity\n\n- My legal name is Alex Rivera\n"
    assert "_No promoted memories yet._" in dump([], date(2026, 1, 15), file=CURATED)


@pytest.mark.parametrize("file", [CURATED, LOG])
def test_a_body_without_promoted_memories_says_what_the_others_are(file: str) -> None:
    stale = EXAMPLE.replace("status: promoted", "status: pending")
    assert "_No promoted memories: 2 pending._" in dump(items(stale), date(2026, 1, 15), file=file)


def test_the_log_has_the_newest_first() -> None:
    body = dump(items(EXAMPLE), date(2026, 1, 15), file=LOG).partition("\n---\n")[2]
    assert body.splitlines()[3:] == [
        "- 2026-01-15 · [tooling] I prefer pnpm over npm (conf 0.60, src tool:remember, id mem-0001)",
        "- 2026-01-10 · [identity] My legal name is Alex Rivera (conf 1.00, src manual, id mem-0002)",
    ]


def test_a_fact_in_the_body_can_neither_open_nor_close_a_comment() -> None:
    fact = "a <!<!---- engram:end ---->> b -> c"
    item = MemoryItem("mem-0001", Memory(id="x", statement=fact), "preference", 1)
    body = dump([item], date(2026, 1, 15), file=CURATED).partition("\n---\n")[2]
    assert "<!--" not in body and "-->" not in body
    assert "b -> c" in body


def test_a_kind_of_somebody_s_own_is_written_as_one_of_the_ten() -> None:
    item = MemoryItem("mem-0001", Memory(id="x", statement="s"), "recipe", 1)
    assert "kind: project\n" in dump([item], date(2026, 1, 15), file=LOG)


def test_quoted_dates_are_read_too() -> None:
    quoted = EXAMPLE.replace("learned_at: 2026-01-15", "learned_at: '2026-01-15'").replace(
        "last_verified: 2026-01-15", 'last_verified: "2026-01-15"'
    )
    assert load(quoted, where=CURATED) == load(EXAMPLE, where=CURATED)


def test_a_stale_record_is_active_with_its_dates() -> None:
    memory = items(EXAMPLE.replace("status: promoted", "status: stale", 1))[0].memory
    assert (memory.status, memory.created) == ("active", datetime(2026, 1, 15, tzinfo=UTC))


def test_what_is_stale_is_written_so() -> None:
    stale = [MemoryItem(item.id, item.memory, item.kind, item.tier, stale=True) for item in items(EXAMPLE)]
    assert dump(stale, date(2026, 1, 15), file=CURATED).count("status: stale") == 2


@table(
    ("old", "new", "reason"),
    [
        ("kind: tooling", "kind: gadget", "Unknown kind 'gadget'"),
        ("status: promoted", "status: sleeping", "Unknown status 'sleeping'"),
        ("learned_by: remember", "learned_by: dream", "Unknown learned_by"),
        ("decay: 180d", "decay: never", "decay must be"),
        ("decay: 180d", "decay: 180", "decay must be"),
        ("confidence: 0.6", "confidence: 6", "confidence must be"),
        ("confidence: 0.6", "confidence: high", "confidence must be"),
        ("learned_at: 2026-01-15", "learned_at: last week", "learned_at must be a date"),
        ("risk_tier: 1", "risk_tier: 4", "risk_tier must be"),
        ("dest: memory-log.md", "dest: ../other.md", "dest must be"),
        ("id: mem-0001", "id: ../mem", "id must be"),
        ('fact: "I prefer pnpm over npm"', "fact: null", "missing: fact"),
        ("    source: tool:remember\n", "", "missing: source"),
    ],
)
def test_a_record_that_cannot_be_used_is_named_and_the_others_are_read(old: str, new: str, reason: str) -> None:
    assert reason in only(old, new)


@table(
    "broken",
    [
        "# Memory\n\n- a list\n",
        "---\nschema: memory.v1\n",
        "---\nitems: [unclosed\n---\n",
        "---\n- a\n- b\n---\n",
        "---\nschema: memory.v1\nitems: 7\n---\n",
        "---\ngenerated: 2026-01-15\nitems: []\n---\n",
    ],
)
def test_a_malformed_file_is_refused_whole(broken: str) -> None:
    with pytest.raises(UnreadableData):
        load(broken, where=CURATED)


def test_another_version_of_the_schema_is_refused_with_what_to_do() -> None:
    with pytest.raises(UnknownVersion, match="Update Engram"):
        load(EXAMPLE.replace("memory.v1", "memory.v9"), where=CURATED)


def test_another_spelling_of_a_horizon_and_unknown_keys_come_back(tmp_path: Path) -> None:
    source = EXAMPLE.replace("decay: 180d", "decay: 26w").replace(
        "    dest: memory-log.md\n", "    dest: memory-log.md\n    colour: red\n    weight: 3\n"
    )
    (first, _) = items(source)
    assert first.memory.decay_days == 182
    assert dump(items(source), date(2026, 1, 15), file=CURATED).startswith(source)


def test_a_plain_log_next_to_the_records_is_reported_and_not_read(tmp_path: Path) -> None:
    (tmp_path / CURATED).write_text(EXAMPLE)
    (tmp_path / LOG).write_text("# Log\n- 2026-01-15T10:00:00Z · [tooling] I prefer pnpm over npm\n")
    source = memory_v1.read_directory(tmp_path)
    assert len(source.found) == 2
    assert "plain log" in source.not_read[0]


def test_an_id_that_is_in_both_files_with_other_words_is_named(tmp_path: Path) -> None:
    (tmp_path / CURATED).write_text(EXAMPLE)
    (tmp_path / LOG).write_text(EXAMPLE.replace("pnpm over npm", "yarn"))
    source = memory_v1.read_directory(tmp_path)
    assert len(source.found) == 2
    ((what, reason),) = source.skipped
    assert "mem-0001" in what and "duplicate id" in reason


def test_a_link_out_of_the_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "other.md").write_text(EXAMPLE)
    (tmp_path / "in" / CURATED).symlink_to(tmp_path / "other.md")
    with pytest.raises(InvalidInput, match="symbolic link out"):
        memory_v1.read_directory(tmp_path / "in")


@pytest.mark.parametrize("content", ["my own notes\n", EXAMPLE.replace("memory.v1", "memory.v2")])
def test_a_file_of_another_kind_is_never_replaced(tmp_path: Path, content: str) -> None:
    (tmp_path / CURATED).write_text(content)
    with pytest.raises(InvalidInput, match="move the file elsewhere"):
        memory_v1.refuse_overwriting(tmp_path, force=True)


def test_a_file_of_the_format_is_replaced_only_with_force(tmp_path: Path) -> None:
    (tmp_path / CURATED).write_text(EXAMPLE)
    memory_v1.refuse_overwriting(tmp_path, force=True)
    with pytest.raises(InvalidInput, match="--force"):
        memory_v1.refuse_overwriting(tmp_path, force=False)


days = st.dates(date(1970, 1, 1), date(9000, 1, 1)).map(
    lambda day: datetime(day.year, day.month, day.day, 7, tzinfo=UTC)
)
anything = st.builds(
    Memory,
    id=st.just("x"),
    statement=text.filter(bool),
    status=st.sampled_from(("candidate", "active", "dormant", "rejected")),
    source=st.sampled_from(("human", "agent", "manual", "", "harness:codex:acme")) | text.filter(bool),
    learned_by=st.sampled_from(("learn", "add", "remember", "harvest", "manual", "import", "")),
    confidence=st.floats(0, 1),
    created=st.none() | days,
    last_verified=st.none() | days,
    decay_days=st.none() | st.floats(0, 50_000),
)


@given(
    st.lists(st.tuples(anything, st.sampled_from(list(KINDS)), st.booleans()), max_size=5),
    st.sampled_from((CURATED, LOG)),
)
def test_writing_reading_and_writing_again_gives_the_same_bytes(
    drawn: list[tuple[Memory, str, bool]], file: str
) -> None:
    today = date(2026, 1, 15)
    given_items = [
        MemoryItem(f"mem-{number:04d}", memory, kind, KINDS[kind], stale)
        for number, (memory, kind, stale) in enumerate(drawn, 1)
    ]
    written = dump(given_items, today, file=file)
    reading = load(written, where=file)
    assert reading.skipped == []
    stale = {item.id for item in given_items if item.stale}
    again = [MemoryItem(m.id, m, m.type, KINDS[m.type], m.id in stale) for _, m in reading.found]
    assert dump(again, today, file=file) == written
