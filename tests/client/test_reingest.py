"""A document read again: what it states stands, what it no longer states does not, and what its owner decided stays decided."""

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from engram import Engram
from engram.capture.documents import facts
from engram.capture.documents.ingest import REREAD_OPERATION, LongInput
from engram.capture.documents.source import Version, Versions
from tests.clock import Clock

RENT = "The tenant shall pay 1,450 euros on the first day of each month."
LATE = "A late payment costs 2 % per week."
NOTICE = "Either party must give notice within 90 days."
PETS = "The tenant must not keep reptiles."
LEASE = f"# Lease\n\n## 1. Rent\n\n{RENT} {LATE}\n\n## 2. Notice\n\n{NOTICE}\n\n## 3. Pets\n\n{PETS}\n"
SHORTER = NOTICE.replace("90 days", "30 days")


@pytest.fixture
def lease(tmp_path: Path) -> Path:
    path = tmp_path / "docs" / "lease.md"
    path.parent.mkdir()
    path.write_text(LEASE)
    return path


def taken(mem: Engram, path: Path, text: str = "", **options: Any) -> LongInput:
    if text:
        path.write_text(text)
    return mem.ingest(path, **{"max_chunk_tokens": 60, "scope": "global", **options})[0]


def in_force(mem: Engram) -> list[str]:
    return sorted(memory.statement for memory in mem.list())


def fact(mem: Engram, report: LongInput, words: str) -> str:
    return next(i for i in report.facts if words in mem.get(i).statement)


# -- a file that changed


@pytest.mark.parametrize("same_task", [True, False])
def test_what_a_changed_file_no_longer_states_is_out_of_force_and_said_to_be(
    mem: Engram, lease: Path, same_task: bool
) -> None:
    first = taken(mem, lease)
    gone = fact(mem, first, "90 days")
    second = taken(mem, lease, LEASE.replace("90", "30"), task=first.task if same_task else "")
    assert in_force(mem) == sorted([RENT, LATE, SHORTER, PETS])
    assert second.superseded == (gone,)
    (warning,) = second.warnings
    assert "lease.md changed: 1 fact was superseded" in warning
    assert gone in warning
    assert mem.get(gone).status == "superseded"
    assert mem.history(gone)[-1].op == REREAD_OPERATION
    assert "no longer states" in mem.history(gone)[-1].reason
    assert second.manifest.data["superseded"] == 1


def test_what_is_found_again_is_the_same_fact_at_its_new_place(mem: Engram, lease: Path) -> None:
    first = taken(mem, lease)
    kept = fact(mem, first, "reptiles")
    text = "# Foreword\n\nBy now.\n\n" + LEASE.replace("90", "30").replace("must not keep", "must not\nkeep")
    second = taken(mem, lease, text)
    assert kept in second.facts
    cited = mem.cite(kept)
    assert cited.state == "verified"
    assert cited.quote == text[slice(*cited.span)]
    assert len(mem.get(kept).evidence) == 1


def test_citations_of_the_version_before_say_that_it_changed(mem: Engram, lease: Path) -> None:
    first = taken(mem, lease)
    chunk = next(e for e in mem.list_events(first.task) if "90 days" in e.content)
    taken(mem, lease, LEASE.replace("90", "30"), task=first.task)
    for ref in (chunk.id, fact_before(mem, first)):
        assert mem.cite(ref).state == "changed"
        assert "changed since it was ingested" in mem.cite(ref).reason


def fact_before(mem: Engram, first: LongInput) -> str:
    return next(i for i in first.facts if mem.get(i).status == "superseded")


def test_undo_brings_one_fact_back_and_a_later_version_leaves_it(mem: Engram, lease: Path) -> None:
    first = taken(mem, lease)
    gone, other = fact(mem, first, "90 days"), fact(mem, first, "reptiles")
    without = LEASE.replace("90", "30").replace(PETS, "")
    assert set(taken(mem, lease, without).superseded) == {gone, other}
    mem.undo(gone)
    assert mem.get(gone).status == "active"
    assert mem.get(gone).valid_until is None
    assert mem.get(other).status == "superseded"
    assert taken(mem, lease, without + "\nMore words.\n").superseded == ()
    assert mem.get(gone).status == "active"


def test_what_comes_back_into_the_text_is_in_force_again(mem: Engram, lease: Path, clock: Clock) -> None:
    taken(mem, lease)
    clock.forward(days=1)
    taken(mem, lease, LEASE.replace("90", "30"))
    between = clock()
    clock.forward(days=1)
    again = taken(mem, lease, LEASE)
    assert in_force(mem) == sorted([RENT, LATE, NOTICE, PETS])
    assert [mem.get(i).statement for i in again.superseded] == [SHORTER]
    clock.forward(days=1)
    then = {hit.text for hit in mem.search("notice within days", as_of=between, limit=20)}
    assert SHORTER in then
    assert NOTICE not in then


def test_a_sentence_that_goes_on_otherwise_is_another(mem: Engram, lease: Path) -> None:
    taken(mem, lease, "# Fees\n\n- The fee must be 10 euros\n- Dogs must be leashed\n")
    second = taken(mem, lease, "# Fees\n\n- The fee must be 10 euros per day\n- Dogs must be leashed\n")
    assert [mem.get(i).statement for i in second.superseded] == ["The fee must be 10 euros"]
    assert in_force(mem) == ["Dogs must be leashed", "The fee must be 10 euros per day"]


def test_what_is_still_said_stays_though_fewer_facts_are_asked_for(mem: Engram, lease: Path) -> None:
    first = taken(mem, lease)
    second = taken(mem, lease, LEASE.replace("90", "30"), max_facts_per_chunk=0)
    assert in_force(mem) == sorted([RENT, LATE, PETS])
    assert set(second.facts) == set(first.facts) - set(second.superseded)
    assert {mem.cite(i).state for i in second.facts} == {"verified"}


def test_reading_an_unchanged_file_again_changes_nothing(mem: Engram, lease: Path) -> None:
    first = taken(mem, lease)
    before = {m.id: (m.evidence, m.updated) for m in mem.list(status="any")}
    again = taken(mem, lease)
    assert again.facts == first.facts
    assert again.warnings == ()
    assert {m.id: (m.evidence, m.updated) for m in mem.list(status="any")} == before


def test_a_reading_for_no_facts_forgets_none_of_those_before(mem: Engram, lease: Path) -> None:
    first = taken(mem, lease)
    assert set(taken(mem, lease, max_facts_per_chunk=0).facts) == set(first.facts)
    assert len(taken(mem, lease, LEASE.replace("90", "30")).superseded) == 1
    assert NOTICE not in in_force(mem)


def test_facts_of_another_file_and_of_people_stay(mem: Engram, lease: Path) -> None:
    mem.remember(PETS, scope="global")
    other = lease.with_name("rules.md")
    other.write_text(f"# Rules\n\n{NOTICE}\n")
    taken(mem, lease)
    taken(mem, other)
    second = taken(mem, lease, f"# Lease\n\n{RENT} {LATE}\n")
    assert second.superseded == ()
    assert in_force(mem) == sorted([RENT, LATE, NOTICE, PETS])
    shared = next(m for m in mem.list() if m.statement == NOTICE)
    assert (mem.cite(shared.id).state, mem.cite(shared.id).title) == ("verified", "rules.md")
    assert [mem.get(i).statement for i in taken(mem, other, "# Rules\n\nNone.\n").superseded] == [NOTICE]


@pytest.mark.parametrize("word", ["pin", "verify", "update"])
def test_what_the_owner_made_their_own_stays_in_force(mem: Engram, lease: Path, word: str) -> None:
    first = taken(mem, lease)
    known = fact(mem, first, "90 days")
    if word == "pin":
        mem.pin(known)
    elif word == "verify":
        mem.verify(known, actor="human")
    else:
        mem.update(known, statement="Notice takes three months")
    second = taken(mem, lease, LEASE.replace("90", "30"))
    assert second.superseded == ()
    assert mem.get(known).status == "active"
    assert known in second.warnings[0]


def test_another_scope_keeps_its_own_version(mem: Engram, lease: Path) -> None:
    taken(mem, lease, scope="project:a")
    assert taken(mem, lease, LEASE.replace("90", "30"), scope="project:b").superseded == ()
    assert NOTICE in {m.statement for m in mem.list(scope="project:a")}


def test_a_text_without_a_file_has_no_version_before(mem: Engram) -> None:
    task = mem.start_task("Read").id
    mem.record_long_input(task, LEASE, title="mail", max_chunk_tokens=60)
    assert mem.record_long_input(task, f"# Mail\n\n{SHORTER}\n", title="mail").superseded == ()
    assert NOTICE in in_force(mem)


def test_a_reading_broken_off_leaves_nothing_in_force_that_the_next_version_does_not_state(
    mem: Engram, lease: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = Versions.append

    def crash(versions: Versions, version: Version, now: datetime) -> None:
        if version.facts is not None:
            raise KeyboardInterrupt
        append(versions, version, now)

    with monkeypatch.context() as broken:
        broken.setattr(Versions, "append", crash)
        with pytest.raises(KeyboardInterrupt):
            taken(mem, lease)
    assert NOTICE in in_force(mem)
    second = taken(mem, lease, LEASE.replace("90", "30"))
    assert in_force(mem) == sorted([RENT, LATE, SHORTER, PETS])
    assert len(second.superseded) == 1


# -- what the owner decided


def test_what_was_forgotten_does_not_come_back_however_the_document_does(mem: Engram, lease: Path) -> None:
    first = taken(mem, lease)
    gone = fact(mem, first, "90 days")
    mem.forget(gone)
    copy = lease.with_name("copy.md")
    copy.write_text(LEASE)
    reports = [
        taken(mem, lease, task=first.task),
        taken(mem, lease),
        taken(mem, lease, LEASE + "\nMore words.\n"),
        taken(mem, copy),
        mem.record_long_input(first.task, LEASE, title="given", max_chunk_tokens=60),
    ]
    for report in reports:
        assert report.kept_out == (gone,)
        assert "you forgot or corrected" in report.warnings[-1]
    assert in_force(mem) == sorted([RENT, LATE, PETS])
    mem.undo(gone)
    assert taken(mem, copy).kept_out == ()
    assert NOTICE in in_force(mem)


def test_what_was_corrected_does_not_come_back(mem: Engram, lease: Path) -> None:
    first = taken(mem, lease)
    mem.revise(fact(mem, first, "90 days"), statement="Notice takes three months")
    mem.update(fact(mem, first, "reptiles"), statement="Only snakes are forbidden")
    for report in (taken(mem, lease), taken(mem, lease, LEASE + "\nMore words.\n"), taken(mem, lease, task=first.task)):
        assert report.superseded == ()
    assert in_force(mem) == sorted([RENT, LATE, "Notice takes three months", "Only snakes are forbidden"])


# -- limits


def test_facts_beyond_the_limit_of_a_chunk_are_counted(mem: Engram) -> None:
    text = "# Rules\n\n" + " ".join(f"Room {n} must be cleaned within {n} days." for n in range(2, 12))
    task = mem.start_task("Read").id
    report = mem.record_long_input(task, text, max_facts_per_chunk=4)
    assert (len(report.facts), report.facts_left_out) == (4, 6)
    assert "6 more facts were not stored (maximum 4 per chunk" in report.warnings[0]


def test_facts_beyond_the_limit_of_a_document_are_counted_and_its_end_has_its_share(
    files: Engram, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(facts, "MAX_DOCUMENT_FACTS", 5)
    text = "".join(f"# Rule {n}\n\nRoom {n} must be cleaned within {n} days.\n\n" for n in range(10, 40))
    task = files.start_task("Read").id
    report = files.record_long_input(task, text, max_chunk_tokens=20)
    said = [files.get(i).statement for i in report.facts]
    assert len(said) == 5
    assert "Room 34" in said[-1]
    assert report.facts_left_out == 25
    assert "25 more facts were not stored" in report.warnings[-1]


# -- answering from a file that was read twice


def test_an_answer_quotes_the_latest_version_of_a_file(mem: Engram, lease: Path) -> None:
    first = taken(mem, lease)
    taken(mem, lease, LEASE.replace("90", "30"), task=first.task)
    found = mem.build_long_input_context(first.task, "How long before must notice be given?", source_chunk_limit=3)
    assert "30 days" in found.text
    assert "90 days" not in found.text
    assert len(found.citations) == 3
    assert {citation.state for citation in found.citations} == {"unchecked"}
    assert "unchecked)" in found.text
    assert "verified" not in found.text


def test_a_task_that_has_only_the_version_before_is_told_so(mem: Engram, lease: Path) -> None:
    first = taken(mem, lease)
    second = taken(mem, lease, LEASE.replace("90", "30"))
    found = mem.build_long_input_context(first.task, "notice", source_chunk_limit=1)
    assert "90 days" in found.text
    assert found.citations[0].state == "changed"
    assert second.task in found.citations[0].reason
    assert "changed: " in found.text


# -- documents that lie side by side


@pytest.fixture
def contracts(mem: Engram, tmp_path: Path) -> Path:
    """Two contracts in a folder, for a memory that knows clauses."""
    mem._policy = "legal"
    folder = tmp_path / "contracts"
    folder.mkdir()
    (folder / "acme.md").write_text("# Acme\n\nThe term is two years.\n\nThe notice period is 30 days.\n")
    (folder / "beta.md").write_text("# Beta\n\nThe term is five years.\n\nThe notice period is 60 days.\n")
    return folder


def test_the_clauses_of_one_contract_do_not_replace_anothers(mem: Engram, contracts: Path) -> None:
    mem.ingest(contracts, scope="global")
    assert in_force(mem) == [
        "The notice period is 30 days.", "The notice period is 60 days.", "The term is five years.", "The term is two years.",
    ]  # fmt: skip
    assert mem.list(status="superseded") == []
    keys = {memory.conflict_key for memory in mem.list()}
    assert len(keys) == 4
    assert {key.partition("@document:")[0] for key in keys} == {"term", "notice_period"}


def test_a_contract_read_again_still_replaces_its_own_clause(mem: Engram, contracts: Path) -> None:
    mem.ingest(contracts, scope="global")
    acme = contracts / "acme.md"
    again = taken(mem, acme, acme.read_text().replace("two years", "three years"))
    (old,) = mem.list(status="superseded")
    assert again.superseded == (old.id,)
    assert old.statement == "The term is two years."
    assert mem.get(old.superseded_by).statement == "The term is three years."
    assert "The term is five years." in in_force(mem)


def test_a_clause_of_two_contracts_outlives_the_change_of_one(mem: Engram, contracts: Path) -> None:
    acme, beta = contracts / "acme.md", contracts / "beta.md"
    beta.write_text(acme.read_text().replace("Acme", "Beta"))
    mem.ingest(contracts, scope="global")
    for path in (acme, beta):
        taken(mem, path, path.read_text().replace("two years", "three years"))
        standing = (
            {"The term is two years.", "The term is three years."} if path == acme else {"The term is three years."}
        )
        assert {said for said in in_force(mem) if "term" in said} == standing


def test_a_fact_of_a_document_worded_anew_keeps_to_its_document(mem: Engram) -> None:
    key = "residence:user@document:0123456789abcdef"
    home = mem.add("The user lives in Berlin", conflict_key=key)
    assert mem.update(home.id, statement="The user lives in Rome").conflict_key == key
    assert mem.update(home.id, statement="The sky is wide").conflict_key == ""
