"""Preferences in other words than "prefer", and corrections of what was said or assumed."""

import re

from engram.capture.extraction.doubts import POINTING
from engram.capture.extraction.grammar import CLEAR, CONTEXT, EXPLICIT, I_AM, OFTEN, PLAIN, THING, WORDS, Rule, rule
from engram.capture.extraction.renderings import as_told_of, the_user, the_user_is, the_user_would
from engram.capture.extraction.wording import about_the_user, swapped, swapped_after

_GENERAL = r"(?!(?:it|that|this|these|those|them|him|her|you|your|the (?:first|second|last|other|former|latter|same)|option|one)\b)"
_ANSWERS = r"(?:answers?|replies|reply|explanations?|responses?|summar(?:y|ies)|code|examples?|e-?mails?|messages|updates|reports|names|functions|commits|tests|reviews|meetings)"
_CORRECTING = r"(?:(?:no|nope|wrong|actually|correction|not quite|sorry|that's (?:wrong|not right|incorrect|not true|not correct)|you(?:'re| are) (?:wrong|mistaken)|that is (?:wrong|incorrect|not right))[,:;.! —–-]+(?:it's |it is )?)"
_NAMED = r"(?:(?-i:[A-ZÀ-Þ])|\d|`|v\d)"


def _for_the_user(found: re.Match[str]) -> str:
    return f"{swapped(found['what'])} {found['verb'].lower()} for the user{swapped_after(found['rest'])}"


def _corrected(found: re.Match[str]) -> str:
    return f"It is {swapped(found['rest'])}"


def _restated(found: re.Match[str]) -> str:
    return about_the_user(found["rest"])


def _meant(found: re.Match[str]) -> str:
    return f"The user meant {swapped(found['rest'])}"


def _about_the_user(found: re.Match[str]) -> str:
    return f"{swapped(found['what'])} {found['verb'].lower()} the user{swapped_after(found['rest'])}"


def _my_favourite(found: re.Match[str]) -> str:
    return f"{swapped(found['what'])} {found['verb'].lower()} the user's {swapped(found['rest'])}"


def tastes() -> tuple[Rule, ...]:
    """The rules for what someone would rather have, and for what they put right."""
    return (
        rule(
            "preference",
            r"(?:i'd|i would) (?P<verb>rather|sooner|prefer to|prefer) (?P<rest>(?:not|have|get|use|work|read|keep|stay|see|receive|be|do|you) (?!(?:it|that|this|these|those|them)\b).{3,160}|\w+ (?=.*\b(?:than|over|instead of)\b).{3,160})",
            "preference",
            CLEAR,
            the_user_would,
        ),
        rule(
            "preference",
            rf"(?:i'd|i would) (?P<verb>always prefer|much rather|much prefer|prefer) (?P<rest>{_GENERAL}.{{3,160}})",
            "preference",
            CLEAR,
            the_user_would,
        ),
        rule(
            "preference",
            rf"i {OFTEN}(?P<verb>hate|dislike|don't like|do not like|can't stand|cannot stand|like|appreciate|don't want) (?P<rest>it when (?!(?:this|that|it|the (?:build|tests?|server))\b).{{3,160}})",
            "preference",
            CLEAR,
            the_user,
        ),
        rule(
            "preference",
            rf"{CONTEXT}i {OFTEN}(?P<verb>can't bear|despise|loathe|detest|adore|appreciate|value|swear by|avoid|stick to|stick with|tend to|lean towards?|insist on|refuse to|try to avoid|care (?:a lot |deeply )?about|struggle with|"
            rf"can't eat|cannot eat|can't drink|can't tolerate|don't do|don't use|do not use|don't eat|don't drink|don't want|don't trust|don't believe in|don't watch|don't drive|don't work|don't take|don't read|do not eat|do not drink|like to|love to) (?!to\b){THING}",
            "preference",
            CLEAR,
            the_user,
        ),
        rule(
            "preference",
            rf"{I_AM}(?P<neg>not )?(?P<rest>(?:much of )?(?:an? )?(?:(?:big|huge|great|massive|lifelong) )?(?:fan|believer|lover|enthusiast|sucker) (?:of|in|for) {_GENERAL}.{{2,120}})",
            "preference",
            CLEAR,
            the_user_is,
        ),
        rule(
            "preference",
            rf"{I_AM}(?P<neg>not )?(?P<rest>(?:(?:really|very|super|totally|mostly) )?(?:into|fond of|partial to|keen on|used to|comfortable with|uncomfortable with|wary of|picky about|strict about|bad at|terrible with|good at|scared of|afraid of|obsessed with|passionate about|more of an? [\w -]+ person|an? (?:morning|night|cat|dog|tea|coffee|visual|early) \w+) ?(?!(?:it|that|this|these|those|them|the)\b).{{0,120}})",
            "preference",
            PLAIN,
            the_user_is,
        ),
        rule(
            "preference",
            rf"(?=.* for me\b)(?P<what>{_GENERAL}(?:[\w'/&+.#-]+ ){{0,6}}?[\w'-]+) (?P<verb>works? (?:best|better|well|great|fine)|(?:is|are) (?:best|better|easier|ideal|easiest|too (?:long|early|late|loud|spicy|noisy|much))|doesn't work|don't work|does not work|do not work)(?: well)? for me(?P<rest>.{{0,60}})",
            "preference",
            CLEAR,
            _for_the_user,
        ),
        rule(
            "preference",
            rf"(?=.* me\b)(?P<what>{_GENERAL}(?!(?:the|your|what)\b)(?:[\w'/&+.#-]+ ){{0,5}}?[\w'-]+) (?P<verb>drives?|annoys?|bothers?|distracts?|bores?|gives?|makes?|stress(?:es)?|confuses?|helps?) me(?P<rest>(?: (?:crazy|nuts|mad|insane|headaches?|migraines?|a headache|anxious|sick|sleepy|nervous|focus|think|concentrate|up the wall|out)\b.{{0,60}})?)",
            "preference",
            PLAIN,
            _about_the_user,
        ),
        rule(
            "preference",
            rf"(?=.* my )(?P<what>{_GENERAL}(?:[\w'/&+.#-]+ ){{0,4}}?[\w'-]+) (?P<verb>is|are) my (?P<rest>(?:(?:all-time |absolute )?favou?rite|go-to|preferred|least favou?rite|pet peeve|default)\b.{{0,80}})",
            "preference",
            CLEAR,
            _my_favourite,
        ),
        rule(
            "preference",
            r"i (?:do my best work|work best|focus best|think best|concentrate best|sleep best|code best|learn best|am most productive) .{2,120}",
            "preference",
            CLEAR,
            as_told_of,
        ),
        rule(
            "preference",
            r"my (?:strong |personal |usual )?(?:preference|pet peeve|rule of thumb|motto|routine|style|diet|dietary restriction)s? (?:is|are) (?!(?:not|broken|unclear)\b).{3,160}",
            "preference",
            CLEAR,
            as_told_of,
        ),
        rule(
            "preference",
            rf"i (?:find|consider) (?!(?:the|this|that|it|these|those|your|myself|out)\b){WORDS}{{1,6}}?(?:annoying|distracting|exhausting|confusing|boring|easier(?: to read)?|harder(?: to read)?|hard to read|unreadable|relaxing|helpful|useful|useless|overrated|ugly|clearer|noisy|tedious|stressful)(?: to \w+)?",
            "preference",
            CLEAR,
            as_told_of,
        ),
        rule(
            "preference",
            rf"i (?P<adv>always |never |only )(?P<verb>want|need|expect|like) {THING}",
            "preference",
            CLEAR,
            the_user,
        ),
        rule(
            "preference",
            rf"i (?:(?:always|only|generally|usually) )?(?:want|need|like|expect|prefer) (?:(?:my|your|all|the) )?(?:(?:[\w-]+,? )?[\w-]+ ){_ANSWERS}(?: (?:to be|in|with|without|only|that|and|over|kept|as)\b.{{0,120}})?",
            "preference",
            PLAIN,
            as_told_of,
        ),
        # what is put right
        rule(
            "correction",
            rf"{_CORRECTING}?(?:it's|it is|its) (?P<rest>{_NAMED}[^,;]{{0,60}},? (?:and )?not {_GENERAL}[^,;]{{1,60}})",
            "correction",
            CLEAR,
            _corrected,
            despite=frozenset((POINTING,)),
        ),
        rule(
            "correction",
            rf"{_CORRECTING}(?P<rest>(?:(?:the|our|my) [\w' -]{{2,40}}?|{_NAMED}[\w'-]+(?: [\w'-]+){{0,3}}?) (?:is|are|was|runs on|uses|lives in|lives at|starts|ends|listens on|owns|works|leads|belongs to|moved to|has|have) (?=.*(?:\d|,? not |`|(?-i:[A-Z]))).{{2,120}})",
            "correction",
            EXPLICIT,
            _restated,
        ),
        rule(
            "correction",
            rf"{_CORRECTING}(?P<rest>(?:we|we've) (?:use|deploy|run|are|have|do|don't|never|always|switched|moved)\b(?! (?:it|that|this)\b).{{3,120}})",
            "correction",
            EXPLICIT,
            _restated,
        ),
        rule(
            "correction",
            rf"{_CORRECTING}(?P<rest>(?!i\b)(?:the|our|my|{_NAMED}[\w'-]*) [^;]{{3,80}}?,? not {_GENERAL}[^,;]{{2,60}})",
            "correction",
            EXPLICIT,
            _restated,
        ),
        rule(
            "preference",
            r"i (?P<adv>always |usually |never |rarely |seldom |normally |typically |often |mostly |generally )(?P<verb>(?!(?:said|thought|knew|had|been|was|got|saw|seen|heard|did|know|understand|remember|get|see|gets|think|wonder|wanted|happy|the|a)\b)(?!\w+ed\b)[a-z]+) (?P<rest>(?!(?:it|that|this|these|those|them|you|the (?:same|error))\b).{2,140})",
            "preference",
            PLAIN,
            the_user,
        ),
        rule(
            "correction",
            rf"i (?:said|meant|mean) (?P<rest>{_GENERAL}[^,;]{{2,60}},? not {_GENERAL}[^,;]{{2,60}})",
            "correction",
            CLEAR,
            _meant,
        ),
        rule(
            "correction",
            r"(?:please )?(?P<rest>(?:(?:stop|quit) (?!(?:trying|waiting|crying|worrying|running|talking|looking)\b)\w+ing|avoid|no more|enough with(?: the)?) (?!(?:it|that|this|these|those|the|them|here|now|running|at|there|crying|worrying|trying|waiting)\b)(?:[\w'/.-]+ ?){1,8})(?<! server)(?<! build)",
            "correction",
            PLAIN,
            _stop,
        ),
    )


def _stop(found: re.Match[str]) -> str:
    return about_the_user(found["rest"])
