"""Detects situations described in hindsight ("after the deploy failed"), and suggests the task to name instead ("deploying").

A memory is found by its situation, but at the start of a task nobody knows yet what will go wrong. A situation that
describes the failure, its discovery or a single past occasion never matches, so the memory is stored with a warning.
Detection relies on the grammar of the past: a finite verb in the past, a word such as "after" before a problem, or a
problem as the subject.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

from engram.gates.tables import phrases, table_text
from engram.model.lazy import dataclass
from engram.model.memory import Memory
from engram.text.display import quote_text
from engram.text.words import PAST_AUXILIARIES, infinitives, is_participle, is_past, read_table, stem, word_class

__all__ = ["Hindsight", "changed_situation_warnings", "hindsight", "situation_warnings"]

_TABLE = "hindsight.txt"
_WORD = re.compile(r"[^\s,;()—–\"“”]+|[,;()—–]")
_STOPS = frozenset(",;()—–")
_VOWEL = re.compile(r"[aeiouy]+")
_DOUBLED = frozenset(
    ("commit", "begin", "forget", "refer", "submit", "permit", "admit", "transfer", "rerun", "reset", "prefer")
)
_NOT_GERUNDS = frozenset((
    "thing", "nothing", "something", "anything", "everything", "string", "spring", "king", "ring", "morning", "evening", "ceiling", "during",
    "according", "including", "regarding", "following", "having", "being", "staging", "missing", "failing", "pending", "existing", "incoming",
    "outgoing", "trailing", "leading", "remaining", "upcoming", "breaking", "causing", "resulting", "leaving",
))  # fmt: skip
_LEAST_LETTERS = 5


@dataclass(frozen=True, slots=True)
class Hindsight:
    """What makes a situation hindsight, and the task it could name; "" if its words name none."""

    sign: str
    task: str


def situation_warnings(situation: str) -> tuple[str, ...]:
    """A warning for a situation described in hindsight, with a rewrite that names a task."""
    found = hindsight(situation)
    if found is None:
        return ()
    offer = f"for example {quote_text(found.task)}" if found.task else "such as “writing database migrations”"
    return (
        f"the situation is told in hindsight ({quote_text(found.sign)}), so a search before the task will not find it; "
        f"name the task in which this matters, {offer}",
    )


def changed_situation_warnings(before: Memory, after: Memory) -> tuple[str, ...]:
    """The warnings about a situation that was changed on feedback or a fact."""
    return situation_warnings(after.situation) if after.form and after.situation != before.situation else ()


@lru_cache(maxsize=256)
def hindsight(situation: str) -> Hindsight | None:
    """What makes a situation hindsight; None if it names a task."""
    words = _WORD.findall(situation[:500].replace("’", "'"))
    lower = [word.casefold().rstrip(".!?:") for word in words]
    words = [word.rstrip(".!?:") for word in words]
    sign = _sign(lower)
    if not sign:
        return None
    task = _Rewrite(words, lower).task()
    again = hindsight(task) if task and len(task) < len(situation) else None
    return Hindsight(sign, task if again is None else again.task)


# -- recognition


def _in(section: str, word: str) -> bool:
    return word in phrases(_TABLE, section).words


@lru_cache(maxsize=8)
def _stems(section: str) -> frozenset[str]:
    return frozenset(map(stem, phrases(_TABLE, section).words))


def _is(section: str, word: str) -> bool:
    """Whether a word is a form of a verb in a section."""
    return stem(_base(word)) in _stems(section) or stem(word) in _stems(section)


def _is_gerund(word: str) -> bool:
    return len(word) >= _LEAST_LETTERS and word.endswith("ing") and word.isalpha() and word not in _NOT_GERUNDS


def _sign(words: Sequence[str]) -> str:
    """The word that refers to the past; "" for a task."""
    relative = False
    for at, word in enumerate(words):
        before, after = _at(words, at - 1), _at(words, at + 1)
        if word in _STOPS or _in("backward", word):
            relative = False
        elif word in ("that", "which", "who") and at and before not in _STOPS and not _is("discovery", before):
            relative = not _in("agent", before)
        if relative:
            continue
        if word in PAST_AUXILIARIES or (word == "having" and is_past(after, same=True)):
            return f"{word} {after}".strip()
        if _is_finite_past(words, at):
            return f"{before} {word}" if _in("agent", before) else word
        if _in("problem", word) and _points_back(words, at):
            return " ".join(words[max(0, at - 2) : at + 1]).strip(" ,")
        if _is_trouble_after(words, at):
            return " ".join(words[max(0, at - 1) : at + 2])
        if _is("perception", word) and _is_gerund(word) and _is_discovery_head(words, at):
            return " ".join(words[at : at + 2])
    return ""


def _is_finite_past(words: Sequence[str], at: int) -> bool:
    """Whether a past form is the verb of its clause and not a participle before a noun: "tests failed", but not "failed tests"."""
    word, before, after = words[at], _at(words, at - 1), _at(words, at + 1)
    subject = _at(words, at - 2) if before.endswith("ly") else before
    if _is_plain_past(word) or (_in("agent", subject) and is_past(word, same=True)):
        return True
    if not is_past(word):
        return False
    if not at:
        is_begun = (
            _in("determiner", after) or _in("place", after) or after.endswith(("ly", "hours")) or after == "straight"
        )
        return is_begun and after != "to"
    if _in("connective", subject) and subject != "and":
        return _in("determiner", after)
    if subject in _STOPS or _in("determiner", subject) or _in("place", subject) or _is_gerund(subject):
        return False
    if _opens_backward(words, at):
        return True
    ends = not after or after in _STOPS or _in("connective", after) or _in("place", after) or _in("boundary", after)
    if after in ("by", "with", "from", "for", "as", "at", "in", "on") and not _is("trouble", word):
        return False  # "code generated by protoc", "files stored in git"
    return ends or _in("determiner", after) or _is("trouble", word) or after.endswith("ly")


def _is_trouble_after(words: Sequence[str], at: int) -> bool:
    """Whether a word after "after" names a problem: "after breaking the build", "after misreading", "after two failed runs"."""
    word, head = words[at], words[:at]
    if not any(_in("backward", one) for one in head):
        return False
    if word in ("being", "getting"):
        return is_participle(_at(words, at + 1))
    is_verb = word.endswith("ing") and (_is("trouble", word) or (word.startswith("mis") and word != "missing"))
    return is_verb or (is_past(word) and _is("trouble", word)) or _in("problem", word)


def _opens_backward(words: Sequence[str], at: int) -> bool:
    """Whether the clause of a word begins with "after" or the like, and not with a gerund."""
    for word in reversed(words[:at]):
        if _is_gerund(word):
            return False
        if _in("backward", word) or word in ("when", "where", "soon"):
            return True
    return False


@lru_cache(maxsize=1)
def _plain_pasts() -> frozenset[str]:
    return frozenset(row[1] for row in read_table("irregular.txt") if len(row) > 2 and row[1] != row[2])


def _is_plain_past(word: str) -> bool:
    """Whether a word is a past form that cannot be a participle: "went", "broke", "overwrote"."""
    return any(
        word.removeprefix(prefix) in _plain_pasts() and is_past(word.removeprefix(prefix))
        for prefix in ("", "over", "re", "mis", "under")
    )


def _points_back(words: Sequence[str], at: int) -> bool:
    """Whether the situation mentions a problem: "after a crash", "due to the outage", "the bug in …" at the beginning."""
    head = words[:at]
    if any(_is_gerund(word) and not _is("discovery", word) for word in head):
        return False
    if any(_in("backward", word) for word in head):
        return True
    return bool(head) and head[0] in ("the", "this", "that", "our", "my", "last", "yesterday's") and at <= 3


def _is_discovery_head(words: Sequence[str], at: int) -> bool:
    """Whether the task is a discovery that has already been made: "discovering that …", "noticing the cache was stale"."""
    lead, after = words[:at], words[at + 1 :]
    if any(_is_gerund(word) or not _in("connective", word) or word == "before" for word in lead) or not after:
        return False
    if any(_in("backward", one) for one in lead) or after[0] in ("that", "out", "how", "why", "the"):
        return True
    return any(_in("problem", one) for one in after[:4])


def _at(words: Sequence[str], at: int) -> str:
    return words[at] if 0 <= at < len(words) else ""


# -- the task


class _Rewrite:
    """Finds the task in a situation described in hindsight."""

    def __init__(self, words: Sequence[str], lower: Sequence[str]) -> None:
        self.words, self.lower = words, lower

    def task(self) -> str:
        return self._gerund() or self._rewrite_wish() or self._rewrite_deed() or self._subject() or self._place()

    def _gerund(self) -> str:
        """A task named by a gerund: "after the tests failed while refactoring the parser"."""
        for at, word in enumerate(self.lower):
            if _is_gerund(word) and not (
                _is("discovery", word) or _is("trouble", word) or _is("omission", word) or word.startswith("mis")
            ):
                return self._phrase(at + 1, word)
        return ""

    def _rewrite_wish(self) -> str:
        """The intended task: "we had to roll back the release", "after being told not to use mocks"."""
        for at, word in enumerate(self.lower[:-1]):
            verb, before = self.lower[at + 1], _at(self.lower, at - 1)
            is_verb = (
                stem(verb) in word_class("wordclasses", "verb") or before in ("had", "not") or _is("omission", before)
            )
            if (
                word == "to"
                and is_verb
                and not _in("determiner", verb)
                and not _is("discovery", verb)
                and not _is("trouble", verb)
            ):
                return self._phrase(at + 2, _gerund_of(verb))
        return ""

    def _rewrite_deed(self) -> str:
        """The action somebody took: "after I deployed without a backup", "we forgot to bump the version"."""
        for at, word in enumerate(self.lower):
            before = _at(self.lower, at - 1)
            starts = (_in("agent", before) and before != "it") or (at == 0 and is_past(word))
            if not starts or not is_past(word, same=True) or word in PAST_AUXILIARIES:
                continue
            if _is("omission", word):
                return self._activity(at + 1)
            if not _is("discovery", word) and not _is("trouble", word):
                return self._phrase(at + 1, _gerund_of(word))
        return ""

    def _subject(self) -> str:
        """The thing that went wrong, if it is an activity: "the migration failed in production"."""
        start = next((at for at, word in enumerate(self.lower) if not self._leads(at, word)), len(self.lower))
        return self._activity(start)

    def _leads(self, at: int, word: str) -> bool:
        return _in("connective", word) or _in("determiner", word) or word in _STOPS or word in ("to", "of", "that")

    def _activity(self, start: int) -> str:
        """An activity from the first noun that names one, with its object or place."""
        for at in range(start, len(self.lower)):
            word = self.lower[at]
            if word in _activities():
                named = _activities()[word]
                own = [w for w in self.words[start:at] if not _in("determiner", w.casefold())]
                object_ = f"{named} {' '.join(own)}" if own and " " not in named else named
                if own and " " in named:
                    object_ = f"{named.split()[0]} {' '.join([*own, self.words[at]])}"
                return self._with_place(object_, at + 1)
            if word in _STOPS or _in("boundary", word) or is_past(word, same=True) or _in("place", word):
                break
        return ""

    def _with_place(self, task: str, start: int) -> str:
        for at in range(start, len(self.lower)):
            if _in("boundary", self.lower[at]):
                break
            if self.lower[at] in ("in", "on", "to", "with", "for", "of") and not _in(
                "problem", _at(self.lower, at + 1)
            ):
                place = self._phrase(at + 1, self.lower[at])
                return f"{task} {place}" if " " in place else task
        return task

    def _place(self) -> str:
        """The place where it went wrong: "a race condition in test X"; otherwise the subject of the words."""
        for at, word in enumerate(self.lower):
            if word in ("in", "with", "on", "about", "to", "of", "from") and _at(self.lower, at - 1) != "due":
                phrase = self._phrase(at + 1, "")
                if phrase and not _in("problem", phrase.casefold().split()[-1]):
                    return f"working {'with' if word == 'with' else 'on'} {phrase}"
        kept = [word for word, low in zip(self.words, self.lower, strict=True) if self._is_topic(low)]
        return f"working on {' '.join(kept[:4])}" if kept else ""

    def _is_topic(self, word: str) -> bool:
        return not (
            _is_plain_past(word) or word in _STOPS or is_past(word, same=True) or word in PAST_AUXILIARIES or any(
                _in(section, word) for section in ("connective", "agent", "problem", "determiner", "boundary", "place")
            ) or _is("trouble", word) or _is("discovery", word) or word in ("not", "been", "be", "is", "are", "condition", "out", "me", "us", "own", "too", "with", "about")
        )  # fmt: skip

    def _phrase(self, start: int, head: str) -> str:
        """The words from a position to the end of their clause, after a head."""
        found: list[str] = []
        for at in range(start, len(self.lower)):
            word = self.lower[at]
            if word in _STOPS or _in("boundary", word) or word in PAST_AUXILIARIES or (found and self._ends(at)):
                break
            found.append(self.words[at])
        while found and (
            _in("place", found[-1].casefold())
            or _in("determiner", found[-1].casefold())
            or _in("agent", found[-1].casefold())
        ):
            found.pop()
        return " ".join([*([head] if head else []), *found])

    def _ends(self, at: int) -> bool:
        """Whether another clause begins: a past verb, or a pronoun after a noun."""
        return _is_finite_past(self.lower, at) or self.lower[at] in ("i", "we", "it", "they", "he", "she")


@lru_cache(maxsize=1)
def _activities() -> dict[str, str]:
    """Maps a noun to the words with which a task about it begins."""
    lines = table_text(_TABLE)
    entries = ",".join(lines[lines.index("[activity]") + 1 :]).split(",")
    return {noun.strip(): task.strip() for noun, _, task in (entry.partition("=") for entry in entries if "=" in entry)}


def _base(word: str) -> str:
    """The infinitive of an irregular past form; any other word as it is."""
    return infinitives().get(word, word)


def _gerund_of(word: str) -> str:
    """The -ing form of a verb in the past or in its infinitive."""
    base = _base(word)
    if base == word and word.endswith("ied"):
        return f"{word[:-3]}ying"
    if base == word and word.endswith("ed") and len(word) > 3:
        return f"{word[:-1] if word.endswith('eed') else word[:-2]}ing"
    if base.endswith("e") and not base.endswith(("ee", "ye", "oe")):
        return f"{base[:-1]}ing"
    is_short = len(_VOWEL.findall(base)) == 1 and re.fullmatch(r".*[^aeiou][aeiou][^aeiouwxy]", base) is not None
    return f"{base}{base[-1]}ing" if is_short or base in _DOUBLED else f"{base}ing"
