"""A Pydantic AI agent with a memory: it recalls what it was taught, learns, and starts its next run with what it knows.

The model is scripted, so it runs without a network; with a real one, `Agent("anthropic:claude-sonnet-4-5", …)` is all that changes.

Run it: `python examples/pydantic_ai_agent.py` (needs `pip install '.[pydantic-ai]'`)
"""
# ruff: noqa: T201

import asyncio
from dataclasses import dataclass

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from engram import AsyncEngram
from engram.integrations.pydantic_ai import MemoryInjection, MemoryToolset

LESSON = "Refunds over 500 euros need a second approval from the finance team"


@dataclass
class Customer:
    """Who the agent talks to: the application knows, the model is not asked."""

    name: str


def scripted(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """A stand-in for a model: it uses its tools as a good one would."""
    last = messages[-1].parts[-1]
    if isinstance(last, ToolReturnPart):
        return ModelResponse(parts=[TextPart(str(last.content))])
    asked = str(last.content) if isinstance(last, UserPromptPart) else ""
    if asked.startswith("Please remember"):
        return ModelResponse(parts=[ToolCallPart("remember", {"fact": "Ana prefers e-mail to phone calls"})])
    if asked.endswith("?"):
        return ModelResponse(parts=[ToolCallPart("recall", {"question": asked})])
    known = [part for message in messages for part in message.parts if isinstance(part, UserPromptPart)][:-1]
    return ModelResponse(parts=[TextPart(str(known[-1].content) if known else "I know nothing about that yet.")])


async def main() -> None:
    """One memory for all customers; what one of them says is nobody else's."""
    async with AsyncEngram.open(ephemeral=True) as mem:
        await mem.add(LESSON, scope="global")
        agent = Agent(
            FunctionModel(scripted),
            deps_type=Customer,
            toolsets=[MemoryToolset[Customer](mem, scope=lambda ctx: f"user:{ctx.deps.name}")],
            capabilities=[MemoryInjection[Customer](mem, scope=lambda ctx: f"user:{ctx.deps.name}")],
        )
        for name, request in (
            ("ana", "Who has to approve a refund of 800 euros?"),
            ("ana", "Please remember that I prefer e-mail to phone calls."),
            ("ana", "Tell Ana by phone or e-mail that her refund of 800 euros is delayed."),
            ("ben", "Does Ana prefer e-mail or phone calls?"),
        ):
            result = await agent.run(request, deps=Customer(name))
            print(f"{name}: {request}\n{result.output}\n")


if __name__ == "__main__":
    asyncio.run(main())
