"""AsyncEngram: opened, warmed and closed on threads; its verbs are written out in `verbs`, its facets in `facets`."""

from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from engram.aio.opening import Opening
from engram.aio.threads import Threads
from engram.aio.verbs import Verbs
from engram.model.errors import InvalidInput

if TYPE_CHECKING:
    from engram.client import Engram
    from engram.gates.policies import MemoryPolicy
    from engram.llm.model import LanguageModel
    from engram.settings import Settings
    from engram.store.files.home import Home

P = ParamSpec("P")
T = TypeVar("T")
THREADS = 4
MOST_THREADS = 64
CLOSE_SECONDS = 30.0
"""How long closing waits for calls that are running."""


class AsyncEngram(Verbs):
    """An agent's memory for programs with an event loop: everything `Engram` does, under the same names, awaited.

    `async with AsyncEngram.open() as mem:` or `mem = await AsyncEngram.open()` and `await mem.close()`. Calls run on a few
    threads of the memory's own, so it serves any number of tasks and event loops. A cancelled call returns at once; what it
    was writing is written wholly, or not at all.
    """

    def __init__(self, threads: Threads, engram: "Engram") -> None:
        self._threads = threads
        self._engram = engram

    @classmethod
    def _opening(cls, threads: int | None, *args: Any, **kwargs: Any) -> Opening[Self]:
        size = THREADS if threads is None else threads
        if type(size) is not int or not 1 <= size <= MOST_THREADS:
            raise InvalidInput(f"threads {threads!r} must be a whole number from 1 to {MOST_THREADS}")
        return Opening(partial(cls._opened, size, *args, **kwargs))

    @classmethod
    async def _opened(cls, size: int, *args: Any, **kwargs: Any) -> Self:
        workers = Threads(size)
        opened: list[Engram] = []

        def work() -> None:
            opened.append(_warm(*args, **kwargs))

        try:
            await workers.run(work)
        except Exception:
            await workers.close(partial(_close, opened), CLOSE_SECONDS)
            raise
        except BaseException:
            # Whoever was to have it is gone: what is being opened is closed as soon as it is open.
            workers.end(partial(_close, opened))
            raise
        if opened[0].home is not None:
            workers.take_turns()  # files admit one at a time; a server answers many at once
        return cls(workers, opened[0])

    async def close(self) -> None:
        """Wait for what is running, then let go of the store; an ephemeral one is removed. Closing again does nothing.

        After 30 seconds `StoreBusy` is raised, and the store closed when the call that takes so long has ended.
        """
        await self._threads.close(self._engram.close, CLOSE_SECONDS)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def run(self, function: "Callable[Concatenate[Engram, P], T]", *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function of your own with the `Engram` behind this, on one of its threads: many calls for one wait."""
        return await self._threads.run(function, self._engram, *args, **kwargs)

    @property
    def settings(self) -> "Settings":
        """The settings it was opened with."""
        return self._engram.settings

    @property
    def home(self) -> "Home | None":
        """The store's directory; None where memories are not files."""
        return self._engram.home

    @property
    def directory(self) -> Path:
        """Where the agent works."""
        return self._engram.directory

    @property
    def policy(self) -> "MemoryPolicy":
        """What describes a memory before the gates judge it."""
        return self._engram.policy

    @property
    def model(self) -> "LanguageModel | None":
        """The language model of the settings, None where there is none; asking it blocks, so ask it in `run`."""
        return self._engram.model


def _close(opened: "list[Engram]") -> None:
    for engram in opened:
        engram.close()


def _warm(*args: Any, **kwargs: Any) -> "Engram":
    """Open, and make every part now: made at first use, two threads could make it twice."""
    from engram.client import Engram

    engram = Engram.open(*args, **kwargs)
    try:
        for kind in type(engram).__mro__:
            for name, part in vars(kind).items():
                if isinstance(part, cached_property):
                    getattr(engram, name)
    except BaseException:
        engram.close()
        raise
    return engram
