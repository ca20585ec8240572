"""The prompts: how to recall, prepare, learn, remember, review and enrich with this memory, as text files in `skills/`.

The first lines of a file are its title, its description and its arguments (`name: what it is`); the text follows a blank line.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mcp import MCPError
from mcp.server import ServerRequestContext
from mcp.types import (
    INVALID_PARAMS,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    PaginatedRequestParams,
    Prompt,
    PromptArgument,
    PromptMessage,
    TextContent,
)

from engram.mcp.redaction import redact_secrets
from engram.model.lazy import cached_property, dataclass
from engram.text.display import quote_text

FOLDER = Path(__file__).with_name("skills")
NAMES = ("recall", "prepare", "learn", "remember", "review", "enrich")
_PLACE = re.compile(r"\{(\w+)\}")
_GAP = re.compile(r"\n{3,}")
Context = ServerRequestContext[Any, Any]


@dataclass(frozen=True, slots=True)
class SkillPrompt:
    """One prompt: what it is for, what it takes, and its text with places for the arguments."""

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
        """The text with the arguments in their places, quoted; a line whose argument is not given is left out."""
        lines = []
        for line in self.text.splitlines():
            if all(given.get(name, "").strip() for name in _PLACE.findall(line)):
                lines.append(_PLACE.sub(lambda found: quote_text(given[found[1]]), line))
        return _GAP.sub("\n\n", "\n".join(lines)).strip()


class PromptLibrary:
    """Lists the prompts and fills them in."""

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
