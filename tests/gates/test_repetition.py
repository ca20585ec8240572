"""A long repetition is scanned at its two ends, and what is found there holds for what is between them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.gates.secrets import scan
from engram.gates.secrets.exemptions import Cut, Shortened, shorten_repetitions
from engram.gates.secrets.forms import Secret, hints_in
from engram.gates.secrets.scan import _find_in_folded, find_secrets, redact
from engram.text.confusables import fold_with_positions
from tests.hostile import PIECES
from tests.properties import examples

ORDINARY = "".join(
    f"Note {number}: the deploy of service {number * 7} took {number * 13 % 61} seconds. " for number in range(900)
)


def covered(found: list[Secret]) -> set[int]:
    return {place for secret in found for place in range(secret.start, secret.end)}


def test_a_text_without_a_repetition_is_scanned_whole() -> None:
    assert shorten_repetitions(ORDINARY) == Shortened(ORDINARY)


def test_the_middle_of_a_repetition_is_cut_out_and_nothing_else() -> None:
    text = f"Before. {'password ' * 10_000}Between. {'=' * 50_000}After."
    shortened = shorten_repetitions(text)
    assert len(shortened.text) < 20_000
    assert all(part in shortened.text for part in ("Before. ", "Between. ", "After."))
    whole, moved = shortened.text, 0
    for cut in shortened.cuts:
        place = cut.place + moved
        whole = whole[:place] + text[place : place + cut.size] + whole[place:]
        moved += cut.size
    assert whole == text


def test_a_secret_behind_a_repetition_is_found_at_its_place() -> None:
    text = f"{'- x' * 40_000}\nThe password is Gurken-Salat77\n{'=' * 40_000}"
    (secret,) = find_secrets(text)
    assert text[secret.start : secret.end] == "Gurken-Salat77"


def test_a_secret_in_every_period_is_redacted_in_all_of_them() -> None:
    line = "export GITHUB_TOKEN=ghp_q8TzR4mWv1LsYb7NcXe2KdHu9JfPa3Go5iMt && git push origin main\n"
    assert "ghp_" not in redact(line * 300)[0]
    assert redact(line * 300)[0].count("git push origin main") == 300


def test_of_too_many_secrets_everything_cut_out_is_one() -> None:
    redacted, found = redact("The pin is 4471. " * 12_000)
    assert "4471" not in redacted
    assert len(found) < 2_000


def test_what_was_cut_out_is_a_secret_if_two_periods_differ() -> None:
    shortened = Shortened("x" * 40, (Cut(20, 100, 10),))
    assert shortened.restore([Secret("pin", 12, 14), Secret("pin", 30, 32)]) == [
        Secret("pin", 12, 14), Secret("pin", 130, 132), Secret("pin", 20, 120),
    ]  # fmt: skip


def test_a_value_that_reaches_over_the_cut_includes_it() -> None:
    shortened = Shortened("x" * 40, (Cut(20, 100, 10),))
    assert shortened.restore([Secret("token", 5, 35)]) == [Secret("token", 5, 135)]


@examples(15)
@given(
    pieces=st.lists(st.sampled_from(PIECES), min_size=1, max_size=3),
    tail=st.sampled_from(("", "The PIN is 4711.", "\n")),
)
def test_no_secret_is_missed_that_a_scan_of_the_whole_text_finds(pieces: list[str], tail: str) -> None:
    piece = "".join(pieces)
    text = f"Start here. {piece * (9_000 // len(piece))}{tail}"
    assert covered(find_secrets(text)) >= covered(
        list(_find_in_folded(fold_with_positions(text), nearby=True, judged=True))
    )


@pytest.mark.parametrize("piece", ["كلمة السر ", "密码", "user:pw@", "pin 4471 ", "ﷺ", "&#97;", "password: x1y2z3\n"])
def test_a_longer_repetition_is_no_more_work(piece: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []

    def count_hints(lowered: str) -> dict[str, list[int]]:
        read.append(len(lowered))
        return hints_in(lowered)

    monkeypatch.setattr(scan, "hints_in", count_hints)
    for size in (50_000, 200_000):
        find_secrets((piece * size)[:size])
    assert read[1] <= read[0] * 1.2
