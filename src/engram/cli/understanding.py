"""What a recall understood of a question, and the account of how its text came about."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from engram.cli.exits import FAILED
from engram.cli.plain_text import moment

if TYPE_CHECKING:
    from engram.cli.surface import Surface
    from engram.client import Engram
    from engram.recall.blocks import RecallTrace
    from engram.recall.recalling import Recall

TRACE_TOKENS = 2_000
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


def account(
    surface: "Surface",
    mem: "Engram",
    question: str,
    expected: Sequence[str],
    tokens: int | None,
    *,
    explain: bool,
    filters: Mapping[str, Any],
) -> None:
    """Print how a recall's text came about; exit 1 where an expected term is missing."""
    from engram.cli.records import trace_data

    room = TRACE_TOKENS if tokens is None else tokens
    found = mem.trace_recall(question, max_tokens=room, expected_terms=expected, **filters)
    surface.warn(found.ranked.warnings)
    data = {**trace_data(found, mem.upkeep.clock()), "budget": room}
    surface.answer(data, lambda: _draw(found, room, explain=explain))
    if found.missing_expected_terms:
        surface.hint(f"engram: missing: {', '.join(found.missing_expected_terms)}")
        raise SystemExit(FAILED)


def _draw(found: "RecallTrace", room: int, *, explain: bool) -> None:
    from engram.cli import cards, drawing
    from engram.cli.plain_text import line

    groups = (
        ("kept", "green", dict.fromkeys(found.kept, "")),
        ("trimmed", "yellow", dict.fromkeys(found.trimmed, "no room left")),
        ("superseded", "bright_black", dict.fromkeys(found.superseded, "no longer in force")),
        ("passed over", "bright_black", {one.id: one.reason for one in found.irrelevant}),
        ("missing", "bold red", dict.fromkeys(found.missing_expected_terms, "expected, and not in the text")),
    )
    hits = {hit.id: hit for hit in found.ranked}
    for name, style, members in groups:
        for member, why in members.items():
            said = f"  {line(hits[member].text, 80)}" if member in hits else ""
            drawing.lines([(f"{name:<12}", style), (member, "cyan"), said, (f"  {why}" if why else "", "bright_black")])
            if explain and member in hits:
                cards.trace(hits[member])
    drawing.lines([("tokens      ", "bold"), f"{found.tokens} of {room}"])
