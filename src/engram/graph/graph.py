"""`mem.graph`: relates memories, removes relations, follows them breadth first, and renders the paths it found as lines of a prompt."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from math import isfinite
from typing import Any

from engram.decisions.execution import Change, LockedMemories, execute_change
from engram.embedding.word_pieces import count_tokens
from engram.model.arguments import ANY_STATUS, checked_limit, checked_statuses, read_words, refuse_deep, refuse_keys
from engram.model.errors import InvalidInput, NotFound, Refused
from engram.model.lazy import dataclass, field, replace
from engram.model.memory import LIVE_STATUSES, Association, Memory
from engram.model.relations import MAX_WEIGHT, MIN_WEIGHT, REVIEW_RELATIONS, is_known, relation
from engram.model.types import type_or_default
from engram.rules.limits import MAX_LINKS, limit_arguments
from engram.rules.scopes import is_scope_visible, parse_scope, visible_scopes
from engram.rules.sources import is_below_program
from engram.store.protocol import MAX_VERSIONS, Filters, Hops, Link, Store
from engram.store.records import locked_memory
from engram.store.references import Scopes, find_memory, refuse_change
from engram.text.display import quote_text, safe_word


@dataclass(frozen=True, slots=True)
class Step:
    """A memory that a walk reached: its seed, and the path and relations to it."""

    seed: str
    id: str
    depth: int
    path: tuple[str, ...]
    """Ids from the seed to the memory, both included."""
    types: tuple[str, ...]
    """The relation type of each hop."""
    score: float
    """The product of the weights along the path."""
    forward: tuple[bool, ...] = ()
    """Whether each hop follows its link's direction."""


@dataclass(slots=True)
class _SeedWalk:
    """The walk from one seed: the memories it has reached, and the last level of them."""

    level: list[Step]
    wanted: int
    seen: set[str]
    found: list[Step] = field(default_factory=list)

    @property
    def can_advance(self) -> bool:
        """Whether the walk continues. It ends when it has reached enough memories, because nearer ones come first
        anyway.
        """
        return bool(self.level) and len(self.found) < self.wanted

    def advance(self, links: Mapping[str, Sequence[Link]]) -> None:
        """Reach the next level; of several paths to a memory the one with the highest weight counts, then the first by
        name.
        """
        onward = [
            (-step.score * link.weight, step.path, link.target, link.type, not link.forward, number, link)
            for number, step in enumerate(self.level)
            for link in links.get(step.id, ())
            if link.target not in self.seen
        ]
        level: list[Step] = []
        for *_, number, link in sorted(onward):
            if len(self.found) + len(level) == self.wanted:
                break
            if link.target not in self.seen:
                self.seen.add(link.target)
                level.append(_onward(self.level[number], link))
        self.level = level
        self.found += level


def _onward(step: Step, link: Link) -> Step:
    return Step(
        step.seed,
        link.target,
        step.depth + 1,
        (*step.path, link.target),
        (*step.types, link.type),
        step.score * link.weight,
        (*step.forward, link.forward),
    )


def walk(store: Store, seeds: Sequence[str], hops: Hops, depth: int, per_seed: int) -> list[Step]:
    """Memories linked to the seeds, nearest first: each once per seed, by its shortest path, then the one with the
    highest weight.

    Only memories that pass the filters are reached and traversed. A seed is not reached from itself.

    The walk is the same on every backend: a store only reads the links of a level.
    """
    walks = [_SeedWalk([Step(seed, seed, 0, (seed,), (), 1.0)], per_seed, {seed}) for seed in dict.fromkeys(seeds)]
    for _ in range(depth):
        going = [one for one in walks if one.can_advance]
        if not going:
            break
        by_source: dict[str, list[Link]] = {}
        # A seed needs no more neighbours of one memory than the number it has reached plus the number still missing.
        for link in store.links(sorted({step.id for one in going for step in one.level}), hops, per_seed + 1):
            by_source.setdefault(link.source, []).append(link)
        for one in going:
            one.advance(by_source)
    return [step for one in walks for step in one.found]


@dataclass(frozen=True, slots=True)
class ReachedMemory:
    """A memory reached over relations, by its best path."""

    memory: Memory
    depth: int
    path: tuple[str, ...]
    """Ids from the start to the memory, both included."""
    relations: tuple[str, ...]
    """The relation type of each hop."""
    score: float
    """The product of the weights along the path."""
    forward: tuple[bool, ...] = ()
    """Whether each hop follows the direction of its relation."""
    seeds: tuple[str, ...] = ()
    """The seeds it was reached from, the one of the path first."""


def merge_steps(steps: Iterable[Step], limit: int) -> list[tuple[Step, tuple[str, ...]]]:
    """Each memory once, by its best path, with the seeds it was reached from; nearest first, then by weight."""
    found: dict[str, tuple[Step, tuple[str, ...]]] = {}
    for step in sorted(steps, key=lambda step: (step.depth, -step.score, step.path)):
        best, seeds = found.get(step.id, (step, ()))
        found[step.id] = best, (*seeds, step.seed)
    return list(found.values())[:limit]


def render_reached(reached: Sequence[ReachedMemory], memories: Mapping[str, Memory], max_tokens: int | None) -> str:
    """One line per memory, from the one before it on its path; lines beyond the budget are dropped."""
    kept: list[str] = []
    left = max_tokens
    for text in _lines(reached, memories):
        if left is not None:
            left -= count_tokens(text)
            if left < 0:
                break
        kept.append(text)
    return "\n".join(kept)


def _lines(reached: Sequence[ReachedMemory], memories: Mapping[str, Memory]) -> Iterator[str]:
    shown: set[str] = set()
    for one in reached:
        before = _name_step(one.path[-2], memories, shown)
        yield f"{before} {_arrow(one)} {_name_step(one.memory.id, memories, shown)}"


def _name_step(memory_id: str, memories: Mapping[str, Memory], shown: set[str]) -> str:
    """The id, with type and text at its first mention."""
    name, memory = safe_word(memory_id), memories.get(memory_id)
    if memory is None or memory_id in shown:
        return name
    shown.add(memory_id)
    return f"{name} {type_or_default(memory.type).label}: {quote_text(memory.statement)}"


def _arrow(one: ReachedMemory) -> str:
    """The arrow for the last hop; an unknown relation from another person's file is quoted."""
    word = one.relations[-1]
    shown = word if is_known(word) else quote_text(word)
    return f"—{shown}→" if one.forward[-1:] != (False,) else f"←{shown}—"


DIRECTIONS = ("outbound", "inbound", "any")
LARGEST_METADATA = 16_384
"""The maximum length in characters of a relation's metadata as JSON."""


def check_weight(weight: Any) -> float:
    """The weight as a float; raises `InvalidInput` if it is out of range."""
    if not _is_number(weight) or not MIN_WEIGHT <= weight <= MAX_WEIGHT:
        raise InvalidInput(
            f"weight {weight!r} must be a number above 0, from {MIN_WEIGHT:g} to {MAX_WEIGHT:g}; 1 is usual"
        )
    return float(weight)


def check_metadata(metadata: Any) -> dict[str, Any]:
    """The metadata as JSON-safe data, with text for keys."""
    if metadata is None:
        return {}
    if not isinstance(metadata, Mapping):
        raise InvalidInput("metadata of a relation is a mapping with text for keys")
    refuse_deep(metadata, "metadata of a relation")
    refuse_keys(metadata, "metadata of a relation")
    try:
        text = json.dumps(dict(metadata), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"metadata of a relation must be JSON-safe: {error}") from None
    if len(text) > LARGEST_METADATA:
        raise InvalidInput(f"metadata of a relation may have {LARGEST_METADATA} characters as JSON, not {len(text)}")
    found: dict[str, Any] = json.loads(text)
    return found


def hops(
    direction: str,
    types: str | Sequence[str] | None,
    min_weight: float,
    status: str | Sequence[str] | None,
    scope: str | Sequence[str] | None,
    now: datetime,
) -> Hops:
    """Which links to follow, and to which memories."""
    if direction not in DIRECTIONS:
        raise InvalidInput(f"{direction!r} is not a direction; choose {', '.join(DIRECTIONS)}")
    if not _is_number(min_weight) or not 0 <= min_weight <= MAX_WEIGHT:
        raise InvalidInput(f"min_weight {min_weight!r} must be a number from 0 to {MAX_WEIGHT:g}")
    statuses = _statuses(status)
    filters = Filters(
        statuses=statuses,
        scopes=None if scope is None else tuple(parse_scope(one) for one in read_words(scope, "scope") or ()),
        valid_at=now if statuses == LIVE_STATUSES else None,
    )
    followed = read_words(types, "types")
    return Hops(now, direction, followed and tuple(map(relation, followed)), float(min_weight), filters)


def _statuses(status: str | Sequence[str] | None) -> tuple[str, ...] | None:
    if status is None:
        return LIVE_STATUSES
    found = checked_statuses(status)
    return None if found is None or ANY_STATUS in found else found


def _is_number(value: Any) -> bool:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return False
    return isinstance(value, int) or isfinite(value)


LINKABLE = ("active", "dormant", "candidate", "archived")
"""The statuses a relation may connect; a superseded memory counts as its successor."""
METADATA = "metadata"
"""The key under which a link stores the caller's own data."""
ScopeLike = str | Sequence[str] | None
StatusLike = str | Sequence[str] | None


def _accept(value: object, what: str) -> None:
    """Accept everything."""


@limit_arguments
@dataclass(slots=True)
class Graph:
    """`mem.graph`: typed, weighted relations between memories. Every call takes ids, names or aliases."""

    store: Store
    clock: Callable[[], datetime]
    refuse_secrets: Callable[[object, str], None] = _accept
    """Called with each text written with a relation (its reason and metadata) and its name; raises for a secret."""

    # -- writing

    def relate(
        self,
        source: str,
        target: str,
        type: str = "related_to",  # noqa: A002
        *,
        weight: float = 1.0,
        metadata: Mapping[str, Any] | None = None,
        actor: str = "manual",
        reason: str = "",
        scopes: Scopes = None,
    ) -> Memory:
        """Link `source` to `target`; returns the source with its links. Called again, it replaces the weight and metadata.

        The weight is yours to set; the strength of a link is learned from use and does not change here. `scopes`, from
        `mem.scopes_for`, are those of a named owner, who may change the source and sees the target.
        """
        _refuse_reviewed(actor, relation(type))
        weight, data = check_weight(weight), check_metadata(metadata)
        self.refuse_secrets(data, "metadata")
        one, other = self._linkable(source, scopes, to_change=True), self._linkable(target, scopes)
        if one.id == other.id:
            raise InvalidInput(f"{one.id} cannot be related to itself; name two different memories")
        link = Association(other.id, type, weight=weight, extra={METADATA: data} if data else {})
        names = self._versions(other)

        def plan(memories: LockedMemories) -> Memory:
            locked_memory(memories, other.id)
            (memory,) = memories.targets
            links = _replace_link(memory.associations, link, names, keep=metadata is None)
            if len(links) > MAX_LINKS:
                raise Refused(f"{memory.id} already has {MAX_LINKS:,} links, the most it can have; remove some first")
            if links != memory.associations:
                memory = memory.replace(associations=links, updated=memories.now)
                memories.put(memory)
            return memory

        change = Change(
            op="relate", actor=actor, plan=plan, reason=reason, targets=[one.id], caller=scopes, related=[other.id]
        )
        return execute_change(self.store, self.clock, change)

    def unrelate(
        self,
        source: str,
        target: str,
        type: str | None = None,  # noqa: A002
        *,
        actor: str = "manual",
        reason: str = "",
        scopes: Scopes = None,
    ) -> Memory:
        """Remove the relations from `source` to `target`, of one type or all; returns the source. Raises `NotFound` if
        there are none.

        `scopes` are as for `relate`.
        """
        one, other = find_memory(self.store, source, scopes, to_change=True), self.store.get(target, scopes)
        if other is None:
            # A link to a purged memory can be removed; the caller cannot see one to another owner's memory.
            names = set() if self.store.owner_of(target) is not None else {target}
        else:
            names = self._versions(self._successor(other, LINKABLE, scopes)) | {target, other.id}

        def plan(memories: LockedMemories) -> Memory:
            (memory,) = memories.targets
            links = tuple(
                link for link in memory.associations if link.target not in names or type not in (None, link.type)
            )
            if len(links) == len(memory.associations):
                what = f"relation {type!r}" if type else "relation"
                raise NotFound(f"{one.id} has no {what} to {target!r}; `engram show {one.id}` lists its links")
            for link in memory.associations:
                if link not in links:
                    _refuse_reviewed(actor, link.type)
            changed = memory.replace(associations=links, updated=memories.now)
            memories.put(changed)
            return changed

        change = Change(op="unrelate", actor=actor, plan=plan, reason=reason, targets=[one.id], caller=scopes)
        return execute_change(self.store, self.clock, change)

    # -- reading

    def traverse(
        self,
        start: str,
        *,
        max_depth: int = 3,
        direction: str = "outbound",
        types: str | Sequence[str] | None = None,
        min_weight: float = 0.0,
        limit: int = 50,
        status: StatusLike = LIVE_STATUSES,
        scope: ScopeLike = None,
    ) -> list[ReachedMemory]:
        """The memories linked to a memory, nearest first, then by weight; each once, by its shortest path with the
        highest weight.

        A walk passes only through memories of this status and scope, and starts at one that is visible there. A
        superseded memory counts as its successor.
        """
        most = checked_limit(limit)
        return self.traverse_many(
            [start], max_depth=max_depth, direction=direction, types=types, min_weight=min_weight,
            limit_per_seed=most, total_limit=most, status=status, scope=scope,
        )  # fmt: skip

    def traverse_many(
        self,
        seeds: Sequence[str],
        *,
        max_depth: int = 2,
        direction: str = "outbound",
        types: str | Sequence[str] | None = None,
        min_weight: float = 0.0,
        limit_per_seed: int = 25,
        total_limit: int = 100,
        status: StatusLike = LIVE_STATUSES,
        scope: ScopeLike = None,
    ) -> list[ReachedMemory]:
        """The same from several memories. One that is reached from more than one is returned once, by its best path.

        `Reached.seeds` has its seeds. A seed that is reached from another one is among the results.
        """
        depth = checked_limit(max_depth, "max_depth", 10)
        per_seed, total = checked_limit(limit_per_seed, "limit_per_seed"), checked_limit(total_limit, "total_limit")
        followed = hops(direction, types, min_weight, status, scope, self.clock())
        if isinstance(seeds, str) or not isinstance(seeds, Iterable):
            raise InvalidInput("seeds is a list of ids, names or aliases; `traverse` takes a single one")
        seeds = list(seeds)
        scopes = followed.filters.scopes
        seen = None if scopes is None else visible_scopes(scopes)
        with self.store.reading():
            known = {i: memory for i, memory in self._memories(seeds).items() if is_scope_visible(seen, memory.scope)}
            starts = [known.get(seed) or find_memory(self.store, seed, seen) for seed in seeds]
            ids = [self._successor(start, followed.filters.statuses, seen).id for start in starts]
            steps = walk(self.store, ids, followed, depth, per_seed)
            return self._build_reached(merge_steps(steps, total), known, followed.filters.statuses)

    def render(self, reached: Sequence[ReachedMemory], *, max_tokens: int | None = None) -> str:
        """The relations as lines for a prompt, nearest first, as many as fit: memories quoted as data, each text once."""
        if max_tokens is not None:
            checked_limit(max_tokens, "max_tokens", 10**9)
        have = {one.memory.id: one.memory for one in reached}
        missing = dict.fromkeys(i for one in reached for i in one.path[-2:-1] if i not in have)
        return render_reached(reached, have | self._memories(list(missing)), max_tokens)

    def _build_reached(
        self, best: list[tuple[Step, tuple[str, ...]]], known: dict[str, Memory], statuses: tuple[str, ...] | None
    ) -> list[ReachedMemory]:
        found = known | self._memories([step.id for step, _ in best if step.id not in known])
        return [
            ReachedMemory(found[step.id], step.depth, step.path, step.types, step.score, step.forward, seeds)
            for step, seeds in best
            # A file edited by hand just now may differ from the index.
            if step.id in found and (statuses is None or found[step.id].status in statuses)
        ]

    def _memories(self, ids: list[str]) -> dict[str, Memory]:
        if not ids:
            return {}
        numbers = self.store.numbers(ids)
        found = self.store.get_many([numbers[i] for i in ids if i in numbers])
        return {one.record.id: one.record for one in found if isinstance(one.record, Memory)}

    def _linkable(self, ref: str, scopes: Scopes, *, to_change: bool = False) -> Memory:
        memory = self._successor(find_memory(self.store, ref, scopes), LINKABLE, scopes)
        if to_change:
            refuse_change(memory.id, memory.scope, scopes)
        if memory.status not in LINKABLE:
            raise InvalidInput(f"{memory.id} is {memory.status}: it cannot be related")
        return memory

    def _successor(self, memory: Memory, statuses: tuple[str, ...] | None, scopes: Scopes = None) -> Memory:
        """The first successor of a superseded memory with one of these statuses; the memory itself if there is none."""
        later: Memory | None = memory
        for _ in range(MAX_VERSIONS):
            if later is None or statuses is None or later.status in statuses:
                break
            later = self.store.get(later.superseded_by, scopes) if later.superseded_by else None
        return memory if later is None else later

    def _versions(self, memory: Memory) -> set[str]:
        """The ids of a memory and of all it superseded: a link to any of them is a link to it."""
        found, ahead = {memory.id}, list(memory.supersedes)
        while ahead and len(found) < MAX_VERSIONS:
            earlier = ahead.pop()
            if earlier not in found:
                found.add(earlier)
                older = self.store.get(earlier)
                ahead += older.supersedes if older is not None else ()
        return found


def _refuse_reviewed(actor: str, type: str) -> None:  # noqa: A002
    """Raise `Refused` if an agent sets or removes a relation that makes a memory wait for review."""
    if type in REVIEW_RELATIONS and is_below_program(actor):
        raise Refused(
            f"{actor} may not set or remove {type!r}, which review decides about: `engram review` settles it, and "
            "`learn` with a relation states a contradiction"
        )


def _replace_link(
    links: tuple[Association, ...], link: Association, names: set[str], *, keep: bool
) -> tuple[Association, ...]:
    """The links with this one in place of an equal one; with `keep`, the metadata of that one stays."""
    same = [old for old in links if old.target in names and old.type == link.type]
    if not same:
        return (*links, link)
    extra = dict(same[0].extra) if keep else {**same[0].extra, **link.extra}
    if not keep and not link.extra:
        extra.pop(METADATA, None)
    new = replace(same[0], target=link.target, weight=link.weight, extra=extra)
    return tuple(new if old is same[0] else old for old in links if old is same[0] or old not in same)
