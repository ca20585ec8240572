"""No start of Engram runs Python modules of the directory in which it works, which may be a clone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from engram.agents.agent import find_agent
from engram.agents.wiring.registration import ServerCommand, config_file, server_command, unwire, wire
from engram.agents.wiring.wiring_health import wiring_finding
from tests.agents.conftest import home as home

PLANTED = "open({!r}, 'w').close()\n"
PLANTED_MODULES = ("anyio.py", "json.py", "numpy.py", "pathlib.py", "tempfile.py", "yaml.py")
OLD_FORMS = [("-m", "engram", "mcp"), ("-m", "engram.mcp")]


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory: a clone whose modules create the file `executed`."""
    folder = tmp_path / "clone"
    (folder / "engram").mkdir(parents=True)
    for name in (*PLANTED_MODULES, "engram/__init__.py"):
        (folder / name).write_text(PLANTED.format(str(tmp_path / "executed")))
    monkeypatch.chdir(folder)
    return folder


def run(words: list[str], tmp_path: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "ENGRAM_HOME": str(tmp_path / "store"), "PYTHONPATH": ""}
    environment.pop("PYTHONSAFEPATH", None)
    return subprocess.run(words, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


def test_the_entry_that_init_writes_without_a_program_runs_no_module_of_a_clone(
    clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda *_: None)
    monkeypatch.setattr("sys.executable", str(tmp_path / "bin" / "python"))
    assert server_command(is_shared=False, is_desktop=False).arguments == ("-P", "-m", "engram", "mcp")


@pytest.mark.parametrize("module", [["engram", "mcp"], ["engram.mcp"], ["engram.cli", "mcp"]])
def test_the_start_that_the_docs_name_runs_no_module_of_a_clone(clone: Path, tmp_path: Path, module: list[str]) -> None:
    ended = run([sys.executable, "-P", "-m", *module], tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize("module", [["engram", "mcp"], ["engram.mcp"], ["engram.cli", "mcp"]])
def test_a_start_without_p_runs_no_module_beside_the_package(clone: Path, tmp_path: Path, module: list[str]) -> None:
    (clone / "engram" / "__init__.py").unlink()
    (clone / "engram").rmdir()
    ended = run([sys.executable, "-m", *module], tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize("arguments", OLD_FORMS)
def test_the_doctor_reports_an_entry_of_an_earlier_version_and_runs_no_module_of_a_clone(
    clone: Path, home: Path, arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", "")
    config = config_file(find_agent("claude-code"), None)
    wire(config, ServerCommand(sys.executable, arguments, {"ENGRAM_HOME": str(home / "store")}))
    finding = wiring_finding(None)
    assert finding is not None and not finding.ok
    assert "runs Python modules of the directory" in finding.message
    assert "run `engram init claude-code` again" in finding.fix
    assert not (home / "executed").exists()


def test_init_replaces_and_removes_an_entry_of_an_earlier_version(home: Path) -> None:
    config = config_file(find_agent("codex"), None)
    wire(config, ServerCommand(sys.executable, ("-m", "engram", "mcp")))
    wire(config, ServerCommand(sys.executable, ("-P", "-m", "engram", "mcp")))
    assert '"-P", "-m"' in config.path.read_text()
    assert unwire(config).is_removed


def test_an_entry_that_sets_the_safe_path_is_no_problem(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engram.agents.wiring.wiring_health.ask_tools", lambda *_: "13")
    wire(
        config_file(find_agent("codex"), None),
        ServerCommand(sys.executable, ("-m", "engram.mcp"), {"PYTHONSAFEPATH": "1"}),
    )
    finding = wiring_finding(None)
    assert finding is not None and finding.level == "ok"


def test_the_doctor_does_not_start_a_program_by_a_relative_path(clone: Path, home: Path) -> None:
    program = clone / "bin" / "engram"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ntouch {home}/executed\n")
    program.chmod(0o755)
    wire(config_file(find_agent("cursor"), None), ServerCommand("bin/engram"))
    finding = wiring_finding(None)
    assert finding is not None and "was not started" in finding.message
    assert not (home / "executed").exists()
