"""The quality gates for autonomous capture: whether a statement, feedback or a fact is worth keeping.

Behavioral, Documentation, Specificity and Scope are rules over word tables (`data/quality.txt`); Redundancy is
`gates.comparison.find_covering_memory`. The tables are English: text in another language passes unchecked and, like all autonomous
capture, waits for review. Spec 1 expects 30–50 % of raw patterns to pass.
"""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache

from engram.gates.tables import phrases, plain, table_text
from engram.model.lazy import dataclass
from engram.model.memory import Memory
from engram.model.types import FEEDBACK, form_name
from engram.text.display import quote_text
from engram.text.statements import normalize_statement
from engram.text.tokens import split_sentences
from engram.text.words import find_hedge

__all__ = [
    "MIN_IMPORTANCE",
    "QUALITY_GATES",
    "Pattern",
    "behavioral",
    "better_home",
    "documentation",
    "form_problems",
    "importance_of",
    "pattern",
    "scope",
    "specificity",
    "triviality_problem",
]

_MIN_ENGLISH_WORDS = 1
_MOST_FOREIGN_LETTERS = 0.3
# One content word can be a topic, but not a rule.
_MIN_SPECIFIC_WORDS = 2

_COMMAND = re.compile(
    r"`[^`]+`|(?<!\w)--?[a-z]|\b(?:make|npm|pnpm|yarn|pip|uv|cargo|go|git|docker|kubectl|pytest|cd|ls|curl) \w"
)
_REFERENCE = re.compile(
    r"(?<!\w)#\d+|\b[A-Z]{2,}-\d+\b|\bline \d+|\bcommit [0-9a-f]{7,}|\b[0-9a-f]{12,40}\b|\d{1,2}:\d{2}(?::\d{2})?\b.{0,200}?\b(?:today|log)"
)
_PLACE = re.compile(
    r"(?<![\w.-])[\w.-]++/[\w./-]+|\b\w+\.(?:py|ts|js|go|rs|java|md|toml|ya?ml|json|sql|sh|c|h|cpp|rb)\b|\w\(\)"
)
# The first word of each clause: "…, so discard the first runs".
_OPENING = re.compile(r"(?:^|(?<=[,;:.!] ))\W{0,20}(?:(?:so|then|and|please|but) )?([a-z']+)")
_CONDITIONS = frozenset(("if", "when", "whenever", "before", "after", "unless", "once"))
_NARRATES_PAST = re.compile(
    r"^(?:\w+ly )?(?:i|we|the assistant|claude|the agent) (?:(?!need)\w+ed|ran|did|made|wrote|got|had|saw|went|took|began|found)\b"
)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A captured text, prepared for the word tables."""

    text: str
    prepared: str
    words: frozenset[str]
    english: bool

    def has(self, section: str) -> str:
        """The first phrase from a section of the table that occurs in the text, "" for none."""
        return phrases("quality.txt", section).find(self.prepared, self.words)


def pattern(text: str) -> Pattern:
    """Prepare a text for the quality gates."""
    prepared = plain(text)
    words = frozenset(prepared.split())
    return Pattern(text, prepared, words, _is_english(text, words))


def _is_english(text: str, words: frozenset[str]) -> bool:
    if not text.isascii():
        letters = [char for char in text if char.isalpha()]
        if sum(not char.isascii() for char in letters) > _MOST_FOREIGN_LETTERS * len(letters):
            return False
    return len(words) < 4 or len(words & phrases("quality.txt", "english").words) >= _MIN_ENGLISH_WORDS


def behavioral(found: Pattern) -> str:
    """Would an agent that knows this act differently? Returns why not, "" if it would."""
    narrated = _NARRATES_PAST.match(found.prepared.strip())
    narration = found.has("narration") or (narrated[0] if narrated else "")
    if narration and not (found.has("consequence") and found.has("directive")):
        return f"reports what was done ({quote_text(narration)}), not what to do"
    if hedged := find_hedge(found.prepared, "guess", "tentative"):
        return f"a guess ({quote_text(hedged)}), too uncertain to act on"
    if found.has("directive") or found.has("consequence") or found.has("person") or _commands(found):
        return ""
    return "describes a state; an agent would do nothing differently"


def documentation(found: Pattern) -> str:
    """Is it judgement (why, when) rather than reference (where, what, how)? Returns why not, "" if it is."""
    if found.has("judgement"):
        return ""
    place = found.has("whereabouts")
    if place and not found.has("person"):
        return f"says where or what something is ({quote_text(place)}); {better_home('reference')}"
    first = found.prepared.split(maxsplit=1)[0] if found.prepared.strip() else ""
    how = first in phrases("quality.txt", "howto").words and (first != "use" or " to " in found.prepared)
    if how and _COMMAND.search(found.text):
        return f"gives a command; {better_home('command')}"
    if _PLACE.search(found.text) and not found.has("directive"):
        return f"refers to a location in the code; {better_home('place')}"
    return ""


@lru_cache(maxsize=8)
def better_home(kind: str) -> str:
    """Where this kind of content belongs instead, as the end of a reason (`data/homes.txt`)."""
    rows = (line.partition("=") for line in table_text("homes.txt"))
    return f"a better home is {next(home.strip() for name, _, home in rows if name.strip() == kind)}"


def specificity(found: Pattern) -> str:
    """Is it specific enough to act on, and about more than one occasion? Returns why not, "" if it is."""
    if occasion := found.has("oneoff") or ("" if _commands(found) else found.has("oneoff unless commanded")):
        return f"about a single occasion ({quote_text(occasion)})"
    if reference := _REFERENCE.search(found.text):
        return f"about a single occasion ({quote_text(reference[0][:40])})"
    vague = phrases("quality.txt", "vague").words
    surfaces = [
        word
        for word in normalize_statement(found.text).raw
        if len(word) > 1 and word not in vague and word[0].isalnum()
    ]
    english = phrases("quality.txt", "english").words
    if len([word for word in dict.fromkeys(surfaces) if word not in english]) < _MIN_SPECIFIC_WORDS:
        return "too vague to act on"
    return ""


def scope(found: Pattern) -> str:
    """Will it still matter in three months? Returns why not, "" if it will."""
    if passing := found.has("ephemeral"):
        return f"will not matter in three months ({quote_text(passing)})"
    return ""


def _commands(found: Pattern) -> bool:
    """Whether a clause starts with an imperative, or the text with a condition."""
    openings = _OPENING.findall(found.text.casefold())
    return bool(openings) and (openings[0] in _CONDITIONS or not _imperatives().isdisjoint(openings))


def _imperatives() -> frozenset[str]:
    return phrases("imperatives.txt", "imperative").words


QUALITY_GATES: tuple[tuple[str, Callable[[Pattern], str]], ...] = (
    ("behavioral", behavioral),
    ("documentation", documentation),
    ("specificity", specificity),
    ("scope", scope),
)


# The scale of spec 5 (reference/5 §2.5): a base, markers up, hedges down; below LEAST_IMPORTANCE nothing is stored.
MIN_IMPORTANCE = 0.2
_TRIVIAL = 0.1
_BASE = 0.5
_CRITICAL, _HIGH, _HEDGE = 0.20, 0.12, -0.15
_BY_TYPE = {
    "correction": 0.15,
    "principle": 0.12,
    "constraint": 0.11,
    "convention": 0.11,
    "behavioral": 0.10,
    "procedural": 0.10,
    "preference": 0.10,
    "commitment": 0.10,
    "decision": 0.08,
    "relationship": 0.05,
    "skill": 0.05,
    "moment": 0.03,
    "entity": 0.02,
}
_LONG, _LONGEST_BONUS = 200, 0.1
_NUMBERED = re.compile(r"\d{2,}|version|api|config")
_LETTER = re.compile(r"[^\W\d_]")
_PATH = re.compile(r"(?<!\S)[`\"']?(?:~|[A-Za-z]:)?(?:[/\\][\w.@+-]+)+[/\\]?[`\"']?(?=[\s.,;:!?)]|$)")
_VERSION = re.compile(r"v?\d+(?:\.\d+)*")


def triviality_problem(memory: Memory) -> str:
    """Why a captured text is too trivial to store; "" if it is not."""
    words = plain(memory.statement).split()
    if not _LETTER.search(memory.statement):
        return "the statement contains no words"
    if _is_small_talk(words):
        return "small talk: only a greeting, thanks or an acknowledgement"
    if _is_surroundings(memory.statement):
        return "says only what the machine shows: a system, a path or an account"
    if _is_question(memory.statement):
        return "a question states no fact; store the answer instead"
    if importance_of(memory.statement, memory.type) < MIN_IMPORTANCE or memory.importance < MIN_IMPORTANCE:
        return f"importance is below {MIN_IMPORTANCE}"
    return ""


def importance_of(text: str, type_name: str) -> float:
    """The estimated importance of a text, 0 to 1, from its words, its type and its length."""
    prepared = plain(text)
    words = frozenset(prepared.split())
    if _is_small_talk(prepared.split()):
        return _TRIVIAL
    score = _BASE + _BY_TYPE.get(type_name, 0.0)
    for section, weight in (("critical", _CRITICAL), ("high", _HIGH)):
        score += weight if phrases("trivial.txt", section).find(prepared, words) else 0.0
    score += _HEDGE if find_hedge(prepared, "guess", "possible", "vague") else 0.0
    score += min(max(len(text) - _LONG, 0) / 1000, _LONGEST_BONUS)
    score += 0.03 if _NUMBERED.search(prepared) else 0.0
    return round(min(max(score, 0.0), 1.0), 2)


def _is_small_talk(words: list[str]) -> bool:
    """Whether the text is small talk, judged by its words, never by length: "I use vim" is short and worth storing."""
    filler = phrases("trivial.txt", "filler")
    return all(word.strip("'-") in filler.words or word in filler.runs for word in words)


def _is_surroundings(text: str) -> bool:
    """Whether a text names only the operating system, a path or an account: "The user is on Linux", "/home/ana/src"."""
    names = phrases("trivial.txt", "surroundings").words
    words = _PATH.sub(" ", text).casefold().replace("’", "'").split()
    left = [word for word in (word.strip(".,;:!?\"'`()") for word in words) if word and word not in names]
    identified = not {"username", "login", "identifier"}.isdisjoint(words)
    return all(_VERSION.fullmatch(word) for word in left) or (identified and len(left) == 1)


def _is_question(text: str) -> bool:
    sentences = split_sentences(text)
    return bool(sentences) and all(part.endswith(("?", "？", "؟")) for part in sentences)


_STEP = re.compile(r"\b(?:then|next|afterwards|after that|finally|lastly|step \d+)\b|(?:^|\s)\d+[.)]\s", re.IGNORECASE)
_MOST_STEPS = 2
_GLOB = re.compile(r"(?<!\w)\*{1,2}[\w./*-]{0,100}\.\w+|\*\*/|\b\w+/\*")
_FILE = re.compile(
    r"(?<![\w-])[\w-]++\.(?:py|ts|tsx|js|go|rs|java|md|toml|ya?ml|json|sql|sh|c|h|cpp|rb):\d+|\w\(\)(?=$|[\s.,])"
)


def form_problems(memory: Memory) -> Iterator[tuple[str, str]]:
    """Each quality gate and why feedback or a fact fails it; "" if it passes.

    "Recurs" checks specificity and scope of the situation and the action. "Actionable" checks that the action, or the
    content of a fact, changes behavior. "Right home" checks for documentation. Behavior and impact rightly describe one
    occasion, so they are not judged.
    """
    situation = pattern(memory.situation)
    if form_name(memory.form) == FEEDBACK:
        said = pattern(memory.form.get("action", ""))
        yield "behavioral", _actionable(said)
        yield "documentation", _home_of_action(said)
    else:
        said = pattern(memory.statement)
        yield "behavioral", _find_telling(said)
        yield "documentation", _home_of_fact(said)
    # A short action is specific in its situation: "use tabs", when formatting code.
    whole = pattern(f"{memory.situation}: {said.text}")
    yield "specificity", _one_occasion(situation) or _of(whole, specificity(whole))
    yield "scope", _of(situation, scope(situation)) or _of(said, scope(said))


def _of(found: Pattern, problem: str) -> str:
    """The problem, if the text is in the language of the tables."""
    return problem if found.english else ""


def _actionable(action: Pattern) -> str:
    """Why an action cannot be carried out: it reports, guesses or asks."""
    if not action.english or not action.text.strip():
        return "" if action.text.strip() else "names no action"
    if action.text.rstrip().endswith("?"):
        return "asks a question instead of naming an action"
    problem = behavioral(action)
    # An action need not be an imperative of the table: "take a backup first", "backups before each deploy".
    return "" if problem.startswith("describes a state") else problem


def _find_telling(fact: Pattern) -> str:
    if not fact.english:
        return ""
    if hedged := find_hedge(fact.prepared, "guess", "tentative"):
        return f"a guess ({quote_text(hedged)}), too uncertain to act on"
    return ""


def _home_of_action(action: Pattern) -> str:
    if len(_STEP.findall(action.text)) >= _MOST_STEPS:
        return f"describes a procedure of several steps; {better_home('steps')}"
    if found := _GLOB.search(action.text):
        return f"applies to files by their paths ({quote_text(found[0])}); {better_home('files')}"
    return _of(action, documentation(action))


def _home_of_fact(fact: Pattern) -> str:
    if found := _FILE.search(fact.text):
        return f"says where something is in the code ({quote_text(found[0])}); {better_home('place')}"
    if not fact.english or fact.has("judgement"):
        return ""
    place = fact.has("whereabouts")
    return f"says where or what something is ({quote_text(place)}); {better_home('reference')}" if place else ""


def _one_occasion(situation: Pattern) -> str:
    """Why a situation does not recur: it names a day, a ticket, a commit or "this" one."""
    days = [number for number in normalize_statement(situation.text).numbers if number.kind == "date"]
    if days:
        return (
            f"its situation is about a single occasion ({quote_text(str(days[0]))}); name the activity and its domain"
        )
    problem = specificity(situation) if situation.english else ""
    is_vague = problem.startswith("too vague")
    return "" if is_vague or not problem else f"its situation is {problem}; name the activity and its domain"
