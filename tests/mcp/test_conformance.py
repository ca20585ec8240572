"""The server under the protocol's own tools: the official conformance suite, and the inspector's command line."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.mcp.npm import environment, programs
from tests.mcp.talking import COMMAND, PATIENCE, listening
from tests.mcp.talking import environment as of_the_store

pytestmark = pytest.mark.heavy

OF_ANY_SERVER = (
    "server-initialize",
    "logging-set-level",
    "ping",
    "completion-complete",
    "tools-list",
    "resources-list",
    "prompts-list",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
)
"""Scenarios that need nothing but a server."""
OF_THE_MACHINERY = (
    "tools-call-simple-text",
    "tools-call-error",
    "tools-call-with-logging",
    "tools-call-with-progress",
    "tools-call-elicitation",
    "resources-read-text",
    "prompts-get-simple",
    "prompts-get-with-args",
)
"""Scenarios that name a tool, prompt or resource: what they try is Engram's, the named thing is a fixture."""
LEFT_OUT = {
    "tools-call-image": "Engram returns text and data, no images",
    "tools-call-audio": "no sounds",
    "tools-call-embedded-resource": "no embedded resources",
    "tools-call-mixed-content": "nor a mixture of them",
    "tools-call-sampling": "Engram never asks the client's model",
    "json-schema-2020-12": "tries a schema that its fixture copies; Engram's schemas are generated",
    "elicitation-sep1034-defaults": "Engram's one form is a choice without a default",
    "elicitation-sep1330-enums": "as before",
    "server-sse-polling": "streams are not closed in the middle of a call",
    "resources-read-binary": "every resource is text",
    "resources-templates-read": "Engram's template is memory://memory/{id}; test_offers.py reads it",
    "resources-subscribe": "the capability is not offered",
    "resources-unsubscribe": "as before",
    "prompts-get-embedded-resource": "prompts are text",
    "prompts-get-with-image": "as before",
}


@pytest.fixture(scope="module")
def node() -> Path:
    """The folder of the programs."""
    return programs()


@pytest.fixture(scope="module", params=["real", "fixtures"])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """A server without a token of the client's: which one, and where."""
    command = [sys.executable, "-m", "tests.mcp.fixture_server", request.param]
    with listening(tmp_path_factory.mktemp("store"), command=command) as address:
        yield request.param, address.url


def conformance(node: Path, *options: str) -> str:
    """What the suite prints."""
    command = [str(node / "conformance"), *options]
    done = subprocess.run(command, env=environment(node), capture_output=True, text=True, timeout=PATIENCE)
    return done.stdout + done.stderr


def test_every_scenario_that_applies_passes(node: Path, served: tuple[str, str]) -> None:
    which, url = served
    wanted = OF_ANY_SERVER if which == "real" else OF_THE_MACHINERY
    reports = {name: conformance(node, "server", "--url", url, "--scenario", name) for name in wanted}
    failed = {name: text[-1500:] for name, text in reports.items() if "0 failed" not in text or "Passed: 0/" in text}
    assert failed == {}


def test_no_scenario_is_unaccounted_for(node: Path) -> None:
    listed = conformance(node, "list").partition("Server scenarios")[2].partition("Client scenarios")[0]
    names = {line.split()[1] for line in listed.splitlines() if line.startswith("  - ")}
    assert names == {*OF_ANY_SERVER, *OF_THE_MACHINERY, *LEFT_OUT}


def inspect(
    node: Path, tmp_path: Path, *options: str, target: list[str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """One run of the inspector's command line, which starts the server itself."""
    variables = [part for name, value in of_the_store(tmp_path).items() for part in ("-e", f"{name}={value}")]
    command = [str(node / "mcp-inspector"), "--cli", *(target or [*variables, *COMMAND]), *options]
    return subprocess.run(
        command, cwd=tmp_path, env=environment(node), capture_output=True, text=True, timeout=PATIENCE
    )


def answer(done: "subprocess.CompletedProcess[str]") -> Any:
    """What the inspector got."""
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_inspector_finds_no_fault_with_the_schemas(node: Path, tmp_path: Path) -> None:
    done = inspect(node, tmp_path, "--method", "tools/list", "--strict")
    assert len(answer(done)["tools"]) == 13
    assert done.stderr == ""


def test_the_inspector_calls_a_tool_and_reads_what_it_stored(node: Path, tmp_path: Path) -> None:
    fact = "fact=I prefer pnpm over npm for every new repository"
    stored = answer(inspect(node, tmp_path, "--method", "tools/call", "--tool-name", "remember", "--tool-arg", fact))
    memory = stored["structuredContent"]["memory"]["id"]
    read = answer(inspect(node, tmp_path, "--method", "resources/read", "--uri", f"memory://memory/{memory}"))
    assert "pnpm" in read["contents"][0]["text"]


def test_the_inspector_gets_a_prompt(node: Path, tmp_path: Path) -> None:
    got = answer(
        inspect(node, tmp_path, "--method", "prompts/get", "--prompt-name", "prepare", "--prompt-args", "task=deploy")
    )
    assert "“deploy”" in got["messages"][0]["content"]["text"]


def test_the_inspector_is_served_over_http_with_the_token_and_not_without(node: Path, tmp_path: Path) -> None:
    with listening(tmp_path) as address:
        header = ["--header", f"Authorization: Bearer {address.token}"]
        listed = inspect(node, tmp_path, "--method", "tools/list", target=[address.url, *header])
        assert len(answer(listed)["tools"]) == 13
        assert inspect(node, tmp_path, "--method", "tools/list", target=[address.url]).returncode != 0
