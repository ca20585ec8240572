"""What people and other tools may have written, and what is refused with file and line."""

from datetime import UTC, date, datetime
from typing import Any

import pytest
import yaml

from engram.dialects.engram_yaml import dump, from_mapping, load, load_mappings, to_mapping
from engram.model.errors import InvalidInput, StoreCorrupt, UnknownVersion
from engram.model.memory import Activation, Association, Feedback, Memory
from tests.tables import table

SPEC_PAGE = """\
# A complete engram example
- id: ENG-2026-0131-001
  version: 2
  status: active
  type: behavioral
  scope: agent:dip-preparer
  statement: |
    Validate org-mode syntax before writing to .org files.
    Three incidents of malformed entries in January 2026 caused
    data loss. Always parse and validate before write.
  rationale: "Three incidents of malformed entries in January 2026."
  confidence: 9
  tags: [org-mode, validation]
  domain: "gtd/org-mode"
  activation:
    retrieval_strength: 0.85
    storage_strength: 0.6
    frequency: 5
    last_accessed: 2026-01-30
  associations:
    - target: "ENG-2026-0302-001"
      strength: 0.8        # [0, 0.95]
      type: semantic      # semantic | temporal | causal | co_accessed
  metadata:
    created: 2026-01-31
    source: "user/personal"
    feedback_signals: {positive: 3, negative: 0, neutral: 2}
"""


def one(text: str) -> Memory:
    """The single memory of a file."""
    (memory,) = load(text, where="f.yaml")
    return memory


def refusal(text: str) -> str:
    """What `load` says when it refuses a file."""
    with pytest.raises(StoreCorrupt) as caught:
        load(text, where="f.yaml")
    return str(caught.value)


def test_the_engram_of_the_spec_page_reads_with_every_field() -> None:
    memory = one(SPEC_PAGE)
    assert memory.statement.startswith("Validate org-mode") and memory.statement.endswith("before write.\n")
    assert memory.scope == "agent:dip-preparer"
    assert memory.confidence == 0.9
    assert memory.tags == ("org-mode", "validation")
    assert memory.activation == Activation(0.85, 0.6, 5, datetime(2026, 1, 30, tzinfo=UTC))
    assert memory.associations == (Association("ENG-2026-0302-001", "semantic", 0.8),)
    assert memory.created == datetime(2026, 1, 31, tzinfo=UTC)
    assert memory.source == "user/personal"
    assert memory.feedback == Feedback(3, 0, 2)
    assert memory.extra == {}


def test_the_spec_page_is_written_back_with_its_names_order_and_shapes() -> None:
    written = dump(load(SPEC_PAGE))
    expected = [line.split(":")[0] for line in SPEC_PAGE.splitlines()[1:]]
    assert [line.split(":")[0] for line in written.splitlines()] == expected
    assert "  tags: [org-mode, validation]\n" in written
    assert "    feedback_signals: {positive: 3, negative: 0, neutral: 2}\n" in written
    assert "    - target: ENG-2026-0302-001\n      strength: 0.8\n" in written
    assert "  confidence: 9\n" in written


def test_defaults_are_left_out() -> None:
    assert to_mapping(Memory(id="ENG-1", statement="s")) == {
        "id": "ENG-1",
        "version": 2,
        "status": "active",
        "type": "behavioral",
        "scope": "global",
        "statement": "s",
    }


def test_two_fields_are_enough() -> None:
    assert from_mapping({"id": "ENG-1", "statement": "s"}) == Memory(id="ENG-1", statement="s")


def test_a_bare_list_a_plur_mapping_and_a_single_record_are_read_alike() -> None:
    record = "id: ENG-1\n{0}statement: s\n"
    bare = one("- " + record.format("  "))
    assert bare == one("engrams:\n  - " + record.format("    ")) == one(record.format(""))


@pytest.mark.parametrize("text", ["[]", "engrams: []\n", "# nothing yet\n[]\n", "--- []\n"])
def test_an_empty_list_holds_no_memories(text: str) -> None:
    assert load(text) == []


@table("text", ["", "# only a comment\n", "---\n", "12", "just words", "engrams:\n", "engrams: 3"])
def test_a_file_without_a_list_is_refused(text: str) -> None:
    assert refusal(text).startswith("f.yaml:1: the file ")


@table(
    "written",
    [
        "2026-01-31",
        '"2026-01-31"',
        "'2026-01-31'",
        "2026-01-31T00:00:00Z",
        "2026-01-31 00:00:00",
        "2026-01-31T02:00:00+02:00",
    ],
)
def test_dates_may_be_quoted_or_not_and_are_utc_without_a_zone(written: str) -> None:
    memory = one(f"id: a\nstatement: s\nmetadata: {{created: {written}}}\n")
    assert memory.created == datetime(2026, 1, 31, tzinfo=UTC)


def test_dates_that_another_yaml_reader_made_are_accepted() -> None:
    (data,) = yaml.safe_load(SPEC_PAGE)
    assert isinstance(data["metadata"]["created"], date)
    assert from_mapping(data) == one(SPEC_PAGE)


def test_midnight_is_written_as_a_plain_date_and_any_other_time_in_full() -> None:
    midnight = datetime(2026, 1, 31, tzinfo=UTC)
    written = to_mapping(Memory(id="a", statement="s", created=midnight, updated=midnight.replace(microsecond=1)))
    assert written["metadata"] == {"created": "2026-01-31"}
    assert written["updated"] == "2026-01-31T00:00:00.000001Z"


@table(
    ("written", "kept"),
    [
        ("12", "12"),
        ("3.10", "3.10"),
        ("1e3", "1e3"),
        ("0x1F", "0x1F"),
        ("010", "010"),
        ("true", "true"),
        ("Yes", "Yes"),
        ("2026-01-31", "2026-01-31"),
        ("99999999999999999999999999", "99999999999999999999999999"),
        (".inf", ".inf"),
    ],
)
def test_text_that_yaml_takes_for_something_else_stays_as_written(written: str, kept: str) -> None:
    memory = one(f"- id: {written}\n  statement: {written}\n  tags: [{written}, b]\n  data: {{n: 3.10}}\n")
    assert (memory.id, memory.statement, memory.tags) == (kept, kept, (kept, "b"))
    assert memory.metadata == {"n": 3.1}


def test_tags_may_be_one_line_with_commas() -> None:
    assert one("id: a\nstatement: s\ntags: style, tabs\n").tags == ("style", "tabs")


def test_null_means_not_given_for_an_optional_field() -> None:
    memory = one("id: a\nstatement: s\nrationale: null\ntags: ~\nactivation:\nmetadata:\nconfidence: null\n")
    assert memory == Memory(id="a", statement="s")


@table("confidence", range(1, 11))
def test_confidence_from_one_to_ten_is_kept_exactly(confidence: int) -> None:
    memory = one(f"id: a\nstatement: s\nconfidence: {confidence}\n")
    assert memory.confidence == confidence / 10
    assert to_mapping(memory).get("confidence", 5) == confidence


@table("confidence", [9.1, 5.7, 0.5, 9.99, 3.333333])
def test_a_fractional_confidence_is_written_as_it_was_read(confidence: float) -> None:
    assert to_mapping(from_mapping({"id": "a", "statement": "s", "confidence": confidence}))["confidence"] == confidence


def test_a_confidence_that_no_double_times_ten_can_say_is_written_as_digits() -> None:
    memory = Memory(id="a", statement="s", confidence=0.9694867473874466)
    assert to_mapping(memory)["confidence"] == "9.694867473874466"
    assert load(dump([memory])) == [memory]


def test_feedback_may_stand_at_the_top_as_plur_writes_it() -> None:
    memory = one("id: a\nstatement: s\nfeedback_signals: {positive: 2, negative: 1, neutral: 0, saved: 4}\n")
    assert memory.feedback == Feedback(2, 1, 0)
    assert load(dump([memory])) == [memory]
    assert memory.extra == {"feedback_signals": {"saved": 4}}


def test_when_a_field_stands_in_metadata_and_at_the_top_metadata_counts_and_both_are_kept() -> None:
    text = "id: a\nstatement: s\nsource: top\nmetadata: {source: inner}\n"
    memory = one(text)
    assert memory.source == "inner"
    assert to_mapping(memory)["source"] == "top"
    assert load(dump([memory.replace(source="")])) == [memory.replace(source="")]


def test_unknown_keys_are_kept_at_every_depth() -> None:
    text = """\
- id: a
  statement: s
  mine: {deep: [1, {x: ~}]}
  activation: {frequency: 2, mood: calm}
  associations: [{target: b, target_type: engram}]
  anchors: [{path: p, line: 3}]
  evidence: [{event: e, span: [1, 2], page: 9}]
  metadata: {created: 2026-01-31, editor: vim, feedback_signals: {positive: 1, saved: 2}}
"""
    memory = one(text)
    assert memory.extra == {
        "mine": {"deep": [1, {"x": None}]},
        "activation": {"mood": "calm"},
        "metadata": {"editor": "vim", "feedback_signals": {"saved": 2}},
    }
    assert memory.associations[0].extra == {"target_type": "engram"}
    rewritten = load_mappings(dump([memory]))[0]
    assert rewritten["activation"]["mood"] == "calm"
    assert rewritten["metadata"]["feedback_signals"] == {"positive": 1, "negative": 0, "neutral": 0, "saved": 2}
    assert rewritten["anchors"] == [{"path": "p", "line": 3}]
    assert rewritten["evidence"] == [{"event": "e", "span": [1, 2], "page": 9}]
    assert rewritten["mine"] == {"deep": [1, {"x": None}]}


@table(
    "extra",
    [
        {"statement": "other"},
        {"activation": {"frequency": 3}},
        {"activation": "strong"},
        {"metadata": {"source": "x"}},
        {"metadata": {"feedback_signals": {"positive": 1}}},
        {"created": "2026-01-31"},
        {"x": object()},
        {"x": {1: "a"}},
    ],
)
def test_an_extra_that_could_not_be_read_back_is_refused(extra: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=r"^ENG-1: "):
        to_mapping(Memory(id="ENG-1", statement="s", extra=extra))


@table(
    "wrong",
    [
        {"confidence": 1.5},
        {"confidence": float("nan")},
        {"importance": -0.1},
        {"emotional_weight": 11},
        {"created": datetime(2026, 1, 31)},
        {"activation": Activation(retrieval_strength=1.2)},
        {"metadata": {"when": datetime(2026, 1, 31, tzinfo=UTC)}},
        {"statement": 12},
    ],
)
def test_a_value_that_could_not_be_read_back_is_not_written(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=r"^ENG-1: "):
        to_mapping(Memory(**{"id": "ENG-1", "statement": "s", **wrong}))


@table(
    ("fields", "complaint"),
    [
        ("statement: s", "id: is missing"),
        ("id: a", "statement of a: is missing"),
        ("id: ''\n  statement: s", "id: must not be empty"),
        ("id: a\n  statement: [1, 2]", "statement of a: must be text"),
        ("id: a\n  statement: s\n  rationale: {b: 1}", "rationale of a: must be text"),
        ("id: a\n  statement: s\n  confidence: 90", "confidence of a: must be between 1 and 10, is 90"),
        ("id: a\n  statement: s\n  confidence: high", "confidence of a: must be between 1 and 10, is 'high'"),
        ("id: a\n  statement: s\n  confidence: [9]", "confidence of a: must be a number"),
        ("id: a\n  statement: s\n  status: done", "status of a: must be one of candidate, active"),
        ("id: a\n  statement: s\n  pinned: maybe", "pinned of a: must be true or false"),
        ("id: a\n  statement: s\n  activation: 3", "activation of a: must be a block of fields"),
        ("id: a\n  statement: s\n  activation: {frequency: 1.5}", "activation.frequency of a: must be a whole number"),
        ("id: a\n  statement: s\n  metadata: [x]", "metadata of a: must be a block of fields"),
        ("id: a\n  statement: s\n  metadata: {created: soon}", "metadata.created of a: must be a date such as"),
        ("id: a\n  statement: s\n  created: 2026", "created of a: must be a date or a time"),
        ("id: a\n  statement: s\n  associations: {a: 1}", "associations of a: must be a list"),
        ("id: a\n  statement: s\n  associations: [b]", "associations[0] of a: must be a block of fields"),
        ("id: a\n  statement: s\n  associations: [{strength: 1}]", "associations[0].target of a: is missing"),
        ("id: a\n  statement: s\n  evidence: [{event: e, span: 3}]", "evidence[0].span of a: must be two whole"),
        ("id: a\n  statement: s\n  data: text", "data of a: must be a block of fields"),
        ("id: a\n  statement: s\n  valid_from: 0001-01-01T00:00:00+05:00", "valid_from of a: is outside the calendar"),
    ],
)
def test_a_wrong_field_is_named_with_file_and_line(fields: str, complaint: str) -> None:
    said = refusal(f"- id: first\n  statement: fine\n- {fields}\n")
    assert said.startswith(f"f.yaml:3: {complaint}")


def test_a_record_of_a_newer_schema_is_refused_with_what_to_do() -> None:
    with pytest.raises(UnknownVersion, match=r"^f\.yaml:2: a has version 3.*update Engram"):
        load("engrams:\n  - {id: a, version: 3, statement: s, confidence: new-style}\n", where="f.yaml")


@table(
    ("text", "complaint"),
    [
        ("- id: a\n  id: b\n", "f.yaml:2:3: the key 'id' appears twice"),
        ("- id: a\n\tb: 1\n", "f.yaml:2:1: found a tab"),
        ('- id: "a\n', "f.yaml:2:1: found unexpected end of stream"),
        ("- id: a\n- b", "f.yaml:2: a record must be a block of fields, is 'b'"),
        ("- id: a\n---\n- id: b\n", "f.yaml:2:1: a second document begins"),
        ("- id: a\n  <<: {statement: s}\n", "f.yaml:2:3: merge keys"),
        ("- id: a\n  ? [x]\n  : 1\n", "f.yaml:2:5: a key must be plain text"),
        ("- id: !!python/object/apply:os.system ['exit 1']\n", "f.yaml:1:7: the tag !!python/object/apply:os.system"),
        ("- id: !secret a\n", "f.yaml:1:7: the tag !secret"),
        ('- {"id":!secret a}\n', "f.yaml:1:9: the tag !secret"),
        ("- !!set {id, b}\n", "f.yaml:1:3: the tag !!set"),
        ("- id: *nowhere\n- &x a\n", "f.yaml:1:7: "),
        ("- &x [*x]\n", "f.yaml:1:7: *x refers to no complete value"),
        ("- id: a\n  statement: half \ud83d\n", "f.yaml:2: the character U+D83D"),
        ("- id: a\n  statement: bell \x07\n", "f.yaml:2: the character U+0007"),
    ],
)
def test_what_is_not_a_memory_file_is_refused_with_line_and_column(text: str, complaint: str) -> None:
    assert refusal(text).startswith(complaint)


def test_a_few_aliases_are_read() -> None:
    first, second = load("- {id: a, statement: &s shared words}\n- {id: b, statement: *s}\n")
    assert first.statement == second.statement == "shared words"


def test_keys_that_yaml_takes_for_numbers_or_truth_values_stay_apart() -> None:
    assert one("id: a\nstatement: s\ndata: {1: x, true: y, null: z}\n").metadata == {"1": "x", "true": "y", "null": "z"}


def billion_laughs(levels: int) -> str:
    """Lists of ten references each to the list before."""
    lines = ["a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, levels)]
    return "\n".join(lines)


@table(
    ("bomb", "complaint"),
    [
        (billion_laughs(12), "with its aliases filled in"),
        ("id: &s " + "x" * 1_000_000 + "\nstatement: [" + ", ".join(["*s"] * 100_000) + "]", "with its aliases"),
        ("[" * 1_000_000, "nested deeper than 100 levels"),
        ("{a: " * 200_000, "nested deeper than 100 levels"),
        ("- " * 1_000_000, "nested deeper than 100 levels"),
        ("\n".join(" " * depth + "a:" for depth in range(2000)), "nested deeper than 100 levels"),
        ("x" * (8 * 1024 * 1024 + 1), "Engram reads at most 8,388,608"),
    ],
    ids=["laughs", "long-text", "brackets", "braces", "dashes", "indents", "size"],
)
def test_a_bomb_is_refused_at_once(bomb: str, complaint: str) -> None:
    assert complaint in refusal(bomb)


def test_line_separators_of_old_readers_are_kept_in_text_typed_by_hand() -> None:
    memory = one('id: a\nstatement: one\u2028two \x85three\nrationale: "p\u2029 q"\n')
    assert (memory.statement, memory.rationale) == ("one\u2028two \x85three", "p\u2029 q")


def test_a_byte_order_mark_and_windows_line_ends_do_no_harm() -> None:
    content = b"\xef\xbb\xbf- id: a\r\n  statement: |\r\n    one\r\n    two\r\n"
    assert load(content)[0].statement == "one\ntwo\n"


def test_bytes_that_are_not_utf8_are_refused_with_their_line() -> None:
    with pytest.raises(StoreCorrupt, match=r"^f\.yaml:2: not UTF-8 \(byte 0xe9\)"):
        load("- id: a\n  statement: café\n".encode("latin-1"), where="f.yaml")
