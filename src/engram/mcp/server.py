"""`engram mcp`: starts the tool server. Light to import: the protocol's package is loaded when the server starts."""

import gc
import sys
from typing import TYPE_CHECKING

from engram.model.errors import EngramError

if TYPE_CHECKING:
    from engram.client import Engram

__all__ = ["main"]


def main(home: str | None = None) -> None:
    """Serve the store in `home` (default: `$ENGRAM_URL`'s, else `$ENGRAM_HOME`) on stdin and stdout, until stdin ends or a signal comes.

    Raises `EngramError` where the `mcp` extra is not installed.
    """
    if sys.stdin.isatty():
        sys.stderr.write("engram: an MCP client starts this server (docs/mcp.md); Ctrl-D ends it\n")
    # The protocol's package creates some eighty thousand lasting objects. Collecting garbage while it loads and at exit
    # costs a quarter of the time to start and stop.
    gc.disable()
    try:
        import anyio

        from engram.mcp import protocol
    except ImportError as error:
        raise EngramError(f"the MCP server needs a package: pip install 'engram[mcp]' ({error})") from None
    finally:
        gc.enable()
    gc.freeze()
    memory = protocol.LazyMemory(lambda: _opened(home))
    try:
        anyio.run(protocol.serve, memory)
    finally:
        memory.close()


def _opened(home: str | None) -> "Engram":
    from engram.client import Engram

    return Engram.open(home)
