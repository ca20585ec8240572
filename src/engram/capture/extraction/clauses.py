"""Splits a turn into its author's clauses, finds reasons to doubt a clause, and rewrites it to be readable by itself.

Pasted and quoted text is left out. A clause is doubted if it is a question, a guess, a joke, only momentary, over, or
about something it does not name. "I prefer tabs" becomes "The user prefers tabs.".
"""

import re
from collections.abc import Iterator

from engram.model.lazy import dataclass
from engram.text.tokens import sentence_spans
from engram.text.words import PAST_AUXILIARIES, hedge_pattern, is_past

_LEADS = re.compile(
    r"^\W*(?:(?:hi|hey|hello|ok|okay|oh|so|well|yes|yeah|yep|right|great|perfect|cool|sure|thanks|thank you|also|and|but|plus|"
    r"btw|by the way|fyi|for your information|for the record|just so you know|(?:just )?to be clear|honestly|personally|"
    r"for context|quick update|small update|update|news|as you know|one more thing|another thing|quick note|heads[- ]up|listen|look|now(?= i\b)|as i (?:said|told you)|"
    r"important|reminder)(?:\s*[,:!.—–-]+\s*|\s+))+",
    re.IGNORECASE,
)
_POLITELY = (
    r"(?:(?:can|could|would|will) you (?:please )?|(?:i )?(?:want|need|would like|'d like) you to |please |do )?"
)
_RECALLED = r"(?:me|us|when|how|what|why|where|who|if|the time|that time|those|to (?!.*\b(?:always|never|before|after|when|whenever|every|each|if|for all)\b)|for (?:me|us)|it|this|that (?:for|one|time|day)|that$)\b"
_EXPLICIT = re.compile(
    rf"^{_POLITELY}(?:(?:always )?remember|(?:keep|bear) in mind|(?:don't|do not|never) forget|(?:make|take) a note|note down|note(?=:|,? that\b)|memori[sz]e|"
    rf"save(?= that| to memory)|(?:store|record)(?= that)|write down(?= that)|know(?= that))"
    rf"(?!,? {_RECALLED})(?: (?:to memory|for (?:later|next time|the future|future reference)))?(?: (?:that|of the fact that)|:|,| -)*\s+"
    rf"|^for (?:future|your) reference[,:]? ",
    re.IGNORECASE,
)
_TRAILING = re.compile(
    r"(?:[,\s]++(?:please|thanks|thank you|thx|ok|okay|btw|by the way|fyi|though|too|as well|cheers|got it|alright))*+[\s.!…,;:]*+$",
    re.IGNORECASE,
)
# A remark about the conversation, not the fact: ", so that's good to know".
_AFTERTHOUGHT = re.compile(
    r",? so (?:that's|it's|that|let's|i'll|i'd|i'm (?:happy|glad|looking|wondering)|i can relate|just|something|maybe|please|can|could|what|how)\b.*$",
    re.IGNORECASE,
)
_SWAPPED = {
    "i'm": "they're", "i've": "they've", "i'll": "they'll", "i'd": "they'd", "i": "they", "me": "them", "my": "their",
    "mine": "theirs", "myself": "themselves",
}  # fmt: skip
_FIRST_PERSON = re.compile(r"(?<![\w'-])(?:i'm|i've|i'll|i'd|i|me|my|mine|myself)(?![\w'-]|\.\w|/)", re.IGNORECASE)
_IRREGULAR = {
    "am": "is",
    "have": "has",
    "do": "does",
    "don't": "doesn't",
    "do not": "does not",
    "haven't": "hasn't",
    "go": "goes",
}
_UNCHANGING = frozenset(
    ("can't", "cannot", "would", "must", "will", "can", "no", "was", "should", "shouldn't", "won't", "may", "might", "could",
     "couldn't", "mustn't", "wouldn't", "didn't", "had", "did", "not")
)  # fmt: skip
_NAMED = {
    "i'm": "the user is", "i've": "the user has", "i'll": "the user will", "i'd": "the user would", "my": "the user's",
    "mine": "the user's", "myself": "the user",
}  # fmt: skip
_MY = re.compile(r"my (?=\S)", re.IGNORECASE)
_SHORTENED = re.compile(r"(i'm|im|i am|i've|i'll|i'd)\s+", re.IGNORECASE)
_LONG = {"i'm": "is", "im": "is", "i am": "is", "i've": "has", "i'll": "will", "i'd": "would"}
_I_DO = re.compile(
    r"i (?P<adv>(?:(?:always|never|only|ever|often|also|just|still|now|no longer|sometimes|\w+ly) ){0,2})(?P<verb>do not|[\w']+)\s+",
    re.IGNORECASE,
)


_FORGET = re.compile(
    r"(?:can you |could you |you can |you may )?(?:please |kindly |now )?(?:forget|unlearn|erase|don't remember) (?:that|what|everything|anything) (?:i|we|my|our|he|she|they)\b",
    re.IGNORECASE,
)


def strip_asides(clause: str) -> tuple[str, bool]:
    """The clause without greetings and asides, and whether the speaker asked to remember it."""
    bare = _TRAILING.sub("", _AFTERTHOUGHT.sub("", _LEADS.sub("", clause.replace("’", "'"))))
    request = _EXPLICIT.match(bare)
    if request:
        bare = _TRAILING.sub("", _LEADS.sub("", bare[request.end() :]).removeprefix("to ").rstrip("?"))
    return bare.strip(), request is not None


def is_remember_request(sentence: str) -> bool:
    """Whether a sentence starts with a request to remember something."""
    return strip_asides(sentence)[1]


def is_forget_request(sentence: str) -> bool:
    """Whether a sentence explicitly asks to forget something: "Forget that I …"."""
    return bool(_FORGET.match(strip_asides(sentence)[0]))


def in_third_person(text: str) -> str:
    """Any clause in the third person: "I'm seeing a doctor" → "The user is seeing a doctor"."""
    if found := _MY.match(text):
        return f"The user's {swap_pronouns(text[found.end() :])}"
    if found := _SHORTENED.match(text):
        return f"The user {_LONG[found[1].lower()]} {swap_pronouns(text[found.end() :])}"
    if found := _I_DO.match(text):
        verb, rest = found["verb"].lower(), text[found.end() :]
        past = is_past(verb, same=False) or verb in PAST_AUXILIARIES
        return f"The user {found['adv'].lower()}{verb if past else third_person(verb)} {swap_pronouns(rest)}"
    return replace_speaker(text)


def replace_speaker(text: str) -> str:
    """A clause about something else, with the speaker named as the user: "Invoices go to me" → "Invoices go to the user"."""
    found = _FIRST_PERSON.search(text)
    if found is None:
        return text.strip()
    before, pronoun, after = text[: found.start()], found[0].lower(), text[found.end() :]
    verb = re.match(r" ([\w']+)", after) if pronoun == "i" else None
    if verb:
        form = verb[1].lower()
        past = is_past(form) or form in PAST_AUXILIARIES
        return f"{before}the user {form if past else third_person(form)}{swap_pronouns_in_tail(after[verb.end() :])}"
    return f"{before}{_NAMED.get(pronoun, 'the user')}{swap_pronouns_in_tail(after)}"


def swap_pronouns_in_tail(text: str) -> str:
    """Like `swap_pronouns`, but keeps a leading space."""
    return f"{' ' if text[:1].isspace() else ''}{swap_pronouns(text)}"


def user_clause(verb: str, rest: str, before: str = "") -> str:
    """A first-person clause in the third person; `before` is an adverb between subject and verb."""
    adverb = f"{before.strip().lower()} " if before.strip() else ""
    return f"The user {adverb}{third_person(verb.lower())} {swap_pronouns(rest)}"


def swap_pronouns(text: str) -> str:
    """The text with first-person words in the third person: "my" → "their"."""
    return _FIRST_PERSON.sub(lambda word: _SWAPPED[word[0].lower()], text).strip()


def third_person(verb: str) -> str:
    """The third-person form of a verb: "prefer" → "prefers"; in a phrase the first word changes."""
    for phrase, changed in _IRREGULAR.items():
        if verb == phrase or verb.startswith(f"{phrase} "):
            return changed + verb[len(phrase) :]
    first, _, rest = verb.partition(" ")
    if first in _UNCHANGING:
        return verb
    ending = "es" if first.endswith(("s", "sh", "ch", "x", "z", "o")) else "s"
    changed = f"{first[:-1]}ies" if re.search(r"[^aeiou]y$", first) else first + ending
    return f"{changed} {rest}" if rest else changed


def sentence(text: str) -> str:
    """The text as one sentence, with a capital and a full stop."""
    text = " ".join(text.split()).rstrip(" ,;:.!")
    return f"{text[:1].upper()}{text[1:]}."


QUOTATION_FILLER = "\x00"
"""Replaces each character of an inline quotation; a clause that contains it quotes somebody."""
MAX_TURN_CHARS = 100_000
"""Characters read of one turn; a longer one is a document."""
MAX_CLAUSES = 2_000
"""Distinct clauses read of one turn; more is a pasted log."""
MAX_READ_SENTENCE_CHARS = 1_000
"""Longer sentences are not read."""
MAX_SHOWN_CHARS = 200
"""The number of characters shown of unread text."""

_FENCE = re.compile(r"(```|~~~).*?(?:\1|\Z)", re.DOTALL)
_QUOTED_LINE = re.compile(r"^[ \t]*(?:>|\|).*$", re.MULTILINE)
_INDENTED = re.compile(r"^(?: {4}|\t).*$", re.MULTILINE)
_MAIL = re.compile(r"^(?:From|To|Subject|Sent|Date|Cc|Re|Fwd?):[ \t]?\S.*\Z", re.MULTILINE | re.DOTALL | re.IGNORECASE)
_XML = re.compile(
    r"<([a-z][\w-]*)\b[^<>]*>.*?</\1>|^<[a-z][\w-]*\b[^<>]*>.*\Z", re.DOTALL | re.IGNORECASE | re.MULTILINE
)
_PASTED = re.compile(
    r"^(?![^\n]*\b(?:my|our|i|we)\b)[^\n]*\b(?:here(?:'s| is| are)|below|following|pasted?|says|said|wrote|reads|log|output|error|"
    r"email|e-mail|message|article|document|excerpt|quote|readme|text)\b[^\n]*:[ \t]*\n.*\Z",
    re.MULTILINE | re.DOTALL | re.IGNORECASE,
)
_QUOTATION = re.compile(
    r"\"[^\"\n]*\"|“[^”\n]{0,1000}”|«[^»\n]{0,1000}»|(?<!\w)'[^'\n]{12,}'(?!\w)|(?<!\w)‘[^’\n]{12,1000}’(?!\w)"
)
# A line broken for width may go on with a word that begins no sentence …
_GOING_ON = re.compile(r"(?<=[^\s.!?:;])\n(?=(?:over|than|of|to|by|into|with|without|or|nor|per|via)\b)")
# … or has about the width of all the others.
_FEWEST_LINES, _NARROWEST, _WIDEST, _EVEN = 4, 50, 120, 0.85
_BREAK = re.compile(r"(?<=[^\s.!?:;])\n(?=[a-z])")
_BULLET = re.compile(r"^[ \t]*(?:[-*•–]|\d{1,2}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?")
_JOINT = re.compile(
    r"(?:(?:[,;]|(?<![,;\s]))\s++(?:and|but)\s++|;\s++)(?=(?:(?:also|now|then)\s+)?(?:i|i'm|i’m|i've|my|we|we're|our|always|never|please)\b)",
    re.IGNORECASE,
)
_REPORTS = re.compile(
    r"\b(?:said|says|say that|they say|people say|the saying|told|tells|claim(?:s|ed)?|wrote|writes|asked|asks|according to|apparently|reportedly|thinks|"
    r"believes|insists|wants me|suggests|recommends)\b",
    re.IGNORECASE,
)
_OWN_WORDS = re.compile(r"\b(?:i|we)(?:'ve| have| had)? (?:already |just )?(?:said|told|wrote|asked)\b", re.IGNORECASE)


# In chat a request or a question often follows a statement after only a comma.
_ASKS_NEXT = re.compile(
    r"(?:[,;]|\s[-–—])\s+(?:(?:so|and|but|then)\s+)?(?=(?:can|could|would|will) (?:you|u)\b)", re.IGNORECASE
)
_QUESTION_NEXT = re.compile(
    r"(?:[,;]|\s[-–—])\s+(?:(?:so|and|but|then)\s+)?"
    r"(?=(?:(?:can|could|would|will) (?:you|u)|what|how|why|where|which|who|is|are|do|does|did|should|any)\b[^,;]*\?\W*$)",
    re.IGNORECASE,
)
_FEWEST_EACH = 3
"""The minimum number of words on both sides of such a comma."""


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause, its position in the turn, and the whole sentence it is part of."""

    text: str
    start: int
    sentence: str
    unread: str = ""
    """Why the clause is not read, if it or the turn is too long; then only its beginning is given."""

    @property
    def end(self) -> int:
        """The position after its last character."""
        return self.start + len(self.text)


def own_sentences(content: str) -> Iterator[Clause]:
    """The distinct sentences of a turn in its author's own words, in order.

    `text` is the sentence with quotations hidden, `sentence` the original; both have the same position. For a sentence
    or a turn that is too long, only the beginning of the excess is given, with the reason why it is not read.
    """
    own = _own_words(content[:MAX_TURN_CHARS])
    seen: set[str] = set()
    for start, end in (part for span in _sentences(own) for part in _without_run_on(own, *span)):
        text = own[start:end]
        bare = text.strip()
        if not bare or bare in seen:
            continue
        first = start + text.index(bare)
        if len(seen) == MAX_CLAUSES:
            yield _unread_clause(content, first, f"the turn has more than {MAX_CLAUSES:,} different sentences")
            return
        seen.add(bare)
        if len(bare) > MAX_READ_SENTENCE_CHARS:
            yield _unread_clause(content, first, f"a sentence of more than {MAX_READ_SENTENCE_CHARS:,} characters")
        else:
            yield Clause(bare, first, content[first : first + len(bare)])
    if content[MAX_TURN_CHARS:].strip():
        yield _unread_clause(
            content, MAX_TURN_CHARS, f"only the first {MAX_TURN_CHARS:,} characters of a turn are read"
        )


def _unread_clause(content: str, start: int, why: str) -> Clause:
    text = content[start : start + MAX_SHOWN_CHARS]
    return Clause(text, start, text, why)


def _without_run_on(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The span, split in two if a request or a question follows a statement."""
    sentence = text[start:end]
    joint = _ASKS_NEXT.search(sentence) or _QUESTION_NEXT.search(sentence)
    if joint is None or is_question(sentence):
        yield start, end
        return
    first, rest = sentence[: joint.start()], sentence[joint.end() :]
    if min(len(first.split()), len(rest.split())) < _FEWEST_EACH:
        yield start, end
    else:
        yield start, start + joint.start()
        yield start + joint.end(), end


def clauses_of(said: Clause) -> Iterator[Clause]:
    """The clauses of a sentence; each occurs verbatim at its position."""
    joints = list(_JOINT.finditer(said.text))
    cuts = [0, *(joint.end() for joint in joints)]
    ends = [*(joint.start() for joint in joints), len(said.text)]
    for first, last in zip(cuts, ends, strict=True):
        text = said.text[first:last]
        if bare := text.strip():
            yield Clause(bare, said.start + first + text.index(bare), said.text)


def is_reported(sentence: str) -> bool:
    """Whether a sentence reports somebody else's statement."""
    return bool(_REPORTS.search(_OWN_WORDS.sub("", sentence)))


def _own_words(content: str) -> str:
    """The turn with pasted and quoted text blanked out; every other character keeps its position."""
    for pattern in (_FENCE, _XML, _QUOTED_LINE, _INDENTED, _MAIL, _PASTED):
        content = pattern.sub(_blank, content)
    content = _QUOTATION.sub(
        lambda quote: quote[0] if len(quote[0].split()) < 3 else QUOTATION_FILLER * len(quote[0]), content
    )
    return (_BREAK if _is_wrapped(content) else _GOING_ON).sub(" ", content)


def _is_wrapped(content: str) -> bool:
    """Whether the lines of a turn were broken for width: all but the last are about equally long."""
    lengths = [len(line) for line in content.strip().split("\n")][:-1]
    return (
        len(lengths) >= _FEWEST_LINES and _NARROWEST <= max(lengths) <= _WIDEST and min(lengths) >= _EVEN * max(lengths)
    )


def _blank(found: re.Match[str]) -> str:
    return "\n" * len(found[0])


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    """The spans of the sentences, without the bullets of lists. A line end ends a sentence."""
    start = 0
    for line in text.split("\n"):
        bullet = _BULLET.match(line)
        yield from sentence_spans(text, start + (bullet.end() if bullet else 0), start + len(line))
        start += len(line) + 1


_FLAGS = re.IGNORECASE

QUOTATION = "it quotes somebody"
QUESTION = "it is a question"
GUESS = "it is a guess"
IRONY = "it may be ironic"
ENDED = "it is over"
QUALIFIED = "it is qualified"
MOMENTARY = "it is only for the moment"
UNCLEAR_REFERENCE = "it refers to something it does not name"

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
_MOMENTARY = re.compile(
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
_UNCLEAR_REFERENCE = re.compile(
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
    r"(?:\bnot|n't|n’t) (?:always|really|necessarily|usually|exactly|particularly|all that)\b", _FLAGS
)


_SENTENCE_DOUBTS = ((_GUESS, GUESS), (_IRONY, IRONY), (_PAST, ENDED), (_NOT_ALWAYS, QUALIFIED))


def doubts_about(clause: str, sentence: str) -> frozenset[str]:
    """The reasons to doubt a clause; empty if there are none."""
    found = {doubt for pattern, doubt in _SENTENCE_DOUBTS if pattern.search(sentence)}
    if QUOTATION_FILLER in clause:
        found.add(QUOTATION)
    if sentence.rstrip("\"')” ").endswith(("?", "？")) or is_question(clause):
        found.add(QUESTION)
    if _MOMENTARY.search(clause):
        found.add(MOMENTARY)
    if has_unclear_reference(clause):
        found.add(UNCLEAR_REFERENCE)
    return frozenset(found)


def is_question(clause: str) -> bool:
    """Whether a clause has the word order of a question."""
    return bool(_QUESTION.match(clause))


def has_unclear_reference(text: str) -> bool:
    """Whether a text refers to an earlier text. "It" in a reason at the end refers to the text itself."""
    if _UNCLEAR_REFERENCE.search(text):
        return True
    found = _IT.search(text)
    if found is None:
        return False
    reason = _REASON.search(text)
    return reason is None or reason.start() > found.start() or len(text[: reason.start()].split()) < 3
