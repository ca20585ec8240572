"""Quotes: the exact text at a place, and the fingerprint that tells whether it still stands there."""

import hashlib

from engram.model.errors import InvalidInput

__all__ = ["quote_hash", "quoted"]


def quote_hash(text: str) -> str:
    """`sha256:` and the digest of the exact text: one changed space is another quote."""
    return f"sha256:{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"


def quoted(text: str, span: tuple[int, int]) -> str:
    """The text at a span of characters, as it stands.

    A span that does not lie within the text is an error, not a shorter quote.
    """
    start, end = span
    if not 0 <= start < end <= len(text):
        raise InvalidInput(
            f"The place {start}-{end} is not in a text of {len(text)} characters: "
            "the document has changed since it was read. Ingest it again"
        )
    return text[start:end]
