"""Walks over memory_relations: one recursive statement, however deep and from however many seeds."""

from collections.abc import Sequence
from typing import Any

from engram.model.relations import HEAVIEST, LIGHTEST
from engram.rules.numbers import CO_ACCESS_DAILY, CO_ACCESS_PRUNE
from engram.store.postgres.database import Database, Row
from engram.store.postgres.filters import where
from engram.store.postgres.sql import statement
from engram.store.protocol import Step
from engram.store.traversal import Hops


def walk(database: Database, seeds: Sequence[str], depth: int, hops: Hops, per_seed: int) -> list[Step]:
    """Each memory once per seed, nearest first."""
    wanted = list(dict.fromkeys(seeds))
    if not wanted:
        return []
    text, values = _asked(hops)
    values |= {"seeds": wanted, "depth": depth, "per_seed": per_seed, "min_weight": hops.min_weight, "at": hops.at}
    return _steps(wanted, database.query(text, values))


def _asked(hops: Hops) -> tuple[str, dict[str, Any]]:
    condition, values = where(hops.filters)
    typed = ""
    if hops.types is not None:
        typed, values["types"] = "AND {link}.type = ANY(%(types)b::text[])", list(hops.types)
    named = {
        "condition": condition, "typed": typed.format(link="r"), "given": _given(hops, typed.format(link="g")),
        "weight": statement("hop_weight").format(daily=CO_ACCESS_DAILY, least=CO_ACCESS_PRUNE),
        "lightest": LIGHTEST, "heaviest": HEAVIEST,
    }  # fmt: skip
    directions = {"hops_outbound": hops.outbound, "hops_inbound": hops.inbound}
    parts = [f"({statement(name).format(**named)})" for name, followed in directions.items() if followed]
    return statement("walk").format(hops=" UNION ALL ".join(parts)), values


def _given(hops: Hops, typed: str) -> str:
    """The conditions under which a given relation takes a learned link's place."""
    if not hops.prefers_given:
        return ""
    ways = [("source", "target"), ("target", "source")][: 2 if hops.outbound and hops.inbound else 1]
    text = statement("hop_given")
    return " ".join(text.format(source=source, target=target, typed=typed) for source, target in ways)


def _steps(seeds: list[str], levels: list[Row]) -> list[Step]:
    """The steps of each seed; a level names the parents of its memories, which are in the one before."""
    known = {(seed, seed): Step(seed, seed, 0, (seed,), (), 1.0) for seed in seeds}
    found: dict[str, list[Step]] = {seed: [] for seed in seeds}
    for seed, depth, *columns in levels:
        for memory_id, score, parent, kind, forward in zip(*columns, strict=True):
            before = known[seed, parent]
            step = Step(
                seed,
                memory_id,
                depth,
                (*before.path, memory_id),
                (*before.types, kind),
                score,
                (*before.forward, forward),
            )
            known[seed, memory_id] = step
            found[seed].append(step)
    return [step for steps in found.values() for step in steps]
