"""import, export, harvest, migrate: memories from and to other stores, formats and coding agents."""

import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from engram.cli import display
from engram.cli.display import line, progress
from engram.cli.surface import Surface
from engram.cli.verbs.options import filters
from engram.model.errors import InvalidInput
from engram.model.lazy import replace
from engram.rules.scopes import EVERYWHERE
from engram.text.display import format_count

if TYPE_CHECKING:
    from engram import Engram
    from engram.capture.harvest import HarvestedFact, HarvestReport
    from engram.capture.import_known import ImportReport
    from engram.model.memory import Memory
    from engram.store.migration.records import Counts
    from engram.store.migration.transfer import Endpoint, Transfer
    from engram.store.protocol import Progress

NAMED_FORMATS = ("memory.v1", "notes", "toml")
"""Formats in which a memory has its own name, created by the export."""
FORMATS = ("engram", "json", "plur", *NAMED_FORMATS)


def import_(
    surface: Surface,
    path: Path,
    candidates: bool = False,
    trusted: bool = False,
    packs: bool = False,
    dry_run: bool = False,
    format_: str = "",
    map_: str = "",
    verbose: bool = False,
) -> None:
    """Carry out `engram import`."""
    from engram.capture.import_source import is_chats
    from engram.dialects.record_files import parse_mapping

    source = path.expanduser().absolute()
    if is_chats(source, format_):
        if trusted or packs or map_:
            raise InvalidInput(
                "The facts of chats are proposed for review: --trusted, --packs and --map do not apply to them"
            )
        _import_chats(surface, source, format_, dry_run, verbose)
        return
    mapping = parse_mapping(map_)
    with surface.memory() as mem:
        with progress("Importing") as report:
            done = mem.import_memories(
                source,
                format=format_,
                mapping=mapping,
                trusted=trusted,
                candidates=candidates,
                packs=packs,
                dry_run=dry_run,
                progress=report,
                actor=surface.actor,
            )
        _report_import(surface, done, source, dry_run)


def _report_import(surface: Surface, done: "ImportReport", source: Path, dry_run: bool) -> None:
    """Print the result of an import and the next step."""
    surface.answer(_import_data(done, dry_run), lambda: _draw_import(done, dry_run))
    if not dry_run and (done.created or done.updated):
        waiting = f"; {len(done.waiting)} await review: `engram review`" if done.waiting else ""
        surface.hint(f"engram: read from {source}{waiting}")
    if done.evidence:
        verb = "would be imported" if dry_run else "imported"
        surface.hint(
            f"engram: {format_count(len(done.evidence), 'memory', 'memories')} {verb} as evidence, to answer questions and give no directions; "
            "`engram import --trusted` at a terminal vouches for all of them, `engram verify ID` for one"
        )
    for scope, number in done.unseen.items():
        verb = "would go to" if dry_run else "is in" if number == 1 else "are in"
        memories = format_count(number, "memory", "memories")
        surface.say(f"engram: {memories} {verb} {scope}, which is not visible from here: use --scope {scope}")


def _import_chats(surface: Surface, path: Path, format_: str, dry_run: bool, verbose: bool) -> None:
    """Harvest the conversations of an export: their facts are proposed, and a person decides."""
    with surface.memory() as mem:
        with progress("Importing") as report:
            found = mem.import_chats(path, format=cast(Any, format_), dry_run=dry_run, progress=report)
        show_harvest(surface, found, dry_run=dry_run, verbose=verbose)


def _import_data(done: "ImportReport", dry_run: bool) -> dict[str, Any]:
    return {
        "created": done.created,
        "updated": done.updated,
        "unchanged": done.unchanged,
        "waiting": done.waiting,
        "evidence": done.evidence,
        "skipped": [{"what": what, "reason": reason} for what, reason in done.skipped],
        "notices": [{"what": what, "notice": notice} for what, notice in done.notices],
        "not_read": list(done.not_read),
        "unseen_scopes": done.unseen,
        "dry_run": dry_run,
    }


def _draw_import(done: "ImportReport", dry_run: bool) -> None:
    verb = "would be " if dry_run else ""
    display.lines(
        [
            (f"{len(done.created)} {verb}created", "green"),
            f", {len(done.updated)} {verb}updated, {len(done.unchanged)} already known, ",
            (f"{len(done.skipped)} skipped", "yellow" if done.skipped else ""),
        ]
    )
    for what, reason in done.skipped:
        display.lines([("  skipped ", "yellow"), f"{what}: {reason}"])
    for what, notice in done.notices:
        display.lines([("  note ", "yellow"), f"{what}: {notice}"])
    for what in done.not_read:
        display.lines([("  not read ", "bright_black"), what])


def export(
    surface: Surface,
    path: Path,
    format_: str = "engram",
    scope: list[str] | None = None,
    status: list[str] | None = None,
    force: bool = False,
) -> None:
    """Carry out `engram export`."""
    from engram.cli.records import plain

    if format_ not in FORMATS:
        raise InvalidInput(f"Unknown format {format_!r}; choose {', '.join(FORMATS)}")
    with surface.memory() as mem:
        memories = mem.list(limit=None, **filters(scope=scope or [EVERYWHERE], status=status or ["any"]))
        own = set(mem.store.own_ids([memory.id for memory in memories]))
        chosen = [memory for memory in reversed(memories) if memory.id in own]
        with progress("Exporting") as report:
            if format_ in NAMED_FORMATS:
                done = _export_named(mem, format_, path.expanduser(), chosen, force, surface.actor, report)
            else:
                done = _export(format_, path.expanduser(), chosen, mem.upkeep.clock(), force, report)
        statuses = Counter(memory.status for memory in chosen)
        words = ", ".join(f"{number:,} {name}" for name, number in sorted(statuses.items())) or "none"
        if str(path) == "-":
            surface.hint(f"engram: wrote {len(chosen):,} memories: {words}")
            return
        surface.answer(
            {"path": str(path), "format": format_, "statuses": statuses, **plain(done)},
            lambda: display.lines(
                [
                    ("wrote" if done["written"] else "wrote nothing to", "green"),
                    f"  {path}  ({done['written']} of {len(chosen)}: {words})",
                ]
            ),
        )
        for what, reason in done.get("left_out", ()):
            surface.say(f"engram: left out {what}: {reason}")


def _export(
    format_: str, path: Path, memories: "Sequence[Memory]", now: datetime, force: bool, report: "Progress"
) -> dict[str, Any]:
    """Write the memories; the result has their number, and for PLUR the ids and the omitted memories."""
    from engram.dialects import engram_yaml
    from engram.dialects.engram_yaml import dump_json
    from engram.store.home import file_name, scope_folder

    if format_ == "plur":
        from engram.dialects.plur import write_plur

        # An existing directory is PLUR's own, and `--force` does not change that.
        created, left_out = write_plur(path, [_for_plur(memory, now) for memory in memories], now=now, actor="engram")
        return {"written": len(created), "created": created, "left_out": left_out}
    if format_ == "json":
        files = {path: dump_json(memories)}
    elif path.suffix in (".yaml", ".yml") or str(path) == "-":
        files = {path: engram_yaml.dump(memories)}
    else:
        if path.exists() and not path.is_dir():
            raise InvalidInput(f"{path} is a file; give a directory, or a name that ends in .yaml")
        files = {
            path / scope_folder(memory.scope) / f"{file_name(memory.id)}.yaml": engram_yaml.dump([memory])
            for memory in memories
        }
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    _write_all(files, force, report)
    return {"written": len(memories)}


def _export_named(
    mem: "Engram", format_: str, path: Path, memories: "Sequence[Memory]", force: bool, actor: str, report: "Progress"
) -> dict[str, Any]:
    """Write the files of a format in which a memory has its own name."""
    from engram.capture import exporter

    if str(path) == "-":
        raise InvalidInput(f"{format_} is a directory of files; give its path")
    if path.exists() and not path.is_dir():
        raise InvalidInput(f"{path} is a file; give a directory")
    now = mem.upkeep.clock()
    if format_ == "notes":
        done = exporter.export_notes(mem.store, memories, path, now=now, actor=actor, force=force, report=report)
    elif format_ == "toml":
        done = exporter.export_toml(mem.store, memories, path, now=now, actor=actor, force=force)
    else:
        done = exporter.export_memory_v1(mem.store, memories, path, now=now, actor=actor, force=force)
    return {"written": done.written, "left_out": done.left_out}


def _for_plur(memory: "Memory", now: datetime) -> "Memory":
    """The memory as PLUR wrote it, without the notes of its import; faded links are kept."""
    from engram.dialects.source import CLAIMED_SOURCE, is_origin, stated_source, without_origin
    from engram.rules.lifecycle import links_at

    alive = {(link.target, link.type) for link in links_at(memory, now)}
    links = (link for link in memory.associations if (link.target, link.type) in alive)
    memory = memory.replace(
        aliases=tuple(alias for alias in memory.aliases if not is_origin(alias)),
        associations=tuple(replace(link, target=without_origin(link.target)) for link in links),
        supersedes=tuple(map(without_origin, memory.supersedes)),
        superseded_by=without_origin(memory.superseded_by),
        lineage=without_origin(memory.lineage),
    )
    if memory.learned_by != "import" or not memory.source.startswith("import:"):
        return memory
    extra = {key: value for key, value in memory.extra.items() if key != CLAIMED_SOURCE}
    return memory.replace(source=stated_source(memory.replace(source="")), learned_by="", extra=extra)


def _write_all(files: Mapping[Path, str], force: bool, report: "Progress") -> None:
    """Write files. Raises `InvalidInput` if one already exists, before any is written."""
    from engram.disk import replace_file

    for path in files:
        if path.is_dir():
            raise InvalidInput(f"{path} is a directory; give a file")
        if str(path) != "-" and path.exists() and not force:
            raise InvalidInput(f"{path} already exists; choose another name, or add --force to replace it")
    for number, (path, text) in enumerate(files.items(), 1):
        if str(path) == "-":
            sys.stdout.write(text)
            continue
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(path, text.encode("utf-8", "surrogatepass"), durable=False)
        report("Exporting", number, len(files))


_OUTCOME_STYLES = {
    "proposed": "green", "stored": "green", "duplicate": "bright_black", "unlikely": "bright_black", "trivial": "bright_black",
    "refused": "yellow",
}  # fmt: skip
_KEPT_OUTCOMES = ("proposed", "stored")
MAX_SHOWN_FACTS = 20
"""Facts and problems that are shown without --verbose."""


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
    """Print the outcome for each fact, unreadable parts, and a summary."""
    problems = found.problems if verbose else found.problems[:MAX_SHOWN_FACTS]
    surface.warn(problems)
    if len(found.problems) > len(problems):
        surface.warn([f"{len(found.problems) - len(problems):,} more could not be read; --verbose lists them"])
    surface.warn(found.warnings)
    surface.answer(_harvest_data(found), lambda: _draw_harvest(found, verbose))
    surface.hint(_harvest_summary(found, dry_run))
    for source, waiting in found.postponed.items():
        surface.hint(
            f"engram: {source} has reached the limit of a run; {format_count(waiting, 'session waits', 'sessions wait')} for the next harvest"
        )


def _harvest_data(found: "HarvestReport") -> dict[str, object]:
    counts = Counter(fact.outcome for fact in found.facts)
    return {
        **{outcome: counts[outcome] for outcome in _OUTCOME_STYLES}, "sessions": found.sessions, "unchanged": found.unchanged,
        "turns": found.turns, "bytes": found.size, "facts": found.facts, "postponed": found.postponed,
        "problems": found.problems, "warnings": found.warnings,
    }  # fmt: skip


def _draw_harvest(found: "HarvestReport", everything: bool) -> None:
    facts = found.facts if everything else [fact for fact in found.facts if fact.outcome in _KEPT_OUTCOMES]
    shown = facts if everything else facts[:MAX_SHOWN_FACTS]
    for fact in shown:
        _draw_fact(fact, everything)
    if len(facts) > len(shown):
        display.lines([(f"… and {len(facts) - len(shown):,} more; --verbose lists them", "bright_black")])


def _draw_fact(fact: "HarvestedFact", with_reason: bool) -> None:
    known = f"{fact.memory_id}  " if fact.memory_id else ""
    display.lines(
        [(f"{fact.outcome:<10}", _OUTCOME_STYLES[fact.outcome]), (known, "cyan"), line(fact.stored or fact.statement)]
    )
    if with_reason and fact.stored not in ("", fact.statement):
        display.lines([(f"{'':<10}said as: {line(fact.statement)}", "bright_black")])
    if with_reason:
        display.lines([(f"{'':<10}{fact.at:%Y-%m-%d} {line(fact.source)}: {line(fact.reason)}", "bright_black")])


def _harvest_summary(found: "HarvestReport", dry_run: bool) -> str:
    read = f"{format_count(found.sessions, 'session')} read, {found.unchanged:,} unchanged"
    shown = [outcome for outcome in _OUTCOME_STYLES if outcome != "stored" or found.count(outcome)]
    counts = ", ".join(f"{found.count(outcome):,} {outcome}" for outcome in shown)
    return f"engram: {read}: {counts}{_harvest_next_step(found, dry_run)}"


def _harvest_next_step(found: "HarvestReport", dry_run: bool) -> str:
    """The next step for the person."""
    if dry_run:
        return "; nothing was written"
    decides = f"; `engram review` decides about {found.count('proposed'):,}" if found.count("proposed") else ""
    return decides + ("; `engram undo ID` takes back what is stored" if found.count("stored") else "")


MAX_SHOWN_DIFFERENCES = 20
"""Maximum differences shown to a person; --json has all of them."""


def migrate(
    surface: Surface,
    to: str,
    from_: str | None = None,
    tenant: str | None = None,
    to_tenant: str | None = None,
    dry_run: bool = False,
) -> None:
    """Carry out `engram migrate`."""
    from engram.store.migration import transfer as migration

    here, there = _find_endpoints(surface, to, from_, tenant, to_tenant)
    if dry_run:
        counts = migration.plan(here, there)
        surface.answer(
            {**_counts_data(here, there, counts), "dry_run": True},
            lambda: _draw_migration(here, there, counts, "would move"),
        )
        return
    started = time.monotonic()
    with progress("Moving") as report:
        done = migration.transfer(here, there, report)
    seconds = round(time.monotonic() - started, 1)
    verb = "compared" if done.already else "moved"
    surface.answer(
        _migration_data(here, there, done, seconds),
        lambda: _draw_migration(here, there, done.counts, verb, done, seconds),
    )
    surface.warn(done.notes)
    if done.differences:
        surface.hint(
            "engram: the two stores differ; was one of them written to meanwhile? docs/postgres.md says what to do"
        )
        raise SystemExit(1)


def _find_endpoints(
    surface: Surface, to: str, from_: str | None, tenant: str | None, to_tenant: str | None
) -> "tuple[Endpoint, Endpoint]":
    from engram.store.migration.transfer import default_endpoint, named_endpoint

    here = default_endpoint(surface.home, tenant) if from_ is None else named_endpoint(from_, tenant, "--tenant")
    there = named_endpoint(to, to_tenant, "--to-tenant")
    if there.server is not None and here.server is not None and to_tenant is None:
        there = replace(there, server=replace(there.server, tenant=here.server.tenant))
    return here, there


def _counts_data(here: "Endpoint", there: "Endpoint", counts: "Counts") -> dict[str, Any]:
    return {"from": here.place, "to": there.place, "counts": asdict(counts)}


def _migration_data(here: "Endpoint", there: "Endpoint", done: "Transfer", seconds: float) -> dict[str, Any]:
    return {
        **_counts_data(here, there, done.counts),
        "moved": done.arrived,
        "already": done.already,
        "seconds": seconds,
        "verified": not done.differences,
        "differences": done.differences,
        "notes": done.notes,
    }


def _draw_migration(
    here: "Endpoint",
    there: "Endpoint",
    counts: "Counts",
    verb: str,
    done: "Transfer | None" = None,
    seconds: float = 0.0,
) -> None:
    rows = [("from", here.place), ("to", there.place)]
    rows += [(kind, f"{number:,}") for kind, number in asdict(counts).items()]
    display.lines([(verb, "green")])
    display.fields(rows)
    if done is None:
        return
    if not done.differences:
        display.lines([("verified", "green"), f"  in {seconds:.1f} s: both stores are identical"])
    for difference in done.differences[:MAX_SHOWN_DIFFERENCES]:
        display.lines([("differs  ", "bold red"), difference])
    if len(done.differences) > MAX_SHOWN_DIFFERENCES:
        display.lines(
            [("         ", ""), f"and {len(done.differences) - MAX_SHOWN_DIFFERENCES:,} more; --json has them all"]
        )
