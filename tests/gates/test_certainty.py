"""What no probability decides: statements that look alike stay apart, and a passing remark outdates nothing."""

from datetime import UTC, datetime

import pytest

from engram.gates.certainty import adds_nothing, may_outdate
from engram.gates.neighbourhood import Neighbourhood
from engram.gates.proposal import Conflict, Neighbour, Proposal
from engram.model.memory import Memory
from engram.text.content_hash import content_hash
from engram.text.tokens import tokens
from tests.relations import SAME, SURE, choose


def near(old: Memory, new: Memory, cosine: float = 0.99) -> Neighbourhood:
    proposal = Proposal(new, False, content_hash(new.statement), tuple(tokens(new.statement)))
    return Neighbourhood(proposal, [Neighbour(old, cosine)])


def conflict(old: Memory, new: Memory) -> Conflict | None:
    return next(iter(near(old, new).conflicts()), None)


def known(statement: str) -> Memory:
    return Memory("ENG-2026-0101-001", statement, source="human")


def said(statement: str) -> Memory:
    return Memory("", statement, source="human")


APART = [
    ("Мой брат живёт в Москве.", "Моя сестра живёт в Москве."),
    ("会議は火曜日です。", "会議は木曜日です。"),
    ("Mi hermano vive en Lima.", "Mi hermana vive en Lima."),
    ("The service reads the queue.", "The service writes the queue."),
    ("The user rents the flat.", "The user owns the flat."),
    ("The api returns xml.", "The api accepts xml."),
    ("Write x = 1 in the file.", "Write x == 1 in the file."),
    ("Use --force with the tool.", "Use -force with the tool."),
    ("Always run a|b.", "Always run a||b."),
    ("Lisa is Tom's boss.", "Tom is Lisa's boss."),
    ("The standup begins at 9:30.", "The standup in the harbour begins at 9:30."),
]


@pytest.mark.parametrize(("old", "new"), APART)
def test_another_word_symbol_order_or_language_is_never_a_duplicate(
    monkeypatch: pytest.MonkeyPatch, old: str, new: str
) -> None:
    choose(monkeypatch, lambda older, newer: SAME)
    assert near(known(old), said(new)).duplicate() is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The standup in Oslo begins at 9:30.", "In Oslo, the standup begins at 9:30!"),
        ("Use `make lint` before a commit.", "Before a commit, use make lint."),
    ],
)
def test_the_same_words_in_another_order_add_nothing(old: str, new: str) -> None:
    assert adds_nothing(new, old)


ANOTHER = [
    ("Entry 601 names the otter.", "Entry 605 names the heron."),
    ("Room 12 seats 8 people.", "Room 14 now seats 20 people."),
]


@pytest.mark.parametrize(("old", "new"), ANOTHER)
def test_statements_about_things_with_other_numbers_are_not_in_conflict(
    monkeypatch: pytest.MonkeyPatch, old: str, new: str
) -> None:
    choose(monkeypatch, lambda older, newer: SURE)
    assert conflict(known(old), said(new)) is None


UNSURE = [
    ("Server alpha runs Ubuntu 22.04.", "Server beta now runs Ubuntu 24.04."),
    ("Tim's manager is Pia.", "Tom's new manager is Ana."),
    ("The kitchen is painted green.", "The bathroom is now painted blue."),
    ("The user's boss is Karen.", "The user's boss is out today."),
    ("Meine Schwester wohnt seit Mai hier.", "Meine Schwester wohnt jetzt dort."),
]


@pytest.mark.parametrize(("old", "new"), UNSURE)
def test_another_subject_a_remark_and_another_language_are_no_sure_update(
    monkeypatch: pytest.MonkeyPatch, old: str, new: str
) -> None:
    choose(monkeypatch, lambda older, newer: SURE)
    found = conflict(known(old), said(new))
    assert found is not None and not found.is_sure


VALUES = [
    ("Standup is on tuesday.", "Standup is on thursday."),
    ("Trash is collected on Tuesday.", "Trash is collected Thursday."),
    ("The review is in March.", "The review is in May."),
    ("Alerts go to ops@acme.io.", "Alerts go to ops@acme.com."),
    ("The docs are at https://docs.acme.io.", "The docs are at https://wiki.acme.io."),
    ("The branch is release-2.", "The branch is release-3."),
    ("The log is in /var/log/acme.", "The log is in /srv/log/acme."),
    ("The gym opens at 7.", "The gym opens at 6."),
]


@pytest.mark.parametrize(("old", "new"), VALUES)
def test_another_day_number_or_address_alone_suggests_no_change(
    monkeypatch: pytest.MonkeyPatch, old: str, new: str
) -> None:
    choose(monkeypatch, lambda older, newer: SURE)
    found = conflict(known(old), said(new))
    assert found is not None and not found.is_sure


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Standup is on tuesday.", "Standup is now on thursday."),
        ("The launch is in March.", "The launch slipped to April."),
        ("We install with npm.", "We moved from npm to pnpm."),
        ("The depot is in Turin.", "The depot has moved to Bari."),
        ("The user's manager is Oskar.", "The user's new manager is Pia."),
        ("The user drives a Golf.", "The user sold the Golf and drives a Tesla."),
        ("The gym opens at 7.", "The gym opens at 6 now."),
        ("The clinic uses paper files.", "The clinic uses digital files instead of paper files."),
    ],
)
def test_a_word_of_change_and_another_value_of_its_kind_do(monkeypatch: pytest.MonkeyPatch, old: str, new: str) -> None:
    choose(monkeypatch, lambda older, newer: SURE)
    found = conflict(known(old), said(new))
    assert found is not None and found.is_sure


NO_SUCCESSORS = """
bare name: The bus stops at Elm Street. || The bus stops at Oak Street.
another possessor: The user's mother's pill is amlodipine. || The user's pill is now ramipril.
another subject: The production server has 64 GB. || The build server now has 32 GB.
a subject that is not recognised: Customer Bergmann, gold plan. || Customer Krog switched to the gold plan.
another relation: Lena's manager is Otto. || Lena is now the manager of Piet.
another thing told of the subject: Priya leads the design team. || The design team switched to Figma.
a further value: The parser handles UTF-8. || The parser handles UTF-16 too now.
not settled: The standup is at nine. || The standup was almost moved to ten.
critical: The user takes warfarin. || The user switched from warfarin to apixaban.
"""


@pytest.mark.parametrize("row", NO_SUCCESSORS.strip().splitlines(), ids=lambda row: row.partition(":")[0])
def test_a_sure_model_alone_replaces_nothing(monkeypatch: pytest.MonkeyPatch, row: str) -> None:
    choose(monkeypatch, lambda older, newer: SURE)
    kind, _, pair = row.partition(": ")
    old, new = pair.split(" || ")
    found = conflict(known(old).replace(critical_slot="medication" if kind == "critical" else ""), said(new))
    assert found is None or not found.is_sure


def test_what_ends_does_not_supersede_what_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    choose(monkeypatch, lambda older, newer: SURE)
    old, new = known("The team lead is Anna."), said("The team lead is now Carl.")
    ends = datetime(2026, 6, 10, tzinfo=UTC)
    lasting, passing = conflict(old, new), conflict(old, new.replace(valid_until=ends))
    assert lasting is not None and lasting.is_sure
    assert passing is not None and not passing.is_sure
    assert may_outdate(new.replace(valid_until=ends), old.replace(valid_until=ends))
