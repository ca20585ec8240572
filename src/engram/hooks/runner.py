"""Runs one hook: reads the payload, enforces the time limit, answers in JSON, and logs every failure for the doctor."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from engram.hooks.place import HookPayload, HookPlace, answer, read_payload
from engram.model.errors import InvalidInput
from engram.model.logs import VARIABLE, Log, start_logging
from engram.store import hook_files

if TYPE_CHECKING:
    from types import FrameType

SECONDS = {
    "session-start": 4.0, "prompt": 3.0, "post-tool": 2.0, "stop": 1.0, "pre-compact": 1.0, "session-end": 1.0, "drain": 25.0,
}  # fmt: skip
"""The events, and the seconds after which each gives up, less than the time limit in the plugin's hooks.json."""
SPOOLED = frozenset({"stop", "pre-compact", "session-end"})
MAX_INPUT_BYTES = 64 * 1024 * 1024
_LOG = Log("hooks")


class HookTimeout(Exception):
    """A hook exceeded its time limit."""


def run(event: str, home: str = "") -> None:
    """Run a hook; prints JSON or nothing, and never raises."""
    try:
        place = HookPlace(home)
        if os.environ.get(VARIABLE):
            with suppress(InvalidInput):  # A mistake in this variable must not disable memory.
                start_logging()
        with _LOG.measure("hook", name=event) as facts, _time_limit(SECONDS[event]):
            text = _handle_event(event, place, read_payload(sys.stdin.buffer.read(MAX_INPUT_BYTES)))
            facts["characters"] = len(text)
        hook_files.record_success(event, *place.logs)
        _print(text)
    except (Exception, KeyboardInterrupt) as error:
        if event == "session-start":
            _tell_failures(home)
        _record(event, error, home)


def _print(text: str) -> None:
    """Print an answer in UTF-8, because it is JSON, whatever the terminal's encoding is."""
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    sys.stdout.buffer.flush()


def _tell_failures(home: str) -> None:
    """Report earlier failures even if the start of a session fails, since it may fail each time."""
    try:
        from engram.hooks.session_start import report_new_failures

        _print(answer(_event_name("session-start"), report_new_failures(HookPlace(home))))
    except Exception:
        return


def _handle_event(event: str, place: HookPlace, payload: HookPayload) -> str:
    if place.is_paused and event != "session-start":
        return ""
    if event in SPOOLED:
        _spool(event, place, payload)
        return ""
    return answer(payload.event or _event_name(event), _text(event, place, payload))


def _event_name(event: str) -> str:
    """The agent's name for an event, for a payload that does not contain it."""
    from engram.agents.agent import agent_with_hooks

    return agent_with_hooks().hook_events[event]


def _text(event: str, place: HookPlace, payload: HookPayload) -> str:
    # Each event imports only the modules it needs, because imports take most of a hook's time.
    if event == "session-start":
        from engram.hooks.session_start import start_session

        return start_session(place, payload)
    if event == "prompt":
        from engram.hooks.prompt import answer_prompt

        return answer_prompt(place, payload)
    if event == "post-tool":
        from engram.hooks.session_memo import remind

        return remind(place, payload)
    from engram.hooks.session_start import drain

    return drain(place)


def _spool(event: str, place: HookPlace, payload: HookPayload) -> None:
    """Queue the session for a harvest; a session without a transcript has nothing to read."""
    if payload.transcript and not payload.is_subagent:
        from engram.agents.agent import agent_with_hooks

        harness = agent_with_hooks().name
        entry = hook_files.SpoolEntry(payload.session, payload.transcript, payload.cwd, event, time.time(), harness)
        hook_files.add_to_spool(place.root, entry)


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """Raise `HookTimeout` in code that takes longer."""

    def late(_number: int, _frame: "FrameType | None") -> None:
        raise HookTimeout(f"it took longer than {seconds:g} seconds")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _record(event: str, error: BaseException, home: str) -> None:
    """Log a failure for the doctor and the next session start.

    If the log cannot be written, a failing session start prints its own failure.
    """
    try:
        from engram.gates.secrets.scan import redact

        reason = str(error) or type(error).__name__
        message = reason if isinstance(error, (HookTimeout, ValueError)) else f"{type(error).__name__}: {reason}"
        told = redact(message)[0]
        if not hook_files.record_failure(event, told, *HookPlace(home).logs) and event == "session-start":
            from engram.hooks.session_start import describe_failure

            _print(answer(_event_name(event), describe_failure(event, told)))
    except Exception:
        return
