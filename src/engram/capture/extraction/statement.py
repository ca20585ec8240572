"""Rewrites a sentence of a conversation so that it can be read alone.

    chat spellings → fillers and greetings → what is only for this occasion → what is referred to → answer with its question → dates → third person

What marks a change stays in: now, no longer, not X but Y.
"""

import re
from datetime import datetime
from functools import lru_cache

from engram.capture.extraction.antecedents import can_name, has_open_reference, is_verbless
from engram.capture.extraction.clauses import in_third_person, sentence, swap_pronouns, third_person
from engram.capture.extraction.plans import resolve_relative_day
from engram.capture.extraction.references import References, speech
from engram.text.verbs import is_past, kind_of

_EMOJI = re.compile("[\U0001f000-\U0001faff☀-➿←-⇿️‍⬀-⯿]+|(?<!\\S)[:;]-?[)(DPp3](?!\\S)")
_GAP = re.compile(r"\s+([,.;:!?])|,(?=\s*[,.;:!?])|^\s*[,;:.–—-]+\s*|\s{2,}")
_BRACKETS = re.compile(r"^\((.*)\)$")
_FINITE = re.compile(
    r"\b(?:is|are|am|was|were|has|have|had|do|does|did|can|can't|will|won't|must|should|may|might|would|could|don't|doesn't|didn't|isn't|aren't)\b|\w'(?:s|re|m|ve|ll|d)\b",
    re.IGNORECASE,
)
_SUBJECT = re.compile(r"(?:i|we|he|she|they|you|it|my|our|his|her|their|this|that|there|the|it's)\b", re.IGNORECASE)
_ASKED = re.compile(
    r"(?:and |so |ok(?:ay)?,? )?(?:what|which|who|when|where|how (?:long|much|many|old|big|often|far)) ?(?P<be>'s|is|are|was|were) (?P<what>(?:your|the|my|his|her|their|our|its) [^?]{2,80})\?",
    re.IGNORECASE,
)
_ASKED_OF_YOU = re.compile(
    r"(?:and |so |ok(?:ay)?,? )?(?:what|which) (?P<what>(?!time\b|day\b)[\w-]+(?: [\w-]+)?) do you (?:usually |normally |currently )?(?P<verb>[a-z]+)(?P<rest> [^?]{2,60})?\?",
    re.IGNORECASE,
)
_ASKED_SHORTLY = re.compile(
    r"(?:(?:and|what about|how about|and what about) )(?P<what>(?:your|the) [^?,]{2,60})\?", re.IGNORECASE
)
_IT_IS = re.compile(r"(?:it|that|they)(?:'s| is|'re| are| would be|'d be) (?!(?:been|got)\b)", re.IGNORECASE)
_YOU = re.compile(r"\byou're\b|\byour\b|\byours\b|\byou are\b|\byou\b", re.IGNORECASE)
_USER = {
    "you're": "the user is",
    "your": "the user's",
    "yours": "the user's",
    "you are": "the user is",
    "you": "the user",
}
_REQUEST = r"(?:can|could|would|will) (?:you|u)\b|please\b|pls\b|let's\b|lets\b|(?:so )?(?:put|add|write|make|give|send|tell|remind|draft|change|use|leave|keep|note|book|plan|set|show|find|check|take|move)\b(?= (?:it|that|this|me|him|her|them|the|in|a|an|us|out|off|down)\b)"
_TAIL = re.compile(
    rf"(?<!\s)(?:\s*+[,;]|\s++(?:[-–—]|(?=so\s)))\s*+(?:(?:so|and|but|then|anyway)\s+)*(?:{_REQUEST}|what do you think|any (?:ideas|tips|thoughts)|how (?:do|can|should)|what (?:should|can|do)|right\b|isn't it|don't you).*$",
    re.IGNORECASE,
)
_HEAD = re.compile(
    rf"^(?:(?:so|and|but|ok|then)\s+)*(?:{_REQUEST})[^,;]{{3,80}}(?:[,;]\s*|\s+(?:because|since|as)\s+)(?=(?:i|we|my|our|he|she|it|they|the)\b)",
    re.IGNORECASE,
)
_FEWEST_LEFT = 4
"""Words that must be left of a sentence for a part of it to be cut."""


def standalone(text: str, references: References, at: datetime, *, owner: str = "user", asked: str = "") -> str:
    """A sentence of the user as a memory that can be read alone; `asked` is the question that it may answer."""
    bare = bare_sentence(text)
    fragment = is_fragment(bare)
    bare = resolve_relative_day(references.resolve_pronouns(bare), at)
    if asked and (fragment or _is_named_by(asked, bare)):
        bare = answer(asked, bare)
    elif fragment or is_past(bare.partition(" ")[0].lower()):
        bare = _with_subject(bare, references, owner)
    return sentence(in_third_person(bare))


def needs_context(text: str, references: References, *, asked: str = "") -> bool:
    """Whether a sentence still refers to the one before it after all that can be named is named."""
    bare = bare_sentence(text)
    if asked and is_fragment(bare):
        return False
    bare = references.resolve_pronouns(bare)
    return (has_open_reference(bare) and not _is_named_by(asked, bare)) or is_verbless(bare)


def _is_named_by(asked: str, text: str) -> bool:
    """Whether the question says what the answer refers to."""
    return bool(asked) and has_open_reference(text) and not has_open_reference(asked) and can_name(asked, text)


def bare_sentence(text: str) -> str:
    """The text in full spelling, without chatter and without a request to the assistant."""
    return _cut_request(without_chatter(spelled_out(text)))


def spelled_out(text: str) -> str:
    """The text with the spellings of chat written out, without emoji."""
    text = _EMOJI.sub(" ", text.replace("’", "'"))
    return _spelling_pattern().sub(lambda word: speech()["spellings"][word[0].lower()], text).strip()


@lru_cache(maxsize=1)
def _spelling_pattern() -> re.Pattern[str]:
    words = "|".join(map(re.escape, sorted(speech()["spellings"], key=len, reverse=True)))
    return re.compile(rf"(?<![\w'/.@-])(?:{words})(?![\w'/@-])(?!\.\w)", re.IGNORECASE)


@lru_cache(maxsize=1)
def _fillers() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    tables = {name: "|".join(sorted(words, key=len, reverse=True)) for name, words in speech()["fillers"].items()}
    before = rf"{tables['before']}|{tables['anywhere']}"
    after = rf"{tables['after']}|{tables['anywhere']}"
    return (
        re.compile(rf"^\W*(?:(?:{before})(?![\w'-])[\s,:!.–—-]+)+", re.IGNORECASE),
        re.compile(rf"(?:^|(?<=[\s,(]))(?:{tables['anywhere']})(?![\w'-])\s*(?P<comma>,)?", re.IGNORECASE),
        re.compile(rf"(?:[,;\s–—-]++(?:{after}))+[\s.!…,;:?]*+$", re.IGNORECASE),
    )


def without_chatter(text: str) -> str:
    """The text without greetings, fillers and trailing chatter."""
    before, anywhere, after = _fillers()
    text = _BRACKETS.sub(r"\1", text.strip())
    bare = before.sub("", text)
    bare = after.sub("", anywhere.sub("", bare))
    bare = _GAP.sub(lambda gap: gap[1] or (" " if gap[0].isspace() else ""), bare).strip(" ,;–—-")
    return bare if len(bare.split()) >= 2 else text


def _cut_request(text: str) -> str:
    """The text without a request or question to the assistant before or after it."""
    for pattern in (_TAIL, _HEAD):
        shorter = pattern.sub("", text, count=1).strip()
        if shorter and len(shorter.split()) >= _FEWEST_LEFT:
            text = shorter
    return text


def is_fragment(text: str) -> bool:
    """Whether a text has neither a subject nor a finite verb of its own at its start."""
    first = re.split(r"[,;]| - ", text, maxsplit=1)[0]
    if _SUBJECT.match(first):
        return False
    words = first.lower().split()
    return not _FINITE.search(first) and not any(is_past(word) or kind_of(word) for word in words[1:6])


def _with_subject(text: str, references: References, owner: str) -> str:
    """A sentence that leaves out its subject, with the subject: "hate coriander", "moved to Porto"."""
    first, _, rest = text.partition(" ")
    verb = first.lower()
    subject = "I" if owner == "user" else references.last_person() if owner == "person" else ""
    if not subject or subject.lower() in text.lower():
        return text
    if verb.endswith("ing") and len(verb) > 5:
        return f"{subject} {'am' if owner == 'user' else 'is'} {text}"
    if is_past(verb) or kind_of(verb):
        form = verb if owner == "user" or is_past(verb) else third_person(verb)
        return f"{subject} {'have ' * (verb == 'been' and owner == 'user')}{form} {rest}"
    return text if owner == "user" else f"{subject}: {text}"


def answer(question: str, text: str) -> str:
    """A short answer as a statement, with what was asked."""
    question = question.strip()
    value = _IT_IS.sub("", text)
    if asked := _ASKED.fullmatch(question):
        be = {"'s": "is"}.get(asked["be"].lower(), asked["be"].lower())
        return f"{_of_the_user(asked['what'])} {be} {value}"
    if asked := _ASKED_OF_YOU.fullmatch(question):
        return (
            f"the {asked['what']} the user {third_person(asked['verb'])}{_of_the_user(asked['rest'] or '')} is {value}"
        )
    if asked := _ASKED_SHORTLY.fullmatch(question):
        return f"{_of_the_user(asked['what'])}: {value}"
    return f"Asked “{question}”, the user answered: {swap_pronouns(text)}"


def _of_the_user(text: str) -> str:
    return _YOU.sub(lambda you: _USER[you[0].lower()], text)
