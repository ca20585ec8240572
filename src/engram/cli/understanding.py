"""What a recall understood of a question, and the account of how its answer came about."""

from typing import TYPE_CHECKING

from engram.cli import cards, drawing
from engram.cli.exits import FAILED
from engram.cli.plain_text import line, moment

if TYPE_CHECKING:
    from datetime import datetime

    from engram.cli.surface import Surface
    from engram.model.hit import SearchTrace
    from engram.recall.blocks import RecallTrace
    from engram.recall.recaller import Recall
    from engram.recall.trace import Trace

TRACE_TOKENS = 2_000
MOST_LEFT_OUT = 20
"""Documents left out that a reader is shown; JSON has all of them."""
_ASKED = {
    "current": "what holds",
    "historical": "what held before",
    "event": "what happened",
    "lineage": "how it came to be",
}


def understood(recall: "Recall") -> str:
    """One line: what the question asks for and of which time, with the words that said so."""
    question = recall.understood
    reason = f" (“{question.reason}”)" if question and recall.intent != "current" else ""
    phrase = f" (“{question.phrase}”)" if question and question.phrase else ""
    if recall.window is None:
        return f"asked for {_ASKED[recall.intent]}{reason}"
    since, until = moment(recall.window.since), moment(recall.window.until)
    ends = [f"from {since}" if since else "", f"until {until}" if until else ""]
    return f"asked for {_ASKED[recall.intent]}{reason}, {' '.join(end for end in ends if end)}{phrase}"


def account(surface: "Surface", told: "RecallTrace", room: int, at: "datetime") -> None:
    """Print how a recall's answer came about; exit 1 where an expected term is missing."""
    if surface.as_json:
        from engram.cli.records import budget_data, recall_data

        surface.warn(told.recall.warnings)
        surface.json({**recall_data(told.recall, at, explain=True), **budget_data(told, room)})
    else:
        _draw(told, room)
    if told.missing_expected_terms:
        surface.hint(f"engram: missing: {', '.join(told.missing_expected_terms)}")
        raise SystemExit(FAILED)


def _draw(told: "RecallTrace", room: int) -> None:
    trace = told.recall.trace
    assert trace is not None
    drawing.lines([""])
    _draw_reading(told.recall, trace)
    for number, search in enumerate(trace.searches, 1):
        _draw_search(number, search)
    _row("answer", trace.method, "green")
    for hit in told.recall.hits:
        _row("hit", f"{hit.id}  {line(hit.text, 80)}", "green", trace.origins[hit.id])
        cards.trace(hit)
    _draw_left_out(told, trace)
    _row("tokens", f"{told.tokens} of {room}")


def _draw_reading(recall: "Recall", trace: "Trace") -> None:
    question = trace.question
    _row("intent", f"{recall.intent}, {_ASKED[recall.intent]}", "bold", question.reason)
    if recall.window is not None:
        since, until = moment(recall.window.since) or "…", moment(recall.window.until) or "…"
        _row("window", f"{since} until {until}", "bold", f"“{question.phrase}”" if question.phrase else "")
    if question.anchor:
        by = f"dated by {trace.anchor}" if trace.anchor else "not looked up, or not known"
        _row("anchor", f"{question.relation} “{line(question.anchor)}”, {by}")
    _row("subject", line(question.subject))
    for warning in recall.warnings:
        _row("note", warning, "yellow")


def _draw_search(number: int, search: "SearchTrace") -> None:
    _row(f"search {number}", f"{search.purpose}: “{line(search.text, 80)}”", "cyan")
    _row("", f"in {search.where}")
    terms = ", ".join(search.terms) or "none"
    pruned = f", too common: {', '.join(search.pruned_terms)}" if search.pruned_terms else ""
    given = ", ".join(f"{name} {count}" for name, count in search.candidates.items())
    cut = f", {len(search.cut)} beyond the limit of {search.limit}" if search.cut else ""
    _row("", f"{search.mode}; terms: {terms}{pruned}; candidates: {given}; found {len(search.found)}{cut}")


def _draw_left_out(told: "RecallTrace", trace: "Trace") -> None:
    for one in trace.filtered[:MOST_LEFT_OUT]:
        _row("left out", one.id, "bright_black", one.reason)
    if len(trace.filtered) > MOST_LEFT_OUT:
        _row("left out", f"{len(trace.filtered) - MOST_LEFT_OUT} more; --json names them", "bright_black")
    for name in told.trimmed:
        _row("trimmed", name, "yellow", "no room left")
    for name in told.superseded:
        _row("superseded", name, "bright_black", "matches, and is no longer current")
    for term in told.missing_expected_terms:
        _row("missing", term, "bold red", "expected, and not in the text")


def _row(name: str, value: str, style: str = "bold", aside: str = "") -> None:
    drawing.lines([(f"{name:<12}", style), line(value), (f"  ({line(aside)})" if aside else "", "bright_black")])
