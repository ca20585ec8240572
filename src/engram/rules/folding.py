"""What the noted uses of a memory make of it: each use once, reinforcement once per session."""

from collections.abc import Iterable
from dataclasses import replace

from engram.model.memory import SIGNALS, Memory
from engram.model.usage import Use
from engram.rules.strength import rated, reinforced

REINFORCING = frozenset({"injected", "recalled"})


def sitting(use: Use) -> str:
    """What counts as one session: the session, or without one the UTC day."""
    return use.session or f"day:{use.at.date().isoformat()}"


def folded(memory: Memory, uses: Iterable[Use]) -> Memory:
    """The memory after all its uses from `activation.seq` on. Folding the same uses again changes nothing."""
    seen: set[str] = set()
    covered = memory.activation.seq
    for use in sorted(uses, key=lambda u: u.position):
        fresh = use.position >= covered
        if use.kind in REINFORCING:
            if fresh and sitting(use) not in seen:
                memory = reinforced(memory, use.at)
            seen.add(sitting(use))
        elif fresh and use.kind == "rated" and use.signal in SIGNALS:
            memory = rated(memory, use.signal, use.at)
        if fresh:
            memory = memory.but(activation=replace(memory.activation, seq=use.position + 1))
    return memory
