"""Every coding agent is one record and one folder of fixtures: adding one touches nothing else."""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import engram
from engram.agents.agent import CodingAgent, agent_names, agent_with_hooks, all_agents, find_agent, session_store
from engram.agents.reference import rows, with_table
from engram.agents.sources.places import SourcePlaces
from engram.agents.wiring.registration import ServerCommand, config_file, unwire, wire
from engram.agents.wiring.wiring_health import wiring_finding
from engram.model.errors import InvalidInput
from engram.recall.sources.catalog import SourceCatalog
from tests.clock import Clock
from tests.repositories import make_repository

FIXTURES = Path(__file__).parent / "known"
ROOT = Path(__file__).parents[2]
SOURCE = Path(engram.__file__).parent
SERVER = ServerCommand("engram", environment={"ENGRAM_HOME": "/home/dev/notes"})
each_agent = pytest.mark.parametrize("agent", all_agents(), ids=lambda agent: agent.name)


@each_agent
def test_a_record_is_complete(agent: CodingAgent) -> None:
    known, instructions = agent.configuration, agent.instructions
    assert agent.name in agent_names() and find_agent(agent.name) is agent
    assert agent.title and known.project_files
    assert instructions.context_file in (*instructions.up_the_tree, *instructions.at_root)
    assert not agent.page or (ROOT / "docs" / agent.page).exists()
    if agent.sessions is not None:
        assert agent.sessions.signature or agent.sessions.marks
        assert {"sessions", "read"} <= set(dir(agent.sessions.make_reader()))
    agent.load_finders()


def test_agents_have_different_names_titles_and_files() -> None:
    agents = all_agents()
    files = [config_file(agent, None, {"HOME": "/h"}).path for agent in agents]
    for values in ([agent.title for agent in agents], files, [agent.configuration.project_files for agent in agents]):
        assert len(set(values)) == len(agents)


def test_every_agent_has_a_folder_of_fixtures() -> None:
    assert sorted(path.name for path in FIXTURES.iterdir()) == sorted(agent_names())
    with_sessions = {path.parent.name for path in FIXTURES.glob("*/session.*")}
    assert with_sessions == {agent.name for agent in all_agents() if agent.sessions is not None}


def test_one_agent_runs_the_hooks() -> None:
    assert [agent for agent in all_agents() if agent.hook_events] == [agent_with_hooks()]


@each_agent
def test_a_variable_of_an_agent_moves_its_files(agent: CodingAgent) -> None:
    home = Path("/h")

    def paths(environment: dict[str, str]) -> list[Path]:
        finds = [agent.folder.find, agent.configuration.find_file]
        finds += [agent.sessions.find_root] if agent.sessions is not None else []
        return [find(home, environment) for find in finds]

    assert [name for name in agent.variables if paths({name: "/elsewhere"}) == paths({})] == []


@each_agent
def test_a_configuration_of_the_program_gets_the_entry_and_loses_it(home: Path, agent: CodingAgent) -> None:
    before, after = (next((FIXTURES / agent.name).glob(f"{name}.*")).read_text("utf-8") for name in ("config", "wired"))
    config = config_file(agent, None)
    config.path.parent.mkdir(parents=True, exist_ok=True)
    config.path.write_text(before, "utf-8")
    wire(config, SERVER)
    assert config.path.read_text("utf-8") == after
    assert config.server_in(config.parse(after)) == SERVER
    unwire(config)
    assert config.path.read_text("utf-8") == before


@each_agent
def test_a_projects_file_and_its_folders_go_with_the_entry(home: Path, agent: CodingAgent) -> None:
    project = home / "acme"
    make_repository(project)
    config = config_file(agent, project)
    wire(config, ServerCommand("engram"))
    assert config.is_shared and config.path.is_file()
    unwire(config)
    assert [path.name for path in project.iterdir()] == [".git"]


@each_agent
def test_the_doctor_asks_the_server_of_an_agent(
    home: Path, agent: CodingAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engram.agents.wiring.wiring_health.ask_tools", lambda *_: "13")
    assert wiring_finding(None) is None
    monkeypatch.setattr("shutil.which", lambda *_, **__: "/usr/bin/engram")
    config = config_file(agent, None)
    wire(config, SERVER)
    finding = wiring_finding(None)
    assert finding is not None and f"{agent.name} ({config.path}): 13 tools" in finding.message


@each_agent
def test_the_instructions_of_an_agent_are_sources(home: Path, agent: CodingAgent) -> None:
    project, known = home / "acme", agent.instructions
    make_repository(project)
    places = SourcePlaces(project, {"HOME": str(home)})
    files = [project / name for name in (*known.up_the_tree, *known.at_root)]
    files += [places.user_folder(agent) / name for name in known.of_user]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{file.name}: we deploy on Thursdays", "utf-8")
    found = SourceCatalog(places, home / "cache", Clock()).documents
    assert sorted(source.path for source in found if source.kind == "instructions") == sorted(files)


def test_only_agents_with_sessions_are_harvested() -> None:
    with pytest.raises(InvalidInput, match="choose claude-code, codex, opencode or all"):
        session_store("cursor")


@pytest.mark.skipif(sys.platform != "linux", reason="the page shows the paths of Linux")
def test_the_table_of_the_docs_has_every_agent() -> None:
    page = (ROOT / "docs" / "harnesses.md").read_text("utf-8")
    assert with_table(page, rows()) == page, "run `make docs`"


# -- nothing else names an agent

EXAMPLE = "harness:codex, import:pack.json"
"""Names of sources, as help texts show them."""


def _names() -> re.Pattern[str]:
    """How code could name an agent: its name, title, variables, files and folders."""
    found = set[str]()
    for agent in all_agents():
        known = agent.instructions
        found |= {agent.name, agent.title, f".{agent.name.partition('-')[0]}", agent.inside_variable}
        found |= {*agent.variables, *known.up_the_tree, *known.at_root, *known.of_user}
    standards = {"", "AGENTS.md", "XDG_CONFIG_HOME", "XDG_DATA_HOME"}
    words = "|".join(re.escape(name) for name in sorted(found - standards))
    return re.compile(rf"(?<![\w.-])(?:{words})(?![\w-])", re.IGNORECASE)


def _strings(tree: ast.Module) -> Iterator[ast.Constant]:
    """The texts of a module, less its docstrings and the help of its verbs."""
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and len(node.args) > 1]
    docs |= {id(call.args[1]) for call in calls if isinstance(call.func, ast.Name) and call.func.id == "Verb"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node


def test_no_module_outside_of_agents_names_one() -> None:
    names, found = _names(), []
    for path in sorted(SOURCE.rglob("*.py")):
        module = path.relative_to(SOURCE).as_posix()
        texts = [] if module.startswith("agents/") else list(_strings(ast.parse(path.read_text("utf-8"))))
        matches = ((node.lineno, names.search(str(node.value).replace(EXAMPLE, ""))) for node in texts)
        found += [f"{module}:{line}: {match[0]}" for line, match in matches if match]
    assert found == []
