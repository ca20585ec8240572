"""Finds the entities in a text: identifiers, paths, people and products, versions, addresses, quoted terms.

It is deterministic: one pass of one pattern, then a check of capitalised words. Every alternative of the pattern has a
fixed start and bounded repetition, so any input takes linear time; only the start of a long text is read.
"""

import re
import unicodedata
from functools import lru_cache

from engram.model.lazy import lazy_pattern
from engram.text.words import read_table

__all__ = ["entities"]

# A statement has a handful of entities; a document is indexed by its words.
_READ_CHARS = 100_000
_MOST_ENTITIES = 128
_MAX_ENTITY_CHARACTERS = 200

_ID = r"[A-Za-z_$][\w$]{0,80}"
_PIECE = lazy_pattern(
    r"(?P<word>[^\W\d_]{1,60}(?:['’](?!s\b)[^\W\d_]{1,40})?(?![\w/\\@:(.$-]))"
    r"|(?P<url>(?<![\w])(?:https?|ftp|ssh|git|file|wss?|s3|postgres(?:ql)?|redis|mongodb|mysql)://[^\s<>\"'`，。、）)]{1,190})"
    r"|(?P<email>(?<![\w.+-])[\w.+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,4})"
    r"|(?P<quoted>`[^`\n]{1,80}`|“[^”\n]{1,80}”|「[^」\n]{1,80}」|『[^』\n]{1,80}』|《[^》\n]{1,80}》|«[^»\n]{1,80}»"
    r"|(?<![\w])\"[^\"\n]{1,80}\"(?!\w)|(?<![\w])'[^'\n]{2,60}'(?!\w))"
    r"|(?P<path>(?<![\w.~/@-])(?:~|\.{1,2})?(?:/[\w.@+-]{1,100}){1,24}/?"
    r"|(?<![\w.~/@-])[\w.@+-]{1,100}+(?:/[\w.@+-]{1,100}){1,24}/?|(?<!\w)[A-Za-z]:\\(?:[\w.-]{1,80}\\?){1,16})"
    r"|(?P<ip>(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?:[:/]\d{1,5})?(?![\w.])|(?<![\w:])[0-9A-Fa-f]{1,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?![\w:]))"
    r"|(?P<flag>(?<![\w-])--[A-Za-z][\w-]{1,40}|(?<![\w-])-[A-Za-z](?![\w-]))"
    r"|(?P<env>(?<!\w)\$\{?[A-Za-z_]\w{1,60}\}?)"
    r"|(?P<issue>(?<![\w&])\#\d{1,7}(?!\w)|(?<![\w-])[A-Z][A-Z0-9]{1,9}-\d{1,7}(?![\w-]))"
    r"|(?P<version>(?<![\w.])[vV]?\d{1,5}(?:\.\d{1,5}){1,4}(?:[-+][0-9A-Za-z.]{1,20})?(?![\w]))"
    rf"|(?P<identifier>(?<![\w$])(?:{_ID}(?:(?:\.|::|->|-){_ID}){{0,8}}(?:\(\))?))"
    r"|(?P<end>[.!?:;\n。！？]|[-*•](?=\s))"
    r"|(?P<name>[^\W\d_]{1,60})"
)
_CAMEL = lazy_pattern(r"[a-z][A-Z]")
_MIXED = lazy_pattern(r"[a-z][A-Z]|[A-Z]{2}[a-z]|[A-Za-z]\d|\d[A-Za-z]|_|\.|::|->|\(\)$")
_NAME_GAP = lazy_pattern(r" (?:(?:of|de|van|von|der|da|del|la|al|bin|&) ){0,2}\Z")
_NOT_NAMES_IN_SHAPE = frozenset(("e.g", "i.e", "etc", "vs", "a.m", "p.m", "and/or", "he/she", "n/a", "yes/no", "e.g."))


_WEEKDAYS = frozenset(("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"))


@lru_cache(maxsize=1)
def _nameless() -> frozenset[str]:
    """Words that are not entities even if capitalised."""
    rows = read_table("stopwords.txt") + read_table("questionwords.txt")
    return _WEEKDAYS | frozenset(word for row in rows for word in row)


@lru_cache(maxsize=1)
def _starters() -> frozenset[str]:
    """Words that are not entities at the start of a sentence, but may be elsewhere (New York)."""
    return _nameless() | frozenset(word for row in read_table("starters.txt") for word in row)


def entities(text: str) -> tuple[str, ...]:
    """The distinct entities in a text, as written, in order of appearance."""
    text = text[:_READ_CHARS]
    if text.islower() and text.isascii() and text.replace(" ", "").isalpha():
        return ()  # no capital, digit or sign, so no name or identifier
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    found: dict[str, None] = {}
    names = _Names(text)
    for match in _PIECE.finditer(text):
        kind = match.lastgroup
        if kind == "word" and not (word := match[0])[1:].islower() and _CAMEL.search(word):
            names.interrupt(found)
            found[word] = None
        elif kind == "word" or kind == "name":
            names.add_word(match, found)
        elif kind == "end":
            names.end_sentence()
        elif entity := _entity_of_match(str(kind), match, names, found):
            found[entity[:_MAX_ENTITY_CHARACTERS]] = None
        if len(found) >= _MOST_ENTITIES:
            break
    names.finish(found)
    return tuple(found)


def _entity_of_match(kind: str, match: re.Match[str], names: "_Names", found: dict[str, None]) -> str:
    """The entity of a match other than a plain word; "" if it is an ordinary word."""
    surface = match[0]
    if kind == "identifier":
        if _MIXED.search(surface) and surface.lower() not in _NOT_NAMES_IN_SHAPE and surface.strip("_$"):
            names.interrupt(found)
            return surface.removesuffix("()")
        names.add_word(match, found)
        return ""
    names.interrupt(found)
    if kind == "quoted":
        return surface[1:-1].strip()
    if kind in ("url", "path"):
        return "" if surface.lower() in _NOT_NAMES_IN_SHAPE else surface.rstrip(".,;:!?")
    return surface.strip("${}") if kind == "env" else surface


class _Names:
    """Collects runs of capitalised words and decides about those at the start of a sentence when all are known."""

    __slots__ = ("at_start", "doubtful", "end", "run", "seen", "start", "starts_sentence", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.run: list[str] = []
        self.start = self.end = 0
        self.starts_sentence = True
        self.at_start = False
        self.doubtful: dict[str, None] = {}
        self.seen: set[str] = set()

    def add_word(self, match: re.Match[str], found: dict[str, None]) -> None:
        word = match[0]
        if word[0].isupper():
            if self.run and _NAME_GAP.match(self.text, self.end, match.start()):
                self.run.append(word)
                self.end = match.end()
            else:
                self._close(found)
                self.run, self.start, self.end = [word], match.start(), match.end()
                self.at_start = self.starts_sentence
        elif self.run and not _is_particle(word):
            self._close(found, verb=word)
        self.starts_sentence = False

    def interrupt(self, found: dict[str, None]) -> None:
        self._close(found)
        self.starts_sentence = False

    def end_sentence(self) -> None:
        self.starts_sentence = True

    def finish(self, found: dict[str, None]) -> None:
        self._close(found)
        for word in self.doubtful:
            if word in self.seen:
                found.setdefault(word)

    def _close(self, found: dict[str, None], verb: str = "") -> None:
        if not self.run:
            return
        run, self.run = self.run, []
        begin, first = self.start, 0
        while first < len(run) and run[first].lower() in (_starters() if self.at_start else _nameless()):
            begin += len(run[first])
            while begin < self.end and self.text[begin].isspace():
                begin += 1
            first += 1
            self.at_start = False
        if first == len(run):
            return
        name = self.text[begin : self.end]
        owns = self.text[self.end : self.end + 2] in ("'s", "’s")
        if self.at_start and len(run) - first == 1 and not owns and not _is_surely_name(name, verb):
            self._doubt(name, found)
        else:
            found.setdefault(name[:_MAX_ENTITY_CHARACTERS])
            self.seen.add(name)

    def _doubt(self, name: str, found: dict[str, None]) -> None:
        """Keep a single capitalised word at the start of a sentence if it recurs."""
        if name in self.doubtful:
            found.setdefault(name)
        self.doubtful[name] = None


def _is_particle(word: str) -> bool:
    return word in ("of", "de", "van", "von", "der", "da", "del", "la", "al", "bin")


def _is_surely_name(word: str, following: str) -> bool:
    if len(word) > 1 and word.isupper():
        return True
    return following in verbs_after_names()


@lru_cache(maxsize=1)
def verbs_after_names() -> frozenset[str]:
    """Verbs that follow the name of somebody."""
    return frozenset(word for row in read_table("nameverbs.txt") for word in row)
