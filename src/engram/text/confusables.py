"""Folds text for comparison: two texts that look the same to a reader fold to the same text.

Invisible characters are removed, compatibility forms (full-width, mathematical and circled letters, ligatures) become
plain, HTML entities inside words are decoded, stray marks and accents are removed, and letters that look like Latin
ones become Latin. Text in other scripts and languages is unchanged: a word that mixes scripts is folded only if all of
its letters look Latin, accents only in English.

`fold_text` gives the text that every gate, model and comparison reads; `fold_with_positions` also maps positions back
to the original.
"""

import re
import unicodedata
from bisect import bisect_right
from functools import lru_cache

from engram.model.lazy import dataclass, lazy_pattern
from engram.text.display import BLANK, FLAG, INVISIBLE, remove_invisible
from engram.text.words import read_table, stem, stop_words

__all__ = [
    "FoldedText",
    "fold_disguised",
    "fold_mixed_words",
    "fold_text",
    "fold_with_positions",
    "normalize_forms",
    "readings",
    "spell_lookalikes",
    "strip_accents",
]


@dataclass(frozen=True, slots=True)
class FoldedText:
    """A folded text. From each position in `starts` on, the text comes from the corresponding position in `origins`."""

    text: str
    starts: tuple[int, ...] = ()
    origins: tuple[int, ...] = ()

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The original span of a span of the folded text."""
        return (self._origin(start), self._last(end - 1) + 1) if self.starts else (start, end)

    def _origin(self, place: int) -> int:
        run = bisect_right(self.starts, place) - 1
        origin = self.origins[run] + place - self.starts[run]
        # Several characters may come from one original character.
        return min(origin, self.origins[run + 1] - 1) if run + 1 < len(self.origins) else origin

    def _last(self, place: int) -> int:
        """The last original character of one folded character, which may come from several."""
        run = bisect_right(self.starts, place) - 1
        is_end = run + 1 < len(self.starts) and place + 1 == self.starts[run + 1]
        return max(self._origin(place), self.origins[run + 1] - 1) if is_end else self._origin(place)


def readings(text: str) -> list[FoldedText]:
    """The folded text and its alternative readings.

    A character that may be a space or nothing gives two texts. If accents or escapes hide the name of a credential, a
    text without them is added.
    """
    if text.isascii() or not BLANK.search(text):
        found = [fold_with_positions(text)]
    else:
        found = [fold_with_positions(BLANK.sub(nothing, text)) for nothing in ("\u200b", " ")]
    return [*found, *(plain for one in found if (plain := _reveal_credentials(one)) is not None)]


def _reveal_credentials(given: FoldedText) -> FoldedText | None:
    """The text without accents and escapes, if that uncovers a credential's name, or joins an address or a token."""
    plain = FoldedText(strip_accents(given.text), given.starts, given.origins)
    has_joint = not given.starts and _ESCAPED_JOINT.search(plain.text) is not None
    if not given.starts and _ESCAPED.search(plain.text):
        plain = _decode_escapes(plain.text)
    if has_joint or (plain.text != given.text and _count_credentials(plain.text) > _count_credentials(given.text)):
        return plain
    return None


def _count_credentials(text: str) -> int:
    return sum(1 for _ in _CREDENTIAL.finditer(text))


def _decode_escapes(text: str) -> FoldedText:
    """The text with its escapes decoded, and the original positions."""
    pieces, starts, origins, size, position = [], [0], [0], 0, 0
    for found in _ESCAPED.finditer(text):
        start, end = found.span()
        pieces += [text[position:start], found[2] or chr(int(found[1], 16))]
        size += start - position + 1
        starts += [size - 1, size]
        origins += [start, end]
        position = end
    return FoldedText("".join([*pieces, text[position:]]), tuple(starts), tuple(origins))


def fold_text(text: str, *, accents: bool = True) -> str:
    """The text in the form used for comparison. ASCII without entities is returned unchanged; without `accents`,
    accents stay.
    """
    if "&" in text:
        text = _decode_entities(text)
    if text.isascii():
        return text
    plain = _plain_text(text)
    if _MARKED.search(plain):
        plain = _MARKED.sub(lambda found: _compose(found[0]), plain)
    if not unicodedata.is_normalized("NFC", plain):
        plain = unicodedata.normalize("NFC", plain)
    return _LOOSE_MARKS.sub("", _fold_words(plain, accents=accents))


def normalize_forms(text: str) -> str:
    """The text in NFKC. If that more than doubles its length, characters that become a whole word are kept."""
    if text.isascii():
        return text
    if _plain_table(text) is _PLAIN:
        normal = unicodedata.normalize("NFKC", text)
        if len(normal) <= 2 * len(text) + _GROWTH:
            return normal
    return unicodedata.normalize("NFC", text.translate(_SHORT_PLAIN))


def fold_disguised(text: str) -> FoldedText:
    """The text from which facts are extracted: folded if anything in it but an emoji or a script's own joiners requires
    it.

    Accents stay because the extracted facts are stored, and names have accents.
    """
    if text.isascii() and "&" not in text:
        return FoldedText(text)
    is_plain = remove_invisible(text) == text and fold_text(text, accents=False) == INVISIBLE.sub("", text)
    return FoldedText(text) if is_plain else fold_with_positions(text, accents=False)


def fold_mixed_words(text: str) -> str:
    """The text with look-alikes replaced by Latin letters in words that mix both: the folding an index can do word by
    word.
    """
    if text.isascii() or not _seam().search(text):
        return text
    return _letters().sub(lambda word: _fold_mixed(word[0]), text)


def strip_accents(text: str) -> str:
    """The text without the accents, strokes and hooks of its Latin letters."""
    return text if text.isascii() else text.translate(_BARE)


def spell_lookalikes(text: str) -> str:
    """The text with Latin letters for letters in other forms (squared, regional, upside down) and in words of only
    look-alikes.

    Such a word may belong to another language, so this is only an alternative reading, not the text used for
    comparison.
    """
    forms = _letter_forms()
    if _TURNED.search(text):
        text = text.translate(forms["turned"])[::-1]
    for name in ("circled", "squared", "regional", "braille"):
        text = text.translate(forms[name])
    return _letters().sub(lambda word: _spell_word(word[0]), text)


def _spell_word(word: str) -> str:
    if word.isascii() or len(word) == 1:
        return word
    spelled = [char if char.isascii() else _look(char) for char in word]
    # A word with Latin letters that also has look-alikes is a disguised Latin word.
    is_mixed = any(map(str.isascii, word))
    return (
        "".join(plain or char for plain, char in zip(spelled, word, strict=True)) if is_mixed or all(spelled) else word
    )


_TURNED = lazy_pattern("[ɐɔǝɟƃɥɹʇʎ]")
"""Letters that are clearly upside down."""


@lru_cache(maxsize=1)
def _letter_forms() -> dict[str, dict[int, str]]:
    letters = "abcdefghijklmnopqrstuvwxyz"
    return {name: dict(zip(map(ord, forms), letters, strict=True)) for name, forms in read_table("letterforms.txt")}


def fold_with_positions(text: str, *, accents: bool = True) -> FoldedText:
    """Fold a text as `fold_text` does, with the original positions. Most texts need no folding and are returned as they are."""
    if text.isascii() and "&" not in text:
        return FoldedText(text)
    pieces, starts, origins, size, position = [], [0], [0], 0, 0
    table = _plain_table(text)
    for found in _SEGMENT.finditer(text):
        plain = _plain_segment(found, table)
        if plain == found[0]:
            continue
        start, end = found.span()
        pieces += [text[position:start], plain]
        size += start - position
        starts += [size, size + len(plain)]
        origins += [start, end]
        size, position = size + len(plain), end
    if not pieces:
        return FoldedText(_fold_words(text, accents=accents))
    pieces.append(text[position:])
    return FoldedText(_fold_words("".join(pieces), accents=accents), tuple(starts), tuple(origins))


def _plain_segment(found: re.Match[str], table: dict[int, str]) -> str:
    """A character outside ASCII, a letter with its marks, or an entity, in its plain form."""
    given = found[0]
    if given[0] == "&":
        given = _decode_entity(found)
        return given if given == found[0] else given.translate(table)
    if len(given) == 1:
        return table[ord(given)]
    return given if given[0] == _FLAG_BEGIN else _compose(given.translate(table))


# -- characters


_ESCAPED = lazy_pattern(r"(?:%|\\x|\\u00)([2-7][0-9A-Fa-f])|\\(/)")
"""An ASCII character as URLs, programs and JSON escape it."""
_ESCAPED_JOINT = lazy_pattern(r":\\/\\/|(?:%|\\x|\\u00)(?:2f|3a|40|5f)", re.IGNORECASE)
"""The escape of a character that joins the parts of an address or a token."""
_CREDENTIAL = lazy_pattern(r"passw|passphrase|passcode|secret|token|credential|api.?key|login", re.IGNORECASE)
"""Names of credentials; a text that hides one of them is read a second time."""


class _Plain(dict[int, str]):
    """Maps a character to its plain form; a lazily filled table for `str.translate`."""

    def __missing__(self, code: int) -> str:
        self[code] = plain = _plain(chr(code))
        return plain


_HYPHENS = frozenset("\u2010\u2011\u2043\u2212\ufe63\uff0d")
_SLASHES = frozenset("\u2044\u2215")
# Sentences of scripts with wide letters are split at these.
_WIDE_PUNCTUATION = frozenset("，．；：！？（）")
_FLAG_BEGIN = "\U0001f3f4"
_BRAILLE_BLANK = "\u2800"


def _plain(char: str) -> str:
    if char.isascii() or char in _WIDE_PUNCTUATION:
        return char
    if char.isspace() or char == _BRAILLE_BLANK:
        return "\n" if char in "\x85\u2028\u2029" else " "
    if INVISIBLE.match(char):
        return ""
    if char in _HYPHENS:
        return "-"
    if char in _SLASHES:
        return "/"
    form, *_ = unicodedata.decomposition(char).split(maxsplit=1) or [""]
    if form[:1] != "<":
        return char
    plain = unicodedata.normalize("NFKC", char)
    if form == "<fraction>":
        return f" {plain.replace('⁄', '/')}"
    if form == "<super>" and plain.isdigit():
        return f"^{plain}"  # 10² is not 102
    if form == "<compat>" and (unicodedata.category(char) == "Lo" or not any(map(str.isalnum, plain))):
        return char  # parts of letters (Thai, Lao, Korean), and marks such as the ellipsis
    return plain


class _ShortPlain(dict[int, str]):
    """`_Plain` without the characters that become a whole word or sentence."""

    def __missing__(self, code: int) -> str:
        self[code] = plain = _PLAIN[code] if len(_PLAIN[code]) <= _MAX_LIGATURE else chr(code)
        return plain


_PLAIN = _Plain()
_SHORT_PLAIN = _ShortPlain()
_MAX_LIGATURE = 3
"""The number of characters that a single character may always become: a ligature, a digraph, a Roman numeral."""
_GROWTH = 1_000
"""The number of characters by which any text may grow; a longer text may grow to twice its length."""


def _plain_table(text: str) -> dict[int, str]:
    """The plain forms for a text. One character may become 18, so a text of such characters would grow without
    limit.
    """
    long = [char for char in set(text) if len(_PLAIN[ord(char)]) > _MAX_LIGATURE]
    growth = sum((len(_PLAIN[ord(char)]) - 1) * text.count(char) for char in long)
    return _SHORT_PLAIN if growth > len(text) + _GROWTH else _PLAIN


_MARKS = "\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
_SIGNED = r"[A-Za-z\u00c0-\u024f\u0370-\u052f\u1e00-\u1fff][^\w\x00-\x7f\U0001f3f4]+"
"""A European letter and the signs after it, which may be marks of any script."""
_MARKED = lazy_pattern(f"{_SIGNED}|[^{_MARKS}]?[{_MARKS}]+")
"""A character and the marks on it."""
_EUROPEAN_MARK = lazy_pattern(f"[{_MARKS}]")
_LOOSE_MARKS = lazy_pattern(f"(?<=[A-Za-z])[{_MARKS}]+")
_FLAGS = lazy_pattern(f"({FLAG})")
_ENCODED = r"&(?:#(?:[0-9]{1,7}|[xX][0-9a-fA-F]{1,6});?|[A-Za-z][A-Za-z0-9]{1,31};)"
_ENTITY = lazy_pattern(_ENCODED)
_SEGMENT = lazy_pattern(rf"{_ENCODED}|{FLAG}|{_SIGNED}|[^{_MARKS}]?[{_MARKS}]+|[^\x00-\x7f]")
_MOST_ENCODED = 3
"""The maximum number of times a text may be encoded: `&amp;#83;` is an `S` that was encoded twice."""


def _plain_text(text: str) -> str:
    table = _plain_table(text)
    if _FLAG_BEGIN not in text:
        return text.translate(table)
    return "".join(part if at % 2 else part.translate(table) for at, part in enumerate(_FLAGS.split(text)))


def _compose(marked: str) -> str:
    return _compose_short(marked) if len(marked) <= _CACHED_MARKS else _compose_signed(marked)


def _compose_signed(marked: str) -> str:
    """A character and its marks as one letter, without marks that no language combines with it, and the rest."""
    if marked[:1].isalpha():
        size = next((at for at, char in enumerate(marked[1:], 1) if not _is_mark(char)), len(marked))
        own = "".join(char for char in marked[1:size] if _EUROPEAN_MARK.match(char))
        return (_compose_letter(marked[0] + own) if own else marked[0]) + marked[size:]
    return _compose_letter(marked)


_CACHED_MARKS = 4
_compose_short = lru_cache(maxsize=4096)(_compose_signed)


@lru_cache(maxsize=4096)
def _is_mark(char: str) -> bool:
    return unicodedata.category(char)[0] == "M"


def _compose_letter(marked: str) -> str:
    letter, composed = marked[:1], unicodedata.normalize("NFC", marked)
    if not letter.isalpha():
        # A sign may be one with its mark (≠); on a digit or a space, marks mean nothing.
        return "" if unicodedata.combining(letter or "\u0300") else composed[0]
    if not _is_european(letter):
        return letter
    # On an accented letter, one more mark may be its tone.
    is_accented = unicodedata.normalize("NFD", composed[0]) != composed[0]
    return composed[:2] if is_accented else composed[0]


@lru_cache(maxsize=1024)
def _is_european(letter: str) -> bool:
    return unicodedata.name(letter, "").startswith(("LATIN", "CYRILLIC", "GREEK"))


# -- entities


def _decode_entities(text: str) -> str:
    for _ in range(_MOST_ENCODED):
        decoded = _ENTITY.sub(_decode_entity, text)
        if decoded == text:
            break
        text = decoded
    return text


def _decode_entity(found: re.Match[str]) -> str:
    """The character of an entity inside a word; an entity by itself may be the subject of the text and is kept."""
    from html import unescape

    text, (start, end) = found.string, found.span()
    before, after = text[start - 1 : start], text[end : end + 1]
    if not (_is_part(before) or _is_part(after) or before == ";" or (after and after in "&#")):
        return found[0]
    return unescape(found[0])


def _is_part(char: str) -> bool:
    """Whether a character next to an entity may form one word with it: a letter, or a character that is removed or
    folded later.
    """
    return char.isalnum() or not (char.isascii() or char.isspace())


# -- accents

_WORD = lazy_pattern(r"[^\W\d_]+")
_VOTING_CHARS = 2_000


@lru_cache(maxsize=1)
def _foreign_words() -> frozenset[str]:
    return frozenset(word for row in read_table("accentedlanguages.txt") for word in row)


@lru_cache(maxsize=1)
def _english_stems() -> frozenset[str]:
    return frozenset(stemmed for stemmed, _ in read_table("words.txt"))


def _has_stray_accents(text: str) -> bool:
    """Whether a text is English without its accents, so that they carry no meaning."""
    words = _WORD.findall(text[:_VOTING_CHARS].translate(_BARE).lower())
    if not _foreign_words().isdisjoint(words):
        return False
    return not stop_words().isdisjoint(words) or any(stem(word) in _english_stems() for word in words)


# -- words


@lru_cache(maxsize=1)
def _lookalikes() -> dict[str, str]:
    """Each character that looks like an ASCII letter, with that letter."""
    return {char: letter for letter, alike in read_table("confusables.txt") for char in alike}


@lru_cache(maxsize=1)
def _letters() -> re.Pattern[str]:
    """A word: letters, and signs and digits that look like letters."""
    signs = "".join(char for char in _lookalikes() if not char.isalpha())
    return re.compile(rf"(?:[^\W\d_]|[{signs}])+")


@lru_cache(maxsize=1)
def _seam() -> re.Pattern[str]:
    """A Latin letter next to one of another script that may look Latin, which occurs in every mixed word."""
    alike = "".join(char for char in _lookalikes() if not _is_latin(char))
    latin = "A-Za-z\u00aa-\u024f\u0250-\u02af\u1d00-\u1dbf\u1e00-\u1eff\u2c60-\u2c7f\ua720-\ua7ff\uab30-\uab6f"
    return re.compile(f"[{latin}][{alike}\u0370-\u052f\u1f00-\u1fff]|[{alike}\u0370-\u052f\u1f00-\u1fff][{latin}]")


@lru_cache(maxsize=4096)
def _look(char: str) -> str:
    """The ASCII letter that a letter of another script resembles, with or without its accents; "" if there is none."""
    alike = _lookalikes()
    return alike.get(char) or alike.get(unicodedata.normalize("NFD", char)[0], "")


@lru_cache(maxsize=4096)
def _is_latin(char: str) -> bool:
    return char.isascii() or unicodedata.name(char, "").startswith(("LATIN ", "MODIFIER LETTER"))


def _fold_words(text: str, *, accents: bool) -> str:
    """The text with look-alikes replaced by Latin letters, and without stray accents, at the same positions."""
    foreign = [char for char in set(text) if not char.isascii()]
    if any(_look(char) and not _is_latin(char) for char in foreign):
        text = _fold_among_latin(fold_mixed_words(text))
    if accents and any(char.isalpha() and _is_latin(char) for char in foreign) and _has_stray_accents(text):
        return text.translate(_BARE)
    return text


def _fold_among_latin(text: str) -> str:
    """The text with Latin letters in words that consist only of look-alikes and are between Latin words."""
    words = list(_letters().finditer(text, 0, _AMONG_LATIN_CHARS))
    scripts = [_script(word[0]) for word in words]
    if scripts.count(_LATIN) < 2:
        return text
    pieces, end = [], 0
    for at, word in enumerate(words):
        near = scripts[max(0, at - 4) : at + 5] if scripts[at] == _ALIKE else ()
        if near and near.count(_LATIN) > 1 and _OTHER not in near and not _is_sign(word[0]):
            pieces += [text[end : word.start()], "".join(map(_look, word[0]))]
            end = word.end()
    return "".join([*pieces, text[end:]]) if pieces else text


_AMONG_LATIN_CHARS = 20_000
"""The number of characters searched for words of only look-alikes; a longer text is a document."""
_CACHED_WORD = 64
"""The length of the longest word whose folding is cached."""
_LATIN, _ALIKE, _SHORT, _OTHER = "latin", "alike", "short", "other"


def _script(word: str) -> str:
    return _word_script(word) if len(word) <= _CACHED_WORD else _word_script.__wrapped__(word)


@lru_cache(maxsize=4096)
def _word_script(word: str) -> str:
    """Whether a word is Latin, consists only of letters that look Latin, is too short to tell, or is in another
    script.
    """
    if word.isascii():
        return _LATIN if len(word) > 1 else _SHORT
    if all(map(_look, word)) and not any(map(_is_latin, word)):
        return _ALIKE
    return _SHORT if all(_is_latin(char) or _look(char) for char in word) else _OTHER


def _is_sign(word: str) -> bool:
    """Whether a word is a single Greek letter, as in "set α to 0.1"."""
    return len(word) == 1 and unicodedata.name(word, "").startswith("GREEK")


def _fold_mixed(word: str) -> str:
    return _fold_mixed_word(word) if len(word) <= _CACHED_WORD else _fold_mixed_word.__wrapped__(word)


@lru_cache(maxsize=4096)
def _fold_mixed_word(word: str) -> str:
    """A word with Latin letters for those that only look Latin, if it has only these two kinds of letters."""
    if word.isascii() or not any(map(_is_latin, word)) or not all(_is_latin(char) or _look(char) for char in word):
        return word
    return "".join(char if _is_latin(char) else _look(char) for char in word)


class _Bare(dict[int, str]):
    """Maps a Latin letter to the one without its accent, stroke or hook; a lazily filled table for `str.translate`."""

    def __missing__(self, code: int) -> str:
        self[code] = bare = _bare_letter(chr(code))
        return bare


def _bare_letter(char: str) -> str:
    if char.isascii() or not _is_latin(char):
        return char
    base = unicodedata.normalize("NFD", char)[0]
    return base if base.isascii() else _lookalikes().get(char, char)


_BARE = _Bare()
