"""A configured model refines what sources say; whatever it does, nothing is shown that no source says, and its outage costs only quality."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from engram import Engram
from engram.llm.model import LanguageModel, ModelSettings
from engram.recall.questions import model_refiner
from engram.store.states import StoreSpend
from tests.llm.replaying import Server, raw, said, serving
from tests.recall.sources.home import NOW, SourceHome


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for name in ("ENGRAM_MODEL_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OLLAMA_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with serving() as running:
        yield running


@pytest.fixture
def mem(user: SourceHome, server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engram]:
    monkeypatch.setenv("HOME", str(user.home))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    user.in_project(
        "CLAUDE.md", "# A\nDeploys go through staging. Nobody deploys on Fridays.\n# B\nDeploys need a ticket.\n"
    )
    with Engram.open(
        user.folder / "store", cache=user.folder / "cache", directory=user.project, clock=lambda: NOW
    ) as opened:
        settings = ModelSettings(f"openai:small@{server.url}/v1", timeout_s=10)
        opened.settings = replace(opened.settings, model=settings.name)
        opened.__dict__["model"] = LanguageModel(
            settings, StoreSpend(opened.store), clock=lambda: NOW, wait=server.waits.append
        )
        # How the question is understood is not what is tested here.
        opened._recaller.refine = None
        yield opened


def choices(*chosen: tuple[int, str]) -> object:
    return {"choices": [{"number": number, "quote": quote} for number, quote in chosen]}


def test_the_model_chooses_the_passages_and_their_words_and_sums_up(mem: Engram, server: Server) -> None:
    server.script = [said(choices((2, "Deploys need a ticket."))), said({"summary": "A ticket is needed (CLAUDE.md)."})]
    plain = [section.text for section in mem.recall_context("how do deploys work?").sections]
    server.script = [said(choices((1, "Nobody deploys on Fridays."))), said({"summary": "No deploys on Fridays."})]
    found = mem.recall_context("how do deploys work?")
    assert len(plain) == len(found.sections) == 1
    assert found.summary == "No deploys on Fridays."
    assert found.text.splitlines()[1] == "“No deploys on Fridays.”"
    assert len(found.text.encode()) <= 10_240


def test_words_that_no_source_says_are_not_shown(mem: Engram, server: Server) -> None:
    server.script = [said(choices((1, "Deploys skip all tests."), (99, "x"), (1, "again"))), said({"summary": ""})]
    found = mem.recall_context("how do deploys work?")
    assert len(found.sections) == 1
    assert "skip all tests" not in found.text


def test_an_outage_leaves_the_deterministic_answer_and_is_said_once(mem: Engram, server: Server) -> None:
    server.script = [raw({"error": {"message": "no such model"}}, 404)]
    found = mem.recall_context("how do deploys work?")
    assert {section.text for section in found.sections} == {
        "Deploys go through staging. Nobody deploys on Fridays.", "Deploys need a ticket.",
    }  # fmt: skip
    assert found.summary == ""
    assert [warning for warning in found.warnings if "without the model" in warning]
    assert len(server.requests) == 1


@pytest.mark.parametrize("passed_on", [True, False])
def test_a_model_that_could_not_read_the_question_is_not_asked_again(
    mem: Engram, server: Server, passed_on: bool
) -> None:
    assert mem.model is not None
    refine = model_refiner(mem.model)
    mem._recaller.refine = lambda question, at: refine(replace(question, confidence=0.0), at)
    server.script = [raw({"error": {"message": "no such model"}}, 404)]
    question = "how do deploys work?"
    found = mem.recall_context(question, memories=mem.recall(question) if passed_on else None)
    assert len(found.sections) == 2
    assert [warning for warning in found.warnings if "no such model" in warning] == list(found.warnings)
    assert len(server.requests) == len(found.warnings) == 1
