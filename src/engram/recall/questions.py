"""Questions that one search does not answer: several topics in one, a bare name, an entity that is described but not named, or one question in several wordings."""

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, time
from functools import cache
from itertools import chain, zip_longest
from typing import TYPE_CHECKING

from engram.model.errors import EngramError, InvalidInput, ModelError
from engram.model.hit import AnswerParts, Hit, Hits, ScopeMatches
from engram.model.lazy import dataclass, replace
from engram.recall.answer.parts import MAX_PART
from engram.recall.coverage import MIN_SHARE, measure_coverage, terms_of_hit
from engram.recall.cutoff import MIN_KNOWN, MIN_SHARE_OF_BEST, best_relevance, derive_hits, filter_hits, mark_found_by
from engram.recall.parse import ParsedQuestion
from engram.recall.query import SearchQuery
from engram.recall.search import Searcher
from engram.recall.trace import TracedAnswer, first_hits
from engram.text.entities import entities
from engram.text.time.windows import Window
from engram.text.tokens import query_terms, tokens
from engram.text.words import word_class

if TYPE_CHECKING:
    from engram.llm.model import LanguageModel

MAX_TOPICS = 4
MAX_TOPICS_CHARACTERS = 400
"""A longer text is a narrative; its sentences are not topics."""
MAX_LIST_WORDS = 10
"""Words of a question that only lists things."""
_SENTENCE = re.compile(r"[?;!] |\?$|\. (?=[A-Z])")
_CLAUSE = re.compile(r"(?:, ?(?:(?:and|or|also|plus) )?| (?:and|or|plus|also) )(?:also )?(?=[a-z])", re.IGNORECASE)
_AND = re.compile(r" (?:and|or|plus|as well as) ", re.IGNORECASE)
_OWNERS = frozenset(["the", "our", "my", "your", "its"])
_REFERENCE_WORDS = frozenset(
    [
        "it",
        "its",
        "they",
        "them",
        "their",
        "this",
        "that",
        "these",
        "those",
        "he",
        "him",
        "his",
        "she",
        "her",
        "there",
        "then",
        "one",
        "ones",
        "both",
    ]
)
"""Words that refer to the previous part."""
_STATEMENT_WORDS = frozenset(
    ["i", "i'm", "i've", "i'd", "we", "we're", "it", "it's", "he", "she", "they", "is", "are", "was", "were"]
)
"""Words that occur in statements, not in lists of things."""
_PAIRS = frozenset(["between", "both", "difference", "differ", "versus", "vs", "compare"])


def split_topics(question: str) -> tuple[str, ...]:
    """Split a question into questions that can be answered separately; () if it is only one."""
    question = " ".join(question.split())
    if len(question) > MAX_TOPICS_CHARACTERS or not _PAIRS.isdisjoint(_words(question)):
        return ()
    sentences = [sentence for sentence in _SENTENCE.split(question) if query_terms(sentence)]
    clauses = _join_referring([clause for sentence in sentences for clause in _split_clauses(sentence)])
    if len(clauses) > 1 and not all(map(_asks, clauses)):
        return ()  # a statement may belong to the question: "I'm in Berlin. Is Ana awake?"
    topics = [topic.strip(" ,.?!;") for clause in clauses for topic in _split_nouns(clause)]
    return tuple(topics) if 1 < len(topics) <= MAX_TOPICS and all(map(_has_topic, topics)) else ()


def merge_answers(whole: TracedAnswer, topics: Sequence[TracedAnswer], limit: int) -> TracedAnswer:
    """Merge into one answer: the best hit for the whole question, the hits of each topic in turn, then the others.

    A memory that answers one part lacks the words of the others, so a search for the whole question finds it but ranks
    it as not relevant enough.
    """
    hits = _merge([whole.hits[:1]], _merge([topic.hits for topic in topics], whole.hits))
    known = {hit.id for hit in hits}
    answers = (*topics, whole)
    parts = AnswerParts(
        possible=_merge_part([answer.parts.possible for answer in answers], known),
        unconfirmed=_merge_part([answer.parts.unconfirmed for answer in answers], known),
        older=_merge_part([answer.parts.older for answer in answers], known),
        elsewhere=_merge_scopes([answer.parts.elsewhere for answer in answers]),
    )
    notes = tuple(dict.fromkeys(note for answer in answers for note in answer.notes))
    made = first_hits(derive_hits(whole.hits, hits), limit)
    made.warnings = list(dict.fromkeys(warning for answer in answers for warning in answer.hits.warnings))
    return replace(whole, hits=made, notes=notes, parts=parts, method=f"{whole.method}; each topic by itself")


def _merge(lists: Sequence[Sequence[Hit]], rest: Sequence[Hit] = ()) -> list[Hit]:
    """Interleave several lists without repetition, then append the rest."""
    turns = (hit for turn in zip_longest(*lists) for hit in turn if hit is not None)
    return list({hit.id: hit for hit in reversed([*turns, *rest])}.values())[::-1]


def _merge_part(parts: Sequence[Hits], known: set[str]) -> Hits:
    return derive_hits(parts[-1], [hit for hit in _merge(parts) if hit.id not in known][:MAX_PART])


def _merge_scopes(found: Sequence[tuple[ScopeMatches, ...]]) -> tuple[ScopeMatches, ...]:
    """For each other scope, the highest count of any topic; a sum would count a memory that matches several topics twice."""
    most: dict[str, int] = {}
    for match in chain.from_iterable(found):
        most[match.scope] = max(match.count, most.get(match.scope, 0))
    return tuple(ScopeMatches(scope, count) for scope, count in sorted(most.items(), key=lambda one: -one[1]))


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z']+", text.lower())


@cache
def _asking_words() -> frozenset[str]:
    return word_class("asking", "wh") | word_class("asking", "inverted") | word_class("asking", "modal")


def _asks(clause: str) -> bool:
    """Whether a clause begins as a question: "who", "does", "by when"."""
    words = _words(clause)
    fronted = words[:1] and words[0] in word_class("asking", "fronted")
    return not _asking_words().isdisjoint(words[: 2 if fronted else 1])


def _has_topic(topic: str) -> bool:
    """Whether a part names something, unlike the "when" of "when and where do we meet"."""
    return bool(query_terms(topic)) and not set(_words(topic)) <= _asking_words()


def _split_clauses(sentence: str) -> list[str]:
    """Split a sentence into clauses before each question word: "… and who owns the domain", "…, how is it built"."""
    found, start = [], 0
    for joint in _CLAUSE.finditer(sentence):
        if _asks(sentence[joint.end() :]) and _has_topic(sentence[start : joint.start()]):
            found.append(sentence[start : joint.start()])
            start = joint.end()
    return [*found, sentence[start:]]


def _join_referring(clauses: Sequence[str]) -> list[str]:
    """Join each clause that refers to the previous one with it: "which van do we have, and where is it serviced"."""
    found: list[str] = []
    for clause in clauses:
        if found and not _REFERENCE_WORDS.isdisjoint(_words(clause)):
            found[-1] = f"{found[-1]}, {clause}"
        else:
            found.append(clause)
    return found


def _split_nouns(clause: str) -> list[str]:
    """Split a clause that asks for two things: "linting tool and unit test framework", "… the limit and the monthly budget"."""
    joint = _AND.search(clause)
    if joint is None:
        return [clause]
    before, after = clause[: joint.start()], clause[joint.end() :]
    is_list = len(_words(clause)) <= MAX_LIST_WORDS and _STATEMENT_WORDS.isdisjoint(_words(clause))
    joins = not _OWNERS.isdisjoint(_words(after)[:1]) if _asks(clause) else is_list
    several = min(len(query_terms(before)), len(query_terms(after))) > 1
    return [before, after] if joins and several else [clause]


FOUND_BY_NAME = "name"
"""In a trace: contains the name asked about."""
NAME_PURPOSE = "what contains “{name}”"
MAX_NAME_WORDS = 10
MAX_MENTIONS = 5
"""A word in more memories than this is a name only if it is written as one."""
_EVERYTHING = frozenset(
    tokens(
        "everything anything all info information fact facts news new update updates latest status change changes changed"
        " happened happen details notes overview summary current currently"
    )
)


def name_asked_about(question: str) -> str:
    """The only name that a question is about; "" if it has another topic.

    Every memory that contains the name answers such a question; a similar memory without it does not.
    """
    found = [name for name in entities(question) if query_terms(name)]
    if len(found) > 1 or len(question.split()) > MAX_NAME_WORDS:
        return ""
    name = found[0] if found else question.strip(" ?!.")
    rest = set(query_terms(f"x {question}")[1:]) - set(query_terms(name)) - _EVERYTHING
    is_word = bool(found) or (len(name.split()) == 1 and bool(query_terms(f"x {name}")[1:]))
    return name if is_word and not rest else ""


def answer_name_question(searcher: Searcher, query: SearchQuery, answer: TracedAnswer, floor: float) -> TracedAnswer:
    """Add every memory that contains the name asked about; other questions keep their answer."""
    name = name_asked_about(query.text)
    terms = set(query_terms(name))
    if not terms:
        return answer
    asked = replace(query, text=name, wordings=(), min_relevance=0.0, purpose=NAME_PURPOSE.format(name=name))
    mentions = [hit for hit in searcher.search(asked) if terms <= set(tokens(hit.text))]
    if name not in entities(query.text) and len(mentions) > MAX_MENTIONS:
        return answer
    found = {hit.id for hit in answer.hits}
    marked = [_raise_to_floor(hit) for hit in mentions if hit.id not in found]
    hits = derive_hits(answer.hits, [*answer.hits, *(hit for hit in marked if hit.relevance >= floor)])
    is_identifier = any(character.isdigit() for character in name)
    others = [hit for hit in hits if is_identifier and not terms <= set(tokens(hit.text))]
    known = filter_hits(hits, lambda hit: hit not in others)
    named = {hit.id for hit in known}
    possible = [*others, *(hit for hit in answer.parts.possible if hit.id not in named)][:MAX_PART]
    parts = replace(answer.parts, possible=derive_hits(answer.parts.possible, possible))
    return replace(answer, hits=first_hits(known, query.limit), parts=parts)


def _raise_to_floor(hit: Hit) -> Hit:
    """Raise the relevance of a hit to the usual floor. It contains the name, but may not answer the question."""
    return mark_found_by(replace(hit, relevance=max(hit.relevance, MIN_KNOWN)), FOUND_BY_NAME)


FOUND_BY_ENTITY = "entity"
"""In a trace: found by an entity of another hit."""
HOP_PURPOSE = "what is known about “{entity}”"
MAX_FOLLOWED_HITS = 2
"""First hits whose entities are followed."""
MAX_HOPS = 1
MAX_HITS_PER_HOP = 2
"""Hits added by one hop."""
_WORD = re.compile(r"\w+(?:['’.-]+\w+)*")


@dataclass(frozen=True, slots=True)
class Hop:
    """A second search: the question about an entity of a first hit."""

    entity: str
    text: str
    source: str
    """The id of the first hit."""
    missing: tuple[str, ...]
    """The words of the question that the first hit lacks."""


def follow_entities(searcher: Searcher, query: SearchQuery, answer: TracedAnswer, floor: float) -> TracedAnswer:
    """Add memories about the entities of the first hits to an answer.

    "How does our contact at Norsend like to be contacted?" finds only "The contact at Norsend is Yusuf Demir" because
    the memory about Yusuf Demir shares no word with it. A second search replaces the words that the first hit covers
    with the entity it names.
    """
    found = {hit.id for hit in answer.hits}
    added: list[Hit] = []
    for hop in plan_hops(query.text, answer.hits):
        asked = replace(query, text=hop.text, task="", wordings=(), min_relevance=floor)
        hits = searcher.search(replace(asked, purpose=HOP_PURPOSE.format(entity=hop.entity)))
        terms = set(query_terms(hop.entity))
        about = [hit for hit in hits if hit.id not in found and terms <= set(tokens(hit.text))]
        best = best_relevance(about)
        likely = [hit for hit in about if hit.relevance >= MIN_SHARE_OF_BEST * best]
        followed = [mark_found_by(hit, FOUND_BY_ENTITY) for hit in _cover_missing(hop, likely, answer.hits)][
            :MAX_HITS_PER_HOP
        ]
        found |= {hit.id for hit in followed}
        added += followed
    if not added:
        return answer
    possible = answer.parts.possible
    parts = replace(answer.parts, possible=filter_hits(possible, lambda hit: hit.id not in found))
    return replace(answer, hits=first_hits(derive_hits(answer.hits, [*answer.hits, *added]), query.limit), parts=parts)


def _cover_missing(hop: Hop, found: Sequence[Hit], known: Sequence[Hit]) -> list[Hit]:
    """The hits that have more of what the first hit lacks than it has, and as much as the others that are known."""
    if not found:
        return []
    shares = dict(
        zip([hit.id for hit in (*found, *known)], measure_coverage(hop.missing, [*found, *known]), strict=True)
    )
    least = MIN_SHARE * max(shares.values())
    return [hit for hit in found if shares[hit.id] >= least and shares[hit.id] > shares[hop.source]]


def plan_hops(question: str, hits: Sequence[Hit]) -> list[Hop]:
    """The second searches for a question, except for entities that it names and hits that cover it completely."""
    sources = [hit for hit in hits if hit.memory is not None][:MAX_FOLLOWED_HITS]
    return list({hop.text: hop for hit in sources for hop in _hops_of(question, hit)}.values())[:MAX_HOPS]


def _hops_of(question: str, hit: Hit) -> Iterator[Hop]:
    covered, named = terms_of_hit(hit), dict.fromkeys(query_terms(question))
    missing = tuple(term for term in named if term not in covered)
    if not missing or covered.isdisjoint(named):
        return
    for entity in entities(hit.text):
        terms = set(query_terms(entity))
        if terms and terms.isdisjoint(named):
            yield Hop(entity, _substitute(question, covered, entity), hit.id, missing)


def _substitute(question: str, covered: set[str], entity: str) -> str:
    """Replace the words that the hit covers with the entity."""
    words, is_placed = [], False
    for word in _WORD.findall(question):
        terms = query_terms(f"x {word}")[1:]
        if not terms or not covered.issuperset(terms):
            words.append(word)
        elif not is_placed:
            words.append(entity)
            is_placed = True
    return " ".join(words)


MOST_QUERIES = 8
Permute = Callable[[str, int], Sequence[str]]
"""Returns other wordings of a question, at most the given number."""
_ASKING = frozenset(
    [
        "what",
        "which",
        "who",
        "whom",
        "whose",
        "when",
        "where",
        "why",
        "how",
        "do",
        "does",
        "did",
        "is",
        "are",
        "was",
        "were",
        "have",
        "has",
        "had",
        "can",
        "could",
        "would",
        "should",
        "will",
        "i",
        "me",
        "my",
        "mine",
        "you",
        "your",
        "we",
        "our",
        "us",
        "the",
        "a",
        "an",
        "of",
        "to",
        "about",
        "tell",
        "please",
        "remind",
        "know",
        "there",
        "any",
        "that",
        "this",
        "it",
    ]
)


def permutations(question: str, count: int) -> list[str]:
    """Rewordings by rules, best first: its content words, its names, each half of it."""
    words = [word for word in question.replace("?", " ").split() if word.lower().strip(".,;:!'\"") not in _ASKING]
    plain = " ".join(words)
    middle = (len(words) + 1) // 2
    wordings = [plain, " ".join(entities(question)), " ".join(words[middle:]), " ".join(words[:middle])]
    found = dict.fromkeys(w for w in wordings if w and w != question and query_terms(w))
    return list(found)[:count]


def deep_search(searcher: Searcher, query: SearchQuery, n_queries: int = 4, permute: Permute | None = None) -> Hits:
    """Search a question together with the caller's wordings, and with rewordings by a model or by rules up to `n_queries`."""
    if type(n_queries) is not int or not 1 <= n_queries <= MOST_QUERIES:
        raise InvalidInput(f"n_queries {n_queries!r} must be a whole number from 1 to {MOST_QUERIES}")
    query = query.validate()
    more, warning = _wordings(query.text, n_queries - 1 - len(query.wordings), permute)
    hits = searcher.search(replace(query, wordings=tuple(dict.fromkeys((*query.wordings, *more)))))
    hits.warnings += [warning] if warning else []
    return hits


def _wordings(question: str, count: int, permute: Permute | None) -> tuple[list[str], str]:
    if count < 1:
        return [], ""
    by_rules = permutations(question, count)
    if permute is None:
        return by_rules, ""
    try:
        reworded = [text.strip() for text in permute(question, count) if text.strip()]
    except EngramError as error:
        return by_rules, f"reworded by rules: {error}"
    return list(dict.fromkeys([*reworded, *by_rules]))[:count], ""


BY_RULES = "read by rules: "
"""The prefix of the reason for a question that the model could not parse."""
SURE_INTENT = 0.95
"""The probability of an intent from which the model is not asked."""
Refine = Callable[[ParsedQuestion, datetime], ParsedQuestion]


def model_refiner(model: "LanguageModel") -> Refine:
    """A refinement by a language model, for questions whose intent is uncertain. If it fails, the first parse stays."""
    from engram.llm.schemas import QuestionReading

    def refine(question: ParsedQuestion, at: datetime) -> ParsedQuestion:
        if question.confidence >= SURE_INTENT or not question.text.strip():
            return question
        try:
            read = model.ask("question", QuestionReading, {"today": at.date().isoformat(), "question": question.text})
            window = question.window or _window(read.since, read.until, at)
        except ModelError as error:
            return replace(question, reason=f"{BY_RULES}{error}")
        except ValueError:
            return replace(question, reason=f"{BY_RULES}{model.name} named an invalid date")
        return replace(question, intent=read.intent, window=window, reason=f"read by {model.name}")

    return refine


def model_permuter(model: "LanguageModel") -> Callable[[str, int], Sequence[str]]:
    """Rewordings by a model."""
    from engram.llm.schemas import Permutations

    def permute(question: str, count: int) -> Sequence[str]:
        return model.ask("permutations", Permutations, {"query": question, "count": str(count)}).queries

    return permute


def _window(since: str, until: str, at: datetime) -> Window | None:
    first, last = (_midnight(day, at) for day in (since, until))
    if (first is None and last is None) or (first is not None and last is not None and first >= last):
        return None
    return Window(first, last)


def _midnight(day: str, at: datetime) -> datetime | None:
    return datetime.combine(datetime.fromisoformat(day).date(), time(), at.tzinfo) if day.strip() else None
