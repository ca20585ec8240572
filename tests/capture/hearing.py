"""What a conversation has said so far."""

from engram.capture.extraction.references import References


def heard(*sentences: str) -> References:
    """The references after these sentences."""
    references = References()
    for one in sentences:
        references.add_sentence(one)
    return references
