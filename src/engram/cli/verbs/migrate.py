"""migrate: a whole store, between files and a server, or between two of a kind."""

import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from engram.cli import display
from engram.cli.display import progress
from engram.cli.surface import Surface
from engram.model.lazy import replace

if TYPE_CHECKING:
    from engram.store.migration.records import Counts
    from engram.store.migration.transfer import Endpoint, Transfer

MAX_SHOWN_DIFFERENCES = 20
"""How many differences a person is shown; --json has all of them."""


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
            {**_counts_data(here, there, counts), "dry_run": True}, lambda: _draw(here, there, counts, "would move")
        )
        return
    started = time.monotonic()
    with progress("Moving") as report:
        done = migration.transfer(here, there, report)
    seconds = round(time.monotonic() - started, 1)
    verb = "compared" if done.already else "moved"
    surface.answer(_data(here, there, done, seconds), lambda: _draw(here, there, done.counts, verb, done, seconds))
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


def _data(here: "Endpoint", there: "Endpoint", done: "Transfer", seconds: float) -> dict[str, Any]:
    return {
        **_counts_data(here, there, done.counts),
        "moved": done.arrived,
        "already": done.already,
        "seconds": seconds,
        "verified": not done.differences,
        "differences": done.differences,
        "notes": done.notes,
    }


def _draw(
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
