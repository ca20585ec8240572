"""Working ahead in a thread: the same items, the same errors, and nothing left running."""

import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from engram.store.ahead import ahead


def test_items_come_in_their_order() -> None:
    assert list(ahead(iter(range(100)))) == list(range(100))


def test_an_error_is_raised_where_the_item_would_have_come() -> None:
    def failing() -> Iterator[int]:
        yield 1
        raise ValueError("no more")

    made = ahead(failing())
    assert next(made) == 1
    with pytest.raises(ValueError, match="no more"):
        next(made)


def test_a_maker_whose_items_nobody_wants_ends() -> None:
    with closing(ahead(iter(range(10_000)))) as made:  # type: ignore[type-var]
        assert next(made) == 0
    assert [thread for thread in threading.enumerate() if thread.name == "engram-ahead"] == []
