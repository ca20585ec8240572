"""Parts shared by stdio and HTTP: JSON as clients send it, and the watchdog that ends a blocked server."""

import faulthandler
import json
import re
import signal
import sys
from contextlib import suppress
from typing import Any

import anyio
from mcp.types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    jsonrpc_message_adapter,
)

_ESCAPE = re.compile(rb"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(?P<half>u[dD][89a-fA-F]..)|.)", re.DOTALL)
"""One JSON escape: a whole surrogate pair, half of one, or any other."""

_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|[\[\]{}]|[^"\[\]{}]+', re.DOTALL)
"""A string, which may be unterminated, a bracket, or the text between them."""
_MAX_DIGITS = 18


def replace_half_characters(text: bytes) -> bytes:
    """JSON without halves of surrogate pairs, which JavaScript writes if it cuts a text inside a character.

    The protocol's parser rejects a message with one, and the client would wait for its answer forever. The length does
    not change.
    """
    return _ESCAPE.sub(lambda found: rb"\ufffd" if found["half"] else found[0], text) if rb"\u" in text else text


class UnreadableMessage(ValueError):
    """A client's input is not a message that can be handled."""

    def __init__(self, answer: JSONRPCError | None) -> None:
        super().__init__(answer)
        self.answer = answer
        """The reply to the sender; None if nobody waits for an answer."""


def read_message(text: str) -> JSONRPCMessage:
    """A message of the protocol. Raises `UnreadableMessage` for anything else."""
    try:
        message = jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValueError:
        raise UnreadableMessage(_answer_to(text)) from None
    # The parser takes a request whose id has another type for a notification, which nobody answers.
    if isinstance(message, JSONRPCNotification) and "id" in _load_json(text):
        raise UnreadableMessage(_error(INVALID_REQUEST, "The id of a request must be a string or an integer"))
    return message


def _answer_to(text: str) -> JSONRPCError | None:
    """The error for a message that the protocol's parser rejects; None for an answer or a notification."""
    try:
        found = _load_json(text)
    except ValueError:
        return _error(PARSE_ERROR, "This is not JSON")
    if isinstance(found, list):
        return _error(INVALID_REQUEST, "Batches are not served; send each message by itself")
    fields = found if isinstance(found, dict) else {}
    is_notification = isinstance(fields.get("method"), str) and "id" not in fields
    if is_notification or "result" in fields or "error" in fields:
        return None
    known = fields.get("id")
    known = known if isinstance(known, int | str) and not isinstance(known, bool) else None
    return _error(INVALID_REQUEST, "This is not a request as JSON-RPC 2.0 and MCP have it", known)


def _error(code: int, message: str, known: int | str | None = None) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=known, error=ErrorData(code=code, message=message))


def _load_json(text: str) -> Any:
    """JSON as Python data; if nested too deeply, only its outermost level.

    Raises `ValueError` for anything but JSON.
    """
    try:
        return json.loads(text, parse_int=_parse_integer)
    except RecursionError:
        return json.loads(_outline(text), parse_int=_parse_integer)


def _outline(text: str) -> str:
    """JSON with null in place of everything nested in its outermost object or list."""
    depth, kept = 0, []
    for token in _TOKEN.findall(text):
        depth -= token in "]}"
        if depth < 1 or (depth == 1 and token not in "[]{}"):
            kept.append(token)
        elif depth == 1 and token in "[{":
            kept.append("null")
        depth += token in "[{"
    return "".join(kept)


def _parse_integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= _MAX_DIGITS else float("inf")


MAX_BLOCKED_S = 10.0
"""Processor time of the process without one turn of the event loop."""


async def end_if_blocked(limit_s: float = MAX_BLOCKED_S) -> None:
    """Until cancelled, postpone the end of this process, which comes after `limit_s` seconds of computing without a turn of the loop.

    The timer counts processor time, so a process that sleeps or is stopped does not end. Its stack is printed to
    stderr.

    One match of a regular expression cannot be interrupted: neither clients nor signals are answered until it ends.
    Input is bounded so that none takes long. If one does, the kernel ends the process, and the client starts a new one.
    What was acknowledged is on disk.
    """
    with suppress(ValueError, OSError, AttributeError):  # no stderr to print to
        faulthandler.register(signal.SIGVTALRM, file=sys.stderr, chain=True)
    try:
        while True:
            signal.setitimer(signal.ITIMER_VIRTUAL, limit_s)
            await anyio.sleep(limit_s / 4)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
