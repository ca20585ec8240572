"""Which neighbours the pair model reads."""

from math import nan

from engram.decisions.admission import propose
from engram.gates.proposal import Neighbour
from engram.gates.shortlist import MAX_COMPARED, MAX_NEAREST, shortlist
from engram.model.memory import Memory

SAID = propose(Memory("", "The deploy script runs on Friday evenings"))
APART = ("Olga likes jazz", "Bread rises overnight", "Our cat sleeps upstairs", "Paris trains were late", "Rent is due")


def neighbour(number: int, statement: str, cosine: float, decided: str = "") -> Neighbour:
    return Neighbour(Memory(f"ENG-2026-0301-{number:03}", statement), cosine, decided)


def test_of_neighbours_without_a_word_in_common_only_the_nearest_are_read() -> None:
    near = [neighbour(number, text, 0.3 + number / 100) for number, text in enumerate(APART)]
    assert shortlist(SAID, near) == near[-MAX_NEAREST:]


def test_a_far_neighbour_that_shares_words_is_read() -> None:
    near = [neighbour(number, text, 0.5) for number, text in enumerate(APART)]
    far = neighbour(9, "The deploy script is written in Rust", 0.21)
    assert far in shortlist(SAID, [*near, far])


def test_of_many_alike_the_nearest_are_read_in_their_order() -> None:
    near = [neighbour(n, f"The deploy script runs on Friday in room {n}", 0.9 - n / 100) for n in range(1, 15)]
    assert shortlist(SAID, near) == near[:MAX_COMPARED]


def test_what_cannot_be_measured_or_was_taken_out_of_use_is_always_read() -> None:
    near = [neighbour(number, text, 0.5) for number, text in enumerate(APART)]
    others = [
        neighbour(7, "Tea is served at four", nan),
        neighbour(8, "The lake froze", 0.25, decided="rejected by a person"),
    ]
    assert shortlist(SAID, [*near, *others])[-2:] == others
