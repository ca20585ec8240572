"""Spec 3's TOML files: read, written, and migrated from both layouts before."""

import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.client import Engram
from engram.dialects.feedback_toml import as_exported, read_toml, render_toml
from engram.model.errors import InvalidInput
from engram.model.memory import Memory, render_form
from engram.model.types import FORM_PARTS
from tests.tables import table

README = """schema_version = 2
type = "feedback"
source = "agent"
situation = "implementing new features"
[content]
behavior = "skipped writing tests before implementation"
impact = "bugs found late, rework required"
action = "always write failing test first (TDD red phase)"
created_at = "2026-04-14T12:00:00Z"
updated_at = "2026-04-15T12:00:00Z"
"""
WRITTEN = """schema_version = 2
type = "fact"
source = "human"
situation = "building engram"
created_at = "2026-04-14T12:00:00Z"
updated_at = "2026-04-14T12:00:00Z"

[content]
  subject = "engram"
  predicate = "uses"
  object = "targ \\"build\\" system\\nfor all"
"""
text = st.text(st.characters(codec="utf-8"), min_size=1).filter(lambda value: value.strip() == value)
times = st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1)).map(lambda at: at.replace(microsecond=0, tzinfo=UTC))


def forms() -> st.SearchStrategy[dict[str, str]]:
    return st.sampled_from(list(FORM_PARTS.values())).flatmap(
        lambda parts: st.fixed_dictionaries(dict.fromkeys(parts, text))
    )


@given(forms(), text, times, times, st.sampled_from(["human", "agent"]))
def test_every_memory_in_a_form_comes_back_from_its_file(
    form: dict[str, str], situation: str, created: datetime, updated: datetime, source: str
) -> None:
    kind = "feedback" if "action" in form else "fact"
    memory = Memory(
        "",
        render_form(form),
        type=kind,
        form=form,
        situation=situation,
        created=created,
        updated=updated,
        source=source,
    )
    written = render_toml(memory)
    found, notes = read_toml(written, "feedback/x")
    assert tomllib.loads(written)["content"] == form
    assert (found.form, found.situation, found.created, found.updated, found.source, notes) == (
        form, situation, created, updated, source, [],
    )  # fmt: skip
    assert render_toml(found) == written


@given(st.dictionaries(text, st.recursive(text | st.integers(-(2**53), 2**53) | st.booleans(), st.lists), max_size=3))
def test_keys_of_another_program_are_kept(unknown: dict[str, Any]) -> None:
    known = read_toml(WRITTEN, "facts/x")[0]
    memory = known.replace(extra={"toml": {f"x-{key}": value for key, value in unknown.items()}})
    assert as_exported(memory).extra == (memory.extra if unknown else {})


def test_keys_of_another_program_inside_the_content_are_kept() -> None:
    content = {"subject": "engram", "predicate": "uses", "object": "targ", "extra": "kept", "more": {"depth": 2}}
    lines = 'subject = "engram"\npredicate = "uses"\nobject = "targ"\nextra = "kept"\nmore.depth = 2\n'
    memory, _ = read_toml(f'type = "fact"\nsituation = "building"\n[content]\n{lines}', "facts/building")
    assert tomllib.loads(render_toml(memory))["content"] == content


def test_top_level_keys_come_first_and_content_last() -> None:
    assert render_toml(read_toml(WRITTEN, "facts/building-engram")[0]) == WRITTEN


def test_times_inside_content_are_read_and_move_to_the_top() -> None:
    memory, notes = read_toml(README, "feedback/implementing-new-features")
    assert (memory.created, memory.updated, notes) == (
        datetime(2026, 4, 14, 12, tzinfo=UTC), datetime(2026, 4, 15, 12, tzinfo=UTC), [],
    )  # fmt: skip
    assert memory.form == {part: tomllib.loads(README)["content"][part] for part in FORM_PARTS["feedback"]}
    assert render_toml(memory).index("created_at") < render_toml(memory).index("[content]")


@table(
    ("keys", "form"),
    [
        ('principle = "Test first"\nanti_pattern = "Coded first"', {"behavior": "Coded first", "action": "Test first"}),
        ('principle = "Test first"\ntitle = "t"', {"action": "Test first"}),
        ('content = "Never push to main"', {"action": "Never push to main"}),
        ('behavior = "b"\nimpact = "i"\naction = "a"\nconfidence = "B"', {"behavior": "b", "impact": "i", "action": "a"}),
        ('content = "engram uses targ for builds"', {"subject": "engram", "predicate": "uses", "object": "targ for builds"}),
        ('content = "The API listens on port 8080."', {"subject": "The API", "predicate": "listens on", "object": "port 8080"}),
        (
            'type = "fact"\nsurfaced_count = 3\nproject_scoped = true\n[content]\nsubject = "a"\npredicate = "is"\nobject = "b"',
            {"subject": "a", "predicate": "is", "object": "b"},
        ),
    ],
)  # fmt: skip
def test_a_file_of_an_earlier_layout_is_classified(keys: str, form: dict[str, str]) -> None:
    memory, _ = read_toml(keys, "memories/x")
    assert (memory.form, memory.extra) == (form, {})


@pytest.mark.parametrize("content", ["Interesting. Many things happened.", "Speed", "Hello world", ""])
def test_an_unclear_file_is_reported_and_not_guessed(content: str) -> None:
    with pytest.raises(InvalidInput, match="unclear"):
        read_toml(f'title = "t"\ncontent = "{content}"', "memories/x")


@pytest.mark.parametrize(
    ("keys", "source"),
    [
        ('principle = "x"\nconfidence = "A"', "human"),
        ('principle = "x"\ncontent = \'User: "never do that again"\'', "human"),
        ('principle = "x"\nconfidence = "B"', "agent"),
        ('principle = "x"\nsource = "human"\nconfidence = "C"', "human"),
    ],
)
def test_a_person_said_what_is_rated_a_or_quoted(keys: str, source: str) -> None:
    assert read_toml(keys, "memories/x")[0].source == source


def test_what_is_missing_in_a_form_is_named() -> None:
    _, notes = read_toml('type = "fact"\nsituation = "deploying"\n[content]\nsubject = "the api"\n', "facts/x")
    assert notes == ["has no predicate, object; `engram update --name …` adds what is missing"]


def test_what_is_missing_in_an_earlier_layout_is_named() -> None:
    _, notes = read_toml('title = "Testing"\nprinciple = "Test first"\nanti_pattern = "Coded first"', "memories/x")
    assert len(notes) == 2 and "has no impact" in notes[0] and "title" in notes[1]


@table(
    ("broken", "message"),
    [
        ("not toml [", "not TOML"),
        ('type = "rule"\n[content]\naction = "x"', "unknown type"),
        ("schema_version = 3\n[content]", "newer"),
        ('type = "fact"\n[content]\naction = "x"', "none of"),
        ('type = "fact"\nsituation = 7\n[content]\nobject = "x"', "must be text"),
        ("a = " + "[" * 5_000, "nested deeper"),
    ],
)
def test_a_damaged_file_says_what_is_wrong(broken: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        read_toml(broken, "x")


def test_a_time_that_is_none_is_named_and_left_out() -> None:
    memory, notes = read_toml(WRITTEN.replace('updated_at = "2026-04-14T12:00:00Z"', 'updated_at = "soon"'), "x")
    assert memory.updated is None and ["updated_at" in note for note in notes] == [True]


# -- directories


def laid_out(folder: Path) -> dict[str, bytes]:
    files = {
        "memory/feedback/implementing-new-features.toml": README,
        "memory/facts/building-engram.toml": WRITTEN,
        "memories/tdd.toml": 'title = "after the build failed"\nprinciple = "Run the linter before each commit"\nkeywords = ["x"]',
        "memories/unclear.toml": 'content = "Interesting. Many things."',
        "memories/broken.toml": "not toml [",
        "memories/notes.txt": "not a memory",
    }  # fmt: skip
    for name, words in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(words, "utf-8")
    return contents(folder)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def mem(tmp_path: Path) -> Engram:
    return Engram.open(tmp_path / "home", cache=tmp_path / "cache")


def test_all_layouts_of_a_directory_are_imported_and_nothing_of_it_is_touched(mem: Engram, tmp_path: Path) -> None:
    before = laid_out(tmp_path / "old")
    done = mem.import_memories(tmp_path / "old", actor="human")
    assert contents(tmp_path / "old") == before
    assert {memory.name: memory.type for memory in mem.list(status="any")} == {
        "implementing-new-features": "feedback", "building-engram": "fact", "tdd": "feedback",
    }  # fmt: skip
    assert sorted(what for what, _ in done.skipped) == ["memories/broken.toml", "memories/unclear.toml"]
    assert ["hindsight" in notice for _, notice in done.notices].count(True) == 1


def test_importing_twice_changes_nothing(mem: Engram, tmp_path: Path) -> None:
    laid_out(tmp_path / "old")
    mem.import_memories(tmp_path / "old", actor="human")
    again = mem.import_memories(tmp_path / "old", actor="human")
    assert (again.created, again.updated, len(again.unchanged)) == ([], [], 3)


def test_a_change_in_a_file_is_adopted(mem: Engram, tmp_path: Path) -> None:
    laid_out(tmp_path / "old")
    mem.import_memories(tmp_path / "old", actor="human")
    file = tmp_path / "old" / "memory" / "facts" / "building-engram.toml"
    file.write_text(WRITTEN.replace("targ", "make"), "utf-8")
    assert len(mem.import_memories(tmp_path / "old", actor="human").updated) == 1
    assert mem.get("building-engram").form["object"].startswith("make")


def test_a_single_file_is_recognised(mem: Engram, tmp_path: Path) -> None:
    laid_out(tmp_path / "old")
    mem.import_memories(tmp_path / "old" / "memory" / "facts" / "building-engram.toml", actor="human")
    assert [memory.name for memory in mem.list()] == ["building-engram"]


def test_a_store_of_facts_alone_is_read(mem: Engram, tmp_path: Path) -> None:
    laid_out(tmp_path / "old")
    for file in (tmp_path / "old" / "memory" / "feedback").iterdir():
        file.unlink()
    mem.import_memories(tmp_path / "old" / "memory", actor="human")
    assert [memory.name for memory in mem.list()] == ["building-engram"]


def test_a_link_out_of_the_directory_is_not_followed(mem: Engram, tmp_path: Path) -> None:
    laid_out(tmp_path / "old")
    (tmp_path / "secret.toml").write_text(WRITTEN.replace("engram", "secret"), "utf-8")
    (tmp_path / "old" / "memory" / "facts" / "link.toml").symlink_to(tmp_path / "secret.toml")
    done = mem.import_memories(tmp_path / "old", actor="human")
    assert "memory/facts/link.toml" in {what for what, _ in done.skipped}
    assert "secret" not in "".join(memory.statement for memory in mem.list(status="any"))


def test_the_doctor_says_how_to_import_what_is_next_to_the_store(mem: Engram, tmp_path: Path) -> None:
    assert [finding for finding in mem.doctor().findings if finding.code == "other tools"] == []
    laid_out(tmp_path / "home")
    (found,) = [finding for finding in mem.doctor().findings if finding.code == "other tools"]
    assert (found.level, "--format toml" in found.fix) == ("advice", True)
    mem.import_memories(tmp_path / "home", actor="human", format="toml")
    assert "building-engram" in {memory.name for memory in mem.list()}
