"""Whether a sentence says what a project uses for what: "The linter is ruff", "Dependencies are managed with uv".

It names a role, an activity or an artefact of a project (`data/locality.txt`) as a known one, and says in the present what serves it.
What is said of a tool itself ("ruff is a fast linter", "the formatter of Go is gofmt") or advised ("tests should not sleep") is no such sentence.
"""

import re
from functools import lru_cache

from engram.gates.tables import phrases, plain

__all__ = ["toolchain"]

_TABLE = "locality.txt"
_PIECE = re.compile(r"(?<=[.!?;])\s+|\n+")
_COMMAND = re.compile(r"`[^`]+`")
_BY = "with|by|via|using|through|in|on|under|from|into|to|against|as"
_FREELY = r"(?:(?:always|only|also|usually|currently|now|all|both|automatically|locally|nightly) )*"
_NUMBER = r"(?:\d|two|three|four|six|eight)"


def toolchain(statement: str) -> str:
    """The words in which a statement says what a project uses for what; "" where it does not."""
    return next((found for piece in _PIECE.split(statement) if (found := _in_sentence(piece))), "")


def _in_sentence(sentence: str) -> str:
    raw = sentence.strip().casefold()
    if header := _header().match(raw):
        return header[1].strip()
    words = plain(_COMMAND.sub(" make it ", sentence)).strip()
    for pattern in _patterns():
        found = pattern.search(words)
        if found is not None and not _is_of_a_tool(sentence, words, found.end("what")) and not _praises(found[0]):
            return found[0].strip()
    return ""


def _praises(words: str) -> bool:
    return not phrases(_TABLE, "praise").words.isdisjoint(words.split())


def _is_of_a_tool(sentence: str, words: str, end: int) -> bool:
    """Whether what is named belongs to something with a name: "the formatter of Go", "the package manager for Node"."""
    after = words[end:].split()
    if len(after) < 2 or after[0] not in ("of", "for") or after[1] in ("the", "all", "every"):
        return False
    return any(word.strip("`.,").casefold() == after[1] and word[:1].isupper() for word in sentence.split())


@lru_cache(maxsize=8)
def _any(*sections: str) -> str:
    """An alternative of all entries, the longest first."""
    entries = {entry.strip() for section in sections for entry in _entries(section)}
    return "|".join(sorted(map(re.escape, entries), key=lambda entry: (-len(entry), entry)))


def _entries(section: str) -> list[str]:
    found = phrases(_TABLE, section)
    return [*found.words, *found.runs]


@lru_cache(maxsize=1)
def _header() -> re.Pattern[str]:
    """ "Linter: ruff", "Test command = make test"."""
    return re.compile(rf"[-*\s]*+((?:[\w.-]+ )?(?:{_any('roles', 'activities', 'artefacts')}))\s*(?::|=|→)\s*\S")


@lru_cache(maxsize=1)
def _patterns() -> tuple[re.Pattern[str], ...]:
    role, things = _any("roles"), _any("activities", "artefacts")
    kept = rf"(?:\w+ed|{_any('kept')})"
    what = rf"(?P<what>{role})\b"
    shapes = (
        # The linter is ruff · the test runner of the frontend uses vitest
        rf"^the (?:[\w-]+ ){{0,2}}?{what}(?: (?:of|for|in) (?:the|all|every) [\w-]+)? {_FREELY}(?:is|are|uses?|runs?|must be|has to be)\b",
        # Linter is ruff · line length is 100 · our minimum Python version is 3.11
        rf"^(?:[\w-]+ )?{what} {_FREELY}(?:is|are) (?:set to |limited to |at least |at most |capped at )?(?!an? |not )",
        rf"^(?:[\w-]+ )?{what} {_FREELY}(?:runs?|uses?|lives?) ",
        # Linting is done with ruff · dependencies are managed with uv
        rf"^(?:the |all )?(?:[\w-]+ )?(?P<what>{things}) (?:is|are) {_FREELY}{kept} (?:[\w-]+ ){{0,2}}?(?:{_BY})\b",
        # Type checking uses mypy · tests live in tests/
        rf"^(?:the |all )?(?:[\w-]+ )?(?P<what>{things}) {_FREELY}(?:uses?|follows?|rel(?:y|ies) on|go(?:es)? through) ",
        # branches are named after their ticket · pull requests need two approvals
        rf"^(?:the |all )?(?:[\w-]+ )?(?P<what>{things}) (?:is|are) {_FREELY}(?:named|called|tagged|numbered|prefixed|labelled|labeled) ",
        rf"^(?:the |all )?(?:[\w-]+ )?(?P<what>{things}) {_FREELY}(?:needs?|requires?) {_NUMBER}",
        rf"^(?:the |all )?(?:[\w-]+ )?(?P<what>{things}) {_FREELY}(?:lives?|runs?|happens?|go(?:es)?|sits?) (?:only )?(?:{_BY})\b",
        # pytest is the test runner · ruff is used for linting · uv manages the dependencies
        rf"\b(?:is|are) {_FREELY}the (?:[\w-]+ ){{0,2}}?{what}",
        rf"\b(?:is|are) {_FREELY}used (?:here )?(?:for|to) (?:[\w-]+ )?(?P<what>{things}|lint|format|test|build|deploy|release|type-check)\b",
        rf"\b(?:runs|handles|manages|checks|lints|formats|builds|deploys|serves|publishes) (?:the|all) (?:[\w-]+ )?(?P<what>{things}|code)\b",
        # run the tests with make test
        rf"\b(?:the|all) (?:[\w-]+ )?(?P<what>{things}|{role})(?: [\w-]+)? (?:with|using|via|by running) (?:{_any('runners')}) [\w-]",
    )
    return tuple(map(re.compile, shapes))
