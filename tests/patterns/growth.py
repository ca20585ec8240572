"""How much longer a pattern works on a text of four times the length."""

import re
import time
from collections.abc import Callable, Sequence
from typing import Any

import regex

from tests.patterns.catalog import SEARCHED, FoundPattern
from tests.patterns.pumps import Pump, pumps

SHORT, LONG = 10_000, 40_000
SCREENED = 1_500
"""Characters of the text that tells whether a pattern is measured at all on a pump."""
STEPS = (24, 36, 54, 80, 115, 150, 300, 600)
"""Shorter texts that are tried first: a pattern of exponential growth would never finish a longer one."""
ALWAYS = (24, 54, 150)
"""Those that are tried even if the one before took no time."""
FLOOR_S = 0.0006
"""Processor time on a text of up to `SCREENED` characters below which a pattern is not measured further."""
STEP_S = 0.15
"""Processor time on a text of up to `SCREENED` characters that proves growth: a linear pattern takes a hundredth."""
CERTAIN_S = 2.0
"""Processor time on the short text from which on the long one is not waited for."""
MAX_GROWTH = 8.0
"""Linear growth is 4, quadratic 16."""
TRIES = 5


def superlinear_pump(pattern: FoundPattern, every: int = 1) -> tuple[Pump, float] | None:
    """A pump on which the pattern grows faster than the text, with the growth; None if there is none.

    With `every` only one pump in so many is tried; which one differs from pattern to pattern.
    """
    compiled = _compiled(pattern)
    run = _searching(compiled) if pattern.methods == SEARCHED else _anchored(compiled, pattern.methods)
    for pump in pumps(pattern.source, pattern.flags)[len(pattern.source) % every :: every]:
        if growth := _growth_in(run, pump, pattern.window) if pattern.window else _superlinear_growth(run, pump):
            return pump, growth
    return None


def _compiled(pattern: FoundPattern) -> Any:
    try:
        return re.compile(pattern.source, pattern.flags)
    except re.error:
        return regex.compile(pattern.source)


def _anchored(compiled: Any, methods: Sequence[str]) -> Callable[[str], object]:
    return lambda text: [getattr(compiled, method)(text) for method in methods]


def _searching(compiled: Any) -> Callable[[str], object]:
    return lambda text: sum(1 for _ in compiled.finditer(text))


def _growth_in(run: Callable[[str], object], pump: Pump, window: int) -> float:
    """Infinite, if a text as long as the window takes so much time that growth is certain; otherwise 0."""
    for size in (*(step for step in STEPS if step < window), window):
        if _least_seconds(run, pump.text(size - len(pump.piece)), STEP_S) >= STEP_S:
            return float("inf")
    return 0.0


def _superlinear_growth(run: Callable[[str], object], pump: Pump) -> float:
    """The growth from a short to a long text, if it exceeds `MAX_GROWTH` every time; otherwise 0."""
    screened = 0.0
    for size in (*STEPS, SCREENED):
        if size not in (*ALWAYS, SCREENED) and screened < FLOOR_S:
            continue
        screened = _least_seconds(run, pump.text(size), FLOOR_S)
        if screened >= STEP_S:
            return float("inf")
    if screened < FLOOR_S:
        return 0.0
    # From the screened text to the short one, linear growth is less than half of this.
    linear = MAX_GROWTH * 2 * screened
    if (short := _least_seconds(run, pump.text(SHORT), linear)) < linear:
        return 0.0
    if short > CERTAIN_S:
        return short / screened
    growth = float("inf")
    for _ in range(TRIES):
        short = _least_seconds(run, pump.text(SHORT), 0)
        growth = min(growth, _seconds(run, pump.text(LONG)) / short)
        if growth < MAX_GROWTH:
            return 0.0
    return growth


def _least_seconds(run: Callable[[str], object], text: str, enough: float) -> float:
    """The least processor time of three runs; one below `enough` is the last."""
    least = _seconds(run, text)
    for _ in range(2):
        if least < enough:
            break
        least = min(least, _seconds(run, text))
    return least


def _seconds(run: Callable[[str], object], text: str) -> float:
    began = time.process_time()
    run(text)
    return time.process_time() - began
