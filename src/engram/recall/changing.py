"""Whether a question asks for the way of a fact through time: its history, its versions, how it changed."""

from collections.abc import Callable

from engram.recall.asked import Asked
from engram.recall.signs import OWNERS, Signs
from engram.text.verbs import is_past, kind_of, revises
from engram.text.word_classes import word_class

__all__ = ["way_of_a_fact"]

_ACTORS = frozenset(("you", "i", "we", "he", "she", "they"))
_ASKS_FOR_ONE = frozenset(("when", "when's", "why", "who", "who's", "whom"))
"""Words that ask for one change's time, cause or author; the ledger tells those."""
_STATE_PAIRS = word_class("asking", "state_pair")
_TRACING = word_class("asking", "tracing")
_VERSIONS = word_class("asking", "version_noun")
_UNDERGOING = frozenset(("through", "undergone", "undergo", "seen", "see"))
_VALUES = word_class("asking", "value_noun")
_GOING = word_class("asking", "going")
_BESIDE = frozenset(("and", "versus", "vs", "compared", "than"))
_PRESENTLY = frozenset(("now", "currently", "today", "nowadays"))
_HELD_THEN = frozenset(("was", "were", "used", "then", "before"))
_WHAT = frozenset(("what", "what's", "whats", "anything", "everything", "something", "all", "much", "which"))


def way_of_a_fact(ask: Asked, signs: Signs) -> str:
    """The words that ask for it, or nothing."""
    return next((way for rule in _RULES if (way := rule(ask, signs))), "")


def _said(ask: Asked, signs: Signs) -> str:
    traced = ask.keys[0] if ask.keys and ask.keys[0] in _TRACING else ""
    return signs.get("lineage") or traced


def _history(ask: Asked, signs: Signs) -> str:
    keys = ask.keys
    if "history" not in keys[1:] or signs.get("not_history"):
        return ""
    return "" if keys[keys.index("history") - 1] in ("a", "in", "of", "about") else "history"


def _changed(ask: Asked, signs: Signs) -> str:
    """The verb that says the fact itself took another value."""
    if not ask.keys or ask.keys[0] in _ASKS_FOR_ONE:
        return ""
    for place, key in enumerate(ask.keys):
        if place and any(rule(ask, place) for rule in (_by_itself, _was_made_to, _has_moved, _so_often)):
            return key
    return ""


def _by_itself(ask: Asked, place: int) -> bool:
    """It changed ("how has my target changed"), and nobody changed something ("what did you change in the file")."""
    keys = ask.keys
    if kind_of(keys[place]) != "change" or keys[place] == "changes":
        return False
    before, after = keys[place - 1], keys[place + 1] if place + 1 < len(keys) else ""
    if f"{keys[place]}_{after}" in _STATE_PAIRS:
        return False  # "where did she grow up"
    if before in _WHAT or (before in ("that", "which", "has", "have", "else") and keys[0] in _WHAT):
        return is_past(keys[place])
    if ask.tense not in ("past", "perfect") or keys[place] not in ask.verb:
        return ask.tense == "present" and keys[0] == "how" and "does" not in keys
    transitive = after in OWNERS or after in ("it", "this", "that", "them")
    acted = ask.tense == "past" and (before in _ACTORS or (keys[0] in _WHAT and ask.verb.startswith("did")))
    return not transitive and not acted and before not in ("to", "the")


def _was_made_to(ask: Asked, place: int) -> bool:
    """The perfect of the passive: "has my appointment been moved"."""
    return (
        ask.tense == "perfect"
        and ask.keys[place - 1] == "been"
        and is_past(ask.keys[place])
        and revises(ask.keys[place])
    )


def _has_moved(ask: Asked, place: int) -> bool:
    """How something has come to stand elsewhere: "how has the date moved", but not "how have you moved the data"."""
    keys = ask.keys
    subject = keys[2] if len(keys) > 2 else ""
    moved = ask.tense == "perfect" and keys[:1] == ("how",) and keys[place] in ask.verb and revises(keys[place])
    return moved and subject not in _ACTORS


def _so_often(ask: Asked, place: int) -> bool:
    """Counting the changes asks for all of them: "how many times have I moved", "how often was it postponed"."""
    counted = ask.keys[:3] == ("how", "many", "times") or ask.keys[:2] == ("how", "often")
    return counted and ask.tense in ("past", "perfect") and ask.keys[place] in ask.verb and revises(ask.keys[place])


def _changes(ask: Asked, signs: Signs) -> str:
    """What happened to it, as a noun: "what were the changes to our itinerary", "any change in the policy"."""
    if ask.kind == "act":
        return ""
    done = set(ask.verb.split())  # "what did Anna change in the file" has a verb there
    named = {"changes", "change"} - done
    stands = ask.tense == "present" or ask.kind == "say"
    for place, noun in enumerate(ask.keys):
        before, after = ask.keys[place - 1] if place else "", [*ask.keys[place + 1 : place + 2], ""][0]
        of_a_value = before in _VALUES and not stands  # "the price changes of last year"
        if noun in named and (after in ("to", "in") or of_a_value):
            return noun
    return ""


def _all_of_them(ask: Asked, signs: Signs) -> str:
    """Every state there was: "all the addresses I've had", "where have I lived"."""
    perfect = {"i've", "we've", "you've", "have", "has"} & set(ask.keys)
    had = perfect and any(kind_of(key) in ("state", "habit") and is_past(key) for key in ask.keys)
    held = ask.tense in ("perfect", "past") and ask.kind in ("state", "habit")
    were_all = ask.keys[:3] in (("what", "were", "all"), ("who", "were", "all"))
    held = held or (were_all and not signs.get("record") and not signs.get("had"))
    if (whole := signs.get("whole")) and (signs.get("historical") or held or had or _versions(ask, whole)):
        return whole
    return ""


def _versions(ask: Asked, whole: str) -> bool:
    """Every value there was, by name: "every amendment to the lease"; but "all the changes you made" were acts."""
    if whole not in ask.keys:
        return False
    behind = ask.keys.index(whole) + 1
    if ask.tense == "perfect" and ask.kind != "say" and not _VALUES.isdisjoint(ask.keys[behind : behind + 3]):
        return True  # "every price we've ever listed it at"
    if ask.told or ask.kind == "act":
        return False
    return not _VERSIONS.isdisjoint(ask.keys[behind : behind + 3])


def _its_versions(ask: Asked, signs: Signs) -> str:
    """How many or which ones it had: "how many revisions were there", "what stages has the offer gone through"."""
    keys = ask.keys
    counted = keys[:2] in (("how", "many"), ("through", "which"), ("through", "what"))
    noun = keys[2:3] if counted else keys[1:2] if keys[:1] in (("what",), ("which",)) else ()
    if noun and noun[0] in _VALUES and ask.tense == "perfect" and ask.verb.endswith(" held"):
        return noun[0]  # "which jobs have I held"
    if not noun or noun[0] not in _VERSIONS or not noun[0].endswith("s") or not _ACTORS.isdisjoint(keys):
        return ""
    made = (
        ask.verb.endswith(" made") and "been" in keys and "by" not in keys
    )  # "what changes have been made to the clause"
    held = made or ask.kind in ("state", "be") or not _UNDERGOING.isdisjoint(keys)
    return noun[0] if held and ask.tense in ("past", "perfect") else ""


def _old_versions(ask: Asked, signs: Signs) -> str:
    """The former values together: "show me the previous versions of the policy"."""
    former = signs.get("historical")
    behind = ask.keys.index(former) + 1 if former in ask.keys else len(ask.keys)
    named = ask.keys[behind] if behind < len(ask.keys) else ""
    return f"{former} {named}" if named in _VERSIONS and named.endswith("s") else ""


def _from_one_to_another(ask: Asked, signs: Signs) -> str:
    """It went from one value to another: "how did my salary go from 50k to 70k", but not "how did we go from Oslo to Bergen"."""
    keys = ask.keys
    if "from" not in keys[2:] or keys[0] in _ASKS_FOR_ONE or ask.tense not in ("past", "perfect"):
        return ""
    place = keys.index("from", 2)
    went = keys[place - 1] in _GOING and "to" in keys[place:]
    valued = keys[place - 2] not in _ACTORS or _two_of_a_kind(keys[place:])
    return f"{keys[place - 1]} from" if went and valued else ""


def _two_of_a_kind(ends: tuple[str, ...]) -> bool:
    """Whether both ends of "from … to …" are values of one thing: "from port 80 to port 81", "from 3 to 5"."""
    to = ends.index("to")
    first, last = ends[1], [*ends[to + 1 : to + 2], ""][0]
    return first == last or (first[:1].isdigit() and last[:1].isdigit())


def _and_how(ask: Asked, signs: Signs) -> str:
    """A second question after the change: "what was it at the beginning and how has it shifted"."""
    for place, run in enumerate(zip(signs.keys, signs.keys[1:], signs.keys[2:], strict=False)):
        if run[:2] == ("and", "how") and run[2] in ("has", "have", "did"):
            return next((key for key in signs.keys[place + 3 : place + 10] if kind_of(key) == "change"), "")
    return ""


def _then_and_now(ask: Asked, signs: Signs) -> str:
    """What was beside what is: "what did it look like at first and what does it look like now"."""
    joined = next((place for place, key in enumerate(signs.keys) if key in _BESIDE), 0)
    if not joined or not _PRESENTLY & set(signs.keys[joined:]):
        return ""
    held = Signs(signs.keys[:joined]).get("historical") or _HELD_THEN & set(signs.keys[:joined])
    return f"{signs.keys[joined]} now" if held else ""


_RULES: tuple[Callable[[Asked, Signs], str], ...] = (
    _said,
    _history,
    _changed,
    _changes,
    _all_of_them,
    _its_versions,
    _old_versions,
    _from_one_to_another,
    _and_how,
    _then_and_now,
)
