"""The labelled data of training/hearing: every file parses, and there is as much of it as the models were promised.

No test here shows a line of the writers held out: an error names the file and the line number alone.
"""

from pathlib import Path

import pytest

from training.hearing_data import FOLDER, HELD, FormatError, pairs, questions, talk, writers
from training.hearing_slots import SECTIONS, every_slot, read_slots, slot_pairs

FOLDERS = {"trained on": FOLDER, "held out": HELD}


@pytest.mark.parametrize("folder", FOLDERS.values(), ids=FOLDERS.keys())
def test_every_file_is_in_the_format_of_the_readme(folder: Path) -> None:
    for writer in writers(folder):
        assert len(talk(writer, folder)) > 0, writer
    for path in folder.glob("*/pairs.txt"):
        assert len(pairs(path.parent.name, folder)) > 0, path.parent.name
    for path in folder.glob("*/questions.txt"):
        assert len(questions(path.parent.name, folder)) > 0, path.parent.name


def test_eight_writers_or_more_and_two_held_out_gave_enough_to_learn_from() -> None:
    everyone = writers()
    assert len(everyone) >= 8
    assert len(writers(HELD)) == 2
    assert not set(everyone) & set(writers(HELD))
    assert sum(len(talk(writer)) for writer in everyone) >= 5_000
    assert sum(len(pairs(writer)) for writer in everyone) >= 4_000
    assert sum(len(questions(writer)) for writer in everyone) >= 400


def test_turns_and_sentences_are_counted_in_order() -> None:
    for writer in writers():
        before = (1, 0, -1)
        for row in talk(writer):
            here = (row.conversation, row.turn, row.place)
            conversation, turn, place = before
            assert here in {(conversation, turn, place + 1), (conversation, turn + 1, 0), (conversation + 1, 0, 0)}, row
            before = here


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("keep | fact | user | lasting | asserted | I live in Rome.", "no memory"),
        ("keep | fact | user | lasting | I live in Rome. => The user lives in Rome.", "six fields"),
        ("keep | fact | user | forever | asserted | I live in Rome. => The user lives in Rome.", "duration"),
        ("keep | fact | person | lasting | asserted | Ann lives in Rome. => Ann lives in Rome.", "name"),
        ("skip | fact | - | - | asserted | I live in Rome.", "skipped"),
        ("perhaps | - | - | - | asserted | I live in Rome.", "worth"),
    ],
)
def test_a_line_out_of_format_is_reported_by_its_number_without_its_text(tmp_path: Path, line: str, what: str) -> None:
    (tmp_path / "ann").mkdir()
    (tmp_path / "ann" / "talk.txt").write_text(f"== 1\n[user]\n{line}\n", "utf-8")
    with pytest.raises(FormatError, match=rf"ann/talk\.txt, line 3: .*{what}") as raised:
        talk("ann", tmp_path)
    assert "Rome" not in str(raised.value)


# -- slots


def test_every_slot_has_all_its_sections_and_its_values_fill_them() -> None:
    slots = every_slot()
    assert len(slots) >= 500
    for slot in slots:
        assert len(slot.values) >= 4, slot.name
        assert all(slot.lines[section] for section in SECTIONS if section != "ends"), slot.name
        assert all("{v}" in line for line in slot.lines["holds"]), slot.name
        assert not any("{" in text for _, *texts in slot_pairs(slot) for text in texts), slot.name


def test_pairs_of_a_slot_are_labelled_by_how_they_are_drawn(tmp_path: Path) -> None:
    path = tmp_path / "ann.txt"
    path.write_text(
        """slot: who manages me | one
values: Kim | Lee | Max
holds:
I report to {v}.
{v} is my boss.
changes:
{v} took over from {old} as my boss.
ends:
I have no boss any more.
lookalikes:
My boss is ill.
questions:
Who is my boss?
nearby:
How old is my boss?
""",
        "utf-8",
    )
    (slot,) = read_slots(path)
    pairs_of = list(slot_pairs(slot))
    assert {label for label, *_ in pairs_of} == {"update", "contradiction", "same", "different"}
    assert list(slot_pairs(slot)) == pairs_of
    assert ("different", "I report to Kim.", "My boss is ill.") in pairs_of
    assert all(not newer.endswith("as my boss.") for label, _, newer in pairs_of if label == "contradiction")


def test_a_slot_out_of_format_is_reported_by_its_line(tmp_path: Path) -> None:
    path = tmp_path / "ann.txt"
    path.write_text("slot: who manages me | some\n", "utf-8")
    with pytest.raises(ValueError, match=r"ann\.txt:1: a slot is one or many"):
        read_slots(path)
    path.write_text("slot: who manages me | one\nI report to {v}.\n", "utf-8")
    with pytest.raises(ValueError, match=r"ann\.txt:2: outside a section"):
        read_slots(path)
