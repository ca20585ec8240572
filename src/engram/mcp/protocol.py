"""The protocol side: the tools, prompts and resources that the server offers, and the handler of each request."""

import json
import re
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, unquote

import anyio
import anyio.to_thread
from mcp import MCPError
from mcp.server import Server, ServerRequestContext
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    CompleteRequestParams,
    CompleteResult,
    Completion,
    GetPromptRequestParams,
    GetPromptResult,
    InputRequiredResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    Prompt,
    PromptArgument,
    PromptMessage,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    SetLevelRequestParams,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)
from mcp.types import Tool as Listed
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from engram import __version__
from engram.mcp.calls import ClientLog, LazyMemory, ToolCaller
from engram.mcp.results import QUOTE_HEADING, Shown, redact_secrets
from engram.mcp.tools import TOOLS, Tool, caller_scopes, visible_scopes
from engram.model.errors import EngramError, NotFound
from engram.model.lazy import cached_property, dataclass
from engram.text.display import make_inert, notice, one_line, quote_text
from engram.verbs.calls import input_schema

if TYPE_CHECKING:
    from engram.client import Engram
    from engram.model.memory import Memory

FOLDER = Path(__file__).with_name("skills")
NAMES = ("recall", "prepare", "learn", "remember", "review", "enrich")
_PLACE = re.compile(r"\{(\w+)\}")
_GAP = re.compile(r"\n{3,}")
Context = ServerRequestContext[Any, Any]


@dataclass(frozen=True, slots=True)
class SkillPrompt:
    """One prompt: its purpose, its arguments, and its text with places for them."""

    name: str
    title: str
    description: str
    arguments: Mapping[str, str]
    text: str

    @classmethod
    def parse(cls, name: str, text: str) -> "SkillPrompt":
        """A prompt from its file."""
        head, _, body = text.partition("\n\n")
        title, description, *arguments = head.splitlines()
        pairs = (line.partition(": ") for line in arguments)
        return cls(name, title, description, {name: what for name, _, what in pairs}, body.strip())

    @property
    def listing(self) -> Prompt:
        """The prompt as the protocol lists it."""
        arguments = [
            PromptArgument(name=name, description=what, required=False) for name, what in self.arguments.items()
        ]
        return Prompt(name=self.name, title=self.title, description=self.description, arguments=arguments)

    def fill(self, given: Mapping[str, str]) -> str:
        """The text with the arguments in their places, quoted; a line whose argument is missing is left out."""
        lines = []
        for line in self.text.splitlines():
            if all(given.get(name, "").strip() for name in _PLACE.findall(line)):
                lines.append(_PLACE.sub(lambda found: quote_text(given[found[1]]), line))
        return _GAP.sub("\n\n", "\n".join(lines)).strip()


class PromptLibrary:
    """Lists the prompts and fills them in.

    The first lines of a file are its title, its description and its arguments (`name: what it is`); the text follows a
    blank line.
    """

    def __init__(self, prompts: Mapping[str, SkillPrompt] | None = None) -> None:
        self._given = prompts

    @cached_property
    def _prompts(self) -> Mapping[str, SkillPrompt]:
        if self._given is not None:
            return self._given
        return {name: SkillPrompt.parse(name, (FOLDER / f"{name}.md").read_text("utf-8")) for name in NAMES}

    async def list_prompts(self, _: Context, __: PaginatedRequestParams | None) -> ListPromptsResult:
        """Every prompt."""
        return ListPromptsResult(prompts=[prompt.listing for prompt in self._prompts.values()])

    async def get(self, _: Context, params: GetPromptRequestParams) -> GetPromptResult:
        """One prompt, filled in; an unknown name or argument is an error."""
        prompt = self._prompts.get(params.name)
        if prompt is None:
            name = quote_text(redact_secrets(params.name)[:60])
            raise MCPError(INVALID_PARAMS, f"Unknown prompt {name}; the prompts are {', '.join(self._prompts)}")
        given = params.arguments or {}
        if unknown := sorted(given.keys() - prompt.arguments.keys()):
            takes = ", ".join(prompt.arguments) or "none"
            raise MCPError(INVALID_PARAMS, f"Unknown argument {quote_text(unknown[0][:60])}; the arguments are {takes}")
        message = PromptMessage(role="user", content=TextContent(type="text", text=prompt.fill(given)))
        return GetPromptResult(description=prompt.description, messages=[message])


RECALL, STATUS, MEMORY = "memory://recall", "memory://status", "memory://memory/"
TEMPLATE = f"{MEMORY}{{id}}"
NOT_FOUND_UNTIL_2025 = -32002
"""The protocol's code for a resource that does not exist; since 2026 the code for an invalid parameter."""
MAX_LISTED_MEMORIES = 50
"""Maximum memories listed, newest first; any other can be read by its id."""
MAX_COMPLETIONS = 100
"""Maximum values of a completion in the protocol."""
_MAX_TITLE_CHARACTERS = 80
T = TypeVar("T")


class ResourceReader:
    """Lists and reads resources. Reading one does not count as a use, so it reinforces nothing."""

    def __init__(
        self,
        memory: LazyMemory,
        turn: anyio.CapacityLimiter,
        reads: "Mapping[str, Callable[[Engram], str]] | None" = None,
    ) -> None:
        self._memory, self._turn = memory, turn
        self._reads = _READS if reads is None else reads

    async def list_resources(self, _: Context, __: PaginatedRequestParams | None) -> ListResourcesResult:
        """List the resources: the two that always exist, then the newest memories."""
        return ListResourcesResult(resources=[*_ALWAYS, *await self._run(_newest)])

    async def templates(self, _: Context, __: PaginatedRequestParams | None) -> ListResourceTemplatesResult:
        """The address templates of the other memories."""
        one = ResourceTemplate(
            uri_template=TEMPLATE,
            name="memory",
            title="One memory",
            description="Everything about a memory seen from here, by id, name or alias.",
            mime_type="text/plain",
        )
        return ListResourceTemplatesResult(resource_templates=[one])

    async def read(self, ctx: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        """The text of a resource; an unknown address is an error."""
        uri = str(params.uri)
        work = self._reads.get(uri)
        if work is None and uri.startswith(MEMORY) and len(uri) > len(MEMORY):
            work = partial(_one, ref=unquote(uri.removeprefix(MEMORY)))
        if work is None:
            raise _not_found_error(ctx, uri, "memory://recall, memory://status and memory://memory/{id} can be read")
        try:
            text = await self._run(work)
        except NotFound as error:
            raise _not_found_error(ctx, uri, str(error)) from None
        kind = "application/json" if uri == STATUS else "text/plain"
        return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type=kind, text=text)])

    async def complete(self, _: Context, params: CompleteRequestParams) -> CompleteResult:
        """Ids and names of memories that begin with the typed text; nothing for any other argument."""
        found: list[str] = []
        if getattr(params.ref, "uri", "") == TEMPLATE and params.argument.name == "id":
            found = await self._run(partial(_matching, typed=params.argument.value))
        return CompleteResult(completion=Completion(values=found, total=len(found), has_more=False))

    async def _run(self, work: "Callable[[Engram], T]") -> T:
        """Run some work with the store, in its turn; an error of the store becomes one of the protocol."""
        try:
            return await anyio.to_thread.run_sync(lambda: work(self._memory.get()), limiter=self._turn)
        except NotFound:
            raise
        except (EngramError, OSError) as error:
            raise MCPError(INTERNAL_ERROR, notice(redact_secrets(str(error)))) from None


_ALWAYS = (
    Resource(
        uri=RECALL,
        name="recall",
        title="What is known here",
        description="The active memories of this project, its user and everyone, as a block for a prompt.",
        mime_type="text/plain",
    ),
    Resource(
        uri=STATUS,
        name="status",
        title="State of the memory",
        description="How many memories are seen from here, how many of them wait for review, and the scope here.",
        mime_type="application/json",
    ),
)


def _newest(mem: "Engram") -> list[Resource]:
    found = mem.list(limit=MAX_LISTED_MEMORIES, scope=visible_scopes(mem))
    return [_resource(memory) for memory in found]


def _resource(memory: "Memory") -> Resource:
    return Resource(
        uri=f"{MEMORY}{quote(memory.id, safe='')}",
        name=make_inert(memory.name or memory.id),
        title=make_inert(one_line(memory.statement))[:_MAX_TITLE_CHARACTERS],
        mime_type="text/plain",
    )


def _recall(mem: "Engram") -> str:
    from engram.gates.trust import HIGHEST_TIER

    return f"{QUOTE_HEADING}\n\n{mem.context_text(tier=HIGHEST_TIER)}"


def _status(mem: "Engram") -> str:
    status = {**mem.upkeep.status(scopes=visible_scopes(mem)), "scope": mem.scope_here()}
    return make_inert(json.dumps(status, ensure_ascii=True, indent=2, default=str))


def _one(mem: "Engram", ref: str) -> str:
    return Shown.of(mem.explain_memory(ref, scope=caller_scopes(mem))).as_text()


def _matching(mem: "Engram", typed: str) -> list[str]:
    wanted = typed.casefold()
    found = mem.list(limit=1000, scope=visible_scopes(mem))
    values = [name for memory in found for name in (memory.id, memory.name) if name.casefold().startswith(wanted)]
    return [make_inert(value) for value in dict.fromkeys(values)][:MAX_COMPLETIONS]


_READS = {RECALL: _recall, STATUS: _status}


def _not_found_error(ctx: Context, uri: str, advice: str) -> MCPError:
    text = f"No resource {quote_text(redact_secrets(uri)[:100])}; {notice(redact_secrets(advice))}"
    code = INVALID_PARAMS if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS else NOT_FOUND_UNTIL_2025
    return MCPError(code, text, {"uri": make_inert(redact_secrets(uri)[:200])})


NAME = "engram"
_EMPTY: tuple[Any, ...] = ("", [], None)
"""Defaults that readers assume anyway."""
INSTRUCTIONS = Path(__file__).with_name("instructions.txt")


class _Schema(GenerateJsonSchema):
    """Generates schemas without a title per field, which would only repeat the name and cost context."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def build(
    memory: LazyMemory,
    turn: anyio.CapacityLimiter,
    tools: Mapping[str, Tool] = TOOLS,
    prompts: PromptLibrary | None = None,
    resources: ResourceReader | None = None,
) -> Server[Any]:
    """The server. `turn` admits one call at a time, across all connections."""
    log = ClientLog()
    caller = ToolCaller(memory, turn, log)
    reader = resources or ResourceReader(memory, turn)
    library = prompts or PromptLibrary()

    async def list_tools(_: ServerRequestContext[Any], __: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[describe_tool(tool) for tool in tools.values()])

    def published_schema(name: str) -> Mapping[str, Any] | None:
        return describe_tool(tools[name]).input_schema if name in tools else None

    async def call_tool(
        ctx: ServerRequestContext[Any], params: CallToolRequestParams
    ) -> CallToolResult | InputRequiredResult:
        tool = tools.get(params.name)
        if tool is None:
            name = quote_text(redact_secrets(params.name)[:60])
            raise MCPError(INVALID_PARAMS, f"Unknown tool {name}; the tools are {', '.join(tools)}")
        return await caller.call(ctx, tool, params)

    server = Server[Any](
        NAME,
        version=__version__,
        title="Engram",
        description="A memory for AI agents: plain text its owner can read.",
        instructions=INSTRUCTIONS.read_text("utf-8"),
        get_tool_input_schema=published_schema,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=reader.list_resources,
        on_list_resource_templates=reader.templates,
        on_read_resource=reader.read,
        on_list_prompts=library.list_prompts,
        on_get_prompt=library.get,
        on_completion=reader.complete,
    )
    server.add_request_handler("logging/setLevel", SetLevelRequestParams, log.set_level)
    # A client of 2026 repeats a call with its user's answer, and must send back exactly what it was given.
    server.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=NAME))
    return server


@lru_cache(maxsize=64)
def describe_tool(tool: Tool) -> Listed:
    """A tool as the protocol lists it; cached, because a schema takes milliseconds."""
    hints = ToolAnnotations(
        title=tool.offer.title,
        read_only_hint=tool.offer.effect.is_read_only,
        destructive_hint=tool.offer.effect.is_destructive,
        idempotent_hint=tool.offer.effect.is_idempotent,
        open_world_hint=False,
    )
    return Listed(
        name=tool.name,
        title=tool.offer.title,
        description=tool.offer.description,
        input_schema=input_schema(tool.verb),
        output_schema=_output_schema(tool.returns),
        annotations=hints,
    )


def _output_schema(model: type[BaseModel]) -> dict[str, Any]:
    """A model's schema without parts that only cost context: titles, the models' docstrings, and uninformative defaults."""
    schema = model.model_json_schema(mode="serialization", schema_generator=_Schema)
    for part in (schema, *schema.get("$defs", {}).values()):
        part.pop("description", None)
        part.pop("title", None)
        for field in part.get("properties", {}).values():
            if "default" in field and field["default"] in _EMPTY:
                del field["default"]
    return schema
