"""The rules, as one table: how a clause must read, what it then is, how sure that is, and how it is put down.

A pattern fits the whole clause, greetings and asides taken off. The first rule that fits decides.
"""

from engram.capture.extraction.changes import changes
from engram.capture.extraction.grammar import (
    ANYTHING,
    CLEAR,
    CONTEXT,
    EXPLICIT,
    I_AM,
    NUMBER,
    OFTEN,
    PEOPLE,
    PLAIN,
    ROLE,
    THING,
    Rule,
    imperatives,
    rule,
)
from engram.capture.extraction.limits import limits
from engram.capture.extraction.renderings import (
    as_said,
    born,
    called,
    command,
    decided,
    decided_against,
    decided_not,
    decided_use,
    no_longer,
    of_the_users,
    the_user,
    the_user_is,
    the_user_would,
    whose,
)
from engram.capture.extraction.tastes import tastes
from engram.capture.extraction.things import things

_STATE = r"(?:vegan|vegetarian|pescatarian|diabetic|left-handed|right-handed|colou?r-?blind|celiac|coeliac|dyslexic|deaf|pregnant|married|divorced|retired|bilingual|lactose[- ]intolerant|gluten[- ]intolerant|gluten-free)"
_ILLNESS = r"(?:diabetes|asthma|adhd|epilepsy|migraines?|celiac disease|coeliac disease|hypertension|arthritis|dyslexia|an? [\w-]+ (?:allergy|intolerance))"
_DOING = (
    r"(?:use|deploy|write|follow|squash|rebase|run|store|keep|host|ship|commit|test|name|format|log|avoid|prefer|support|merge|tag|release|pin|"
    r"target|require|review|version|mock|build|lint|document|track|indent|import)"
)
_BINDING = (
    r"(?:use|deploy|store|share|ship|exceed|support|log|send|rely|depend|upgrade|run|install|expose|collect|keep|encrypt|comply|host|add|stay|"
    r"work|be able|target|break|merge|delete|retain|process|leave|cache)"
)
_LETS = r"let'?s (?:go with|use|stick (?:with|to)|switch to|settle on|adopt|standardi[sz]e on|choose|pick)"
_WE_GO = r"(?:we're|we are|we'll|we will) (?:go|going|gonna go|stick|sticking) with"
_WE_HAVE = r"(?:we|the team)(?:'ve| have| had)? (?:all |finally |just |now |jointly )?"
_HAVE_DECIDED = rf"(?:{_WE_HAVE}|i(?:'ve| have| had)? (?:finally |just |now )?)"
# "Must be tested" binds; "must be incredible" only supposes.
_REQUIRED = (
    r"\w+ed\b|written\b|kept\b|made\b|built\b|run\b|sent\b|set\b|given\b|shown\b|done\b|at (?:least|most)\b|under\b|below\b|above\b|"
    r"between\b|in\b|on\b|no\b|less\b|more\b|\d|able\b|unique\b|idempotent\b|optional\b|stateless\b|backwards?\b|compatible\b"
)
_CONTRAST = r"(?P<rest>use (?!(?:it|that|this|these|those|them)\b).{2,120}?(?:,? (?:not|and not)|,? instead of|,? rather than|,? never) .{2,80})"


def rules() -> tuple[Rule, ...]:
    """Every rule, in the order they are tried."""
    return (*changes(), *_first(), *limits(), *tastes(), *things())


def _first() -> tuple[Rule, ...]:
    verbs = imperatives()
    return (
        # corrections
        rule(
            "correction",
            rf"(?:no|nope|wrong|actually|correction|not quite|sorry)[,:;.! —–-]+(?:please )?{_CONTRAST}",
            "correction",
            EXPLICIT,
            command,
        ),
        rule(
            "correction",
            r"(?:no|nope|wrong|actually|correction|not quite|that's (?:wrong|not right|incorrect))[,:;! —–-]+"
            r"(?P<rest>(?:the|our|my) [\w' -]{2,40}? (?:is|are|runs on|uses|lives in|starts|ends|listens on) "
            r"(?=.*(?:\d|,? not |`))(?!(?:not|n't)\b).{2,120})",
            "correction",
            EXPLICIT,
            command,
        ),
        # standing instructions
        rule(
            "instruction",
            rf"(?:from now on|going forward|in (?:the )?future),? (?:please )?(?P<rest>(?:(?:always|never|don't|do not) )?(?:{verbs}) .{{2,200}})",
            "behavioral",
            EXPLICIT,
            command,
        ),
        rule(
            "instruction",
            rf"{CONTEXT}(?:please )?(?:always|never) (?!give up|try\b|make (?:me|us)\b|remind (?:me|us) of|let\b|stop\b)(?:{verbs}|be|have|touch|guess|assume|apologi[sz]e|speak|talk|respond|comment|end|begin|force-push|invent|swear) .{{2,200}}",
            "behavioral",
            EXPLICIT,
            as_said,
        ),
        rule(
            "instruction",
            rf"(?:if you|when(?:ever)? you|before you|after you|every time you|each time you) [\w' -]{{2,60}}, (?:please )?(?:always |never |don't |do not )?(?:{verbs}) .{{2,200}}",
            "behavioral",
            CLEAR,
            as_said,
        ),
        rule(
            "instruction",
            r"(?:i (?:want|need|expect|would like)|i'd like) you to (?P<rest>(?:always|never) .{2,200})",
            "behavioral",
            EXPLICIT,
            command,
        ),
        rule("instruction", r"you (?:must|should) (?P<rest>(?:always|never) .{2,200})", "behavioral", CLEAR, command),
        rule(
            "instruction",
            rf"(?:make sure|be sure) (?:to |that you |you )?(?P<rest>(?:always|never) (?:{verbs}) .{{2,200}})",
            "behavioral",
            EXPLICIT,
            command,
        ),
        rule(
            "instruction",
            r"(?:please )?(?P<rest>(?:don't|do not) (?:ever )?(?:use|add|write(?! any\b)|commit|push|import|mock|include|put|suggest|create|generate|send|call me|deploy|log|store|hard-?code|abbreviate|apologi[sz]e)\b"
            r"(?! (?:it|that|this|these|those|the|them|my|your|anything|yet|now)\b).{2,160})",
            "behavioral",
            PLAIN,
            command,
        ),
        rule(
            "instruction",
            r"(?:please )?(?P<rest>stop (?:using|adding|apologi[sz]ing|suggesting|writing|asking|repeating|including|calling)\b(?! (?:it|that|this|these|those|the|them)\b).{2,160})",
            "behavioral",
            PLAIN,
            command,
        ),
        rule("convention", rf"{CONTEXT}(?:please )?{_CONTRAST}", "convention", CLEAR, as_said),
        # decisions
        rule(
            "decision",
            rf"{_HAVE_DECIDED}(?:decided|agreed|chosen|chose|opted) not to (?P<rest>.{{3,200}})",
            "decision",
            CLEAR,
            decided_not,
            role="any",
        ),
        rule("decision", rf"{_HAVE_DECIDED}decided against {ANYTHING}", "decision", CLEAR, decided_against, role="any"),
        rule(
            "decision",
            rf"{_HAVE_DECIDED}(?:decided|agreed|chosen|chose|opted) (?:to|that) (?P<rest>(?!(?:do|try|meet|wait|talk|disagree)\b).{{3,200}})",
            "decision",
            CLEAR,
            decided,
            role="any",
        ),
        rule(
            "decision",
            rf"{_WE_HAVE}(?:decided on|agreed on|settled on|opted for|went with|chose|picked|chosen) (?!up\b){ANYTHING}",
            "decision",
            CLEAR,
            decided_use,
            role="any",
        ),
        rule("decision", rf"(?:{_LETS}|{_WE_GO}) (?!(?:an?|my|our|your)\b){ANYTHING}", "decision", CLEAR, decided_use),
        rule(
            "decision",
            r"(?:the |our |final )*decision(?: is|:) (?:to )?(?P<rest>(?!(?:yours|made|pending|final|up)\b).{3,200})",
            "decision",
            EXPLICIT,
            decided,
            role="any",
        ),
        # what someone prefers
        rule("preference", rf"{CONTEXT}i {OFTEN}(?P<verb>prefer|favou?r) {THING}", "preference", CLEAR, the_user),
        rule(
            "preference",
            rf"{CONTEXT}i {OFTEN}(?P<verb>like|love|enjoy|hate|dislike|can't stand|cannot stand|don't like|do not like|don't eat|don't drink) (?!that\b|to$){THING}",
            "preference",
            CLEAR,
            the_user,
        ),
        rule(
            "preference",
            r"(?:i'd|i would) (?P<verb>prefer|rather) (?P<rest>(?:that |if )?you (?!(?:the|this|that|fix|do|go|start|explain)\b)(?!.*\b(?:the|that)\b).{3,200})",
            "preference",
            CLEAR,
            the_user_would,
        ),
        rule(
            "preference",
            r"my (?P<rest>(?:favou?rite|preferred|go-to|usual|default) (?!(?:ones?|part|thing|bit|moment)\b)[\w' -]{2,40}? (?:is|are) (?!(?:not|broken|down|gone)\b).{2,160})",
            "preference",
            CLEAR,
            of_the_users,
        ),
        rule(
            "preference",
            rf"i no longer (?P<verb>use|eat|drink|like|prefer|want|work|live|write|take) {ANYTHING}",
            "preference",
            CLEAR,
            no_longer,
        ),
        rule(
            "preference",
            rf"i (?P<adv>always |never |only |usually )(?P<verb>eat|drink|work|use|deploy|commit|write|take|drive|fly|smoke|run|review|wake up|travel|read|book|pay|wear|buy|order) {ANYTHING}",
            "preference",
            PLAIN,
            the_user,
        ),
        rule("preference", rf"i (?P<verb>use) (?!an? ){THING}", "preference", PLAIN, the_user),
        # who someone is
        rule(
            "personal",
            r"i (?:currently |now )?(?P<verb>live|reside) (?P<rest>(?:in|near|on|with|at) (?!(?:hope|fear|a (?:dream|bubble|world))\b).{2,120}?)(?: now| currently| these days)?",
            "fact",
            CLEAR,
            the_user,
        ),
        rule(
            "personal",
            r"i (?:currently |now )?(?P<verb>work) (?P<rest>(?:at|for|as|from home|in (?:the )?(?:[\w-]+ (?:industry|sector|team|department)|finance|healthcare|education|marketing|sales|tech|academia|insurance|publishing)\b).{0,120})",
            "fact",
            CLEAR,
            the_user,
        ),
        rule("personal", rf"{I_AM}(?P<neg>not )?(?P<rest>allergic to .{{2,120}})", "fact", EXPLICIT, the_user_is),
        rule("personal", rf"{I_AM}(?P<neg>not )?(?P<rest>(?:an? )?{_STATE}\b.{{0,80}})", "fact", CLEAR, the_user_is),
        rule(
            "personal",
            rf"i (?P<verb>have) (?P<rest>(?:(?:severe|chronic|type (?:1|2|one|two)) )?{_ILLNESS}\b.{{0,80}})",
            "fact",
            CLEAR,
            the_user,
        ),
        rule(
            "personal",
            rf"{I_AM}(?P<neg>not )?(?P<rest>(?:an?|the) (?:[\w+#/-]+ ){{0,4}}{ROLE}\b.{{0,100}})",
            "fact",
            CLEAR,
            the_user_is,
        ),
        rule(
            "personal",
            rf"{I_AM}(?P<neg>not )?(?P<rest>(?:from|based in|based out of|living in) (?-i:[A-Z]).{{1,80}})",
            "fact",
            CLEAR,
            the_user_is,
        ),
        rule("personal", rf"{I_AM}(?P<neg>not )?(?P<rest>\d{{1,3}}(?: years old)?)", "fact", CLEAR, the_user_is),
        rule("personal", r"i was born (?P<rest>(?:in|on) .{2,80})", "fact", CLEAR, born),
        rule(
            "personal",
            r"my (?P<rest>(?:full |first |last |middle )?name is [\w .'-]{2,60})",
            "fact",
            EXPLICIT,
            of_the_users,
        ),
        rule(
            "personal",
            r"(?:please |just |you can |you may |feel free to )*call me (?P<rest>(?-i:[A-Z])[\w.'-]{1,30})",
            "fact",
            EXPLICIT,
            called,
        ),
        rule(
            "personal",
            r"my (?P<rest>(?:birthday|pronouns|time ?zone|job title|blood type|native language|mother tongue|shoe size|home town|hometown|nationality|work(?:ing)? hours) (?:is|are) .{2,100})",
            "fact",
            CLEAR,
            of_the_users,
        ),
        rule(
            "personal",
            rf"my (?P<rest>{PEOPLE}(?:'s name is| (?:is|are) (?:called|named)|'s birthday is| (?:is|are) allergic to| lives? in| works? (?:at|for|as)| (?:is|are) an? (?:[\w-]+ ){{0,3}}{ROLE}\b) ?.{{0,100}})",
            "fact",
            CLEAR,
            of_the_users,
        ),
        rule(
            "personal",
            rf"i (?P<verb>have) (?P<rest>{NUMBER} (?:[\w-]+ ){{0,3}}{PEOPLE}s?\b.{{0,80}})",
            "fact",
            CLEAR,
            the_user,
        ),
        rule(
            "personal",
            r"i (?P<verb>speak) (?P<rest>(?:only |fluent |native )?(?-i:[A-Z])[\w -]{2,20}(?:(?:, | and )[\w ,-]{2,60})?)",
            "fact",
            CLEAR,
            the_user,
        ),
        # limits
        rule(
            "constraint",
            rf"we (?:must|must not|mustn't|can't|cannot|can not|have to|are required to|are not allowed to|aren't allowed to|may not|need to support|only support) (?:only |ever |never |always )?{_BINDING}\b.{{2,200}}",
            "constraint",
            CLEAR,
            as_said,
            role="any",
        ),
        rule(
            "constraint",
            rf"(?:the|our|all|every|each) (?!(?:user|list|input|string|array|value|field|number|answer|problem|issue|error|bug|cause|reason|function|code|method|class|solution|culprit|story|poem|essay|article|output|text|turn|e?-?mail|post|title|plot)\b)(?:[\w'/-]+ ){{1,6}}?(?:must(?! have\b)(?! be (?!{_REQUIRED}))|must not|mustn't|may not|cannot exceed|can't exceed|should never|is not allowed to|are not allowed to) .{{3,200}}",
            "constraint",
            CLEAR,
            as_said,
            role="any",
        ),
        rule(
            "constraint",
            r"it(?:'s| is) (?:strictly )?(?:forbidden|not allowed|illegal|mandatory|against (?:the|our) (?:rules|policy)) to .{3,200}",
            "constraint",
            CLEAR,
            as_said,
        ),
        rule(
            "constraint",
            r"(?=.*\b(?:for|per|each|every|a (?:month|year|week|day))\b)(?:the|our|my) (?:[\w-]+ ){0,3}(?:budget|limit|maximum|minimum|cap|quota|sla|deadline) (?:for [\w -]{2,40} )?is (?:at most |at least |set to |strictly )?(?=.*\d).{1,100}",
            "constraint",
            CLEAR,
            whose,
        ),
        # how a team works
        rule(
            "convention",
            rf"{CONTEXT}we (?:(?:always|never|usually|only|exclusively|typically|all|generally|normally|don't|do not|also) )?{_DOING} {THING}",
            "convention",
            CLEAR,
            as_said,
            role="any",
        ),
        rule(
            "convention",
            r"our (?:[\w-]+ ){0,3}(?:convention|rule|policy|standard|style|practice|default|naming scheme|workflow) (?:is|says) (?!(?:not|a mess|broken|bad|terrible|weird)\b).{3,200}",
            "convention",
            CLEAR,
            as_said,
            role="any",
        ),
        rule(
            "project",
            r"our (?:[\w'/-]+ ){1,4}?(?:uses|runs on|is written in|is hosted on|is built with|is built on|targets|is deployed to|is deployed on|requires|listens on) (?!(?:it|that|this)\b).{2,160}",
            "project",
            CLEAR,
            as_said,
            role="any",
        ),
    )
