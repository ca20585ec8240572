"""The walk through the review queue at a terminal: one item, one key, one decision."""

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from engram.cli import display
from engram.cli.display import ago, line, moment, shown
from engram.cli.editor import edited
from engram.cli.keys import can_read_keys, read_key
from engram.cli.surface import Surface, reason_for_person, require_person
from engram.model.errors import EngramError
from engram.model.lazy import dataclass, field
from engram.model.memory import Memory

if TYPE_CHECKING:
    from engram.client import Engram
    from engram.review.provenance import Provenance
    from engram.review.queue import ReviewItem

_PAIR = {"n": "new", "o": "old", "b": "both", "m": "merge", "e": "edit"}
CHOICES: Mapping[str, Mapping[str, str]] = {
    "contradiction": _PAIR,
    "update": _PAIR,
    "forget": {"a": "approve", "r": "reject"},
    "candidate": {"p": "approve", "e": "edit", "r": "reject", "m": "merge"},
    "retirement": {"t": "retire", "k": "reinforce"},
}
"""The keys of each kind of item."""
OTHERS = {"l": "later", "u": "undo", "q": "quit"}
_SAME_KEY = {"candidate": {"a": "p"}}
"""Further keys with the same meaning; for every kind, `s` is `l`."""
_WORDS = {
    "new": "new",
    "old": "old",
    "both": "both, each in its situation",
    "merge": "merge",
    "approve": "promote",
    "reject": "reject",
    "retire": "retire it",
    "reinforce": "keep and reinforce it",
    "edit": "edit",
}
_FORGET_WORDS = {"approve": "forget it", "reject": "keep it"}


@dataclass(slots=True)
class Walk:
    """One person, going through what waits."""

    surface: Surface
    mem: "Engram"
    decided: list[str] = field(default_factory=list)

    def through(self, waiting: "list[ReviewItem]", more: int) -> None:
        """Show each item and carry out what the person chooses; `more` wait beyond these."""
        number = 0
        while number < len(waiting):
            item = waiting[number]
            display.rule(f"{number + 1} of {len(waiting)} · {item.kind}")
            _draw_item(item, self._provenance(item), self.surface.now)
            action = self._ask(item)
            if action == "quit":
                break
            if action == "undo":
                number = self._undo(waiting, number)
                continue
            if action != "later" and not self._carry_out(item, action):
                continue
            number += action != "edit"
            waiting = self._reread(waiting, number) if action == "edit" else waiting
        left = len(waiting) - len(self.decided) + more
        self.surface.say(f"engram: {len(self.decided)} decided, {left} still waiting")

    def _provenance(self, item: "ReviewItem") -> "Provenance | None":
        if item.kind not in ("candidate", "contradiction"):
            return None
        try:
            return self.mem.review.provenance(item.memory.id)
        except EngramError:
            return None  # somebody has purged it meanwhile; the decision says so

    def _reread(self, waiting: "list[ReviewItem]", number: int) -> "list[ReviewItem]":
        """The items, the edited one as it is now."""
        again = self.mem.review.queue(1, about=waiting[number].memory.id)
        return [*waiting[:number], *again, *waiting[number + 1 :]]

    def _ask(self, item: "ReviewItem") -> str:
        choices = {letter: _words(item)[action] for letter, action in CHOICES[item.kind].items()}
        pieces: list[display.Cell] = ["  "]
        for letter, words in {**choices, **OTHERS}.items():
            pieces += [(letter, "bold cyan"), f" {words}   "]
        display.lines(pieces)
        while True:
            letter = self._letter()
            letter = "l" if letter == "s" else _SAME_KEY.get(item.kind, {}).get(letter, letter)
            if letter in CHOICES[item.kind]:
                return CHOICES[item.kind][letter]
            if letter in OTHERS:
                return OTHERS[letter]

    def _letter(self) -> str:
        """The key that was pressed, or the first letter of a line; at the end of the input, quit."""
        if can_read_keys():
            key = read_key(lambda: self.surface.prompt("  > "))
            self.surface.prompt(f"{key if key and key.isprintable() else ''}\n")
            return "q" if key is None else key
        answer = self.surface.ask("  > ")
        return "q" if answer is None else answer.lower()[:1] or "l"

    def _carry_out(self, item: "ReviewItem", action: str) -> bool:
        """Whether the person may go on to the next item: what is refused is said, and asked again only where nothing was decided."""
        try:
            memory = self._decided(item, action)
        except EngramError as error:
            self.surface.say(f"engram: {error}")
            return True
        if memory is None:
            return False
        if action != "edit":
            self.decided.append(memory.id)
        display.lines([("  ✓ ", "green"), f"{_words(item)[action]}: ", (memory.id, "cyan")], [""])
        return True

    def _decided(self, item: "ReviewItem", action: str) -> Memory | None:
        """Carry out one decision; None where the person has not said enough for it."""
        review, actor, ref = self.mem.review, self.surface.actor, item.memory.id
        if action == "edit":
            return self._edit(item.memory)
        if action == "retire":
            return review.retire(ref, actor=actor)
        if action == "reinforce":
            return review.reinforce(ref, actor=actor)
        if action == "reject":
            reason = self.surface.ask("  Why? (Enter for no reason) ") if item.kind == "candidate" else ""
            return review.reject(ref, kind=item.kind, actor=actor, reason=reason or "")
        if action == "merge" and item.kind == "candidate":
            return self._merge(item.memory)
        if action == "approve":
            require_person(item.memory, reason_for_person(item.memory))
            return review.approve(ref, kind=item.kind, actor=actor)
        return self._resolve(item, action)

    def _resolve(self, item: "ReviewItem", keep: str) -> Memory:
        statement, situations = "", ("", "")
        if keep == "merge":
            statement = self.surface.ask("  The merged statement: ") or ""
        if keep == "both":
            situations = (
                self.surface.ask("  When does the new one apply? ") or "",
                self.surface.ask("  When does the old one apply? ") or "",
            )
        if keep != "old":
            merged = item.memory.but(statement=statement or item.memory.statement)
            require_person(item.memory, reason_for_person(item.memory) or reason_for_person(merged))
        return self.mem.review.resolve(
            item.memory.id, keep, statement=statement, situations=situations, actor=self.surface.actor
        )

    def _merge(self, memory: Memory) -> Memory | None:
        near = self.mem.review.provenance(memory.id).neighbours
        known = " ".join(other.id for other in (*near.same, *near.conflicts)[:1])
        typed = self.surface.ask(
            f"  Merge with which memories? [{known}] " if known else "  Merge with which memories? "
        )
        refs = (typed or known).split()
        statement = self.surface.ask("  The merged statement: ") if refs else ""
        if not refs or not statement:
            return None
        merged = memory.but(statement=statement)
        require_person(memory, reason_for_person(memory) or reason_for_person(merged))
        return self.mem.review.merge([*refs, memory.id], statement, actor=self.surface.actor)

    def _edit(self, memory: Memory) -> Memory | None:
        changes = edited(self.surface, memory)
        return self.mem.review.edit(memory.id, actor=self.surface.actor, **changes) if changes else None

    def _undo(self, waiting: "list[ReviewItem]", number: int) -> int:
        """Undo the last decision of this walk, and return to its item."""
        if not self.decided:
            self.surface.say("engram: nothing was decided yet")
            return number
        try:
            undone = self.mem.undo(self.decided[-1], actor=self.surface.actor)
        except EngramError as error:
            self.surface.say(f"engram: {error}")
            return number
        self.decided.pop()
        display.lines([("  ↶ ", "yellow"), "undone: ", (undone.id, "cyan")], [""])
        return next((place for place, item in enumerate(waiting) if item.concerns(undone.id)), number)


def _words(item: "ReviewItem") -> Mapping[str, str]:
    return _FORGET_WORDS if item.kind == "forget" else _WORDS


def _draw_item(item: "ReviewItem", provenance: "Provenance | None", now: datetime) -> None:
    _draw_one("new" if item.other else "", item.memory, now)
    if item.other is not None:
        _draw_one("old", item.other, now)
    if provenance is not None:
        draw_provenance(provenance, "  ", without=item.other.id if item.other is not None else "")
    if provenance is None or item.other is not None:
        display.lines([(f"  {item.reason}", "bright_black")])
    display.lines([""])


def _draw_one(label: str, memory: Memory, now: datetime) -> None:
    display.lines([(f"  {label:<4}" if label else "  ", "bold magenta"), (shown(memory.statement), "bold")])
    where = (
        f"{memory.id} · {memory.type} · {memory.scope} · from {memory.source or 'unknown'} · {ago(memory.created, now)}"
    )
    display.lines([(f"  {'' if not label else '    '}{where}", "bright_black")])


def draw_provenance(found: "Provenance", indent: str = "", without: str = "") -> None:
    """Where a memory comes from, its duplicates and contradictions but one that is shown already, and why the gates let it through."""
    display.lines([(f"{indent}tier {found.tier} · kind {found.kind}", "bright_black")])
    for quote in found.quotes:
        said = f"{quote.role} in {line(quote.session)}, {moment(quote.at)}"
        display.lines([(f"{indent}“{line(quote.text)}”", "italic"), (f"  {said}", "bright_black")])
    for label, others in (("same as", found.neighbours.same), ("contradicts", found.neighbours.conflicts)):
        for other in (one for one in others if one.id != without):
            told = f"{indent}{label} {line(other.id)} ({other.status}): {line(other.statement, 100)}"
            display.lines([(told, "yellow")])
    if found.gates:
        display.lines([(f"{indent}gates: {line(found.gates)}", "bright_black")])
