"""The block between two `---` lines at the top of a Markdown file."""

from engram.model.lazy import dataclass, lazy_pattern

_BLOCK = lazy_pattern(r"\A---[ \t]*\r?\n(?P<head>(?:.*\n)*?)---[ \t]*(?:\r?\n|\Z)")


@dataclass(frozen=True, slots=True)
class FrontmatterFile:
    """A Markdown file in its two parts."""

    head: str
    """The lines between the markers. They begin on line 2 of the file."""
    body: str


def split_frontmatter(text: str) -> FrontmatterFile | None:
    """The two parts of a file; None if it does not begin with a closed block."""
    found = _BLOCK.match(text)
    return FrontmatterFile(found["head"], text[found.end() :]) if found else None
