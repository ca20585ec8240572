"""The quality gates for feedback and facts that nobody asked to store: spec 3's recurs, actionable and right home, part by part.

Recurs is specificity and scope of the situation and of what to do; actionable is behavioral for the action, or for what a fact says; right home is
documentation. What was done and what it led to are told of one occasion, as they should be, and are not judged.
"""

import re
from collections.abc import Iterator

from engram.gates.quality import Pattern, behavioral, better_home, documentation, pattern, scope, specificity
from engram.model.forms import FEEDBACK, form_name
from engram.model.memory import Memory
from engram.text.display import quote_text
from engram.text.polarity import normalize_statement
from engram.text.word_tables import find_hedge

__all__ = ["form_problems"]

_STEP = re.compile(r"\b(?:then|next|afterwards|after that|finally|lastly|step \d+)\b|(?:^|\s)\d+[.)]\s", re.IGNORECASE)
_MOST_STEPS = 2
_GLOB = re.compile(r"(?<!\w)\*{1,2}[\w./*-]{0,100}\.\w+|\*\*/|\b\w+/\*")
_FILE = re.compile(
    r"(?<![\w-])[\w-]++\.(?:py|ts|tsx|js|go|rs|java|md|toml|ya?ml|json|sql|sh|c|h|cpp|rb):\d+|\w\(\)(?=$|[\s.,])"
)


def form_problems(memory: Memory) -> Iterator[tuple[str, str]]:
    """Each quality gate and why feedback or a fact does not pass it; "" where it does."""
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
    """The problem, where the text is in the language of the tables."""
    return problem if found.english else ""


def _actionable(action: Pattern) -> str:
    """Why an action is none that somebody could take: it reports, guesses or asks."""
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
    """Why a situation does not come again: it names a day, a ticket, a commit or "this" one."""
    days = [number for number in normalize_statement(situation.text).numbers if number.kind == "date"]
    if days:
        return (
            f"its situation is about a single occasion ({quote_text(str(days[0]))}); name the activity and its domain"
        )
    problem = specificity(situation) if situation.english else ""
    is_vague = problem.startswith("too vague")
    return "" if is_vague or not problem else f"its situation is {problem}; name the activity and its domain"
