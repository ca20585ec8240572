"""Resolves references in a sentence.

Pronouns are replaced by people's names. If a thing or an event is not named, the previous sentence is kept with it,
because a wrong name is worse than a longer memory.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from engram.model.lazy import dataclass, field
from engram.text.entities import entities
from engram.text.time.words import may_start, words
from engram.text.words import PAST_AUXILIARIES, SUBJECTS, is_act, is_past, kind_of, read_table, stem

UNKNOWN = "unknown"
"""The gender of a name that may not be a person's."""
MAX_SENTENCES_BACK = 2
"""How many sentences back a pronoun may refer."""

_PRONOUN = re.compile(
    r"(?<![\w'/])(?P<word>she|he|her|him|his|hers)(?P<short>'s|'ll|'d|'ve)?(?![\w'/-])(?P<more> (?:has|had|is|was|been|got)\b)?",
    re.IGNORECASE,
)
_KIN = re.compile(
    r"\b(?:my|our) (?:(?!(?:and|or|with|to|in|at|is|was|the)\b)[\w-]+ ){0,1}?(?P<kin>[\w-]+)\b", re.IGNORECASE
)
# "My sister Delphine", "our landlord is called Piet".
_TITLED = re.compile(
    r"\b(?:[Mm]y|[Oo]ur)(?: [a-z-]+){0,2}? (?P<role>[a-z-]+)(?: is (?:called|named))?,? (?P<name>[A-Z][^\W\d_]+)"
)
_INTRODUCED = re.compile(r"\b(?:with|without|is|called|named|so|and|but)\s+$", re.IGNORECASE)
_PLACE = re.compile(r"(?:\b(?:in|at|on|from|near|via|the|of|called|by|into|to)|@|#)\s+$", re.IGNORECASE)
_TITLES = frozenset(("Mr", "Mrs", "Ms", "Miss", "Dr", "Frau", "Herr", "Dona", "Prof", "Professor", "Sir"))
"""Titles that precede a name and are not part of it."""
_PERSON_NAME = re.compile(
    r"(?:(?:Mrs?|Ms|Miss|Dr|Frau|Herr|Dona|Prof(?:essora?)?|Sir)\.? )?[^\W\d_]+(?:['’-][^\W\d_]+)*(?: [^\W\d_]+(?:['’-][^\W\d_]+)*){0,2}\Z"
)
_ACTING = re.compile(
    r"\s+(?:said|says|wants|wanted|needs|likes|loves|hates|told|tells|asked|asks|thinks|knows|works|lives|prefers|joined|started|quit|signs|runs|owns|"
    r"(?:is|'s|was) (?:my|our|his|her|the \w+ (?:lead|manager|director|teacher|nurse|doctor|officer|chair|owner)|allergic|pregnant|vegan|vegetarian|off|away|on leave|leaving|retiring|moving))\b"
    r"|,\s+(?:my|our|his|her)\b|\s*=\s",
    re.IGNORECASE,
)
_DAY = re.compile(
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?|january|february|march|april|may|june|july|august|september|october|november|december",
    re.IGNORECASE,
)
_QUOTATION = re.compile(r"\"[^\"]*\"|“[^”]{0,1000}”")
_LETTERS = re.compile(r"[^\W\d_]+")


@lru_cache(maxsize=1)
def speech() -> Mapping[str, Any]:
    """The tables of speech.toml."""
    return tomllib.loads((Path(__file__).parent / "speech.toml").read_text("utf-8"))


@lru_cache(maxsize=1)
def _genders() -> dict[str, str]:
    return {word: gender for gender, words in speech()["gender"].items() for word in words}


@dataclass(slots=True)
class References:
    """The people of a conversation, as they are named sentence by sentence.

    A pronoun is resolved if the latest sentence with possible referents names exactly one. A name's gender is unknown
    until a resolved pronoun shows it.
    """

    heard: list[list[str]] = field(default_factory=list)
    """The people each sentence names, spelled as in a memory."""
    gender: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    """All people named so far, by lower-case name; "ilse" in chat may be somebody the assistant calls Ilse."""

    latest: str = ""
    """The latest sentence."""
    pronouns: list[tuple[str, ...]] = field(default_factory=lambda: [()] * MAX_SENTENCES_BACK)
    """Which of "he" and "she" each sentence contains."""

    def add_sentence(self, sentence: str, *, about_a_person: bool = False) -> None:
        """Add the next sentence of the conversation; `about_a_person` if it states a fact about somebody."""
        sentence = self.latest = _QUOTATION.sub("", sentence)
        self.pronouns.append(tuple({gender_of(one["word"]) for one in _PRONOUN.finditer(sentence)}))
        found: dict[str, None] = {}
        for kin in _KIN.finditer(sentence):
            if gender := _genders().get(kin["kin"].lower()):
                person = kin[0].lower() if kin[0][0] in "oO" else f"the user's {kin[0][3:]}"
                self.gender[person] = gender
                found[person] = None
        # Not at the start, where every word is capitalised.
        titled = {
            one["name"]: _genders().get(one["role"].lower())
            for one in _TITLED.finditer(sentence)
            if one["name"] not in _TITLES
        }
        names = [
            name for name in entities(f"so {sentence}") if _may_be_person(name, sentence) or name.split()[0] in titled
        ]
        for name in (name for name in names if name.split()[0] in titled):
            self.names.setdefault(name.lower(), name)
            if gender := titled[name.split()[0]]:
                self.gender[name] = gender
        found |= dict.fromkeys(self._people_in(sentence, names, about_a_person))
        people = _without_apposition(sentence, list(found))
        others = [name for name in names if not any(name in one for one in found)]
        self.heard.append([*people, *others])
        self.gender.update({name: UNKNOWN for name in others if name.lower() not in self.names})

    def _people_in(self, sentence: str, names: Sequence[str], about_a_person: bool) -> list[str]:
        named = [name for name in names if self._is_person(name, sentence, about_a_person)]
        for name in named:
            self.names.setdefault(name.lower(), name)
            if self.gender.get(name) == UNKNOWN:
                del self.gender[name]
            if gender := _genders().get(name.split()[0].lower().rstrip(".")):
                self.gender[name] = gender
        lower = {word.lower() for word in _LETTERS.findall(sentence)}
        known = [name for key, name in self.names.items() if key in lower and name not in named]
        return [*named, *known]

    def _is_person(self, name: str, sentence: str, about_a_person: bool) -> bool:
        if name.lower() in self.names or _genders().get(name.split()[0].lower().rstrip(".")):
            return True
        at = sentence.find(name)
        return (about_a_person and at == 0) or bool(_ACTING.match(sentence[at + len(name) :]))

    def find_referent(self, pronoun: str) -> str:
        """The person that "he" or "she" refers to here; "" if unclear."""
        gender = gender_of(pronoun)
        recent = dict.fromkeys(person for people in self.heard[-MAX_SENTENCES_BACK:] for person in people)
        fitting = [person for person in recent if self.gender.get(person, gender) in (gender, UNKNOWN)]
        if len(fitting) != 1 or (self.gender.get(fitting[0]) == UNKNOWN and not self._is_sole_name(fitting[0], gender)):
            return ""
        return fitting[0]

    def _is_sole_name(self, name: str, gender: str) -> bool:
        """Whether a pronoun can only mean the one name in the latest sentence, although it is unknown whether that name is a person's.

        A pronoun in the preceding sentence refers to somebody else, named earlier.
        """
        if (
            self.heard[-1] != [name]
            or _KIN.search(self.latest)
            or gender in self.pronouns[-1] + self.pronouns[-MAX_SENTENCES_BACK]
        ):
            return False
        if len(entities(f"so {self.latest}")) > 1:
            return False
        at = self.latest.find(name)
        return name in entities(self.latest) if at == 0 else bool(_INTRODUCED.search(self.latest[:at]))

    def last_person(self) -> str:
        """The only person in the latest sentence with a name; "" if there are several."""
        for people in reversed(self.heard[-MAX_SENTENCES_BACK:]):
            people = [person for person in people if self.gender.get(person) != UNKNOWN]
            if people:
                return people[0] if len(people) == 1 else ""
        return ""

    def resolve_pronouns(self, sentence: str) -> str:
        """The sentence with its first pronoun of each gender replaced by the person it refers to, if that is clear."""
        first = _PRONOUN.search(sentence)
        own = first is not None and self._names_somebody(sentence[: first.start()])
        done: dict[str, str] = {}

        def replace_pronoun(found: re.Match[str]) -> str:
            word = found["word"].lower()
            gender = gender_of(word)
            if gender in done or own or _is_before_a_name(sentence, found):
                return found[0]
            person = self.find_referent(word)
            if not person:
                done[gender] = ""
                return found[0]
            done[gender] = person
            if self.gender.get(person, UNKNOWN) == UNKNOWN:
                self.gender[person] = gender
                self.names.setdefault(person.lower(), person)
            possessive = word in ("his", "hers") or (word == "her" and _is_possessive(sentence, found.end("word")))
            ending = "'s" if possessive else _spell_out_ending(found["short"], found["more"])
            return f"{person}{ending}{found['more'] or ''}"

        return _PRONOUN.sub(replace_pronoun, sentence)

    def _names_somebody(self, text: str) -> bool:
        """Whether a text names anybody that following words may refer to."""
        lower = {word.lower() for word in _LETTERS.findall(text)}
        return bool(entities(f"so {text}")) or bool(_KIN.search(text)) or any(name in lower for name in self.names)


def gender_of(pronoun: str) -> str:
    """ "she" or "he", for any form of either."""
    return "she" if pronoun.lower() in ("she", "her", "hers") else "he"


def _may_be_person(name: str, sentence: str) -> bool:
    """Whether an entity has the form of a person's name and is not used like a place."""
    if name.lower() in speech()["fillers"]["before"] or name.rstrip(".") in _TITLES:
        return False
    if not _PERSON_NAME.match(name) or not name[0].isupper() or name.isupper() or _DAY.fullmatch(name):
        return False
    return not _PLACE.search(sentence[: sentence.find(name)])


def _without_apposition(sentence: str, people: list[str]) -> list[str]:
    """Two names for one person count once: "my brother Korbinian", "Korbinian my brother"."""
    for kin in [person for person in people if person.startswith(("the user's ", "our "))]:
        role = kin.removeprefix("the user's ").removeprefix("our ")
        for name in [person for person in people if person != kin]:
            if re.search(
                rf"{re.escape(role)}(?: is (?:called|named))?,? {re.escape(name)}|{re.escape(name)},? (?:is |= ?)?(?:my|our) {re.escape(role)}",
                sentence,
                re.IGNORECASE,
            ):
                return [person for person in people if person != kin]
    return people


def _is_before_a_name(sentence: str, found: re.Match[str]) -> bool:
    """Whether it is unclear whose name follows: "they named her Clara" names a different person than the one before."""
    after = sentence[found.end("word") :].split(maxsplit=1)
    is_object = found.start() > 0 and found["word"].lower() in ("her", "him")
    return is_object and bool(after) and after[0][0].isupper() and after[0] != "I"


def _is_possessive(sentence: str, end: int) -> bool:
    return bool(
        re.match(
            r" (?!(?:to|and|or|that|if|when|for|in|on|at|with|by|because|so|about|from|a|an|the|my|off|up|out|not)\b)[\w'’]",
            sentence[end:],
        )
    )


def _spell_out_ending(short: str | None, more: str | None) -> str:
    if not short:
        return ""
    short = short.lower()
    if short == "'s":
        return " has" if more and more.strip().lower() in ("been", "got", "had") else " is"
    return {"'ll": " will", "'d": " would", "'ve": " have"}[short]


MAX_JOINED_CHARS = 200
"""The maximum length of two sentences kept as one memory."""
MAX_VERBLESS_WORDS = 6
"""The maximum length, in words, of a fragment that continues the previous sentence: "Thursday at four now"."""
MIN_WORDS_WITH_VERB = 5
"""The number of words from which a text that begins with an article is assumed to have a verb, even an unknown one."""
FIRST_WORDS = 3
"""A reference within this many words is as unclear as one at the start: "the db lives there"."""

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
# "It" without a referent: the weather, the time, or what follows it.
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
    """Whether a sentence refers to something that it does not name first."""
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
            # A thing named in the clause is at the place, and is not the place itself: "the db lives there".
            before = before[: max((joint.end() for joint in _JOINT.finditer(before)), default=0)]
        return None if _may_name_something(before) else found
    return None


def is_verbless(text: str) -> bool:
    """Whether a text is only a time, a place or a number, which is meaningless without its context."""
    said = [word.lower() for word in _WORD.findall(text)]
    if not 0 < len(said) <= MAX_VERBLESS_WORDS or any(map(_is_finite, said)):
        return False
    first = said[0]
    return first[0].isdigit() or first in _words("prepositions") or (_is_time(text) and first not in _function_words())


def can_explain(before: str, text: str) -> bool:
    """Whether the previous sentence may name what a text refers to; not if it addresses the reader or has an open reference itself."""
    said = _WORD.findall(before)
    if _TO_READER.search(before) or not _has_verb(said):
        return False
    return can_name(before, text)


def can_name(before: str, text: str) -> bool:
    """Whether a sentence or question names a possible referent of a text."""
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
    """Whether a sentence may name a person: by a capital, a role as its subject, or a word that is not English."""
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
    """Two sentences as one memory; "" if it would be too long.

    Pronouns for people are replaced by names (`References`). A thing, a place or a whole event is rarely one clear
    phrase, so both sentences are kept as one memory: "We bought a boat; it's moored in Hoorn." A wrong name is worse
    than a longer memory.
    """
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
    return f"{leading['word']}{_spell_out_verb(leading)}{text[leading.end('short') :]}"


def _spell_out_verb(found: re.Match[str]) -> str:
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
    """Whether a text has a word that may be a noun, because it is not a function word, verb or adverb."""
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
