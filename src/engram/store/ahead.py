"""Working ahead: the next items are made while the last one is being used."""

import queue
import threading
from collections.abc import Iterator
from typing import TypeVar

Item = TypeVar("Item")
DEPTH = 2
"""Items made and not yet used: more would only be held in memory."""
_LOOK = 0.2
"""Seconds after which a maker looks whether anyone still wants what it makes."""


def ahead(items: Iterator[Item]) -> Iterator[Item]:
    """The items, made in a thread of their own. An error of the maker is raised where the item would have come."""
    made: queue.Queue[tuple[Item | None, BaseException | None]] = queue.Queue(DEPTH)
    unwanted = threading.Event()

    def put(item: Item | None, error: BaseException | None = None) -> bool:
        while not unwanted.is_set():
            try:
                made.put((item, error), timeout=_LOOK)
                return True
            except queue.Full:
                continue
        return False

    def make() -> None:
        try:
            if all(put(item) for item in items):
                put(None)
        except BaseException as error:
            put(None, error)

    maker = threading.Thread(target=make, name="engram-ahead", daemon=True)
    maker.start()
    try:
        while True:
            item, error = made.get()
            if error is not None:
                raise error
            if item is None:
                return
            yield item
    finally:
        unwanted.set()
        maker.join()
