"""Proving that a person decides: a controlling terminal and a typed code (DESIGN §12, tier 3)."""

import os
import secrets
from pathlib import Path

from engram.model.errors import Refused
from engram.model.memory import Memory
from engram.model.types import type_or_default

PERSON_ONLY = 3
_TERMINAL = Path("/dev/tty")


def needs_person(memory: Memory) -> bool:
    """Whether only a person may put this memory in force."""
    return memory.status == "candidate" and type_or_default(memory.type).tier >= PERSON_ONLY


def require_person(memory: Memory) -> None:
    """Have the person at the controlling terminal type a code; anything else is refused.

    A program can write to its own stdin; it does not hold the terminal that started it.
    """
    if not needs_person(memory):
        return
    try:
        # Read and write apart: a terminal cannot be sought in.
        with _TERMINAL.open(encoding="utf-8") as heard, _TERMINAL.open("w", encoding="utf-8") as told:
            if not os.isatty(heard.fileno()):
                raise OSError
            code = f"{secrets.randbelow(9000) + 1000}"
            told.write(f"{memory.id} is of type {memory.type}: only a person may put it in force.\nType {code}: ")
            told.flush()
            answer = heard.readline().strip()
    except OSError:
        raise Refused(
            f"{memory.id} is of type {memory.type!r}, which always waits for a person; run this at a terminal"
        ) from None
    if answer != code:
        raise Refused(f"the code was not {code}; {memory.id} still waits")
