"""Changes of state: who moved, switched, started, left or stopped. What holds since is put down, not the day it happened."""

import re

from engram.capture.extraction.grammar import AGO, CHANGED, CLEAR, NAME, PLACE, TOOL, Rule, rule
from engram.capture.extraction.renderings import as_told_of, no_longer
from engram.capture.extraction.wording import swapped

_SUBJECT = (
    r"(?P<who>i|we|the team|our team|my team)(?:'ve| have| has)? (?:(?:just|recently|finally|now|also|already|all) )?"
)
_I = r"i(?:'ve| have)? (?:(?:just|recently|finally|now|also|already) )?"
_WHAT = r"(?!(?:the|this|that|these|those|it|another|option|my|your|main|master|develop|dev|staging|production|an? (?:different|new|better|simpler|other|second|branch|approach|while|for))\b)(?P<{0}>[\w@][\w@/.+#' -]{{0,40}}?)"
_FROM_TO = rf"(?:from {_WHAT.format('old')} )?(?:over )?to (?:using )?{_WHAT.format('new')}"
_NOT_A_HABIT = r"(?!(?:trying|waiting|debugging|looking|reading|running|thinking|counting|listening|working on|fixing|halfway|there|here|on)\b)"

_OWNED = r"(?:car|house|home|flat|apartment|dog|puppy|cat|kitten|baby(?! back)|son|daughter|degree|bike|motorcycle|phd|licen[cs]e|boat|piano|guitar)"


def _lives(found: re.Match[str]) -> str:
    return f"The user lives in {found['place']}"


def _works(found: re.Match[str]) -> str:
    role = f" as {swapped(found['role'])}" if found["role"] else ""
    return f"The user works at {found['place']}{role}"


def _switched(found: re.Match[str]) -> str:
    who = "The user" if found["who"].lower() == "i" else found["who"].capitalize()
    old = f" from {found['old']}" if found["old"] else ""
    return f"{who} switched{old} to {found['new']}"


def _replaced(found: re.Match[str]) -> str:
    who = "The user" if found["who"].lower() == "i" else found["who"].capitalize()
    return f"{who} replaced {found['old']} with {found['new']}"


def _changed(found: re.Match[str]) -> str:
    return f"The user {found['verb'].lower()} {swapped(found['rest'])}"


def changes() -> tuple[Rule, ...]:
    """The rules for what is no longer as it was."""
    return (
        rule(
            "change",
            rf"{_I}(?:moved|relocated)(?: back)?(?: (?:house|home))?(?: from {PLACE})?(?: back)? to (?P<place>{PLACE}){AGO}",
            "fact",
            CLEAR,
            _lives,
            despite=CHANGED,
        ),
        rule(
            "change",
            rf"{_I}(?:started(?: working| a (?:new )?job| (?:my|a) new (?:job|role|position))?|took a (?:new )?job|got a (?:new )?job|got hired) (?:at|with|for) (?P<place>{PLACE})"
            rf"(?: as (?P<role>(?:an?|the) [\w -]{{3,40}}?))?{AGO}",
            "fact",
            CLEAR,
            _works,
            despite=CHANGED,
        ),
        rule(
            "change",
            rf"{_I}joined (?!(?:the|a|an)\b)(?P<place>{NAME})(?: as (?P<role>(?:an?|the) [\w -]{{3,40}}?))?{AGO}",
            "fact",
            CLEAR,
            _works,
            despite=CHANGED,
        ),
        rule(
            "change",
            rf"{_SUBJECT}(?:switched|migrated|moved|converted|transitioned|changed)(?: everything)? {_FROM_TO}{AGO}(?<!branch)(?<!mode)",
            "fact",
            CLEAR,
            _switched,
            despite=CHANGED,
        ),
        rule(
            "change",
            rf"{_SUBJECT}(?:replaced|swapped(?: out)?|ditched|dropped) {_WHAT.format('old')} (?:with|for|in favou?r of) {_WHAT.format('new')}{AGO}",
            "fact",
            CLEAR,
            _replaced,
            despite=CHANGED,
        ),
        rule(
            "change",
            rf"{_I}(?P<verb>left|quit|resigned from) (?P<rest>{PLACE}|my (?:old |last |previous )?(?:job|position|role)(?: (?:at|as) [\w .'-]{{2,40}}?)?){AGO}",
            "fact",
            CLEAR,
            _changed,
            despite=CHANGED,
        ),
        rule(
            "change",
            rf"{_I}(?P<verb>quit|gave up|stopped|given up|started|began|took up) {_NOT_A_HABIT}"
            rf"(?P<rest>(?!(?:the|this|that|these|those|it|an?|with|by|at|off|out|over|from|again)\b)(?:(?:[a-z]+ing)\b[\w' -]{{0,60}}?|[\w-]+(?: [\w-]+)?)){AGO}",
            "fact",
            CLEAR,
            _stopped,
            despite=CHANGED,
        ),
        rule(
            "change",
            r"i no longer (?P<verb>(?!(?:see|get|understand|know|remember|think|care|believe|feel|hear|use|eat|drink|like|prefer|want|work|live|write|take)\b)[a-z]+(?<!ed)) (?P<rest>(?!(?:it|that|this|these|those|them|the (?:error|issue|problem))\b).{2,160})",
            "fact",
            CLEAR,
            no_longer,
        ),
        rule(
            "change",
            r"(?:i|(?P<we>we)) (?:don't|do not) (?P<verb>(?!(?:see|get|understand|know|remember|think|care|believe|feel|hear)\b)[a-z]+) (?P<rest>(?!(?:it|that|this|these|those|them)\b).{2,160}?) (?:any ?more|any longer)",
            "preference",
            CLEAR,
            _not_any_more,
        ),
        rule(
            "change",
            rf"{_I}(?:got|was|been) (?P<rest>(?:promoted|hired as|made|appointed|elected|diagnosed with|transferred to)\b.{{3,80}}?|married|divorced|engaged|laid off){AGO}",
            "fact",
            CLEAR,
            _was,
            despite=CHANGED,
        ),
        rule(
            "change",
            rf"{_I}(?P<verb>became) (?P<rest>(?:an? |the |vegan|vegetarian)[\w' -]{{0,60}}?){AGO}",
            "fact",
            CLEAR,
            _changed,
            despite=CHANGED,
        ),
        rule(
            "change",
            rf"{_I}(?P<verb>adopted|bought|got|sold|had|earned) (?P<rest>(?:an?|my|our|two|three) (?:[\w-]+ ){{0,2}}?{_OWNED}\b[\w' -]{{0,40}}?){AGO}",
            "fact",
            CLEAR,
            _changed,
            despite=CHANGED,
        ),
        rule(
            "change",
            rf"{_I}(?P<verb>retired|graduated|turned) (?P<rest>(?:from|with|as|in|\d{{2}}|vegan|vegetarian)\b[\w' -]{{0,60}}?){AGO}",
            "fact",
            CLEAR,
            _changed,
            despite=CHANGED,
        ),
        rule(
            "change",
            rf"(?:our|my|the) (?!{TOOL}\b)[\w' /-]{{2,40}}? (?:was|is|got|has been) (?:renamed|moved|migrated|switched|changed|rescheduled|postponed|pushed) (?:from [^,;]{{2,40}} )?(?:to|until) [^,;]{{2,60}}?{AGO}",
            "fact",
            CLEAR,
            as_told_of,
            despite=CHANGED,
        ),
        rule(
            "change",
            rf"i(?:'m| am) (?P<rest>no longer (?!(?:sure|able|getting|seeing|stuck|confused|going|needed|in the mood)\b)(?!(?:it|that|this)\b).{{2,80}}?){AGO}",
            "fact",
            CLEAR,
            lambda found: f"The user is {swapped(found['rest'])}",
        ),
        rule(
            "change",
            r"(?:our|my|the) (?:[\w'-]+ ){0,3}(?:deadline|launch|release|meeting|stand-?up|retro|demo|sync|appointment|flight|exam|wedding|go-live|cutover|call|office|team) (?:moved|has moved|changed|slipped|has changed|has slipped) (?:from [^,;]{2,40} )?to [^,;]{2,60}",
            "fact",
            CLEAR,
            as_told_of,
        ),
        rule(
            "change",
            r"we no longer (?!(?:see|get|know|think|need the)\b)[a-z]+ (?!(?:it|that|this|these|those|them)\b).{2,140}",
            "fact",
            CLEAR,
            as_told_of,
        ),
    )


def _stopped(found: re.Match[str]) -> str:
    verb = found["verb"].lower()
    return f"The user {'gave up' if verb == 'given up' else verb} {swapped(found['rest'])}"


def _not_any_more(found: re.Match[str]) -> str:
    if found["we"]:
        return f"We no longer {found['verb'].lower()} {swapped(found['rest'])}"
    return no_longer(found)


def _was(found: re.Match[str]) -> str:
    state = found["rest"].lower()
    return f"The user {'is' if state in ('married', 'divorced', 'engaged') else 'was'} {swapped(found['rest'])}"
