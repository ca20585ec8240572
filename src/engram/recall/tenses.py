"""What the verb of a question asks for: a state that held, something said or done, or what goes on."""

from engram.recall.asked import Asked, ends_a_noun
from engram.recall.signs import Signs
from engram.text.time_phrases import TimePhrase
from engram.text.time_words import words
from engram.text.verbs import kind_of
from engram.text.word_classes import word_class

__all__ = ["Verdict", "by_verb", "is_short", "of_the_old_one", "recorded"]

Verdict = tuple[str, str] | None
"""An intent and the words that decided it."""

_POSTS = word_class("asking", "post")
_PHASES = frozenset(("a", "an", "young", "little", "small", "single", "married", "pregnant", "still"))
_UPHEAVALS = word_class("asking", "upheaval")
_FRONTED = word_class("asking", "fronted")
_UNTIL = frozenset(("until", "till", "til", "up"))
_HABIT_SECONDS = 8 * 86400.0
_PLACES = frozenset(("at", "in", "on", "there", "with", "i", "we", "you", "he", "she", "they"))
_DETERMINERS = word_class("asking", "determiner")
_HABITUALLY = word_class("asking", "habitually")
_HAVE = word_class("asking", "have")
_WH = word_class("asking", "wh")
_PERSONS = word_class("asking", "person")
_CAME = frozenset(("to", "here", "by", "round", "around", "over", "back", "out"))
_ATTENDANCE = word_class("asking", "attendance")
_CONDITIONS = word_class("asking", "condition")
_SENT = word_class("asking", "sent")
_RECORDS = word_class("questionsigns", "record")


def by_verb(ask: Asked, signs: Signs, phrase: TimePhrase | None) -> Verdict:
    """The intent that the verb's tense and kind show, and the words; None where they show nothing but the present."""
    if ask.tense == "past":
        return _past(ask, signs, phrase)
    if ask.tense == "perfect":
        return _perfect(ask, signs, phrase)
    if ask.tense == "present" and ask.told:
        return _told(ask, phrase)
    return None


def _perfect(ask: Asked, signs: Signs, phrase: TimePhrase | None) -> Verdict:
    """What was done is an event. A state asked for at any time is past, one without a time goes on ("how long have I lived")."""
    goes_on = ask.kind in ("state", "habit") or ask.verb.endswith("ing")
    if ask.keys[:2] == ("how", "long") and goes_on:
        return None
    if ask.kind not in ("state", "habit"):
        return "event", ask.verb
    fronted = ask.keys[0] in _DETERMINERS and ask.keys[1] in _WH  # "in which cities have I lived"
    opener, been = ask.keys[int(fronted)], ask.verb.endswith(" been")
    if been and (opener == "where" or "there" in ask.keys or _came_by(ask)):
        return "event", ask.verb
    if "before" in ask.keys[-1:]:
        return "historical", "before"
    if ask.verb.endswith("ing") and {"ever", "always", "never"}.isdisjoint(ask.keys):
        return None  # "which editor have I been using": it goes on
    if opener in _HAVE and {"ever", "always", "never"} & set(ask.keys):
        return ("event" if ask.verb.endswith(" had") and signs.get("had") else "historical"), ask.verb
    if been and _is_there_since(ask, phrase):
        return None
    if opener in (("who", "which", "what") if been else ("where", "which", "what")):
        return "lineage", ask.verb  # "where have I lived": all of them, one after another
    if been and opener == "how":
        return "lineage", ask.verb  # "how has my weight been"
    if not ask.verb.endswith(" had") or (opener == "who" and not signs.get("had")):
        return None
    if phrase is not None or signs.get("had"):
        return "event", ask.verb
    return ("lineage", ask.verb) if ask.keys[:2] == ("how", "many") else None


def _came_by(ask: Asked) -> bool:
    """Whether having been somewhere is having come there: "has the courier been here", "who has been in touch"."""
    behind = ask.keys[ask.keys.index("been") + 1 :]
    return behind[:1] != () and (
        behind[0] in _CAME or behind[0] in _ATTENDANCE or behind[:2] in (("in", "touch"), ("in", "contact"))
    )


def _is_there_since(ask: Asked, phrase: TimePhrase | None) -> bool:
    """Whether the one place somebody has been in up to now is asked for: "which plan has she been on since May"."""
    since = phrase is not None and phrase.window is not None and phrase.window.until is None
    return since and ask.keys[-1] in _PLACES and not ask.keys[1].endswith("s")


def _of_a_thing(ask: Asked) -> bool:
    """Whether it is a thing's to have, and so for long: "how many desks did the office have on May 5"."""
    did = ask.keys.index("did") if "did" in ask.keys else len(ask.keys)
    subject = ask.keys[did + 1 : did + 4]
    return subject[:1] in (("the",), ("our",)) and _PERSONS.isdisjoint(subject)


def _past(ask: Asked, signs: Signs, phrase: TimePhrase | None) -> Verdict:
    if habit := _HABITUALLY & set(ask.keys):
        return "historical", min(habit)
    as_of = phrase is not None and phrase.text.lower().startswith("as of")
    if (
        phrase is not None
        and as_of
        and (ask.verb.startswith(("was", "were")) or ask.kind not in ("act", "say", "change"))
    ):
        return "historical", phrase.text
    if ask.kind == "act" and any(rule(ask, phrase) for rule in (_until_then, _until_the_change, _in_that_phase)):
        return "historical", ask.verb
    if ask.kind in ("act", "say", "change"):
        return ("historical" if _went_on(ask, phrase) else "event"), ask.verb
    if "before" in ask.keys[-1:]:
        return "historical", "before"
    if "born" in ask.verb or (ask.kind == "be" and phrase is None and signs.get("again")):
        return None
    if ask.kind == "be":
        return _was(ask, signs, phrase)
    if "have" in ask.verb.split() or "had" in ask.verb.split():
        brief = signs.get("had") or "for" in ask.keys[-3:] or ask.keys[0] == "when"
        brief = brief or (is_short(phrase) and not _of_a_thing(ask))
        return ("event" if brief else "historical"), ask.verb
    if ask.kind == "habit" and is_short(phrase):
        return "event", ask.verb
    if "mean" in ask.verb or (phrase is None and ask.verb.endswith(("think", "feel"))):
        return "event", ask.verb  # what somebody made of something; of a time given, what they held of it
    return "historical", ask.verb


def _until_then(ask: Asked, phrase: TimePhrase | None) -> bool:
    """What was done until some time was done all the while before: "up to last month, who signed off on expenses"."""
    until = phrase is not None and words(phrase.text)[0].key in _UNTIL
    return until and "didn't" not in ask.keys and not {"do", "done", "doing"} & set(ask.verb.split())


def _until_the_change(ask: Asked, phrase: TimePhrase | None) -> bool:
    """What went with something until all was changed: "under which brand did we trade before the merger"."""
    told = [word.key for word in words(phrase.anchor)] if phrase is not None and phrase.relation == "before" else []
    if not told or (told[-1] not in _UPHEAVALS and told[1:2] != ["had"]):
        return False
    first, second, third = [*ask.keys[:3], "", "", ""][:3]
    return (first in _FRONTED and second in _WH) or (
        first in ("where", "how") and not (second == "did" and third == "you")
    )


def _in_that_phase(ask: Asked, phrase: TimePhrase | None) -> bool:
    """What was done in a phase of life was done all through it: "how did I get around when I was a student"."""
    if phrase is None or phrase.relation != "during":
        return False
    told = [word.key for word in words(phrase.anchor)]
    phase = len(told) > 2 and told[1] in ("was", "were") and told[2] in _PHASES
    return phase and ask.keys[0] in ("how", "where", "which")


def _went_on(ask: Asked, phrase: TimePhrase | None) -> bool:
    """What was being done all through a long time, or until something, was so then: "what was I taking in March"."""
    lasting = ask.verb.startswith(("was ", "were ")) and ask.verb.endswith("ing") and ask.keys[0] != "why"
    long = phrase is not None and phrase.window is not None and not is_short(phrase)
    if lasting and phrase is not None and phrase.relation == "before":
        return ask.kind == "act" and ask.keys[0] in _WH and ask.keys[:2] not in (("what", "was"), ("what", "were"))
    return lasting and long and "on" not in ask.keys[-1:] and "working on" not in " ".join(ask.keys)


def is_short(phrase: TimePhrase | None) -> bool:
    """Whether a time is given that is too short for a habit to be what is asked after."""
    window = phrase.window if phrase is not None else None
    if window is None or window.since is None or window.until is None:
        return False
    return window.until.timestamp() - window.since.timestamp() <= _HABIT_SECONDS


def _was(ask: Asked, signs: Signs, phrase: TimePhrase | None) -> Verdict:
    """What something was: a state, unless something done tells which one, or the ledger holds it."""
    acts = _acts_told(ask)
    if acts:
        return "event", acts[0]
    if phrase is not None and phrase.relation == "before":
        return "historical", phrase.text
    first, second, third = [*ask.keys[:3], "", "", ""][:3]
    lasting = not _CONDITIONS.isdisjoint(ask.keys) and not is_short(phrase)  # "how was her health this summer"
    went = (first, second) in (("how", "was"), ("how", "were")) and not lasting
    there = first in ("where", "who") and third in _PLACES and not _in_office(ask, phrase)
    there = there or (first == "who" and third in _ATTENDANCE)
    plain = " " not in ask.verb  # "how was it kept" asks for a state, "how was it" for what came of it
    lasted = first == "how" and second == "long" and is_short(phrase)  # "how long were we stuck on Sunday"
    if first == "when" or lasted or (plain and (went or there)):
        return "event", f"{first} {ask.verb}"
    if first in ("was", "were") and phrase is not None and (is_short(phrase) or ask.keys[1:3] == ("there", "any")):
        return "event", f"{first} {phrase.text}"
    like = ask.keys[-1] == "like" and not is_short(phrase)  # "what was the mood like in February"
    record = "" if like else recorded(ask) or _sent(ask) or (_had_then(ask, signs) if is_short(phrase) else "")
    if plain and record:
        return "event", f"{ask.verb} {record}"
    return "historical", ask.verb


def of_the_old_one(ask: Asked) -> bool:
    """Whether a thing that is no more is what did it: "did the old policy cover theft", but not "what did the previous tenant leave"."""
    did = ask.keys.index("did") if "did" in ask.keys else len(ask.keys)
    determiner, adjective, noun = [*ask.keys[did + 1 : did + 4], "", "", ""][:3]
    old = determiner in _DETERMINERS and Signs([determiner, adjective, noun]).get("historical") == adjective != ""
    return old and ask.kind == "act" and noun not in _PERSONS


def recorded(ask: Asked) -> str:
    """The thing of the ledger that is asked for; in "the test coverage target" the test only tells which target."""
    followed = zip(ask.keys, (*ask.keys[1:], ""), strict=True)
    return next((noun for noun, after in followed if _is_record(noun, after)), "")


def _sent(ask: Asked) -> str:
    """What somebody wrote, where its content is asked for: "what was in the email from HR", "what was the letter about"."""
    if ask.keys[0] != "what" or (ask.keys[2:3] not in (("in",), ("on",)) and ask.keys[-1] != "about"):
        return ""
    followed = zip(ask.keys, (*ask.keys[1:], ""), strict=True)
    return next((noun for noun, after in followed if noun in _SENT and ends_a_noun(after)), "")


def _is_record(noun: str, after: str) -> bool:
    return (noun in _RECORDS and ends_a_noun(after)) or f"{noun}_{after}" in _RECORDS


def _had_then(ask: Asked, signs: Signs) -> str:
    """What was had in an hour, unless something of it is asked for: "what was for dinner", not "what was the meeting time"."""
    noun = signs.get("had")
    after = ask.keys[ask.keys.index(noun) + 1 :] if noun in ask.keys else ()
    return noun if not after or after[0] in _DETERMINERS else ""


def _in_office(ask: Asked, phrase: TimePhrase | None) -> bool:
    """Whether somebody's post is asked for: "who was in charge", "who was on call in 2023"."""
    if ask.keys[0] != "who" or ask.keys[2] not in ("in", "on"):
        return False
    return not _POSTS.isdisjoint(ask.keys[3:6]) or (
        phrase is not None and phrase.window is not None and not is_short(phrase)
    )


def _acts_told(ask: Asked) -> list[str]:
    """What is told of as done; "did" only where no other verb follows it."""
    carriers = {"was", "were", "had"} if ask.keys[-1:] == ("did",) else {"was", "were", "had", "did"}
    return [verb for verb in ask.told if kind_of(verb) not in ("state", "habit") and verb not in carriers]


def _told(ask: Asked, phrase: TimePhrase | None) -> Verdict:
    """A present question after something said or done: the ledger's, where it is the last one or a time is given."""
    acts = _acts_told(ask)
    if not acts:
        return None
    if {"last", "latest", "first", "recent"} & set(ask.keys):
        return "event", acts[0]
    return ("event", acts[0]) if phrase is not None and phrase.window is not None else None
