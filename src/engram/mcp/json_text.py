"""JSON as JavaScript writes it, made fit for the protocol's parser."""

import re

_ESCAPE = re.compile(rb"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(?P<half>u[dD][89a-fA-F]..)|.)", re.DOTALL)
"""One escape of JSON: a whole pair, half of one, or any other."""


def whole_characters(text: bytes) -> bytes:
    """JSON without halves of surrogate pairs, which JavaScript writes where it cut a text inside a character.

    The protocol's parser rejects a message with one, and a client would wait for its answer. The length stays the same.
    """
    return _ESCAPE.sub(lambda found: rb"\ufffd" if found["half"] else found[0], text) if rb"\u" in text else text
