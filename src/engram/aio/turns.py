"""One call at a time, unless one takes long.

A store of files lets one thread in at a time, and so does Python: threads that crowd at both doors slow each other down,
and every one of them keeps the event loop waiting for the interpreter. So calls take turns; but a call that waits for a
model, a disk or ten thousand memories must not keep a search of milliseconds waiting, so the next one passes it.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE = 0.05
"""Seconds after which a call counts as long."""


class Turns:
    """Lets calls through one after the other; a long one loses its turn to the next and runs on beside it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._holder: object | None = None
        self._since = 0.0

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Wait for the turn, and pass it on afterwards."""
        mine = object()
        with self._changed:
            while self._holder is not None and (left := self._since + PATIENCE - time.monotonic()) > 0:
                self._changed.wait(left)
            self._holder, self._since = mine, time.monotonic()
        try:
            yield
        finally:
            with self._changed:
                if self._holder is mine:
                    self._holder = None
                    self._changed.notify()
