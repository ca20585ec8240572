"""Keeps Engram's block in instruction files, such as AGENTS.md, up to date; removes it, and cleans it on a purge.

The store's state lists the files with a block, by path and host, so that a purge can find them.
"""

import difflib
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from engram.agents.agent import context_file_names
from engram.agents.wiring.user_file import UserFile, read_user_file, remove_user_file, replace_user_file
from engram.decisions.versions import with_disputes
from engram.gates.secrets.exemptions import AllowedValues
from engram.model.errors import EngramError, InvalidInput, Refused, StoreError
from engram.model.lazy import dataclass, field
from engram.model.report import Finding
from engram.recall.prompt.budget import Counter
from engram.recall.prompt.context_block import (
    ContextBlock,
    block_lines,
    build_block,
    find_block,
    quoted_ids,
    reason_to_omit,
    with_block,
    without_block,
    without_memories,
)
from engram.recall.query import ScopeResolver
from engram.store.protocol import Filters, Store
from engram.store.purge import contains_words
from engram.store.scopes import repository_of
from engram.text.display import format_count

CONTEXT_STATE = "context"
"""The name of the state that lists the files."""
LIMIT, TIER, BUDGET = 30, 1, 2000
TIERS = (1, 2, 3)
_MAX_BUDGET = 10_000
# How often to start again after somebody else wrote the file in the meantime.
_MAX_WRITE_TRIES = 3

Change = Literal["created", "updated", "removed", "deleted", "unchanged"]


@dataclass(frozen=True, slots=True)
class ContextUpdate:
    """The change to one file; in a dry run, the planned change."""

    file: str
    change: Change
    ids: tuple[str, ...] = ()
    """The memories in its block, in order."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """How many visible memories are not in the block, by reason."""
    tokens: int = 0
    diff: str = ""

    @property
    def changed(self) -> bool:
        """Whether the block was out of date; in a dry run, whether it is."""
        return self.change != "unchanged"


@dataclass(frozen=True, slots=True)
class _PlannedFile:
    """The current and the intended content of a file; without a `text` the file is deleted."""

    file: UserFile
    text: str | None
    block: ContextBlock
    created: bool

    @property
    def change(self) -> Change:
        if self.text is None:
            return "deleted"
        if self.text == self.file.text:
            return "unchanged"
        if not self.file.exists:
            return "created"
        return "updated" if self.block.lines else "removed"

    def outcome(self) -> ContextUpdate:
        lines = (self.file.text.splitlines(), (self.text or "").splitlines())
        name = str(self.file.name)
        diff = "\n".join(difflib.unified_diff(*lines, name, name, lineterm=""))
        return ContextUpdate(name, self.change, self.block.ids, self.block.left_out, self.block.tokens, diff)


@dataclass(frozen=True, slots=True)
class BlockOptions:
    """What a block may contain: memories of these scopes, up to a tier and a maximum number.

    If `scopes` is None, these are the scopes seen from the file's folder.
    """

    scopes: tuple[str, ...] | None = None
    tier: int = TIER
    limit: int = LIMIT
    budget: int = BUDGET

    def validate(self, prefix: str = "") -> "BlockOptions":
        """Return the options; raises `InvalidInput` for a number that cannot be used, naming it with `prefix` in front."""
        if type(self.tier) is not int or self.tier not in TIERS:
            raise InvalidInput(f"{prefix}tier must be 1, 2 or 3, not {self.tier!r}")
        if type(self.limit) is not int or not 1 <= self.limit <= 1000:
            raise InvalidInput(f"{prefix}limit must be a whole number between 1 and 1000, not {self.limit!r}")
        if type(self.budget) is not int or not 50 <= self.budget <= _MAX_BUDGET:
            raise InvalidInput(
                f"{prefix}budget must be a whole number between 50 and {_MAX_BUDGET}, not {self.budget!r}"
            )
        return self


@dataclass(slots=True)
class ContextFiles:
    """Keeps the blocks of the files around one directory up to date."""

    store: Store
    clock: Callable[[], datetime]
    count: Counter
    directory: Path

    def update(
        self, paths: Sequence[Path], options: BlockOptions, *, remove: bool = False, dry_run: bool = False
    ) -> list[ContextUpdate]:
        """Write, replace or remove the block of each file; without paths, of the file that `default_file` finds.

        Every file is read before any is written: if one is refused, none is changed.
        """
        options.validate()
        named = [self.directory / path.expanduser() for path in paths] or [self.default_file(remove=remove)]
        plans = {plan.file.path: plan for plan in [self._plan(path, options, remove) for path in named]}
        if dry_run:
            return [plan.outcome() for plan in plans.values()]
        return [self._carry_out(plan, options, remove) for plan in plans.values()]

    def default_file(self, *, remove: bool = False) -> Path:
        """The file to use by default: the instruction file with a block, else the first one.

        Files are looked for here and at the repository's root.
        """
        top = repository_of(self.directory)
        folders = dict.fromkeys([self.directory, *([top] if top is not None else [])])
        names = context_file_names()
        there = [path for folder in folders for name in names if (path := folder / name).is_file()]
        if not there:
            places = " or ".join(map(str, folders))
            advice = (
                "name the file to take the block out of"
                if remove
                else "name the file to write, such as `engram gen-context AGENTS.md`"
            )
            raise InvalidInput(f"There is no {' or '.join(names)} in {places}; {advice}")
        return next((path for path in there if _has_block(path)), there[0])

    def _plan(self, path: Path, options: BlockOptions, remove: bool) -> _PlannedFile:
        file = read_user_file(path)
        created = not file.exists or _entry(self.store, file.path).get("created", False)
        if remove:
            left = without_block(file.text, str(file.name))
            is_ours = created and file.exists and not left.strip() and left != file.text
            return _PlannedFile(file, None if is_ours else left, ContextBlock(()), created)
        block = self.block(file.path.parent, options)
        return _PlannedFile(file, with_block(file.text, block.lines, str(file.name)), block, created)

    def block(self, folder: Path, options: BlockOptions) -> ContextBlock:
        """The block of a file in a folder."""
        now, scopes = self.clock(), options.scopes
        if scopes is None:
            scopes = ScopeResolver(self.store, folder, self.clock).scopes_from(None)
        listed = self.store.listing(Filters(scopes=scopes, statuses=("active",), valid_at=now))
        found = with_disputes(self.store, listed)
        least = self.count("\n".join(block_lines({})))
        if options.budget < least:
            raise InvalidInput(f"A budget of {options.budget} tokens is too small (minimum {least}).")
        return build_block(
            found,
            now,
            tier=options.tier,
            limit=options.limit,
            budget=options.budget,
            count=self.count,
            allowed=AllowedValues(self.store.screen.allowed_values),
        )

    def _carry_out(self, plan: _PlannedFile, options: BlockOptions, remove: bool) -> ContextUpdate:
        for _ in range(_MAX_WRITE_TRIES):
            if not remove:
                # First, because a file whose block no purge finds is worse than an entry without a block.
                _note(self.store, plan.file.path, plan.created)
            if _write_plan(plan):
                if remove:
                    _forget(self.store, plan.file.path)
                return plan.outcome()
            plan = self._plan(plan.file.name, options, remove)
        raise Refused(f"{plan.file.name} keeps changing while it is written; close what writes it, and run this again")


def _write_plan(plan: _PlannedFile) -> bool:
    """Write a plan; False if somebody else changed the file. An up-to-date file is not touched."""
    if plan.text is None:
        return remove_user_file(plan.file)
    return plan.change == "unchanged" or replace_user_file(plan.file, plan.text)


def _has_block(path: Path) -> bool:
    try:
        return find_block(read_user_file(path).text, str(path)) is not None
    except (EngramError, OSError):
        return False


# -- the list of files


def _host_name() -> str:
    return os.uname().nodename


def _entries(state: Mapping[str, Any]) -> list[dict[str, Any]]:
    listed = state.get("files")
    return [dict(one) for one in listed if isinstance(one, Mapping)] if isinstance(listed, list) else []


def _is_for(entry: Mapping[str, Any], path: Path) -> bool:
    return entry.get("path") == str(path) and entry.get("host") == _host_name()


def _entry(store: Store, path: Path) -> dict[str, Any]:
    """The state's entry for a file; {} for a file without a block."""
    return next((entry for entry in _entries(store.state(CONTEXT_STATE)) if _is_for(entry, path)), {})


def _note(store: Store, path: Path, created: bool) -> None:
    if _entry(store, path):
        return
    added = {"host": _host_name(), "path": str(path), **({"created": True} if created else {})}
    store.change_state(CONTEXT_STATE, lambda state: {"files": [*_without(state, path), added]})


def _forget(store: Store, path: Path) -> None:
    def without_file(state: Mapping[str, Any]) -> Mapping[str, Any]:
        files = _without(state, path)
        return {"files": files} if files else {}

    if _entry(store, path):
        store.change_state(CONTEXT_STATE, without_file)


def _without(state: Mapping[str, Any], path: Path) -> list[dict[str, Any]]:
    return [entry for entry in _entries(state) if not _is_for(entry, path)]


def context_files(store: Store) -> list[Path]:
    """The files of this host that have a block."""
    return [
        Path(str(entry["path"])) for entry in _entries(store.state(CONTEXT_STATE)) if entry.get("host") == _host_name()
    ]


# -- doctor


def context_finding(store: Store, now: datetime) -> Finding:
    """Whether the blocks of this host can be read and quote only current memories."""
    try:
        paths = context_files(store)
    except StoreError as error:
        return Finding.of(
            "context", False, str(error), "delete that file; `engram gen-context FILE` lists its file again"
        )
    problems = [line for path in paths for line in _find_outdated_quotes(store, path, now)]
    if problems:
        return Finding("context", "advice", "; ".join(problems), "`engram gen-context FILE` writes the block again")
    return Finding.of(
        "context",
        True,
        f"{format_count(len(paths), 'file')} with a block, all current" if paths else "no file has a block",
    )


def _find_outdated_quotes(store: Store, path: Path, now: datetime) -> list[str]:
    try:
        ids = quoted_ids(read_user_file(path).text, str(path))
    except EngramError as error:
        return [str(error)]
    except OSError as error:
        return [f"{path}: {error.strerror or error}"]
    gone = [one for one in ids if (memory := store.get(one)) is None or reason_to_omit(memory, now)]
    return [f"{path} quotes {', '.join(gone[:3])}, which is no longer current"] if gone else []


# -- purge


def purge_context_files(store: Store, ids: Collection[str], texts: Collection[str]) -> tuple[str, ...]:
    """Remove memories from every block; returns a report of what could not be cleaned.

    These are files on other hosts, refused files, and the user's own text.
    """
    try:
        listed = _entries(store.state(CONTEXT_STATE))
    except StoreError as error:
        return (f"{error}; blocks in instruction files may quote it: run `engram gen-context` for them",)
    elsewhere = [
        f"{entry.get('path')} on {entry.get('host')}: its block may quote it; run `engram gen-context` there"
        for entry in listed
        if entry.get("host") != _host_name()
    ]
    return (*elsewhere, *(line for path in context_files(store) for line in _purge_file(store, path, ids, texts)))


def _purge_file(store: Store, path: Path, ids: Collection[str], texts: Collection[str]) -> list[str]:
    for _ in range(_MAX_WRITE_TRIES):
        try:
            file = read_user_file(path)
            left = without_memories(file.text, ids, str(path))
            if not file.exists:
                _forget(store, path)
                return []
            if left == file.text or replace_user_file(file, left):
                return _remaining_quotes(path, left, texts, changed=left != file.text)
        except EngramError as error:
            return [f"{error}; its block may quote it"]
        except OSError as error:
            return [f"{path}: {error.strerror or error}; its block may quote it"]
    return [f"{path} keeps changing while it is written; its block may quote it"]


def _remaining_quotes(path: Path, text: str, texts: Collection[str], *, changed: bool) -> list[str]:
    own = without_block(text, str(path))
    said = any(contains_words(own, one) for one in texts)
    lines = [f"{path}: contains the same words outside of Engram's block"] if said else []
    return [*lines, *([f"earlier versions of {path}, in git or in an editor"] if changed else [])]
