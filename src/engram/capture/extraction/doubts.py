"""Why a sentence is not taken at its word: a question, a guess, a joke, for this moment only, or about who knows what."""

import re

from engram.capture.extraction.clauses import HIDDEN
from engram.text.hedges import hedge_pattern

_FLAGS = re.IGNORECASE

QUOTED = "it quotes somebody"
QUESTION = "it is a question"
GUESS = "it is a guess"
IRONY = "it may not be meant"
OVER = "it is over"
HALF_MEANT = "it is only half meant"
PASSING = "it is for the moment"
POINTING = "it does not say what it means"

_QUESTION = re.compile(
    r"^\W*(?:(?:so|and|but|ok|okay|hey|well|sorry|also),?\s+)*"
    r"(?:do(?! not\b)|does|did|can|could|should|would|will|is|are|am|was|were|have(?! to\b)|has|had|what|why|how|who|whom|whose|"
    r"which|where|may|shall|isn't|aren't|wasn't|can't (?:we|you|i)\b|couldn't|wouldn't|shouldn't|won't|don't (?:you|we|i)\b|doesn't|didn't)\b",
    _FLAGS,
)
_GUESS = re.compile(
    rf"\b(?:{hedge_pattern('guess', 'possible', 'vague')}|suppos(?:e|ing|edly)|imagine|pretend|hypothetical(?:ly)?|what if|let'?s say|say (?:i|my|we|our)\b|in theory|i wish|would have|could have|"
    r"should have|i believe|i feel like|i assume|i'm thinking|thinking (?:about|of)|considering|tempted|for example|for instance|e\.g\.|one day|"
    r"someday|or something|or whatever|depends|looks like|if (?:i|we) (?:were|was|had|could|lived|worked|ever)|not that|"
    r"in (?:another|a past) life|in my dreams?|i'd love to|role-?play|in the (?:story|novel|game|movie|book))\b",
    _FLAGS,
)
_IRONY = re.compile(
    r"\b(?:yeah,? right|sure,? because|because nothing says|as if|oh,? (?:great|sure|joy|wonderful)|just (?:great|wonderful|perfect|what i needed)|"
    r"what a surprise|said no one|who doesn't|nothing better than|can'?t wait for|love it when|i (?:just|simply|absolutely|so) (?:love|adore) (?:when|how|it)|"
    r"live for|lol|lmao|rofl|haha\w*|hehe\w*|jk|just kidding|kidding|joking|sarcas\w*|like i (?:love|need|enjoy|want))\b|(?<!\w)/s\b"
    r"|\b(?:love|enjoy|adore)\b.*\b(?:3 ?am|outages?|broken|paged|woken|flaky|spending|losing|crash\w*|failing|wasting|root canals?|merge conflicts?|waiting)\b"
    r"|\ballergic to (?:meetings?|mondays?|work|deadlines?|javascript|java|php|yaml|xml|drama|bullshit|mornings?|exercise|bugs|code|paperwork)\b"
    r"|[🙄😂🤣😜🙃😉😏]",
    _FLAGS,
)
_PASSING = re.compile(
    r"\b(?:today|tonight|right now|for now|at the moment|this time|(?:just )?this once|temporarily|for the time being|"
    r"in this (?:pr|commit|file|branch|function|test|message|answer|reply|email|case|example|script|thread|chat)|"
    r"for (?:this|that) (?:one|task|pr|commit|time|answer|file|ticket|release|demo|call|meeting|example|test|function)|"
    r"until|this (?:week|month|morning|afternoon|evening|sprint)|"
    r"(?<! me )first(?=,| and|[.!]*$)|before (?:we|i) (?:start|begin|continue|go)|later|again|yet(?=[.!]*$))\b",
    _FLAGS,
)
_PAST = re.compile(
    r"\b(?:used to|back then|when i was|years ago|in those days|previously|formerly|once upon)\b", _FLAGS
)
_POINTING = re.compile(
    r"\b(?:these|those|here|he|she|him|hers?|there|such|the (?:same|above|below|latter|former|other one|first one|second one)|"
    r"like (?:that|this|so)|this one|that one|any of|some of|both of|all of (?:them|it))\b"
    r"|\bthis\b(?! (?:repo|repository|project|codebase|code base|company|team|machine|laptop|account|workspace|organi[sz]ation|app|package|service|library|house|household|year|week|month|quarter|spring|summer|autumn|winter)\b)"
    r"|\bthat\b(?=[\s.!]*$)|\bthat (?:world|way|day|place|stuff|feeling|part|time|kind|thing|style|file|idea)\b",
    _FLAGS,
)
_IT = re.compile(
    r"(?<!/)\b(?:it|its|it's|they|them|their)\b(?!/)(?! when\b)(?!(?: is|'s)? (?:strictly )?(?:forbidden|not allowed|illegal|mandatory|against))",
    _FLAGS,
)
_REASON = re.compile(r"\b(?:because|since|so|as|but|and|when|after|before|unless|which|that|who)\b", _FLAGS)
_NOT_ALWAYS = re.compile(
    r"\b(?:not|n't|n’t) (?:always|really|necessarily|usually|exactly|particularly|all that)\b", _FLAGS
)


_SENTENCE_DOUBTS = ((_GUESS, GUESS), (_IRONY, IRONY), (_PAST, OVER), (_NOT_ALWAYS, HALF_MEANT))


def doubts_about(clause: str, sentence: str) -> frozenset[str]:
    """Everything that speaks against a clause; empty when it may be taken at its word."""
    found = {why for pattern, why in _SENTENCE_DOUBTS if pattern.search(sentence)}
    if HIDDEN in clause:
        found.add(QUOTED)
    if sentence.rstrip("\"')” ").endswith(("?", "？")) or asks(clause):
        found.add(QUESTION)
    if _PASSING.search(clause):
        found.add(PASSING)
    if points_elsewhere(clause):
        found.add(POINTING)
    return frozenset(found)


def asks(clause: str) -> bool:
    """Whether a clause has the word order of a question."""
    return bool(_QUESTION.match(clause))


def points_elsewhere(text: str) -> bool:
    """Whether a text leans on something said before. "It" in a reason given afterwards leans on the text itself."""
    if _POINTING.search(text):
        return True
    found = _IT.search(text)
    if found is None:
        return False
    reason = _REASON.search(text)
    return reason is None or reason.start() > found.start() or len(text[: reason.start()].split()) < 3
