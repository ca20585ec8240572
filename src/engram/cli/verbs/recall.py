"""recall, search, inject, prepare: find memories."""

import sys
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

from engram.cli import display, views
from engram.cli.parser import Argument, Option
from engram.cli.records import hit_data, injection_data, recall_data
from engram.cli.surface import Surface, text_or_stdin
from engram.cli.verbs.options import (
    MemoryFilters,
    MinRelevance,
    Question,
    Ranking,
    Scopes,
    Session,
    StoreFilters,
    check_least,
    check_types,
)
from engram.cli.views import TRACE_TOKENS, account, understood
from engram.model.errors import InvalidInput
from engram.model.fields import aware
from engram.recall.cutoff import ABOUT, HELPFUL

if TYPE_CHECKING:
    from engram.client import Engram
    from engram.recall.recaller import Recall

Task = Annotated[str, Argument("TASK", "What the agent is about to do; - reads it from stdin.")]
Query = Annotated[str, Argument("QUERY", "What the prompt is about; - reads it from stdin.")]
BlockTokens = Annotated[int, Option("--tokens", metavar="N", help="Token budget of the whole block.")]
Header = Annotated[str, Option("--header", metavar="TEXT", help="A first line of your own.")]
ByType = Annotated[bool, Option("--by-type", help="A heading for each type of memory.")]
Kinds = Annotated[
    list[str] | None,
    Option("--kind", metavar="KIND", help="memory or event (repeatable). Default: memory."),
]
InSession = Annotated[str, Option("--in-session", metavar="ID", help="Only what was said in this session.")]
Budget = Annotated[int | None, Option("--budget", metavar="TOKENS", help="Token budget of the whole text.")]
Date = Annotated[
    str | None,
    Option("--date", metavar="TIME", help="When the question is asked, for words like `last week`. Default: now."),
]
Answered = Annotated[
    bool, Option("--answer", help="One answer instead of a list, each part with the ids of its sources.")
]
Trace = Annotated[bool, Option("--trace", help="Show how the answer was found; no use is recorded.")]
Expect = Annotated[
    list[str] | None,
    Option(
        "--expect", metavar="TERM", help="With --trace: words the text must contain (repeatable); otherwise exit 1."
    ),
]
TraceTokens = Annotated[
    int | None, Option("--tokens", metavar="N", help="With --trace: token budget of the text. Default: 2000.")
]
Deep = Annotated[bool, Option("--deep", help="Search several wordings of a broad question at once.")]
Queries = Annotated[int | None, Option("--queries", metavar="N", help="With --deep: how many wordings. Default: 4.")]


def recall(
    surface: Surface,
    question: Question,
    filters: MemoryFilters,
    ranking: Ranking,
    session: Session = "",
    date: Date = None,
    answer: Answered = False,
    trace: Trace = False,
    expect: Expect = None,
    tokens: TraceTokens = None,
    min_relevance: MinRelevance = ABOUT,
) -> None:
    """Answer a question from memory.

    Searches what applies in this directory, to its user and globally. Recalled memories are reinforced. Questions about the
    current value, a past value, an event and a history are answered from different places, and a time such as `last week` is a
    strict window; stderr says how the question was interpreted. --answer uses the words of the memories, or a model where
    one is configured. Without a confident match the answer is that nothing is known, and the closest memories follow
    separately. --trace shows how the answer was found: how the question was interpreted, each search, the parts of each
    score, and what was left out and why.
    """
    asked = filters.chosen()
    if not trace and (expect or tokens is not None):
        raise InvalidInput("--expect and --tokens need --trace")
    question = text_or_stdin(question)
    with surface.memory() as mem:
        check_types(mem, filters.type_)
        asked |= {"question_date": date, "limit": ranking.limit, "mode": ranking.mode, "fusion": ranking.fusion}
        asked |= {"compose_answer": answer, "min_relevance": min_relevance}
        now, at = surface.now, aware(filters.as_of, mem.time_zone)
        if not trace:
            found = mem.recall(question, explain=ranking.explain, session=session, **asked)
            _show(surface, found, now, at, explain=ranking.explain, answer=answer)
            return
        room = TRACE_TOKENS if tokens is None else tokens
        traced = mem.trace_recall(question, max_tokens=room, expected_terms=expect or [], **asked)
        if not surface.as_json:
            _show(surface, traced.recall, now, at, explain=False, answer=answer)
        account(surface, traced, room, at or now)


def _show(
    surface: Surface, found: "Recall", now: datetime, as_of: datetime | None, *, explain: bool, answer: bool
) -> None:
    if found.window is not None or found.intent != "current":
        surface.hint(f"engram: {understood(found)}")
    surface.warn(found.warnings)
    if surface.as_json:
        surface.json(recall_data(found, as_of or now, explain=explain))
    elif not found.hits:
        views.nothing_known(found, now)
    elif (explain or surface.drawn) and not answer:
        views.hits(found.hits, now, explain=explain, dated=found.intent != "current", zone=found.zone)
    else:
        sys.stdout.write((found.answer if answer else found.text) + "\n")
    if not found.hits:
        surface.hint("engram: nothing found; `engram search` looks in every scope")


def search(
    surface: Surface,
    query: Question,
    filters: StoreFilters,
    ranking: Ranking,
    kind: Kinds = None,
    in_session: InSession = "",
    deep: Deep = False,
    queries: Queries = None,
    min_relevance: MinRelevance = 0.0,
) -> None:
    """Find memories or ledger events in the whole store. Searching does not reinforce them."""
    asked = filters.chosen(kinds=kind, session=in_session)
    if queries is not None and not deep:
        raise InvalidInput("--queries needs --deep")
    query = text_or_stdin(query)
    with surface.memory() as mem:
        check_types(mem, filters.type_)
        if deep:
            asked["n_queries"] = 4 if queries is None else queries
        asked |= {"limit": ranking.limit, "mode": ranking.mode, "fusion": ranking.fusion, "explain": ranking.explain}
        find = mem.deep_search if deep else mem.search
        found = find(query, min_relevance=min_relevance, **asked)
        now = surface.now
        at = aware(filters.as_of, mem.time_zone) or now
        surface.warn(found.warnings)
        data = {
            "query": query,
            "mode": found.mode,
            "hits": [hit_data(hit, at, explain=ranking.explain) for hit in found],
            "warnings": found.warnings,
        }
        surface.answer(data, lambda: views.hits(found, now, explain=ranking.explain))
        if not found:
            surface.hint("engram: nothing found")


def inject(
    surface: Surface,
    task: Task,
    scope: Scopes = None,
    budget: Budget = None,
    session: Session = "",
    min_relevance: MinRelevance = HELPFUL,
) -> None:
    """Print what an agent should know before a task.

    Worded for its prompt, within a token budget, each item with the reason why it was chosen.
    """
    with surface.memory() as mem:
        found = mem.inject(
            text_or_stdin(task), scope=scope or None, budget=budget, session=session, min_relevance=min_relevance
        )
        surface.warn(found.warnings)
        surface.answer(injection_data(found, surface.now), lambda: views.injection(found))
        if surface.drawn:
            surface.hint(f"engram: {found.tokens} of {found.budget} tokens; {_left_out(len(found.left_out))}")
        if not found.items and not found.warnings:
            surface.hint("engram: no memory is relevant to this")


def _left_out(number: int) -> str:
    return f"{number} left out, see `--json`" if number else "nothing left out"


def prepare(
    surface: Surface,
    query: Query,
    tokens: BlockTokens = 2000,
    header: Header = "",
    by_type: ByType = False,
    session: Session = "",
    scope: Scopes = None,
    min_relevance: MinRelevance = HELPFUL,
) -> None:
    """Print memories as a block for a prompt, within a token budget.

    The summary of the session, then critical facts, which are never left out, then what the query needs. Unlike `inject` it
    records no use and gives no directions: every memory is quoted as it is.
    """
    from engram.embedding.tokenizer import count_tokens

    check_least("--tokens", tokens, 1)
    query = text_or_stdin(query)
    with surface.memory() as mem:
        text = mem.get_context_block(
            query, max_tokens=tokens, header=header, group_by_type=by_type, session=_summarised(mem, session),
            scope=scope or None, min_relevance=min_relevance,
        )  # fmt: skip
        used = count_tokens(text)
        data = {"query": query, "text": text, "tokens": used, "budget": tokens}
        surface.answer(data, lambda: display.block(text))
        if not text:
            surface.hint("engram: no memory is relevant to this")
        elif surface.drawn:
            surface.hint(f"engram: {used} of {tokens} tokens")


def _summarised(mem: "Engram", session: str) -> str:
    """The session whose summary to use: one that is only a ledger so far has none."""
    begun_by_observing = session and mem.store.session(session) is None and mem.store.events(session, last=1)
    return "" if begun_by_observing else session
