"""mcp: serves the memory to agents."""

from pathlib import Path

from engram.cli.surface import Surface
from engram.model.errors import InvalidInput


def mcp(
    surface: Surface,
    http: bool = False,
    host: str = "127.0.0.1",
    port: int | None = None,
    token_file: Path | None = None,
    allow_host: list[str] | None = None,
) -> None:
    """Carry out `engram mcp`."""
    from engram.mcp import server

    home = str(surface.home.expanduser().absolute()) if surface.home else None
    if http:
        server.main_http(home, host=host, port=port, token_file=token_file, names=tuple(allow_host or ()))
        return
    if port is not None or token_file is not None or allow_host or host != "127.0.0.1":
        raise InvalidInput("--host, --port, --token-file and --allow-host belong to --http")
    server.main(home)
