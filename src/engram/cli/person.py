"""Proving that a person decides: a controlling terminal and a typed code (DESIGN §12)."""

import os
import secrets
from pathlib import Path

from engram.model.errors import Refused
from engram.model.memory import Memory
from engram.text.display import shown

IN_FORCE = ("active", "dormant")
_TERMINAL = Path("/dev/tty")


def reason_for_person(memory: Memory) -> str:
    """Why only a person may activate this memory; "" when anyone may, or when it is active already."""
    if memory.status in IN_FORCE:
        return ""
    from engram.gates.instructions import injection_problem
    from engram.gates.trust import tier_3_reason

    held = tier_3_reason(memory)
    return f"{held}, which always needs a person" if held else injection_problem(memory)


def lowers_tier(memory: Memory, type_name: str) -> bool:
    """Whether another type would let an inactive memory bypass a person."""
    from engram.model.types import type_or_default

    return memory.status not in IN_FORCE and type_or_default(type_name).tier < type_or_default(memory.type).tier


def require_person(memory: Memory, reason: str) -> None:
    """Where there is a reason, have the person at the controlling terminal type a code; anything else is refused.

    A program can write to its own stdin; it does not hold the terminal that started it.
    """
    if not reason:
        return
    try:
        # Read and write apart: a terminal cannot be sought in.
        with _TERMINAL.open(encoding="utf-8") as heard, _TERMINAL.open("w", encoding="utf-8") as told:
            if not os.isatty(heard.fileno()):
                raise OSError
            code = f"{secrets.randbelow(9000) + 1000}"
            told.write(f"{memory.id} needs a person: {shown(reason)}.\nType {code}: ")
            told.flush()
            answer = heard.readline().strip()
    except OSError:
        raise Refused(f"{memory.id} needs a person: {reason}; run this at a terminal") from None
    if answer != code:
        raise Refused(f"The code was not {code}; {memory.id} still awaits review")
