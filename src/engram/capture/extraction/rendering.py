"""Putting what someone says of themselves into a sentence that can be read alone: "I prefer tabs" → "The user prefers tabs."."""

import re
from collections.abc import Callable

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
# What follows is about the talk, not about the fact: ", so that's good to know".
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
    """The clause without greetings and asides before and after it, and whether it was asked to be remembered."""
    bare = _TRAILING.sub("", _AFTERTHOUGHT.sub("", _LEADS.sub("", clause.replace("’", "'"))))
    asked = _EXPLICIT.match(bare)
    if asked:
        bare = _TRAILING.sub("", _LEADS.sub("", bare[asked.end() :]).removeprefix("to ").rstrip("?"))
    return bare.strip(), asked is not None


def asked_to_remember(sentence: str) -> bool:
    """Whether a sentence opens with a request to remember what follows."""
    return stripped(sentence)[1]


def as_told(text: str) -> str:
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
    """A clause about something else, with its first word for the speaker naming the user: "Invoices go to the user"."""
    found = _FIRST_PERSON.search(text)
    if found is None:
        return text.strip()
    before, said, after = text[: found.start()], found[0].lower(), text[found.end() :]
    verb = re.match(r" ([\w']+)", after) if said == "i" else None
    if verb:
        done = verb[1].lower()
        past = is_past(done) or done in PAST_AUXILIARIES
        return f"{before}the user {done if past else third_person(done)}{swapped_after(after[verb.end() :])}"
    return f"{before}{_NAMED.get(said, 'the user')}{swapped_after(after)}"


def swapped_after(text: str) -> str:
    """Like `swapped`, keeping the space the text begins with."""
    return f"{' ' if text[:1].isspace() else ''}{swapped(text)}"


def of_the_user(verb: str, rest: str, before: str = "") -> str:
    """A first-person clause in the third person; `before` is an adverb between subject and verb."""
    adverb = f"{before.strip().lower()} " if before.strip() else ""
    return f"The user {adverb}{third_person(verb.lower())} {swapped(rest)}"


def swapped(text: str) -> str:
    """First-person words as words about the user."""
    return _FIRST_PERSON.sub(lambda word: _SWAPPED[word[0].lower()], text).strip()


def third_person(verb: str) -> str:
    """ "prefer" → "prefers"; of a phrase, its first word changes."""
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
    """The text as one sentence."""
    text = " ".join(text.split()).rstrip(" ,;:.!")
    return f"{text[:1].upper()}{text[1:]}."


Rendering = Callable[[re.Match[str]], str]

_MEETING = re.compile(r"(?:stand-?up|retro|daily|sync|scrum|all-hands)\b", re.IGNORECASE)
_STATES = ("married", "divorced", "engaged")


def as_said(found: re.Match[str]) -> str:
    """As it was said."""
    return about_the_user(found[0])


def the_user(found: re.Match[str]) -> str:
    """ "I prefer X" → "The user prefers X"."""
    groups = found.groupdict()
    said = of_the_user(groups["verb"], groups["rest"] or "", groups.get("adv") or "")
    context = swapped(groups.get("ctx") or "").rstrip(" ,")
    return f"{context}, the{said[3:]}" if context else said


def the_user_is(found: re.Match[str]) -> str:
    """ "I'm X" → "The user is X"."""
    return f"The user is {(found['neg'] or '').lower()}{swapped(found['rest'])}"


def of_the_users(found: re.Match[str]) -> str:
    """ "My X" → "The user's X"."""
    return f"The user's {swapped(found['rest'])}"


def the_user_would(found: re.Match[str]) -> str:
    """ "I'd rather X" → "The user would rather X"."""
    return f"The user would {found['verb'].lower()} {swapped(found['rest'])}"


def no_longer(found: re.Match[str]) -> str:
    """ "I no longer use X" → "The user no longer uses X"."""
    return of_the_user(found["verb"], found["rest"], "no longer")


def command(found: re.Match[str]) -> str:
    """What is to be done, as a command."""
    return about_the_user(found["rest"])


def decided(found: re.Match[str]) -> str:
    """What was decided."""
    return f"Decided: {swapped(found['rest'])}"


def decided_use(found: re.Match[str]) -> str:
    """What was chosen."""
    return f"Decided: use {swapped(found['rest'])}"


def decided_not(found: re.Match[str]) -> str:
    """What is not to be done."""
    return f"Decided: do not {swapped(found['rest'])}"


def decided_against(found: re.Match[str]) -> str:
    """What was not chosen."""
    return f"Decided: do not use {swapped(found['rest']).removeprefix('using ')}"


def called(found: re.Match[str]) -> str:
    """What the user wants to be called."""
    return f"The user wants to be called {found['rest']}"


def whose(found: re.Match[str]) -> str:
    """ "My budget is …" as the user's."""
    said = found[0]
    return f"The user's {swapped(said[3:])}" if said[:3].lower() == "my " else said


def born(found: re.Match[str]) -> str:
    """When or where the user was born."""
    return f"The user was born {swapped(found['rest'])}"


def as_told_of(found: re.Match[str]) -> str:
    """As it was said, in the third person; without when it came about, which is dated apart."""
    end = found.start("ago") - found.start() if found.groupdict().get("ago") else len(found[0])
    return as_told(found[0][:end])


def lives(found: re.Match[str]) -> str:
    """Where the user lives since they moved."""
    return f"The user lives in {found['place']}"


def works(found: re.Match[str]) -> str:
    """Where the user works since they joined."""
    role = f" as {swapped(found['role'])}" if found["role"] else ""
    return f"The user works at {found['place']}{role}"


def switched(found: re.Match[str]) -> str:
    """What was switched to, and from what."""
    thing = f" {swapped(found['thing'])}" if found["thing"] else ""
    old = f" from {found['old']}" if found["old"] else ""
    return f"{_who(found)} switched{thing}{old} to {found['new']}"


def replaced(found: re.Match[str]) -> str:
    """What took the place of what."""
    return f"{_who(found)} replaced {found['old']} with {found['new']}"


def _who(found: re.Match[str]) -> str:
    return "The user" if found["who"].lower() == "i" else str(found["who"]).capitalize()


def changed(found: re.Match[str]) -> str:
    """What the user became, left, bought or took up."""
    verb = found["verb"].lower()
    return f"The user {'gave up' if verb == 'given up' else verb} {swapped(found['rest'])}"


def not_any_more(found: re.Match[str]) -> str:
    """ "I don't use X any more" → "The user no longer uses X"."""
    if found["we"]:
        return f"We no longer {found['verb'].lower()} {swapped(found['rest'])}"
    return no_longer(found)


def we_stopped(found: re.Match[str]) -> str:
    """What a team gave up."""
    return f"We stopped {swapped(found['rest'])}"


def was_moved(found: re.Match[str]) -> str:
    """ "We moved the demo to Friday" → "The demo was moved to Friday"."""
    return f"{about_the_user(found['what'])} was moved to {swapped(found['rest'])}"


def was_made(found: re.Match[str]) -> str:
    """ "I got promoted" → "The user was promoted"; of a state, that it holds."""
    return f"The user {'is' if found['rest'].lower() in _STATES else 'was'} {swapped(found['rest'])}"


def still_not(found: re.Match[str]) -> str:
    """ "I'm no longer X" → "The user is no longer X"."""
    return f"The user is {swapped(found['rest'])}"


def for_the_user(found: re.Match[str]) -> str:
    """ "Mornings work for me" → "Mornings work for the user"."""
    return f"{swapped(found['what'])} {found['verb'].lower()} for the user{swapped_after(found['rest'])}"


def does_to_the_user(found: re.Match[str]) -> str:
    """ "Noise drives me crazy" → "Noise drives the user crazy"."""
    return f"{swapped(found['what'])} {found['verb'].lower()} the user{swapped_after(found['rest'])}"


def my_favourite(found: re.Match[str]) -> str:
    """ "Tea is my favourite" → "Tea is the user's favourite"."""
    return f"{swapped(found['what'])} {found['verb'].lower()} the user's {swapped(found['rest'])}"


def it_is(found: re.Match[str]) -> str:
    """What a correction says it is."""
    return f"It is {swapped(found['rest'])}"


def meant(found: re.Match[str]) -> str:
    """What the user meant."""
    return f"The user meant {swapped(found['rest'])}"


def the_meeting(found: re.Match[str]) -> str:
    """As it was said, a meeting's name with its article."""
    said = as_told_of(found)
    return f"The {said[0].lower()}{said[1:]}" if _MEETING.match(said) else said


RENDERINGS: dict[str, Rendering] = {
    rendering.__name__: rendering
    for rendering in (
        as_said, as_told_of, born, called, changed, command, decided, decided_against, decided_not, decided_use, does_to_the_user,
        for_the_user, it_is, lives, meant, my_favourite, no_longer, not_any_more, of_the_users, replaced, still_not, switched,
        the_meeting, the_user, the_user_is, the_user_would, was_made, was_moved, we_stopped, whose,
        works,
    )
}  # fmt: skip
"""By the name a table calls it."""
