"""The asynchronous memory: every call of `Engram`, awaited."""

from engram.aio.awaitable import Opening
from engram.aio.engram import AsyncEngram, AsyncSession

__all__ = ["AsyncEngram", "AsyncSession", "Opening"]
