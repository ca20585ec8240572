"""`Engram`: opens and closes a store. The verbs and facets define what an open memory can do."""

import os
from collections.abc import Callable, Sequence
from datetime import datetime, tzinfo
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, Unpack

from engram.client.facets import PAUSED_MESSAGE
from engram.client.source_verbs import CaptureVerbs, ContextVerbs
from engram.client.work_verbs import WorkVerbs
from engram.client.write_verbs import WriteVerbs
from engram.model.arguments import read_words
from engram.model.errors import EmbedderError, InvalidInput
from engram.model.lazy import dataclass, replace
from engram.model.logs import Log
from engram.model.memory import Owner
from engram.model.report import Finding, Report
from engram.settings import Settings, load_settings
from engram.store.defaults import Server, owner_config, requested_server, utc_now
from engram.store.protocol import Progress, Store
from engram.store.scopes import working_directory
from engram.text.time.zone import VARIABLE, zone_named
from engram.verbs import store
from engram.verbs.calls import bind_verb

if TYPE_CHECKING:
    from engram.embedding.vectors import Embedder
    from engram.gates.policies import MemoryPolicy
    from engram.upkeep.context_files import ContextUpdate

    ContextUpdates = list[ContextUpdate]

__all__ = ["PAUSED_MESSAGE", "Engram"]

_LOG = Log("client")


@dataclass(frozen=True, slots=True)
class Setup:
    """The settings, policy and embedder of every store a process opens."""

    settings: Settings
    policy: "str | MemoryPolicy"
    embedder: "Embedder | None"
    zone: tzinfo

    @classmethod
    def of(
        cls,
        config: Path | None,
        embedder: str | None = None,
        policy: "str | MemoryPolicy" = "",
        time_zone: str | tzinfo | None = None,
    ) -> Self:
        """From the settings file and its overrides. Raises `InvalidInput` for invalid settings."""
        settings = _override_embedder(load_settings(config), embedder)
        _check_signals(settings, config)
        return cls(settings, _policy(policy, settings, config), _embedder(settings), _zone(time_zone, settings))


class Engram(WriteVerbs, CaptureVerbs, ContextVerbs, WorkVerbs):
    """An agent's memory. Open it with `Engram.open()`, use it as a context manager.

    Facets: `mem.review` (what waits for review), `mem.sessions`, `mem.tasks`, `mem.jobs`, `mem.graph`, `mem.lineages`,
    `mem.upkeep` (doctor, backup, prune, index).
    """

    @classmethod
    def open(
        cls,
        home: str | Path | None = None,
        *,
        url: str | None = None,
        tenant: str | None = None,
        cache: str | Path | None = None,
        ephemeral: bool = False,
        create: bool = True,
        directory: str | Path | None = None,
        embedder: str | None = None,
        policy: "str | MemoryPolicy" = "",
        clock: Callable[[], datetime] | None = None,
        time_zone: str | tzinfo | None = None,
    ) -> Self:
        """Open a store, or create it.

        `home` is a directory of files, `url` a Postgres server (with `tenant`: tenants never see each other's
        memories). With neither, `$ENGRAM_URL` and `$ENGRAM_TENANT` are used, then the usual directory.
        `ephemeral=True`, for tests, creates a store in a temporary directory that is removed on close. `directory` is
        where the agent works. With it, reads without a scope cover the directory's scopes, the user's and global;
        without it, the whole store. Searches include the team store of the repository of `directory` (default: the
        current directory) if it is trusted. `embedder`, `policy` and `time_zone` override the settings; a policy is a
        name or an object. "tomorrow" and times without a zone are read in the time zone, by default the system's.
        """
        server = requested_server(home, url, tenant, ephemeral=ephemeral)
        where = Path(directory).absolute() if directory else working_directory()
        now = clock or utc_now
        with _LOG.measure("open", store="files" if server is None else "server"):
            # Invalid settings are reported before anything is created.
            setup = Setup.of(None if ephemeral else _config(home, server is not None), embedder, policy, time_zone)
            if server is not None:
                client = cls._on_server(server, setup, now, create)
            else:
                temporary = _temporary_folder() if ephemeral else None
                if temporary is not None:
                    home, cache = Path(temporary, "home"), Path(temporary, "cache")
                client = cls._on_files(home, cache, create, where, setup, now)
                client._temporary = temporary
        client.directory = where
        client.sees_whole_store = directory is None
        return client

    @classmethod
    def _on_server(cls, server: Server, setup: Setup, clock: Callable[[], datetime], create: bool = True) -> Self:
        from engram.store.postgres.setup import open_store

        store = open_store(server.url, server.tenant, setup.embedder, clock=clock, create=create)
        client = cls(store, setup.settings, None, clock, setup.zone)
        client._policy = setup.policy
        return client

    @classmethod
    def _on_files(
        cls,
        home: str | Path | None,
        cache: str | Path | None,
        create: bool,
        directory: Path,
        setup: Setup,
        clock: Callable[[], datetime],
    ) -> Self:
        from engram.store.home import open_home
        from engram.store.local import open_files

        place = open_home(Path(home) if home else None, Path(cache) if cache else None, create=create)
        store = open_files(place, setup.embedder, directory=directory, clock=clock)
        client = cls(store, setup.settings, place, clock, setup.zone)
        client._policy = setup.policy
        return client

    def close(self) -> None:
        """Close the store. An ephemeral store is also removed."""
        self.store.close()
        if self._temporary is not None:
            import shutil

            shutil.rmtree(self._temporary, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @bind_verb(store.DOCTOR)
    def doctor(self, *, seconds: float = 10) -> Report:
        """What is healthy, what is not, and how to fix it.

        Memories are checked for about the given number of seconds.
        """
        from engram.upkeep.scope_links import scope_finding
        from engram.upkeep.upkeep import hook_findings

        found = self.upkeep.doctor(seconds=seconds)
        return found.with_findings(last=[scope_finding(self.store, self.directory), *hook_findings(self.home)])

    @bind_verb(store.GEN_CONTEXT)
    def gen_context(
        self,
        path: str | Path | Sequence[str | Path] | None = None,
        *,
        tier: int = 1,
        limit: int = 30,
        budget: int = 2000,
        remove: bool = False,
        dry_run: bool = False,
        **owner: Unpack[Owner],
    ) -> "ContextUpdates":
        """Maintain a block of memories between markers in AGENTS.md, another instruction file or the given files; `remove` deletes it.

        Without a path, it uses the instruction file of the directory or of its repository. The block quotes at most
        `limit` memories of a risk tier up to `tier`, visible from the file's folder, or of the scope or owner named, in
        at most `budget` tokens. Raises `Refused`, and writes nothing, if the markers of any file are malformed.
        """
        from engram.gates.secrets.scan import refuse_secret
        from engram.upkeep.context_files import BlockOptions

        paths = [path] if isinstance(path, str | Path) else path or ()
        for each in paths:
            refuse_secret(str(each), "the path")
        scopes = read_words(self._requested_scope(owner), "scope")
        options = BlockOptions(scopes, tier, limit, budget)
        return self._context_files.update(list(map(Path, paths)), options, remove=remove, dry_run=dry_run)

    @bind_verb(store.CONTEXT_TEXT)
    def context_text(self, *, tier: int = 1, limit: int = 30, budget: int = 2000, **owner: Unpack[Owner]) -> str:
        """The memories that `gen_context` would quote in a file of the directory, grouped by kind.

        Nothing is written.
        """
        from engram.recall.prompt.context_block import HEADER_LINES
        from engram.upkeep.context_files import BlockOptions

        options = BlockOptions(read_words(self._requested_scope(owner), "scope"), tier, limit, budget).validate()
        return "\n".join(self._context_files.block(self.directory, options).lines[HEADER_LINES:])

    @bind_verb(store.HEALTH_CHECK)
    def health_check(self, *, skip_embedding_test: bool = False) -> Report:
        """The report of `doctor`, and whether the embedder can embed a text."""
        found = self.doctor()
        return found if skip_embedding_test else found.with_findings(last=[_embeds(self.store)])

    @bind_verb(store.INDEX)
    def rebuild_index(self, progress: Progress | None = None) -> None:
        """Rebuild the index from the files."""
        self.upkeep.rebuild_index(progress)


def _embeds(store: Store) -> Finding:
    try:
        made = store.embed(["Does the embedder answer?"])
    except EmbedderError as error:
        return Finding.of("embedding", False, str(error), "`engram config embedder static` uses the bundled one")
    if made is None:
        return Finding.of("embedding", True, "this store has no embedder: it is searched by keyword")
    return Finding.of("embedding", True, f"texts are embedded in {made.shape[1]} dimensions")


def _override_embedder(settings: Settings, embedder: str | None) -> Settings:
    return settings if embedder is None else replace(settings, embedder=embedder)


def _config(home: str | Path | None, on_server: bool) -> Path | None:
    """The settings file of a store, which may not exist."""
    if on_server:
        return owner_config()
    from engram.store.home import config_of

    return config_of(Path(home) if home else None)


def _policy(policy: "str | MemoryPolicy", settings: Settings, config: Path | None) -> "str | MemoryPolicy":
    """The chosen policy, validated; "" for the default one, which is loaded with the first write."""
    if not policy and not settings.policies and settings.policy == Settings().policy:
        return ""
    from engram.gates.policies import MemoryPolicy, chosen_policy

    if isinstance(policy, MemoryPolicy):
        return policy
    return chosen_policy(policy or settings.policy, settings.policies, str(config or "config.toml"))


def _check_signals(settings: Settings, config: Path | None) -> None:
    """Raise `InvalidInput` for an invalid signal of the owner."""
    if settings.signals:
        from engram.capture.signals import custom_signals

        custom_signals(settings.signals, config)


def _zone(chosen: str | tzinfo | None, settings: Settings) -> tzinfo:
    """The zone chosen by the caller, the environment or the settings. Raises `InvalidInput` for an unknown name."""
    if isinstance(chosen, tzinfo):
        return chosen
    if chosen is None:
        chosen = os.environ.get(VARIABLE, "").strip() or settings.time_zone
    if not isinstance(chosen, str):
        raise InvalidInput(f"time_zone must be a name such as America/Los_Angeles, or a tzinfo, not {chosen!r:.60}")
    return zone_named(chosen)


def _embedder(settings: Settings) -> "Embedder | None":
    from engram.embedding import load_embedder

    return load_embedder(settings.embedder)


def _temporary_folder() -> str:
    import tempfile

    return tempfile.mkdtemp(prefix="engram-")
