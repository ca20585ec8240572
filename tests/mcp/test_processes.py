"""The server as a process: how it starts, how it ends, and several of them on one store."""

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from mcp import Client

from engram.mcp.calls import LazyMemory
from engram.mcp.protocol import build
from engram.model.errors import EngramError, StoreBusy
from tests.mcp.talking import PATIENCE, data, exchange, initialize, kept, process, talking

FACTS = [
    "Invoices older than ninety days go to the collections queue before the nightly ledger run",
    "The search cluster keeps two replicas because a single one lost shards during the spring outage",
    "Feature flags are removed within a fortnight after the rollout reached every tenant",
    "Passengers under twelve need a guardian's telephone number on the booking form",
    "Thumbnails are generated on upload since the lazy path overloaded the image workers",
    "Kubernetes upgrades happen on Tuesdays when both platform engineers are in the office",
    "The mobile application caches maps for offline hikers and expires them after a month",
    "Translators receive new strings on Fridays through the shared spreadsheet",
    "Our payment provider retries webhooks for three days with exponential delays",
    "Audit records are append only and shipped to cold storage at midnight",
    "Designers hand over icons as vector files with a transparent background",
    "Load tests replay last November's traffic against an isolated environment",
]


@pytest.mark.heavy
def test_three_servers_learning_at_once_lose_nothing_and_keep_nothing_twice(tmp_path: Path) -> None:
    *apart, shared = FACTS
    with ExitStack() as stack:
        agents = [stack.enter_context(talking(tmp_path)) for _ in range(3)]
        calls = [agents[i % 3].begin("learn", statement=fact) for i, fact in enumerate(apart)]
        together = [agent.begin("learn", statement=shared) for agent in agents]
        made = [data(call.result(PATIENCE))["memory"]["id"] for call in calls]
        outcomes = sorted(data(call.result(PATIENCE))["outcome"] for call in together)
        seen = agents[0].ask("recall", question=shared)["memories"][0]["statement"]
    assert len(set(made)) == len(apart)
    assert outcomes == ["CREATED", "DUPLICATE", "DUPLICATE"]
    assert seen == shared
    assert sorted(memory.statement for memory in kept(tmp_path)) == sorted(FACTS)


def test_the_server_ends_when_its_stdin_closes(tmp_path: Path) -> None:
    with process(tmp_path) as server:
        assert initialize(server)["serverInfo"]["name"] == "engram"
        exchange(server, "tools/call", name="learn", arguments={"statement": FACTS[1]})
        out, errors = server.communicate(timeout=PATIENCE)
        assert (out, errors, server.returncode) == (b"", b"", 0)
        assert not _group_lives(server.pid)
    assert [memory.statement for memory in kept(tmp_path)] == [FACTS[1]]


def test_calls_are_finished_and_answered_when_stdin_closes_meanwhile(tmp_path: Path) -> None:
    facts = FACTS[4:7]
    requests = [
        {"id": n, "method": "tools/call", "params": {"name": "learn", "arguments": {"statement": fact}}}
        for n, fact in enumerate(facts)
    ]
    with process(tmp_path) as server:
        initialize(server)
        text = "".join(json.dumps({"jsonrpc": "2.0", **request}) + "\n" for request in requests)
        out, errors = server.communicate(text.encode(), timeout=PATIENCE)
        assert (errors, server.returncode) == (b"", 0)
    answers = [json.loads(line) for line in out.splitlines()]
    assert {one["id"]: one["result"]["structuredContent"]["outcome"] for one in answers} == dict.fromkeys(
        range(len(facts)), "CREATED"
    )
    assert sorted(memory.statement for memory in kept(tmp_path)) == sorted(facts)


def test_the_server_ends_when_the_client_goes_without_a_word(tmp_path: Path) -> None:
    with process(tmp_path) as server:
        out, errors = server.communicate(timeout=PATIENCE)
        assert (out, errors, server.returncode) == (b"", b"", 0)
    assert not (tmp_path / "home").exists()


LISTINGS = b"".join(json.dumps({"jsonrpc": "2.0", "id": n, "method": "tools/list"}).encode() + b"\n" for n in range(50))
"""Requests whose answers do not fit into a pipe."""


def test_the_server_ends_when_its_client_closes_stdin_and_reads_no_answer(tmp_path: Path) -> None:
    with process(tmp_path) as server:
        initialize(server)
        exchange(server, "tools/call", name="learn", arguments={"statement": FACTS[8]})
        assert server.stdin is not None and server.stderr is not None
        server.stdin.write(LISTINGS)
        server.stdin.close()
        assert server.wait(PATIENCE) == 1
        assert server.stderr.read() == b""
        assert not _group_lives(server.pid)
    assert [memory.statement for memory in kept(tmp_path)] == [FACTS[8]]


def test_a_client_that_reads_late_gets_every_answer(tmp_path: Path) -> None:
    with process(tmp_path) as server:
        initialize(server)
        assert server.stdin is not None and server.stdout is not None
        server.stdin.write(LISTINGS)
        server.stdin.flush()
        with pytest.raises(subprocess.TimeoutExpired):
            server.wait(7)  # longer than a client may take that has closed stdin
        server.stdin.close()
        with pytest.raises(subprocess.TimeoutExpired):
            server.wait(2)
        assert sorted(json.loads(line)["id"] for line in server.stdout) == list(range(50))
        assert server.wait(PATIENCE) == 0


def test_the_server_ends_when_its_client_closes_stdout(tmp_path: Path) -> None:
    with process(tmp_path) as server:
        initialize(server)
        assert server.stdin is not None and server.stdout is not None and server.stderr is not None
        server.stdout.close()
        server.stdin.write(LISTINGS)
        server.stdin.flush()
        assert server.wait(PATIENCE) == 1
        assert server.stderr.read() == b""
        server.stdin.close()


@pytest.mark.parametrize("told", [signal.SIGTERM, signal.SIGINT])
def test_the_server_ends_on_a_signal_while_its_stdin_is_open(tmp_path: Path, told: signal.Signals) -> None:
    with process(tmp_path) as server:
        initialize(server)
        exchange(server, "tools/call", name="learn", arguments={"statement": FACTS[2]})
        server.send_signal(told)
        assert server.wait(PATIENCE) == 0
        assert server.stderr is not None
        assert server.stderr.read() == b""
        assert not _group_lives(server.pid)
    assert [memory.statement for memory in kept(tmp_path)] == [FACTS[2]]


def test_the_verb_serves_the_store_it_is_given(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    with process(tmp_path, [sys.executable, "-m", "engram.cli", "mcp", "--home", str(elsewhere)]) as server:
        initialize(server)
        exchange(server, "tools/call", name="learn", arguments={"statement": FACTS[3]})
        out, errors = server.communicate(timeout=PATIENCE)
    assert (out, errors, server.returncode) == (b"", b"", 0)
    assert list(elsewhere.rglob("*.yaml"))
    assert not (tmp_path / "home").exists()


def test_calls_wait_for_their_turn_while_the_protocol_goes_on() -> None:
    entered, go_on = threading.Event(), threading.Event()
    opens: list[None] = []

    def slow() -> Any:
        opens.append(None)
        entered.set()
        go_on.wait(PATIENCE)
        raise StoreBusy("still busy")

    async def conversation() -> None:
        server = build(LazyMemory(slow), anyio.CapacityLimiter(1))
        async with Client(server, read_timeout_seconds=PATIENCE) as client, anyio.create_task_group() as calls:
            for question in ("first", "second"):
                calls.start_soon(client.call_tool, "recall", {"question": question})
            assert await anyio.to_thread.run_sync(entered.wait, PATIENCE)
            assert (await client.list_tools()).tools
            assert len(opens) == 1
            go_on.set()

    anyio.run(conversation)
    assert len(opens) == 2


def test_nothing_heavy_is_loaded_before_the_first_call(tmp_path: Path) -> None:
    """A handshake and the list of tools wait for the protocol's package and for nothing else."""
    program = (
        "import anyio, sys\n"
        "from engram.mcp import protocol as serving\n"
        "from engram.mcp.tools import TOOLS\n"
        "serving.build(serving.LazyMemory(lambda: None), anyio.CapacityLimiter(1))\n"
        "[serving.describe_tool(tool) for tool in TOOLS.values()]\n"
        "print(*[name for name in ('engram.client', 'engram.gates', 'engram.store', 'numpy', 'rich', 'ryaml') if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE, cwd=tmp_path
    )
    assert (done.stdout.strip(), done.stderr) == ("", "")


def test_a_missing_package_is_said_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import engram.mcp
    from engram.mcp.server import main

    monkeypatch.delattr(engram.mcp, "protocol", raising=False)
    monkeypatch.setitem(sys.modules, "engram.mcp.protocol", None)
    with pytest.raises(EngramError, match=r"pip install 'engram\[mcp\]'"):
        main()


def _group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
