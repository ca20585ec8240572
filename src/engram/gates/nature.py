"""Episode or note: whether a captured memory tells what happened once, or states what holds (spec 5's order of signs)."""

from collections.abc import Sequence

from engram.gates.tables import phrases, plain

__all__ = ["EPISODE", "NOTE", "nature_of"]

EPISODE, NOTE = "episode", "note"
_TABLE = "nature.txt"


def nature_of(text: str, type_name: str, tags: Sequence[str] = ()) -> str:
    """`EPISODE` or `NOTE`: by a word for a moment, else the type, the tags, verbs of acts, words of will; else an episode.

    `text` is what was said: a statement that was rewritten has dates in place of "yesterday".
    """
    prepared = plain(text)
    words = frozenset(prepared.split())

    def has_phrase(section: str) -> bool:
        return bool(phrases(_TABLE, section).find(prepared, words))

    def has_tag(section: str) -> bool:
        return not phrases(_TABLE, section).words.isdisjoint(tag.casefold() for tag in tags)

    signs = (
        (EPISODE, has_phrase("moments")),
        (NOTE, type_name in phrases(_TABLE, "note types").words),
        (EPISODE, type_name in phrases(_TABLE, "episode types").words),
        (NOTE, has_tag("note tags")),
        (EPISODE, has_tag("episode tags")),
        (EPISODE, has_phrase("happened")),
        (NOTE, has_phrase("lasting")),
    )
    return next((nature for nature, found in signs if found), EPISODE)
