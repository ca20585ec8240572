"""Servers for the conformance suite, which sends no token: this process adds it to every request, after the real checks of a port.

`real` is Engram's own server. `fixtures` has the tools, prompts and the resource that the suite's scenarios name, run by the same
protocol module: its turn, threads, errors, log, progress and questions.
"""

import sys
from typing import Any

import anyio
import uvicorn

from engram.client import Engram
from engram.mcp import http
from engram.mcp.approval import ApprovalQuestion
from engram.mcp.calls import Call, LazyMemory
from engram.mcp.protocol import PromptLibrary, ResourceReader, SkillPrompt, build
from engram.mcp.results import ToolResult
from engram.mcp.tools import Given, Tool
from engram.model.errors import Refused
from engram.verbs.declaration import Argument, NotOffered, Property, Text, ToolOffer, Verb

TOKEN = b"only-between-the-tests-and-this-process"


class Words(ToolResult):
    """A text."""

    text: str

    def as_text(self) -> str:
        """The text."""
        return self.text


class TwoFields(ApprovalQuestion):
    """The suite's question, which is not one of Engram's."""

    __slots__ = ()

    @property
    def form(self) -> dict[str, Any]:
        """A form of two texts."""
        fields = {name: {"type": "string", "description": name} for name in ("username", "email")}
        return {"type": "object", "properties": fields, "required": list(fields)}


def _simple(_: Call, __: Given) -> Words:
    return Words(text="This is a simple text response for testing.")


def _error(_: Call, __: Given) -> Words:
    raise Refused("This tool intentionally returns an error for testing")


def _logging(call: Call, _: Given) -> Words:
    for text in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        call.tell("info", text)
    return Words(text="done")


def _progress(call: Call, _: Given) -> Words:
    for done in (0, 50, 100):
        # The reports of a real tool are spread over time; those that come too soon are left out.
        call._next_report = 0
        call.step("Testing", done, 100)
    return Words(text="done")


def _elicitation(call: Call, given: Given) -> Words:
    if not call.can_ask:
        raise Refused("This client cannot ask its user")
    call.question = TwoFields("test", ("ENG-TEST",), "", given["message"], ())
    return Words(text="asked")


def declare(name: str, *arguments: Argument) -> Verb:
    """A tool that the suite names."""
    nowhere = NotOffered("a tool of the conformance suite")
    tool = ToolOffer(name, name, "A tool of the conformance suite.")
    return Verb(name, "", arguments, library=nowhere, command=nowhere, tool=tool)


TOOLS = {
    name: Tool(declare(name, *arguments), Words, run)
    for name, run, *arguments in (
        ("test_simple_text", _simple),
        ("test_error_handling", _error),
        ("test_tool_with_logging", _logging),
        ("test_tool_with_progress", _progress),
        ("test_elicitation", _elicitation, Argument("message", Text(), tool=Property())),
    )
}
PROMPTS = {
    "test_simple_prompt": SkillPrompt("test_simple_prompt", "Simple", "A prompt.", {}, "This is a simple prompt."),
    "test_prompt_with_arguments": SkillPrompt(
        "test_prompt_with_arguments", "Two", "A prompt.", {"arg1": "one", "arg2": "two"}, "With {arg1} and {arg2}."
    ),
}
RESOURCES = {"test://static-text": lambda _: "This is the content of the static text resource."}


def served(which: str) -> Any:
    """The application."""
    memory, turn = LazyMemory(lambda: Engram.open(ephemeral=True)), anyio.CapacityLimiter(1)
    if which == "real":
        server = build(memory, turn)
    else:
        server = build(memory, turn, TOOLS, PromptLibrary(PROMPTS), ResourceReader(memory, turn, RESOURCES))
    gated = http.app(server, http.HttpOptions(), TOKEN.decode())

    async def with_token(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            scope = {**scope, "headers": [*scope["headers"], (b"authorization", b"Bearer " + TOKEN)]}
        await gated(scope, receive, send)

    return with_token


async def main(which: str) -> None:
    """Serve on a free port of this machine, and say where."""
    listening = http.listener(http.HttpOptions(port=0))
    sys.stderr.write(f"serving MCP at http://127.0.0.1:{listening.getsockname()[1]}/mcp\n")
    sys.stderr.flush()
    await uvicorn.Server(uvicorn.Config(served(which), log_level="error")).serve(sockets=[listening])


if __name__ == "__main__":
    anyio.run(main, sys.argv[1])
