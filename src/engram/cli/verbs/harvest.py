"""harvest: propose the lasting facts in what you told your coding agents."""

from collections import Counter
from typing import TYPE_CHECKING

from engram.agents.registry import agents_with_sessions
from engram.cli import display
from engram.cli.display import line, progress
from engram.cli.surface import Surface
from engram.text.display import format_count

if TYPE_CHECKING:
    from engram.capture.harvest import HarvestedFact, HarvestReport

_HARNESSES = ", ".join(agent.name for agent in agents_with_sessions())
_STYLES = {
    "proposed": "green", "stored": "green", "duplicate": "bright_black", "unlikely": "bright_black", "trivial": "bright_black",
    "refused": "yellow",
}  # fmt: skip
_KEPT_OUTCOMES = ("proposed", "stored")
MAX_SHOWN_FACTS = 20
"""Facts, and problems, that are shown without --verbose."""


def harvest(
    surface: Surface,
    path: str | None = None,
    harness: str = "all",
    since: str | None = None,
    project: str | None = None,
    dry_run: bool = False,
    verbose: bool = False,
) -> None:
    """Carry out `engram harvest`."""
    with surface.memory() as mem:
        with progress("Harvesting") as report:
            found = mem.harvest(
                path, harness=harness, since=since, project=project, dry_run=dry_run, progress=report
            )  # fmt: skip
        show_harvest(surface, found, dry_run=dry_run, verbose=verbose)


def show_harvest(surface: Surface, found: "HarvestReport", *, dry_run: bool, verbose: bool) -> None:
    """Print what became of each fact, what could not be read, and a summary."""
    problems = found.problems if verbose else found.problems[:MAX_SHOWN_FACTS]
    surface.warn(problems)
    if len(found.problems) > len(problems):
        surface.warn([f"{len(found.problems) - len(problems):,} more could not be read; --verbose lists them"])
    surface.warn(found.warnings)
    surface.answer(_data(found), lambda: _draw(found, verbose))
    surface.hint(_summary(found, dry_run))
    for source, waiting in found.postponed.items():
        surface.hint(
            f"engram: {source} has reached the limit of a run; {format_count(waiting, 'session waits', 'sessions wait')} for the next harvest"
        )


def _data(found: "HarvestReport") -> dict[str, object]:
    counts = Counter(fact.outcome for fact in found.facts)
    return {
        **{outcome: counts[outcome] for outcome in _STYLES}, "sessions": found.sessions, "unchanged": found.unchanged,
        "turns": found.turns, "bytes": found.size, "facts": found.facts, "postponed": found.postponed,
        "problems": found.problems, "warnings": found.warnings,
    }  # fmt: skip


def _draw(found: "HarvestReport", everything: bool) -> None:
    facts = found.facts if everything else [fact for fact in found.facts if fact.outcome in _KEPT_OUTCOMES]
    shown = facts if everything else facts[:MAX_SHOWN_FACTS]
    for fact in shown:
        _draw_fact(fact, everything)
    if len(facts) > len(shown):
        display.lines([(f"… and {len(facts) - len(shown):,} more; --verbose lists them", "bright_black")])


def _draw_fact(fact: "HarvestedFact", with_reason: bool) -> None:
    known = f"{fact.memory_id}  " if fact.memory_id else ""
    display.lines(
        [(f"{fact.outcome:<10}", _STYLES[fact.outcome]), (known, "cyan"), line(fact.stored or fact.statement)]
    )
    if with_reason and fact.stored not in ("", fact.statement):
        display.lines([(f"{'':<10}said as: {line(fact.statement)}", "bright_black")])
    if with_reason:
        display.lines([(f"{'':<10}{fact.at:%Y-%m-%d} {line(fact.source)}: {line(fact.reason)}", "bright_black")])


def _summary(found: "HarvestReport", dry_run: bool) -> str:
    read = f"{format_count(found.sessions, 'session')} read, {found.unchanged:,} unchanged"
    shown = [outcome for outcome in _STYLES if outcome != "stored" or found.count(outcome)]
    counts = ", ".join(f"{found.count(outcome):,} {outcome}" for outcome in shown)
    return f"engram: {read}: {counts}{_next_step(found, dry_run)}"


def _next_step(found: "HarvestReport", dry_run: bool) -> str:
    """What is left to the person."""
    if dry_run:
        return "; nothing was written"
    decides = f"; `engram review` decides about {found.count('proposed'):,}" if found.count("proposed") else ""
    return decides + ("; `engram undo ID` takes back what is stored" if found.count("stored") else "")
