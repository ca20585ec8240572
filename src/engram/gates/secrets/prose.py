"""Credentials told in prose: spans that may be one, near a word for access, each judged by the model of `engram.models.credentials`.

What has an exact form is found by the other modules. This one looks only around the words of `credential_cues.txt`.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence

from engram.gates.secrets.assignments import PUBLIC
from engram.gates.secrets.forms import Hints, Secret, apart, stretches
from engram.gates.secrets.values import (
    Likeness,
    is_file_or_host,
    is_masked,
    is_ordinary,
    is_placeholder,
    is_said,
    likeness,
)
from engram.model.lazy import lazy_pattern

__all__ = ["prose", "spans", "without_other_things"]

_BEFORE_CUE, _BEHIND_CUE = 90, 150
"""Characters around a word for access in which spans are judged."""
_LONGEST = 80
_LONGEST_PHRASE = 9
_REACH = 100
"""Maximum characters from a word for a password to a plain word that may be one."""
_QUOTED = re.compile(
    r"(?<!\w)(?:\"([^\"\n]{2,60})\"|'([^'\n]{2,60})'(?!\w)|`([^`\n]{2,60})`|“([^”\n]{2,60})”|„([^“”\n]{2,60})[“”]|«\s?([^»\n]{2,60}?)\s?»|‘([^’\n]{2,60})’(?!\w))"
)
_QUOTES = frozenset("\"'`“„«‘")
# A pattern that begins with a class of characters is found several times as fast as one that begins by looking back.
_DIGITS = re.compile(
    r"[#*\d](?<![\w.,:/+@$€£-].)(?:(?<=\d)\d{0,8}|(?<=[#*])\d{1,9})(?:[ -]\d{1,6}){0,7}[#*]?(?![\w%€$£°]|[.,:/]\d|-\w)"
)
_PHONE = re.compile(r"0\d+(?: \d+){1,5}")
_FEWEST_OF_PHONE = 9
"""Digits of a phone number; a code of so many has no leading zero, or other signs between its groups."""
_GROUPS = re.compile(r"[A-Z0-9](?<![\w-].)[A-Z0-9]{1,5}(?:[ -][A-Z0-9]{3,6}){1,8}(?![\w-])")
_APART = r"\s,;()<>\[\]{}|\"“”„«»「」"
_WORDLIKE = re.compile(
    rf"(?:[{_APART}]++|[A-Za-z][a-z]++[.:]*+(?![^{_APART}])|[^{_APART}]{{1,2}}+(?![^{_APART}]))*+(?:(?P<word>[^{_APART}]{{3,80}})|\Z)"
)
"""The next word that is no plain one. Most are plain, and are passed in the same match."""
_ASCII = re.compile(r"[!-~]+")
_TRIMMED = ".:!?'’`*_@"
_MIXED = re.compile(r"[^\W\d_].*\d|\d.*[^\W\d_]|\w[!#$%^&*?~+=@]|[^\W\d_][-_.][^\W\d_]|[a-zß-ÿ][A-ZÀ-Þ]")
_NOT_VALUE = lazy_pattern(
    r"[a-z][\w+.-]*://.*|[~.]{0,2}/.*|\\.*|[A-Za-z]:\\.*|\S*\w@[\w-]+\.\w.*|.*[\\].*|--?[a-z].*|.*/.*/.*|\$\{?\w.*|@\w.*|.*=\S.*|\[?redacted.*",
    re.IGNORECASE,
)
_ASSIGNED = re.compile(r"[A-Za-z_][\w.-]*=(?=[^=])")
_KEYPAD = re.compile(r"(?=(?:\D*\d){3})[A-Z0-9#*-]{4,9}")
_SENTENCE = re.compile(r"[^.!?;\n]+")
_ITEM = re.compile(r"[^,]+")
_SPELLS = re.compile(r"(?<![^\W_'’])(?:[^\W_]|\d{1,4})(?![^\W_])")
_MOST_WORDS_OF_ITEM = 6
_SPELLED = frozenset(("spelled", "parts"))
_LONGEST_SPELLED, _FEWEST_SPELLED = 24, 4
_FEWEST_ITEMS = 3
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_WORD = re.compile(r"(?<![\w@.])[^\W\d_]+(?:['’-][^\W\d_]+)*(?![\w@]|\.\w)")
_LEADS = re.compile(r"[\"'`“„«‘」』]{0,2}\s{0,2}[:=：,–—(/\"'`“„«‘-]\s{0,2}[\"'`“„«‘]?")
_LEAD_GROUPS = frozenset(("is", "with", "use", "set", "answer", "pass", "ask", "pin", "key", "code", "login"))
_ASSIGNS = re.compile(r"\w[\"'\])]{0,2}\s?:?=\s?[\"'`]?\Z")
"""What precedes a value in code and configuration, where words around it describe other lines."""
_LAST_NUMBER = re.compile(r"( \d{1,6})(?=[\"'`”»)]{0,2}(?:[.,;!?]?\s|[.,;!?]?\Z))")
"""The number that ends a passphrase: "tango foxtrot 88"."""
_SHORTEST_WORD = 4
_CALLS, _ATTRIBUTES = tuple("([="), tuple(".([{=")
_FEWEST_DIGITS = 3
_HAS_BOTH = re.compile(r"\A(?=[\W\d_]*+[^\W\d_])(?=\D*+\d)")
_BEFORE_ITEMS = lazy_pattern(r"(?i)[:=]\s|\b(?:is|it['’]s|ist|est|c['’]est|es|è|é|was|are|now|jetzt) ")
_CONTINUES = frozenset("@=_/\\0123456789")


def prose(text: str, lowered: str, hints: Hints, found: Sequence[Secret]) -> Iterator[Secret]:
    """The spans that the model judges to be credentials, apart from those already found."""
    from engram.models.credentials import MARGIN, shape_of

    taken, score = apart(found), ScoreCache(text)
    ends = [secret.end for secret in taken]
    for start, end in spans(text, lowered, hints):
        behind = bisect_right(ends, start)
        is_taken = behind < len(taken) and taken[behind].start < end
        if not is_taken and score.of_span(start, end) > MARGIN:
            yield Secret("pin" if shape_of(text[start:end])[0] in ("number", "keypad") else "password", start, end)


class ScoreCache:
    """The model's scores of the spans of one text; where a text repeats itself, each is computed once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._scores: dict[tuple[str, str, str], int] = {}

    def of_span(self, start: int, end: int) -> int:
        """The score of a span: the higher, the more it is a credential."""
        from engram.models.credentials import score_span, window_of

        window = window_of(self._text, start, end)
        if window not in self._scores:
            self._scores[window] = score_span(*window)
        return self._scores[window]


def without_other_things(text: str, found: Iterable[Secret]) -> Iterator[Secret]:
    """The secrets, without those that the words around them describe as something else: a phone number, a serial, an order."""
    from engram.models.credentials import OTHER_MARGIN

    score = ScoreCache(text)
    for secret in found:
        if (
            secret.end - secret.start > _LONGEST
            or _ASSIGNS.search(text, max(0, secret.start - 8), secret.start)
            or score.of_span(secret.start, secret.end) >= OTHER_MARGIN
        ):
            yield secret


def spans(text: str, lowered: str, hints: Hints) -> Iterator[tuple[int, int]]:
    """The spans that may be a credential, around the words for access that occur in the text; used for training."""
    from engram.models.credentials import cue_places, cue_stems

    stems = cue_stems()
    cues = cue_places(lowered, {hint: places for hint, places in hints.items() if hint in stems})
    strong = [end for _, end, leads in cues if leads]
    for begin, stop in stretches((start for start, *_ in cues), _BEFORE_CUE, _BEHIND_CUE):
        first, last = _whole(text, max(0, begin), min(stop, len(text)))
        found = {*_quoted(text, first, last), *_marked(text, first, last)}
        if bisect_left(strong, first) < bisect_left(strong, last):
            found.update(_plain(text, first, last, strong))
        yield from sorted(found)


def _whole(text: str, begin: int, stop: int) -> tuple[int, int]:
    """The stretch with no word cut in two."""
    first = max(text.rfind(" ", 0, begin), text.rfind("\n", 0, begin), begin - _LONGEST) + 1 if begin else 0
    ends = [place for sign in " \n" if (place := text.find(sign, stop, stop + _LONGEST)) >= 0]
    return first, min(ends, default=min(len(text), stop + _LONGEST))


def _quoted(text: str, begin: int, stop: int) -> Iterator[tuple[int, int]]:
    if _QUOTES.isdisjoint(text[begin:stop]):
        return
    for match in _QUOTED.finditer(text, begin, stop):
        start, end = match.span(match.lastindex or 0)
        value = text[start:end]
        if len(value.split()) <= _LONGEST_PHRASE and not _is_else(value):
            yield start, end


def _marked(text: str, begin: int, stop: int) -> Iterator[tuple[int, int]]:
    """Numbers, groups of characters, words with digits or signs, and what is spelled out."""
    for match in _DIGITS.finditer(text, begin, stop):
        if sum(map(str.isdigit, match[0])) >= _FEWEST_DIGITS and not _is_phone(match[0]):
            yield match.span()
    for match in _GROUPS.finditer(text, begin, stop):
        if any(map(str.isdigit, match[0])) and not _is_phone(match[0]):
            yield match.span()
    for match in _WORDLIKE.finditer(text, begin, stop):
        word = match["word"] or ""
        plain = word.rstrip(".:")
        if not plain or (plain.isalpha() and plain[1:].islower()):
            continue  # this tells it faster than the pattern
        first = match.start("word")
        # Where words are not divided by spaces, a value in Latin letters is.
        parts = (
            [(first, word)]
            if word[0].isascii()
            else [(first + part.start(), part[0]) for part in _ASCII.finditer(word)]
        )
        for at, part in parts:
            if _MIXED.search(part) is None:
                continue
            start, value = _stripped(at, part)
            if len(value) >= _FEWEST_DIGITS and _MIXED.search(value) and not _is_else(value):
                end = start + len(value)
                if any(map(str.isdigit, value)) or not _is_identifier(text, start, end):
                    yield start, end
    for match in _SENTENCE.finditer(text, begin, stop) if text.count(",", begin, stop) >= _FEWEST_ITEMS - 1 else ():
        if match[0].count(",") >= _FEWEST_ITEMS - 1:
            yield from _spelled(match)


def _is_phone(value: str) -> bool:
    return _PHONE.fullmatch(value) is not None and sum(map(str.isdigit, value)) >= _FEWEST_OF_PHONE


def _is_identifier(text: str, start: int, end: int) -> bool:
    """Whether joined words are part of an expression of code."""
    return text[end : end + 1] in _CALLS or text[start - 1 : start] in _ATTRIBUTES


def _stripped(start: int, raw: str) -> tuple[int, str]:
    """The value without a name before it and without the signs that end its sentence."""
    if assigned := _ASSIGNED.match(raw):
        raw, start = raw[assigned.end() :], start + assigned.end()
    kept = raw.lstrip("'‘`*_")
    value = kept.rstrip(_TRIMMED)
    signs = kept[len(value) :]
    # Signs that end a sentence end a password as well; a full stop does not.
    value += signs[: len(signs) - len(signs.lstrip("!?*"))] if _HAS_BOTH.search(value) else signs[:1].strip(".:'’`_?")
    return start + len(raw) - len(kept), value


def _spelled(sentence: re.Match[str]) -> Iterator[tuple[int, int]]:
    """The items of a sentence that name single letters and digits: "capital R, then 5, then a hyphen"."""
    from engram.models.credentials import groups_of

    run: list[tuple[int, int]] = []
    spelling = 0
    for item in _ITEM.finditer(sentence.string, *sentence.span()):
        words = item[0].lower().split()
        spells = _SPELLS.search(item[0]) or not _SPELLED.isdisjoint(
            group for word in words for group in groups_of(word)
        )
        if run and len(words) > _MOST_WORDS_OF_ITEM:
            break
        if run or spells:
            run.append(item.span())
            spelling += bool(spells)
    if len(run) >= _FEWEST_ITEMS and 2 * spelling >= len(run):
        yield _run_of_items(sentence.string, run)


def _run_of_items(text: str, run: list[tuple[int, int]]) -> tuple[int, int]:
    leads = [*_BEFORE_ITEMS.finditer(text, *run[0])]
    start = leads[-1].end() if leads else run[0][0]
    start += len(text[start : run[-1][1]]) - len(text[start : run[-1][1]].lstrip())
    return start, run[-1][1]


def _is_else(value: str) -> bool:
    """Whether the value is an address, a path, an option, a placeholder or a mask."""
    if _NOT_VALUE.fullmatch(value) or is_placeholder(value) or is_masked(value) or value.startswith(PUBLIC):
        return True
    if _KEYPAD.fullmatch(value):
        return False
    if _UUID.fullmatch(value) or (not any(map(str.isdigit, value)) and "." not in value and _refers(value)):
        return True
    # Dotted names may be passphrases: "seven.purple.herons".
    return is_ordinary(value) and (is_file_or_host(value) or "." not in value)


def _refers(value: str) -> bool:
    """Whether words in one say where a secret is or what it must be."""
    return " " not in value and likeness(value) == Likeness.NOT


def _plain(text: str, begin: int, stop: int, strong: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Plain words and runs of them, behind a word for a password and something that leads to a value."""
    from engram.models.credentials import groups_of

    begin = max(begin, strong[bisect_left(strong, begin)] - _LONGEST)
    words = list(_WORD.finditer(text, begin, stop))
    spelled = [not _SPELLED.isdisjoint(groups_of(word[0].lower())) for word in words]
    for place, word in enumerate(words):
        near = bisect_left(strong, word.start() + 1)
        if not near or word.start() - strong[near - 1] > _REACH:
            continue
        gap = text[words[place - 1].end() if place else begin : word.start()]
        leads = gap.isspace() and (
            word.start() - strong[near - 1] <= len(gap)
            or (place and not _LEAD_GROUPS.isdisjoint(groups_of(words[place - 1][0].lower())))
        )
        if (leads or _LEADS.fullmatch(gap)) and "\n\n" not in gap:
            yield from _runs(text, words, place)
            if sum(spelled[place : place + _LONGEST_SPELLED]) >= _FEWEST_SPELLED:
                yield from _spelled_run(text, words, spelled, place)


def _runs(text: str, words: list[re.Match[str]], place: int) -> Iterator[tuple[int, int]]:
    """The word at a place, and the run of words that begins there and ends its clause."""
    from engram.models.credentials import groups_of

    first = last = words[place]
    if is_said(first[0]):
        return
    titled = first if first[0][0].isupper() else None
    size = 1
    if len(first[0]) >= _SHORTEST_WORD and first[0].isalpha() and not groups_of(first[0].lower()):
        yield first.span()
    for word in words[place + 1 : place + _LONGEST_PHRASE + 1]:
        if text[last.end() : word.start()] != " ":
            break
        last, size = word, size + 1
        titled = word if titled and word[0][0].isupper() else titled
    if 1 < size <= _LONGEST_PHRASE and text[last.end() : last.end() + 2].strip()[:1] not in _CONTINUES:
        yield first.start(), last.end()
    elif size > 1 and (number := _LAST_NUMBER.match(text, last.end())):
        yield first.start(), number.end(1)
    if titled and first is not titled is not last:
        yield first.start(), titled.end()


def _spelled_run(
    text: str, words: list[re.Match[str]], spelled: Sequence[bool], place: int
) -> Iterator[tuple[int, int]]:
    """The run of words that begins at a place, if several of them name letters and digits: "capital P lowercase o then four two"."""
    last, spelling = words[place], 0
    for word, is_spelled in zip(
        words[place : place + _LONGEST_SPELLED], spelled[place : place + _LONGEST_SPELLED], strict=True
    ):
        if text[last.end() : word.start()].strip():
            break
        last, spelling = word, spelling + is_spelled
    if spelling >= _FEWEST_SPELLED:
        yield words[place].start(), last.end()
