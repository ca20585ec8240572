"""JSON as JavaScript writes it, made fit for the protocol's parser."""

import json
import re

_ESCAPE = re.compile(rb"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(?P<half>u[dD][89a-fA-F]..)|.)", re.DOTALL)
"""One escape of JSON: a whole pair, half of one, or any other."""

_LONGEST_NUMBER = 18


def whole_characters(text: bytes) -> bytes:
    """JSON without halves of surrogate pairs, which JavaScript writes where it cut a text inside a character.

    The protocol's parser rejects a message with one, and a client would wait for its answer. The length stays the same.
    """
    return _ESCAPE.sub(lambda found: rb"\ufffd" if found["half"] else found[0], text) if rb"\u" in text else text


def unreadable_request(text: str) -> int | str | None:
    """The id of a request in a text that the protocol's parser rejects; None where nobody waits for an answer."""
    try:
        found = json.loads(text, parse_int=_whole)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or "result" in found or "error" in found:
        return None
    known = found.get("id")
    return known if isinstance(known, int | str) and not isinstance(known, bool) else None


def _whole(digits: str) -> int | float:
    return int(digits) if len(digits) <= _LONGEST_NUMBER else float("inf")
