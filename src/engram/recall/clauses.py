"""The clause of a text that asks: what stands before it, the polite beginning it has, and its own words."""

import re
from dataclasses import dataclass

from engram.text.time_words import Word
from engram.text.verbs import SUBJECTS
from engram.text.word_classes import word_class

__all__ = ["DID", "HAVE", "IS", "MODAL", "WAS", "WH", "Clause", "asking_clause", "whole_text"]

WH = word_class("asking", "wh")
DID = frozenset(("did", "didn't", "didnt", "what'd", "how'd", "who'd", "where'd", "why'd", "when'd"))
WAS = frozenset(("was", "were", "wasn't", "weren't", "wasnt", "werent"))
HAVE = word_class("asking", "have")
IS = word_class("asking", "is")
MODAL = word_class("asking", "modal")
_OPENERS = WH | DID | WAS | HAVE | IS | MODAL | frozenset(("had", "hadn't", "any"))
_DETERMINERS = word_class("asking", "determiner")
_JOINERS = word_class("asking", "joiner")
_FRONTED = word_class("asking", "fronted")
_REQUEST_WORDS = 7
_SAYS_HOW = word_class("asking", "tracing") | {"compare"}
"""Requests that say themselves what is asked for."""
_REQUESTING = word_class("asking", "requesting")

_REQUESTS = (
    "tell|remind|show|give|list|find|help|look up|summarize|summarise|recap|explain|describe|check|say|repeat|pull up|bring up|walk|talk|take|run"
    "|remember|recall|let|outline|sketch|set out|lay out|spell out|confirm|clarify|detail"
)
_PLAIN_REQUESTS = (
    "list|show|find|recap|summarize|summarise|recall|remember|explain|describe|look up|pull up|check|outline|sketch|set out|lay out|spell out"
    "|confirm|clarify|detail"
)
# What politeness and doubt put before a question. Matched against the first words only, each step one fixed alternative.
_LEAD = re.compile(
    r"(?:(?:please|kindly|hey|hi|hello|ok|okay|oh|so|and|but|well|also|actually|quick question|just curious|um|now|then|sorry|thanks|just) )"
    r"|(?:(?:could|can|would|will) you (?:please |kindly |quickly |just |maybe |possibly )?"
    rf"(?:{_REQUESTS})"
    r"(?: me| us)?(?: know| with| through| out| again| remember| recall)?(?: of| about| if| whether)? )"
    r"|(?:(?:do|can|did) you (?:still |even |happen to |by any chance )?(?:remember|recall|know|have any idea)(?: me telling you| if| whether| about)? )"
    r"|(?:(?:please )?(?:tell|remind|show|give) (?:me|us)(?: again)?(?: of| about| if| whether)? )"
    r"|(?:(?:walk|talk|take|run) (?:me|us) through )"
    rf"|(?:(?:{_PLAIN_REQUESTS})(?: for me)?(?: if| whether)? )"
    r"|(?:i (?:want|need|would like|really want|would love) to (?:know|understand|see|remember|find out)(?: if| whether)? )"
    r"|(?:i'd (?:like|love) to (?:know|understand|see|remember|find out|hear)(?: if| whether)? )"
    r"|(?:i (?:was|am|have been) (?:just )?(?:wondering|curious)(?: about| if| whether)? )"
    r"|(?:i'm (?:just )?(?:wondering|curious|trying to remember|trying to recall|not sure)(?: about| if| whether)? )"
    r"|(?:i (?:just )?(?:wonder|forgot|forget|can't remember|don't remember|can't recall|don't recall|don't know|cannot remember)(?: if| whether)? )"
    r"|(?:(?:let me know|refresh my memory|any idea|any chance you know|what do you know about|help me remember)(?: on| if| whether| about)? )"
)


@dataclass(frozen=True, slots=True)
class Clause:
    """The clause of a text that asks."""

    topic: tuple[str, ...]
    """What stands before it: "the gate code, …", "it had another name. …"."""
    lead: str
    """The beginning that was left out."""
    keys: list[str]
    """Its words, those that own something with their ending: "Ella's predicted grades" tells of no predicting."""


def asking_clause(found: list[Word]) -> Clause:
    """The last clause that opens like a question, to the end; else all of it."""
    found = _without_tag(found)
    start, opens = 0, True
    for place, word in enumerate(found):
        if opens and _opens(found, place):
            start = place
        opens = word.closed
    return _clause(found, start)


def whole_text(found: list[Word]) -> Clause:
    """All of the words as one clause."""
    return _clause(_without_tag(found), 0)


def _clause(found: list[Word], start: int) -> Clause:
    keys = [f"{word.key}'s" if word.owner else word.key for word in found[start:]]
    lead, keys = _without_lead(keys)
    return Clause(tuple(word.key for word in found[:start]), lead, keys)


def _without_tag(found: list[Word]) -> list[Word]:
    """The words without the echo behind them: "…, didn't we?"."""
    first, second = [word.key for word in (*found, *found)[-2:]] or ["", ""]
    tagged = len(found) > 2 and first.endswith("n't") and (second in SUBJECTS or second == "there")
    return found[:-2] if tagged else found


def _opens(found: list[Word], place: int) -> bool:
    keys = [word.key for word in found[place : place + 16]]
    lead, rest = _without_lead(keys)
    if place and not lead and _LEAD.fullmatch(" ".join(keys) + " "):
        return False  # "…, do you remember?"
    while rest and rest[0] in _JOINERS:
        rest = rest[1:]
    return bool(rest) and (rest[0] in _OPENERS or (len(rest) > 1 and rest[0] in _FRONTED and rest[1] in WH))


def _without_lead(keys: list[str]) -> tuple[str, list[str]]:
    head, taken = " ".join(keys[:24]) + " ", 0
    while match := _LEAD.match(head, taken):
        taken = match.end()
    count = head[:taken].count(" ")
    count += _request(keys[count:])
    return ("", keys) if count >= len(keys) else (" ".join(keys[:count]), keys[count:])


def _request(keys: list[str]) -> int:
    """How many words ask for an answer before the question itself: "dig up | who complained", "could you chart | how it grew"."""
    polite = keys[:1] != [] and keys[0] in ("can", "could", "would", "will") and keys[1:2] == ["you"]
    if not keys or (keys[0] in _OPENERS and not polite) or keys[0] in _SAYS_HOW:
        return 0
    place = next((at for at in range(1, min(_REQUEST_WORDS, len(keys) - 1)) if keys[at] in WH), 0)
    alone = place == 1 and keys[1] in ("what", "how") and keys[0] not in _DETERMINERS
    asks = place > 0 and (polite or alone or (place > 1 and keys[place - 1] in _REQUESTING))
    return place if asks and SUBJECTS.isdisjoint(keys[2 if polite else 0 : place]) else 0
