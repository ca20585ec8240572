"""recall, search, inject, prepare: find memories."""

import sys
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

from engram.cli import display, views
from engram.cli.parser import Argument, Option
from engram.cli.records import context_data, hit_data, injection_data, recall_data
from engram.cli.surface import Surface, text_or_stdin
from engram.cli.verbs.options import (
    MemoryFilters,
    MinRelevance,
    Ranking,
    Scopes,
    Session,
    check_least,
    check_types,
    filters_of,
    wider,
)
from engram.cli.views import TRACE_TOKENS, account, understood
from engram.model.errors import InvalidInput
from engram.model.fields import aware
from engram.model.hit import NOTHING_KNOWN
from engram.recall.cutoff import HELPFUL, MIN_KNOWN
from engram.text.display import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from engram.client import Engram
    from engram.recall.context import ContextSection, RecalledContext
    from engram.recall.recaller import Recall

Task = Annotated[str, Argument("TASK", "What the agent is about to do; - reads it from stdin.")]
RecallQuery = Annotated[
    str, Argument("QUERY", "What to look for; - reads it from stdin. Without one: recent sessions.")
]
MemoriesOnly = Annotated[bool, Option("--memories-only", help="Only memories; no files and sessions of other tools.")]
Bytes = Annotated[int | None, Option("--bytes", metavar="N", help="Byte budget of the whole text.")]
Block = Annotated[bool, Option("--block", help="Print a block that quotes memories instead; no use is recorded.")]
BlockTokens = Annotated[int, Option("--tokens", metavar="N", help="With --block: its token budget.")]
Header = Annotated[str, Option("--header", metavar="TEXT", help="With --block: a first line of your own.")]
ByType = Annotated[bool, Option("--by-type", help="With --block: a heading for each type of memory.")]
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
Also = Annotated[
    list[str] | None,
    Option(
        "--also", metavar="TEXT", help="The question in other words, searched together with it (repeatable, at most 8)."
    ),
]


def recall(
    surface: Surface,
    filters: MemoryFilters,
    ranking: Ranking,
    question: RecallQuery = "",
    also: Also = None,
    memories_only: MemoriesOnly = False,
    budget: Bytes = None,
    session: Session = "",
    date: Date = None,
    answer: Answered = False,
    trace: Trace = False,
    expect: Expect = None,
    tokens: TraceTokens = None,
    min_relevance: MinRelevance = MIN_KNOWN,
) -> None:
    """Answer a question from memory, and from what other tools' files say about it.

    First the memories of this directory, its user and everywhere; then, as quoted evidence with its place, what the auto memory
    of agents, the sessions of this project, skills, instruction files and rules say. --memories-only leaves these out, and so do filters,
    --answer, --explain and --trace, which are about memories. Without a query, which all of these need: what was said in
    the recent sessions of this project, the summaries of the newest sessions, and the memories from that time. None of these files is ever written.

    Recalled memories are reinforced. Questions about the current value, a past value, an event and a history are answered from
    different places, and a time such as `last week` is a strict window; stderr says how the question was interpreted. --answer
    uses the words of the memories, or a model where one is configured. What is possibly related, unconfirmed, no longer current or
    known in other projects follows under a heading of its own. --also searches other wordings together with the question.
    --trace shows how the answer was found: how the question was interpreted, each search, the parts of each score, and what
    was left out and why.
    """
    asked = filters.chosen()
    if not trace and (expect or tokens is not None):
        raise InvalidInput("--expect and --tokens need --trace")
    question = text_or_stdin(question)
    only = memories_only or answer or trace or ranking.explain or bool(asked)
    if not question.strip():
        if only:
            raise InvalidInput("Without a query there are only recent sessions; add one, or `engram list` the memories")
        _recent(surface, budget, ranking.limit)
        return
    with surface.memory() as mem:
        check_types(mem, filters.type_)
        asked |= {"question_date": date, "limit": ranking.limit, "mode": ranking.mode, "fusion": ranking.fusion}
        asked |= {"compose_answer": answer, "min_relevance": min_relevance, "wordings": also or ()}
        now, at = surface.now, aware(filters.as_of, mem.time_zone)
        if not trace:
            found = mem.recall(question, explain=ranking.explain, session=session, **asked)
            context = None if only else _with_sources(surface, mem, question, also or (), found, budget)
            _show(surface, found, now, at, explain=ranking.explain, answer=answer, context=context)
            return
        room = TRACE_TOKENS if tokens is None else tokens
        traced = mem.trace_recall(question, max_tokens=room, expected_terms=expect or [], **asked)
        if not surface.as_json:
            _show(surface, traced.recall, now, at, explain=False, answer=answer)
        account(surface, traced, room, at or now)


def _recent(surface: Surface, budget: int | None, limit: int) -> None:
    """The recent sessions of this project."""
    with surface.memory() as mem, _interruptible() as cancelled:
        found = mem.recall_context(budget=budget, limit=limit, cancelled=cancelled)
        _note(surface, found)
        surface.answer(context_data(found), lambda: display.block(found.text))
        if not found.sections:
            surface.hint(
                "engram: this project has no recent sessions and no memories; `engram recall QUERY` searches memories and files"
            )


def _with_sources(
    surface: Surface,
    mem: "Engram",
    question: str,
    wordings: "Sequence[str]",
    found: "Recall",
    budget: int | None,
) -> "RecalledContext":
    with display.late_progress("Reading sources") as progress, _interruptible() as cancelled:
        context = mem.recall_context(
            question, wordings=wordings, memories=found, budget=budget, progress=progress, cancelled=cancelled
        )
    _note(surface, context)
    return context


def _note(surface: Surface, context: "RecalledContext") -> None:
    surface.warn(context.warnings)
    if context.stopped == "cancelled":
        surface.say("engram: note: interrupted; this is what was found until then")


@contextmanager
def _interruptible() -> "Iterator[Callable[[], bool]]":
    """Whether somebody pressed Ctrl-C: once ends the work and shows what was found, twice ends the program."""
    import signal
    import threading

    pressed: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return

    def note(number: int, _frame: object) -> None:
        if pressed:
            raise KeyboardInterrupt
        pressed.append(number)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: bool(pressed)
    finally:
        signal.signal(signal.SIGINT, before)


def _show(
    surface: Surface,
    found: "Recall",
    now: datetime,
    as_of: datetime | None,
    *,
    explain: bool,
    answer: bool,
    context: "RecalledContext | None" = None,
) -> None:
    from engram.recall.context import FURTHER

    if found.window is not None or found.intent != "current":
        surface.hint(f"engram: {understood(found)}")
    surface.warn(found.warnings)
    others = [section for section in context.sections if section.phase != "memories"] if context else []
    from_sources = [section for section in others if section.phase != FURTHER]
    sources_alone = not found.hits and bool(from_sources)
    if surface.as_json:
        data = recall_data(found, as_of or now, explain=explain)
        surface.json(data | {"context": context_data(context)} if context is not None else data)
        return
    if sources_alone:
        pass
    elif (explain or surface.drawn) and not answer:
        views.answer(found, now, explain=explain)
    else:
        sys.stdout.write((found.answer if answer and found.hits else found.text) + "\n")
    if context is not None and context.summary:
        display.block(f"{chr(10) if found.hits else ''}## Summary by the model\n{quoted(context.summary)}")
    # The text of the memories has the other parts of the answer already.
    _show_sources(
        others if sources_alone else from_sources, apart=bool(found.hits) or bool(context and context.summary)
    )
    if not found.hits:
        nothing = "no memory about this" if from_sources or found.text != NOTHING_KNOWN else "nothing found"
        surface.hint(f"engram: {nothing}; `engram search` shows weaker matches, --everywhere searches all scopes")
    elif found.elsewhere:
        surface.hint("engram: --everywhere includes other projects")


def _show_sources(sections: "Sequence[ContextSection]", *, apart: bool) -> None:
    title = ""
    for section in sections:
        if section.title != title:
            title = section.title
            display.block(f"{chr(10) if apart else ''}## {title}")
            apart = True
        display.block(section.line)


def search(
    surface: Surface,
    query: str,
    *,
    scope: list[str] | None = None,
    everywhere: bool = False,
    as_of: str | None = None,
    explain: bool = False,
    deep: bool = False,
    n_queries: int | None = None,
    **asked: Any,
) -> None:
    """Find memories and events, and print them."""
    if n_queries is not None and not deep:
        raise InvalidInput("--queries needs --deep")
    asked |= filters_of(scope=scope, everywhere=everywhere, as_of=as_of) | (
        {"n_queries": n_queries or 4} if deep else {}
    )
    query = text_or_stdin(query)
    with surface.memory() as mem:
        found = (mem.deep_search if deep else mem.search)(query, explain=explain, **asked)
        now = surface.now
        at = aware(as_of, mem.time_zone) or now
        surface.warn(found.warnings)
        data = {
            "query": query,
            "mode": found.mode,
            "hits": [hit_data(hit, at, explain=explain) for hit in found],
            "warnings": found.warnings,
        }
        surface.answer(data, lambda: views.hits(found, now, explain=explain))
        if not found:
            surface.hint(f"engram: nothing found{wider(scope, everywhere=everywhere)}")


def timeline(surface: Surface, about: str = "", **asked: Any) -> None:
    """Print what was known and what happened over time."""
    with surface.memory() as mem:
        found = mem.timeline(about, **asked)
        surface.answer({"entries": found}, lambda: views.timeline(found))
        if not found:
            surface.hint("engram: nothing is known of that time")


def inject(
    surface: Surface,
    task: Task,
    scope: Scopes = None,
    budget: Budget = None,
    session: Session = "",
    min_relevance: MinRelevance = HELPFUL,
    block: Block = False,
    tokens: BlockTokens = 2000,
    header: Header = "",
    by_type: ByType = False,
) -> None:
    """Print the memories that concern a task, for an agent's prompt.

    Use it when the task of a running session changes. `session start` prints the same at the start; `prepare` also reads files.
    The text fits a token budget and gives the reason for each item. --block prints the summary of the session, then the critical
    facts that concern the task, then other relevant memories; it only quotes memories and records no use.
    """
    if block:
        _print_block(surface, text_or_stdin(task), tokens, header, by_type, session, scope, min_relevance)
        return
    if header or by_type:
        raise InvalidInput("--header and --by-type need --block")
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


def _print_block(
    surface: Surface,
    query: str,
    tokens: int,
    header: str,
    by_type: bool,
    session: str,
    scope: list[str] | None,
    min_relevance: float,
) -> None:
    from engram.embedding.tokenizer import count_tokens

    check_least("--tokens", tokens, 1)
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


def prepare(surface: Surface, task: Task, also: Also = None, budget: Bytes = None) -> None:
    """Print a briefing before a task: what memories and the files of other tools say about it.

    Use it once before larger work; `inject` prints memories only. Splits the task into two or three questions, phrased as tasks,
    and prints each answer once, every line with its source. Sources are auto memory, the sessions of this project, skills, instruction files and rules; none of them is ever written.
    """
    task = text_or_stdin(task)
    with surface.memory() as mem:
        with display.late_progress("Reading sources") as progress, _interruptible() as cancelled:
            found = mem.prepare(task, wordings=also or (), budget=budget, progress=progress, cancelled=cancelled)
        _note(surface, found.context)
        data = {"task": task, "queries": list(found.queries), "text": found.text}
        surface.answer(data | {"context": context_data(found.context)}, lambda: display.block(found.text))
        if surface.drawn:
            surface.hint(f"engram: looked for {', '.join(map(quoted, found.queries))}")
        if not found.context.sections:
            surface.hint("engram: nothing is known about this task")


def _summarised(mem: "Engram", session: str) -> str:
    """The session whose summary to use: one that is only a ledger so far has none."""
    from engram.model.event import Session as SessionRecord

    begun_by_observing = (
        session and mem.store.load_record(SessionRecord, session) is None and mem.store.events(session, last=1)
    )
    return "" if begun_by_observing else session
