"""recall, search, inject: knowledge comes out."""

import sys
from typing import TYPE_CHECKING, Annotated

from engram.cli.declared import Argument, Option
from engram.cli.surface import Surface, text_or_stdin
from engram.cli.verbs.options import (
    AsOf,
    Domain,
    Explain,
    Fusion,
    KnownAt,
    Limit,
    Meta,
    MinRelevance,
    Mode,
    Scopes,
    Session,
    Since,
    Statuses,
    Tags,
    Types,
    Until,
    check_types,
    filters,
)
from engram.model.errors import InvalidInput
from engram.model.times import aware
from engram.recall.cutoff import ABOUT, HELPFUL

if TYPE_CHECKING:
    from datetime import datetime

    from engram.recall.recaller import Recall

Question = Annotated[str, Argument("QUESTION", "What to look for; - reads it from stdin.")]
Task = Annotated[str, Argument("TASK", "What the agent is about to do; - reads it from stdin.")]
Kinds = Annotated[
    list[str] | None,
    Option("--kind", metavar="KIND", help="memory or event (repeatable). Default: memory."),
]
InSession = Annotated[str, Option("--in-session", metavar="ID", help="Only what was said in this session.")]
Budget = Annotated[int | None, Option("--budget", metavar="TOKENS", help="Room for the whole text.")]
Date = Annotated[
    str | None,
    Option("--date", metavar="TIME", help="When the question is asked, for words like `last week`. Default: now."),
]
Answered = Annotated[bool, Option("--answer", help="One answer instead of a list, each part with the ids it rests on.")]
Trace = Annotated[bool, Option("--trace", help="The same answer, then the account of it; no use is noted.")]
Expect = Annotated[
    list[str] | None,
    Option("--expect", metavar="TERM", help="With --trace: words the text must hold (repeatable); else exit 1."),
]
TraceTokens = Annotated[
    int | None, Option("--tokens", metavar="N", help="With --trace: room for the text. Default: 2000.")
]
Deep = Annotated[bool, Option("--deep", help="Search several wordings of a broad question at once.")]
Queries = Annotated[int | None, Option("--queries", metavar="N", help="With --deep: how many wordings. Default: 4.")]


def recall(
    surface: Surface,
    question: Question,
    scope: Scopes = None,
    type_: Types = None,
    tag: Tags = None,
    domain: Domain = None,
    since: Since = None,
    until: Until = None,
    as_of: AsOf = None,
    known_at: KnownAt = None,
    limit: Limit = 10,
    mode: Mode = "hybrid",
    fusion: Fusion = None,
    explain: Explain = False,
    session: Session = "",
    date: Date = None,
    answer: Answered = False,
    trace: Trace = False,
    expect: Expect = None,
    tokens: TraceTokens = None,
    min_relevance: MinRelevance = ABOUT,
) -> None:
    """Answer a question from memory.

    Asks what this directory, its user and everyone know; what is recalled grows stronger by it. What holds, what held before,
    what happened and how a fact came to be are searched for in different places, and a time such as `last week` is a strict
    window; stderr says what was understood. --answer is in the words of the memories, or of a model where one is configured.
    Where nothing is likely enough about the question, nothing is known, and the closest memories are shown apart.
    --trace tells how the answer came about: what was read out of the question, each search, the parts of each score, what was
    left out and why.
    """
    asked = filters(
        scope=scope, types=type_, tags=tag, domain=domain, since=since, until=until, as_of=as_of, known_at=known_at
    )
    if not trace and (expect or tokens is not None):
        raise InvalidInput("--expect and --tokens belong to --trace; add it")
    question = text_or_stdin(question)
    with surface.memory() as mem:
        check_types(mem, type_)
        asked |= {"question_date": date, "limit": limit, "mode": mode, "fusion": fusion, "compose_answer": answer}
        asked["min_relevance"] = min_relevance
        now, at = mem.upkeep.clock(), aware(as_of)
        if not trace:
            found = mem.recall(question, explain=explain, session=session, **asked)
            _show(surface, found, now, at, explain=explain, answer=answer)
            return
        from engram.cli.understanding import TRACE_TOKENS, account

        room = TRACE_TOKENS if tokens is None else tokens
        told = mem.trace_recall(question, max_tokens=room, expected_terms=expect or [], **asked)
        if not surface.as_json:
            _show(surface, told.recall, now, at, explain=False, answer=answer)
        account(surface, told, room, at or now)


def _show(
    surface: Surface, found: "Recall", now: "datetime", as_of: "datetime | None", *, explain: bool, answer: bool
) -> None:
    if found.window is not None or found.intent != "current":
        from engram.cli.understanding import understood

        surface.hint(f"engram: {understood(found)}")
    surface.warn(found.warnings)
    if surface.as_json:
        from engram.cli.records import recall_data

        surface.json(recall_data(found, as_of or now, explain=explain))
    elif not found.hits:
        from engram.cli import cards

        cards.nothing_known(found, now)
    elif (explain or surface.drawn) and not answer:
        from engram.cli import cards

        cards.hits(found.hits, now, explain=explain, dated=found.intent != "current")
    else:
        sys.stdout.write((found.answer if answer else found.text) + "\n")
    if not found.hits:
        surface.hint("engram: nothing found; `engram search` looks in every scope")


def search(
    surface: Surface,
    query: Question,
    kind: Kinds = None,
    scope: Scopes = None,
    type_: Types = None,
    status: Statuses = None,
    tag: Tags = None,
    domain: Domain = None,
    since: Since = None,
    until: Until = None,
    as_of: AsOf = None,
    known_at: KnownAt = None,
    meta: Meta = None,
    in_session: InSession = "",
    limit: Limit = 10,
    mode: Mode = "hybrid",
    fusion: Fusion = None,
    explain: Explain = False,
    deep: Deep = False,
    queries: Queries = None,
    min_relevance: MinRelevance = 0.0,
) -> None:
    """Find memories or ledger events in the whole store. Looking does not count as use."""
    from engram.cli import cards
    from engram.cli.records import hit_data

    asked = filters(
        kinds=kind, scope=scope, types=type_, status=status, tags=tag, domain=domain, since=since, until=until,
        as_of=as_of, known_at=known_at, meta=meta, session=in_session,
    )  # fmt: skip
    if queries is not None and not deep:
        raise InvalidInput("--queries belongs to --deep; add it")
    query = text_or_stdin(query)
    with surface.memory() as mem:
        check_types(mem, type_)
        if deep:
            asked["n_queries"] = 4 if queries is None else queries
        asked["min_relevance"] = min_relevance
        find = mem.deep_search if deep else mem.search
        found = find(query, limit=limit, mode=mode, fusion=fusion, explain=explain, **asked)
        now = mem.upkeep.clock()
        at = aware(as_of) or now
        surface.warn(found.warnings)
        data = {
            "query": query,
            "mode": found.mode,
            "hits": [hit_data(hit, at, explain=explain) for hit in found],
            "warnings": found.warnings,
        }
        surface.answer(data, lambda: cards.hits(found, now, explain=explain))
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
    """What an agent should know before a task.

    Phrased for its prompt, within a token budget, each item with the reason why it is there.
    """
    from engram.cli import cards
    from engram.cli.records import injection_data

    with surface.memory() as mem:
        found = mem.inject(
            text_or_stdin(task), scope=scope or None, budget=budget, session=session, min_relevance=min_relevance
        )
        surface.warn(found.warnings)
        surface.answer(injection_data(found, mem.upkeep.clock()), lambda: cards.injection(found))
        if surface.drawn:
            surface.hint(f"engram: {found.tokens} of {found.budget} tokens; {_left_out(len(found.left_out))}")
        if not found.items and not found.warnings:
            surface.hint("engram: nothing in memory bears on this")


def _left_out(number: int) -> str:
    return f"{number} left out, see `--json`" if number else "nothing left out"
