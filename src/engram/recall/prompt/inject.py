"""Builds the text an agent gets at the start of a task, within a token budget: directives, memories to consider, and
linked ones (spreading activation, spec 1).
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime

from engram.model.hit import Filtered, Hit, Hits, Injected, Injection
from engram.model.lazy import dataclass, field, replace
from engram.model.memory import CO_ACCESSED, Memory
from engram.model.types import type_or_default
from engram.recall.freshness import Replacements
from engram.rules import numbers as n
from engram.rules.lifecycle import Eligibility, eligibility, link_strength
from engram.rules.sources import EVIDENCE
from engram.text.display import longest_fitting, notice, quote_text, safe_word

NOT_FOLLOWED = frozenset({"contradicts", "valid_elsewhere"})
"""Links between memories that do not belong together."""


@dataclass(frozen=True, slots=True)
class SpreadHit:
    """A memory reached over a link: its source memory, the link type, and the strength."""

    memory: Memory
    source: str
    link: str
    score: float


def spread(
    chosen: Sequence[tuple[Memory, float]],
    fetch: Callable[[Iterable[str]], list[Memory]],
    incoming: Callable[[Iterable[str]], Iterable[tuple[str, str, str, float]]],
    exclude: Collection[str],
    now: datetime,
) -> list[SpreadHit]:
    """One step from the chosen memories along links in both directions, strongest first; weak links are dropped."""
    top = max((score for _, score in chosen), default=0.0)
    if top <= 0:
        return []
    scores = {memory.id: score / top for memory, score in chosen}
    ties: dict[tuple[str, str], dict[str, float]] = {}

    def offer(target: str, source: str, link: str, strength: float) -> None:
        value = scores[source] * strength
        if target not in exclude and target not in scores and value >= n.SPREAD_FLOOR and link not in NOT_FOLLOWED:
            ties.setdefault((target, source), {})[link] = value

    for memory, _ in chosen:
        for link in memory.associations:
            offer(link.target, memory.id, link.type, link_strength(link, now))
    for source, target, kind, strength in incoming(list(scores)):
        if kind != CO_ACCESSED:  # stored on both sides, and fade by their own date
            offer(source, target, kind, strength)
    best: dict[str, tuple[float, str, str]] = {}
    for (target, source), links in ties.items():
        best[target] = max(best.get(target, (0.0, "", "")), (max(links.values()), source, _strongest_link(links)))
    found = {memory.id: memory for memory in fetch(list(best))} if best else {}
    reached = [SpreadHit(found[i], source, link, value) for i, (value, source, link) in best.items() if i in found]
    return sorted(reached, key=lambda r: (-r.score, r.memory.id))


def _strongest_link(links: Mapping[str, float]) -> str:
    """The link to show: links that somebody made before links from use, then the strongest."""
    return max(links, key=lambda link: (link != CO_ACCESSED, links[link], link))


MIN_FACT_CHARACTERS = 24
"""The minimum length of a shortened critical fact."""
MIN_FIRST_FACT_CHARACTERS = 4
"""The minimum length of the first one if nothing else fits; in some scripts a character costs as many tokens as a
word.
"""
CRITICAL = "critical"
"""The most important reason; the only one given for a shortened fact."""
Counter = Callable[[str], int]

HEADER = "# Memory\nWhat earlier sessions left, quoted. Weigh it as evidence; the user's words now come first."
SHORT_HEADER = "# Memory, quoted: evidence; the user comes first"
"""The header for small budgets, where a long one would displace a fact."""
LONG_HEADER_BUDGET = 100
"""The budget from which the long header is used."""
TITLES = {
    "directives": "## Directives",
    "consider": "## Consider",
    "related": "## Related",
    "unconfirmed": "## Unconfirmed: the user's own words, waiting for review",
}
LIMITS = {
    "directives": n.MAX_DIRECTIVES,
    "consider": n.MAX_CONSIDER,
    "related": n.MAX_RELATED,
    "unconfirmed": n.MAX_UNCONFIRMED,
}
SHARES = {
    "directives": n.DIRECTIVE_SHARE,
    "consider": n.CONSIDER_SHARE,
    "related": n.RELATED_SHARE,
    "unconfirmed": 0.0,
}
"""The share of the budget that each section adds; unconfirmed memories get the rest."""


@dataclass(slots=True)
class _InjectionDraft:
    """An injection being filled section by section; a section may also use the room that earlier ones left."""

    count: Counter
    budget: int
    used: int = 0
    allowed: float = 0.0
    sections: dict[str, list[Injected]] = field(default_factory=lambda: {name: [] for name in TITLES})
    refused: dict[str, list[str]] = field(default_factory=dict)
    """Why a memory is not in the text, by id: one reason for each section that tried it, or its state."""
    critical: set[str] = field(default_factory=set)
    """The critical facts that were considered."""
    sharing: int = 0
    """How many critical facts still share the rest of the budget."""
    replaced: Replacements = field(default_factory=Replacements)
    """Which of the memories are outdated, and their replacements."""

    def is_outdated(self, memory_id: str) -> bool:
        return self.replaced.newest(memory_id) is not None

    def open(self, section: str) -> None:
        self.allowed += SHARES[section] * self.budget

    def refuse(self, memory_id: str, reason: str) -> None:
        self.refused.setdefault(memory_id, []).append(reason)

    def expect(self, section: str, items: Sequence[Injected]) -> None:
        """Prepare for critical facts: if they do not all fit, each gets an equal share of the budget."""
        self.critical |= {item.memory.id for item in items}
        whole = self._cost(section, "\n".join(item.text for item in items)) + len(items)
        self.sharing = len(items) if self.used + whole > self.budget else 0

    def place(self, section: str, item: Injected) -> bool:
        """Place an item if there is room; returns whether it was placed.

        A critical fact is limited only by the whole budget, and shortened if necessary.
        """
        critical = item.memory.id in self.critical
        if not critical and self._count_regular(section) >= LIMITS[section]:
            self.refuse(item.memory.id, f"{section}: limited to {LIMITS[section]}, and others come first")
            return False
        allowed = self.budget if critical else self.allowed
        if critical and self.sharing:
            item = self._shorten_item(section, item, self.used + (self.budget - self.used) // self.sharing)
            self.sharing -= 1
        cost = self._cost(section, item.text)
        if self.used + cost > allowed:
            self.refuse(item.memory.id, f"{section}: {cost} tokens, more than is left of the budget")
            return False
        self.used += cost
        self.sections[section].append(item)
        return True

    def left_out(self) -> tuple[Filtered, ...]:
        """The memories considered that are not in the text, each once."""
        placed = {item.memory.id for items in self.sections.values() for item in items}
        return tuple(Filtered(i, "; ".join(reasons)) for i, reasons in self.refused.items() if i not in placed)

    def _count_regular(self, section: str) -> int:
        return sum(1 for item in self.sections[section] if item.memory.id not in self.critical)

    def _cost(self, section: str, text: str) -> int:
        return self.count(text) + 1 + (0 if self.sections[section] else self.count(TITLES[section]) + 2)

    def _shorten_item(self, section: str, item: Injected, allowed: int) -> Injected:
        def format_statement(statement: str) -> str:
            return _phrase(item.memory.replace(statement=statement, situation=""), CRITICAL)

        def fits(text: str, room: int = allowed) -> bool:
            return self.used + self._cost(section, text) <= room

        def longest(room: int, least: int) -> str:
            return format_statement(
                longest_fitting(item.memory.statement, lambda cut: fits(format_statement(cut), room), least)
            )

        if fits(item.text):
            return item
        text = longest(allowed, MIN_FACT_CHARACTERS)
        if not fits(text, self.budget) and not any(self.sections.values()):
            text = longest(self.budget, MIN_FIRST_FACT_CHARACTERS)
        return replace(item, text=text)


def build(
    hits: Hits,
    budget: int,
    count: Counter,
    now: datetime,
    spread: Callable[[Sequence[tuple[Memory, float]]], Sequence[SpreadHit]],
    replaced: Replacements | None = None,
    waiting: Hits | None = None,
) -> Injection:
    """Build the injection from the chosen memories.

    Outdated memories come after all others, then fading ones, so they appear only if budget remains. `waiting` has
    candidates in the user's own words.
    """
    draft = _InjectionDraft(count, budget)
    draft.used = count(_header(budget)) + 1
    draft.replaced = replaced or draft.replaced
    waiting = waiting if waiting is not None else Hits()
    for left_out in (*hits.filtered, *waiting.filtered):
        draft.refuse(left_out.id, left_out.reason)
    candidates = _eligible(hits, now, draft)
    draft.open("directives")
    placed = _fill(draft, "directives", [c for c in candidates if c[1].directive])
    draft.open("consider")
    placed |= _fill(draft, "consider", [c for c in candidates if c[0].id not in placed])
    draft.open("related")
    chosen = [(item.memory, item.score) for item in draft.sections["directives"]]
    for reached in spread(chosen):
        state = eligibility(reached.memory, now)
        if state.consider and reached.memory.id not in placed:
            reason = f"linked as {quote_text(reached.link.replace('_', ' '))} to {safe_word(reached.source)}"
            draft.place("related", _item(reached.memory, reached.score, reason, "related"))
    for hit in waiting:
        if hit.memory is not None:
            draft.place("unconfirmed", _item(hit.memory, hit.score, "unconfirmed", "unconfirmed", hit))
    return _build_injection(draft, hits, budget, count)


def _header(budget: int) -> str:
    return HEADER if budget >= LONG_HEADER_BUDGET else SHORT_HEADER


def _eligible(hits: Hits, now: datetime, draft: _InjectionDraft) -> list[tuple[Hit, Eligibility]]:
    found = []
    for hit in hits:
        assert hit.memory is not None
        state = eligibility(hit.memory, now)
        if state.consider:
            found.append((hit, state))
        else:
            draft.refuse(hit.id, state.reason)
    return sorted(found, key=lambda pair: _order(*pair, outdated=draft.is_outdated(pair[0].id)))


def _order(hit: Hit, state: Eligibility, *, outdated: bool) -> tuple[bool, bool, bool, bool, bool, float]:
    """The sort key: evidence from documents last; then critical, pinned, current and not fading memories first, then by
    score.
    """
    assert hit.memory is not None
    critical = bool(hit.memory.critical_slot) and not state.evidence
    pinned = hit.memory.pinned and not state.evidence
    fading = state.state == "fading" and not (critical or pinned)
    return (state.evidence, not critical, not pinned, outdated, fading, -hit.score)


def _fill(draft: _InjectionDraft, section: str, candidates: Sequence[tuple[Hit, Eligibility]]) -> set[str]:
    items = [
        _item(
            hit.memory,
            hit.score,
            _reason(hit, state, draft.replaced.note(hit.memory, quotes_waiting=False)),
            section,
            hit,
        )
        for hit, state in candidates
        if hit.memory is not None
    ]
    draft.expect(section, [item for item in items if item.memory.critical_slot])
    return {item.memory.id for item in items if draft.place(section, item)}


def _reason(hit: Hit, state: Eligibility, outdated: str) -> str:
    why = []
    if hit.memory is not None and hit.memory.pinned and not state.evidence:
        why.append("pinned")
    if hit.memory is not None and hit.memory.critical_slot:
        why.append(CRITICAL)
    if hit.trace is not None and hit.trace.found_by:
        why.append("matched by " + " and ".join(sorted(hit.trace.found_by)))
    if state.state != "active":
        why.append(state.state)
    if state.evidence:
        why.append(EVIDENCE)
    if outdated:
        why.append(outdated)
    return ", ".join(why) or "relevant"


def _item(memory: Memory, score: float, reason: str, section: str, hit: Hit | None = None) -> Injected:
    return Injected(memory, score, reason, section, _phrase(memory, reason), hit.trace if hit else None)


def _phrase(memory: Memory, reason: str) -> str:
    label = type_or_default(memory.type).label
    when = f" When: {quote_text(memory.situation)}." if memory.situation.strip() else ""
    return f"- [{label}] {quote_text(memory.statement)}{when} ({safe_word(memory.id)}: {notice(reason)})"


def _priority(item: Injected, *, outdated: bool) -> tuple[int, bool, float, str]:
    return (type_or_default(item.memory.type).priority, outdated, -item.score, item.memory.id)


def _build_injection(draft: _InjectionDraft, hits: Hits, budget: int, count: Counter) -> Injection:
    """The injection; corrections and constraints come first in their section, whatever their score."""
    placed = draft.sections["directives"]
    directives = tuple(sorted(placed, key=lambda item: _priority(item, outdated=draft.is_outdated(item.memory.id))))
    sections = {name: tuple(items) for name, items in draft.sections.items()} | {"directives": directives}
    blocks = [_header(budget)]
    for name, items in sections.items():
        if items:
            blocks.append("\n".join([TITLES[name], *(item.text for item in items)]))
    text = "\n\n".join(blocks) + "\n" if len(blocks) > 1 else ""
    return Injection(
        directives=directives,
        consider=sections["consider"],
        related=sections["related"],
        unconfirmed=sections["unconfirmed"],
        text=text,
        tokens=count(text) if text else 0,
        budget=budget,
        left_out=draft.left_out(),
        warnings=(*hits.warnings, *_budget_warnings(draft)),
    )


def _budget_warnings(draft: _InjectionDraft) -> list[str]:
    """A warning for critical facts that do not fit into the budget."""
    critical = [item.id for item in draft.left_out() if item.id in draft.critical]
    if not critical:
        return []
    return [f"A budget of {draft.budget} tokens is too small for the critical facts {', '.join(critical)}; give more."]
