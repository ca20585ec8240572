"""A session's rolling summary: extracts of its events, repeatedly folded into the same token budget.

A line quotes one sentence: `[12] user: “Never push to main.”`, where 12 is the event's number in its session. A reader
can cite the number, and the next fold can parse it. Contradicted, completed and repeated lines are dropped; goal,
constraints, decisions and open steps come before mere events.
"""

import re
from collections.abc import Callable, Container, Sequence
from typing import TYPE_CHECKING

from engram.model.errors import EngramError, InvalidInput
from engram.model.lazy import dataclass, field, replace
from engram.model.records import Event
from engram.sessions.summary_lines import (
    KINDS,
    LONGEST_LINE,
    Line,
    drop_obsolete,
    is_durable,
    kind_of,
    lines_of,
    mark_goal,
    weights,
)
from engram.text.display import cut, escape_hidden, longest_fitting, notice, one_line, quote_text, safe_word

if TYPE_CHECKING:
    from engram.llm.model import LanguageModel


STYLES = ("plain", "structured")
TITLES = dict(
    zip(KINDS, ("Goal", "Constraints", "Progress", "Decisions", "Next steps", "Critical context"), strict=True)
)
"""The sections of the structured style, in order; empty ones are left out."""
RULES = "rules"

DURABLE_SHARE = 0.8
"""The share of the budget that goal, constraints, decisions and open steps may fill first."""
LEAST_WORTH = 1.7
"""Lines below this weight are chatter, and are dropped even if there is room."""
REPEATED_KIND = 0.25
"""How much each further line of one kind loses in weight, so that no kind crowds out the others."""
SLICE = 40
"""Events folded in one step; between steps at most this many lines per kind are carried over."""
MAX_REFOLDED_EVENTS = 500
"""The longest session that is folded again from its first event if its summary uses less than half of the budget."""
_LEAST_CHARACTERS = 24
_TOKENS_ASKED = 6_000
_CHARACTERS_ASKED = 2_000

_LINE = re.compile(r"(?:- )?(?:\[(?P<seq>\d{1,15})\] )?(?:(?P<speaker>[\w-]{1,24}): )?“(?P<text>.*)”")
_HEADING = re.compile(r"#{1,6}\s+(.*)")
_BULLET = re.compile(r"^\s*(?:[-*+•>]\s+|\d{1,3}[.)]\s+)*")
_KIND_OF_TITLE = {title.casefold(): kind for kind, title in TITLES.items()}

Count = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class Summary:
    """The summary of a session up to event number `through`. `made_by` is "rules" or a model's name."""

    text: str
    through: int
    style: str = "plain"
    made_by: str = RULES


def summarise(
    previous: Summary | None,
    events: Sequence[Event],
    *,
    style: str = "plain",
    max_tokens: int = 400,
    count: Count,
) -> Summary:
    """Fold the events after `previous.through` into the summary, within `max_tokens` as counted by `count`.

    Events already covered are ignored. Without new events, and with the same room and style, the summary stays
    unchanged.
    """
    _check(style, max_tokens)
    through, fresh = _fresh(previous, events)
    if previous and not fresh and previous.style == style and count(previous.text) <= max_tokens:
        return previous
    lines = _parse_lines(previous) if previous else []
    for start in range(0, max(len(fresh), 1), SLICE):
        added = [line for event in fresh[start : start + SLICE] for line in lines_of(event)]
        lines = _still_valid([*lines, *added])
    return Summary(_fit_lines(lines, style, max_tokens, count), through, style, RULES)


def has_room(summary: Summary, max_tokens: int, count: Count) -> bool:
    """Whether a summary may have been made for a smaller budget, and its session is short enough to fold again.

    A model is not asked twice.
    """
    return summary.made_by == RULES and summary.through <= MAX_REFOLDED_EVENTS and 2 * count(summary.text) < max_tokens


def _check(style: str, max_tokens: int) -> None:
    if style not in STYLES:
        raise InvalidInput(f"Unknown summary style {style!r}; choose {' or '.join(STYLES)}")
    if max_tokens < 0:
        raise InvalidInput(f"max_tokens {max_tokens} must be 0 or more")


def _fresh(previous: Summary | None, events: Sequence[Event]) -> tuple[int, list[Event]]:
    """The number of the last event covered, and the events not covered yet, each once, in order."""
    through = previous.through if previous else 0
    fresh = {event.seq: event for event in events if event.seq > through}
    return max(fresh, default=through), [fresh[seq] for seq in sorted(fresh)]


def _parse_lines(summary: Summary) -> list[Line]:
    """Parse the lines of a summary. A model's text is taken row by row, and its event numbers are ignored."""
    lines: list[Line] = []
    kind = ""
    for place, row in enumerate(summary.text.splitlines()):
        found = _LINE.fullmatch(row) if summary.made_by == RULES else None
        if heading := _HEADING.match(row):
            kind = _KIND_OF_TITLE.get(heading[1].strip().casefold(), "")
        elif found:
            speaker = found["speaker"] or ""
            own = kind or kind_of(found["text"], speaker)
            lines.append(Line(int(found["seq"] or 0), place, speaker, found["text"], own))
        elif said := _BULLET.sub("", row).strip():
            lines.append(Line(0, place, "", cut(one_line(said), LONGEST_LINE), kind or kind_of(said, "")))
    return sorted(lines, key=lambda line: (line.seq, line.place))


def _still_valid(lines: Sequence[Line]) -> list[Line]:
    """The lines that are still valid, the best of each kind."""
    marked, goals = mark_goal(lines)
    valid = drop_obsolete(marked, goals)
    worth = dict(zip(map(id, valid), weights(valid, goals), strict=True))
    best: set[int] = set()
    for kind in KINDS:
        own = sorted((line for line in valid if line.kind == kind), key=lambda line: -worth[id(line)])
        best.update(map(id, own[:SLICE]))
    return [line for line in valid if id(line) in best]


@dataclass(slots=True)
class _SummaryText:
    """A summary that is being filled."""

    style: str
    count: Count
    lines: list[Line] = field(default_factory=list)
    used: int = 0

    def place(self, line: Line, room: int) -> None:
        if line in self.lines:
            return
        cost = self.count("\n" + self._row(line))
        if self.style == "structured" and all(other.kind != line.kind for other in self.lines):
            cost += self.count(f"\n\n## {TITLES[line.kind]}")
        if self.used + cost <= room:
            self.lines.append(line)
            self.used += cost

    def text(self) -> str:
        ordered = sorted(self.lines, key=lambda line: (line.seq, line.place))
        if self.style == "plain":
            return "\n".join(map(self._row, ordered))
        blocks = []
        for kind, title in TITLES.items():
            if own := [self._row(line) for line in ordered if line.kind == kind]:
                blocks.append("\n".join([f"## {title}", *own]))
        return "\n\n".join(blocks)

    def _row(self, line: Line) -> str:
        source = f"[{line.seq}] " if line.seq else ""
        speaker = f"{safe_word(line.speaker)}: " if line.speaker else ""
        return f"{'- ' if self.style == 'structured' else ''}{source}{speaker}{quote_text(line.text)}"


def _fit_lines(lines: Sequence[Line], style: str, max_tokens: int, count: Count) -> str:
    """The lines with the highest weights, as many as fit; their total is measured at the end."""
    ranked = _rank_lines(lines)
    page = _SummaryText(style, count)
    for line in ranked[:1]:
        page.place(line, max_tokens)
    if not page.lines:
        return _shorten_line(ranked[0], style, max_tokens, count) if ranked else ""
    for line in filter(is_durable, ranked):
        page.place(line, int(DURABLE_SHARE * max_tokens))
    for line in ranked:
        page.place(line, max_tokens)
    while page.lines and count(page.text()) > max_tokens:
        page.lines.pop()
    return page.text()


def _rank_lines(lines: Sequence[Line]) -> list[Line]:
    """Order the lines by weight, highest first; each further line of a kind counts for less."""
    marked, goals = mark_goal(lines)
    worth = weights(marked, goals)
    found = sorted(zip(worth, marked, strict=True), key=lambda pair: (-pair[0], -pair[1].seq, pair[1].place))
    counts = dict.fromkeys(KINDS, 0)
    ranked = []
    for value, line in found:
        if value >= LEAST_WORTH:
            ranked.append((value - REPEATED_KIND * counts[line.kind], line))
            counts[line.kind] += 1
    return [line for _, line in sorted(ranked, key=lambda pair: -pair[0])]


def _shorten_line(line: Line, style: str, max_tokens: int, count: Count) -> str:
    """The most important line, cut until it fits; empty if even a few words are too long."""

    def page(text: str) -> str:
        return _SummaryText(style, count, [Line(line.seq, line.place, line.speaker, text, line.kind)]).text()

    least = min(_LEAST_CHARACTERS, len(line.text))
    text = page(longest_fitting(line.text, lambda body: count(page(body)) <= max_tokens, least))
    return text if count(text) <= max_tokens else ""


def without(summary: Summary, events: Container[int]) -> Summary:
    """The summary without its quotes of the events with these numbers, for when they are redacted or purged.

    A model's text cannot be separated by event, so its summary is emptied and covers nothing; it has to be made again.
    """
    lines = _parse_lines(summary)
    if summary.made_by != RULES or not all(line.seq for line in lines):
        return Summary("", 0, summary.style, RULES)
    left = [line for line in lines if line.seq not in events]
    if len(left) == len(lines):
        return summary
    return replace(summary, text=_SummaryText(summary.style, len, left).text())


def summarise_with(
    ask: Callable[[str], str],
    model: str,
    previous: Summary | None,
    events: Sequence[Event],
    *,
    style: str = "plain",
    max_tokens: int = 400,
    count: Count,
) -> Summary:
    """The same fold by a model: `ask` takes the summary so far and the new events as quoted lines, and returns text.

    Events that do not fit in one call are first folded by the rules. If the model fails (EngramError) or returns
    nothing, the rules' summary is returned. Longer answers are cut, and only the six headings are accepted as headings.
    """
    _check(style, max_tokens)
    through, fresh = _fresh(previous, events)
    by_rules = summarise(previous, events, style=style, max_tokens=max_tokens, count=count)
    if not fresh:
        return by_rules
    recent = _recent(fresh, count)
    if older := fresh[: len(fresh) - len(recent)]:
        previous = summarise(previous, older, style=style, max_tokens=max_tokens, count=count)
    try:
        answer = ask("\n\n".join(filter(None, (previous.text if previous else "", "\n".join(recent)))))
    except EngramError:
        return by_rules
    text = longest_fitting(_clean_answer(answer), lambda body: count(body) <= max_tokens, 0)
    usable = any(map(str.isalpha, text)) and count(text) <= max_tokens
    return Summary(text, through, style, model) if usable else by_rules


def _recent(events: Sequence[Event], count: Count) -> list[str]:
    """The newest events as quoted lines, as many as fit in one call; at least the last."""
    rows: list[str] = []
    left = _TOKENS_ASKED
    for event in reversed(events):
        row = f"[{event.seq}] {safe_word(event.role)} ({notice(event.event_type)}): {quote_text(cut(event.content, _CHARACTERS_ASKED))}"
        left -= count(row)
        if rows and left < 0:
            break
        rows.append(row)
    return rows[::-1]


def _clean_answer(answer: str) -> str:
    """A model's answer without hidden text and without headings other than ours."""
    rows = []
    for row in escape_hidden("\n".join(answer.splitlines())).strip().split("\n"):
        heading = _HEADING.match(row.strip())
        if heading and (kind := _KIND_OF_TITLE.get(heading[1].strip(" *:").casefold())):
            rows.append(f"## {TITLES[kind]}")
        else:
            rows.append(heading[1] if heading else row.rstrip())
    return "\n".join(rows)


def model_asker(model: "LanguageModel") -> Callable[[str], str]:
    """Build a function that asks the model: it sends the summary so far and the new turns as data, and returns sections."""
    from engram.llm.schemas import SessionSummary

    def ask(turns: str) -> str:
        made = model.ask("summary", SessionSummary, {"turns": turns})
        parts = ([made.goal], made.constraints, made.progress, made.decisions, made.next_steps, made.critical_context)
        sections = zip(TITLES.values(), parts, strict=True)
        return "\n".join(
            f"## {title}\n" + "\n".join(f"- {line}" for line in lines if line.strip())
            for title, lines in sections
            if any(line.strip() for line in lines)
        )

    return ask
