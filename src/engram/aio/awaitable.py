"""The awaitables of an asynchronous memory, and the few threads that run its calls."""

import asyncio
import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from contextvars import Context, copy_context
from functools import partial, wraps
from types import TracebackType
from typing import Any, Concatenate, Generic, NoReturn, ParamSpec, Self, TypeVar

from engram.model.errors import StoreBusy, StoreClosed, StoreError
from engram.verbs.calls import signature_of

P = ParamSpec("P")
T = TypeVar("T")
CLOSED = "this memory is closed; open it again with `AsyncEngram.open()`"
FORKED = "this memory was opened by the process that forked this one; open it again here"

LONG_CALL_SECONDS = 0.05
"""Seconds after which a call counts as long."""


class Turns:
    """Runs calls one after the other, except that a call that takes long keeps running while the next one starts.

    A store of files admits one thread at a time, and so does Python: competing threads slow each other down and keep
    the event loop waiting for the interpreter. But a call that waits for a model, a disk or ten thousand memories must
    not delay a search of milliseconds, so the next call overtakes it.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._holder: object | None = None
        self._since = 0.0

    @contextmanager
    def take(self) -> Iterator[None]:
        """Wait for the turn, and release it afterwards."""
        mine = object()
        with self._changed:
            while self._holder is not None and (left := self._since + LONG_CALL_SECONDS - time.monotonic()) > 0:
                self._changed.wait(left)
            self._holder, self._since = mine, time.monotonic()
        try:
            yield
        finally:
            with self._changed:
                if self._holder is mine:
                    self._holder = None
                    self._changed.notify()


class Threads:
    """Runs blocking calls on its own threads, and ends them.

    A call cancelled while it waits for a thread never runs; a running call completes, and only its result is dropped.
    No event loop is kept: each call returns in the loop that awaits it.
    """

    def __init__(self, size: int) -> None:
        self._pool = ThreadPoolExecutor(size, thread_name_prefix="engram")
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._closing: Future[None] | None = None
        self._ending: threading.Thread | None = None
        self._given_up = False
        self._turns: Turns | None = None

    def take_turns(self) -> None:
        """From now on, run calls one after the other, except long ones."""
        self._turns = Turns()

    async def run(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function on a thread, with the caller's context variables, and wait for its result."""
        if self.is_forked:
            raise StoreError(FORKED)
        if self._closing is not None:
            raise StoreClosed(CLOSED)
        try:
            answer = self._pool.submit(self._call, copy_context(), partial(function, *args, **kwargs))
        except RuntimeError as error:  # closed by another thread just now, or the interpreter is ending
            raise StoreClosed(CLOSED) from error
        return await asyncio.wrap_future(answer)

    def _call(self, context: Context, function: Callable[[], T]) -> T:
        if self._given_up:
            raise StoreClosed(CLOSED)
        with self._turns.take() if self._turns is not None else nullcontext():
            return context.run(function)

    @property
    def is_forked(self) -> bool:
        """Whether this process was forked from the one that has the threads."""
        return os.getpid() != self._process

    async def close(self, last: Callable[[], None], seconds: float) -> None:
        """Refuse new calls, wait for the running ones, then call `last`, once.

        Raises `StoreBusy` if that takes too long. Calls not yet started are then refused, and `last` is called when the
        running ones have ended.
        """
        if self.is_forked:
            return
        waiting = asyncio.wrap_future(self.end(last))
        try:
            await asyncio.wait([waiting], timeout=seconds)
            if not waiting.done():
                self._given_up = True
                raise StoreBusy(
                    f"a call is still running after {seconds:g} s; the store is closed as soon as that call has ended"
                )
            assert self._ending is not None
            self._ending.join()  # its result is set, so it only has to return
            waiting.result()
        finally:
            waiting.cancel()

    def end(self, last: Callable[[], None]) -> "Future[None]":
        """Start to close without waiting, on a separate thread, so that a cancelled caller cannot stop it."""
        with self._lock:
            if self._closing is None:
                self._closing = Future()
                self._closing.set_running_or_notify_cancel()
                self._ending = threading.Thread(target=self._end, args=(self._closing, last), name="engram-closing")
                self._ending.start()
            return self._closing

    def _end(self, closing: "Future[None]", last: Callable[[], None]) -> None:
        self._pool.shutdown(wait=True)
        try:
            last()
        except BaseException as error:
            closing.set_exception(error)
        else:
            closing.set_result(None)


S = TypeVar("S")


class Twin(Generic[S]):
    """The asynchronous side of a synchronous object: the object, and the threads that run its calls."""

    def __init__(self, threads: Threads, target: S) -> None:
        self._threads = threads
        self._target = target


def make_async(call: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """A synchronous method as a coroutine method of its twin, with the same name, parameters, types and docstring."""
    name, signature = call.__name__, signature_of(call)

    @wraps(call)
    async def forward(self: Twin[Any], /, *args: P.args, **kwargs: P.kwargs) -> T:
        if signature is not None:
            signature.check_names(args, kwargs, "AsyncEngram")
        # Looked up on the object, so that a subclass or a test can replace it.
        method: Callable[P, T] = getattr(self._target, name)
        return await self._threads.run(method, *args, **kwargs)

    return forward


class AsyncResource(ABC):
    """The object that an `async with` yields once it is open."""

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
        """Never called; `with` looks for it before it enters."""
