"""What is said of a team's things and people: what they are called, where they live, who owns them, when they come round."""

import re

from engram.capture.extraction.grammar import (
    CLEAR,
    CLOCK,
    CODE,
    EXPLICIT,
    I_AM,
    NAME,
    OFTEN_ENOUGH,
    PLAIN,
    Rule,
    rule,
)
from engram.capture.extraction.renderings import as_said, as_told_of, the_user, the_user_is

# "The", "our" or "my", and up to five words of which the last is not what is being worked on right now.
_OURS = rf"(?!the (?:file|library|package|endpoint|dependency|data|dataset|csv|modal|config|process|container|job|meeting|module|route|image|name) (?:is|are|runs?|uses?|lives?)\b)(?:the|our|my|all our|all the|this (?:project|repo|repository|team|company|codebase|service|app)'s) (?!(?:first|second|last|next|other|same|only|best|worst|rest)\b)(?:[\w'/&+.#-]+ ){{0,4}}?(?!(?:{CODE}) )[\w'/&+.#-]+"
_POSSESSED = rf"(?:our|my) (?!(?:first|second|last|next|other|same|only|guess|bad|mistake|turn|understanding|hope|point)\b)(?:[\w'/&+.#-]+ ){{0,4}}?(?!(?:{CODE}) )[\w'/&+.#-]+"
_NOT_A_NAME = r"(?!(?:twice|once|when|whenever|from|by|in|at|on|again|before|after|every|for|with|too|each|only|multiple|several|as|if|here|there|recursively|off|out|wrong\w*|incorrectly|badly|that|this|it|what|the same)\b)"
_LIVES = (
    r"(?:lives?|sits?|resides?|is (?:hosted|deployed|stored|kept|located|served|published|documented|tracked|written|built|developed|managed|maintained|implemented|based|backed|powered)|"
    r"are (?:hosted|deployed|stored|kept|located|served|published|documented|tracked|written|built|managed|maintained|based|backed|powered)) (?:at|in|on|under|with|by|from|to|behind|using|inside|out of)"
)
_RUNS = r"(?:runs?|listens?|depends?|relies|rely|builds?|deploys?|points?|talks?|connects?|writes|syncs?|publishes|exports?) (?:on|at|as|under|to|from|behind|in|via|with) (?!(?:every|each|my|your|the same|time|its own|\d+ (?:seconds?|minutes?|ms))\b)"
_USES = r"(?:uses?|requires?|targets?|supports|is (?:running|using)|belongs to|is owned by|are owned by|is maintained by|speaks|covers|follows) (?!(?:it|that|this|too|more|some|work|help|fixing|to be|a lot|an? (?:fix|refactor|review|restart|rewrite|loop|list|dict))\b)"
_PASSING_STATE = (
    r"(?!(?:not|n't|broken|down|up|gone|fine|ok(?:ay)?|ready|done|slow|fast|wrong|right|bad|good|great|awful|terrible|weird|flaky|failing|green|red|stuck|empty|full|dead|alive|back|here|there|"
    r"missing|late|early|busy|unclear|unknown|still|just|now|also|really|very|so|too|quite|pretty|a (?:mess|bit|little|disaster|joke|pain|piece|nightmare|lot|problem)|on \d|getting|being|going|working|running|hanging|crashing|about|"
    r"that|this|what|how|why|to|because|like|in (?:bad|good|progress|trouble|use|a)|on (?:fire|hold|track|the)|at (?:risk|capacity|home|work)|out|off|over|under|killing|driving|acting|asking|coming)\b)"
)
_NAMELIKE = r"(?=(?:an? |the |in |at |on |called |named |`)?(?:(?-i:[A-ZÀ-Þ])|\d|`|[\w-]+[/@.:_][\w-]))"
_ONE_WORD = r"(?:name|codename|code name|nickname|branch|language|stack|database|framework|license|licence|region|domain|namespace|prefix|bucket|cluster|registry|channel|repo|repository|package manager|linter|formatter|test runner|editor|shell|terminal|browser|os|username|handle)"
_ATTRIBUTE = (
    r"(?:name|codename|code name|nickname|port|url|address|owner|lead|tech lead|window|schedule|branch|version|stack|tech stack|budget|limit|quota|language|database|framework|license|licence|"
    r"manager|cto|ceo|cfo|coo|vp|director|head|boss|supervisor|mentor|accountant|lawyer|landlord|contact|maintainer|reviewer|approver|sponsor|client|customer|vendor|supplier|provider|"
    r"timeout|threshold|retention|region|timezone|time zone|currency|domain|namespace|prefix|bucket|cluster|registry|channel|mailing list|ticket prefix|project key|repo|repository|"
    r"package manager|linter|formatter|test runner|editor|shell|terminal|browser|os|operating system|laptop|phone|car|bike|username|handle|e-?mail|github|company|employer|team|office|"
    r"school|university|major|degree|job|role|title|hometown|birthday|anniversary|goal|target|north star|sla|slo|source of truth|single source of truth|rpo|rto|cadence|sprint length|iteration length|team size|headcount|stand-?up)"
)
_KIN = (
    r"(?:lead|owner|maintainer|manager|cto|ceo|cfo|director|head|contact|designer|engineer|developer|architect|lawyer|accountant|client|customer|boss|mentor|assistant|"
    r"intern|contractor|founder|co-?founder|pm|sre|dba|admin|teammate|colleague|neighbou?r|wife|husband|partner|brother|sister|son|daughter|friend|doctor|dentist|therapist|landlord|vendor|"
    r"supplier|reviewer|approver|sponsor|expert|person|department|team|nephew|niece|cousin|uncle|aunt|roommate|flatmate|dog|cat|analyst|scientist|recruiter|coach|teacher|nanny)"
)
_OWNS = (
    rf"(?:(?:owns?|leads?|manages?|maintains?|heads(?: up)?|handles?|oversees?|coordinates?|approves?|reviews?|looks after|takes care of|reports to|(?:is|are) (?:responsible for|in charge of|on call for|accountable for|"
    rf"allergic to)|signs off on|works (?:in|at|for|as|from)|works on (?=(?:the|our) (?:[\w-]+ ){{0,3}}(?:team|app|service|project|platform|backend|frontend|product|api|site|infrastructure|design)\b)|lives in|prefers|likes|hates|doesn't eat|speaks|sits) (?!(?:it|that|this|these|those|them)\b).{{2,120}}|"
    rf"runs (?:the|our|my) (?:[\w-]+ ){{0,3}}(?:team|department|meeting|program|project|store|office|shop|group|guild|standup|retro)\b.{{0,80}}|"
    rf"(?:is|are) (?:our|my|the|an?|one of our) (?:[\w-]+ ){{0,4}}?{_KIN}s?\b.{{0,100}})"
)
_MEETING = r"(?:stand-?ups?|daily(?: (?:standup|scrum|sync))?|retro(?:spective)?s?|all-hands|sprint (?:planning|review|demo)|planning|grooming|refinement|office hours|lunch|scrum|check-in|sync|team (?:meeting|sync|call|lunch)|weekly(?: \w+)?|1:1s?|one-on-ones?|demo day|school|daycare|shift|class|practice|rehearsal|therapy)"
_PEOPLE_OF = r"(?:wife|husband|spouse|fianc[eé]e?|partner|girlfriend|boyfriend|son|daughter|kids?|child|children|mother|mom|mum|father|dad|parents|sisters?|brothers?|grand(?:mother|father|ma|pa)|cousin|uncle|aunt|niece|nephew|boss|manager|team lead|tech lead|cat|dog|pet|doctor|dentist|therapist|assistant|co-?founder|roommate|flatmate|neighbou?r|best friend|friend|colleague|teammate|mentor|landlord|accountant|lawyer|client)"
_DOES = r"(?:have|go|work|take|run|deploy|release|ship|meet|review|rotate|swim|train|practi[cs]e|clean|cook|call|visit|volunteer|teach|pick up|drop off|invoice|pay|publish|plan|back up|sync|merge|hold|do|host|play|fast|get up|wake up|start|finish|leave|close|open|send|write|bill|update|patch|upgrade|test|demo|groom|refine|cut|tag|reboot|check|study|log off|commute|travel|fly|eat|drink|walk|hike|cycle|water|order|shop)"
_PLURAL = r"(?!(?:it|this|that|he|she|they|we|you|i|the|my|your|his|her|their|an?)\b)(?:(?!(?:the|this|that|my|your)\b)[\w-]+ ){0,2}(?!(?:this|is|has|was|as|does|yes)\b)[\w-]+s"
_ID = r"(?:(?:passport|social security|tax|vat|national(?: id| insurance| identity)?|driver'?s? licen[cs]e|driving licen[cs]e|bank account|account|iban|credit card|debit card|customer|insurance|policy|employee|id card|medical record|membership|visa|ssn|nif|cpf|nhs)(?: (?:number|no\.?|id|code|card))*|ssn|iban)"


def _sentence_of(found: re.Match[str]) -> str:
    said = as_told_of(found)
    return (
        f"The {said[0].lower()}{said[1:]}"
        if re.match(r"(?:stand-?up|retro|daily|sync|scrum|all-hands)\b", said, re.IGNORECASE)
        else said
    )


def things() -> tuple[Rule, ...]:
    """The rules for names, places, owners, people and what comes back."""
    return (
        rule("identity", rf"my {_ID} (?:is|:|ends in) (?=.*\d).{{3,60}}", "identity", EXPLICIT, as_told_of),
        rule(
            "recurrence",
            rf"(?:(?:the|our|my) )?(?:[\w'-]+ ){{0,3}}?{_MEETING} (?:is|are|happens?|starts?|begins?|takes? place|runs?|meets?)(?: always| usually| now)? (?:at|from|on|every|each|daily|weekly|in|for|\d).{{1,80}}",
            "fact",
            CLEAR,
            _sentence_of,
        ),
        rule(
            "recurrence",
            rf"(?=.*\b(?:every|each|on|once|twice|times|\w+ly|mornings|evenings|afternoons)\b)(?:{_OURS}|{NAME}|[a-z][\w-]+(?: [\w-]+){{0,2}}) (?:(?:is|are)(?: (?:open|closed|held|due|free|off|out|here|\w+ed))?|(?:happens?|takes? place|meets?|starts?|begins?|ends?|closes?|opens?|runs?|goes? out|gets? \w+|arrives?|comes?|resets?|rotates?|renews?|refresh(?:es)?|rebuilds?|ships?|works?)(?: [\w' -]{{1,40}}?)?) {OFTEN_ENOUGH}(?: .{{0,40}})?",
            "fact",
            CLEAR,
            _sentence_of,
        ),
        rule(
            "recurrence",
            rf"(?:i|we) (?:(?:always|usually|only|also|never|don't|do not) )?{_DOES}\b(?! (?:it|that|this|these|those|them)\b)(?: .{{1,80}}?)? {OFTEN_ENOUGH}(?:,? (?:at|around|from|after|before) .{{1,40}})?",
            "fact",
            CLEAR,
            as_told_of,
        ),
        rule(
            "recurrence",
            rf"{OFTEN_ENOUGH},? (?:i|we) {_DOES}\b(?! (?:it|that|this)\b).{{2,100}}",
            "fact",
            CLEAR,
            as_told_of,
        ),
        rule(
            "recurrence",
            rf"(?:{_OURS}) (?:closes?|opens?|starts?|ends?|runs?|begins?|is open|is closed|locks?) (?:at|from|until|between) {CLOCK}.{{0,60}}",
            "fact",
            CLEAR,
            as_told_of,
        ),
        rule(
            "name",
            rf"{_OURS} (?:is|are|was) (?:now |also |internally )?(?:called|named|nicknamed|codenamed|code-named|known as|referred to as) {_NOT_A_NAME}.{{2,80}}",
            "fact",
            CLEAR,
            as_told_of,
        ),
        rule(
            "name",
            r"we (?:call|refer to|named|nicknamed) (?!(?:it|this|that|them)\b)(?:the|our) [\w' -]{2,40} .{2,60}",
            "fact",
            CLEAR,
            as_said,
        ),
        rule(
            "name",
            r"(?!(?:this|that|it|which|what|he|she|the (?:error|answer))\b)`?[\w./-]{2,24}`? (?:stands for|is short for|is our (?:name|word|term|abbreviation|shorthand) for|(?<=(?-i:[A-Z])) means) (?!(?:that|it|this|you|we|i|a lot|nothing|something|business)\b).{3,100}",
            "fact",
            CLEAR,
            as_said,
        ),
        rule(
            "place",
            rf"{_OURS} {_LIVES} (?!(?:mind|this|that|it|a loop|fear|hope|hand|mistake|default)\b).{{2,120}}",
            "fact",
            CLEAR,
            as_told_of,
        ),
        rule("place", rf"{_OURS} {_RUNS}.{{2,120}}", "project", CLEAR, as_told_of),
        rule(
            "place",
            rf"{_OURS} (?:is|are) (?:in|at|on|under|behind|over at) {_NOT_A_NAME}(?!(?:progress|trouble|use|bad|good|fire|hold|track|time|risk|capacity|line|lines|sync|order|doubt|question|my way|the way|the (?:screen|left|right|top|bottom|middle|wrong))\b)(?=.*(?:(?-i:[A-Z])|[/@:]|\w\.\w|-\d|folder|directory|drawer|drive|wiki|vault|channel|bucket|floor|building|garage|repo|branch|cloud)).{{2,100}}",
            "fact",
            CLEAR,
            as_told_of,
        ),
        rule("project", rf"{_POSSESSED} {_USES}.{{2,120}}", "project", CLEAR, as_told_of),
        rule(
            "project",
            rf"(?:the|this) (?:[\w'/&+.#-]+ ){{0,3}}(?:service|server|api|app|backend|frontend|project|repo|repository|codebase|pipeline|cluster|database|team|company|site|website|worker|gateway|library|sdk|monorepo|platform|product) {_USES}.{{2,120}}",
            "project",
            PLAIN,
            as_told_of,
        ),
        rule(
            "project",
            rf"(?:the|our|my) (?:[\w'/&+.#-]+ ){{0,4}}?{_ONE_WORD} (?:is|are)(?: now| currently| always)? {_PASSING_STATE}(?!\w+ed\b)`?[\w-]+`?",
            "fact",
            CLEAR,
            as_told_of,
        ),
        rule(
            "project",
            rf"(?:the|our|my) (?:[\w'/&+.#-]+ ){{0,4}}?{_ATTRIBUTE}(?: (?:for|of|on|in) (?:the |our |my )?(?!(?:this|that)\b)[\w' /.-]{{2,40}}?)? (?:is|are)(?: now| currently| always)? {_PASSING_STATE}{_NAMELIKE}.{{1,100}}",
            "fact",
            CLEAR,
            as_told_of,
        ),
        rule(
            "project",
            rf"{_POSSESSED} (?:is|are)(?: now| currently| always)? {_PASSING_STATE}(?=(?:in |at |on |`|called |an? )?(?:(?-i:[A-ZÀ-Þ])|\d|`|[\w-]+[/@:_][\w-]|[\w-]+\.\w)).{{1,100}}",
            "fact",
            PLAIN,
            as_told_of,
        ),
        rule(
            "people",
            rf"{NAME}(?: and {NAME})? (?:also |now |currently )?{_OWNS}",
            "fact",
            CLEAR,
            as_told_of,
        ),
        rule(
            "people",
            rf"{NAME} is (?:vegan|vegetarian|pregnant|on (?:parental|maternity|paternity|sick) leave|on call)\b.{{0,60}}",
            "fact",
            CLEAR,
            as_told_of,
        ),
        rule(
            "people",
            rf"my (?:[\w-]+ ){{0,2}}{_PEOPLE_OF}(?:-in-law)?(?:,? {NAME},?)? (?:(?:is|are)(?= (?:not )?(?:an?|the|my|called|named|allergic|from|\d|vegan|vegetarian|deaf|blind|diabetic|pregnant|married|divorced|retired|lactose|gluten|deceased|left-handed|(?-i:[A-ZÀ-Þ]))\b)|has|have|lives?|works?|speaks?|studies|study|goes|go|loves?|likes?|hates?|prefers?|owns?|plays?|can't|cannot|doesn't|does not|don't|never|always|was born|turns?|turned)\b (?!(?:not |very |so |really )?(?:happy|sad|angry|mad|here|there|away|late|early|coming|asking|calling|waiting|sick|ill|tired|busy|great|nice|awesome|funny|crazy|right|wrong|annoying|it|that|this|going to)\b).{{2,120}}",
            "fact",
            CLEAR,
            as_told_of,
        ),
        rule(
            "people",
            rf"(?:ask|ping|contact|e-?mail|go to|talk to|check with) {NAME} (?:about|for|before|when|if|whenever) (?!(?:it|this|that|the (?:bug|error|issue))\b).{{3,100}}",
            "fact",
            PLAIN,
            as_said,
        ),
        # what someone does and has
        rule(
            "personal",
            r"i (?P<verb>lead|manage|own|maintain|head|report to|study|play|drive|teach|coach|collect|practi[cs]e|commute|volunteer|major in|specialize in|specialise in|suffer from|take care of|live|rent|ride|wear|follow|identify as|go by|train for|freelance|work) (?!to\b)(?P<rest>(?!(?:it|that|this|these|those|them|around|along|with (?:the|it|this)|down|up|on (?:the|a|this|that|my|it)|(?:the|an?) (?:bug|issue|ticket|problem|fix|feature|error|tests?|code|function|file|instructions|docs|steps|tutorial|guide))\b).{2,120})",
            "fact",
            PLAIN,
            the_user,
        ),
        rule(
            "personal",
            rf"{I_AM}(?P<neg>not )?(?P<rest>(?:responsible for|in charge of|the (?:[\w-]+ ){{0,3}}(?:lead|owner|maintainer|cto|ceo|cfo|pm|head|director|founder|only \w+|sole \w+)|an? (?:[\w-]+ ){{0,3}}(?:lead|cto|ceo|pm|director|intern|sre|dba|devops|tester|vp|trainee|apprentice|phd student|barista|baker|farmer|plumber|mechanic|driver|salesperson|recruiter|dad|mom|mum|widower?|buddhist|muslim|christian|introvert|extrovert|insomniac|homeowner|expat|immigrant|minor)|on the (?:[\w-]+ ){{1,3}}team|learning (?!(?:about|how|that|this|the|a lot|a ton|so|more)\b)|studying |training for|self-employed|freelancing|unemployed|single|widowed|engaged|fluent in|blind|autistic|hard of hearing|six|five|\d+ ?(?:cm|kg|years)|intolerant|lactose|sober|jewish|catholic|atheist)\b.{{0,100}})",
            "fact",
            CLEAR,
            the_user_is,
        ),
        rule(
            "personal",
            r"i (?P<verb>have|own) (?P<rest>no (?:known |food |other )*(?:allerg(?:y|ies)|pets|kids|children|siblings|car|dietary \w+|medical \w+|tattoos|landline|tv|driver'?s licen[cs]e|experience with .{2,40})\b.{0,60})",
            "fact",
            CLEAR,
            the_user,
        ),
        rule(
            "personal",
            r"i (?P<verb>don't have|do not have) (?P<rest>(?:any |an? )?(?:known |food )*(?:allerg(?:y|ies)|pets|kids|children|siblings|car|dietary \w+|medical conditions?|tv|driver'?s licen[cs]e|smartphone|admin rights|sudo|access to (?!it|that|this|the).{2,40})\b.{0,60})",
            "fact",
            CLEAR,
            the_user,
        ),
        rule(
            "personal",
            r"i (?P<verb>have|own|run) (?P<rest>(?:an? |two |three |four |\d+ )(?:[\w'+-]+ ){0,3}(?:allergy|degree|phd|house|flat(?! tire)|apartment|car|motorcycle|bike|boat|garden|farm|macbook|laptop|thinkpad|pixel|iphone|android|business|company|startup|shop|bakery|restaurant|blog|podcast|newsletter|youtube channel|homelab|nas|raspberry pi|years of experience|pacemaker|tattoo|mortgage|subscription|blood type|disability|condition)s?\b(?! (?:issue|problem|question)).{0,80})",
            "fact",
            CLEAR,
            the_user,
        ),
        rule(
            "personal",
            r"i (?:(?:grew up|was raised) (?:in|on|near|with|as|speaking|outside)|was born (?:in|on|at|near)|went to (?:school|college|university)|studied (?!the|this|that|it)|majored|graduated|speak|spent \w+ years)\b(?! (?:it|that|this)\b) .{2,100}",
            "fact",
            CLEAR,
            as_told_of,
        ),
        rule(
            "personal",
            r"i(?:'ve| have) been (?!(?:trying|looking|thinking|wondering|waiting|debugging|meaning|working on (?:this|that|the)|stuck|getting|seeing|reading|asking|told)\b)[\w-]+ .{0,60}?(?:for|since) (?=.*(?:years?|months|decades?|\d{4})).{2,60}",
            "fact",
            CLEAR,
            as_told_of,
        ),
        rule(
            "personal",
            rf"my (?:[\w-]+ ){{0,2}}(?:email|e-mail|phone(?: number)?|mobile|address|postcode|zip code|github(?: handle| username| account)?|username|handle|nickname|surname|last name|first name|middle name|initials|car|bike|laptop|computer|os|operating system|shell|terminal|keyboard|browser|phone|diet|religion|height|weight|blood group|star sign|hobby|hobbies|working hours|office hours|schedule|availability|commute|salary|rent|lunch break|bedtime)(?: \w+)? (?:is|are) {_PASSING_STATE}.{{2,100}}",
            "fact",
            CLEAR,
            as_told_of,
        ),
        rule(
            "personal",
            r"we(?:'re| are) (?:an? |the )(?:[\w,'-]+ ){0,5}(?:team|company|startup|agency|studio|shop|family|couple|non-?profit|school|charity|lab|group|bank|hospital|university|consultancy|cooperative|co-op)\b(?! (?:that|which) (?:is|are) (?:trying|looking))(?: (?:of|in|from|based|building|with|that|making|working|at|for)\b.{1,100})?",
            "project",
            CLEAR,
            as_said,
        ),
        rule(
            "project",
            rf"our (?!(?:first|second|last|next)\b)(?:[\w'/&+.#-]+ ){{0,3}}?(?!(?:{CODE}) )[\w'/&+.#-]+ (?:(?:has|have) (?=(?:an?|no|only|about|around|over|two|three|four|five|six|\d|(?-i:[A-Z])))(?!an? (?:bug|problem|issue|meeting|call|question))|(?:costs?|allows?|includes?|consists? of|lasts?|serves?|offers?|goes to|comes from|starts with|ends with|begins? with|holds?|takes) (?!(?:forever|ages|too|so|long|a while|it|that|this)\b)).{{2,120}}",
            "project",
            PLAIN,
            as_told_of,
        ),
        rule(
            "project",
            rf"(?!(?:tests|changes|errors|things|these|those|bugs|issues|problems|results|values|lines|files|requests)\b){_PLURAL} (?:{_LIVES}|(?:go|happen|come|start|begin|end|live|are (?:made|done|reviewed|named|cut|sent|handled|kept|paid|billed|released|shipped|prefixed|sorted|signed|approved)) (?:in|from|on|at|by|to|via|through|with|for|under|after|before)) (?!(?:it|that|this|a row|order|vain|the (?:way|wrong))\b).{{2,120}}",
            "project",
            PLAIN,
            as_told_of,
        ),
        rule(
            "project",
            r"we (?:(?:only|mostly|mainly|also|always) )?(?:sell|build|make(?= (?!an? )\w+)|serve|operate|bill|hire|own|rent|develop|maintain|provide|offer|manage|track|work(?! (?:well|together|hard|great|fine))|live|speak|have(?= (?:\d|two|three|four|five|six|seven|eight|nine|ten|twelve|a dozen|about \d|around \d|over \d|(?:an?|no|strict) (?:[\w-]+ ){0,2}(?:policy|rule|rules|office|contract|licen[cs]e|cluster|server|team|client|customer|freeze|budget|limit|house|dog|cat|garden)\b))|follow|run|employ|import|export|publish|teach|practi[cs]e|invoice|charge) (?!(?:it|that|this|these|those|them|to|sure|been|no idea|on (?:the|a|this|that|it)|out|up|an? (?:problem|bug|meeting|call|question|issue|look|list|chat|error|minute|few)|the (?:tests?|same|code|build|function|bug|issue|right|time))\b)(?!\w+ed\b).{3,140}",
            "project",
            PLAIN,
            as_said,
        ),
    )
