"""Whether a statement plainly tells the next value of what another one says, so that a model's high probability may be acted on.

The pair model knows many wordings but not the world: "My landlord moved to Spain" looks like news about "My landlord is Mr Voss". What replaces a
memory by itself therefore has to show it: the same subject before the verb, a word of change, and a new value of the same kind as the old one. Whatever
does not is still noticed, and waits for review.
"""

from collections.abc import Sequence

from engram.gates.tables import phrases, plain
from engram.model.lazy import dataclass
from engram.models.pair_features import align
from engram.models.pair_words import FUNCTION, ME, NAME, WE, WORD, Statement, Token, read_statement
from engram.text.verbs import is_act, is_past, kind_of, revises
from engram.text.word_tables import word_class

__all__ = ["tells_next_value"]

_COPULAS = frozenset(("is", "are", "was", "were", "be", "been", "s"))
_FRESH = frozenset(("new", "current", "latest", "now", "longer"))
"""Words before the verb that say when, not what."""
_ALIKE = 0.3
"""The least cosine of two ordinary words of which the one may have replaced the other."""


@dataclass(frozen=True, slots=True)
class Clause:
    """A statement taken apart at its verb."""

    subject: frozenset[str]
    verb: Token
    after: frozenset[int]
    """The places after the verb."""


def tells_next_value(new: str, old: str) -> bool:
    """Whether the newer statement names the same subject, tells of a change, and has another value of the same kind."""
    one, other = read_statement(new), read_statement(old)
    mine, theirs = _clause(one), _clause(other)
    if mine is None or theirs is None or not mine.subject or mine.subject != theirs.subject:
        return False
    return _tells_change(new, one) and _keeps_relation(one, theirs) and _has_other_value(one, other, mine, theirs)


def _clause(statement: Statement) -> Clause | None:
    """The statement at its first verb; None where none is recognised."""
    tokens = statement.tokens
    copulas = {at for at, token in enumerate(tokens) if token.key in _COPULAS}
    place = next((at for at, token in enumerate(tokens) if _is_verb(token) and at + 1 not in copulas), None)
    if place is None:
        return None
    before = tokens[:place]
    subject = {token.stem for token in before if token.stem in (ME, WE) or token.kind != FUNCTION}
    return Clause(frozenset(subject - _FRESH), tokens[place], frozenset(range(place + 1, len(tokens))))


def _is_verb(token: Token) -> bool:
    verbs = word_class("wordclasses", "verb")
    forms = (token.key, token.stem, token.key.removesuffix("s"), token.key.removesuffix("es"))
    return any(form in verbs for form in forms) or _changes(token) or is_act(token.key) or is_past(token.key)


def _changes(token: Token) -> bool:
    return kind_of(token.key) == "change" or revises(token.key) or token.key in phrases("changes.txt", "verbs").words


def _tells_change(text: str, statement: Statement) -> bool:
    """Whether a statement has a word of change, and none that it is a further value or not settled."""
    prepared = plain(text)
    words = frozenset(prepared.split())
    if any(phrases("changes.txt", section).find(prepared, words) for section in ("additions", "doubts")):
        return False
    return any(map(_changes, statement.tokens)) or bool(phrases("changes.txt", "cues").find(prepared, words))


def _keeps_relation(new: Statement, old: Clause) -> bool:
    """Whether the newer statement has the verb of the older one, or a verb of change in its place."""
    stems = {token.stem for token in new.tokens}
    if old.verb.key in _COPULAS:
        return bool(stems & _COPULAS) or any(map(_changes, new.tokens))
    return old.verb.stem in stems or any(map(_changes, new.tokens))


def _has_other_value(new: Statement, old: Statement, mine: Clause, theirs: Clause) -> bool:
    """Whether something after the verb gave way to something of its kind."""
    pair = align(old, new)
    added = _left(new, pair.matched_new, mine)
    gone = _left(old, pair.matched_old, theirs)
    named = not gone  # the newer one names the whole old value: "from npm to pnpm"
    if _identifies(old, theirs) and not any(token.key in _COPULAS for token in new.tokens):
        gone = [at for at in gone if old.words[at].kind != NAME]
    for at in added:
        kind = new.words[at].kind
        if named and kind in (NAME, WORD) and not _changes(new.words[at]):
            return True
        if any(old.words[other].kind == kind and (kind != WORD or pair.cosines[at, other] >= _ALIKE) for other in gone):
            return True
    return False


def _identifies(statement: Statement, clause: Clause) -> bool:
    """Whether a statement says who or what its subject is: "My landlord is Mr Voss". Where that one moved to is not who it is."""
    following = statement.tokens[min(clause.after, default=0)]
    return clause.verb.key in _COPULAS and bool(clause.after) and following.kind == NAME


def _left(statement: Statement, matched: Sequence[bool], clause: Clause) -> list[int]:
    """The words after the verb that the other statement does not have."""
    return [
        at
        for at, (place, hit) in enumerate(zip(statement.places, matched, strict=True))
        if place in clause.after and not hit
    ]
