"""What could not be read back is never written, and what somebody else wrote so is named by its line."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from engram import Engram
from engram.dialects import engram_yaml
from engram.dialects.engram_yaml import from_mapping
from engram.dialects.source import ImportSource
from engram.model.arguments import MAX_DATA_DEPTH
from engram.model.errors import InvalidInput, StoreCorrupt
from engram.model.memory import Memory
from engram.store.files.log.journal import LAST_SEQ, AfterImage, Entry, decode, encode
from engram.store.records import readable_image
from tests.backends import Backend
from tests.homes import home_of
from tests.importing import imported
from tests.tables import table

NOW = datetime(2026, 11, 16, tzinfo=UTC)


def _nested(levels: int, *, lists: bool = False) -> Any:
    value: Any = "the innermost word"
    for _ in range(levels):
        value = [value] if lists else {"a": value}
    return value


def test_data_nested_over_100_levels_is_refused_everywhere(backend: Backend) -> None:
    mem = backend.client()
    kept = mem.add("Otters hold hands while they sleep")
    for levels, lists in ((101, False), (101, True), (150, True), (900, False), (50_000, False)):
        deep = {"k": _nested(levels, lists=lists)}
        with pytest.raises(InvalidInput, match="nested deeper"):
            mem.add("Beavers build dams in the river", metadata=deep)
        with pytest.raises(InvalidInput, match="nested deeper"):
            mem.update(kept.id, metadata=deep)
        with pytest.raises(InvalidInput, match="nested deeper"):
            mem.observe("talk", "user", "hello", payload=deep)
    assert mem.get(kept.id).metadata == {} and mem.store.events("talk") == []


@pytest.mark.parametrize("lists", [False, True])
@pytest.mark.parametrize("place", ["metadata", "extra"])
def test_the_deepest_data_that_is_accepted_reads_back(place: str, lists: bool) -> None:
    data = {"k": _nested(MAX_DATA_DEPTH - 1, lists=lists)}
    memory = Memory(id="ENG-1", statement="x")
    memory = memory.replace(metadata=data) if place == "metadata" else memory.replace(extra=data)
    readable_image(memory)
    assert engram_yaml.load(engram_yaml.dump([memory])) == [memory]


@pytest.fixture
def mem(tmp_path: Path) -> Iterator[Engram]:
    with Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path) as opened:
        yield opened


RECORDS: list[dict[str, Any]] = [
    {"id": "ENG-2026-1116-701", "statement": "Otters hold hands", "activation": {"seq": 2**63}},
    {"id": "ENG-2026-1116-702", "statement": "Otters sleep afloat", "revision": 2**70},
    {"id": "ENG-2026-1116-703", "statement": "Otters use stones", "data": _nested(120)},
    {"id": "ENG-2026-1116-704", "statement": "Otters eat crabs", "associations": [{"target": "x", "y": _nested(120)}]},
]


def test_an_import_skips_what_could_not_be_read_back_and_takes_the_rest(mem: Engram) -> None:
    fine = {"id": "ENG-2026-1116-705", "statement": "Otters have pockets"}
    numbered = {"id": 20261116, "statement": "Otters are mustelids", "associations": [{"target": 7}], "supersedes": [3]}
    reading = ImportSource()
    for record in [*RECORDS, fine, numbered]:
        try:
            reading.found.append((str(record["id"]), from_mapping(record)))
        except InvalidInput as error:
            reading.skipped.append((str(record["id"]), str(error)))
    done = imported(mem, reading, "theirs.json", by_person=True)
    left_out = [what for what, why in done.skipped if "imported without that" not in why]
    assert {*left_out} == {record["id"] for record in RECORDS}
    assert mem.get("ENG-2026-1116-705").statement == "Otters have pockets"
    assert mem.get("20261116").statement == "Otters are mustelids"
    mem.rebuild_index()
    assert mem.upkeep.sync().problems == [] and len(mem.list()) == 2


def _entry(**given: Any) -> dict[str, Any]:
    change = {"id": "ENG-1", "after": {"id": "ENG-1", "statement": "x"}} | given.pop("change", {})
    return {"seq": 1, "at": NOW.isoformat(), "op": "add", "actor": "human", "changes": [change]} | given


UNREADABLE = {
    "a number beyond 64 bits": _entry(seq=2**63),
    "a number below 1": _entry(seq=0),
    "a number that is text": _entry(seq="7"),
    "an id that is a number": _entry(change={"id": 7}),
    "an id that is empty": _entry(change={"id": ""}),
    "an image that is a list": _entry(change={"after": [1]}),
}


@table("kind", UNREADABLE)
def test_a_journal_line_that_the_index_could_not_hold_is_refused(kind: str) -> None:
    with pytest.raises(ValueError):
        decode(UNREADABLE[kind])


@pytest.mark.parametrize("kind", UNREADABLE)
def test_a_store_with_such_a_line_names_it_instead_of_failing(tmp_path: Path, kind: str) -> None:
    home = tmp_path / "home"
    (home / "journal").mkdir(parents=True)
    (home / "store.json").write_text(json.dumps({"format": 1, "id": "f0"}))
    (home / "journal" / "2026-11.jsonl").write_text("\n" + json.dumps(UNREADABLE[kind]) + "\n")
    with pytest.raises(StoreCorrupt, match=r"2026-11\.jsonl:2: "):
        Engram.open(home, cache=tmp_path / "cache", directory=tmp_path)


WRITES = {
    "the number": Entry(LAST_SEQ + 1, NOW, "add", "human", "", (AfterImage("ENG-1", {}),)),
    "the id": Entry(1, NOW, "add", "human", "", (AfterImage(7, {}),)),  # type: ignore[arg-type]
    "the file": Entry(1, NOW, "add", "human", "", (AfterImage("ENG-1", {}, "../x.yaml"),)),
}


@pytest.mark.parametrize("what", WRITES)
def test_a_journal_line_that_could_not_be_read_back_is_not_written(what: str) -> None:
    with pytest.raises(InvalidInput, match="nothing was written"):
        encode(WRITES[what])


def test_a_ledger_line_that_the_index_could_not_hold_costs_only_its_ledger(mem: Engram, tmp_path: Path) -> None:
    mem.observe("talk", "user", "hello")
    mem.observe("other", "user", "good morning")
    path = home_of(mem).ledger / "talk.jsonl"
    mem.close()
    line = json.loads(path.read_bytes())
    path.write_text(json.dumps({**line, "seq": 2**70, "id": 7}) + "\n")
    with Engram.open(tmp_path / "home", cache=tmp_path / "another", directory=tmp_path) as again:
        assert [event.content for event in again.store.events("other")] == ["good morning"]
        assert any("talk.jsonl:1: not an event" in warning for warning in again.store.warnings)
