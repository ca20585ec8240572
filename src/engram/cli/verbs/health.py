"""index, doctor, status: the health of the store."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engram.cli import display
from engram.cli.display import ago, line, progress
from engram.cli.surface import Surface
from engram.model.errors import EmbedderError, InvalidInput
from engram.model.report import Finding, Report
from engram.text.display import format_count

if TYPE_CHECKING:
    from engram.embedding.protocol import Embedder
    from engram.store.home import Home
    from engram.store.protocol import Store


def index(surface: Surface, rebuild: bool = False, reembed: bool = False, nearest: bool = False) -> None:
    """Carry out `engram index`."""
    if rebuild and reembed:
        raise InvalidInput("--rebuild computes the vectors, too; give only one of the two")
    with surface.memory() as mem:
        done: dict[str, Any] = {}
        if rebuild:
            with progress("Indexing") as report:
                done["rebuilt"] = mem.upkeep.rebuild_index(report)
        if reembed:
            with progress("Embedding") as report:
                done["reembedded"] = mem.upkeep.reembed(report)
        if nearest:
            with progress("Indexing vectors") as report:
                done["nearest"] = mem.store.build_nearest(report)
        facts = dict(mem.store.facts()["index"])
        documents = ", ".join(f"{number:,} {kind}" for kind, number in facts["documents"].items()) or "none"
        rows = [
            ("documents", documents),
            ("vectors", f"{facts['vectors']:,} by {facts['embedder'] or 'no embedder'}"),
            ("file", facts.get("path", "")),
        ]
        surface.answer({**facts, **done}, lambda: display.fields(rows))
        if reembed:
            surface.hint(f"engram: {done['reembedded']} vectors computed")
        if nearest:
            surface.hint(f"engram: vectors are now searched with the index {done['nearest']}")


def doctor(surface: Surface, repair: bool = False, seconds: float = 10) -> None:
    """Carry out `engram doctor`."""
    moved = _repair(surface) if repair else []
    found = _run_diagnosis(surface, repair, seconds)

    def draw() -> None:
        signs = {"ok": ("✓", "green"), "advice": ("!", "yellow"), "problem": ("✗", "bold red")}
        for finding in found.findings:
            sign, style = signs[finding.level]
            display.lines([(f"{sign} ", style), (f"{finding.code:<11}", "bold"), finding.message])
            if finding.fix:
                display.lines([(f"  {'':<11}→ {finding.fix}", "yellow")])
        for repaired in moved:
            display.lines([("repaired  ", "yellow"), repaired])

    surface.answer({**found.record(), "repaired": moved} if repair else found.record(), draw)
    if not found.ok:
        raise SystemExit(1)


def _run_diagnosis(surface: Surface, repair: bool, seconds: float) -> Report:
    """What the doctor finds. Wrong settings keep the store from opening, so it is examined with the defaults for those."""
    from engram.agents.wiring.wiring_health import wiring_finding
    from engram.capture.signals import signal_problems
    from engram.embedding import load_embedder
    from engram.gates.policies import policy_problems
    from engram.settings import read_settings
    from engram.store.scopes import repository_of, working_directory
    from engram.store.sources import utc_now
    from engram.upkeep.hook_health import hook_findings
    from engram.upkeep.purge import finish_purges
    from engram.upkeep.scope_links import scope_finding
    from engram.upkeep.upkeep import diagnose

    config, opened, place = _locate_store(surface.home)
    settings, problems = read_settings(config)
    problems += policy_problems(settings.policy, settings.policies, str(config))
    problems += signal_problems(settings.signals, config)
    try:
        embedder = load_embedder(settings.embedder)
    except EmbedderError as error:
        embedder = None
        problems.append(f"{config}: {error}")
    store = opened(embedder)
    remaining: list[str] = []
    try:
        if repair:
            store.sync()
            remaining = [line for purged in finish_purges(store, utc_now) for line in purged.remaining]
        found = diagnose(store, utc_now(), seconds).with_findings(last=[scope_finding(store, working_directory())])
    finally:
        store.close()
    wired = wiring_finding(repository_of(working_directory()))
    last = [*hook_findings(place), *([wired] if wired is not None else [])]
    last += [Finding.of("purge", False, line) for line in remaining]
    return found.with_findings(first=[_settings_finding(problems)], last=last)


def _locate_store(home: Path | None) -> "tuple[Path | None, Callable[[Embedder | None], Store], Home | None]":
    """Where the settings are, how the store is opened once they are read, and its home; None on a server."""
    from engram.store.location import owner_config, requested_server
    from engram.store.postgres.setup import open_store
    from engram.store.sources import utc_now

    server = requested_server(home)
    if server is not None:
        return owner_config(), lambda embedder: open_store(server.url, server.tenant, embedder, clock=utc_now), None
    from engram.store.home import open_home
    from engram.store.local import open_files
    from engram.store.scopes import working_directory

    place = open_home(home)
    return place.config, lambda embedder: open_files(place, embedder, directory=working_directory()), place


def _settings_finding(problems: list[str]) -> Finding:
    if not problems:
        return Finding.of("settings", True, "all settings are valid")
    return Finding.of("settings", False, "; ".join(problems), "the defaults apply until they are corrected")


def _repair(surface: Surface) -> list[str]:
    from engram.store.home import open_home
    from engram.store.local import repair_logs

    surface.refuse_server("--repair works on a journal of files; repair a server with its own tools")
    return repair_logs(open_home(surface.home, create=False))


def status(surface: Surface) -> None:
    """Carry out `engram status`."""
    with surface.memory() as mem:
        found = {**mem.upkeep.status(), "scope": mem.scope_here()}
        surface.answer(found, lambda: _draw_status(found, surface.now))


def _draw_status(found: dict[str, Any], now: datetime) -> None:
    total = sum(found["statuses"].values())
    states = ", ".join(f"{number:,} {name}" for name, number in sorted(found["statuses"].items()))
    waiting, lacking, turns = found["waiting_for_review"], found["without_cues"], ""
    if found["waiting_turns"]:
        turns = (
            f"{format_count(found['waiting_turns'], 'turn waits', 'turns wait')} for extraction: engram capture --flush"
        )
    display.fields(
        [
            ("store", found["store"]),
            ("memories", f"{total:,}" + (f" ({states})" if states else "")),
            ("events", f"{found['index']['documents'].get('event', 0):,}"),
            ("scope here", found["scope"]),
            ("embedder", found["embedder"] or "none: search by keyword only"),
            (
                "review",
                (f"{format_count(waiting, 'memory awaits', 'memories await')} review: engram review", "cyan")
                if waiting
                else "",
            ),
            ("captured", turns),
            (
                "cues",
                f"{format_count(lacking, 'memory lacks', 'memories lack')} them: engram enrich" if lacking else "",
            ),
            ("paused", ("yes: engram resume ends that", "yellow") if found["paused"] else ""),
            ("problems", ("; ".join(found["problems"]), "red") if found["problems"] else ""),
        ]
    )
    _draw_last(found["last_injection"], now)


def _draw_last(last: dict[str, Any] | None, now: datetime) -> None:
    if not last:
        display.lines([""], [("nothing has been injected yet", "bright_black")])
        return
    when = ago(datetime.fromisoformat(last["at"]), now)
    session = f" in {last['session']}" if last["session"] else ""
    display.lines([""], [("injected last", "bold"), f"  {when}{session}"])
    rows: list[list[display.Cell]] = [[(one["id"], "cyan"), line(one["statement"])] for one in last["memories"]]
    display.table(["id", "statement"], rows)
    ways = "engram forget ID  ·  engram feedback ID negative  ·  engram update ID --status dormant"
    display.lines([""], [("to stop one  ", "bold"), (ways, "bright_black")])
