"""What is begun by awaiting it, or by entering it."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Generator
from types import FunctionType, TracebackType
from typing import Any, Generic, NoReturn, Self, TypeVar


class Opened(ABC):
    """What stands in an `async with` once it is open."""

    def __init_subclass__(cls) -> None:
        """A wrong argument is told of the class that callers know."""
        for name, part in vars(cls).items():
            if isinstance(part, FunctionType) and cls.__name__ == "Verbs":
                part.__qualname__ = f"AsyncEngram.{name}"

    async def __aenter__(self) -> Self:
        return self

    @abstractmethod
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


T = TypeVar("T", bound=Opened)
_HOW = "Await it (`mem = await AsyncEngram.open(…)`), or write `async with AsyncEngram.open(…) as mem:`; a session likewise"


class Opening(Generic[T]):
    """Something about to be opened: `await` it to have it, or let `async with` open and close it."""

    def __init__(self, begin: Callable[[], Awaitable[T]]) -> None:
        self._begin = begin
        self._opened: T | None = None

    def __await__(self) -> Generator[Any, None, T]:
        return self._begin().__await__()

    async def __aenter__(self) -> T:
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
        raise TypeError(f"it is opened by an event loop. {_HOW}")

    def __exit__(self, *_: object) -> None:
        """Never reached; `with` looks for it before it enters."""
