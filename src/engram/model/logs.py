"""Logs what Engram does with `logging`: one logger per package, an event and its facts per message.

Facts are ids, counts, names of operations and durations, never the text of a memory or a question. `$ENGRAM_LOG` prints
them on stderr; a library's user configures `logging` as usual. The record of each message has the facts as the
attribute `engram`.

A cold start does not import `logging`: until somebody imports it, nobody can listen.
"""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from engram.model.errors import InvalidInput

__all__ = ["LEVELS", "VARIABLE", "Log", "start_logging"]

VARIABLE = "ENGRAM_LOG"
LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}
Fact = str | int | float
_LINE = "%(asctime)s.%(msecs)03d %(levelname)s %(name)s %(message)s"


class Log:
    """The log of one package, such as `engram.store`."""

    __slots__ = ("name",)

    def __init__(self, package: str) -> None:
        self.name = f"engram.{package}"

    def debug(self, event: str, /, **facts: Fact) -> None:
        """Log how something was done."""
        self._write(LEVELS["debug"], event, facts)

    def info(self, event: str, /, **facts: Fact) -> None:
        """Log that something rare or slow was done, such as a rebuild of the index."""
        self._write(LEVELS["info"], event, facts)

    def warning(self, event: str, /, **facts: Fact) -> None:
        """Log that something failed and was handled."""
        self._write(LEVELS["warning"], event, facts)

    @contextmanager
    def measure(self, event: str, /, **facts: Fact) -> Iterator[dict[str, Fact]]:
        """Log an event at its end, with its duration in milliseconds. Facts added to the yielded value are logged
        too.
        """
        found: dict[str, Fact] = dict(facts)
        start = time.perf_counter()
        try:
            yield found
        except BaseException as error:
            found["error"] = type(error).__name__
            raise
        finally:
            self.debug(event, **found, ms=round(1000 * (time.perf_counter() - start), 1))

    def _write(self, level: int, event: str, facts: dict[str, Fact]) -> None:
        if "logging" not in sys.modules:
            return
        import logging

        logger = logging.getLogger(self.name)
        if logger.isEnabledFor(level):
            message = " ".join([event, *(f"{name}={value}" for name, value in facts.items())])
            logger.log(level, "%s", message, extra={"engram": {"event": event, **facts}}, stacklevel=3)


def start_logging() -> None:
    """Print messages on stderr, from the level in `$ENGRAM_LOG` on."""
    level = os.environ.get(VARIABLE, "").strip().lower()
    if not level:
        return
    if level not in LEVELS:
        raise InvalidInput(f"{VARIABLE} is one of {', '.join(LEVELS)}, not {level[:40]!r}")
    import logging

    root = logging.getLogger("engram")
    root.setLevel(LEVELS[level])
    if not root.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter(_LINE, "%H:%M:%S"))
        root.addHandler(handler)
        root.propagate = False
