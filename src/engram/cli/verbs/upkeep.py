"""pause, resume, sync, prune, backup, restore: occasional maintenance."""

from pathlib import Path

from engram.cli import display
from engram.cli.records import plain
from engram.cli.surface import Surface
from engram.model.errors import InvalidInput, Refused
from engram.text.display import format_count

MAX_DAYS = 36_500
"""A century; the calendar ends before much larger numbers do."""


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
