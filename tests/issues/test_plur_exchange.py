"""PLUR: imported as often as one likes without losing what either side changed, exported to a new directory."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from engram import Engram
from engram.capture import import_source
from engram.capture.import_known import ImportReport
from engram.dialects.plur import from_plur, read_plur, to_plur, write_plur
from engram.dialects.source import stated_source
from engram.model.memory import Memory
from tests.backends import Backend
from tests.clock import Clock
from tests.importing import imported

FIRST, SECOND, THIRD = "ENG-2026-11-15-001", "ENG-2026-11-15-002", "ENG-2026-11-15-003"


def entry(plur_id: str, statement: str, **fields: Any) -> dict[str, Any]:
    plain = {"id": plur_id, "status": "active", "type": "behavioral", "scope": "global", "statement": statement}
    return plain | fields


def keep(folder: Path, *entries: dict[str, Any]) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "engrams.yaml").write_text(yaml.safe_dump({"engrams": list(entries)}), "utf-8")
    return folder


def bring(mem: Engram, folder: Path) -> ImportReport:
    return imported(mem, import_source.read(folder), folder.name, by_person=True)


def ids(mem: Engram) -> set[str]:
    return {memory.id for memory in mem.list(status="any", limit=None)}


def by_words(mem: Engram, statement: str) -> Memory:
    (found,) = [memory for memory in mem.list(status="any", limit=None) if memory.statement == statement]
    return found


def test_importing_twice_is_importing_once_also_where_ids_clash(backend: Backend, tmp_path: Path) -> None:
    mem = backend.client()
    bring(mem, keep(tmp_path / "one", entry(FIRST, "Pods restart at night")))
    other = keep(tmp_path / "two", entry(FIRST, "Parcels are weighed twice"), entry(SECOND, "Labels are blue"))
    assert len(bring(mem, other).created) == 2
    before = ids(mem)
    assert len(before) == 3
    again = bring(mem, other)
    assert (again.created, again.updated, again.skipped, len(again.unchanged)) == ([], [], [], 2)
    keep(other, entry(FIRST, "Parcels are weighed three times"), entry(SECOND, "Labels are blue"))
    changed = bring(mem, other)
    assert (changed.created, len(changed.updated)) == ([], 1)
    assert ids(mem) == before
    assert by_words(mem, "Parcels are weighed three times").id == changed.updated[0]
    assert mem.get(FIRST).statement == "Pods restart at night"


def test_links_and_versions_of_two_stores_are_never_mixed(backend: Backend, tmp_path: Path) -> None:
    mem = backend.client()
    bring(mem, keep(tmp_path / "one", entry(FIRST, "Pods restart at night"), entry(SECOND, "The queue is Kafka")))
    link = {"target_type": "engram", "target": SECOND, "strength": 0.4, "type": "causal"}
    gone = {"target_type": "engram", "target": "ENG-2026-11-01-009", "strength": 0.4, "type": "causal"}
    done = bring(mem, keep(
        tmp_path / "two",
        entry(FIRST, "Labels are blue", relations={"superseded_by": [SECOND]}, associations=[link, gone]),
        entry(SECOND, "Labels are green", relations={"supersedes": [FIRST]}),
    ))  # fmt: skip
    assert len(done.created) == 2
    old, new = by_words(mem, "Labels are blue"), by_words(mem, "Labels are green")
    assert (old.status, old.superseded_by, new.supersedes) == ("superseded", new.id, (old.id,))
    assert {a.target for a in old.associations} & {FIRST, SECOND, "ENG-2026-11-01-009"} == set()
    assert new.id in {a.target for a in old.associations}
    assert {memory.id for memory in mem.lineage(old.id)} == {old.id, new.id}
    assert mem.get(SECOND).statement == "The queue is Kafka" and mem.get(SECOND).supersedes == ()
    assert bring(mem, tmp_path / "two").updated == []


def test_what_plur_changed_is_taken_over_and_what_was_changed_here_stays(backend: Backend, tmp_path: Path) -> None:
    mem = backend.client()
    stamp = "2026-11-15T01:53:08.495Z"
    folder = keep(tmp_path / "plur", entry(FIRST, "Labels are blue", created_at=stamp), entry(SECOND, "Pods restart"))
    bring(mem, folder)
    mem.update(FIRST, statement="Labels are red")
    mem.pin(SECOND)
    keep(
        folder,
        entry(FIRST, "Labels are blue", created_at=stamp, scope="user", tags=["print"],
              feedback_signals={"positive": 3, "negative": 0, "neutral": 0}),
        entry(SECOND, "Pods restart", status="retired"),
    )  # fmt: skip
    for _ in range(2):
        done = bring(mem, folder)
        assert done.skipped == []
        first, second = mem.get(FIRST), mem.get(SECOND)
        assert (first.statement, first.scope, first.tags, first.feedback.positive) == (
            "Labels are red",
            "user",
            ("print",),
            3,
        )
        assert (second.status, second.pinned) == ("retired", True)
    assert done.updated == []


@pytest.mark.parametrize("checksum", ["ba1ed94d7457", "fba03d94ecbe", "eba9876245e2", "ae5c3513e13e"])
def test_no_checksum_of_an_origin_makes_a_change_wait(
    backend: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, checksum: str
) -> None:
    monkeypatch.setattr(import_source, "origin_of_path", lambda kind, _: f"{kind}-{checksum}")
    mem = backend.client()
    folder = keep(tmp_path / "plur", entry(FIRST, "Labels are blue"))
    bring(mem, folder)
    keep(folder, entry(FIRST, "Labels are blue", tags=["print"]))
    assert bring(mem, folder).waiting == []
    assert mem.get(FIRST).tags == ("print",)


def test_where_both_sides_changed_ours_stays_and_is_reported(backend: Backend, tmp_path: Path) -> None:
    mem = backend.client()
    folder = keep(tmp_path / "plur", entry(FIRST, "Labels are blue"))
    bring(mem, folder)
    mem.update(FIRST, statement="Labels are red")
    keep(folder, entry(FIRST, "Labels are green"))
    ((what, reason),) = bring(mem, folder).notices
    assert what == FIRST and "statement changed both here and in the source" in reason
    assert mem.get(FIRST).statement == "Labels are red"


def test_what_is_superseded_there_is_not_in_force_here(tmp_path: Path) -> None:
    folder = keep(
        tmp_path / "plur",
        entry(FIRST, "Labels are blue", relations={"superseded_by": [SECOND]}),
        entry(SECOND, "Labels are green"),
        entry(THIRD, "Labels are sewn on", relations={"supersedes": ["ENG-2026-11-15-004"]}),
        entry("ENG-2026-11-15-004", "Labels are glued on"),
    )
    found = {memory.id: memory for memory in read_plur(folder)}
    assert {i: m.status for i, m in found.items()} == {
        FIRST: "superseded", SECOND: "active", THIRD: "active", "ENG-2026-11-15-004": "superseded",
    }  # fmt: skip
    assert found["ENG-2026-11-15-004"].superseded_by == THIRD
    versions = {i: (m.lineage, m.revision) for i, m in found.items()}
    assert versions[FIRST] == (FIRST, 1) and versions[SECOND] == (FIRST, 2)
    assert versions[THIRD] == ("ENG-2026-11-15-004", 2) and versions["ENG-2026-11-15-004"] == ("ENG-2026-11-15-004", 1)


def test_the_last_day_of_validity_is_included_there_and_here(clock: Clock) -> None:
    memory = from_plur(
        entry(FIRST, "Labels are blue", temporal={"learned_at": "2026-01-01", "valid_until": "2026-06-30"})
    )
    assert memory.valid_until is not None and memory.valid_until.isoformat() == "2026-07-01T00:00:00+00:00"
    assert to_plur(memory, today="2026-01-01")["temporal"]["valid_until"] == "2026-06-30"
    own = Memory(id=FIRST, statement="Labels are blue", valid_until=clock.now.replace(hour=0, minute=0, microsecond=0))
    assert to_plur(own, today="2026-01-01")["temporal"]["valid_until"] == "2026-02-28"
    assert from_plur(to_plur(own, today="2026-01-01")) == own
    forever = from_plur(entry(FIRST, "x", temporal={"learned_at": "2026-01-01", "valid_until": "9999-12-31"}))
    assert forever.valid_until is None or forever.valid_until.year == 9999


def test_relations_enter_the_graph(backend: Backend, tmp_path: Path) -> None:
    mem = backend.client()
    kinds = {"broader": "broader", "narrower": "narrower", "related": "related_to", "conflicts": "contradicts"}
    targets = {name: f"ENG-2026-11-15-10{n}" for n, name in enumerate(kinds)}
    bring(mem, keep(
        tmp_path / "plur",
        entry(FIRST, "Labels are blue", relations={name: [target] for name, target in targets.items()}),
        *(entry(target, f"Something {name} about labels") for name, target in targets.items()),
    ))  # fmt: skip
    reached = {one.memory.id: one.relations[0] for one in mem.traverse(FIRST)}
    assert reached == {targets[name]: kind for name, kind in kinds.items()}
    written = to_plur(mem.get(FIRST), today="2026-01-01")
    assert {name: written["relations"][name] for name in kinds} == {name: [target] for name, target in targets.items()}


@pytest.mark.parametrize("field", ["feedback_signals", "derivation_count", "frequency"])
def test_a_negative_counter_is_refused_with_its_line(tmp_path: Path, field: str) -> None:
    activation = {"retrieval_strength": 0.7, "storage_strength": 1, "frequency": -2, "last_accessed": "2026-01-01"}
    fields: dict[str, dict[str, Any]] = {
        "feedback_signals": {"feedback_signals": {"positive": 0, "negative": -4, "neutral": 0}},
        "derivation_count": {"derivation_count": -1},
        "frequency": {"activation": activation},
    }
    bad = fields[field]
    reading = read_plur(keep(tmp_path / "plur", entry(FIRST, "Labels are blue"), entry(SECOND, "Pods restart", **bad)))
    assert [memory.id for memory in reading] == [FIRST]
    ((where, reason),) = reading.quarantined
    assert field in reason and "at least 0" in reason
    assert "record 2, line 7" in where


def test_scopes_that_a_plain_question_does_not_see_are_reported(backend: Backend, tmp_path: Path) -> None:
    mem = backend.client()
    folder = keep(
        tmp_path / "plur",
        entry(FIRST, "Labels are blue", scope="agent:cursor"),
        entry(SECOND, "Pods restart", scope="agent:cursor"),
        entry(THIRD, "Parcels are weighed"),
    )
    assert bring(mem, folder).unseen == {"agent:cursor": 2}


def test_what_plur_can_carry_survives_the_way_out_and_back(tmp_path: Path, clock: Clock) -> None:
    with Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path, clock=clock) as mem:
        first = mem.add("Labels are blue", tags=["print"], confidence=0.8, domain="shop/print", rationale="cheap ink")
        second = mem.add(
            "Labels are sewn on", valid_until=clock.now.replace(hour=0, minute=0, microsecond=0, year=2027)
        )
        mem.relate(first.id, second.id, "related_to")
        mem.feedback(first.id, "positive")
        third = mem.revise(first.id, statement="Labels are green")
        memories = mem.list(status="any", limit=None)
        write_plur(tmp_path / "out", memories, now=clock(), actor="engram")
    with Engram.open(tmp_path / "other", cache=tmp_path / "cache", directory=tmp_path, clock=clock) as empty:
        assert len(bring(empty, tmp_path / "out").created) == 3
        for before in memories:
            after = empty.get(before.id)
            said = after.replace(
                aliases=before.aliases,
                source=stated_source(after),
                learned_by=before.learned_by,
                imported_at=None,
                extra={},
            )
            assert said == before
        assert empty.get(third.id).supersedes == (first.id,)


def test_two_directories_that_began_on_one_day_stay_two(backend: Backend, tmp_path: Path) -> None:
    mem, day = backend.client(), {"temporal": {"learned_at": "2026-11-15"}}
    one = keep(tmp_path / "one", entry(FIRST, "Labels are printed in blue", **day))
    two = keep(tmp_path / "two", entry(FIRST, "Parcels are weighed twice", **day))
    assert bring(mem, one).created == [FIRST]
    brought = bring(mem, two)
    assert (len(brought.created), brought.updated) == (1, [])
    assert mem.get(FIRST).statement == "Labels are printed in blue"
    # From then on each directory changes its own, even to what the other one says.
    keep(two, entry(FIRST, "Labels are printed in blue", scope="project:two", **day))
    assert bring(mem, two).updated == brought.created
    keep(one, entry(FIRST, "Labels are printed in green", **day))
    changed = bring(mem, one)
    assert (changed.created, changed.updated) == ([], [FIRST])
    assert {memory.statement for memory in mem.list(status="any")} == {
        "Labels are printed in green",
        "Labels are printed in blue",
    }
    again = bring(mem, one), bring(mem, two)
    assert [(done.created, done.updated, done.skipped) for done in again] == [([], [], [])] * 2


@pytest.mark.parametrize("until", ["0001-01-01T00:00:00.000Z", "0001-01-01", "0001-01-02", "2026-01-31T00:00:00.000Z"])
def test_an_end_at_the_edge_of_the_calendar_comes_back_as_it_was(until: str) -> None:
    temporal = {"learned_at": "2026-01-01", "valid_until": until}
    written = to_plur(from_plur(entry(FIRST, "x", temporal=temporal)), today="2026-01-01")
    assert written["temporal"] == temporal
