"""Prepares texts for people and prompts: shows hidden characters, quotes text, cuts it at a word, and strips code and
comments from Markdown.

Everything that was said, imported, written into a file or raised as an error is quoted here before a prompt shows it.
Quoted text cannot start a line of its own (a heading, a list item, a `[ENG-…]` reference), open or close a tag, end its
quotation, or hide.
"""

import re
import unicodedata
from collections import defaultdict, deque
from collections.abc import Callable

from engram.model.lazy import lazy_pattern

_COMMENT_MARKS = ("<!--", "-->", "--!>")
# Default_Ignorable_Code_Point of Unicode's DerivedCoreProperties.txt; the standard library does not have it.
_IGNORABLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
# Fillers and blanks classed as letters or symbols; hieroglyphs' format controls; joiners and annotation marks.
_BLANK = "\u115f\u1160\u2800\u3164\uffa0\ufffc\U00013430-\U00013442\U00016fe4\U0001107f\U0001d159"
_ANNOTATION = "\ufff9-\ufffb"
# Private use, noncharacters, and the planes without assigned characters.
_UNASSIGNED = (
    "\ue000-\uf8ff\ufdd0-\ufdef\ufffe\uffff\U0001fffe\U0001ffff\U0002fffe\U0002ffff\U0003fffe-\U000dffff"
    "\U000e1000-\U0010ffff"
)
BLANK = lazy_pattern(f"[{_BLANK}\u200b]")
"""A character that may be displayed as a space or as nothing."""
INVISIBLE = lazy_pattern(f"[{_IGNORABLE}{_BLANK}{_ANNOTATION}{_UNASSIGNED}]")
"""A character that is never visible."""
UNASSIGNED = lazy_pattern(f"[{_UNASSIGNED}]")
"""A character that has no meaning outside a private agreement."""

# Legitimate uses: joiners and selectors in emoji, joiners in scripts with joined letters, Mongolian selectors, and the flags of
# England, Scotland and Wales, which are spelled in tag characters.
_EMOJI = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff"
    "\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
_INDIC = "\u0900-\u0dff"
_JOINING = (
    f"{_INDIC}\u0620-\u074f\u0750-\u077f\u07c0-\u085f\u0870-\u08ff\u0e00-\u109f\u1780-\u17b3\u17b6-\u17ff\u1820-\u18aa"
    "\u1a20-\u1b7f\ua980-\ua9df\uaa60-\uaa7f\uabc0-\uabff\ufb50-\ufdcf\ufdf0-\ufdff\ufe70-\ufefc\U00011000-\U0001107e"
    "\U00011080-\U000114ff\U0001e900-\U0001e95f"
)
FLAG = "\U0001f3f4\U000e0067\U000e0062[\U000e0061-\U000e007a]{3}\U000e007f"
"""A pattern for the flags of England, Scotland and Wales, which are spelled in tag characters."""
_CONTROL = "\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff"
_NEEDED = "\u200c\u200d\ufe0e\ufe0f\u180b-\u180f"
HIDDEN = lazy_pattern(
    # One class test rules out nearly every character.
    f"(?=[{_CONTROL}{_IGNORABLE}{_BLANK}{_ANNOTATION}{_UNASSIGNED}\U0001f3f4])"
    f"(?:(?P<flag>{FLAG})|[^{_NEEDED}\U0001f3f4]"
    "|(?<![\u1820-\u18aa])[\u180b-\u180f]"
    f"|(?<![{_EMOJI}])(?<![0-9#*](?=\ufe0f\u20e3))[\ufe0e\ufe0f]"
    f"|(?<![{_JOINING}])\u200c|\u200c(?![{_JOINING}])"
    f"|(?<![{_JOINING}{_EMOJI}\ufe0f\U000e007f])\u200d|(?<=[{_EMOJI}\ufe0f\U000e007f])\u200d(?![{_EMOJI}])"
    f"|(?<=[{_JOINING}])(?<![{_INDIC}])\u200d(?![{_JOINING}])|(?<=[{_INDIC}])\u200d(?=[{_IGNORABLE}{_BLANK}]))"
)
"""A character that moves the cursor, reverses the reading order, or is invisible without a legitimate use. Matches of the group
`flag` are legitimate."""


DOUBTFUL = lazy_pattern("[^\t\n -~\xa0-\xac\xae-\u034e\u2010-\u2027\u202f-\u205f]")
"""A character that `HIDDEN` may match: anything but Latin letters and common quotation marks and dashes. Nearly no text
has one, and compiling `HIDDEN` takes 3 ms, a twentieth of a hook.
"""


def escape_hidden(text: str) -> str:
    """The text with hidden characters escaped, so that none can move the cursor or stay hidden; line breaks are
    kept.
    """
    plain = (text.isascii() and text.isprintable()) or DOUBTFUL.search(text) is None
    return text if plain else HIDDEN.sub(_escape_character, text)


def one_line(text: str) -> str:
    """The text on one line, with hidden characters escaped."""
    return escape_hidden(" ".join(text.split()))


def visible_json(dumped: str) -> str:
    """The same JSON with hidden characters escaped, because people and agents read it as text."""
    return HIDDEN.sub(_json_escaped, dumped) if DOUBTFUL.search(dumped) else dumped


def _json_escaped(found: re.Match[str]) -> str:
    import json

    return found[0] if found["flag"] else json.dumps(found[0])[1:-1]


def _escape_character(found: re.Match[str]) -> str:
    if found["flag"]:
        return found[0]
    code = ord(found[0])
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def format_count(number: int, noun: str, plural: str = "") -> str:
    """`1 memory`, `2 memories`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


_SLUG_WORD = lazy_pattern(r"[^\W_]+")


def _slug_words(text: str) -> list[str]:
    """The words of a text in lower case, including the vowel marks of scripts that have them."""
    text = text[:400].lower()
    if text.isascii():
        return _SLUG_WORD.findall(text)
    text = unicodedata.normalize("NFC", text)
    return "".join(char if char.isalnum() or unicodedata.category(char)[0] == "M" else " " for char in text).split()


def slug(text: str, words: int = 6, length: int = 48) -> str:
    """A readable handle from the first words of a text."""
    found = _slug_words(text)
    chosen = found[:words]
    while len(handle := "-".join(chosen)) > length:
        chosen.pop()
    return handle or "-".join(found)[:length]


_OPENING = frozenset("<＜﹤")
_CLOSING = str.maketrans({"“": "‘", "”": "’", "„": "‚", "‟": "‛"})
_NAME = r"[^\W\d][\w.-]*+(?::[\w.-]++)*+"
_LONG_NAME = r"[^\W\d][\w.-]++(?::[\w.-]++)*+"
_CLOSE = r"\s*+(?:/\s*+)?[>＞﹥]"
_MAX_TAG_CHARS = 200
"""Characters between the brackets of a tag; the closing bracket of a longer one is not replaced."""
# The argument of a generic type after a word, as in `List<int>` or `Map<K, V>`.
_TYPE = (
    r"(?:[A-Z]|[A-Z][a-z0-9]\w*|(?:u?int|float|[iuf])\d{0,3}|[iu]size|double|long|short|char|byte|bytes|bool|boolean|str|string"
    r"|number|object|any|void|unknown|never)[>＞﹥]"
)
# Both brackets of a tag, but not those of `->`, `=>` and comparisons. Tags of prompts anywhere; any tag name not directly after a word; after a word, only what continues like a tag; with a space
# after the angle bracket, only what is closed or has an attribute. `a < b`, `x<y` and `List<int>` are left alone.
_MARKUP = lazy_pattern(
    r"[<＜﹤](?:(?=[/|!?]"
    r"|(?i:antml|assistant|context|data|function|human|important|instructions?|memor|prompt|system|tool|user))"
    r"|(?<!\w[<＜﹤])(?=[^\W\d])"
    rf"|(?<=\w[<＜﹤])(?!{_TYPE})(?=(?:{_LONG_NAME})[\s/]|(?:{_NAME})(?:{_CLOSE}|\s++[\w:-]++\s*+=(?!=)))"
    rf"|(?=\s++(?:[/|!?]\s*+[^\W\d]|(?:{_LONG_NAME}){_CLOSE}|(?:{_NAME})\s++[\w:-]++\s*+=\s*+[\"'“”‘’])))"
    rf"(?:(?P<inside>[^<＜﹤>＞﹥\n]{{0,{_MAX_TAG_CHARS}}}+)(?<!=)(?:(?<!-)|(?<=--))[>＞﹥])?"
)
_ONE_WORD = lazy_pattern(r"[\w.:@+/-]{1,100}")
QUOTE_PREFIX = "> "
"""The prefix of every line of a text that keeps its lines."""


def quote_text(text: str) -> str:
    """The text on one line in “quotation marks” that its content cannot close, with its markup disabled."""
    return f"“{notice(text).translate(_CLOSING)}”"


def safe_word(text: str) -> str:
    """An id, role, name, scope or type: unchanged if it is a plain word, otherwise quoted, because files written by
    hand may have any text.
    """
    return text if _ONE_WORD.fullmatch(text) and escape_hidden(text) == text else quote_text(text)


def notice(text: str) -> str:
    """A message by Engram that may include stored text (a warning, an error): on one line, with its markup disabled."""
    return make_inert(one_line(text))


def make_inert(text: str) -> str:
    """The text with its markup disabled and hidden characters escaped, for a JSON value; line breaks are kept."""
    return disable_markup(escape_hidden(text))


def disable_markup(text: str) -> str:
    """The text with its markup disabled, for a JSON value whose hidden characters are escaped by JSON."""
    return text if _OPENING.isdisjoint(text) else _MARKUP.sub(_disarm, text)


def _disarm(found: re.Match[str]) -> str:
    return "‹" if found["inside"] is None else f"‹{found['inside']}›"


def quoted_lines(text: str) -> str:
    """The text with its lines kept, each marked as a quotation."""
    return "\n".join(f"{QUOTE_PREFIX}{make_inert(line)}".rstrip() for line in text.splitlines())


ELLIPSIS = "…"
"""Marks a cut in a text."""
_JOINERS = "\u200c\u200d\ufe0e\ufe0f"
# The number of characters of the first attempt; each further attempt doubles it.
_FIRST_LOOK = 64


def cut(text: str, size: int) -> str:
    """At most `size` characters, back to the last word boundary, and an ellipsis; the text itself if it is no longer.

    A word that fills more than half of them (an address, a script without spaces) is cut inside.
    """
    if len(text) <= size:
        return text
    end = size
    if not text[end].isspace():
        space = max(text.rfind(" ", 0, end), text.rfind("\n", 0, end))
        end = space if 2 * space >= size else _whole_character(text, end)
    return text[:end].rstrip() + ELLIPSIS


def longest_fitting(text: str, fits: Callable[[str], bool], least: int) -> str:
    """The longest cut of a text that fits, but never fewer than `least` characters.

    It tries doubling lengths first, so that the cost of a long text depends only on the length that is kept.
    """
    shortest = cut(text, least)
    if not fits(shortest):
        return shortest
    low, high = least, max(least, _FIRST_LOOK)
    while high < len(text) and fits(cut(text, high)):
        low, high = high, 2 * high
    if high >= len(text):
        if fits(text):
            return text
        high = len(text)
    while high - low > 1:
        middle = (low + high) // 2
        if fits(cut(text, middle)):
            low = middle
        else:
            high = middle
    return cut(text, low)


def without_comments(text: str) -> str:
    """The text without the markers of HTML comments, including markers that appear when another one is removed."""
    kept: list[str] = []
    for character in text:
        kept.append(character)
        for mark in _COMMENT_MARKS if character in "->" else ():
            if "".join(kept[-len(mark) :]) == mark:
                del kept[-len(mark) :]
    return "".join(kept)


def _whole_character(text: str, end: int) -> int:
    """The position before a letter whose accents or joined parts would be cut off."""
    while end > 0 and (_is_attached(text[end]) or text[end - 1] in _JOINERS):
        end -= 1
    return end


def _is_attached(char: str) -> bool:
    return char in _JOINERS or bool(unicodedata.combining(char))


_DIRECTION_MARKS = "\u200e\u200f\u061c"
_RIGHT_TO_LEFT = lazy_pattern("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001eeff]")
_NEEDED_INVISIBLE = lazy_pattern(
    # Ideographs have variants; Khmer, old Korean and scripts without spaces have their own signs.
    "(?<=[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])[\ufe00-\ufe0f\U000e0100-\U000e01ef]"
    "|(?<=[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff])\u200b(?=[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff])"
    "|(?<=[\u1780-\u17b3])[\u17b4\u17b5]"
    "|[\u115f\u1160](?=[\u1160-\u11ff\ud7b0-\ud7ff])|(?<=[\u1100-\u115f\ua960-\ua97f])\u1160"
)
_BLANK_WORDS = lazy_pattern("(?:[^\\W\\d_]|[\u200b\u3164\uffa0\u115f\u1160\u2800]){25,}")
_BLANKS = lazy_pattern("[\u200b\u3164\uffa0\u115f\u1160\u2800]+")
_SHOWN_BLANK = "\u2800"


def remove_invisible(text: str) -> str:
    """The text without invisible characters that no script or emoji in it needs; a blank that separates words becomes a
    space.

    The needed ones stay: joiners in Persian and Indic words and in emoji, variation selectors after emoji and
    ideographs, zero-width spaces in scripts without spaces, direction marks in right-to-left text.
    """
    if text.isascii() or DOUBTFUL.search(text) is None:
        return text
    text = _BLANK_WORDS.sub(_with_spaces, text)
    is_right_to_left = _RIGHT_TO_LEFT.search(text) is not None

    def keep_visible(found: re.Match[str]) -> str:
        char = found[0]
        if found["flag"] or not INVISIBLE.match(char) or UNASSIGNED.match(char):
            return char
        if char == _SHOWN_BLANK:
            return " "
        is_needed = _NEEDED_INVISIBLE.match(text, found.start()) or (is_right_to_left and char in _DIRECTION_MARKS)
        return char if is_needed else ""

    return HIDDEN.sub(keep_visible, text)


def _with_spaces(found: re.Match[str]) -> str:
    """A run of letters longer than any word, with its blanks replaced by spaces."""
    parts = _BLANKS.split(found[0])
    return " ".join(parts) if len(parts) > 2 else found[0]


_TICKS = re.compile(r"`+")
_BETWEEN_PARAGRAPHS = re.compile(r"(\n[^\S\n]*+\n)")
_COMMENT = re.compile(r"<!--.*?(?:(?P<end>-->)|\Z)", re.DOTALL)


def strip_code_spans(text: str) -> str:
    """The text without its code spans, each from a run of backticks to the next one of the same length in its
    paragraph.
    """
    if "`" not in text:
        return text
    return "".join(map(_outside_code, _BETWEEN_PARAGRAPHS.split(text)))


def _outside_code(paragraph: str) -> str:
    runs = [found.span() for found in _TICKS.finditer(paragraph)]
    later: defaultdict[int, deque[tuple[int, int]]] = defaultdict(deque)
    for start, end in runs:
        later[end - start].append((start, end))
    pieces, at = [], 0
    for start, end in runs:
        later[end - start].popleft()
        if start < at or not (same := later[end - start]):
            continue
        pieces.append(paragraph[at:start])
        at = same[0][1]
    return "".join([*pieces, paragraph[at:]])


def strip_comments(text: str, *, unclosed: bool) -> str:
    """The text without its comments. An unclosed comment hides the rest of the text if `unclosed`, and counts as text
    otherwise.
    """
    return _COMMENT.sub(lambda found: "" if unclosed or found["end"] else found[0], text)
