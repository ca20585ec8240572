"""The sections of a document: where each begins, and the headings above it."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from engram.capture.documents.headings import Heading, code_headings, diff_headings, markdown_headings
from engram.capture.documents.headings_text import text_headings

__all__ = ["DocumentSection", "sections_of"]

# Sections of these levels are the document's own division: they are kept apart.
MAJOR_LEVEL = 2

_READERS: dict[str, Callable[[str], Iterable[Heading]]] = {
    "markdown": markdown_headings,
    "text": text_headings,
    "code": code_headings,
    "diff": diff_headings,
}


@dataclass(frozen=True, slots=True)
class DocumentSection:
    """A heading and what follows it up to the next heading; the first may have none.

    `above` holds the heading and its ancestors, outermost first.
    """

    start: int
    end: int
    above: tuple[Heading, ...]

    @property
    def level(self) -> int:
        """The level of its own heading; 0 for what stands before the first heading."""
        return self.above[-1].level if self.above else 0

    @property
    def major(self) -> tuple[Heading, ...]:
        """The headings above it that divide the document."""
        return tuple(heading for heading in self.above if heading.level <= MAJOR_LEVEL)

    def is_within(self, other: "DocumentSection") -> bool:
        """Whether this section stands below the other's heading."""
        return self.above[: len(other.above)] == other.above


def sections_of(text: str, kind: str) -> Iterator[DocumentSection]:
    """The sections of a text in order; together they are the whole text."""
    start, above = 0, ()  # type: tuple[int, tuple[Heading, ...]]
    for heading in _READERS[kind](text):
        if heading.start > start:
            yield DocumentSection(start, heading.start, above)
        above = (*(upper for upper in above if upper.level < heading.level), heading)
        start = heading.start
    if start < len(text):
        yield DocumentSection(start, len(text), above)
