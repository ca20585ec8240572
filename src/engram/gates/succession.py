"""Whether the words of a statement bear out that it replaced what another one says, however sure a model is.

The pair model knows many wordings but little of the world, and a wrong update puts a memory out of force. So nothing is replaced by itself if the two
may be about different things, if the newer one has no word of change, if it adds or only considers a value, or if a bare value is all that differs.
"""

from engram.gates.tables import phrases, plain
from engram.model.lazy import dataclass
from engram.models.pair_features import align
from engram.models.pair_words import FUNCTION, ME, NAME, NUMBER, TIME, WE, Statement, Token, read_statement
from engram.text.verbs import is_act, is_past, kind_of, revises
from engram.text.word_tables import word_class

__all__ = ["may_succeed", "names_another_subject"]

_COPULAS = frozenset(("is", "are", "was", "were", "be", "been", "s"))
_FRESH = frozenset(("new", "current", "latest", "now", "longer"))
"""Words before the verb that say when, not what."""
_VALUES = (NAME, NUMBER, TIME)


@dataclass(frozen=True, slots=True)
class SubjectAndVerb:
    """A statement taken apart at its verb."""

    subject: frozenset[str]
    verb: Token


def may_succeed(new: str, old: str) -> bool:
    """Whether a newer statement tells of a change, about the same subject as an older one, and of more than a bare value."""
    one, other = read_statement(new), read_statement(old)
    mine, theirs = _clause(one), _clause(other)
    if mine is None or theirs is None or _is_open(new) or _is_bare(one, other):
        return False
    if not mine.subject or not theirs.subject or not _tells_change(new, one):
        return False
    return mine.subject == theirs.subject if _same_verb(mine.verb, theirs.verb) else not _unnamed_words(theirs, one)


def names_another_subject(new: str, old: str) -> bool:
    """Whether two statements say the same of different things, each nowhere named by the other: "The build server has …" and "The production server has …"."""
    one, other = read_statement(new), read_statement(old)
    mine, theirs = _clause(one), _clause(other)
    if mine is None or theirs is None or not _same_verb(mine.verb, theirs.verb):
        return False
    return bool(_unnamed_words(mine, other) and _unnamed_words(theirs, one))


def _unnamed_words(clause: SubjectAndVerb, other: Statement) -> frozenset[str]:
    """The words of the subject that the other statement does not have."""
    return clause.subject - {token.stem for token in other.tokens} - {ME, WE}


def _clause(statement: Statement) -> SubjectAndVerb | None:
    """The statement at its first verb; None where none is recognised."""
    tokens = statement.tokens
    copulas = {at for at, token in enumerate(tokens) if token.key in _COPULAS}
    place = next((at for at, token in enumerate(tokens) if _is_verb(token) and at + 1 not in copulas), None)
    if place is None:
        return None
    subject = {token.stem for token in tokens[:place] if token.stem in (ME, WE) or token.kind != FUNCTION}
    return SubjectAndVerb(frozenset(subject - _FRESH), tokens[place])


def _is_verb(token: Token) -> bool:
    verbs = word_class("wordclasses", "verb")
    forms = (token.key, token.stem, token.key.removesuffix("s"), token.key.removesuffix("es"))
    return any(form in verbs for form in forms) or _changes(token) or is_act(token.key) or is_past(token.key)


def _changes(token: Token) -> bool:
    return kind_of(token.key) == "change" or revises(token.key)


def _same_verb(one: Token, other: Token) -> bool:
    return one.stem == other.stem or (one.key in _COPULAS and other.key in _COPULAS)


def _tells_change(text: str, statement: Statement) -> bool:
    """Whether a statement has a word of change."""
    return any(map(_changes, statement.tokens)) or _has(text, "changes")


def _is_open(text: str) -> bool:
    """Whether a statement tells of a further value, or of one that is not settled."""
    return _has(text, "additions") or _has(text, "doubts")


def _has(text: str, section: str) -> bool:
    prepared = plain(text)
    return bool(phrases("changes.txt", section).find(prepared, frozenset(prepared.split())))


def _is_bare(new: Statement, old: Statement) -> bool:
    """Whether names, numbers and times are all that the newer statement adds: "The bus stops at Oak Street"."""
    pair = align(old, new)
    added = [token for token, hit in zip(new.words, pair.matched_new, strict=True) if not hit]
    known = {token.key for token in old.tokens}
    said = [token for token in new.tokens if token.kind == FUNCTION and token.key not in (*known, ",", ME, WE)]
    return bool(added) and not said and all(token.kind in _VALUES for token in added)
