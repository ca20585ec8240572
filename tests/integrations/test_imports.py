"""A framework is loaded by its own adapter alone, and a missing one is named."""

import subprocess
import sys

import pytest

FRAMEWORKS = ("pydantic_ai", "langgraph", "langchain_core")


def run(code: str) -> str:
    """What a new interpreter prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_engram_and_its_integrations_loads_no_framework() -> None:
    assert run(f"import sys, engram, engram.integrations; print([n for n in {FRAMEWORKS} if n in sys.modules])") == "[]"


def test_an_adapter_loads_no_other_framework() -> None:
    loaded = "import sys; import engram.integrations.{}; print([n for n in ('pydantic_ai', 'langgraph', 'mcp') if n in sys.modules])"
    assert run(loaded.format("pydantic_ai")) == "['pydantic_ai']"
    assert run(loaded.format("langgraph")) == "['langgraph']"


@pytest.mark.parametrize(
    ("module", "package", "extra"),
    [("pydantic_ai", "pydantic_ai", "engram[pydantic-ai]"), ("langgraph", "langgraph.store.base", "engram[langgraph]")],
)
def test_a_missing_framework_is_named_with_the_command_that_installs_it(module: str, package: str, extra: str) -> None:
    code = f"import sys; sys.modules[{package!r}] = None\ntry:\n    import engram.integrations.{module}\nexcept ImportError as error:\n    print(error)"
    assert f"pip install '{extra}'" in run(code)


def test_the_toolset_answers_without_the_package_of_mcp() -> None:
    code = (
        "import sys; sys.modules['mcp'] = None\n"
        "import asyncio\nfrom pydantic_ai import Agent\nfrom pydantic_ai.models.test import TestModel\nfrom engram import Engram\n"
        "from engram.integrations.pydantic_ai import MemoryToolset\n"
        "with Engram.open(ephemeral=True) as mem:\n"
        "    agent = Agent(TestModel(), toolsets=[MemoryToolset(mem, scope='user:ana')])\n"
        "    print('recall' in asyncio.run(agent.run('Use every tool')).output)"
    )
    assert run(code) == "True"
