"""recall, search, inject, prepare: find memories."""

import sys
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

from engram.cli import display, views
from engram.cli.records import context_data, hit_data, injection_data, recall_data
from engram.cli.surface import Surface, text_or_stdin
from engram.cli.verbs.options import check_least, everywhere_hint, filters_of
from engram.cli.views import TRACE_TOKENS, interpretation_line, print_trace
from engram.model.errors import InvalidInput
from engram.model.hit import NOTHING_KNOWN
from engram.model.memory import aware
from engram.text.display import quote_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from engram.client import Engram
    from engram.recall.context import ContextSection, RecalledContext
    from engram.recall.recaller import Recall


def recall(
    surface: Surface,
    question: str = "",
    *,
    memories_only: bool = False,
    budget: int | None = None,
    session: str = "",
    compose_answer: bool = False,
    explain: bool = False,
    trace: bool = False,
    expected_terms: list[str] | None = None,
    max_tokens: int | None = None,
    everywhere: bool = False,
    **asked: Any,
) -> None:
    """Print what memories and sources say about a question, or the recent sessions."""
    filters = filters_of(asked, everywhere=everywhere)
    if not trace and (expected_terms or max_tokens is not None):
        raise InvalidInput("--expect and --tokens need --trace")
    question = text_or_stdin(question)
    only = memories_only or compose_answer or trace or explain or bool(filters)
    if not question.strip():
        if only:
            raise InvalidInput("Without a query there are only recent sessions; add one, or `engram list` the memories")
        _recent(surface, budget, asked.get("limit", 10))
        return
    asked |= {**filters, "compose_answer": compose_answer}
    with surface.memory() as mem:
        now, at = surface.now, aware(filters.get("as_of"), mem.time_zone)
        if not trace:
            found = mem.recall(question, explain=explain, session=session, **asked)
            context = None if only else _with_sources(surface, mem, question, asked.get("wordings", ()), found, budget)
            _show(surface, found, now, at, explain=explain, answer=compose_answer, context=context)
            return
        room = TRACE_TOKENS if max_tokens is None else max_tokens
        traced = mem.trace_recall(question, max_tokens=room, expected_terms=expected_terms or [], **asked)
        if not surface.as_json:
            _show(surface, traced.recall, now, at, explain=False, answer=compose_answer)
        print_trace(surface, traced, room, at or now)


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
    """Whether Ctrl-C was pressed: once ends the work and shows the results so far, twice ends the program."""
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
    from engram.recall.context import FURTHER_PHASE

    if found.window is not None or found.intent != "current":
        surface.hint(f"engram: {interpretation_line(found)}")
    surface.warn(found.warnings)
    others = [section for section in context.sections if section.phase != "memories"] if context else []
    from_sources = [section for section in others if section.phase != FURTHER_PHASE]
    sources_alone = not found.hits and bool(from_sources)
    if surface.as_json:
        data = recall_data(found, as_of or now, explain=explain)
        surface.json(data | {"context": context_data(context)} if context is not None else data)
        return
    if sources_alone:
        pass
    elif (explain or surface.can_draw) and not answer:
        views.answer(found, now, explain=explain)
    else:
        sys.stdout.write((found.answer if answer and found.hits else found.text) + "\n")
    if context is not None and context.summary:
        display.block(f"{chr(10) if found.hits else ''}## Summary by the model\n{quote_text(context.summary)}")
    # The text of the memories already has the other parts of the answer.
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
    everywhere: bool = False,
    explain: bool = False,
    deep: bool = False,
    n_queries: int | None = None,
    **asked: Any,
) -> None:
    """Find memories and events, and print them."""
    if n_queries is not None and not deep:
        raise InvalidInput("--queries needs --deep")
    filters = filters_of(asked, everywhere=everywhere)
    asked |= filters | ({"n_queries": 4 if n_queries is None else n_queries} if deep else {})
    query = text_or_stdin(query)
    with surface.memory() as mem:
        found = (mem.deep_search if deep else mem.search)(query, explain=explain, **asked)
        now = surface.now
        at = aware(filters.get("as_of"), mem.time_zone) or now
        surface.warn(found.warnings)
        data = {
            "query": query,
            "mode": found.mode,
            "hits": [hit_data(hit, at, explain=explain) for hit in found],
            "warnings": found.warnings,
        }
        surface.answer(data, lambda: views.hits(found, now, explain=explain))
        if not found:
            surface.hint(f"engram: nothing found{everywhere_hint(filters)}")


def timeline(surface: Surface, about: str = "", **asked: Any) -> None:
    """Print what was known and what happened over time."""
    with surface.memory() as mem:
        found = mem.timeline(about, **asked)
        surface.answer({"entries": found}, lambda: views.timeline(found))
        if not found:
            surface.hint("engram: nothing is known of that time")


def inject(
    surface: Surface,
    task: str,
    *,
    block: bool = False,
    max_tokens: int = 2000,
    header: str = "",
    by_type: bool = False,
    session: str = "",
    **asked: Any,
) -> None:
    """Print the memories that concern a task, for an agent's prompt."""
    if block:
        check_least("--tokens", max_tokens, 1)
        asked.pop("budget", None)
        _print_block(
            surface, text_or_stdin(task), session, max_tokens=max_tokens, header=header, group_by_type=by_type, **asked
        )
        return
    if header or by_type:
        raise InvalidInput("--header and --by-type need --block")
    with surface.memory() as mem:
        found = mem.inject(text_or_stdin(task), session=session, **asked)
        surface.warn(found.warnings)
        surface.answer(injection_data(found, surface.now), lambda: views.injection(found))
        if surface.can_draw:
            surface.hint(f"engram: {found.tokens} of {found.budget} tokens; {_left_out(len(found.left_out))}")
        if not found.items and not found.warnings:
            surface.hint("engram: no memory is relevant to this")


def _left_out(number: int) -> str:
    return f"{number} left out, see `--json`" if number else "nothing left out"


def _print_block(surface: Surface, query: str, session: str, *, max_tokens: int, **asked: Any) -> None:
    from engram.embedding.word_pieces import count_tokens

    with surface.memory() as mem:
        text = mem.get_context_block(query, max_tokens=max_tokens, session=_session_with_summary(mem, session), **asked)
        used = count_tokens(text)
        data = {"query": query, "text": text, "tokens": used, "budget": max_tokens}
        surface.answer(data, lambda: display.block(text))
        if not text:
            surface.hint("engram: no memory is relevant to this")
        elif surface.can_draw:
            surface.hint(f"engram: {used} of {max_tokens} tokens")


def prepare(surface: Surface, task: str, **asked: Any) -> None:
    """Print a briefing before a task."""
    task = text_or_stdin(task)
    with surface.memory() as mem:
        with display.late_progress("Reading sources") as progress, _interruptible() as cancelled:
            found = mem.prepare(task, progress=progress, cancelled=cancelled, **asked)
        _note(surface, found.context)
        data = {"task": task, "queries": list(found.queries), "text": found.text}
        surface.answer(data | {"context": context_data(found.context)}, lambda: display.block(found.text))
        if surface.can_draw:
            surface.hint(f"engram: looked for {', '.join(map(quote_text, found.queries))}")
        if not found.context.sections:
            surface.hint("engram: nothing is known about this task")


def _session_with_summary(mem: "Engram", session: str) -> str:
    """The session whose summary to use; "" for a session that so far is only a ledger."""
    from engram.model.records import Session as SessionRecord

    begun_by_observing = (
        session and mem.store.load_record(SessionRecord, session) is None and mem.store.events(session, last=1)
    )
    return "" if begun_by_observing else session
