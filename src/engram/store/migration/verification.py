"""Compares two stores: reads their streams in parallel, one digest per record, and names the differences."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from itertools import chain, zip_longest

from engram.store.migration.records import DIGEST_BYTES, digests
from engram.store.migration.stream import MigrationSource, export
from engram.store.protocol import Progress

REPORT_EVERY = 500
Named = tuple[str, bytes]


def verify(source: MigrationSource, target: MigrationSource, progress: Progress = lambda *_: None) -> list[str]:
    """The differences between two stores, by name; empty if they are equal."""
    here, there = asdict(source.counts()), asdict(target.counts())
    found = [
        f"{kind}: {here[kind]} at the source, {there[kind]} at the target" for kind in here if here[kind] != there[kind]
    ]
    total = here["uses"] + here["decisions"] + here["memories"] + here["images"] + here["events"]
    found += _differences(_reported(_named(source), progress, total), _named(target))
    given, kept = source.snapshot().numbers, target.snapshot().numbers
    found += [
        f"highest number of {day}: {last} at the source, {kept.get(day, 0)} at the target"
        for day, last in given.items()
        if kept.get(day, 0) < last
    ]
    return found + target.faults()


def _named(store: MigrationSource) -> Iterator[Named]:
    return (named for record in export(store) for named in digests(record))


def _reported(items: Iterator[Named], progress: Progress, total: int) -> Iterator[Named]:
    for done, item in enumerate(items, 1):
        if done % REPORT_EVERY == 0:
            progress("verified", done, max(done, total))
        yield item


def _differences(here: Iterator[Named], there: Iterator[Named]) -> Iterator[str]:
    """The differences by name. Equal streams take no memory; after the first difference, the rest is compared by name."""
    for left, right in zip_longest(here, there):
        if left != right:
            break
    else:
        return
    source = _by_name(chain([left] if left else [], here))
    target = _by_name(chain([right] if right else [], there))
    for name in sorted(source.keys() | target.keys()):
        if name not in target:
            yield f"{name}: missing at the target"
        elif name not in source:
            yield f"{name}: only at the target"
        elif source[name] != target[name]:
            yield f"{name}: differs"


def _by_name(items: Iterator[Named]) -> Mapping[str, bytes]:
    """One digest per name, of all its records."""
    found: dict[str, bytes] = {}
    for name, digest in items:
        found[name] = hashlib.blake2b(found.get(name, b"") + digest, digest_size=DIGEST_BYTES).digest()
    return found
