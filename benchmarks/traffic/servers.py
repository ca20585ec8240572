"""Real `engram mcp` processes, addressed in bare lines or bare HTTP, so that a call can be interrupted at any moment."""

import json
import subprocess
import threading
from abc import ABC, abstractmethod
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import Any, Protocol
from urllib.parse import urlsplit

from benchmarks.mcp import HELLO
from benchmarks.traffic.place import PATIENCE, TOKEN, TrafficPlace

HEADERS = {
    "Authorization": f"Bearer {TOKEN}",
    "Accept": "application/json, text/event-stream",
    "Content-Type": "application/json",
}


class ServerGone(Exception):
    """The server ended or stayed silent although an answer was due."""


@dataclass(frozen=True)
class ToolAnswer:
    """The result of a call."""

    data: dict[str, Any]
    text: str
    is_error: bool


class ServedAgent(Protocol):
    """One server with its only client."""

    notices: list[dict[str, Any]]
    """The server's unrequested messages."""

    def start(self) -> None:
        """Start the server and initialize the connection."""

    def call(self, tool: str, arguments: dict[str, Any]) -> ToolAnswer:
        """Call a tool. Raises `ServerGone`."""

    def send(self, tool: str, arguments: dict[str, Any]) -> None:
        """Call a tool without waiting for the answer."""

    def kill(self) -> None:
        """Kill the server as a crash would."""

    def reconnect(self) -> str:
        """Disconnect during any call, and connect again. Returns problems with the server's reaction."""

    def stop(self) -> str:
        """End the server as a client does. Returns problems with its end."""


def _request(number: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def _answer(message: dict[str, Any]) -> ToolAnswer:
    if "error" in message:
        return ToolAnswer({}, str(message["error"]), True)
    result = message["result"]
    text = "\n".join(block.get("text", "") for block in result["content"])
    return ToolAnswer(result.get("structuredContent") or {}, text, bool(result.get("isError")))


class ServerAgent(ABC):
    """A client and the server it started; subclasses define the transport."""

    def __init__(self, place: TrafficPlace, name: str) -> None:
        self._place, self._log = place, place.folder / f"{name}.log"
        self._number = 0
        self.notices: list[dict[str, Any]] = []
        """The server's unrequested messages."""
        self._running: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> "subprocess.Popen[bytes]":
        """The server process."""
        assert self._running is not None
        return self._running

    def call(self, tool: str, arguments: dict[str, Any]) -> ToolAnswer:
        """Call a tool. Raises `ServerGone`."""
        return _answer(self._ask("tools/call", {"name": tool, "arguments": arguments}))

    def kill(self) -> None:
        """Kill the server as a crash would."""
        self.running.kill()
        self._close()

    def _close(self) -> None:
        with self.running:
            self.running.wait(PATIENCE)

    @abstractmethod
    def _ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send a request and wait for its answer."""


class StdioAgent(ServerAgent):
    """A server on its pipes, as most clients run it."""

    def start(self) -> None:
        """Start the server and initialize the connection."""
        pipe = subprocess.PIPE
        with self._log.open("wb") as log:
            self._running = subprocess.Popen(
                ["engram", "mcp"], stdin=pipe, stdout=pipe, stderr=log, cwd=self._place.project, env=self._place.env
            )
        self._ask("initialize", HELLO)
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def send(self, tool: str, arguments: dict[str, Any]) -> None:
        """Call a tool without waiting for the answer."""
        self._number += 1
        self._write(_request(self._number, "tools/call", {"name": tool, "arguments": arguments}))

    def reconnect(self) -> str:
        """Disconnect, which ends the server, and start another one."""
        wrong = self.stop()
        self.start()
        return wrong

    def stop(self) -> str:
        """Close its stdin and wait for the end."""
        try:
            self.running.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()
            return f"the server did not end within {PATIENCE:.0f} s after its client left"
        wrong = [f"exit {self.running.returncode}"] if self.running.returncode else []
        return "; ".join(wrong + _complaints(self._log))

    def _ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._number += 1
        self._write(_request(self._number, method, params))
        assert self.running.stdout is not None
        # A stuck server is killed, which ends its pipe.
        patience = threading.Timer(PATIENCE, self.running.kill)
        patience.start()
        try:
            for line in self.running.stdout:
                message: dict[str, Any] = json.loads(line)
                if message.get("id") == self._number:
                    return message
                self.notices.append(message)
        finally:
            patience.cancel()
        raise ServerGone(f"no answer to {method}: {'; '.join(_complaints(self._log)) or 'it said nothing'}")

    def _write(self, message: dict[str, Any]) -> None:
        assert self.running.stdin is not None
        try:
            self.running.stdin.write(json.dumps(message).encode() + b"\n")
            self.running.stdin.flush()
        except OSError as error:
            raise ServerGone(f"it reads nothing: {error}") from None


class HttpAgent(ServerAgent):
    """A server over HTTP, with a token, and a client that opens a connection for every call."""

    def __init__(self, place: TrafficPlace, name: str) -> None:
        super().__init__(place, name)
        self._port, self._session = 0, ""

    def start(self) -> None:
        """Start the server on a free port and initialize the connection."""
        command = ["engram", "mcp", "--http", "--port", "0", "--token-file", str(self._place.token_file)]
        self._running = subprocess.Popen(
            command, stderr=subprocess.PIPE, cwd=self._place.project, env=self._place.env, stdin=subprocess.DEVNULL
        )
        assert self._running.stderr is not None
        line = self._running.stderr.readline().decode()
        self._port, self._session = urlsplit(line.rpartition(" ")[2].strip()).port or 0, ""
        if not self._port:
            raise ServerGone(f"it does not say where it listens: {line}")
        self._ask("initialize", HELLO)
        self._post({"jsonrpc": "2.0", "method": "notifications/initialized"})[0].close()

    def send(self, tool: str, arguments: dict[str, Any]) -> None:
        """Call a tool and close the connection."""
        self._number += 1
        connection = HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE)
        message = _request(self._number, "tools/call", {"name": tool, "arguments": arguments})
        connection.request("POST", "/mcp", json.dumps(message), {**HEADERS, "Mcp-Session-Id": self._session})
        connection.close()

    def reconnect(self) -> str:
        """Initialize the connection again; the connection of the call is already closed."""
        self._session = ""
        self._ask("initialize", HELLO)
        return ""

    def stop(self) -> str:
        """End it with a signal."""
        self.running.terminate()
        try:
            _, errors = self.running.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()
            return f"the server did not end within {PATIENCE:.0f} s after SIGTERM"
        wrong = [f"exit {self.running.returncode}"] if self.running.returncode not in (0, -15) else []
        return "; ".join(wrong + ([errors.decode("utf-8", "replace")] if errors else []))

    def _ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._number += 1
        try:
            connection, response = self._post(_request(self._number, method, params))
            body = response.read().decode()
            connection.close()
        except (OSError, HTTPException) as error:
            raise ServerGone(f"no answer to {method}: {type(error).__name__}: {error}") from None
        self._session = response.headers.get("mcp-session-id", self._session)
        lines = [line.removeprefix("data:") for line in body.splitlines() if line.startswith(("data:", "{"))]
        for message in (json.loads(line) for line in lines if line.strip()):
            if message.get("id") == self._number:
                found: dict[str, Any] = message
                return found
            self.notices.append(message)
        raise ServerGone(f"status {response.status} and no answer to {method}: {body[:300]}")

    def _post(self, message: dict[str, Any]) -> tuple[HTTPConnection, HTTPResponse]:
        connection = HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE)
        session = {"Mcp-Session-Id": self._session} if self._session else {}
        connection.request("POST", "/mcp", json.dumps(message), {**HEADERS, **session})
        return connection, connection.getresponse()


def _complaints(log: Any) -> list[str]:
    """The lines a server wrote to its log, none if there was no problem."""
    text = log.read_text("utf-8", "replace").strip()
    return [text[-600:]] if text else []
