"""Whether a statement may have replaced what another one says, however sure a model is.

The pair model hears that something changed, but takes one thing for another of its kind, and a wrong update puts a memory out of force. So nothing is
replaced by itself if the two may be about different things, if the newer one adds or only considers a value, or if a bare value is all that differs.
Whether it tells of a change is left to the model: of the updates by writers left out that it is sure of, two thirds had none of the words that a table
listed here.
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
    """Whether a newer statement is about the same subject as an older one, says more than a bare value, and neither adds one nor only considers it."""
    one, other = read_statement(new), read_statement(old)
    mine, theirs = _clause(one), _clause(other)
    if mine is None or theirs is None or _is_open(new) or _is_bare(one, other):
        return False
    if not mine.subject or not theirs.subject:
        return False
    return mine.subject == theirs.subject if _same_verb(mine.verb, theirs.verb) else not _unnamed(theirs, one)


def names_another_subject(new: str, old: str) -> bool:
    """Whether two statements say the same of different things, each nowhere named by the other: "The build server has …" and "The production server has …"."""
    one, other = read_statement(new), read_statement(old)
    mine, theirs = _clause(one), _clause(other)
    if mine is None or theirs is None or not _same_verb(mine.verb, theirs.verb):
        return False
    return bool(_unnamed(mine, other) and _unnamed(theirs, one))


def _unnamed(clause: SubjectAndVerb, other: Statement) -> frozenset[str]:
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


def _is_open(text: str) -> bool:
    """Whether a statement tells of a further value, or of one that is not settled."""
    prepared = plain(text)
    words = frozenset(prepared.split())
    return any(phrases("unsettled.txt", section).find(prepared, words) for section in ("additions", "doubts"))


def _is_bare(new: Statement, old: Statement) -> bool:
    """Whether names, numbers and times are all that the newer statement adds: "The bus stops at Oak Street"."""
    pair = align(old, new)
    added = [token for token, hit in zip(new.words, pair.matched_new, strict=True) if not hit]
    known = {token.key for token in old.tokens}
    said = [token for token in new.tokens if token.kind == FUNCTION and token.key not in (*known, ",", ME, WE)]
    return bool(added) and not said and all(token.kind in _VALUES for token in added)
