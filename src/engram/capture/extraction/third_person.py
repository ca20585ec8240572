"""Rewrites first-person clauses as sentences that can be read alone: "I prefer tabs" → "The user prefers tabs."."""

import re

from engram.text.verbs import PAST_AUXILIARIES, is_past

_LEADS = re.compile(
    r"^\W*(?:(?:hi|hey|hello|ok|okay|oh|so|well|yes|yeah|yep|right|great|perfect|cool|sure|thanks|thank you|also|and|but|plus|"
    r"btw|by the way|fyi|for your information|for the record|just so you know|(?:just )?to be clear|honestly|personally|"
    r"for context|quick update|small update|update|news|as you know|one more thing|another thing|quick note|heads[- ]up|listen|look|now(?= i\b)|as i (?:said|told you)|"
    r"important|reminder)(?:\s*[,:!.—–-]+\s*|\s+))+",
    re.IGNORECASE,
)
_POLITELY = (
    r"(?:(?:can|could|would|will) you (?:please )?|(?:i )?(?:want|need|would like|'d like) you to |please |do )?"
)
_RECALLED = r"(?:me|us|when|how|what|why|where|who|if|the time|that time|those|to (?!.*\b(?:always|never|before|after|when|whenever|every|each|if|for all)\b)|for (?:me|us)|it|this|that (?:for|one|time|day)|that$)\b"
_EXPLICIT = re.compile(
    rf"^{_POLITELY}(?:(?:always )?remember|(?:keep|bear) in mind|(?:don't|do not|never) forget|(?:make|take) a note|note down|note(?=:|,? that\b)|memori[sz]e|"
    rf"save(?= that| to memory)|(?:store|record)(?= that)|write down(?= that)|know(?= that))"
    rf"(?!,? {_RECALLED})(?: (?:to memory|for (?:later|next time|the future|future reference)))?(?: (?:that|of the fact that)|:|,| -)*\s+"
    rf"|^for (?:future|your) reference[,:]? ",
    re.IGNORECASE,
)
_TRAILING = re.compile(
    r"(?:[,\s]+(?:please|thanks|thank you|thx|ok|okay|btw|by the way|fyi|though|too|as well|cheers|got it|alright))*[\s.!…,;:]*$",
    re.IGNORECASE,
)
# A remark about the conversation, not the fact: ", so that's good to know".
_AFTERTHOUGHT = re.compile(
    r",? so (?:that's|it's|that|let's|i'll|i'd|i'm (?:happy|glad|looking|wondering)|i can relate|just|something|maybe|please|can|could|what|how)\b.*$",
    re.IGNORECASE,
)
_SWAPPED = {
    "i'm": "they're", "i've": "they've", "i'll": "they'll", "i'd": "they'd", "i": "they", "me": "them", "my": "their",
    "mine": "theirs", "myself": "themselves",
}  # fmt: skip
_FIRST_PERSON = re.compile(r"(?<![\w'-])(?:i'm|i've|i'll|i'd|i|me|my|mine|myself)(?![\w'-]|\.\w|/)", re.IGNORECASE)
_IRREGULAR = {
    "am": "is",
    "have": "has",
    "do": "does",
    "don't": "doesn't",
    "do not": "does not",
    "haven't": "hasn't",
    "go": "goes",
}
_UNCHANGING = frozenset(
    ("can't", "cannot", "would", "must", "will", "can", "no", "was", "should", "shouldn't", "won't", "may", "might", "could",
     "couldn't", "mustn't", "wouldn't", "didn't", "had", "did", "not")
)  # fmt: skip
_NAMED = {
    "i'm": "the user is", "i've": "the user has", "i'll": "the user will", "i'd": "the user would", "my": "the user's",
    "mine": "the user's", "myself": "the user",
}  # fmt: skip
_MY = re.compile(r"my (?=\S)", re.IGNORECASE)
_SHORTENED = re.compile(r"(i'm|im|i am|i've|i'll|i'd)\s+", re.IGNORECASE)
_LONG = {"i'm": "is", "im": "is", "i am": "is", "i've": "has", "i'll": "will", "i'd": "would"}
_I_DO = re.compile(
    r"i (?P<adv>(?:(?:always|never|only|often|also|just|still|now|no longer|sometimes|\w+ly) ){0,2})(?P<verb>do not|[\w']+)\s+",
    re.IGNORECASE,
)


def stripped(clause: str) -> tuple[str, bool]:
    """The clause without greetings and asides, and whether the speaker asked to remember it."""
    bare = _TRAILING.sub("", _AFTERTHOUGHT.sub("", _LEADS.sub("", clause.replace("’", "'"))))
    request = _EXPLICIT.match(bare)
    if request:
        bare = _TRAILING.sub("", _LEADS.sub("", bare[request.end() :]).removeprefix("to ").rstrip("?"))
    return bare.strip(), request is not None


def asked_to_remember(sentence: str) -> bool:
    """Whether a sentence starts with a request to remember something."""
    return stripped(sentence)[1]


def in_third_person(text: str) -> str:
    """Any clause in the third person: "I'm seeing a doctor" → "The user is seeing a doctor"."""
    if found := _MY.match(text):
        return f"The user's {swapped(text[found.end() :])}"
    if found := _SHORTENED.match(text):
        return f"The user {_LONG[found[1].lower()]} {swapped(text[found.end() :])}"
    if found := _I_DO.match(text):
        verb, rest = found["verb"].lower(), text[found.end() :]
        past = is_past(verb, same=False) or verb in PAST_AUXILIARIES
        return f"The user {found['adv'].lower()}{verb if past else third_person(verb)} {swapped(rest)}"
    return about_the_user(text)


def about_the_user(text: str) -> str:
    """A clause about something else, with the speaker named as the user: "Invoices go to me" → "Invoices go to the user"."""
    found = _FIRST_PERSON.search(text)
    if found is None:
        return text.strip()
    before, pronoun, after = text[: found.start()], found[0].lower(), text[found.end() :]
    verb = re.match(r" ([\w']+)", after) if pronoun == "i" else None
    if verb:
        form = verb[1].lower()
        past = is_past(form) or form in PAST_AUXILIARIES
        return f"{before}the user {form if past else third_person(form)}{swapped_after(after[verb.end() :])}"
    return f"{before}{_NAMED.get(pronoun, 'the user')}{swapped_after(after)}"


def swapped_after(text: str) -> str:
    """Like `swapped`, but keeps a leading space."""
    return f"{' ' if text[:1].isspace() else ''}{swapped(text)}"


def of_the_user(verb: str, rest: str, before: str = "") -> str:
    """A first-person clause in the third person; `before` is an adverb between subject and verb."""
    adverb = f"{before.strip().lower()} " if before.strip() else ""
    return f"The user {adverb}{third_person(verb.lower())} {swapped(rest)}"


def swapped(text: str) -> str:
    """The text with first-person words in the third person: "my" → "their"."""
    return _FIRST_PERSON.sub(lambda word: _SWAPPED[word[0].lower()], text).strip()


def third_person(verb: str) -> str:
    """The third-person form of a verb: "prefer" → "prefers"; in a phrase the first word changes."""
    for phrase, changed in _IRREGULAR.items():
        if verb == phrase or verb.startswith(f"{phrase} "):
            return changed + verb[len(phrase) :]
    first, _, rest = verb.partition(" ")
    if first in _UNCHANGING:
        return verb
    ending = "es" if first.endswith(("s", "sh", "ch", "x", "z", "o")) else "s"
    changed = f"{first[:-1]}ies" if re.search(r"[^aeiou]y$", first) else first + ending
    return f"{changed} {rest}" if rest else changed


def sentence(text: str) -> str:
    """The text as one sentence, with a capital and a full stop."""
    text = " ".join(text.split()).rstrip(" ,;:.!")
    return f"{text[:1].upper()}{text[1:]}."
