"""Whether a question asks for the values a fact had one after another: its history, its versions, all of them, in their order."""

from collections.abc import Callable
from itertools import pairwise

from engram.recall.asked import Asked
from engram.recall.changing import ACTORS
from engram.recall.signs import Signs
from engram.text.stems import stem
from engram.text.verbs import is_past, kind_of
from engram.text.word_classes import word_class

__all__ = ["one_after_another"]

_TRACING = word_class("asking", "tracing")
_VERSIONS = word_class("asking", "version_noun")
_VALUES = word_class("asking", "value_noun")
_ROWS = word_class("asking", "row")
_DEVELOPMENTS = word_class("asking", "development") | _ROWS
_COURSES = word_class("asking", "course")
_FORMER = word_class("asking", "former")
_LATEST = word_class("asking", "latest")
_FIRST = word_class("asking", "first_end")
_LAST = word_class("asking", "last_end")
_UNDERGOING = frozenset(("through", "undergone", "undergo", "seen", "see"))
_TAKING = frozenset(("take", "taken", "took", "follow", "followed", "run", "go", "gone"))
_REPLACING = frozenset(map(stem, ("replace", "follow", "succeed", "supersede")))
_EACH_OTHER = (("each", "other"), ("one", "another"))
_IN_ORDER = (("in", "order"), ("in", "sequence"), ("in", "succession"))
_FROM_TO = 6


def one_after_another(ask: Asked, signs: Signs) -> str:
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


def _all_of_them(ask: Asked, signs: Signs) -> str:
    """Every state there was: "all the addresses I've had", "where have I lived"."""
    perfect = {"i've", "we've", "you've", "have", "has"} & set(ask.keys)
    had = perfect and any(kind_of(key) in ("state", "habit") and is_past(key) for key in ask.keys)
    held = ask.tense in ("perfect", "past") and ask.kind in ("state", "habit")
    were_all = ask.keys[:3] in (("what", "were", "all"), ("who", "were", "all"))
    held = held or (were_all and not signs.get("record") and not signs.get("had"))
    whole = signs.get("whole")
    if whole and (signs.get("historical") or held or had or _versions(ask, whole)):
        return whole
    several = ask.keys[:1] == ("the",) and ask.keys[1:2] != () and ask.keys[1].endswith("s")
    return (
        ask.verb if several and ask.tense == "perfect" and ask.verb.endswith(" had") else ""
    )  # "the owners this car has had"


def _versions(ask: Asked, whole: str) -> bool:
    """Every value there was, by name: "every amendment to the lease"; but "all the changes you made" were acts."""
    if whole not in ask.keys:
        return False
    behind = ask.keys[ask.keys.index(whole) + 1 :][:3]
    valued = not _VALUES.isdisjoint(behind) or not {"value", "values"}.isdisjoint(behind)
    if ask.tense == "perfect" and ask.kind != "say" and (valued or not _UNDERGOING.isdisjoint(ask.verb.split())):
        return True  # "every price we've ever listed it at", "every edit it has undergone"
    return not ask.told and ask.kind != "act" and not _VERSIONS.isdisjoint(behind)


def _its_versions(ask: Asked, signs: Signs) -> str:
    """How many or which ones it had: "how many revisions were there", "what stages has the offer gone through"."""
    keys = ask.keys
    counted = keys[:2] in (("how", "many"), ("through", "which"), ("through", "what"))
    noun = (keys[2:3] if counted else keys[1:2] if keys[:1] in (("what",), ("which",)) else ()) or ("",)
    if noun[0] in _VALUES and ask.tense == "perfect" and ask.verb.endswith(" held"):
        return noun[0]  # "which jobs have I held"
    if noun[0] not in _VERSIONS or not noun[0].endswith("s") or not ACTORS.isdisjoint(keys):
        return ""
    passive = "been" in keys or ask.verb.startswith(("was ", "were "))
    made = ask.verb.endswith(" made") and passive and "by" not in keys  # "what changes have been made to it"
    held = made or ask.kind in ("state", "be") or not _UNDERGOING.isdisjoint(keys)
    return noun[0] if held and ask.tense in ("past", "perfect") else ""


def _old_versions(ask: Asked, signs: Signs) -> str:
    """The former values together: "show me the previous versions of the policy"."""
    former = signs.get("historical")
    behind = ask.keys.index(former) + 1 if former in ask.keys else len(ask.keys)
    named = ask.keys[behind] if behind < len(ask.keys) else ""
    return f"{former} {named}" if named in _VERSIONS and named.endswith("s") else ""


def _from_first_to_last(ask: Asked, signs: Signs) -> str:
    """All of them, by their two ends: "which cards have I carried, from the very first to the present one"."""
    for place, key in enumerate(signs.keys):
        ends = signs.keys[place + 1 : place + _FROM_TO + 4] if key == "from" else []
        to = ends.index("to") if "to" in ends[1:_FROM_TO] else 0
        if to and not _FIRST.isdisjoint(ends[:to]) and not _LAST.isdisjoint(ends[to : to + 4]):
            return "from first to last"
    return ""


def _past_and_present(ask: Asked, signs: Signs) -> str:
    """Old ones and the one that holds, in one breath: "every past and present wording", "old to new"."""
    for first, joint, last in _threes(signs):
        pair = {first, last}
        if joint in ("and", "or", "to") and not _LATEST.isdisjoint(pair) and not _FORMER.isdisjoint(pair):
            return f"{first} {joint} {last}"
    return ""


def _one_by_one(ask: Asked, signs: Signs) -> str:
    """Each of a row: "draft after draft", "year by year"."""
    runs = _threes(signs)
    return next((f"{one} {joint} {one}" for one, joint, other in runs if one == other and joint in ("after", "by")), "")


def _replaced_each_other(ask: Asked, signs: Signs) -> str:
    """Things that came one for the other: "which systems have replaced one another"."""
    return next((" ".join(run) for run in _threes(signs) if stem(run[0]) in _REPLACING and run[1:] in _EACH_OTHER), "")


def _in_order(ask: Asked, signs: Signs) -> str:
    """As they came: "who has held the keys, in order", "in what order were they introduced", "from whom to whom did it pass"."""
    if ask.tense == "present" or not ask.keys:
        return ""
    what_order = ask.keys[:3] in (("in", "what", "order"), ("in", "which", "order")) and ACTORS.isdisjoint(ask.keys)
    to = ask.keys.index("to") + 1 if ask.keys[0] == "from" and "to" in ask.keys else 0
    from_to = to > 0 and ask.keys[to : to + 1] == ask.keys[1:2]
    return "in order" if what_order or from_to or tuple(signs.keys[-2:]) in _IN_ORDER else ""


def _passed_through(ask: Asked, signs: Signs) -> str:
    """What it has gone through: "through which hands has the chair passed", "what stages has it been through"."""
    asked_for = "through" in ask.keys and not {"which", "what", "many"}.isdisjoint(ask.keys[:2])
    went = ACTORS.isdisjoint(ask.keys) or ask.keys[:2] == ("how", "many")  # "how many landlords have we gone through"
    return "through" if asked_for and ask.tense == "perfect" and went else ""


def _course_taken(ask: Asked, signs: Signs) -> str:
    """The way a value took, by name: "what path did the rating take"."""
    named = [key for key in ask.keys[1:4] if key in _COURSES] if ask.keys[:1] in (("what",), ("which",)) else []
    went = ask.tense in ("past", "perfect") and ask.verb.split()[-1] in _TAKING
    return named[0] if named and went and ACTORS.isdisjoint(ask.keys) else ""


def _course_named(ask: Asked, signs: Signs) -> str:
    """The way itself, as a noun: "the development of our headcount", "what succession of line-ups did they have"."""
    named = [first for first, joint in pairwise(ask.keys) if first in _DEVELOPMENTS and joint in ("of", "in")]
    stated = [noun for noun in named if not ask.tense or (noun in _ROWS and ask.kind not in ("act", "say"))]
    return stated[0] if stated else ""


def _threes(signs: Signs) -> list[tuple[str, str, str]]:
    return list(zip(signs.keys, signs.keys[1:], signs.keys[2:], strict=False))


_RULES: tuple[Callable[[Asked, Signs], str], ...] = (
    _said,
    _history,
    _all_of_them,
    _its_versions,
    _old_versions,
    _from_first_to_last,
    _past_and_present,
    _one_by_one,
    _replaced_each_other,
    _in_order,
    _passed_through,
    _course_taken,
    _course_named,
)
