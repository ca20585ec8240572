"""Cues: how they are normalised, and how many a memory may have."""

from collections.abc import Callable

import pytest

from engram import Engram
from engram.model.errors import InvalidInput
from engram.rules.labels import MAX_CUE_CHARS, MAX_CUES, add_cues, cues_problem, normalize_cues
from tests.tables import table

FULL = tuple(f"cue {number}" for number in range(MAX_CUES))


def test_white_space_and_case_make_no_other_cue() -> None:
    assert normalize_cues(["Which  port\tis it", "which port is it", " 6543 "]) == ("Which port is it", "6543")


@table(
    ("cues", "problem"),
    [
        (FULL, ""),
        ((*FULL, "one more"), "cues has 9 entries (maximum 8)"),
        (("",), "cues has an empty entry; give up to 8 short phrases"),
        (("x" * MAX_CUE_CHARS,), ""),
        (("x" * (MAX_CUE_CHARS + 1),), "cues has an entry of 121 characters (maximum 120)"),
    ],
)
def test_a_problem_names_the_field_and_the_maximum(cues: tuple[str, ...], problem: str) -> None:
    assert cues_problem(cues) == problem


def test_added_cues_come_after_the_known_ones_and_no_more_than_fit() -> None:
    assert add_cues(("a", "b"), ["B", "c"]) == ("a", "b", "c")
    assert add_cues(FULL, ["one more"]) == FULL


@table("cues", [[*FULL, "one more"], [" "], ["\u200b"], ["x" * 121], [3], 3, {"a": "b"}, b"a"])
def test_cues_beyond_the_limits_are_refused_by_every_write(cues: object) -> None:
    with Engram.open(ephemeral=True) as mem:
        known = mem.add("The kiosk opens at nine")
        writes: list[Callable[[], object]] = [
            lambda: mem.learn("The kiosk closes at six", cues=cues),  # type: ignore[arg-type]
            lambda: mem.remember("The kiosk closes at six", cues=cues),  # type: ignore[arg-type]
            lambda: mem.add("The kiosk closes at six", cues=cues),  # type: ignore[arg-type]
            lambda: mem.add_batch([{"statement": "The kiosk closes at six", "cues": cues}]),
            lambda: mem.update(known.id, cues=cues),  # type: ignore[arg-type]
            lambda: mem.revise(known.id, cues=cues),  # type: ignore[arg-type]
        ]
        for write in writes:
            with pytest.raises(InvalidInput, match=r"cues.*(8|120)"):
                write()
        assert [memory.statement for memory in mem.list()] == [known.statement]


def test_duplicates_do_not_count_towards_the_maximum() -> None:
    with Engram.open(ephemeral=True) as mem:
        assert mem.add("The kiosk opens at nine", cues=[*FULL, "CUE 1"]).cues == FULL


def test_a_text_is_one_cue_whatever_its_punctuation() -> None:
    with Engram.open(ephemeral=True) as mem:
        assert mem.add("The kiosk opens at nine", cues="when, and where").cues == ("when, and where",)
