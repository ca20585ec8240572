"""The same memory for programs with an event loop: every call of `Engram`, awaited."""

from engram.aio.engram import AsyncEngram
from engram.aio.opening import Opening
from engram.aio.session import AsyncSession

__all__ = ["AsyncEngram", "AsyncSession", "Opening"]
