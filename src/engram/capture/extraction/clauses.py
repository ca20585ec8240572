"""Cutting a turn into the clauses someone said themselves, each with its place; pasted and quoted text is left out."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from engram.capture.extraction.rendering import asked_to_remember
from engram.text.sentences import sentence_spans

HIDDEN = "\x00"
"""Stands for the words of an inline quotation: a clause that has it says what somebody else said."""
LONGEST_TURN = 100_000
"""Characters read of one turn; beyond that it is a document."""
MOST_CLAUSES = 2_000
"""Different ones of one turn: nobody speaks longer, and a log that was pasted is no speech."""
LONGEST_SENTENCE = 1_000
"""What is longer is no sentence, and nothing in it is taken."""

_FENCE = re.compile(r"(```|~~~).*?(?:\1|\Z)", re.DOTALL)
_QUOTED_LINE = re.compile(r"^[ \t]*(?:>|\|).*$", re.MULTILINE)
_INDENTED = re.compile(r"^(?: {4}|\t).*$", re.MULTILINE)
_MAIL = re.compile(r"^(?:From|To|Subject|Sent|Date|Cc|Re|Fwd?):[ \t]?\S.*\Z", re.MULTILINE | re.DOTALL | re.IGNORECASE)
_TAGGED = re.compile(r"<([a-z][\w-]*)\b[^<>]*>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_PASTED = re.compile(
    r"^(?![^\n]*\b(?:my|our|i|we)\b)[^\n]*\b(?:here(?:'s| is| are)|below|following|pasted?|says|said|wrote|reads|log|output|error|"
    r"email|e-mail|message|article|document|excerpt|quote|readme|text)\b[^\n]*:[ \t]*\n.*\Z",
    re.MULTILINE | re.DOTALL | re.IGNORECASE,
)
_SPOKEN = re.compile(r"\"[^\"\n]*\"|“[^”\n]*”|«[^»\n]*»|(?<!\w)'[^'\n]{12,}'(?!\w)|(?<!\w)‘[^’\n]{12,}’(?!\w)")
_WRAPPED = re.compile(
    r"(?<=[^\s.!?:;])\n(?=[a-z])(?!i\b|we\b|my\b|our\b|always\b|never\b|don|please\b|use\b|let|no\b|actually\b|also\b|and\b|but\b)"
)
_BULLET = re.compile(r"^[ \t]*(?:[-*•–]|\d{1,2}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?")
_JOINT = re.compile(
    r"(?:(?:[,;]|(?<![,;\s]))\s++(?:and|but)\s++|;\s++)(?=(?:(?:also|now|then)\s+)?(?:i|i'm|i’m|i've|my|we|we're|our|always|never|please)\b)",
    re.IGNORECASE,
)
_REPORTS = re.compile(
    r"\b(?:said|says|say that|they say|people say|the saying|told|tells|claim(?:s|ed)?|wrote|writes|asked|asks|according to|apparently|reportedly|thinks|"
    r"believes|insists|wants me|suggests|recommends)\b",
    re.IGNORECASE,
)
_OWN_WORDS = re.compile(r"\b(?:i|we)(?:'ve| have| had)? (?:already |just )?(?:said|told|wrote|asked)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause, where it stands in its turn, and the whole sentence it is part of."""

    text: str
    start: int
    sentence: str

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.start + len(self.text)


def clauses(content: str) -> Iterator[Clause]:
    """The clauses of a turn, in order; each is found verbatim at its place, and said again it is said once."""
    said: set[str] = set()
    for clause in _clauses(_own_words(content[:LONGEST_TURN])):
        if clause.text not in said:
            said.add(clause.text)
            yield clause
        if len(said) == MOST_CLAUSES:
            return


def _clauses(shown: str) -> Iterator[Clause]:
    for start, end in _sentences(shown):
        sentence = shown[start:end]
        if len(sentence) > LONGEST_SENTENCE or (is_reported(sentence) and not asked_to_remember(sentence)):
            continue
        cuts = [0, *(joint.end() for joint in _JOINT.finditer(sentence)), len(sentence)]
        ends = [*(joint.start() for joint in _JOINT.finditer(sentence)), len(sentence)]
        for first, last in zip(cuts, ends, strict=False):
            text = sentence[first:last]
            bare = text.strip()
            if bare:
                yield Clause(bare, start + first + text.index(bare), sentence.strip())


def is_reported(sentence: str) -> bool:
    """Whether a sentence hands on what somebody else says."""
    return bool(_REPORTS.search(_OWN_WORDS.sub("", sentence)))


def _own_words(content: str) -> str:
    """The turn with what its author only hands on blanked out; every other character keeps its place."""
    for pattern in (_FENCE, _TAGGED, _QUOTED_LINE, _INDENTED, _MAIL, _PASTED):
        content = pattern.sub(_blank, content)
    content = _SPOKEN.sub(lambda quote: quote[0] if len(quote[0].split()) < 3 else HIDDEN * len(quote[0]), content)
    return _WRAPPED.sub(" ", content)


def _blank(found: re.Match[str]) -> str:
    return "\n" * len(found[0])


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    """The spans of the sentences, without the bullets of lists. A line end ends a sentence."""
    start = 0
    for line in text.split("\n"):
        bullet = _BULLET.match(line)
        yield from sentence_spans(text, start + (bullet.end() if bullet else 0), start + len(line))
        start += len(line) + 1
