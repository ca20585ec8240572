"""Who is meant: the people named so far in a conversation, and the pronouns that stand for them.

A pronoun is resolved if the latest sentence that names anybody it may stand for names exactly one. A name says nothing about
"he" or "she" until a resolved pronoun tells.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from engram.model.lazy import dataclass, field
from engram.text.entities import entities

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
"""What stands before a name and is none."""
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
_WORD = re.compile(r"[^\W\d_]+")


@lru_cache(maxsize=1)
def speech() -> Mapping[str, Any]:
    """The tables of speech.toml."""
    return tomllib.loads((Path(__file__).parent / "speech.toml").read_text("utf-8"))


@lru_cache(maxsize=1)
def _genders() -> dict[str, str]:
    return {word: gender for gender, words in speech()["gender"].items() for word in words}


@dataclass(slots=True)
class References:
    """The people of a conversation, as they are named sentence by sentence."""

    heard: list[list[str]] = field(default_factory=list)
    """The people each sentence names, as they read in a memory."""
    gender: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    """Every person heard of, by the lower-case name: in chat "ilse" may be somebody the assistant calls Ilse."""

    latest: str = ""
    """The latest sentence."""
    pronouns: list[tuple[str, ...]] = field(default_factory=lambda: [()] * MAX_SENTENCES_BACK)
    """Which of "he" and "she" each sentence says."""

    def add_sentence(self, sentence: str, *, about_a_person: bool = False) -> None:
        """Take in the next sentence of the conversation; `about_a_person` if it states a fact about somebody."""
        sentence = self.latest = _QUOTATION.sub("", sentence)
        self.pronouns.append(tuple({gender_of(one["word"]) for one in _PRONOUN.finditer(sentence)}))
        found: dict[str, None] = {}
        for kin in _KIN.finditer(sentence):
            if gender := _genders().get(kin["kin"].lower()):
                person = kin[0].lower() if kin[0][0] in "oO" else f"the user's {kin[0][3:]}"
                self.gender[person] = gender
                found[person] = None
        # Not at its start, where any word has a capital.
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
        lower = {word.lower() for word in _WORD.findall(sentence)}
        known = [name for key, name in self.names.items() if key in lower and name not in named]
        return [*named, *known]

    def _is_person(self, name: str, sentence: str, about_a_person: bool) -> bool:
        if name.lower() in self.names or _genders().get(name.split()[0].lower().rstrip(".")):
            return True
        at = sentence.find(name)
        return (about_a_person and at == 0) or bool(_ACTING.match(sentence[at + len(name) :]))

    def find_referent(self, pronoun: str) -> str:
        """The person that "he" or "she" stands for here; "" if it is not clear."""
        gender = gender_of(pronoun)
        recent = dict.fromkeys(person for people in self.heard[-MAX_SENTENCES_BACK:] for person in people)
        fitting = [person for person in recent if self.gender.get(person, gender) in (gender, UNKNOWN)]
        if len(fitting) != 1 or (self.gender.get(fitting[0]) == UNKNOWN and not self._is_sole_name(fitting[0], gender)):
            return ""
        return fitting[0]

    def _is_sole_name(self, name: str, gender: str) -> bool:
        """Whether a pronoun can only mean the one name of the latest sentence, of which nothing says whether it is a person's.

        A pronoun said just before stands for somebody else, named further back.
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
        """The only person the latest sentence with a name is about; "" if there are several."""
        for people in reversed(self.heard[-MAX_SENTENCES_BACK:]):
            people = [person for person in people if self.gender.get(person) != UNKNOWN]
            if people:
                return people[0] if len(people) == 1 else ""
        return ""

    def resolve_pronouns(self, sentence: str) -> str:
        """The sentence with its first pronoun of each gender replaced by the person it stands for, if that is clear."""
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
            ending = "'s" if possessive else _long(found["short"], found["more"])
            return f"{person}{ending}{found['more'] or ''}"

        return _PRONOUN.sub(replace_pronoun, sentence)

    def _names_somebody(self, text: str) -> bool:
        """Whether a text names anybody the words after it may refer to."""
        lower = {word.lower() for word in _WORD.findall(text)}
        return bool(entities(f"so {text}")) or bool(_KIN.search(text)) or any(name in lower for name in self.names)


def gender_of(pronoun: str) -> str:
    """ "she" or "he", for any form of either."""
    return "she" if pronoun.lower() in ("she", "her", "hers") else "he"


def _may_be_person(name: str, sentence: str) -> bool:
    """Whether an entity has the shape of a person's name and is not said like a place."""
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
    """Whether it is unclear whose name follows: "they named her Clara" names somebody else than the person named before."""
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


def _long(short: str | None, more: str | None) -> str:
    if not short:
        return ""
    short = short.lower()
    if short == "'s":
        return " has" if more and more.strip().lower() in ("been", "got", "had") else " is"
    return {"'ll": " will", "'d": " would", "'ve": " have"}[short]
