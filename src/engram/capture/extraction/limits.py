"""Limits and standing orders in the words people give them: must, never, only, no … without, use this for that."""

import re

from engram.capture.extraction.grammar import CLEAR, CODE, CONTEXT, EXPLICIT, PLAIN, WORDS, Rule, imperatives, rule
from engram.capture.extraction.renderings import as_said, command
from engram.capture.extraction.wording import as_told

_PARTY = r"(?:we|you|i|everyone|everybody|nobody|no one|no-one|people|developers|engineers|contractors|interns|customers|users|agents|anyone|the (?:[\w-]+ ){0,2}(?:team|bot|agent|assistant|ci))"
_BOUND = (
    r"(?:must (?:never|not|always|only|at all times)|mustn't|can never|can't ever|cannot ever|should (?:never|always|only)|shall not|may (?:not|only|never)|can only|(?:are|is|am) (?:only|not|never) (?:allowed|permitted) to|"
    r"aren't (?:allowed|permitted) to|(?:are|is) (?:required|obliged|supposed) to (?:always|never)|have to always|(?:are|is) forbidden (?:to|from))"
)
_NOT_BINDING = r"(?!(?:forget|worry|give up|know|be (?:wrong|right|sure|kidding|joking)|mind)\b)"
_FORBIDDEN = (
    r"(?:touch|change|modify|edit|delete|remove|rename|break|merge|push|deploy|commit|store|log|send|e?-?mail|call|contact|share|upload|download|install|upgrade|update|downgrade|"
    r"use|add|write(?! any\b)|import|mock|include|put|suggest|create|generate|hard-?code|abbreviate|apologi[sz]e|force-push|rebase|squash|amend|bypass|disable|skip|ignore|expose|print|"
    r"publish|release|ship|run|reformat|overwrite|rewrite|refactor|translate|mention|schedule|book|order|buy|message|ping|disturb|cc|assign|close|reopen|access|query|assume|guess|invent|"
    r"leave|drop|truncate|migrate|drink|feed|cook|serve|offer|recommend|address|start|end|sign|format|wrap|swear)"
)
# A part of the whole that is there to stay, unlike the function somebody looks at.
_STANDING = (
    r"(?:module|service|package|directory|folder|branch|database|db|schema|api|migrations?|infra\w*|pipeline|config\w*|submodule|vendor|production|prod|staging|server|cluster|repo|repository|"
    r"environment|secrets|main|master|registry|bucket|queue|cache layer|library|component|system|subsystem|account|calendar|customers?|clients?|team|layer|tables?|docs|changelog|lock ?files?|"
    r"makefile|workflow|dashboard|budget|\w+ code)"
)
_BANNED = (
    r"(?:deploy(?:ment)?s?|releases?|merges?|pushe?s?|commits?|meetings?|calls?|changes|emojis?|comments?|dependencies|libraries|secrets|credentials|code|print statements|prints|"
    r"abbreviations|hotfixes|migrations?|refactors?|e-?mails?|messages|notifications|pull requests|prs|purchases|payments|expenses|downtime|logging|console\.logs?|mocks?|globals?|"
    r"shoes|pets|smoking|phones|guests|visitors|food|travel|weekend work|overtime|access|exceptions)"
)
_BARE_PLURAL = r"(?:(?!(?:the|this|that|these|those|my|your|an?|it|them|his|her|some|two|three)\b)[\w-]+ ){0,2}(?!(?:this|is|has|was|as|class|address|process|pass|css|js|aws)\b)[\w-]+s"
_MASS = r"(?:documentation|copy|feedback|prose|markdown|css|sql|html|correspondence)"
_PURPOSE = r"(?:for|when|whenever|as (?:the|our|your|a)|to) (?!(?:this|that|these|those|the|it|now|here|a|an|my|me|each other|example|instance|fun|free|real|sure)\b)"


def limits() -> tuple[Rule, ...]:
    """The rules for what must, must not and may only be."""
    verbs = imperatives()
    return (
        rule("constraint", rf"{CONTEXT}{_PARTY} {_BOUND} {_NOT_BINDING}.{{3,200}}", "constraint", CLEAR, as_said),
        rule(
            "constraint",
            r"only (?!(?:show|give|tell|print|return|list|fix|change|do|if|when|one|a|the (?:first|last|second|diff|one)|this|that|two|some|output|answer|explain|because|then|until|after|now|just)\b)"
            rf"{WORDS}{{1,6}}?(?:may|can|should|must|is allowed to|are allowed to|is permitted to|has access to|have access to|gets? to) .{{3,160}}",
            "constraint",
            CLEAR,
            as_said,
        ),
        rule(
            "constraint",
            rf"no {WORDS}{{1,6}}?without (?!further|doubt|a doubt).{{3,120}}",
            "constraint",
            CLEAR,
            as_said,
        ),
        rule(
            "constraint",
            rf"(?:absolutely |please,? )?no (?:[\w-]+ ){{0,3}}(?:{_BANNED}|[\w-]+(?= (?:after|before|during|outside)\b)|[\w-]+s(?= on \w+days?\b)) (?:on|in|to|at|after|before|during|outside|between|over|from|near|unless|please|ever|whatsoever|over|longer than|under)\b.{{0,100}}",
            "constraint",
            CLEAR,
            as_said,
        ),
        rule(
            "constraint",
            rf"(?:(?:all|every|each|any) (?!(?:turn|{CODE})\b){WORDS}{{1,5}}?|{_BARE_PLURAL} )(?:needs?|requires?|must(?! be (?:an?|so|very|really|hard|nice|great|fun|tough|the|\w+ing)\b)|have to|has to|should always|should never|must not|may not|may only|can only|are only allowed|go through|goes through)"
            r"(?: (?:to|be|get|have|go|pass|include|contain|use|follow|at least|approval|sign-?off|review|an?|the|two|three|one|\d+|written|explicit|prior|manual|stay|fit|run|end|start|never|not|only|come|live))+\b.{0,160}",
            "constraint",
            CLEAR,
            as_said,
        ),
        rule(
            "constraint",
            rf"(?:(?:the|our|all|every|any) )?(?!(?:{CODE}|my|it|this|that|what|which|he|she|they|i|we|you)\b){WORDS}{{1,6}}?(?:is|are) (?:strictly |absolutely |completely |now |always |only |currently )?"
            r"(?:(?:not |only )?(?:allowed|permitted)|forbidden|prohibited|banned|off[- ]limits|read-only|mandatory|non-negotiable|deprecated|frozen|a hard (?:limit|requirement)|capped at|limited to)\b.{0,120}",
            "constraint",
            CLEAR,
            as_said,
        ),
        rule(
            "instruction",
            r"(?:please )?never (?!(?:mind|give up|again|ever again|say never|try|make (?:me|us)|heard|seen|thought|knew|had|been|was|let|stop|happy|once)\b)(?!\w+ed\b|\w+[^s]s\b)(?:ever )?[a-z][\w-]+ .{2,200}",
            "behavioral",
            CLEAR,
            as_said,
        ),
        rule(
            "instruction",
            rf"(?:please )?(?P<rest>(?:don't|do not) (?:ever )?{_FORBIDDEN}\b (?:(?:anything|files|code|things) (?:in|to|on|under|from|inside) )?(?:(?:the|our|my) (?:[\w/.'`-]+ ){{0,4}}?{_STANDING}|`?[\w.-]*/[\w./*-]+)`?(?! (?:you|we|i|above|below)\b)(?: .{{0,120}})?)",
            "constraint",
            PLAIN,
            command,
        ),
        rule(
            "instruction",
            rf"(?:please )?(?P<rest>(?:don't|do not) (?:ever )?{_FORBIDDEN}\b(?! (?:it|that|this|these|those|the|them|him|her|my|your|any|anything|yet|now|too|so|an?|me|us|again|there|here|everything|all|both|up|in|out|off|on)\b) .{{2,160}})",
            "behavioral",
            PLAIN,
            command,
        ),
        rule(
            "instruction",
            r"(?:please )?(?P<rest>(?:don't|do not) (?:ever )?(?!(?:worry|know|think|mind|care|remember|understand|need|have)\b)[a-z-]+ .{2,100}? (?:without (?:asking|telling|checking|my|approval|permission|a|an|consulting|notifying|running)|unless i|before (?:asking|checking|running)|before (?:\d|noon|nine|ten|eleven|lunch|breakfast)|between \d|on (?:\w+day|my calendar|\w+days)|on weekends|after \d|in (?:production|public|tests))\b.{0,100})",
            "constraint",
            CLEAR,
            command,
        ),
        rule(
            "instruction",
            r"(?:please )?(?P<rest>(?:don't|do not) (?:ever )?(?:call me|contact me|e-?mail me|text me|send me|ping me|disturb me|message me|wake me|schedule me|book me|remind me|show me|give me|ask me)\b(?! (?:it|that|this|the|yet|now|back|another)\b).{2,100})",
            "behavioral",
            PLAIN,
            command,
        ),
        rule(
            "convention",
            rf"{CONTEXT}(?:please )?use (?!(?:it|that|this|these|those|them|the|an?|my|your|some|any|one|two|option|both|either|another|more|less)\b)`?[\w@][\w@/.+#'`-]*(?: [\w.+#'`-]+){{0,3}} {_PURPOSE}.{{3,100}}",
            "convention",
            PLAIN,
            as_said,
        ),
        rule(
            "convention",
            rf"{CONTEXT}(?:please )?(?:write|name|format|keep|store|prefix|suffix|sign|put|log|indent|document|express|spell|quote|address) (?:all |every |our |any |my )?(?:{_BARE_PLURAL}|(?:[\w-]+ )?{_MASS}) "
            r"(?:in|as|with|under|below|by|to|on|at|inside|next to|short|small|private|sorted|alphabetical\w*|against|using|like)\b(?! (?:it|that|this|these|those|them|me)\b).{0,100}",
            "convention",
            PLAIN,
            as_said,
        ),
        rule(
            "instruction",
            rf"(?:(?:whenever|every time|each time|any time|when|if|before|after) (?:you|i|we|someone)\b[\w' -]{{2,60}}|(?:before|after|when) (?:every|each|any|\w+ing)\b[\w' -]{{0,60}}), (?:please )?(?:always |never |don't |do not |first |just |you should |you must )?(?:{verbs}|ping|e-?mail|text|message|book|bcc|cc)\b .{{2,200}}",
            "behavioral",
            CLEAR,
            as_said,
        ),
        rule(
            "instruction",
            rf"(?:please )?(?!(?:give|show|list|explain|tell|print|write|make|create)\b)(?:{verbs}) .{{2,120}} (?:before|after|on|at) (?:every|each|any) (?!(?:one|of|file|line|row|item|element|time|option|step|case|module|{CODE})\b)[\w-]+(?: .{{0,60}})?",
            "behavioral",
            CLEAR,
            as_said,
        ),
        rule(
            "instruction",
            r"(?:i (?:don't|do not|never) want|i'd rather not have) (?:you to |to (?:see|have|get|receive) )(?P<rest>(?!(?:it|that|this|the)\b).{3,160})",
            "behavioral",
            EXPLICIT,
            _unwanted,
        ),
        rule(
            "instruction",
            rf"(?:please )?(?P<rest>(?:(?:always|never|don't|do not) )?(?:{verbs}|be|speak|talk|respond)\b (?!(?:it|that|this)\b).{{2,140}}?),? (?:from now on|going forward|in (?:the )?future|by default|every time|whenever possible|at all times)",
            "behavioral",
            EXPLICIT,
            command,
        ),
        rule(
            "instruction",
            r"(?:please )?(?P<rest>(?:make sure|ensure|be sure|check) (?:that |to )?(?!(?:it|that|this)\b).{3,100} (?:before|after|when|whenever|every time|each time) (?:you|we|i|any|each|every|\w+ing)\b.{2,80})",
            "behavioral",
            CLEAR,
            command,
        ),
        rule(
            "instruction",
            r"(?:please )?(?P<rest>be (?:more |less |very |as )?(?:concise|brief|direct|formal|informal|honest|blunt|critical|polite|careful|thorough|specific|patient|strict) (?:in|with|when|about|whenever|as)\b(?! (?:it|that|this|the)\b).{3,100})",
            "behavioral",
            CLEAR,
            command,
        ),
        rule(
            "constraint",
            r"(?:nobody|no one|no-one|none of us) (?:may|is allowed to|is permitted to|should ever|must ever) .{3,160}",
            "constraint",
            CLEAR,
            as_said,
        ),
        rule(
            "instruction",
            r"(?:please )?(?P<rest>(?:don't|do not) (?:ever )?(?:share|publish|post|disclose|reveal|give out|mention|store|forward) my .{3,120})",
            "constraint",
            CLEAR,
            command,
        ),
    )


def _unwanted(found: re.Match[str]) -> str:
    return as_told(found[0])
