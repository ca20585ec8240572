"""status, doctor, index, pause, resume, sync, prune, backup, restore, gen-context: the health and upkeep of the store."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engram.cli import display
from engram.cli.display import ago, line, progress
from engram.cli.records import plain
from engram.cli.surface import FAILED, Surface
from engram.model.errors import EmbedderError, InvalidInput, Refused
from engram.model.report import Finding, Report
from engram.text.display import format_count

if TYPE_CHECKING:
    from engram.embedding.vectors import Embedder
    from engram.store.home import Home
    from engram.store.protocol import Store
    from engram.upkeep.context_files import ContextUpdate

MAX_DAYS = 36_500
"""A century; the calendar ends before much larger numbers of days."""


def pause(surface: Surface) -> None:
    """Carry out `engram pause`."""
    with surface.memory() as mem:
        mem.upkeep.pause()
        surface.answer({"paused": True}, lambda: None)
        surface.hint("engram: paused; `engram resume` ends that")


def resume(surface: Surface) -> None:
    """Carry out `engram resume`."""
    with surface.memory() as mem:
        mem.upkeep.resume()
        surface.answer({"paused": False}, lambda: None)
        surface.hint("engram: learning and injecting again")


def sync(surface: Surface) -> None:
    """Carry out `engram sync`."""
    with surface.memory() as mem:
        noticed = mem.upkeep.sync()

        def draw() -> None:
            for what, style in (("added", "green"), ("edited", "yellow"), ("removed", "red"), ("restored", "cyan")):
                for memory_id in getattr(noticed, what):
                    display.lines([(f"{what:<9}", style), memory_id])
            for problem in noticed.problems:
                display.lines([("problem  ", "bold red"), problem])

        surface.answer(noticed, draw)
        if not noticed:
            agreed = "files and index agree" if mem.home is not None else "nothing to read: this store has no files"
            surface.hint(f"engram: {agreed}")


def prune(surface: Surface, days: int | None = None, yes: bool = False) -> None:
    """Carry out `engram prune`."""
    from engram.model.lazy import replace

    if days is not None and not 1 <= days <= MAX_DAYS:
        raise InvalidInput(f"--days takes a number from 1 to {MAX_DAYS}, not {days}")
    if days is not None and yes and not surface.person:
        raise Refused("how long history is kept is a person's decision: run `engram prune --days` at a terminal")
    with surface.memory() as mem:
        if days is not None:
            mem.upkeep.settings = replace(
                mem.upkeep.settings, keep_journal_days=days, keep_usage_days=days, keep_ledger_days=days
            )
        pruned = mem.upkeep.prune(dry_run=not yes)
        rows = [
            ("journal", format_count(pruned.images, "image") if pruned.images else "nothing"),
            ("usage", ", ".join(pruned.usage_months) or "nothing"),
            ("ledgers", format_count(len(pruned.ledgers), "session") if pruned.ledgers else "nothing"),
        ]
        surface.answer({**plain(pruned), "dry_run": not yes}, lambda: display.fields(rows))
        kept = mem.upkeep.settings
        if not (kept.keep_journal_days or kept.keep_usage_days or kept.keep_ledger_days):
            surface.hint("engram: the settings keep everything; --days N, or `engram config keep_journal_days N`")
        elif not yes:
            surface.hint("engram: this would be removed; --yes removes it")


def backup(surface: Surface, target: Path, force: bool = False) -> None:
    """Carry out `engram backup`."""
    if target.exists() and not force:
        raise InvalidInput(f"{target} already exists; choose another name, or add --force to replace it")
    with surface.memory() as mem:
        made = mem.upkeep.backup(target)
        words = f"{format_count(made['files'], 'file')}, {made['bytes']:,} bytes"
        surface.answer(
            {"file": str(target), **made}, lambda: display.lines([("saved", "green"), f"  {target}  ({words})"])
        )


def restore(surface: Surface, source: Path, force: bool = False) -> None:
    """Carry out `engram restore`."""
    from engram.store.home import default_root, expanded
    from engram.store.local import restore_backup

    surface.refuse_server("An archive is restored to files; `engram migrate` moves files to a server")
    root = expanded(surface.home or default_root(), "the store").absolute()
    if force and not surface.person and root.exists() and any(root.iterdir()):
        raise Refused(
            f"only a person can replace the store in {root} by another: run `engram restore --force` at a terminal, or give another --home"
        )
    root.parent.mkdir(parents=True, exist_ok=True)
    restored = restore_backup(source.expanduser().absolute(), root, force=force)
    with surface.memory() as mem:
        number = sum(mem.upkeep.status()["statuses"].values())
    data = {"home": str(root), "memories": number, **restored}
    words = f"{format_count(restored['files'], 'file')}, {format_count(number, 'memory', 'memories')}"
    surface.answer(data, lambda: display.lines([("restored", "green"), f"  {root}  ({words})"]))


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
    """The doctor's findings. Invalid settings keep the store from opening, so defaults replace them."""
    from engram.agents.wiring.wiring_health import wiring_finding
    from engram.capture.signals import signal_problems
    from engram.embedding import load_embedder
    from engram.gates.policies import policy_problems
    from engram.settings import read_settings
    from engram.store.defaults import utc_now
    from engram.store.scopes import repository_of, working_directory
    from engram.upkeep.purge import finish_purges
    from engram.upkeep.scope_links import scope_finding
    from engram.upkeep.upkeep import diagnose, hook_findings

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
    """The settings file, a function that opens the store with an embedder, and the store's home; None on a server."""
    from engram.store.defaults import owner_config, requested_server, utc_now
    from engram.store.postgres.setup import open_store

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


_CONFIRM = "`engram verify ID` confirms one"
_HINTS = {"stale": "`engram verify ID` makes one fresh again", "evidence": _CONFIRM, "unconfirmed": _CONFIRM}


def gen_context(
    surface: Surface,
    files: list[Path] | None = None,
    limit: int = 30,
    tier: int = 1,
    budget: int = 2000,
    scope: list[str] | None = None,
    check: bool = False,
    remove: bool = False,
    dry_run: bool = False,
) -> None:
    """Carry out `engram gen-context`."""
    if check and remove:
        raise InvalidInput("--check says whether a block is up to date, --remove takes it out; give one of the two")
    from engram.upkeep.context_files import BlockOptions

    BlockOptions(None, tier, limit, budget).validate("--")
    with surface.memory() as mem:
        found = mem.gen_context(
            files, limit=limit, tier=tier, budget=budget, remove=remove, dry_run=check or dry_run, scope=scope or None
        )
    shown = [_context_data(one, diff=dry_run) for one in found]
    surface.answer({"files": shown, "written": not (check or dry_run)}, lambda: _draw_context(found, check, dry_run))
    for one in found:
        surface.hint(_left_out_hint(one))
    if check and any(one.changed for one in found):
        raise SystemExit(FAILED)


def _context_data(update: "ContextUpdate", *, diff: bool) -> dict[str, Any]:
    fields: dict[str, Any] = plain(update)
    return fields if diff else {name: value for name, value in fields.items() if name != "diff"}


def _draw_context(found: "list[ContextUpdate]", check: bool, dry_run: bool) -> None:
    for one in found:
        if dry_run and one.diff:
            display.block(one.diff)
            continue
        state = ("out of date" if one.changed else "up to date") if check else one.change
        held = (
            f"  ({format_count(len(one.ids), 'memory', 'memories')}, {format_count(one.tokens, 'token')})"
            if one.tokens
            else ""
        )
        display.lines([(state, "yellow" if one.changed else "green"), f"  {one.file}{held}"])


def _left_out_hint(update: "ContextUpdate") -> str:
    """What the block leaves out, and what to do about it."""
    if not update.left_out:
        return ""
    parts = [f"{number:,} {why}" for why, number in sorted(update.left_out.items())]
    hints = list(dict.fromkeys(_HINTS[why] for why in sorted(update.left_out) if why in _HINTS))
    if any(why.startswith(("tier", "personal")) for why in update.left_out):
        hints.append("--tier 3 includes sensitive ones")
    return "; ".join([f"engram: left out: {', '.join(parts)}", *hints])
