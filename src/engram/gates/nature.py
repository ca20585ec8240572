"""Decides from its words whether a statement is about one project or holds everywhere, and whether it is an event or a fact."""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from engram.gates.tables import phrases, plain
from engram.model.lazy import dataclass
from engram.model.types import type_or_default

EPISODE, NOTE = "episode", "note"
_NATURE_TABLE = "nature.txt"


def nature_of(text: str, type_name: str, tags: Sequence[str] = ()) -> str:
    """`EPISODE` or `NOTE`, decided by the first that applies: a word for a moment, the type, the tags, verbs of acts, words of will.

    If none applies, it is an episode. `text` is the original wording, because a rewritten statement has dates in place
    of "yesterday".
    """
    prepared = plain(text)
    words = frozenset(prepared.split())

    def has_phrase(section: str) -> bool:
        return bool(phrases(_NATURE_TABLE, section).find(prepared, words))

    def has_tag(section: str) -> bool:
        return not phrases(_NATURE_TABLE, section).words.isdisjoint(tag.casefold() for tag in tags)

    signs = (
        (EPISODE, has_phrase("moments")),
        (NOTE, type_name in phrases(_NATURE_TABLE, "note types").words),
        (EPISODE, type_name in phrases(_NATURE_TABLE, "episode types").words),
        (NOTE, has_tag("note tags")),
        (EPISODE, has_tag("episode tags")),
        (EPISODE, has_phrase("happened")),
        (NOTE, has_phrase("lasting")),
    )
    return next((nature for nature, found in signs if found), EPISODE)


_LOCALITY_TABLE = "locality.txt"
_PIECE = re.compile(r"(?<=[.!?;])\s+|\n+")
_COMMAND = re.compile(r"`[^`]+`")
_BY = "with|by|via|using|through|in|on|under|from|into|to|against|as"
_FREELY = r"(?:(?:always|only|also|usually|currently|now|all|both|automatically|locally|nightly) )*"
_NUMBER = r"(?:\d|two|three|four|six|eight)"


def toolchain(statement: str) -> str:
    """The words with which a statement says what a project uses for a purpose; "" if it does not.

    The sentence names a role, an activity or an artefact of a project (`data/locality.txt`) as a known one, and says in
    the present tense what fills it. Sentences about a tool itself ("ruff is a fast linter", "the formatter of Go is
    gofmt") and advice ("tests should not sleep") do not count.
    """
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
    return not phrases(_LOCALITY_TABLE, "praise").words.isdisjoint(words.split())


def _is_of_a_tool(sentence: str, words: str, end: int) -> bool:
    """Whether the named thing belongs to a named tool: "the formatter of Go", "the package manager for Node"."""
    after = words[end:].split()
    if len(after) < 2 or after[0] not in ("of", "for") or after[1] in ("the", "all", "every"):
        return False
    return any(word.strip("`.,").casefold() == after[1] and word[:1].isupper() for word in sentence.split())


@lru_cache(maxsize=8)
def _any(*sections: str) -> str:
    """An alternation of all entries, longest first."""
    entries = {entry.strip() for section in sections for entry in _entries(section)}
    return "|".join(sorted(map(re.escape, entries), key=lambda entry: (-len(entry), entry)))


def _entries(section: str) -> list[str]:
    found = phrases(_LOCALITY_TABLE, section)
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


_PATH = re.compile(r"(?<![\w:/])(?:\.{0,2}/)?[\w.@+-]+(?:/[\w.@+-]+)*/?")
_READ_CHARS = 20_000
"""Maximum characters of a statement that are read; longer ones are documents."""
_MOST_PATHS = 20
"""Maximum words of a statement that are looked up as paths."""
_SHORTEST_NAME = 3
_LONGEST_NAME = 5
"""Maximum words of a sentence's subject, with the article."""
_SENTENCE = re.compile(r"(?<![.!?;:\n])[.!?;:\n]+\s+")
_JOINTS = frozenset(
    ("of", "in", "for", "to", "with", "a", "an", "every", "any", "is", "are", "and", "or", "on", "from")
)
"""Words that begin another phrase: in "the docs of every api" the article does not belong to "api"."""
_OF_PEOPLE = frozenset(("identity", "fiscal", "people", "location", "health"))
"""Kinds of spec 4 that describe people."""


@dataclass(frozen=True, slots=True)
class ProjectPlace:
    """The project of a directory: its scope, and whether a path exists in it."""

    scope: str
    exists: Callable[[str], bool]

    @property
    def names(self) -> Sequence[str]:
        """Names of the project in statements, without names that could mean anything."""
        # Statements name a project without its host and the digest of its path.
        full = self.scope.rpartition(":")[2].casefold().partition("~")[0]
        last = full.rpartition("/")[2]
        is_common = last in phrases(_LOCALITY_TABLE, "common").words or len(last) < _SHORTEST_NAME
        return [name for name, counts in ((full, "/" in full), (last, not is_common)) if counts]


def locality(statement: str, place: ProjectPlace, *, type_name: str = "", situation: str = "") -> str:
    """Why a statement is about the project, in a few words; "" if it holds everywhere.

    The first rule that applies decides:

    1. It names this project: "this repo", the repository's name, or a path that exists in it.
    2. It is about a person ("I prefer", "the user"), or of a type that describes people: not about this project.
    3. It uses "we" or "our", one of its sentences is about a part ("The billing service …") or says what the project uses
       ("The linter is ruff"), or its type is one such as decision or convention: about this project.
    4. Anything else holds everywhere.
    """
    statement, situation = statement[:_READ_CHARS], situation[:_READ_CHARS]
    text = f"{statement}\n{situation}"
    prepared = plain(text)
    words = frozenset(prepared.split())
    if named := phrases(_LOCALITY_TABLE, "here").find(prepared, words):
        return f"it says “{named}”"
    if named := _find_name(prepared, place) or _path_of(text, place):
        return f"it names {named}"
    if type_or_default(type_name).kind in _OF_PEOPLE:
        return ""
    if phrases(_LOCALITY_TABLE, "person").find(prepared, words):
        return ""
    if said := phrases(_LOCALITY_TABLE, "team").find(prepared, words) or _part(statement) or toolchain(statement):
        return f"it says “{said}”"
    return f"it is a {type_name}" if type_name in phrases(_LOCALITY_TABLE, "types").words else ""


def _find_name(prepared: str, place: ProjectPlace) -> str:
    return next((name for name in place.names if f" {plain(name).strip()} " in prepared), "")


def _path_of(text: str, place: ProjectPlace) -> str:
    """The first path of the text that exists in the project.

    A plain word does not count, although a file may have that name.
    """
    found = (word.rstrip(".,;:") for word in _PATH.findall(text))
    candidates = [word for word in found if "/" in word.strip("/") or "." in word.strip("./")]
    return next((word for word in candidates[:_MOST_PATHS] if place.exists(word)), "")


def _part(text: str) -> str:
    """The part of a project that a sentence mentions as known: "The search cluster keeps …"."""
    parts = phrases(_LOCALITY_TABLE, "components")
    for sentence in _SENTENCE.split(text):
        words = plain(sentence).split()
        if words[:1] != ["the"]:
            continue
        for length in range(2, _LONGEST_NAME + 1):
            named = " ".join(words[:length])
            if words[length - 1 : length] and words[length - 1] in _JOINTS:
                break
            if parts.find(f" {named} ", frozenset(words[1:length])):
                return named
    return ""
