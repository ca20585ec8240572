"""A running session, awaited."""

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec

from engram.aio.opening import Opened, Opening
from engram.aio.threads import Threads

if TYPE_CHECKING:
    from engram.model.event import Event, Session
    from engram.model.hit import Injection
    from engram.model.memory import Memory
    from engram.sessions.sessions import SessionHandle

P = ParamSpec("P")
SUMMARY_TOKENS = 400
"""As the sessions have it; a test holds the two together, and importing this costs no gates."""


class AsyncSession(Opened):
    """A session as `SessionHandle` has it, its calls awaited. `async with` ends it."""

    def __init__(self, threads: Threads, handle: "SessionHandle") -> None:
        self._threads = threads
        self._handle = handle

    @property
    def id(self) -> str:
        """The session's id."""
        return self._handle.id

    @property
    def session(self) -> "Session":
        """The session as it was last saved."""
        return self._handle.session

    @property
    def injection(self) -> "Injection":
        """What the agent should know before it begins."""
        return self._handle.injection

    async def observe(self, role: str, content: str, **fields: Any) -> "Event":
        """Append one event to this session's ledger."""
        return await self._threads.run(self._handle.observe, role, content, **fields)

    async def summarise(self, style: str = "", max_tokens: int = SUMMARY_TOKENS) -> str:
        """Fold what was said so far into the session's summary, and return it."""
        return await self._threads.run(self._handle.summarise, style, max_tokens)

    async def feedback(self, ref: str, signal: str) -> "Memory":
        """Rate a memory in this session."""
        return await self._threads.run(self._handle.feedback, ref, signal)

    async def end(self, summary: str = "") -> "Session":
        """End the session."""
        return await self._threads.run(self._handle.end, summary)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.session.ended is None:
            await self.end()


def beginning(
    threads: Threads, start: "Callable[P, SessionHandle]", /, *args: P.args, **kwargs: P.kwargs
) -> Opening[AsyncSession]:
    """A session about to be started."""

    async def begin() -> AsyncSession:
        return AsyncSession(threads, await threads.run(start, *args, **kwargs))

    return Opening(begin)
