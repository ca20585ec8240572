"""The server over streamable HTTP: who gets in, and that it serves what the one on stdin and stdout serves."""

import json
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from engram.mcp.http import HostGate, HttpOptions, is_loopback, listener, named_hosts, read_token
from engram.model.errors import InvalidInput, Refused
from tests.mcp.talking import PATIENCE, UNREADABLE, Address, environment, listening, talking_over_http
from tests.tables import table

HELLO = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}},
}  # fmt: skip
OWN_NAMES = ("localhost", "127.0.0.1", "[::1]", "memory.example.org")
ACCEPT = {"accept": "application/json, text/event-stream"}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    """A server that the tests of this file share."""
    with listening(tmp_path_factory.mktemp("store")) as address:
        yield address


async def nothing(*_: object) -> None:
    """An application that is not asked."""


def post(address: Address, body: Any = None, **headers: str) -> httpx2.Response:
    """One request, with the token unless another one is given."""
    given = {"authorization": f"Bearer {address.token}", **ACCEPT, "content-type": "application/json", **headers}
    content = body if isinstance(body, bytes) else json.dumps(body or HELLO).encode()
    return httpx2.post(address.url, content=content, headers=given, timeout=PATIENCE)


@pytest.mark.parametrize("given", ["", "Bearer", "Bearer wrong", "Basic 0123456789abcdef0123456789abcdef", "Bearer é"])
def test_without_the_token_nobody_gets_in(served: Address, given: str) -> None:
    refused = post(served, authorization=given.encode())  # type: ignore[arg-type]
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"].startswith("Bearer")
    assert "mcp-session-id" not in refused.headers


OTHER_HOSTS = [
    "evil.example", "127.0.0.1.evil.example:80", "localhost.evil.example", "localhost:80@evil.com", "localhost@evil.com",
    "evil.com@localhost", "localhost:80:80", "localhost:", "localhost:0", "localhost:65536", "localhost:-1", "localhost:1e3",
    "localhost:80/x", "localhost:80?x", "localhost:80#x", "localhost:80, evil.com", "localhost evil.com", "localhost:٣", "localhost.", "localhost..", "xlocalhost",
    "::1", "[::1", "[::1]x", "[::1]:80@evil.com", "[::2]", "[::ffff:127.0.0.1]", "127.1", "127.0.0.1:80@evil.com", "127.0.0.1%00", "",
]  # fmt: skip
OWN_HOSTS = ["localhost", "localhost:80", "LOCALHOST:8377", "127.0.0.1", "127.0.0.1:65535", "[::1]", "[::1]:1", "memory.example.org", "Memory.Example.Org:443"]  # fmt: skip


@table("host", OTHER_HOSTS)
def test_another_host_name_is_refused(host: str, served: Address) -> None:
    assert post(served, host=host.encode()).status_code in (421, 400)  # type: ignore[arg-type]
    assert not HostGate(nothing, OWN_NAMES).is_expected(host)


@table("host", OWN_HOSTS)
def test_its_own_names_are_served(host: str, served: Address) -> None:
    assert HostGate(nothing, OWN_NAMES).is_expected(host)
    assert post(served, host=host).status_code == (421 if host.lower().startswith("memory") else 200)


def raw_status(address: Address, *headers: str) -> int:
    """The status of a request whose headers no client library would send."""
    host, _, port = address.url.removeprefix("http://").partition("/")[0].partition(":")
    lines = ["GET /mcp HTTP/1.1", *headers, f"Authorization: Bearer {address.token}", "Connection: close"]
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        return int(connection.makefile("rb").readline().split()[1])


@table(
    "headers",
    [["Host: localhost", "Host: evil.com"], ["Host: evil.com", "Host: localhost"], ["Host: localhost", "Host: localhost"], [], ["Host:"], ["Host: localhost:80\t@evil.com"]],
)  # fmt: skip
def test_another_number_of_host_headers_than_one_is_refused(headers: list[str], served: Address) -> None:
    assert raw_status(served, *headers) in (400, 421)


def test_a_request_that_is_written_by_hand_is_served(served: Address) -> None:
    """So that the refusals above are those of their headers."""
    assert raw_status(served, "Host: localhost") not in (400, 421, 401, 403)


@table(
    "origin",
    ["http://evil.example", "null", "NULL", "", "https://localhost.evil.example", "http://localhost:1@evil.com", "http://localhost@evil.com", "http://localhost:1/evil",
     "http://localhost:1?x", "localhost", "//localhost", "file://localhost", "ftp://localhost", "chrome-extension://localhost", "javascript:localhost", "http://", "http:///localhost",
     "http://localhost http://evil.com", "http://localhost, http://evil.com", "http://[::1]@evil.com", "http://localhost.", "http://localhost:99999"],
)  # fmt: skip
def test_a_page_of_another_origin_is_refused(origin: str, served: Address) -> None:
    assert post(served, origin=origin).status_code == 403


@table(
    "origin",
    ["http://localhost:6274", "https://localhost", "HTTP://LocalHost:1", "http://127.0.0.1:8377", "http://[::1]:5"],
)
def test_a_page_of_this_machine_with_the_token_is_served(origin: str, served: Address) -> None:
    assert post(served, origin=origin).status_code == 200


def test_two_origins_are_refused(served: Address) -> None:
    pairs = [("origin", "http://localhost"), ("origin", "http://evil.com"), ("authorization", f"Bearer {served.token}"), *ACCEPT.items(), ("content-type", "application/json")]  # fmt: skip
    assert (
        httpx2.post(served.url, content=json.dumps(HELLO).encode(), headers=pairs, timeout=PATIENCE).status_code == 403
    )


@pytest.mark.parametrize(("mode", "bird"), [("legacy", "heron"), ("auto", "bittern")])
def test_the_sdks_client_learns_and_recalls_over_http(served: Address, tmp_path: Path, mode: str, bird: str) -> None:
    with talking_over_http(served, tmp_path, mode=mode) as agent:
        assert len(agent.tools()) == 13
        learned = agent.ask("learn", statement=f"The {bird} service answers on port 4317 wherever it runs")
        found = agent.ask("recall", question=f"On which port does the {bird} service answer?")
        assert found["memories"][0]["id"] == learned["memory"]["id"]


def test_two_clients_of_one_server_see_each_others_memories(served: Address, tmp_path: Path) -> None:
    with talking_over_http(served, tmp_path) as one, talking_over_http(served, tmp_path, mode="legacy") as other:
        one.ask("learn", statement="The egret importer reads its mapping from a spreadsheet in the attic")
        assert "spreadsheet" in other.ask("recall", question="Where does the egret importer read its mapping?")["text"]


def test_half_a_surrogate_pair_is_answered_over_http(served: Address) -> None:
    session = post(served).headers["mcp-session-id"]
    call = {"name": "recall", "arguments": {"question": "what about \ud83d tabs?"}}
    body = json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}).encode()
    assert rb"\ud83d" in body
    answer = post(served, body, **{"mcp-session-id": session})
    assert answer.status_code == 200
    assert '"isError":false' in answer.text


@table("text, known, code", UNREADABLE)
def test_a_message_that_cannot_be_read_is_answered_over_http(
    served: Address, text: str, known: object, code: int
) -> None:
    answer = post(served, text.encode("utf-8", "surrogateescape"))
    error = answer.json()
    assert (answer.status_code, error["id"], error["error"]["code"]) == (400, known, code)
    assert "pydantic" not in answer.text


def test_a_request_that_is_too_long_is_refused_and_the_server_goes_on(served: Address) -> None:
    assert post(served, b'{"a": "' + b"x" * (5 * 1024 * 1024) + b'"}').status_code == 413
    assert post(served).status_code == 200


def test_a_client_that_disconnects_in_the_middle_of_a_call_loses_no_write(tmp_path: Path) -> None:
    with listening(tmp_path) as address:
        session = post(address).headers["mcp-session-id"]
        call = {
            "name": "learn",
            "arguments": {"statement": "The bittern ledger is closed on the last Friday of a quarter"},
        }
        body = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}

        async def leave() -> None:
            headers = {**ACCEPT, "mcp-session-id": session}
            async with address.client() as client, client.stream("POST", address.url, json=body, headers=headers):
                pass

        anyio.run(leave)
        with talking_over_http(address, tmp_path) as agent:
            # Calls run one after another: this one is answered once the other is done.
            assert len(agent.ask("list", status="any")["memories"]) == 1


def test_an_address_can_be_connected_to_from_the_moment_it_is_known() -> None:
    with listener(HttpOptions(port=0)) as waiting, socket.create_connection(waiting.getsockname(), PATIENCE):
        pass


def test_the_server_ends_on_a_signal_while_a_client_is_connected(tmp_path: Path) -> None:
    with listening(tmp_path) as address:
        post(address)
        address.process.terminate()
        assert address.process.wait(PATIENCE) in (0, -15)
        assert address.process.stderr is not None
        assert b"Traceback" not in address.process.stderr.read()


def test_a_token_is_made_and_shown_once_where_no_file_is_named(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "engram.cli", "mcp", "--http", "--port", "0"]
    env = {**os.environ, **environment(tmp_path)}
    with subprocess.Popen(command, cwd=tmp_path, env=env, stderr=subprocess.PIPE) as running:
        try:
            assert running.stderr is not None
            url = running.stderr.readline().decode().rpartition(" ")[2].strip()
            token = running.stderr.readline().decode().rpartition(" ")[2].strip()
            assert len(token) >= 32
            assert token not in Path(f"/proc/{running.pid}/cmdline").read_text() if sys.platform == "linux" else True
            assert post(Address(url, token, running)).status_code == 200
        finally:
            running.terminate()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "memory.example.org"])
def test_an_address_that_others_reach_needs_a_token_file(host: str) -> None:
    with pytest.raises(Refused, match="--token-file"):
        HttpOptions(host=host).validate()


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_an_address_of_this_machine_needs_none(host: str) -> None:
    assert is_loopback(host)
    assert HttpOptions(host=host).validate().host == host


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604])
def test_a_token_file_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "token"
    file.write_text("0123456789abcdef")
    file.chmod(mode)
    with pytest.raises(Refused, match="chmod 600"):
        read_token(file)


@pytest.mark.parametrize("text", ["", "short", "two words that are long", "é" * 20])
def test_a_token_that_cannot_be_sent_or_is_too_short_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "token"
    file.write_text(text)
    file.chmod(stat.S_IRUSR | stat.S_IWUSR)
    with pytest.raises(InvalidInput, match="at least 16"):
        read_token(file)


@pytest.mark.parametrize("name", ["", "http://x", "*", "a b", "u@x"])
def test_what_is_no_host_name_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="--allow-host"):
        named_hosts([name])


def test_another_name_is_served_where_it_is_allowed(tmp_path: Path) -> None:
    with listening(tmp_path, "--allow-host", "Memory.example.org") as address:
        assert post(address, host="memory.example.org").status_code == 200
        assert post(address, host="other.example.org").status_code == 421


def test_a_port_that_is_taken_is_said(served: Address, tmp_path: Path) -> None:
    port = served.url.rpartition(":")[2].partition("/")[0]
    command = [sys.executable, "-m", "engram.cli", "mcp", "--http", "--port", port]
    env = {**os.environ, **environment(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 1
    assert port in done.stderr and "in use" in done.stderr


def test_options_of_http_are_refused_without_it(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "engram.cli", "mcp", "--port", "80"]
    env = {**os.environ, **environment(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, "--http" in done.stderr) == (2, True)
