"""Whether two stores hold the same: counts and digests, side by side, differences by name."""

import hashlib
import json
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import zip_longest
from typing import Any

from engram.model.event import Event, Session
from engram.model.task import Checkpoint, Job, TaskRun
from engram.store.ledgers import problems_of, to_fields
from engram.store.moving import Chain, Small, Source
from engram.store.protocol import Progress
from engram.store.watermarks import watermark, with_watermark

_Named = Session | TaskRun | Checkpoint | Job
DIGEST_BYTES = 16
REPORT_EVERY = 500


def verify(source: Source, target: Source, progress: Progress = lambda *_: None) -> list[str]:
    """What differs between two stores; nothing means that all of one arrived at the other."""
    return list(_differences(source, target, progress))


def _differences(source: Source, target: Source, progress: Progress) -> Iterator[str]:
    here, there = asdict(source.counts()), asdict(target.counts())
    yield from (f"{kind}: {here[kind]} at the source, {there[kind]} at the target"
                for kind in here if here[kind] != there[kind])  # fmt: skip
    total = here["memories"] + here["images"]
    records = _reported(source.records(), progress, 0, total)
    yield from (f"memory {i}: {how}" for i, how in _side_by_side(records, target.records()))
    histories = _reported(source.histories(), progress, here["memories"], total)
    yield from (f"history of {i}: {how}" for i, how in _side_by_side(histories, target.histories()))
    yield from _unlike("decision", source.audit(), target.audit())
    yield from _unlike("use", _uses(source), _uses(target))
    yield from _ledgers(source.chains(), target.chains())
    yield from _small(source.small(), target.small())
    yield from target.faults()


def _reported(
    items: Iterator[tuple[str, bytes]], progress: Progress, done: int, total: int
) -> Iterator[tuple[str, bytes]]:
    for item in items:
        done += 1
        if done % REPORT_EVERY == 0:
            progress("verified", done, max(done, total))
        yield item


def _side_by_side(here: Iterator[tuple[str, bytes]], there: Iterator[tuple[str, bytes]]) -> Iterator[tuple[str, str]]:
    """Two lists ordered by id, read together."""
    left, right = next(here, None), next(there, None)
    while left is not None or right is not None:
        if right is None or (left is not None and left[0] < right[0]):
            assert left is not None
            yield left[0], "did not arrive"
            left = next(here, None)
        elif left is None or right[0] < left[0]:
            yield right[0], "only at the target"
            right = next(there, None)
        else:
            if left[1] != right[1]:
                yield left[0], "differs"
            left, right = next(here, None), next(there, None)


def _unlike(what: str, here: Iterable[object], there: Iterable[object]) -> Iterator[str]:
    """The first of two sequences' items that are not alike; what follows it is out of step anyway."""
    for number, (left, right) in enumerate(zip_longest(here, there), 1):
        if left != right:
            how = "did not arrive" if right is None else "only at the target" if left is None else "differs"
            yield f"{what} {number}: {how}"
            return


def _uses(source: Source) -> Iterator[tuple[object, ...]]:
    for slice_ in source.uses():
        yield from ((u.kind, sorted(set(u.ids)), _moment(u.at), u.session, u.signal) for u in slice_)


def _ledgers(here: Mapping[str, Chain], there: Mapping[str, Chain]) -> Iterator[str]:
    for session in sorted(here.keys() | there.keys()):
        left, right = here.get(session), there.get(session)
        if left is None or right is None:
            yield f"ledger of {session}: {'only at the target' if left is None else 'did not arrive'}"
        elif (left.count, left.head, left.digest) != (right.count, right.head, right.digest):
            yield f"ledger of {session}: differs ({left.count} events at the source, {right.count} at the target)"
        elif len(left.problems) != len(right.problems):
            yield from (f"ledger of {session}: {problem}" for problem in right.problems)


def _small(here: Small, there: Small) -> Iterator[str]:
    yield from _unequal("session", here.sessions, there.sessions)
    yield from _unequal("task", here.tasks, there.tasks)
    yield from _unequal("checkpoint", here.checkpoints, there.checkpoints)
    yield from _unequal("job", here.jobs, there.jobs)
    if _verdicts(here) != _verdicts(there):
        yield "gate verdicts: differ"
    yield from (f"tombstone of {i}: {'did not arrive' if i in here.tombstones else 'only at the target'}"
                for i in sorted(here.tombstones ^ there.tombstones))  # fmt: skip
    yield from (f"highest number of {day}: {last} at the source, {there.numbers.get(day, 0)} at the target"
                for day, last in here.numbers.items() if there.numbers.get(day, 0) < last)  # fmt: skip
    if here.paused != there.paused:
        yield f"pause: {here.paused} at the source, {there.paused} at the target"


def _unequal(what: str, here: Iterable[_Named], there: Iterable[_Named]) -> Iterator[str]:
    left, right = {item.id: item for item in here}, {item.id: item for item in there}
    for i in sorted(left.keys() | right.keys()):
        if left.get(i) != right.get(i):
            yield f"{what} {i}: differs"


def _verdicts(small: Small) -> list[tuple[str, str, str]]:
    return sorted((_moment(verdict.at), verdict.gate, verdict.outcome) for verdict in small.verdicts)


# -- digests, alike on every backend


def fingerprint(after: Mapping[str, Any], positions: "array[int]") -> bytes:
    """A digest of a record. Its watermark counts as the number of uses before it, whatever their positions are."""
    seq = watermark(after)
    if seq:
        after = with_watermark(after, bisect_left(positions, seq))
    return plain_digest(after)


def plain_digest(after: Mapping[str, Any]) -> bytes:
    """A digest of a record to the letter."""
    return _digest(json.dumps(after, sort_keys=True, ensure_ascii=False, separators=(",", ":")))


def next_image(before: bytes, op: str, at: datetime, image: bytes | None) -> bytes:
    """The digest of a memory's history with one more image."""
    return _digest(f"{op}\0{_moment(at)}\0", before, image or b"")


def audited(at: datetime, op: str, actor: str, reason: str, session: str) -> bytes:
    """A digest of a decision, without its images."""
    return _digest("\0".join((_moment(at), op, actor, reason, session)))


def chain_of(events: Iterable[Event], name: str) -> Chain:
    """A ledger's length, end and digest, and what is wrong with it."""
    held = list(events)
    digest = b""
    for event in held:
        digest = _digest(json.dumps(to_fields(event), sort_keys=True, ensure_ascii=False), digest)
    return Chain(len(held), held[-1].digest if held else "", digest, tuple(problems_of(held, name)))


def _moment(at: datetime) -> str:
    return at.astimezone(UTC).isoformat()


def _digest(text: str, *more: bytes) -> bytes:
    made = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=DIGEST_BYTES)
    for part in more:
        made.update(part)
    return made.digest()
