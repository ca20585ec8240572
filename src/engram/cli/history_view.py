"""A memory's history as steps: who decided what, and what it changed, field by field."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from engram.cli import display
from engram.cli.display import line, moment, shown
from engram.cli.records import plain
from engram.model.lazy import dataclass

if TYPE_CHECKING:
    from engram.model.memory import Memory
    from engram.store.protocol import Image

_SILENT = frozenset({"updated", "activation.seq"})
"""Fields that change with every step and say nothing by it."""
_ABSENT: Any = None


@dataclass(frozen=True, slots=True)
class HistoryStep:
    """One decision and what it changed: field → (before, after)."""

    image: "Image"
    changes: Mapping[str, tuple[Any, Any]]


def steps(images: "Sequence[Image]") -> list[HistoryStep]:
    """Each image compared with the previous one."""
    found: list[HistoryStep] = []
    before: Memory | None = None
    for image in images:
        found.append(HistoryStep(image, changes(before, image.memory)))
        before = image.memory
    return found


def changes(before: "Memory | None", after: "Memory | None") -> dict[str, tuple[Any, Any]]:
    """The fields in which two images differ; for the first one, those that are not empty."""
    old, new = _flat(before), _flat(after)
    names = dict.fromkeys([*old, *new])
    different = {name: (old.get(name, _ABSENT), new.get(name, _ABSENT)) for name in names if name not in _SILENT}
    return {
        name: pair
        for name, pair in different.items()
        if pair[0] != pair[1] and not (before is None and _is_default(name, pair[1]))
    }


def _flat(memory: "Memory | None") -> dict[str, Any]:
    if memory is None:
        return {}
    flat: dict[str, Any] = {}
    for name, value in plain(memory).items():
        if name in ("activation", "feedback"):
            flat |= {f"{name}.{key}": item for key, item in value.items()}
        else:
            flat[name] = value
    return flat


def _is_default(name: str, value: Any) -> bool:
    from engram.model.memory import Memory

    return bool(_flat(Memory(id="", statement="")).get(name) == value)


def step_data(step: HistoryStep) -> dict[str, Any]:
    """A step for a program."""
    image = step.image
    return {
        "seq": image.seq,
        "at": plain(image.at),
        "op": image.op,
        "actor": image.actor,
        "reason": image.reason,
        "changes": {name: {"before": before, "after": after} for name, (before, after) in step.changes.items()},
        "memory": plain(image.memory),
    }


def draw(found: Sequence[HistoryStep]) -> None:
    """Steps for a person, oldest first."""
    for step in found:
        image = step.image
        reason = f"  {line(image.reason)}" if image.reason else ""
        display.lines(
            [
                (f"#{image.seq} ", "bright_black"),
                (image.op, "bold cyan"),
                f"  {moment(image.at)}  by {image.actor}",
                (reason, "bright_black"),
            ]
        )
        if image.memory is None:
            display.lines([("    purged: nothing of it is left", "red")])
        draw_changes(step.changes)


def draw_changes(found: Mapping[str, tuple[Any, Any]]) -> None:
    """What changed, before and after."""
    for name, (before, after) in found.items():
        old, new = _words(before), _words(after)
        if not old:
            display.lines([f"    {name}: ", (f"+ {new}", "green")])
        elif len(old) + len(new) < 60 and "\n" not in old + new:
            display.lines([f"    {name}: ", (old, "red"), " → ", (new or "(nothing)", "green")])
        else:
            display.lines([f"    {name}:"], [(f"      - {old}", "red")], [(f"      + {new or '(nothing)'}", "green")])


def _words(value: Any) -> str:
    if value is None or value in ("", [], {}):
        return ""
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(_words(item) for item in value)
    if isinstance(value, dict):
        return (
            "{" + ", ".join(f"{key}: {_words(item)}" for key, item in value.items() if item not in ("", {}, None)) + "}"
        )
    return shown(str(value))
