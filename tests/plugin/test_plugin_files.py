"""The plugin's own files: what Claude Code reads, and what its one script does without the program."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from engram import __version__
from engram.hooks.runner import SECONDS
from tests.tables import table

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "plugin"
SKILLS = ("enrich", "learn", "migrate", "prepare", "recall", "remember", "review")


def loaded(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def script(folder: Path, event: str, program: str = "") -> "subprocess.CompletedProcess[str]":
    """Run the plugin's script where `engram` is this program, or nothing."""
    binaries = folder / "bin"
    binaries.mkdir(exist_ok=True)
    if program:
        (binaries / "engram").write_text(f"#!/bin/sh\n{program}\n")
        (binaries / "engram").chmod(0o755)
    env = {"PATH": f"{binaries}{os.pathsep}/usr/bin{os.pathsep}/bin", "HOME": str(folder)}
    command = ["/bin/sh", str(PLUGIN / "hooks" / "engram.sh"), event]
    return subprocess.run(command, env=env, input="{}", text=True, capture_output=True, check=False)


def test_the_manifest_has_the_version_of_the_program() -> None:
    assert loaded(PLUGIN / ".claude-plugin" / "plugin.json")["version"] == __version__


def test_the_marketplace_offers_the_plugin() -> None:
    (plugin,) = loaded(ROOT / ".claude-plugin" / "marketplace.json")["plugins"]
    assert (ROOT / plugin["source"]).resolve() == PLUGIN
    assert plugin["name"] == loaded(PLUGIN / ".claude-plugin" / "plugin.json")["name"]


@table("name", SKILLS)
def test_a_skill_is_short_and_says_when_to_use_it(name: str) -> None:
    text = (PLUGIN / "skills" / name / "SKILL.md").read_text("utf-8")
    fields = yaml.safe_load(text.split("---")[1])
    assert fields["name"] == name
    assert "Use " in fields["description"]
    assert len(text.splitlines()) < 200


def test_there_are_no_other_skills() -> None:
    assert sorted(path.name for path in (PLUGIN / "skills").iterdir()) == sorted(SKILLS)


COMMANDS = [
    hook["command"]
    for groups in loaded(PLUGIN / "hooks" / "hooks.json")["hooks"].values()
    for group in groups
    for hook in group["hooks"]
]


def test_each_hook_is_one_command_line() -> None:
    """Versions of Claude Code that do not know `args` would run a bare `sh`, which executes the payload on its stdin."""
    expected = [f'sh "${{CLAUDE_PLUGIN_ROOT}}/hooks/engram.sh" {event} || exit 0' for event in SECONDS]
    assert sorted(COMMANDS) == sorted(expected)
    assert '"args"' not in (PLUGIN / "hooks" / "hooks.json").read_text("utf-8")


@table("shell", ["sh", "bash", "zsh"])
def test_a_shell_runs_the_script_and_not_the_payload(shell: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    program = shutil.which(shell)
    if program is None:
        return
    folder = tmp_path_factory.mktemp("a plugin's root")
    (folder / "hooks").mkdir()
    (folder / "hooks" / "engram.sh").write_text('echo "$1:$(cat)"\n')
    payload = f"touch {folder}/executed\n"
    env = {"PATH": "/usr/bin:/bin", "CLAUDE_PLUGIN_ROOT": str(folder)}
    for command in COMMANDS:
        ended = subprocess.run(
            [program, "-c", command], env=env, input=payload, text=True, capture_output=True, check=True
        )
        assert ended.stdout.rstrip() == f"{command.split()[-4]}:{payload.rstrip()}"
    (folder / "hooks" / "engram.sh").unlink()
    for command in COMMANDS:
        ended = subprocess.run(
            [program, "-c", command], env=env, input=payload, text=True, capture_output=True, check=False
        )
        assert (ended.returncode, ended.stdout) == (0, ""), "a plugin that was removed blocks no session"
    assert not (folder / "executed").exists()


@pytest.mark.parametrize("event", sorted(SECONDS))
def test_without_the_program_only_a_sessions_start_says_how_to_install_it(tmp_path: Path, event: str) -> None:
    ended = script(tmp_path, event)
    assert (ended.returncode, ended.stderr) == (0, "")
    if event == "session-start":
        assert "pipx install '.[mcp]'" in json.loads(ended.stdout)["systemMessage"]
    else:
        assert ended.stdout == ""


@pytest.mark.parametrize("event", sorted(SECONDS))
def test_a_program_that_fails_never_blocks_the_session(tmp_path: Path, event: str) -> None:
    ended = script(tmp_path, event, "echo trouble >&2; exit 2")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ("engram doctor" in ended.stdout) == (event == "session-start")


def test_what_the_program_answers_is_passed_on(tmp_path: Path) -> None:
    assert script(tmp_path, "prompt", 'echo "{\\"event\\": \\"$2\\"}"').stdout == '{"event": "prompt"}\n'


def test_the_program_is_found_in_the_users_own_folder(tmp_path: Path) -> None:
    folder = tmp_path / ".local" / "bin"
    folder.mkdir(parents=True)
    (folder / "engram").write_text("#!/bin/sh\necho found\n")
    (folder / "engram").chmod(0o755)
    assert script(tmp_path, "prompt").stdout == "found\n"


def test_the_server_says_on_stderr_that_the_program_is_missing(tmp_path: Path) -> None:
    ended = script(tmp_path, "mcp")
    assert ended.returncode == 1
    assert "pipx install" in ended.stderr
