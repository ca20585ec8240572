"""Log messages for the client, from the level on that it set."""

import warnings
from collections.abc import Iterable
from typing import Any, get_args

from mcp.server import ServerRequestContext
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp.types import EmptyResult, LoggingLevel, SetLevelRequestParams

from engram.mcp.redaction import redact_secrets
from engram.text.display import notice

LEVELS: tuple[LoggingLevel, ...] = get_args(LoggingLevel)
"""From the least severe on."""
DEFAULT_LEVEL: LoggingLevel = "warning"
"""The level of a client that sets none."""
LOGGER = "engram"
SESSION = "mcp-session-id"
_MAX_CLIENTS = 1000
"""Clients whose level is remembered; the oldest is forgotten first."""


class ClientLog:
    """Sends log messages to the client of a request."""

    def __init__(self) -> None:
        self._levels: dict[str, LoggingLevel] = {}
        self._warned: dict[str, set[str]] = {}

    async def set_level(self, ctx: ServerRequestContext[Any, Any], params: SetLevelRequestParams) -> EmptyResult:
        """`logging/setLevel`."""
        _make_room(self._levels, _client(ctx))[_client(ctx)] = params.level
        return EmptyResult()

    async def send(self, ctx: ServerRequestContext[Any, Any], level: LoggingLevel, text: str) -> None:
        """Send a message, unless the client does not want it; what looks like a secret is redacted."""
        if LEVELS.index(level) < LEVELS.index(self._levels.get(_client(ctx), DEFAULT_LEVEL)) and not _opted_in(ctx):
            return
        with warnings.catch_warnings():
            # Clients up to 2025 have no other way to show what a server has to say.
            warnings.simplefilter("ignore", MCPDeprecationWarning)
            sending = ctx.session.send_log_message(level, notice(redact_secrets(text)), LOGGER, ctx.request_id)
        await sending

    async def warn(self, ctx: ServerRequestContext[Any, Any], notes: Iterable[str]) -> None:
        """Send each of these warnings that the client has not had yet."""
        client = _client(ctx)
        told = _make_room(self._warned, client).setdefault(client, set())
        for note in [note for note in notes if note not in told]:
            told.add(note)
            await self.send(ctx, "warning", note)


def _client(ctx: ServerRequestContext[Any, Any]) -> str:
    """The client of a request: over HTTP its session, on stdin and stdout the only one."""
    return ctx.request.headers.get(SESSION, "") if ctx.request is not None else ""


def _opted_in(ctx: ServerRequestContext[Any, Any]) -> bool:
    """Whether the request itself names a level, as since 2026; the session then compares it."""
    from mcp.types import LOG_LEVEL_META_KEY

    return LOG_LEVEL_META_KEY in (ctx.meta or {})


def _make_room(by_client: dict[str, Any], client: str) -> dict[str, Any]:
    """The table with room for a client."""
    if client not in by_client and len(by_client) >= _MAX_CLIENTS:
        del by_client[next(iter(by_client))]
    return by_client
