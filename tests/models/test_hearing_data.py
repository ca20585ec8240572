"""The labelled data of training/hearing: every file parses, and there is as much of it as the models were promised.

No test here shows a line of the writers held out: an error names the file and the line number alone.
"""

from pathlib import Path

import pytest

from training.hearing_data import FOLDER, HELD, FormatError, pairs, questions, talk, writers

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
