"""What a sentence refers to and does not name, and whether the sentence before it names that.

People are named in the place of a pronoun (`references`). A thing, a place or a whole event is rarely one clear phrase, so the two
sentences are kept as one memory: "We bought a boat; it's moored in Hoorn." A wrong name is worse than a longer memory.
"""

import re
from functools import lru_cache

from engram.capture.extraction.references import gender_of, speech
from engram.text.stems import stem
from engram.text.time.words import may_start, words
from engram.text.verbs import PAST_AUXILIARIES, SUBJECTS, is_act, is_past, kind_of
from engram.text.word_tables import read_table

MAX_JOINED_CHARS = 200
"""Characters of two sentences that are kept as one memory."""
MAX_VERBLESS_WORDS = 6
"""Words of a fragment that continues the sentence before it: "Thursday at four now"."""
MIN_WORDS_WITH_VERB = 5
"""Words from which a text that begins with an article has a verb, though not one of the tables."""
FIRST_WORDS = 3
"""Words before a reference that is as unclear as one at the start: "the db lives there"."""

_VERB = r"(?:is|are|was|were|isn't|aren't|wasn't|weren't|has|have|had|will|would|can|could|must|should|may|might|does|do|did|needs?|means?|goes|takes?|works?)"
_ANAPHOR = re.compile(
    r"(?<![\w'/-])(?:"
    r"(?P<person>he|she|him|his|hers?)|(?P<thing>it|its|they|them|their|theirs)"
    r"|(?P<place>there)(?!'s|'re| (?:is|are|was|were|will|has|have|had|must|should|can|may|might|isn't|aren't|seems?)\b)"
    rf"|(?P<pointing>(?:this|that|these|those)(?='s\b|'ll\b|[.,;!]|\s*$| {_VERB}\b)"
    r"|(?:the|that|this) (?:\w+ )?one(?! of)\b|the other(?=[.,;!]|\s*$| (?:is|are|was|has|had)\b)|the (?:same|latter|former)(?=[.,;!]|\s*$| (?:goes|applies|is)\b))"
    r")(?:'(?:s|re|ve|ll|d))?(?![\w'/-])",
    re.IGNORECASE,
)
# "It" that stands for nothing said before: the weather, the time, or what follows it.
_EXPLETIVE = re.compile(
    r"it(?:'s| is| was|'ll be| will be| would be| takes| took| helps| seems| turns out| feels)"
    r"(?: (?:not|always|usually|often|very|so|too|really|quite|much|more|me|us|just))*"
    r" (?:(?:\w+ ){1,3}(?:to|that|for \w+ to|when|if|how|why|who)\b|raining|snowing|cold outside|late\b|early\b)",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_USER = re.compile(r"\bthe user(?P<own>'s)?(?!\w)", re.IGNORECASE)
_JOINT = re.compile(r"[,;:]\s|\s(?:and|but|so|because|since|if|when|while|which)\s", re.IGNORECASE)
_TO_READER = re.compile(r"\b(?:you|your|you're|you've|don't worry|sorry)\b", re.IGNORECASE)
_CONTRACTED = re.compile(
    r"(?P<word>it|they|he|she|that|there)(?P<short>'s|'re|'ve|'ll|'d) (?P<next>[\w'-]+)(?P<more>(?<=been|.got|.had))?",
    re.IGNORECASE,
)
_SHORT = {"'re": " are", "'ve": " have", "'ll": " will", "'d": " would"}
_PERSONAL = SUBJECTS - {"who", "that", "which", "what"}
_PERSON_ENDING = re.compile(
    r"(?:[^aeiou]er|or|ist|ian|ess|man|woman|boss|nurse|doc|cop|chef|vet|gp|physio|guy|friend|mate|kid|child|baby)s?\Z",
    re.IGNORECASE,
)


@lru_cache(maxsize=8)
def _words(label: str) -> frozenset[str]:
    return frozenset(speech()["grammar"][label])


@lru_cache(maxsize=1)
def _function_words() -> frozenset[str]:
    rows = read_table("stopwords.txt") + read_table("questionwords.txt")
    return _words("adverbs") | SUBJECTS | PAST_AUXILIARIES | {word for row in rows for word in row}


@lru_cache(maxsize=1)
def _common_stems() -> frozenset[str]:
    return frozenset(row[0] for row in read_table("words.txt"))


def has_open_reference(text: str) -> bool:
    """Whether a sentence refers to something that it does not name before it refers to it."""
    return _find_reference(text) is not None


def has_leading_reference(text: str) -> bool:
    """Whether the first words of a sentence already refer to something that it does not name."""
    found = _find_reference(text)
    return found is not None and len(text[: found.start()].split()) <= FIRST_WORDS


def _find_reference(text: str) -> re.Match[str] | None:
    """The first word that refers to something before the sentence."""
    for found in _ANAPHOR.finditer(text):
        if found["thing"] and _EXPLETIVE.match(text, found.start()):
            continue
        before = text[: found.start()]
        if found["place"]:
            # What its own clause names is at the place, and not the place: "the db lives there".
            before = before[: max((joint.end() for joint in _JOINT.finditer(before)), default=0)]
        return None if _may_name_something(before) else found
    return None


def is_verbless(text: str) -> bool:
    """Whether a text is only a time, a place or a number, which says nothing without what it belongs to."""
    said = [word.lower() for word in _WORD.findall(text)]
    if not 0 < len(said) <= MAX_VERBLESS_WORDS or any(map(_is_finite, said)):
        return False
    first = said[0]
    return first[0].isdigit() or first in _words("prepositions") or (_is_time(text) and first not in _function_words())


def can_explain(before: str, text: str) -> bool:
    """Whether the sentence before may name what a text refers to; what is said to the reader, or refers to a thing itself, does not."""
    said = _WORD.findall(before)
    if _TO_READER.search(before) or not _has_verb(said):
        return False
    return can_name(before, text)


def can_name(before: str, text: str) -> bool:
    """Whether a sentence or question has a word for what a text refers to."""
    found = _find_reference(text)
    if found is None:
        return True
    before = _USER.sub(lambda user: "my" if user["own"] else "I", before)
    if found["person"]:
        others = {gender_of(one["person"]) for one in _ANAPHOR.finditer(before) if one["person"]}
        return (not others or gender_of(found["person"]) in others) and _may_name_person(_WORD.findall(before))
    if any(one["thing"] or one["pointing"] for one in _ANAPHOR.finditer(before)):
        return False
    return _may_name_something(before)


def _may_name_person(said: list[str]) -> bool:
    """Whether the words of a sentence name somebody: with a capital, as its subject with a role, or by a word that is no English one."""
    if any(
        word[0].isupper() and not _is_time(word.removesuffix("s")) and word.lower() not in _function_words()
        for word in said[1:]
    ):
        return True
    first = re.sub(r"['’].*", "", said[0].lower())
    if first in ("my", "our", "the"):
        return any(_PERSON_ENDING.search(word) for word in said[1:4])
    return first not in _function_words() and not _is_time(first) and stem(first) not in _common_stems()


def join_pair(first: str, second: str) -> str:
    """Two sentences as one memory; "" if that is too long."""
    head, tail = first.rstrip(" .!;,"), _expand_verb(second.strip())
    word = re.match(r"\w*", tail)
    if word and word[0].lower() in _function_words() and word[0] != "I":
        tail = tail[0].lower() + tail[1:]
    joined = f"{head}; {tail.rstrip(' .!')}."
    return joined if len(joined) <= MAX_JOINED_CHARS else ""


def _expand_verb(text: str) -> str:
    """The text with its first verb in full, unless it may be "is" or "has", "would" or "had": "he's looked after it", "they'd left"."""
    leading = _CONTRACTED.match(text)
    if leading is None:
        return text
    is_open = leading["short"].lower() in ("'s", "'d") and is_past(leading["next"].lower(), same=True)
    if is_open and leading["more"] is None:
        return text
    return f"{leading['word']}{_long(leading)}{text[leading.end('short') :]}"


def _long(found: re.Match[str]) -> str:
    short = (found["short"] or "").lower()
    if short == "'s":
        return " has" if found["more"] is not None else " is"
    return _SHORT.get(short, "")


def _is_time(text: str) -> bool:
    return any(may_start(word) for word in words(text)[:1])


def _is_verb(word: str) -> bool:
    return word in PAST_AUXILIARIES or is_past(word, same=True) or bool(kind_of(word)) or is_act(word)


def _has_verb(said: list[str]) -> bool:
    """Whether a sentence has a verb: a known one, any after its subject, or one somewhere after a subject with an article."""
    lower = [word.lower() for word in said]
    if lower and lower[0] in ("my", "our", "the") and len(lower) >= MIN_WORDS_WITH_VERB:
        return True
    follows = any(one in SUBJECTS or one == "user" for one in lower[:-1])
    return follows or any(_is_finite(word) or (word.endswith("s") and _is_verb(word[:-1])) for word in lower)


def _is_finite(word: str) -> bool:
    return (
        word in SUBJECTS
        or word in _words("finite")
        or bool(re.search(r"['’](?:s|re|ve|ll|d|m|t)\Z", word))
        or _is_verb(word)
    )


def _may_name_something(text: str) -> bool:
    """Whether a text has a word that may be a noun: no function word, no verb, no adverb."""
    previous = ""
    for said in _WORD.findall(text):
        word = said.lower()
        root = re.sub(r"['’].*", "", word)
        is_verb = previous in _PERSONAL or (_is_verb(word) and previous not in _words("determiners"))
        is_verb |= said.endswith(("ly", "ing")) and said.islower() and previous not in _words("determiners")
        if root not in _function_words() and not is_verb and not word[0].isdigit():
            return True
        previous = previous if word in ("always", "never", "also", "just", "still") else root
    return False
