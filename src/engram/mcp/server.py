"""`engram mcp`: starts the tool server.

Importing it is cheap: the protocol's package is loaded when the server starts.
"""

import gc
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engram.model.errors import EngramError
from engram.model.logs import start_logging

if TYPE_CHECKING:
    from engram.client import Engram
    from engram.mcp.calls import LazyMemory

__all__ = ["main", "main_http"]

_GC_THRESHOLD = 20_000
"""Number of new objects after which the server looks for cycles among them."""


def main(home: str | None = None) -> None:
    """Serve the store in `home` (default: `$ENGRAM_URL`'s, else `$ENGRAM_HOME`) on stdin and stdout, until stdin ends or a signal comes.

    Raises `EngramError` if the `mcp` extra is not installed.
    """
    if sys.stdin.isatty():
        sys.stderr.write("engram: an MCP client starts this server (docs/mcp.md); Ctrl-D ends it\n")

    def load() -> "Callable[[LazyMemory], Any]":
        from engram.mcp.stdio import serve

        return serve

    _run(home, load)


def main_http(
    home: str | None = None,
    *,
    host: str = "",
    port: int | None = None,
    token_file: Path | None = None,
    names: tuple[str, ...] = (),
) -> None:
    """Serve the store over HTTP until a signal comes.

    By default on this machine only, with a token shown once on stderr.

    Raises `Refused` for an address that others can reach without a token file, and for a token file that others may
    read.
    """

    def load() -> "Callable[[LazyMemory], Any]":
        from functools import partial

        from engram.mcp import http

        given = http.HttpOptions(
            host or http.LOOPBACK, http.PORT if port is None else port, token_file, http.named_hosts(names)
        )
        return partial(http.serve, options=given.validate())

    _run(home, load)


def _run(home: str | None, load: "Callable[[], Callable[[LazyMemory], Any]]") -> None:
    # The protocol's package creates some eighty thousand lasting objects. Garbage collection while it loads and at exit
    # takes a quarter of the time to start and stop.
    start_logging()
    gc.disable()
    try:
        import anyio

        from engram.mcp.calls import LazyMemory

        serve = load()
    except ImportError as error:
        raise EngramError(f"the MCP server needs a package: pip install 'engram[mcp]' ({error})") from None
    finally:
        gc.enable()
    gc.freeze()
    # A recall creates tens of thousands of objects and hardly a cycle. A collection after every 700 takes a twentieth of
    # its time.
    gc.set_threshold(_GC_THRESHOLD)
    memory = LazyMemory(lambda: _open_memory(home))
    try:
        anyio.run(serve, memory)
    finally:
        memory.close()


def _open_memory(home: str | None) -> "Engram":
    from engram.client import Engram
    from engram.store.scopes import working_directory

    return Engram.open(home, directory=working_directory())
