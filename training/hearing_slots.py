"""Slots: things with a current value, each with many ways to state it and its changes, and with look-alikes.

training/hearing/slots/*.txt has blocks of this form, `{v}` for the value, `{old}` for the previous one, `{w}` for any
other:

    slot: who manages me | one
    values: Karen | Tobias Lind | Priya
    holds:
    I report to {v}.
    changes:
    {v} took over from {old} as my boss.
    ends:
    I don't have a manager any more.
    lookalikes:
    My manager is off sick until Thursday.
    questions:
    Whose okay do I need for my time off?
    nearby:
    How old is my manager?

`one` has one value at a time, `many` has several. `questions` are answered by `holds` and `changes`, `nearby` ones are
not.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "hearing" / "slots"
SECTIONS = ("holds", "changes", "ends", "lookalikes", "questions", "nearby")
_PLACE = re.compile(r"\{(v|w|old)\}")
_SHARES = {"update": 40, "ended": 4, "contradiction": 16, "same": 20, "lookalike": 45, "after": 8}
"""Pairs drawn from a slot, by how they are made."""


@dataclass(frozen=True)
class Slot:
    """One slot of a writer."""

    writer: str
    name: str
    many: bool
    values: tuple[str, ...] = ()
    lines: dict[str, list[str]] = field(default_factory=dict)


def read_slots(path: Path) -> list[Slot]:
    """The slots of one writer's file."""
    found: list[Slot] = []
    section = ""
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        head, colon, rest = (part.strip() for part in line.partition(":"))
        if head == "slot" and colon:
            name, _, kind = (part.strip() for part in rest.rpartition("|"))
            if kind not in ("one", "many"):
                raise ValueError(f"{path.name}:{number}: a slot is one or many")
            found.append(Slot(path.stem, name, kind == "many", lines={each: [] for each in SECTIONS}))
            section = ""
        elif head == "values" and colon and not section:
            values = tuple(filter(None, (part.strip() for part in rest.split("|"))))
            found[-1] = Slot(found[-1].writer, found[-1].name, found[-1].many, values, found[-1].lines)
        elif head in SECTIONS and colon and not rest:
            section = head
        elif line.strip():
            if not section:
                raise ValueError(f"{path.name}:{number}: outside a section")
            found[-1].lines[section].append(line.strip())
    return found


def every_slot(folder: Path = FOLDER) -> list[Slot]:
    """The slots of all writers."""
    return [slot for path in sorted(folder.glob("*.txt")) for slot in read_slots(path)]


def filled(line: str, value: str, old: str, other: str) -> str:
    """A line with its values inserted; a value at the start of a sentence is capitalised."""
    text = _PLACE.sub(lambda place: {"v": value, "old": old, "w": other}[place[1]], line)
    return text[:1].upper() + text[1:] if line[:1] == "{" and line[-1:] in ".!?" else text


def slot_pairs(slot: Slot, seed: int = 0, share: float = 1.0) -> Iterator[tuple[str, str, str]]:
    """Labels and pairs of statements drawn from a slot: label, older, newer."""
    chance = random.Random(f"{seed} {slot.writer} {slot.name}")
    seen = set()
    about = subject(slot)
    for kind, count in _SHARES.items():
        for _ in range(round(count * share)):
            label, older, newer = _drawn(slot, kind, chance)
            if about not in ("", *SPEAKERS) and chance.random() < _NAMED:
                name = chance.choice(NAMES)
                older, newer = renamed(older, about, name), renamed(newer, about, name)
            if label and older.lower() != newer.lower() and (older, newer) not in seen:
                seen.add((older, newer))
                yield label, older, newer


def _drawn(slot: Slot, kind: str, chance: random.Random) -> tuple[str, str, str]:
    """One pair; the label is "" if the slot has none of this kind."""
    value, new, third = chance.sample(slot.values, 3)
    lines = slot.lines
    told = chance.choice(lines["holds"])
    if lines["changes"] and not slot.many and chance.random() < 0.25:
        told = chance.choice(lines["changes"])
    older = filled(told, value, third, third)
    if kind == "update":
        line = chance.choice(lines["changes"])
        if slot.many and "{old}" not in line:
            return "", "", ""
        if slot.many and chance.random() < 0.3:
            return "different", older, filled(line, new, third, third)
        return "update", older, filled(line, new, value, third)
    if kind == "ended":
        line = chance.choice(lines["ends"]) if lines["ends"] else ""
        return ("update" if line else ""), older, filled(line, value, value, third)
    if kind == "contradiction":
        return (
            ("different" if slot.many else "contradiction"),
            older,
            filled(chance.choice(lines["holds"]), new, third, third),
        )
    if kind == "same":
        others = [line for line in lines["holds"] if line != told]
        others += (
            []
            if slot.many
            else [line for line in lines["changes"] if line != told and "{old}" not in line and "{v}" in line]
        )
        return "same", older, filled(chance.choice(others), value, third, third)
    line = chance.choice(lines["lookalikes"])
    alike = filled(line, chance.choice((value, new)), third, chance.choice((new, third)))
    return ("different", older, alike) if kind == "lookalike" else ("different", alike, older)


# -- different slots of one subject


def subject(slot: Slot) -> str:
    """The subject of a slot: a word in most of its lines, "I" or "we" if most are about the speaker, else ""."""
    from engram.text.words import read_table

    told = (line for part in ("holds", "changes") for line in slot.lines[part])
    lines: list[set[str]] = [set(re.findall(r"[^\W\d_]+", _PLACE.sub("", line).lower())) for line in told]
    common = {word for row in read_table("stopwords.txt") for word in row}
    shared = Counter(word for line in lines for word in line - common)
    if shared and shared.most_common(1)[0][1] >= len(lines) * _MOST:
        return shared.most_common(1)[0][0]
    for person, words in SPEAKERS.items():
        if sum(bool(words & line) for line in lines) >= len(lines) * _MOST:
            return person
    return ""


NAMES = (
    "Femi", "Greta", "Tomas", "Aino", "Rafael", "Mirela", "Oskar", "Yusuf", "Ingrid", "Paolo",
    "Noor", "Declan", "Sachiko", "Bram", "Lucia", "Vikram", "Hanne", "Tariq", "Elsa", "Joaquin",
    "Kestrel", "Falcon", "Orion", "Juniper", "Atlas", "Harbour", "Beacon", "Meridian", "Willow", "Comet",
    "Saffron", "Tundra", "Lantern", "Pelican", "Cobalt", "Mosaic", "Summit", "Basalt", "Heron", "Quartz",
)  # fmt: skip
"""Names of people and projects that replace a subject, so that a name shared by two statements does not by itself
indicate a change."""
_NAMED = 0.4
"""How often this is done to a pair of one slot."""
SPEAKERS = {"I": {"i", "my", "me", "mine", "im"}, "we": {"we", "our", "us", "ours"}}
_MOST = 0.55
_ALIKE = 0.3
"""Minimum cosine of two slots that may be the same thing in the words of two writers."""


def every_rival(slots: Sequence[Slot], each: int, seed: int = 0) -> Iterator[tuple[str, str, str, str]]:
    """`rival_pairs` within each writer's slots, the writer first."""
    for writer in sorted({slot.writer for slot in slots}):
        for row in rival_pairs([slot for slot in slots if slot.writer == writer], each, seed):
            yield writer, *row


def rival_pairs(slots: Sequence[Slot], each: int, seed: int = 0) -> Iterator[tuple[str, str, str]]:
    """Pairs of statements about one subject from different slots, labelled `different`: news about one slot does not change the other.

    The sentences of a slot about a person or thing are applied to another one, by its name.
    """
    from engram.embedding.static import StaticEmbedder

    subjects = [subject(slot) for slot in slots]
    known = StaticEmbedder().embed([" ".join((slot.name, *slot.lines["questions"])) for slot in slots])
    cosines = known @ known.T
    for at, slot in enumerate(slots):
        chance = random.Random(f"{seed} {slot.writer} {slot.name}")
        named = subjects[at] not in ("", *SPEAKERS)
        others = [
            other
            for other, theirs in enumerate(subjects)
            if other != at
            and cosines[at, other] < _ALIKE
            and (theirs == subjects[at] or (named and theirs not in ("", *SPEAKERS)))
        ]
        for other in chance.sample(others, min(each, len(others))) if subjects[at] else ():
            name = chance.choice((subjects[at], *(chance.sample(NAMES, 3) if named else ())))
            older, newer = _any_line(slot, chance), _any_line(slots[other], chance, 0.7)
            yield "different", renamed(older, subjects[at], name), renamed(newer, subjects[other], name)


def _any_line(slot: Slot, chance: random.Random, changes: float = 0.25) -> str:
    value, old, third = chance.sample(slot.values, 3)
    return filled(chance.choice(slot.lines["changes" if chance.random() < changes else "holds"]), value, old, third)


def renamed(text: str, name: str, other: str) -> str:
    return text if name in SPEAKERS else re.sub(rf"\b{re.escape(name)}\b", other, text, flags=re.IGNORECASE)
