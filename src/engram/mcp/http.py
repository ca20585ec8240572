"""Serves clients over streamable HTTP: on this machine, with a token, and only under expected host names."""

import ipaddress
import os
import re
import secrets
import socket
import stat
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import uvicorn
from mcp.server.transport_security import DEFAULT_MAX_REQUEST_BODY_SIZE, TransportSecuritySettings
from mcp.types import JSONRPCError
from starlette.datastructures import Headers
from starlette.responses import JSONResponse, PlainTextResponse

from engram.mcp.calls import LazyMemory
from engram.mcp.protocol import build
from engram.mcp.transport import UnreadableMessage, end_if_blocked, read_message, replace_half_characters
from engram.model.errors import InvalidInput, Refused
from engram.model.lazy import dataclass
from engram.text.display import escape_hidden

if TYPE_CHECKING:
    from mcp.server import Server
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

PATH = "/mcp"
PORT = 8377
LOOPBACK = "127.0.0.1"
_LOCAL_NAMES = ("127.0.0.1", "localhost", "[::1]")
MIN_TOKEN_CHARACTERS = 16
_GRACE = 2
"""Seconds that open requests may still take when the server stops."""


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """The address, the host names, and the token file."""

    host: str = LOOPBACK
    port: int = PORT
    token_file: Path | None = None
    names: tuple[str, ...] = ()

    def validate(self) -> "HttpOptions":
        """The options themselves. Raises `InvalidInput` or `Refused` for unusable ones."""
        if not 0 <= self.port <= 65535:
            raise InvalidInput(f"--port {self.port} is not a port; choose one from 0 (any free one) to 65535")
        if not is_loopback(self.host) and self.token_file is None:
            raise Refused(
                f"{self.host} can be reached from other machines: name the token that its clients must send, "
                "with --token-file FILE (mode 0600, at least 16 characters)"
            )
        return self


def is_loopback(host: str) -> bool:
    """Whether a host is reachable only from this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def read_token(path: Path) -> str:
    """The token in a file. Raises `Refused` if others may read it, `InvalidInput` if there is none."""
    try:
        found = path.stat()
        text = path.read_text("utf-8").strip()
    except UnicodeDecodeError:
        raise InvalidInput(f"{path} is not text") from None
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise Refused(f"{path} can be read by others: `chmod 600 {path}` makes it yours alone")
    if found.st_uid != os.geteuid():
        raise Refused(f"{path} belongs to somebody else")
    if len(text) < MIN_TOKEN_CHARACTERS or not text.isascii() or any(character.isspace() for character in text):
        raise InvalidInput(
            f"{path} must hold one token of at least {MIN_TOKEN_CHARACTERS} characters, ASCII and without spaces; "
            f"`openssl rand -hex 32` makes one"
        )
    return text


_AUTHORITY = re.compile(r"(?P<name>\[[0-9a-f:.]{2,45}\]|[a-z0-9_.-]{1,253})(?::(?P<port>[0-9]{1,5}))?", re.IGNORECASE)
"""A host and a port, and nothing else: no user before an `@`, no path, no list."""
_ORIGIN = re.compile(r"https?://(?P<authority>[^/?#]*)", re.IGNORECASE)


class HostGate:
    """Accepts requests whose `Host` and `Origin` name this server. Another host gets 421, another origin 403.

    This keeps a web page in a user's browser from reaching the server through a host name that resolves to this
    machine.
    """

    def __init__(self, app: "ASGIApp", names: Iterable[str]) -> None:
        self._app, self._names = app, frozenset(name.lower() for name in names)

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Handle one request."""
        if scope["type"] == "http" and (refusal := self._refusal_of(Headers(scope=scope))) is not None:
            await refusal(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _refusal_of(self, headers: Headers) -> PlainTextResponse | None:
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if len(hosts) != 1 or not self.is_expected(hosts[0]):
            return PlainTextResponse("Unknown Host; `engram mcp --http --allow-host NAME` adds a name\n", 421)
        found = _ORIGIN.fullmatch(origins[0]) if len(origins) == 1 else None
        if origins and (found is None or not self.is_expected(found["authority"])):
            return PlainTextResponse("Pages of this Origin may not use this server\n", 403)
        return None

    def is_expected(self, authority: str) -> bool:
        """Whether a host, with or without a port, is one of the server's names."""
        found = _AUTHORITY.fullmatch(authority)
        if found is None or (found["port"] is not None and not 0 < int(found["port"]) <= 65535):
            return False
        return found["name"].lower() in self._names or authority.lower() in self._names


class TokenGate:
    """Accepts requests that carry the token, and repairs their JSON.

    It answers 401 without the token, 400 without a message.
    """

    def __init__(self, app: "ASGIApp", token: str) -> None:
        self._app, self._token = app, token.encode()

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        kind, _, given = Headers(scope=scope).get("authorization", "").partition(" ")
        # Compared in constant time, even if it is missing.
        fits = secrets.compare_digest(given.strip().encode("utf-8", "replace"), self._token)
        if kind.lower() != "bearer" or not fits:
            challenge = {"www-authenticate": 'Bearer realm="engram"'}
            words = "A bearer token is needed: the one that `engram mcp --http` showed, or that of its --token-file\n"
            await PlainTextResponse(words, 401, challenge)(scope, receive, send)
            return
        if scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        message = await _read_body(receive)
        if (refusal := _refusal_of(message)) is not None:
            await JSONResponse(refusal.model_dump(exclude_unset=True), 400)(scope, receive, send)
        else:
            await self._app(scope, _replay_message(message, receive), send)


async def _read_body(receive: "Receive") -> "Message":
    """The whole request body, without halves of characters; the server itself refuses one that is too long."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return message
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if not more or len(body) > DEFAULT_MAX_REQUEST_BODY_SIZE:
            return {"type": "http.request", "body": replace_half_characters(bytes(body)), "more_body": more}


def _refusal_of(message: "Message") -> JSONRPCError | None:
    """The answer to a body without a protocol message. The server's own answer would not say what to do."""
    if message["type"] != "http.request" or len(message["body"]) > DEFAULT_MAX_REQUEST_BODY_SIZE:
        return None
    try:
        read_message(message["body"].decode("utf-8", "replace"))
    except UnreadableMessage as error:
        return error.answer
    return None


def _replay_message(message: "Message", receive: "Receive") -> "Receive":
    """A receive function that first returns a message already received."""
    first = [message]

    async def next_message() -> "Message":
        return first.pop() if first else await receive()

    return next_message


def app(server: "Server[Any]", options: HttpOptions, token: str) -> "ASGIApp":
    """The application: Host, Origin and the token are checked before the SDK sees a request."""
    # The SDK's own check compares only the start of a name: it accepts `localhost:80@evil.example`.
    security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    served = server.streamable_http_app(streamable_http_path=PATH, host=options.host, transport_security=security)
    return HostGate(TokenGate(served, token), [*_LOCAL_NAMES, _bracket_host(options.host), *options.names])


def _bracket_host(host: str) -> str:
    return f"[{host}]" if ":" in host else host


async def serve(memory: LazyMemory, options: HttpOptions) -> None:
    """Serve HTTP until a signal arrives. The address, and a newly created token, are shown on stderr once."""
    options = options.validate()
    token = read_token(options.token_file) if options.token_file is not None else secrets.token_urlsafe(32)
    listening = listener(options)
    port = listening.getsockname()[1]
    _say(f"engram: serving MCP at http://{_bracket_host(options.host)}:{port}{PATH}")
    if options.token_file is None:
        _say(f"engram: token (shown once): {token}")
    server = build(memory, anyio.CapacityLimiter(1))
    config = uvicorn.Config(
        app(server, options, token),
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_GRACE,
        timeout_keep_alive=75,
    )
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(end_if_blocked)
        await uvicorn.Server(config).serve(sockets=[listening])
        tasks.cancel_scope.cancel()


def listener(options: HttpOptions) -> socket.socket:
    """A listening socket. Raises `InvalidInput` for an unknown host, `OSError` for a port in use."""
    try:
        found = socket.getaddrinfo(options.host, options.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (socket.gaierror, UnicodeError):
        raise InvalidInput(f"--host {escape_hidden(options.host)} is no address of this machine") from None
    family, kind, protocol, _, address = found[0]
    # `localhost` may be anything in a hosts file; its meaning here decides.
    if is_loopback(options.host) and not is_loopback(str(address[0])):
        raise Refused(f"{options.host} means {address[0]} here, which other machines can reach; use --host {LOOPBACK}")
    listening = socket.socket(family, kind, protocol)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(address)
        listening.listen()  # from here on a client that knows the address waits instead of being refused
    except OSError as error:
        listening.close()
        raise OSError(error.errno, error.strerror, f"{options.host}:{options.port}") from None
    listening.set_inheritable(False)
    return listening


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def named_hosts(names: Sequence[str]) -> tuple[str, ...]:
    """Further host names of the server. Raises `InvalidInput` for anything but a host name."""
    for name in names:
        if not name or not name.isascii() or any(part in name for part in ("/", " ", "*", "@")):
            raise InvalidInput(f"--allow-host {escape_hidden(name)!r} is no host name; write it as memory.example.org")
    return tuple(name.lower() for name in names)
