"""What a heading is, whatever the kind of document it stands in."""

from dataclasses import dataclass

__all__ = ["LONGEST_TITLE", "Heading", "titled"]

LONGEST_TITLE = 120


@dataclass(frozen=True, slots=True)
class Heading:
    """Where a section begins, how deep it lies (1 is outermost) and what it is called.

    Without a title it only ends what stood before: code at the margin behind a function.
    """

    start: int
    level: int
    title: str


def titled(text: str) -> str:
    """A title as one line with single spaces, cut where it gets long."""
    title = " ".join(text.split())
    return title if len(title) <= LONGEST_TITLE else title[: LONGEST_TITLE - 1].rstrip() + "…"
