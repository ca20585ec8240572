"""What an asynchronous memory returns: calls to await, and openings to await or to enter."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Generator
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, Generic, NoReturn, ParamSpec, Self, TypeVar

from engram.aio.threads import Threads
from engram.verbs.calls import signature_of

P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")


class Twin(Generic[S]):
    """The asynchronous side of a synchronous object: the object, and the threads its calls run on."""

    def __init__(self, threads: Threads, target: S) -> None:
        self._threads = threads
        self._target = target


def make_async(call: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """A synchronous method as a coroutine method of its twin: the same name, parameters, types and docstring."""
    name, signature = call.__name__, signature_of(call)

    @wraps(call)
    async def forward(self: Twin[Any], /, *args: P.args, **kwargs: P.kwargs) -> T:
        if signature is not None:
            signature.check_names(args, kwargs, "AsyncEngram")
        # Looked up on the object, so that a subclass or a test may replace it.
        method: Callable[P, T] = getattr(self._target, name)
        return await self._threads.run(method, *args, **kwargs)

    return forward


class AsyncResource(ABC):
    """The object an `async with` gives once it is open."""

    async def __aenter__(self) -> Self:
        return self

    @abstractmethod
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


Held = TypeVar("Held", bound=AsyncResource)
_HOW = "Await it (`mem = await AsyncEngram.open(…)`), or write `async with AsyncEngram.open(…) as mem:`; a session likewise"


class Opening(Generic[Held]):
    """Something not yet open: `await` it, or let `async with` open and close it."""

    def __init__(self, begin: Callable[[], Awaitable[Held]]) -> None:
        self._begin = begin
        self._opened: Held | None = None

    def __await__(self) -> Generator[Any, None, Held]:
        return self._begin().__await__()

    async def __aenter__(self) -> Held:
        self._opened = await self._begin()
        return await self._opened.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._opened is not None, "entered before it is left"
        await self._opened.__aexit__(kind, error, trace)

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"no {name!r} yet: it is not open. {_HOW}")

    def __enter__(self) -> NoReturn:
        raise TypeError(f"it must be opened in an event loop. {_HOW}")

    def __exit__(self, *_: object) -> None:
        """Never reached; `with` looks for it before it enters."""
