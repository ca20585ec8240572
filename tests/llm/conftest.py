"""A server that replays a model's answers, and an environment without anyone's keys."""

from collections.abc import Iterator

import pytest

from tests.llm.replaying import Server, serving

KEYS = ("ENGRAM_MODEL_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OLLAMA_API_KEY")


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests must not depend on, nor send, what a developer's shell holds."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as running:
        yield running
