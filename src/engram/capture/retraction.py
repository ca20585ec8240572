"""Finds the memory that somebody asks to forget or declares over ("delete my sister's number", "I no longer take warfarin").
The memory must have every named word and concern the same person or thing; if the match is unclear, nothing is changed.
"""

import re
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from engram.capture.extraction.references import speech
from engram.decisions.admission import StoreLookup, propose
from engram.gates.trust import loss_reason
from engram.model.lazy import dataclass
from engram.model.memory import LIVE_STATUSES, Memory
from engram.model.records import Event
from engram.store.documents import meaning_of
from engram.store.protocol import Store
from engram.text.statements import canonical_stem
from engram.text.tokens import query_terms, tokens
from engram.text.words import kind_of, stem, stop_words, word_class

if TYPE_CHECKING:
    from engram.gates.proposal import Neighbour

_WORD = re.compile(r"[^\W_]+(?:[-.@/][^\W_]+)*")
_POSSESSIVE = re.compile(r"['’]s\b|(?<=s)['’](?=\s)")
_SPEAKER_WORDS = frozenset(["i", "we", "my", "our", "mine", "ours", "us", "me", "user", "users", "myself", "ourselves"])
_CONTRACTED = frozenset(
    ["it", "that", "there", "what", "who", "where", "here", "how", "let", "he", "she", "i", "we", "you", "they"]
)
"""Words after which 's is a contraction, not a possessive."""
_ARTICLES = frozenset(
    ["the", "a", "an", "this", "that", "these", "those", "his", "her", "their", "its", "my", "our", "your"]
)
_BEING = frozenset(("is", "are", "was", "were", "has", "had"))
_OTHERS = frozenset(("his", "her", "hers"))
_TITLES = frozenset(["mr", "mrs", "ms", "miss", "madam", "sir", "frau", "herr", "dona", "doctor", "dr"])


class _Word(NamedTuple):
    text: str
    """The word in lower case."""
    is_name: bool
    is_possessive: bool


class _Phrase(NamedTuple):
    """A statement's words before the verb, and the words that show whose it is."""

    subject: tuple[str, ...]
    owners: dict[str, str]
    """Possessors and people; a name maps to the word before it."""
    possessors: frozenset[str]
    is_speaker: bool
    """Whether the subject is the speaker: "I", "the user"."""
    has_verb: bool


def content(text: str, *, frame: bool = False) -> list[str]:
    """The content words of a text, in lower case; with `frame`, all its words."""
    words = [word.text for word in _words(text)]
    return words if frame else [word for word in words if is_content(word)]


def is_content(word: str) -> bool:
    """Whether a lower-case word is a content word."""
    return word not in _functions()


def agree(named: str, statement: str) -> bool:
    """Whether a statement is about the named thing, rather than somebody else's."""
    wanted, found = _phrase(named), _phrase(statement)
    known = {canonical_stem(word.text) for word in _words(named)}
    if any(owner not in known and before not in known for owner, before in found.owners.items()):
        return False
    if not found.is_speaker and found.subject and not _is_about(found, known):
        return False
    doers = wanted.owners if wanted.has_verb and not wanted.is_speaker else ()
    return {*wanted.possessors, *doers} <= {*found.possessors, *found.subject}


def _is_about(found: _Phrase, known: set[str]) -> bool:
    """Whether a statement's subject was named: its head word (the others only qualify it), or the word that a name stands for."""
    if not found.has_verb:
        return bool(known.intersection(found.subject))
    head = found.subject[-1]
    return head in known or (bool(known.intersection(found.subject)) and found.owners.get(head, "") in known)


@lru_cache(maxsize=512)
def _phrase(text: str) -> _Phrase:
    words = _words(text)
    end = _verb_place(words)
    speaker = next((word for word in words[:end] if word.text not in _ARTICLES - _SPEAKER_WORDS), None)
    is_speaker = speaker is not None and speaker.text in _SPEAKER_WORDS - {"my", "our"} and not speaker.is_possessive
    subject = [word for word in words[:end] if word.text not in _SPEAKER_WORDS and is_content(word.text)]
    possessors = {
        canonical_stem(word.text)
        for word in words
        if word.is_possessive and word.text not in _SPEAKER_WORDS | _CONTRACTED
    }
    owners = dict.fromkeys([*possessors, *_others(words)], "")
    for place, word in enumerate(words if is_speaker else words[:end]):
        before = next((one.text for one in reversed(words[:place]) if one.text not in _TITLES), "")
        if word.text in _people() and not (
            word.text in _TITLES and place + 1 < len(words) and words[place + 1].is_name
        ):
            owners[canonical_stem(word.text)] = ""
        elif word.is_name and not is_speaker:
            owners.setdefault(
                canonical_stem(word.text), canonical_stem(before) if before and is_content(before) else ""
            )
    return _Phrase(
        tuple(canonical_stem(word.text) for word in subject),
        owners,
        frozenset(possessors),
        is_speaker,
        end < len(words),
    )


def _others(words: tuple[_Word, ...]) -> list[str]:
    return [word.text for word in words if word.text in _OTHERS]


@lru_cache(maxsize=512)
def _words(text: str) -> tuple[_Word, ...]:
    found = []
    for match in _WORD.finditer(text):
        starts = not text[: match.start()].strip() or text[: match.start()].rstrip()[-1:] in ".!?:"
        low = match[0].lower()
        if low in ("s", "t", "m", "re", "ve", "ll", "d") and text[match.start() - 1 : match.start()] in ("'", "’"):
            continue
        is_name = match[0][0].isupper() and not starts and low not in _SPEAKER_WORDS
        found.append(_Word(low, is_name, bool(_POSSESSIVE.match(text, match.end()))))
    return tuple(found)


def _verb_place(words: tuple[_Word, ...]) -> int:
    """The position of the first verb; a word after an article or possessor, or before another verb, is not a verb."""
    verbs = word_class("wordclasses", "verb")
    for place, word in enumerate(words):
        before = words[place - 1] if place else None
        led = before is not None and (before.text in _ARTICLES or before.is_possessive)
        follows = words[place + 1].text if place + 1 < len(words) else ""
        if (
            place
            and not led
            and follows not in _BEING
            and verbs.intersection((word.text, word.text.removesuffix("s"), stem(word.text)))
        ):
            return place
    return len(words)


@lru_cache(maxsize=1)
def _functions() -> frozenset[str]:
    light = {word for label in ("drop", "light", "boundary") for word in word_class("wordclasses", label)}
    return stop_words() | light


@lru_cache(maxsize=1)
def _people() -> frozenset[str]:
    relatives = {word for words in speech()["gender"].values() for word in words}
    return (word_class("asking", "person") | relatives | _plural(relatives)) - _SPEAKER_WORDS


def _plural(words: set[str]) -> frozenset[str]:
    return frozenset(f"{word}s" for word in words)


MIN_TARGET_COSINE = 0.3
"""The minimum cosine of a target memory."""
MIN_SHARED_WORDS = 0.5
"""The minimum share of the named words that a target memory must contain."""
MAX_NAMED_IDS = 3
FORGET_OPERATIONS = ("forget", "request")
"""The journal operations for a request to forget; their reason ends with the event of the request."""
_SPEAKER_STEMS, _ENDING = ("@me", "@we"), ("longer", "anymore")
_FORGETTING = r"(?:forget|unlearn|disregard)(?! to\b)"
_REMOVING = r"(?:delete|remove|erase|drop|scrap|scrub|wipe|bin|clear|discard|throw away|throw out|strike|take out|lose)"
_POLITE = (
    r"(?:(?:please|kindly|just|now|ok(?:ay)?|so|and|then|hey|actually|also|you (?:can|should|may|must|need to|have to)|(?:can|could|would|will) you"
    r"|i(?:'d| would) like you to|i want you to|i need you to|go ahead and)[,:;!. ]+)*"
)
_REQUEST = re.compile(
    rf"^\W*{_POLITE}(?:{_FORGETTING}\b|{_REMOVING}\b(?= (?:what|everything|anything|whatever|all) (?:that )?(?:i|we|you|the user)\b"
    r"|.* from (?:your |the |my )?(?:memory|memories|mind)\b))",
    re.IGNORECASE,
)
_ASKED = re.compile(rf"^.*?\b(?:{_FORGETTING}|{_REMOVING})\b", re.IGNORECASE | re.DOTALL)
_TOLD = re.compile(r"^[^,;]{0,40}?\b(?:user|i|we|you)\b(?: \S+){0,4}? (?:about|on|regarding)\b", re.IGNORECASE)
_PLACE = re.compile(r"\bfrom (?:your |the |my )?(?:memory|memories|notes?|records?|mind|database)\b", re.IGNORECASE)
_CLAUSE = re.compile(r"^\W*that (?:the user|i|we)\b", re.IGNORECASE)
_NOT = re.compile(r"n['’]t\b", re.IGNORECASE)
_FRAME = frozenset(
    [
        "please",
        "thanks",
        "everything",
        "anything",
        "whatever",
        "thing",
        "things",
        "stuff",
        "user",
        "know",
        "known",
        "remember",
        "remembered",
        "stored",
        "saved",
        "noted",
        "ever",
        "all",
    ]
)
"""Words in a request that do not name the thing to forget."""
_ABOUT = frozenset(("about", "on", "regarding", "you"))
_OVER = frozenset(
    [
        "no",
        "longer",
        "anymore",
        "any",
        "more",
        "stop",
        "stopped",
        "stops",
        "quit",
        "quits",
        "ended",
        "over",
        "gone",
        "cancelled",
        "canceled",
        "ceased",
        "user",
    ]
)
"""Words that express an end and do not name the thing that ended."""


@dataclass(frozen=True, slots=True)
class Retraction:
    """The target memory, or why there is none.

    If it is unclear which memory is meant, the possible ones are listed and none is changed.
    """

    target: Memory | None
    reason: str = ""
    others: tuple[str, ...] = ()
    """The ids of the memories that may be meant."""
    partly: Memory | None = None
    """A memory that a statement of an end partly matches: the statement contains more than the memory, or something else."""
    is_past: bool = False
    """Whether the remark is older than the memory it would end."""


class Remark(NamedTuple):
    """A request to forget, or a statement that something is over: its words, event and time."""

    statement: str
    scope: str
    event: str
    at: datetime


def asks_to_forget(sentence: str) -> bool:
    """Whether a sentence begins as a request to forget something, and so is not a fact."""
    return bool(_REQUEST.match(sentence))


def find_forgotten(store: Store, said: Remark, scopes: Sequence[str], statuses: Collection[str]) -> Retraction:
    """The memory in these scopes and statuses to forget, unless this request was already carried out."""
    live = _near(store, said, scopes, statuses)
    gone = _near(store, said, scopes, ("retired", "superseded"))
    if any(_was_asked(store, one.memory.id, said.event) for one in (*live, *gone)):
        return Retraction(None, "this request was carried out before")
    asked = topic_words(said.statement)
    if not asked:
        return Retraction(None, "it does not tell what")
    shared = {one.memory.id: _share(asked, one.memory) for one in live}
    owned = _TOLD.sub("", _ASKED.sub("", said.statement, count=1))
    clear = [
        one.memory
        for one in live
        if shared[one.memory.id] == 1
        and not 0 <= one.cosine < MIN_TARGET_COSINE
        and agree(owned, one.memory.statement)
        and _same_sense(owned, one.memory.statement)
    ]
    if len(clear) == 1:
        newer = _is_newer(store, clear[0], said)
        return Retraction(None, f"{clear[0].id} is newer than the request") if newer else Retraction(clear[0])
    if clear:
        ids = tuple(memory.id for memory in clear[:MAX_NAMED_IDS])
        return Retraction(None, f"several memories may be meant: {', '.join(ids)}", ids)
    ids = tuple(sorted((i for i in shared if shared[i] >= MIN_SHARED_WORDS), key=lambda i: -shared[i])[:MAX_NAMED_IDS])
    perhaps = f"; perhaps {', '.join(ids)}" if ids else ""
    return Retraction(None, f"no stored memory is clearly about it{perhaps}", ids)


def find_ended(store: Store, said: Remark, scope: str) -> Retraction:
    """The current memory in a scope that a statement ends."""
    asked = [word for word in content(said.statement) if word not in _OVER]
    live = _near(store, said, [scope], LIVE_STATUSES)
    about = [(share, one.memory) for one in live if (share := _share(asked, one.memory)) >= MIN_SHARED_WORDS]
    about = [(share, memory) for share, memory in about if _ends(said.statement, memory)]
    clear = [memory for share, memory in about if share == 1]
    if any(_is_newer(store, memory, said) for memory in clear):
        return Retraction(None, f"{clear[0].id} is newer than what was said", (clear[0].id,), is_past=True)
    if len(clear) == 1:
        return Retraction(clear[0])
    if clear:
        ids = tuple(memory.id for memory in clear[:MAX_NAMED_IDS])
        return Retraction(None, f"several memories may be meant: {', '.join(ids)}", ids, partly=clear[0])
    if about:
        partly = max(about, key=lambda pair: pair[0])[1]
        return Retraction(None, f"{partly.id} may be about something else", (partly.id,), partly=partly)
    return Retraction(None, "no stored memory is clearly about it")


def reason_to_wait(target: Memory) -> str:
    """Why a remark alone may not end or forget a memory and a person must decide; "" if it may."""
    return loss_reason(target) or ("its loss could do harm" if target.critical_slot else "")


def was_said_before(store: Store, memory: Memory, event: Event) -> bool:
    """Whether a memory's statement comes from earlier in the ledger of an event."""
    said = [found for one in memory.evidence if (found := store.event(one.event)) is not None]
    return bool(said) and all(one.session == event.session and one.seq < event.seq for one in said)


def _is_newer(store: Store, memory: Memory, said: Remark) -> bool:
    """Whether a memory's statement is newer than a remark, by their order in the ledger or else by time."""
    remark = store.event(said.event)
    if remark is not None and was_said_before(store, memory, remark):
        return False
    events = [event.at for one in memory.evidence if (event := store.event(one.event)) is not None]
    return max(events, default=memory.created or datetime.min.replace(tzinfo=UTC)) > said.at


def topic_words(request: str) -> list[str]:
    """The words that name the thing to forget."""
    text = _PLACE.sub(" ", _ASKED.sub("", request, count=1))
    words = content(text, frame=True)
    telling = {
        place
        for place, word in enumerate(words)
        if kind_of(word) == "say" and _ABOUT.intersection(words[place + 1 : place + 4])
    }
    return [
        word for place, word in enumerate(words) if place not in telling and word not in _FRAME and is_content(word)
    ]


def _near(store: Store, said: Remark, scopes: Sequence[str], statuses: Collection[str]) -> list["Neighbour"]:
    asked = Memory(id="", statement=said.statement)
    vectors = store.embed([meaning_of(asked)])
    known = StoreLookup(store, vectors[0] if vectors is not None else None, tuple(statuses))
    with store.reading():
        return [one for scope in scopes for one in known.near(propose(asked.replace(scope=scope)))]


def _same_sense(named: str, statement: str) -> bool:
    """Whether the named thing does not negate a statement: "that I eat pork" negates "does not eat pork", but "pork" does not."""
    if _is_negated(named):
        return _is_negated(statement)
    return not (_CLAUSE.match(named) and _is_negated(statement))


def _is_negated(text: str) -> bool:
    negations = word_class("wordclasses", "negation")
    return bool(_NOT.search(text)) or not negations.isdisjoint(content(text, frame=True))


def _was_asked(store: Store, memory_id: str, event: str) -> bool:
    """Whether a request has already led to a decision about a memory."""
    return any(
        image.op in FORGET_OPERATIONS and image.reason.endswith(f" in {event}") for image in store.history(memory_id)
    )


def _share(words: Sequence[str], memory: Memory) -> float:
    """The share of these words that occur in a memory, by stem or synonym."""
    return sum(_has(memory.statement, word) for word in words) / len(words) if words else 0.0


def _has(statement: str, word: str) -> bool:
    indexed, meanings = _words_of(statement)
    terms = query_terms(word)
    return terms[0] in indexed or all(term in indexed for term in terms) or canonical_stem(word) in meanings


@lru_cache(maxsize=256)
def _words_of(statement: str) -> tuple[frozenset[str], frozenset[str]]:
    return frozenset(tokens(statement)), frozenset(canonical_stem(word) for word in content(statement))


def _ends(statement: str, target: Memory) -> bool:
    """Whether a statement changes a memory about the same subject."""
    from engram.models.pairs import LIKELY_CHANGE, relate

    if _subject(statement) != _subject(target.statement):
        return False
    return relate(target.statement, statement).change >= LIKELY_CHANGE


def _subject(statement: str) -> frozenset[str]:
    """The words before the verb, without articles and adverbs of time; "@me" and "@we" represent the speakers."""
    from engram.models.pair_words import FUNCTION, read_statement

    known = read_statement(statement)
    return frozenset(
        token.stem
        for token in known.tokens[: known.verb_place]
        if token.stem in _SPEAKER_STEMS or (token.kind != FUNCTION and token.key not in _ENDING)
    )
