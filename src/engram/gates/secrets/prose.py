"""Credentials in prose: spans near a word for access that may be one, each judged by the model of `engram.models.credentials`.

Other modules find everything with an exact form. This one only searches around the words of `credential_cues.txt`.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

from engram.gates.secrets.assignments import PUBLIC_PREFIXES
from engram.gates.secrets.forms import (
    Hints,
    Secret,
    is_file_or_host,
    is_masked,
    is_ordinary,
    is_placeholder,
    is_public_address,
    is_said,
    join_overlaps,
    join_windows,
    likeness,
)
from engram.model.lazy import lazy_pattern

__all__ = ["MAX_JUDGED_SPAN_CHARS", "judge_spans", "spans", "tagged_spans"]

_AROUND_CUE = 160
"""Characters around a word for access in which numbers and plain words are judged."""
MAX_JUDGED_SPAN_CHARS = 80
"""Maximum characters of a span that the model judges."""
_LONGEST_PHRASE = 9
_QUOTED = re.compile(
    r"(?<!\w)(?:\"([^\"\n]{2,60})\"|'([^'\n]{2,60})'(?!\w)|`([^`\n]{2,60})`|“([^”\n]{2,60})”|„([^“”\n]{2,60})[“”]|«\s?([^»\n]{2,60}?)\s?»|‘([^’\n]{2,60})’(?!\w))"
)
_QUOTES = frozenset("\"'`“„«‘")
# A pattern that begins with a character class is found several times as fast as one that begins with a lookbehind.
_DIGITS = re.compile(
    r"[#*\d](?<![\w.,/+@$€£-].)(?<!\d:.)(?:(?<=\d)\d{0,18}|(?<=[#*])\d{1,9})(?:[ -]\d{1,6}){0,7}[#*]?(?![\w%€$£°]|[.,:/]\d|-\w)"
)
_DIALLED = re.compile(r"[A-Z0-9](?<![\w./-].)[A-Z0-9]?(?:[-/][A-Z0-9]{1,2}){2,7}(?:-OK)?(?![\w/]|-\w)")
"""Values that are turned or keyed in one by one: "A-4-7-B", "38/12/71"."""
_PARTED = re.compile(r"[/:](?=[^/:]+\Z)")
_PHONE = re.compile(r"0\d+(?: \d+){1,5}")
_FEWEST_OF_PHONE = 9
"""Digits of a phone number; a code of this length has no leading zero, or other signs between its groups."""
_GROUPS = re.compile(r"[A-Z0-9](?<![\w-].)[A-Z0-9]{1,5}(?:[ -][A-Z0-9]{3,6}){1,8}(?![\w-])")
_APART = r"\s,;()<>\[\]{}|\"“”„«»「」"
_WORDLIKE = re.compile(
    rf"(?:[{_APART}]++|[A-Za-z][a-z]++[.:]*+(?![^{_APART}])|[^{_APART}]{{1,2}}+(?![^{_APART}]))*+(?:(?P<word>[^{_APART}]{{3,80}})|\Z)"
)
"""The next word that is not plain. Plain words, the majority, are skipped in the same match."""
_APART_FROM = re.compile(rf"[{_APART}]|\Z")
_ASCII = re.compile(r"[!-~]+")
_TRIMMED = ".:!?'’`*_@"
_MIXED = re.compile(r"[^\W\d_].*\d|\d.*[^\W\d_]|\w[!#$%^&*?~+=@]|[^\W\d_][-_.][^\W\d_]|[a-zß-ÿ][A-ZÀ-Þ]")
_NOT_VALUE = lazy_pattern(
    r"[a-z][\w+.-]*://.*|[~.]{0,2}/.*|\\.*|[A-Za-z]:\\.*|\S*\w@[\w-]+\.\w.*|.*[\\].*|--?[a-z].*|.*/.*/.*|\$\{?\w.*|@\w.*|.*=\S.*|\[?redacted.*",
    re.IGNORECASE,
)
_REFERENCE = re.compile(r"\$[{(A-Z]|\{\{|<[a-z]|%\(")
"""A variable or a placeholder inside quotes."""
_IN_QUOTES = re.compile(r"['`‘]([^'`’]+)['`’](?=\W|\Z)")
_ASSIGNED = re.compile(r"[A-Za-z_][\w.-]*=(?=[^=])")
_KEYPAD = re.compile(r"(?=(?:\D*\d){3})[A-Z0-9#*-]{4,9}")
_SENTENCE = re.compile(r"[^.!?;\n]+")
_ITEM = re.compile(r"[^,]+")
_SPELLS = re.compile(r"(?<![^\W_'’])(?:[^\W_]|\d{1,4})(?![^\W_])")
_MOST_WORDS_OF_ITEM = 6
_SPELLED = frozenset(("spelled", "parts"))
_LONGEST_SPELLED, _FEWEST_SPELLED = 24, 4
_FEWEST_ITEMS = 3
_WORD = re.compile(r"(?<![\w@.])[^\W\d_]+(?:['’-][^\W\d_]+)*(?![\w@]|\.\w)")
_LEADS = re.compile(r"[\"'`“„«‘」』]{0,2}\s{0,2}[:=：,–—(/\"'`“„«‘-]\s{0,2}[\"'`“„«‘]?")
_LEAD_GROUPS = frozenset(
    ("is", "with", "use", "set", "answer", "pass", "ask", "pin", "key", "code", "login", "open", "wifi", "spelled")
)
_JOINING = frozenset((
    "and", "as", "at", "but", "for", "from", "if", "in", "it", "not", "on", "or", "so", "that", "the", "then", "to", "when", "which", "with", "you",
    "all", "no", "als", "an", "auf", "bitte", "dann", "das", "der", "die", "ein", "für", "im", "nicht", "oder", "und", "wenn", "zu", "à", "avec",
    "dans", "et", "le", "les", "mais", "ou", "pour", "puis", "sur", "al", "como", "con", "el", "en", "la", "para", "pero", "que", "sin", "y", "e",
    "per", "poi", "een", "en", "het", "maar", "met", "op", "van", "voor",
))  # fmt: skip
_CLAUSE_JOINS = frozenset((
    "and", "then", "but", "or", "so", "und", "dann", "aber", "y", "luego", "pero", "et", "puis", "mais", "e", "poi", "en", "dan", "maar",
))  # fmt: skip
"""Words that join clauses; a passphrase may contain other joining words."""
_LAST_NUMBER = re.compile(r"( \d{1,6})(?=[\"'`”»)]{0,2}(?:[.,;!?]?\s|[.,;!?]?\Z))")
"""The number that ends a passphrase: "tango foxtrot 88"."""
_SHORTEST_WORD, _SHORTEST_COINED = 4, 10
_CALLS, _ATTRIBUTES = tuple("([="), tuple(".([{")
_FEWEST_DIGITS = 3
_HAS_BOTH = re.compile(r"\A(?=[\W\d_]*+[^\W\d_])(?=\D*+\d)")
_BEFORE_ITEMS = lazy_pattern(r"(?i)[:=]\s|\b(?:is|it['’]s|ist|est|c['’]est|es|è|é|was|are|now|jetzt) ")
_CONTINUES = frozenset("@=_/\\0123456789")


def judge_spans(
    text: str, lowered: str, hints: Hints, known: Sequence[Secret], proposed: Sequence[tuple[str, Secret]]
) -> Iterator[Secret]:
    """The spans that the model takes for credentials, except those that overlap a known one.

    `proposed` are the values that a rule takes for secrets, with the rule; the model can reject them.
    """
    found = tagged_spans(text, lowered, hints, proposed)
    if not found:
        return
    from engram.models.credentials import MARGIN, RULE_MARGIN, shape_of

    kinds = {(secret.start, secret.end): secret.kind for _, secret in reversed(proposed)}
    taken, score = join_overlaps(known), ScoreCache(text, lowered)
    ends = [secret.end for secret in taken]
    for (start, end), tags in found.items():
        behind = bisect_right(ends, start)
        if behind < len(taken) and taken[behind].start < end:
            continue
        kind = kinds.get((start, end), "")
        if (kind and end - start > MAX_JUDGED_SPAN_CHARS) or score.of_span(start, end, tags) > (
            RULE_MARGIN if kind else MARGIN
        ):
            is_pin = shape_of(text[start:end])[0] in ("number", "keypad")
            yield Secret(kind or ("pin" if is_pin else "password"), start, end)


class ScoreCache:
    """The model's scores of the spans of one text; repeated spans are computed once."""

    def __init__(self, text: str, lowered: str) -> None:
        from engram.models.credentials import TextTokens

        self._text = text
        self._tokens = TextTokens(text, lowered)
        self._scores: dict[tuple[str, int, int, tuple[str, ...]], int] = {}

    def of_span(self, start: int, end: int, tags: Sequence[str]) -> int:
        """The score of a span: the higher, the more likely it is a credential."""
        from engram.models.credentials import REACH

        first = max(0, start - 2 * REACH)
        key = (self._text[first : end + 2 * REACH], start - first, end - first, tuple(tags))
        if key not in self._scores:
            self._scores[key] = self._tokens.score(start, end, tags)
        return self._scores[key]


def tagged_spans(
    text: str, lowered: str, hints: Hints, proposed: Iterable[tuple[str, Secret]]
) -> dict[tuple[int, int], list[str]]:
    """The spans that may be a credential, each with the rules that proposed it and the look of its value."""
    found: dict[tuple[int, int], list[str]] = {}
    for rule, secret in proposed:
        found.setdefault((secret.start, secret.end), []).append(f"rule {rule}")
    for span in spans(text, lowered, hints):
        found.setdefault(span, [])
    for (start, end), tags in found.items():
        value = text[start:end]
        if end - start <= MAX_JUDGED_SPAN_CHARS and " " not in value and not value.isalpha() and not value.isdigit():
            tags.append(f"like {likeness(value)}")
    return found


def spans(text: str, lowered: str, hints: Hints) -> Iterator[tuple[int, int]]:
    """The spans that may be a credential: words with digits or signs anywhere, numbers and plain words near a word for access."""
    from engram.models.credentials import cue_places, cue_stems

    stems = cue_stems()
    cues = cue_places(lowered, {hint: places for hint, places in hints.items() if hint in stems})
    found = set(_strings(text))
    for begin, stop in join_windows((start for start, *_ in cues), _AROUND_CUE, _AROUND_CUE):
        first, last = _whole(text, max(0, begin), min(stop, len(text)))
        found.update(_find_quotations(text, first, last))
        found.update(_numbers(text, first, last))
        found.update(_spelled_items(text, first, last))
        found.update(_plain(text, first, last))
    for start, end in sorted(found):
        # Without any word around it, an id looks like a key.
        if end - start <= MAX_JUDGED_SPAN_CHARS and (text[:start].strip() or text[end:].strip()):
            yield start, end


def _whole(text: str, begin: int, stop: int) -> tuple[int, int]:
    """The span extended so that no word is cut in two."""
    first = (
        max(text.rfind(" ", 0, begin), text.rfind("\n", 0, begin), begin - MAX_JUDGED_SPAN_CHARS) + 1 if begin else 0
    )
    ends = [place for sign in " \n" if (place := text.find(sign, stop, stop + MAX_JUDGED_SPAN_CHARS)) >= 0]
    return first, min(ends, default=min(len(text), stop + MAX_JUDGED_SPAN_CHARS))


def _find_quotations(text: str, begin: int, stop: int) -> Iterator[tuple[int, int]]:
    if _QUOTES.isdisjoint(text[begin:stop]):
        return
    for match in _QUOTED.finditer(text, begin, stop):
        start, end = match.span(match.lastindex or 0)
        value = text[start:end]
        if len(value.split()) <= _LONGEST_PHRASE and not _is_else(value) and _REFERENCE.search(value) is None:
            yield start, end


def _numbers(text: str, begin: int, stop: int) -> Iterator[tuple[int, int]]:
    """Numbers, and groups of capitals and digits."""
    for pattern in (_DIGITS, _GROUPS, _DIALLED):
        for match in pattern.finditer(text, begin, stop):
            digits = sum(map(str.isdigit, match[0]))
            if digits >= (_FEWEST_DIGITS if pattern is _DIGITS else 1) and not _is_phone(match[0]):
                yield match.span()


def _strings(text: str) -> Iterator[tuple[int, int]]:
    """Words with digits, signs or capitals in them."""
    cut_at = -1
    for match in _WORDLIKE.finditer(text):
        word = match["word"] or ""
        is_rest = match.start("word") == cut_at
        if len(word) == MAX_JUDGED_SPAN_CHARS and _APART_FROM.match(text, match.end("word")) is None:
            cut_at = match.end("word")
        if is_rest or cut_at == match.end("word"):
            continue  # a part of a longer word
        plain = word.rstrip(".:")
        if not plain or (plain.isalpha() and plain[1:].islower()):
            continue  # this check is faster than the pattern
        first = match.start("word")
        # In scripts that do not separate words, a value in Latin letters is separate.
        parts = (
            [(first, word)]
            if word[0].isascii()
            else [(first + part.start(), part[0]) for part in _ASCII.finditer(word)]
        )
        parts += [
            (at + cut.end(), part[cut.end() :])
            for at, part in parts
            if "//" not in part and not part.startswith("redacted:") and (cut := _PARTED.search(part))
        ]
        for at, part in parts:
            if _MIXED.search(part) is None:
                continue
            start, value = _strip_value(at, part)
            if len(value) >= _FEWEST_DIGITS and _MIXED.search(value) and not _is_else(value):
                end = start + len(value)
                if any(map(str.isdigit, value)) or not _is_identifier(text, start, end):
                    yield start, end


def _spelled_items(text: str, begin: int, stop: int) -> Iterator[tuple[int, int]]:
    """What is spelled out as a list."""
    for match in _SENTENCE.finditer(text, begin, stop) if text.count(",", begin, stop) >= _FEWEST_ITEMS - 1 else ():
        if match[0].count(",") >= _FEWEST_ITEMS - 1:
            yield from _find_spelled_items(match)


def _is_phone(value: str) -> bool:
    return _PHONE.fullmatch(value) is not None and sum(map(str.isdigit, value)) >= _FEWEST_OF_PHONE


def _is_identifier(text: str, start: int, end: int) -> bool:
    """Whether joined words are part of a code expression."""
    return text[end : end + 1] in _CALLS or text[start - 1 : start] in _ATTRIBUTES


def _strip_value(start: int, raw: str) -> tuple[int, str]:
    """The value without a preceding name and without the punctuation that ends its sentence."""
    if assigned := _ASSIGNED.match(raw):
        raw, start = raw[assigned.end() :], start + assigned.end()
    if quoted := _IN_QUOTES.match(raw):
        return start + 1, quoted[1]
    kept = raw.lstrip("'‘`*_")
    value = kept.rstrip(_TRIMMED)
    signs = kept[len(value) :]
    # Signs that end a sentence end a password as well; a full stop does not.
    value += signs[: len(signs) - len(signs.lstrip("!?*"))] if _HAS_BOTH.search(value) else signs[:1].strip(".:'’`_?")
    return start + len(raw) - len(kept), value


def _find_spelled_items(sentence: re.Match[str]) -> Iterator[tuple[int, int]]:
    """The items of a sentence that name single letters and digits: "capital R, then 5, then a hyphen"."""
    from engram.models.credentials import groups_of

    run: list[tuple[int, int]] = []
    spelling = last = 0
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
            last = len(run) if spells else last
    # After the last item that names a sign, the text may be about something else.
    for size in {len(run), last}:
        if size >= _FEWEST_ITEMS and 2 * spelling >= size:
            yield _run_of_items(sentence.string, run[:size])


def _run_of_items(text: str, run: list[tuple[int, int]]) -> tuple[int, int]:
    leads = [*_BEFORE_ITEMS.finditer(text, *run[0])]
    start = leads[-1].end() if leads else run[0][0]
    start += len(text[start : run[-1][1]]) - len(text[start : run[-1][1]].lstrip())
    return start, run[-1][1]


def _is_else(value: str) -> bool:
    """Whether the value is an address, a path, an option, a placeholder or a mask."""
    if _NOT_VALUE.fullmatch(value) or is_placeholder(value) or is_masked(value) or value.startswith(PUBLIC_PREFIXES):
        return True
    if _KEYPAD.fullmatch(value):
        return False
    if is_public_address(value):
        return True
    # Dotted names may be passphrases: "seven.purple.herons".
    return is_ordinary(value) and (is_file_or_host(value) or "." not in value)


def _plain(text: str, begin: int, stop: int) -> Iterator[tuple[int, int]]:
    """Plain words, and runs of them, after something that introduces a value."""
    from engram.models.credentials import groups_of

    words = list(_WORD.finditer(text, begin, stop))
    spelled = [not _SPELLED.isdisjoint(groups_of(word[0].lower())) for word in words]
    for place, word in enumerate(words):
        gap = text[words[place - 1].end() if place else begin : word.start()]
        leads = gap.isspace() and place and not _LEAD_GROUPS.isdisjoint(groups_of(words[place - 1][0].lower()))
        if not (leads or _LEADS.fullmatch(gap)) and _is_coined(word[0]):
            yield word.span()
        if (leads or _LEADS.fullmatch(gap)) and "\n\n" not in gap:
            yield from _runs(text, words, place, is_signed=not leads)
            if sum(spelled[place : place + _LONGEST_SPELLED]) >= _FEWEST_SPELLED:
                yield from _spelled_run(text, words, spelled, place)


def _is_coined(word: str) -> bool:
    """Whether it is a long word in no vocabulary, such as "purplehandsaw", which may be a password even without an introduction."""
    from engram.models.credentials import groups_of, is_known_word

    return (
        len(word) >= _SHORTEST_COINED
        and word.isalpha()
        and word.islower()
        and not (is_known_word(word) or groups_of(word))
    )


def _runs(text: str, words: list[re.Match[str]], place: int, *, is_signed: bool) -> Iterator[tuple[int, int]]:
    """The word at a position, and the runs of words that begin there: to the end of the clause, to a joining word, in capitals."""
    from engram.models.credentials import groups_of

    first = last = words[place]
    is_about = is_said(first[0])
    if is_about and not is_signed:
        return
    titled = first if first[0][0].isupper() else None
    is_joined = False
    size = 1
    if len(first[0]) >= _SHORTEST_WORD and first[0].isalpha() and not is_about and not groups_of(first[0].lower()):
        yield first.span()
    for word in words[place + 1 : place + _LONGEST_PHRASE + 1]:
        if text[last.end() : word.start()] != " ":
            break
        lowered = word[0].lower()
        if last is not first and (lowered in _CLAUSE_JOINS or (not is_joined and lowered in _JOINING)):
            yield first.start(), last.end()
        is_joined = is_joined or lowered in _JOINING
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
    """The run of words at a position if several of them name letters and digits: "capital P lowercase o then four two"."""
    last, spelling = words[place], 0
    for word, is_spelled in zip(
        words[place : place + _LONGEST_SPELLED], spelled[place : place + _LONGEST_SPELLED], strict=True
    ):
        if text[last.end() : word.start()].strip():
            break
        last, spelling = word, spelling + is_spelled
    if spelling >= _FEWEST_SPELLED:
        yield words[place].start(), last.end()
