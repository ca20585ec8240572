"""A prompt's block out of sections, inside a token budget that the finished text is measured against.

What is required stands in it always, shortened where it must be; the rest is filled in the order of the list. A counter
need not add up over the parts of a text: parts are estimated one by one, the whole is measured at the end, and what was
placed last gives way where the estimate was too low.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from engram.model.errors import InvalidInput
from engram.text.quote import notice, quoted_lines
from engram.text.truncation import cut, longest_fitting

__all__ = ["Assembled", "BudgetItem", "Counter", "PromptSection", "assemble"]

Counter = Callable[[str], int]

LEAST_CHARACTERS = 24
"""What a required item keeps of its text however small the budget: two or three words."""
# Each round takes away what the last measure found too much; a counter that adds up needs one.
_ROUNDS = 4
# Counting is what costs: once this many lines were counted, one longer than the densest of them, by this margin, would
# have to be to fit is passed over uncounted: 12 ms instead of 45 for 2,000 items in 4,000 tokens.
_ENOUGH, _MARGIN = 64, 1.5


@dataclass(frozen=True, slots=True)
class BudgetItem:
    """One thing to place; one without an id is placed but not told of. `label` stands before the text and is never cut."""

    id: str
    text: str
    label: str = ""
    multiline: bool = False
    """Keep the lines, each marked as quoted; any other item is put on one line."""


@dataclass(frozen=True, slots=True)
class PromptSection:
    """A titled run of items, the most important first. A section without items is left out."""

    title: str
    items: tuple[BudgetItem, ...]
    required: bool = False
    """Every item stands in the text, shortened if need be, before anything optional is placed."""
    share: float = 0.0
    """Part of what the required sections leave that is this one's before others get more; what it leaves goes on."""
    newest_last: bool = False
    """Print the items in reverse: chosen newest first, read in the order things happened."""


@dataclass(frozen=True, slots=True)
class Assembled:
    """The text, and what became of every item: its id is in `kept` or in `trimmed`. `shortened` are among `kept`."""

    text: str = ""
    tokens: int = 0
    kept: tuple[str, ...] = ()
    trimmed: tuple[str, ...] = ()
    shortened: tuple[str, ...] = ()


def assemble(sections: Sequence[PromptSection], budget: int, count: Counter, *, header: str = "") -> Assembled:
    """Place what fits; `count(text) <= budget` holds for whatever is returned.

    Optional items are tried in order; one that does not fit is passed over, and a smaller one may follow. An id that stands
    in the text already is not repeated. InvalidInput, with the least budget that would do, when the required sections
    cannot be shortened enough. Without any item the text is empty, header and all.
    """
    _check(sections, budget)
    # What a counter adds to any text (marks of begin and end) is in the whole once, not in every part.
    sheet = _Sheet(sections, header, budget, count, overhead=count(""))
    entries = [_entries(place, section) for place, section in enumerate(sections)]
    sheet.require(_distinct(entry for own in entries for entry in own if entry.required))
    sheet.fill([[] if section.required else own for section, own in zip(sections, entries, strict=True)])
    sheet.measure_down()
    return _assembled(sheet)


def _check(sections: Sequence[PromptSection], budget: int) -> None:
    if budget < 0:
        raise InvalidInput(f"a budget of {budget} tokens holds nothing; give 0 or more")
    for section in sections:
        if not 0 <= section.share <= 1:
            raise InvalidInput(f"section {section.title!r} asks for a share of {section.share}; give 0 to 1")


@dataclass(slots=True)
class _Entry:
    """An item as it would stand in the text: `line` is what is printed, behind `before` its text."""

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
        """What is placed once: the id, or where an item without one stands."""
        return self.id or (self.section, self.order)

    def with_body(self, body: str) -> str:
        """The line with this much of the text; a quotation that was cut ends where the text does."""
        if self.multiline:
            return f"{self.before}{quoted_lines(body)}"
        return f"{self.before}{body}{'”' * (body.count('“') - body.count('”'))}"

    def shorten(self, body: str) -> None:
        self.line, self.short = self.with_body(body), body != self.body


def _entries(place: int, section: PromptSection) -> list[_Entry]:
    """The items of a section that say something."""
    entries = [_entry(place, order, item, section.required) for order, item in enumerate(section.items)]
    return [entry for entry in entries if entry.body]


def _entry(place: int, order: int, item: BudgetItem, required: bool) -> _Entry:
    label = notice(item.label)
    if item.multiline:
        body = "\n".join(item.text.splitlines()).strip("\n") if item.text.strip() else ""
        before = f"- {label}\n" if label else ""
    else:
        body, before = notice(item.text), (f"- {label} " if label else "- ")
    entry = _Entry(item.id, place, order, body, before, required, item.multiline)
    entry.shorten(body)
    return entry


def _distinct(entries: Iterable[_Entry]) -> list[_Entry]:
    found: dict[object, _Entry] = {}
    for entry in entries:
        found.setdefault(entry.key, entry)
    return list(found.values())


@dataclass(slots=True)
class _Sheet:
    """The text as it grows. `placed` is in the order of placing, required entries first."""

    sections: Sequence[PromptSection]
    header: str
    budget: int
    count: Counter
    placed: list[_Entry] = field(default_factory=list)
    overhead: int = 0
    needed: int = 0
    room: int = 0
    estimates: int = 0
    densest: float = 0.0

    def text(self, entries: Sequence[_Entry]) -> str:
        """The entries under their titles, in the order of the sections; empty without entries."""
        blocks: dict[int, list[_Entry]] = {}
        for entry in sorted(entries, key=lambda entry: (entry.section, entry.order)):
            blocks.setdefault(entry.section, []).append(entry)
        parts = [self.header] if self.header and entries else []
        for place, own in blocks.items():
            lines = [entry.line for entry in (reversed(own) if self.sections[place].newest_last else own)]
            parts.append("\n".join([self._title(place), *lines]) if self.sections[place].title else "\n".join(lines))
        return "\n\n".join(parts)

    def _title(self, place: int) -> str:
        return f"## {notice(self.sections[place].title)}"

    def require(self, entries: list[_Entry]) -> None:
        """Place all of them, in full or shortened by one measure; InvalidInput where even the least is too much."""
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
                f"what must stand in the text needs at least {smallest} tokens, shortened as far as it can be; "
                f"the budget is {self.budget}. Give at least {smallest}; some more leaves room for what is not required"
            )
        self._lengthen(entries, full, least, self.budget - smallest + sum(least))

    def _least(self, entries: Sequence[_Entry]) -> list[int]:
        """Cut every entry to its least, and what each costs then; a text that would not get cheaper stays whole."""
        costs = []
        for entry in entries:
            body = cut(entry.body, LEAST_CHARACTERS)
            cost = self._cost(entry.with_body(body))
            if cost < entry.cost:
                entry.shorten(body)
            costs.append(min(cost, entry.cost))
        return costs

    def _lengthen(self, entries: Sequence[_Entry], full: Sequence[int], least: Sequence[int], room: int) -> None:
        """Give every entry the same room, as much as there is; the least of all stays where no measure is small enough."""
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

    def _within(self, entry: _Entry, room: int) -> str:
        return longest_fitting(
            entry.body, lambda body: self._cost(entry.with_body(body)) <= room, min(LEAST_CHARACTERS, len(entry.body))
        )

    def _cost(self, line: str) -> int:
        return self.count("\n" + line) - self.overhead

    def fill(self, entries: Sequence[Sequence[_Entry]]) -> None:
        """Place optional entries: first each section's share, then whatever is left in the order of the list."""
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
        self, place: int, entries: Sequence[_Entry], allowed: int, opened: set[int], seen: set[object]
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

    def _estimate(self, entry: _Entry) -> None:
        entry.cost = self._cost(entry.line)
        self.estimates += 1
        self.densest = max(self.densest, len(entry.line) / max(entry.cost, 1))

    def _most_characters(self, room: int) -> float:
        """The longest line worth counting for so much room, once enough lines were counted to know."""
        return self.densest * _MARGIN * room if self.estimates >= _ENOUGH else math.inf

    def _opening(self, place: int) -> int:
        """What beginning a section costs: its title and the empty line before it."""
        title = self._title(place) if self.sections[place].title else ""
        return self.count(f"\n\n{title}" if self.placed or self.header else title) - self.overhead

    def measure_down(self) -> None:
        """Take away what was placed last until the whole text, measured, is inside the budget."""
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
    """The most that every entry may cost so that all of them fit: short ones whole, long ones alike."""
    low, high = 0, max(full, default=0) + 1
    while high - low > 1:
        middle = (low + high) // 2
        if sum(min(cost, max(bottom, middle)) for cost, bottom in zip(full, least, strict=True)) <= room:
            low = middle
        else:
            high = middle
    return low


def _assembled(sheet: _Sheet) -> Assembled:
    text = sheet.text(sheet.placed)
    placed = sorted(sheet.placed, key=lambda entry: (entry.section, entry.order))
    kept = {entry.id: entry for entry in placed if entry.id}
    every = dict.fromkeys(item.id for section in sheet.sections for item in section.items if item.id)
    return Assembled(
        text=text,
        tokens=sheet.count(text) if text else 0,
        kept=tuple(kept),
        trimmed=tuple(name for name in every if name not in kept),
        shortened=tuple(name for name, entry in kept.items() if entry.short),
    )
