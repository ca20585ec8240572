"""mcp: serves the memory to agents."""

from pathlib import Path
from typing import Annotated

from engram.cli.parser import Option
from engram.cli.surface import Surface
from engram.model.errors import InvalidInput

Http = Annotated[bool, Option("--http", help="Serve streamable HTTP instead of stdin and stdout.")]
Host = Annotated[
    str, Option("--host", metavar="ADDRESS", help="With --http: where to listen; another needs --token-file.")
]
Port = Annotated[int | None, Option("--port", metavar="N", help="With --http: the port; 0 takes a free one.")]
TokenFile = Annotated[
    Path | None,
    Option(
        "--token-file", metavar="FILE", help="With --http: a file of mode 0600 with the token that clients must send."
    ),
]
AllowHost = Annotated[
    list[str] | None,
    Option("--allow-host", metavar="NAME", help="With --http: another name by which clients address it (repeatable)."),
]


def mcp(
    surface: Surface,
    http: Http = False,
    host: Host = "127.0.0.1",
    port: Port = None,
    token_file: TokenFile = None,
    allow_host: AllowHost = None,
) -> None:
    """Serve this memory to agents over MCP: on stdin and stdout, or with --http.

    Over HTTP every request must carry a bearer token: the one in --token-file, or one that is made now and shown once on stderr. It
    listens at http://127.0.0.1:8377/mcp unless told otherwise; an address that other machines reach needs --token-file.
    """
    from engram.mcp import server

    home = str(surface.home.expanduser().absolute()) if surface.home else None
    if http:
        server.main_http(home, host=host, port=port, token_file=token_file, names=tuple(allow_host or ()))
        return
    if port is not None or token_file is not None or allow_host or host != "127.0.0.1":
        raise InvalidInput("--host, --port, --token-file and --allow-host belong to --http")
    server.main(home)
