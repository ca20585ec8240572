"""Whether a question asks how a fact changed: by a verb that says so, by where it came from and went to, by what it turned into."""

from collections.abc import Callable
from itertools import pairwise

from engram.recall.asked import Asked, degree_behind, kind_of_pair
from engram.recall.signs import OWNERS, Signs
from engram.text.stems import stem
from engram.text.verbs import is_act, is_participle, is_past, kind_of, revises
from engram.text.word_classes import word_class

__all__ = ["ACTORS", "how_it_changed"]

ACTORS = frozenset(("you", "i", "we", "he", "she", "they"))
_ASKS_FOR_ONE = frozenset(("when", "when's", "why", "who", "who's", "whom"))
"""Words that ask for one change's time, cause or author; the ledger tells those."""
_VALUES = word_class("asking", "value_noun")
_GOING = word_class("asking", "going")
_LIGHT = word_class("asking", "light_going")
_ALONE = word_class("asking", "no_object") | {""}
_BECOMING = word_class("asking", "becoming")
_TURNING = word_class("asking", "turning")
_ARRIVING, _STEPPING = (
    frozenset((stem(verb), at) for verb, _, at in (pair.partition("_") for pair in word_class("asking", label)))
    for label in ("arriving", "stepping")
)
_REWORDING = frozenset(map(stem, word_class("verbs", "reword")))
_COUNTED_IN = frozenset(("times", "often", "steps", "stages", "rounds"))
_WHAT = frozenset(("what", "what's", "whats", "anything", "everything", "something", "all", "much", "which"))


def how_it_changed(ask: Asked, signs: Signs) -> str:
    """The words that ask for it, or nothing."""
    return next((way for rule in _RULES if (way := rule(ask, signs))), "")


def _changed(ask: Asked, signs: Signs) -> str:
    """The verb that says the fact itself took another value."""
    if not ask.keys or ask.keys[0] in _ASKS_FOR_ONE:
        return ""
    places = range(1, len(ask.keys))
    return next((ask.keys[place] for place in places if any(rule(ask, place) for rule in _VERB_RULES)), "")


def _by_itself(ask: Asked, place: int) -> bool:
    """It changed ("how has my target changed"), and nobody changed something ("what did you change in the file")."""
    keys = ask.keys
    if kind_of(keys[place]) != "change" or keys[place] == "changes":
        return False
    before, after = keys[place - 1], _after(ask, place)
    if kind_of_pair(keys[place], after):
        return False  # "where did she grow up", "who dropped by"
    if before in _WHAT or (before in ("that", "which", "has", "have", "else") and keys[0] in _WHAT):
        return is_past(keys[place])
    if ask.tense not in ("past", "perfect") or keys[place] not in ask.verb:
        return ask.tense == "present" and keys[0] == "how" and "does" not in keys
    transitive = after in OWNERS or after in ("it", "this", "that", "them")
    acted = ask.tense == "past" and (before in ACTORS or (keys[0] in _WHAT and ask.verb.startswith("did")))
    return not transitive and not acted and before not in ("to", "the")


def _was_made_to(ask: Asked, place: int) -> bool:
    """The perfect of the passive: "has my appointment been moved"; behind "how", any verb but the common ones of doing."""
    passive = ask.tense == "perfect" and ask.keys[place - 1] == "been" and is_participle(ask.keys[place])
    if not passive or ask.keys[0] != "how":
        return passive and revises(ask.keys[place])
    acted = is_act(ask.keys[place]) or kind_of(ask.keys[place]) in ("say", "state", "habit")
    return revises(ask.keys[place], loosely=True) or not (
        acted or "by" in ask.keys[place:] or ask.keys[1] not in ("has", "have")
    )


def _has_moved(ask: Asked, place: int) -> bool:
    """How something has come to stand elsewhere: "how has the date moved", but not "how have you moved the data"."""
    keys = ask.keys
    subject = keys[2] if len(keys) > 2 else ""
    moved = ask.tense == "perfect" and keys[0] == "how" and keys[place] in ask.verb and revises(keys[place])
    return moved and subject not in ACTORS


def _moved(ask: Asked, place: int) -> bool:
    """How something moved by itself: "how did the quote move", but not "how did we move", "how did Anna move the file"."""
    keys = ask.keys
    carried = keys[1] == "did"
    told = (
        keys[0] == "how" and ask.tense == "past" and (keys[place] in ask.verb if carried else keys[place] == ask.verb)
    )
    if not told or _after(ask, place) not in _ALONE:
        return False
    named = keys[1 + carried] in OWNERS or not _VALUES.isdisjoint(keys[1 + carried : place])
    return named and (revises(keys[place]) or (keys[place] in _GOING and keys[place] not in _LIGHT))


def _was_reworded(ask: Asked, place: int) -> bool:
    """What became of its wording: "how was the clause amended"."""
    carried = ask.verb.startswith(("was ", "were ")) and ask.verb.endswith(f" {ask.keys[place]}")
    stepped = (stem(ask.keys[place]), _after(ask, place)) in _STEPPING  # "how was the dose stepped up"
    reworded = stepped or stem(ask.keys[place]) in _REWORDING
    return ask.keys[0] == "how" and carried and reworded and "by" not in ask.keys[place:]


def _so_often(ask: Asked, place: int) -> bool:
    """Counting the changes asks for all of them: "how many times have I moved", "in how many steps was it raised"."""
    counted = "how" in ask.keys[:2] and not _COUNTED_IN.isdisjoint(ask.keys[1:4])
    changed = revises(ask.keys[place]) or (ask.keys[place] in _GOING and ask.keys[place] not in _LIGHT)
    return counted and ask.tense in ("past", "perfect") and ask.keys[place] in ask.verb and changed


def _became_more(ask: Asked, place: int) -> bool:
    """It got longer, became worse, grew more expensive."""
    became = ask.tense in ("past", "perfect") and ask.keys[place] in _BECOMING and ask.keys[0] != "what"
    return became and degree_behind(ask.keys, place)


def _after(ask: Asked, place: int) -> str:
    return ask.keys[place + 1] if place + 1 < len(ask.keys) else ""


def _changes(ask: Asked, signs: Signs) -> str:
    """What happened to it, as a noun: "what were the changes to our itinerary", "any change in the policy"."""
    if ask.kind == "act":
        return ""
    named = {"changes", "change"} - set(ask.verb.split())  # "what did Anna change in the file" has a verb there
    stands = ask.tense == "present" or ask.kind == "say"
    for place, noun in enumerate(ask.keys):
        of_a_value = place > 0 and ask.keys[place - 1] in _VALUES and not stands  # "the price changes of last year"
        if noun in named and (_after(ask, place) in ("to", "in") or of_a_value):
            return noun
    return ""


def _from_one_to_another(ask: Asked, signs: Signs) -> str:
    """It went from one value to another: "how did my salary go from 50k to 70k", but not "how did we go from Oslo to Bergen"."""
    keys = ask.keys
    if "from" not in keys[2:] or keys[0] in _ASKS_FOR_ONE or ask.tense not in ("past", "perfect"):
        return ""
    place = keys.index("from", 2)
    reworked = keys[0] == "how" and revises(keys[place - 1], loosely=True)  # "how was the clause reworded from … to …"
    went = (keys[place - 1] in _GOING or reworked) and "to" in keys[place:]
    valued = went and (keys[place - 2] not in ACTORS or _two_of_a_kind(keys[place:]))
    return f"{keys[place - 1]} from" if valued else ""


def _two_of_a_kind(ends: tuple[str, ...]) -> bool:
    """Whether both ends of "from … to …" are values of one thing: "from port 80 to port 81", "from 3 to 5"."""
    to = ends.index("to")
    first, last = ends[1], [*ends[to + 1 : to + 2], ""][0]
    return first == last or (first[:1].isdigit() and last[:1].isdigit())


def _has_come_on(ask: Asked, signs: Signs) -> str:
    """How much of a way it has made, and how: "how far has her English come", "how have his symptoms come on"."""
    if ask.tense != "perfect" or ask.keys[:1] != ("how",):
        return ""
    went = ask.verb.split()[-1] in _GOING
    on = any(pair in pairwise(ask.keys) for pair in (("come", "on"), ("come", "along"), ("gone", "on")))
    return ask.verb if went and (ask.keys[1] == "far" or (on and ACTORS.isdisjoint(ask.keys))) else ""


def _became(ask: Asked, signs: Signs) -> str:
    """How one thing turned into another: "how did the summary turn into the present one"."""
    if ask.keys[:1] != ("how",) or ask.tense not in ("past", "perfect") or not ACTORS.isdisjoint(ask.keys):
        return ""
    turned = any(key in _TURNING and "into" in ask.keys[place:] for place, key in enumerate(ask.keys))
    return "became" if turned or not {"become", "became"}.isdisjoint(ask.keys) else ""


def _arrived(ask: Asked, signs: Signs) -> str:
    """By which way one came to a value: "how did we arrive at the 30-day limit"."""
    carried = ask.keys[:1] == ("how",) and ask.keys[1:2] in (("did",), ("have",), ("has",))
    return "arrived at" if carried and any((stem(verb), at) in _ARRIVING for verb, at in pairwise(ask.keys)) else ""


def _happened_to(ask: Asked, signs: Signs) -> str:
    """What became of a value: "what has happened to the interest rate since 2025"."""
    for place, run in enumerate(pairwise(ask.keys)):
        if run in (("happened", "to"), ("become", "of")) and not _VALUES.isdisjoint(ask.keys[place + 2 : place + 6]):
            return " ".join(run)
    return ""


def _and_how(ask: Asked, signs: Signs) -> str:
    """A second question after the change: "what was it at the beginning and how has it shifted"."""
    for place, run in enumerate(zip(signs.keys, signs.keys[1:], signs.keys[2:], strict=False)):
        if run[:2] == ("and", "how") and run[2] in ("has", "have", "did"):
            return next((key for key in signs.keys[place + 3 : place + 10] if kind_of(key) == "change"), "")
    return ""


_VERB_RULES: tuple[Callable[[Asked, int], bool], ...] = (
    _by_itself,
    _was_made_to,
    _has_moved,
    _moved,
    _was_reworded,
    _so_often,
    _became_more,
)
_RULES: tuple[Callable[[Asked, Signs], str], ...] = (
    _changed,
    _changes,
    _from_one_to_another,
    _has_come_on,
    _became,
    _arrived,
    _happened_to,
    _and_how,
)
