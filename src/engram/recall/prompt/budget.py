"""Builds a prompt block from sections, within a token budget.

Required items are always included, shortened if necessary; the rest follows in order while there is room. A token
counter need not be additive: items are estimated one by one, the whole text is measured at the end, and the last items
are removed if the estimate was too low.
"""

import math
from collections.abc import Callable, Iterable, Sequence

from engram.model.errors import InvalidInput
from engram.model.lazy import dataclass, field
from engram.text.display import cut, longest_fitting, notice, quoted_lines

__all__ = ["AssembledPrompt", "BudgetItem", "Counter", "PromptSection", "assemble"]

Counter = Callable[[str], int]

MIN_ITEM_CHARACTERS = 24
"""The minimum length of a required item, however small the budget: two or three words."""
# Each round removes the excess of the last measurement; an additive counter needs one round.
_ROUNDS = 4
# Counting is expensive: after this many lines, a line too long to fit even at the densest ratio seen, with this
# margin, is skipped without counting: 12 ms instead of 45 for 2,000 items in 4,000 tokens.
_ENOUGH, _MARGIN = 64, 1.5


@dataclass(frozen=True, slots=True)
class BudgetItem:
    """One item to place; without an id it is placed but not reported. `label` precedes the text and is never cut."""

    id: str
    text: str
    label: str = ""
    multiline: bool = False
    """Keep the line breaks, each line marked as quoted; other items are put on one line."""


@dataclass(frozen=True, slots=True)
class PromptSection:
    """A titled run of items, the most important first. A section without items is left out."""

    title: str
    items: tuple[BudgetItem, ...]
    required: bool = False
    """Every item is included, shortened if necessary, before anything optional."""
    share: float = 0.0
    """The share of what the required sections leave that is reserved for this one first."""
    newest_last: bool = False
    """Print the items in reverse: chosen newest first, read in the order things happened."""


@dataclass(frozen=True, slots=True)
class AssembledPrompt:
    """The text, and the ids of the items `kept` and `trimmed`; `shortened` ones are among `kept`."""

    text: str = ""
    tokens: int = 0
    kept: tuple[str, ...] = ()
    trimmed: tuple[str, ...] = ()
    shortened: tuple[str, ...] = ()


def assemble(sections: Sequence[PromptSection], budget: int, count: Counter, *, header: str = "") -> AssembledPrompt:
    """Place the items that fit; the result always has `count(text) <= budget`.

    Optional items are tried in order; one that does not fit is skipped, and a smaller one may follow. An id is placed
    once. Raises `InvalidInput`, with the smallest sufficient budget, if the required sections cannot be shortened
    enough. Without any items the text is empty, without the header.
    """
    _check(sections, budget)
    # A counter's fixed cost for any text (start and end marks) counts once for the whole, not for every part.
    prompt = _PromptText(sections, header, budget, count, overhead=count(""))
    entries = [_entries(place, section) for place, section in enumerate(sections)]
    prompt.require(_distinct(entry for own in entries for entry in own if entry.required))
    prompt.fill([[] if section.required else own for section, own in zip(sections, entries, strict=True)])
    prompt.trim_to_budget()
    return _build_result(prompt)


def _check(sections: Sequence[PromptSection], budget: int) -> None:
    if budget < 0:
        raise InvalidInput(f"A budget of {budget} tokens is too small (minimum 0).")
    for section in sections:
        if not 0 <= section.share <= 1:
            raise InvalidInput(f"section {section.title!r} has a share of {section.share}; give 0 to 1")


@dataclass(slots=True)
class _PromptLine:
    """An item as a line of the prompt: `line` is the whole line, `before` the part before the item's text."""

    id: str
    section: int
    order: int
    body: str
    before: str
    required: bool
    multiline: bool = False
    line: str = ""
    short: bool = False
    cost: int = -1

    @property
    def key(self) -> str | tuple[int, int]:
        """The key under which an item is placed only once: its id, or its position if it has none."""
        return self.id or (self.section, self.order)

    def with_body(self, body: str) -> str:
        """The line with the text shortened to `body`; a cut quotation is closed."""
        if self.multiline:
            return f"{self.before}{quoted_lines(body)}"
        return f"{self.before}{body}{'”' * (body.count('“') - body.count('”'))}"

    def shorten(self, body: str) -> None:
        self.line, self.short = self.with_body(body), body != self.body


def _entries(place: int, section: PromptSection) -> list[_PromptLine]:
    """The items of a section that are not blank."""
    entries = [_entry(place, order, item, section.required) for order, item in enumerate(section.items)]
    return [entry for entry in entries if entry.body]


def _entry(place: int, order: int, item: BudgetItem, required: bool) -> _PromptLine:
    label = notice(item.label)
    if item.multiline:
        body = "\n".join(item.text.splitlines()).strip("\n") if item.text.strip() else ""
        before = f"- {label}\n" if label else ""
    else:
        body, before = notice(item.text), (f"- {label} " if label else "- ")
    entry = _PromptLine(item.id, place, order, body, before, required, item.multiline)
    entry.shorten(body)
    return entry


def _distinct(entries: Iterable[_PromptLine]) -> list[_PromptLine]:
    found: dict[object, _PromptLine] = {}
    for entry in entries:
        found.setdefault(entry.key, entry)
    return list(found.values())


@dataclass(slots=True)
class _PromptText:
    """The prompt being assembled. `placed` is in the order of placing, required lines first."""

    sections: Sequence[PromptSection]
    header: str
    budget: int
    count: Counter
    placed: list[_PromptLine] = field(default_factory=list)
    overhead: int = 0
    needed: int = 0
    room: int = 0
    estimates: int = 0
    densest: float = 0.0

    def text(self, entries: Sequence[_PromptLine]) -> str:
        """The entries under their titles, in the order of the sections; empty if there are none."""
        blocks: dict[int, list[_PromptLine]] = {}
        for entry in sorted(entries, key=lambda entry: (entry.section, entry.order)):
            blocks.setdefault(entry.section, []).append(entry)
        parts = [self.header] if self.header and entries else []
        for place, own in blocks.items():
            lines = [entry.line for entry in (reversed(own) if self.sections[place].newest_last else own)]
            parts.append("\n".join([self._title(place), *lines]) if self.sections[place].title else "\n".join(lines))
        return "\n\n".join(parts)

    def _title(self, place: int) -> str:
        return f"## {notice(self.sections[place].title)}"

    def require(self, entries: list[_PromptLine]) -> None:
        """Place all of them, in full or evenly shortened. Raises `InvalidInput` if even the shortest form does not
        fit.
        """
        self.placed, self.needed = entries, len(entries)
        if not entries or self.count(self.text(entries)) <= self.budget:
            return
        for entry in entries:
            entry.cost = self._cost(entry.line)
        full = [entry.cost for entry in entries]
        least = self._least(entries)
        smallest = self.count(self.text(entries))
        if smallest > self.budget:
            raise InvalidInput(
                f"The required sections need at least {smallest} tokens, even shortened; the budget is {self.budget}. "
                f"Give at least {smallest}, or more to leave room for the rest"
            )
        self._lengthen(entries, full, least, self.budget - smallest + sum(least))

    def _least(self, entries: Sequence[_PromptLine]) -> list[int]:
        """Cut every line to its minimum and return the costs. A text that would not cost less stays whole."""
        costs = []
        for entry in entries:
            body = cut(entry.body, MIN_ITEM_CHARACTERS)
            cost = self._cost(entry.with_body(body))
            if cost < entry.cost:
                entry.shorten(body)
            costs.append(min(cost, entry.cost))
        return costs

    def _lengthen(self, entries: Sequence[_PromptLine], full: Sequence[int], least: Sequence[int], room: int) -> None:
        """Give every line an equal share of the room; if none fits, the shortest form stays."""
        smallest = [(entry.line, entry.short) for entry in entries]
        for _ in range(_ROUNDS):
            level = _level(full, least, room)
            for entry, cost, bottom in zip(entries, full, least, strict=True):
                if max(level, bottom) >= cost:
                    entry.shorten(entry.body)
                elif level > bottom:
                    entry.shorten(self._within(entry, level))
            if (over := self.count(self.text(entries)) - self.budget) <= 0:
                return
            room -= over
            for entry, (line, short) in zip(entries, smallest, strict=True):
                entry.line, entry.short = line, short

    def _within(self, entry: _PromptLine, room: int) -> str:
        return longest_fitting(
            entry.body,
            lambda body: self._cost(entry.with_body(body)) <= room,
            min(MIN_ITEM_CHARACTERS, len(entry.body)),
        )

    def _cost(self, line: str) -> int:
        return self.count("\n" + line) - self.overhead

    def fill(self, entries: Sequence[Sequence[_PromptLine]]) -> None:
        """Place optional lines: each section's share first, then the rest in order."""
        before = self.text(self.placed) or self.header
        self.room = self.budget - (self.count(before) if before else self.overhead)
        opened = {entry.section for entry in self.placed}
        seen: set[object] = {entry.key for entry in self.placed}
        whole = self.room
        for place, section in enumerate(self.sections):
            self._fill_section(place, entries[place], int(section.share * whole), opened, seen)
        for place, own in enumerate(entries):
            self._fill_section(place, own, self.room, opened, seen)

    def _fill_section(
        self, place: int, entries: Sequence[_PromptLine], allowed: int, opened: set[int], seen: set[object]
    ) -> None:
        allowed = min(allowed, self.room)
        for entry in entries:
            if allowed <= 0:
                return
            if entry.key in seen:
                continue
            if entry.cost < 0:
                if len(entry.line) > self._most_characters(allowed):
                    continue
                self._estimate(entry)
            cost = entry.cost + (0 if place in opened else self._opening(place))
            if cost <= allowed:
                allowed -= cost
                self.room -= cost
                opened.add(place)
                seen.add(entry.key)
                self.placed.append(entry)

    def _estimate(self, entry: _PromptLine) -> None:
        entry.cost = self._cost(entry.line)
        self.estimates += 1
        self.densest = max(self.densest, len(entry.line) / max(entry.cost, 1))

    def _most_characters(self, room: int) -> float:
        """The length of the longest line worth counting for this room, once enough lines were counted."""
        return self.densest * _MARGIN * room if self.estimates >= _ENOUGH else math.inf

    def _opening(self, place: int) -> int:
        """The cost of starting a section: its title and the empty line before it."""
        title = self._title(place) if self.sections[place].title else ""
        return self.count(f"\n\n{title}" if self.placed or self.header else title) - self.overhead

    def trim_to_budget(self) -> None:
        """Remove the last lines until the whole text, measured, is within the budget."""
        if not self.placed or self.count(self.text(self.placed)) <= self.budget:
            return
        low, high = self.needed, len(self.placed)
        while high - low > 1:
            middle = (low + high) // 2
            if self.count(self.text(self.placed[:middle])) <= self.budget:
                low = middle
            else:
                high = middle
        del self.placed[low:]


def _level(full: Sequence[int], least: Sequence[int], room: int) -> int:
    """The maximum cost per line at which all of them fit: short lines stay whole, long ones are cut evenly."""
    low, high = 0, max(full, default=0) + 1
    while high - low > 1:
        middle = (low + high) // 2
        if sum(min(cost, max(bottom, middle)) for cost, bottom in zip(full, least, strict=True)) <= room:
            low = middle
        else:
            high = middle
    return low


def _build_result(prompt: _PromptText) -> AssembledPrompt:
    text = prompt.text(prompt.placed)
    placed = sorted(prompt.placed, key=lambda entry: (entry.section, entry.order))
    kept = {entry.id: entry for entry in placed if entry.id}
    every = dict.fromkeys(item.id for section in prompt.sections for item in section.items if item.id)
    return AssembledPrompt(
        text=text,
        tokens=prompt.count(text) if text else 0,
        kept=tuple(kept),
        trimmed=tuple(name for name in every if name not in kept),
        shortened=tuple(name for name, entry in kept.items() if entry.short),
    )
