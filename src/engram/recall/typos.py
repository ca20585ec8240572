"""Corrects typing errors in a question: unknown words that are one letter away from a stored word.

The bundled vocabulary has the common English words, so "dessert" does not become a stored "desert". Words with digits
are not corrected because two identifiers may differ in one letter.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from engram.embedding.word_pieces import word_rows
from engram.model.lazy import replace
from engram.recall.query import SearchQuery
from engram.store.protocol import Filters, Store
from engram.text.tokens import query_terms, tokens
from engram.text.words import word_of

__all__ = ["correct_spelling", "describe_corrections", "find_corrections"]

MIN_LETTERS = 5
MAX_LETTERS = 20
MAX_CORRECTIONS = 3
"""A question with more unknown words than this is in another language or not about anything stored."""
MAX_WORDS = 40
"""Longer texts are not checked because they are usually pasted."""
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_ENDING = re.compile(r"(?:(?<=([b-df-hj-np-tv-z]))\1)?(?:e?s|e?d|e?rs?|ings?|ly|y|ness|less|able)$")
"""Suffixes of derived words: "pasted", "sitter", "pager"."""
_WORD = re.compile(r"(?<![\w./@#:\\-])[A-Za-z]+(?![\w/@#:\\-]|\.\w)")


def correct_spelling(query: SearchQuery, corrections: Mapping[str, str]) -> SearchQuery:
    """Replace the misspelled words of a query."""
    if not corrections:
        return query

    def correct(text: str) -> str:
        return _WORD.sub(lambda found: corrections.get(found[0].lower(), found[0]), text)

    return replace(query, text=correct(query.text), question=correct(query.question), task=correct(query.task))


def describe_corrections(corrections: Mapping[str, str]) -> list[str]:
    """One warning per corrected word."""
    return [f"Nothing mentions “{typed}”; searched for “{stored}”." for typed, stored in corrections.items()]


def find_corrections(store: Store, text: str, filters: Filters) -> dict[str, str]:
    """Corrections of misspelled words, in lower case, by stored words."""
    text = text[: MAX_WORDS * MAX_LETTERS]
    found = _WORD.findall(text)
    is_english = not any(letter.isalpha() and not letter.isascii() for letter in text)
    if len(found) > MAX_WORDS or not is_english:
        return {}
    unknown = list(dict.fromkeys(word.lower() for word in found if _may_be_misspelled(word)))
    if not unknown:
        return {}
    terms = {word: query_terms(word)[0] for word in unknown}
    stored = _count_visible(store, list(terms.values()), filters)
    unknown = [word for word in unknown if terms[word] not in stored]
    if not 0 < len(unknown) <= min(MAX_CORRECTIONS, max(1, len(found) // 2)):
        return {}
    corrections = {word: _find_closest(store, word, filters) for word in unknown}
    return {word: stored_word for word, stored_word in corrections.items() if stored_word}


def _may_be_misspelled(word: str) -> bool:
    """Whether the bundled vocabulary lacks both the word and the word it is derived from."""
    if not word[1:].islower() or not MIN_LETTERS <= len(word) <= MAX_LETTERS or not query_terms(word):
        return False
    lower = word.lower()
    base = _ENDING.sub("", lower)
    return not any(map(_is_common, (lower, base, f"{base}e")))


def _is_common(word: str) -> bool:
    return len(word_rows[word]) == 1


def _find_closest(store: Store, word: str, filters: Filters) -> str:
    """The most frequent stored word one edit away; "" if there is none."""
    edits = [(edit, term) for edit in edits_of(word) for term in tokens(edit)[:1]]
    # Few edits are stored words, and checking whether a word is common is much slower.
    found = _count_visible(store, list(dict.fromkeys(term for _, term in edits)), filters)
    spellings: dict[str, str] = {}
    for edit, term in edits:
        # If the stem belongs to a common word, accept only a common spelling.
        if term in found and (_is_common(edit) or not _is_common(word_of(term))):
            spellings[term] = max(spellings.get(term, edit), edit, key=lambda one: _rank_spelling(one, term))
    best = max(spellings, key=lambda term: (found[term], term), default="")
    return spellings[best] if best else ""


def _rank_spelling(spelling: str, stem: str) -> tuple[bool, bool, bool]:
    """How likely a spelling is a word with this stem; the stem alone is often not a word."""
    return spelling != stem and spelling == word_of(stem), _is_common(spelling), spelling != stem


def _count_visible(store: Store, terms: Sequence[str], filters: Filters) -> dict[str, int]:
    """How often the terms occur in records the caller can see, so that other people's records do not change the
    answer.
    """
    found = dict(store.frequencies(terms))
    if filters.scopes is None or not found:
        return found
    visible = store.known_terms(list(found), filters.scopes)
    return {term: count for term, count in found.items() if term in visible}


def edits_of(word: str) -> Iterator[str]:
    """Spellings with the same first letter that are one deletion, transposition, replacement or insertion away."""
    for at in range(1, len(word)):
        before, behind = word[:at], word[at:]
        yield before + behind[1:]
        if len(behind) > 1:
            yield before + behind[1] + behind[0] + behind[2:]
        for letter in _LETTERS:
            yield before + letter + behind[1:]
            yield before + letter + behind
    for letter in _LETTERS:
        yield word + letter
