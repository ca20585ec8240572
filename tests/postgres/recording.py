"""Every statement that reaches a server, from the server's own log: nothing a client sends can go past it."""

import json
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.postgres.keeper import Kept
from tests.postgres.one_shard import Statement
from tests.postgres.server import Lease, Server, running_server

PATIENCE = 60.0
LOGGING = {
    "logging_collector": "on",
    "log_destination": "jsonlog",
    "log_directory": "recorded",
    "log_filename": "statements.log",
    "log_rotation_age": "0",
    "log_rotation_size": "0",
    "log_statement": "all",
    "log_parameter_max_length": "400",
}
_SENT = re.compile(r"(?:statement|execute [^:]*): (.*)", re.DOTALL)
_VALUE = re.compile(r"\$(\d+) = (?:NULL|'((?:[^']|'')*)')")


@dataclass(frozen=True, slots=True)
class Recorder:
    """A server that writes down what it is asked."""

    server: Server
    log: Path

    def sent(self, dbname: str, user: str) -> list[dict[str, Any]]:
        """What a role has asked of a database so far, in order; the log is a moment behind, and waited for."""
        mark = f"mark-{secrets.token_hex(8)}"
        with self.server.admin() as admin:
            admin.execute(f"SELECT '{mark}'".encode())
        deadline = time.monotonic() + PATIENCE
        while mark not in (text := self.log.read_text("utf-8", errors="replace") if self.log.exists() else ""):
            assert time.monotonic() < deadline, f"the server's log {self.log} does not go on"
            time.sleep(0.05)
        lines = (json.loads(line) for line in text.splitlines() if line.startswith("{"))
        return [line for line in lines if line.get("dbname") == dbname and line.get("user") == user]

    def statements(self, dbname: str, user: str, tenants: set[str], after: int = 0) -> Iterator[Statement]:
        """Each statement behind so many lines, with those of its parameters that were one of these tenants."""
        for line in self.sent(dbname, user)[after:]:
            matched = _SENT.fullmatch(line.get("message", ""))
            if matched is None:
                continue
            text, values = matched.group(1), dict(_VALUE.findall(line.get("detail", "")))
            held = {tenant for tenant in tenants if tenant in values.values() or f"'{tenant}'" in text}
            assert len(held) < 2, f"one statement for two tenants: {text}"
            said = frozenset(int(number) for number, value in values.items() if value in held)
            yield Statement(text, text, said, next(iter(held), ""))


@contextmanager
def recording_server(like: Kept | None) -> Iterator[Recorder]:
    """A server of one's own that logs every statement with its values."""
    lease = Lease()
    try:
        kept = running_server(lease.folder, LOGGING, like)
        yield Recorder(Server(kept.admin_url, kept), Path(kept.data, "recorded", "statements.json"))
    finally:
        lease.end()
