"""Interactive review at a terminal: one item, one key, one decision; memories are edited in the person's own editor."""

import contextlib
import os
import select
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engram.cli import display
from engram.cli.display import ago, escape_hidden, line, moment
from engram.cli.surface import Surface, message_of, reason_for_person, require_person
from engram.model.errors import EngramError, InvalidInput
from engram.model.lazy import dataclass, field, fields
from engram.model.memory import Memory

if TYPE_CHECKING:
    from engram.client import Engram
    from engram.review.amendment import NumberedRetelling
    from engram.review.promotion import Provenance
    from engram.review.queue import ReviewItem

DEFAULT_EDITOR = "vi"
_HINT = "# Change what this memory says, save and leave the editor. Leave it unchanged to change nothing.\n"


def edit_fields(surface: Surface, memory: Memory) -> dict[str, Any]:
    """The fields that the person changed; {} for none.

    Raises `InvalidInput`, with the position, if the text cannot be read.
    """
    if not os.environ.get("VISUAL") and not os.environ.get("EDITOR"):
        statement = surface.ask(f"  It says: {memory.statement}\n  Instead: ")
        return {"statement": statement} if statement else {}
    return edit_in_editor(memory)


def edit_in_editor(memory: Memory) -> dict[str, Any]:
    """The fields that a person changed in $VISUAL or $EDITOR."""
    from engram.dialects import engram_yaml

    folder = Path(tempfile.mkdtemp(prefix="engram-edit-"))
    path = folder / "memory.yaml"
    path.touch(0o600)
    path.write_text(_HINT + engram_yaml.dump([memory]), "utf-8")
    _run_editor(path)
    try:
        (after,) = engram_yaml.load(path.read_text("utf-8"), where=str(path))
    except (EngramError, OSError, ValueError) as error:
        told = message_of(error) if isinstance(error, (EngramError, OSError)) else str(error)
        raise InvalidInput(
            f"the edited memory cannot be read: {told}. Nothing was changed; your text is in {path}"
        ) from None
    path.unlink()
    folder.rmdir()
    return {
        one.name: getattr(after, one.name)
        for one in fields(Memory)
        if getattr(after, one.name) != getattr(memory, one.name)
    }


def _run_editor(path: Path) -> None:
    command = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or DEFAULT_EDITOR)
    try:
        ended = subprocess.run([*command, str(path)], check=False).returncode
    except OSError as error:
        raise InvalidInput(
            f"cannot start {command[0]!r} ({error.strerror}); set $EDITOR, or give --statement TEXT"
        ) from None
    if ended:
        raise InvalidInput(f"{command[0]} ended with {ended}; nothing was changed. Your text is in {path}")


END = ("\x04", "\x1a")
"""Keys that end the input: Ctrl-D, and Ctrl-Z where it does not suspend."""
_MAX_CHARACTER_BYTES = 4
_SIGNAL_CHECK_SECONDS = 0.5
"""Seconds after which a wait for a key checks for signals."""
_KEY_REST_SECONDS = 0.05
"""Seconds within which the rest of an arrow key arrives."""


def can_read_keys() -> bool:
    """Whether stdin is a terminal that can be read key by key."""
    try:
        import termios
    except ImportError:
        return False
    try:
        termios.tcgetattr(sys.stdin.fileno())
    except (OSError, ValueError, termios.error):
        return False
    return sys.stdin.isatty()


def read_key(ask: Callable[[], None]) -> str | None:
    """The key that answers a question, in lower case; "" for a key that is not a character, None at the end of the input.

    Input typed before the question is dropped, so that nobody decides about something they have not seen. The terminal
    is always restored: after an interrupt, a signal to terminate, or a terminal that disappeared.
    """
    with _cbreak_mode() as descriptor:
        ask()
        # A signal just before a read begins is handled only when the read returns, so no read waits for long.
        while not select.select([descriptor], [], [], _SIGNAL_CHECK_SECONDS)[0]:
            pass
        pressed = os.read(descriptor, 1)
        while 0 < len(pressed) < _MAX_CHARACTER_BYTES and pressed[0] >= 0x80 and not _is_whole(pressed):
            pressed += os.read(descriptor, 1)
        if pressed == b"\x1b":
            _drop_rest(descriptor)
            return ""
    key = pressed.decode("utf-8", "ignore").lower()
    return None if not pressed or key in END else key


def _is_whole(pressed: bytes) -> bool:
    try:
        pressed.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _drop_rest(descriptor: int) -> None:
    """Drop what an arrow or function key sends after Escape; its letters are not decisions."""
    while select.select([descriptor], [], [], _KEY_REST_SECONDS)[0] and os.read(descriptor, 32):
        pass


@contextlib.contextmanager
def _cbreak_mode() -> Iterator[int]:
    """Stdin without echo and line editing; Ctrl-C still interrupts."""
    import termios
    import tty

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    with _exit_on_signals():
        try:
            tty.setcbreak(descriptor, termios.TCSAFLUSH)
            yield descriptor
        finally:
            with contextlib.suppress(termios.error):
                termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


@contextlib.contextmanager
def _exit_on_signals() -> Iterator[None]:
    """Turn signals that would end the process at once into `SystemExit`, so that the terminal is restored."""

    def leave(number: int, _frame: Any) -> None:
        raise SystemExit(128 + number)

    before: dict[int, Any] = {}
    with contextlib.suppress(ValueError):  # only the main thread may set handlers
        for number in (signal.SIGTERM, signal.SIGHUP):
            before[number] = signal.signal(number, leave)
    try:
        yield
    finally:
        for ending, handler in before.items():
            signal.signal(ending, handler)


_PAIR = {"n": "new", "o": "old", "b": "both", "m": "merge", "e": "edit"}
CHOICES: Mapping[str, Mapping[str, str]] = {
    "contradiction": _PAIR,
    "update": _PAIR,
    "forget": {"a": "approve", "r": "reject"},
    "candidate": {"p": "approve", "e": "edit", "r": "reject", "m": "merge", "t": "separate"},
    "retirement": {"t": "retire", "k": "reinforce"},
}
"""The keys for each reason for which a memory can wait."""
OTHERS = {"l": "later", "u": "undo", "q": "quit"}
_SAME_KEY = {"candidate": {"a": "p"}}
"""Further keys with the same meaning; `s` always means `l`."""
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
    "separate": "take out a retelling",
}
_FORGET_WORDS = {"approve": "forget it", "reject": "keep it"}
_DONE = {
    "new": "kept the new one,",
    "old": "kept the old one,",
    "both": "kept both,",
    "merge": "merged into",
    "approve": "promoted",
    "reject": "rejected",
    "retire": "retired",
    "reinforce": "kept and reinforced",
    "edit": "edited",
    "separate": "taken out as",
}
_FORGET_DONE = {"approve": "retired", "reject": "kept"}
CONTEXT_LINES = 3
"""Lines of a memory's context that the review shows; `engram show` has all of it."""
_REPEATING_ACTIONS = ("edit", "separate")
"""Actions after which the review asks about the item again."""
_INCOMPLETE_MESSAGES = {"merge": "nothing merged", "edit": "nothing edited", "separate": "nothing taken out"}
"""The message if the person's input is not enough for a decision."""


@dataclass(frozen=True, slots=True)
class ReviewStep:
    """A completed step of a review: its item, its memory, and the number of the journal's entry."""

    item: "ReviewItem"
    action: str
    memory_id: str
    seq: int


@dataclass(slots=True)
class ReviewLoop:
    """Guides one person through everything that waits for review."""

    surface: Surface
    mem: "Engram"
    steps: list[ReviewStep] = field(default_factory=list)
    undone: list[int] = field(default_factory=list)
    """The journal numbers of this review's undos, and of the steps that they reverted."""

    def run(self, waiting: "list[ReviewItem]", more: int) -> None:
        """Show each item and carry out the person's choice; `more` items wait beyond these."""
        number = 0
        while number < len(waiting):
            item = waiting[number]
            display.rule(f"{number + 1} of {len(waiting)} · {item.waits_as}")
            _draw_item(item, self._provenance(item), self.surface.now)
            action = self._ask(item)
            if action == "quit":
                break
            if action == "undo":
                waiting, number = self._undo(waiting, number)
                continue
            if action != "later" and not self._carry_out(item, action):
                waiting = self._reread(waiting, number)
                continue
            number += action not in _REPEATING_ACTIONS
            waiting = self._reread(waiting, number) if action in _REPEATING_ACTIONS else waiting
            waiting = self._insert_separated(waiting, number) if action == "separate" else waiting
        decided = sum(step.action not in _REPEATING_ACTIONS for step in self.steps)
        self.surface.say(f"engram: {decided} decided, {len(waiting) - decided + more} still waiting")

    def _provenance(self, item: "ReviewItem") -> "Provenance | None":
        if item.waits_as not in ("candidate", "contradiction"):
            return None
        try:
            return self.mem.review.provenance(item.memory.id)
        except EngramError:
            return None  # purged in the meantime; the decision reports it

    def _reread(self, waiting: "list[ReviewItem]", number: int) -> "list[ReviewItem]":
        """The items, with the one at a position reloaded, or removed if it no longer waits."""
        item = waiting[number]
        found = [one for one in self.mem.review.queue(None, about=item.memory.id) if one.memory.id == item.memory.id]
        found.sort(key=lambda one: one.waits_as != item.waits_as)
        return [*waiting[:number], *found[:1], *waiting[number + 1 :]]

    def _insert_separated(self, waiting: "list[ReviewItem]", number: int) -> "list[ReviewItem]":
        """The items, with the memory just separated from the one at a position inserted after it."""
        taken = self.mem.review.queue(1, about=self.steps[-1].memory_id)
        return [*waiting[: number + 1], *taken, *waiting[number + 1 :]]

    def _ask(self, item: "ReviewItem") -> str:
        actions = _actions(item)
        choices = {letter: _words(item)[action] for letter, action in actions.items()}
        pieces: list[display.Cell] = ["  "]
        for letter, words in {**choices, **OTHERS}.items():
            pieces += [(letter, "bold cyan"), f" {words}   "]
        display.lines(pieces)
        while True:
            letter = self._letter()
            letter = "l" if letter == "s" else _SAME_KEY.get(item.waits_as, {}).get(letter, letter)
            if letter in actions:
                return actions[letter]
            if letter in OTHERS:
                return OTHERS[letter]

    def _letter(self) -> str:
        """The pressed key, or the first letter of a line; quit at the end of the input."""
        if can_read_keys():
            key = read_key(lambda: self.surface.prompt("  > "))
            self.surface.prompt(f"{key if key and key.isprintable() else ''}\n")
            return "q" if key is None else key
        answer = self.surface.ask("  > ")
        return "q" if answer is None else answer.lower()[:1] or "l"

    def _carry_out(self, item: "ReviewItem", action: str) -> bool:
        """Whether to go on to the next item. If nothing was decided, print why and ask about the item again."""
        try:
            memory = self._apply_action(item, action)
        except EngramError as error:
            self.surface.say(f"engram: {error}")
            return False
        if memory is None:
            self.surface.say(f"engram: {_INCOMPLETE_MESSAGES[action]}")
            return False
        self.steps.append(ReviewStep(item, action, memory.id, self._last_seq(memory.id)))
        done = (_FORGET_DONE if item.waits_as == "forget" else _DONE)[action]
        display.lines([("  ✓ ", "green"), f"{done} ", (memory.id, "cyan")], [""])
        return True

    def _last_seq(self, memory_id: str) -> int:
        from engram.decisions.authority import last_decision

        return last_decision(self.mem.store.history(memory_id)).seq

    def _apply_action(self, item: "ReviewItem", action: str) -> Memory | None:
        """Carry out one decision; None if the person's input is not enough for it."""
        review, actor, ref, shown = self.mem.review, self.surface.actor, item.memory.id, _memories(item)
        if action == "edit":
            return self._edit(item.memory)
        if action == "separate":
            return self._separate(item)
        if action == "retire":
            return review.retire(ref, actor=actor, shown=shown)
        if action == "reinforce":
            return review.reinforce(ref, actor=actor, shown=shown)
        if action == "reject":
            reason = self.surface.ask("  Why? (Enter for no reason) ") if item.waits_as == "candidate" else ""
            return review.reject(ref, waits_as=item.waits_as, actor=actor, reason=reason or "", shown=shown)
        if action == "merge" and item.waits_as == "candidate":
            return self._merge(item.memory)
        if action == "approve":
            require_person(item.memory, reason_for_person(item.memory))
            return review.approve(ref, waits_as=item.waits_as, actor=actor, shown=shown)
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
            merged = item.memory.replace(statement=statement or item.memory.statement)
            require_person(item.memory, reason_for_person(item.memory) or reason_for_person(merged))
        return self.mem.review.resolve(
            item.memory.id,
            keep,
            statement=statement,
            situations=situations,
            actor=self.surface.actor,
            shown=_memories(item),
        )

    def _merge(self, memory: Memory) -> Memory | None:
        near = self.mem.review.provenance(memory.id).neighbours
        shown = [*near.same, *near.similar, *near.conflicts]
        known = " ".join(other.id for other in shown[:1])
        typed = self.surface.ask(
            f"  Merge with which memories? [{known}] " if known else "  Merge with which memories? "
        )
        refs = (typed or known).split()
        statement = self.surface.ask("  The merged statement: ") if refs else ""
        if not refs or not statement:
            return None
        merged = memory.replace(statement=statement)
        require_person(memory, reason_for_person(memory) or reason_for_person(merged))
        refs.append(memory.id)
        return self.mem.review.merge(refs, statement, actor=self.surface.actor, shown=[memory, *shown])

    def _separate(self, item: "ReviewItem") -> Memory | None:
        """The candidate made from a retelling; if there are several, ask the person which."""
        from engram.review.amendment import group_retellings

        typed: str | None = "1"
        if len(group_retellings(self.mem.store, item.memory)) > 1:
            typed = self.surface.ask("  Which retelling? (its number) ")
        if not typed or not typed.strip().isdecimal():
            return None
        return self.mem.review.separate(item.memory.id, int(typed), actor=self.surface.actor, shown=_memories(item))

    def _edit(self, memory: Memory) -> Memory | None:
        changes = edit_fields(self.surface, memory)
        if not changes:
            return None
        before = self._last_seq(memory.id)
        after = self.mem.review.edit(memory.id, actor=self.surface.actor, **changes)
        return after if self._last_seq(memory.id) != before else None

    def _undo(self, waiting: "list[ReviewItem]", number: int) -> "tuple[list[ReviewItem], int]":
        """Undo the last step of this review, and return to its item in its current state."""
        from engram.review.undo import undo_decisions

        if not self.steps:
            self.surface.say("engram: nothing was decided yet")
            return waiting, number
        step = self.steps[-1]
        try:
            undone = undo_decisions(
                self.mem.store, step.memory_id, {step.seq, *self.undone}, self.surface.now, actor=self.surface.actor
            )
        except EngramError as error:
            self.surface.say(f"engram: {error}")
            return waiting, number
        self.steps.pop()
        self.undone += [step.seq, self._last_seq(undone.id)]
        display.lines([("  ↶ ", "yellow"), "undone: ", (undone.id, "cyan")], [""])
        if step.action == "separate":
            gone = {place for place, one in enumerate(waiting) if one.memory.id == undone.id}
            waiting = [one for place, one in enumerate(waiting) if place not in gone]
            number -= sum(place < number for place in gone)
        place = _find_position(waiting, step.item)
        if place is None:
            waiting, place = [*waiting[:number], step.item, *waiting[number:]], number
        return self._reread(waiting, place), place


def _find_position(waiting: "list[ReviewItem]", item: "ReviewItem") -> int | None:
    """The position of an item among those that wait, even if it now waits for another reason."""
    found = [place for place, one in enumerate(waiting) if one.memory.id == item.memory.id]
    found.sort(key=lambda place: waiting[place].waits_as != item.waits_as)
    return found[0] if found else None


def _memories(item: "ReviewItem") -> list[Memory]:
    """What the person sees of an item."""
    return [item.memory, *([item.other] if item.other is not None else [])]


def _actions(item: "ReviewItem") -> dict[str, str]:
    """The possible decisions about an item, by key."""
    has_retellings = any(evidence.retelling is not None for evidence in item.memory.evidence)
    return {
        letter: action for letter, action in CHOICES[item.waits_as].items() if action != "separate" or has_retellings
    }


def _words(item: "ReviewItem") -> Mapping[str, str]:
    return _FORGET_WORDS if item.waits_as == "forget" else _WORDS


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
    display.lines([(f"  {label:<4}" if label else "  ", "bold magenta"), (escape_hidden(memory.statement), "bold")])
    where = (
        f"{memory.id} · {memory.type} · {memory.scope} · from {memory.source or 'unknown'} · {ago(memory.created, now)}"
    )
    indent = "  " if not label else "      "
    display.lines([(f"{indent}{where}", "bright_black")])
    for name, text in _detail_fields(memory):
        display.lines([(f"{indent}{name}: ", "bright_black"), text])


def _detail_fields(memory: Memory) -> "list[tuple[str, str]]":
    """The other details and the validity of a memory, which are part of the decision."""
    since, until = (moment(at) if at is not None else "" for at in (memory.valid_from, memory.valid_until))
    context = "\n".join(memory.context.splitlines()[:CONTEXT_LINES])
    told = [
        ("name", line(memory.name)),
        ("situation", escape_hidden(memory.situation)),
        ("why", escape_hidden(memory.rationale)),
        ("context", escape_hidden(context) + (" …" if context != memory.context.rstrip("\n") else "")),
        ("domain", line(memory.domain)),
        ("tags", line(", ".join(memory.tags))),
        ("cues", line("; ".join(memory.cues))),
        ("valid", f"{since or 'always'} – {until or 'from then on'}" if since or until else ""),
        ("confidence", f"{memory.confidence:.2f}"),
    ]
    return [(name, text) for name, text in told if text]


def draw_provenance(found: "Provenance", indent: str = "", without: str = "") -> None:
    """Print the origin of a memory, its duplicates, the contradictions not shown yet, and why it passed the gates."""
    display.lines([(f"{indent}tier {found.tier} · kind {found.kind}", "bright_black")])
    for quote in found.quotes:
        said = f"{quote.role} in {line(quote.session)}, {moment(quote.at)}"
        display.lines([(f"{indent}“{line(quote.text)}”", "italic"), (f"  {said}", "bright_black")])
    draw_retellings(found.retellings, indent)
    near = found.neighbours
    for label, others in (("same as", near.same), ("may repeat", near.similar), ("contradicts", near.conflicts)):
        for other in (one for one in others if one.id != without):
            told = f"{indent}{label} {line(other.id)} ({other.status}): {line(other.statement, 100)}"
            display.lines([(told, "yellow")])
    if found.gates:
        display.lines([(f"{indent}gates: {line(found.gates)}", "bright_black")])


def draw_retellings(found: Sequence["NumberedRetelling"], indent: str = "") -> None:
    """Print later statements that were taken for the same, with the number that `separate` takes."""
    for one in found:
        where = ", ".join(filter(None, (f"in {line(one.session)}" if one.session else "", moment(one.at))))
        told = f"{indent}{one.number} also told as “{line(one.statement)}”"
        display.lines([(told, "italic"), (f"  {where}", "bright_black")])
