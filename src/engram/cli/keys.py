"""One key at a time from a terminal, without Enter; whole lines where there is none."""

import contextlib
import os
import select
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

END = ("\x04", "\x1a")
"""Keys that end the input: Ctrl-D, and Ctrl-Z where it does not suspend."""
_MAX_CHARACTER_BYTES = 4
_SIGNAL_CHECK_SECONDS = 0.5
"""Seconds after which a wait for a key looks for signals."""
_KEY_REST_SECONDS = 0.05
"""Seconds in which the rest of an arrow key arrives."""


def can_read_keys() -> bool:
    """Whether stdin is a terminal that can be read key by key."""
    try:
        import termios
    except ImportError:
        return False
    try:
        termios.tcgetattr(sys.stdin.fileno())
    except (OSError, ValueError, termios.error):
        return False
    return sys.stdin.isatty()


def read_key(ask: Callable[[], None]) -> str | None:
    """The key that answers a question, lower case; "" for one that is no character, None at the end of the input.

    What was typed before the question is dropped: nobody decides about what they have not seen. The terminal is put back however this ends: an interrupt, a signal to terminate, a terminal that went away.
    """
    with _cbreak_mode() as descriptor:
        ask()
        # A signal that comes just before a read begins is handled only when it returns, so that none waits for long.
        while not select.select([descriptor], [], [], _SIGNAL_CHECK_SECONDS)[0]:
            pass
        pressed = os.read(descriptor, 1)
        while 0 < len(pressed) < _MAX_CHARACTER_BYTES and pressed[0] >= 0x80 and not _is_whole(pressed):
            pressed += os.read(descriptor, 1)
        if pressed == b"\x1b":
            _drop_rest(descriptor)
            return ""
    key = pressed.decode("utf-8", "ignore").lower()
    return None if not pressed or key in END else key


def _is_whole(pressed: bytes) -> bool:
    try:
        pressed.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _drop_rest(descriptor: int) -> None:
    """Drop what an arrow or function key sends after Escape; its letters are no decisions."""
    while select.select([descriptor], [], [], _KEY_REST_SECONDS)[0] and os.read(descriptor, 32):
        pass


@contextlib.contextmanager
def _cbreak_mode() -> Iterator[int]:
    """Stdin without echo and line editing; Ctrl-C still interrupts."""
    import termios
    import tty

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    with _exit_on_signals():
        try:
            tty.setcbreak(descriptor, termios.TCSAFLUSH)
            yield descriptor
        finally:
            with contextlib.suppress(termios.error):
                termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


@contextlib.contextmanager
def _exit_on_signals() -> Iterator[None]:
    """Turn signals that would end the process at once into `SystemExit`, so that the terminal is put back."""

    def leave(number: int, _frame: Any) -> None:
        raise SystemExit(128 + number)

    before: dict[int, Any] = {}
    with contextlib.suppress(ValueError):  # only the main thread may set handlers
        for number in (signal.SIGTERM, signal.SIGHUP):
            before[number] = signal.signal(number, leave)
    try:
        yield
    finally:
        for ending, handler in before.items():
            signal.signal(ending, handler)
