"""The plugin in the real Claude Code: installed by its own commands, then one session against a scripted model on loopback.

The program comes from npm, is installed once per machine, and runs with an environment and a home of its own.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from engram import Engram
from engram.hooks import session_memo
from engram.store import hook_files
from tests.mcp.npm import programs

from .messages_endpoint import Endpoint, endpoint, text, tool

ROOT = Path(__file__).parents[2]
PROGRAM = "@anthropic-ai/claude-code@2.1.197"
EARLIER = "@anthropic-ai/claude-code@2.1.118"
"""A version that ignores the field `args` of a hook."""
SECONDS = 300
SERVER = "mcp__plugin_engram_engram__"
PROMPT = (
    "From now on we always use pnpm, never npm. Please start deploying the payments service to the staging cluster."
)

pytestmark = pytest.mark.heavy


@dataclass
class ClaudeCode:
    """The program in a home of its own, with the plugin installed."""

    program: Path
    folder: Path

    def env(self, url: str) -> dict[str, str]:
        """Nothing of the developer's environment but the way to the programs."""
        return {
            "PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self.folder / "user"),
            "ANTHROPIC_API_KEY": "sk-ant-made-up",
            "ANTHROPIC_BASE_URL": url,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        }

    def __call__(self, *words: str, url: str = "http://127.0.0.1:9") -> str:
        """Run a command that must succeed; what it prints."""
        ended = subprocess.run(
            [str(self.program), *words], env=self.env(url), cwd=self.folder / "project", stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=SECONDS, check=False,
        )  # fmt: skip
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    def session(self, prompt: str, script: Sequence[dict[str, Any]], allowed: str = "") -> Endpoint:
        """One session with a scripted model; the endpoint has every request."""
        with endpoint(script) as model:
            self("-p", prompt, "--allowedTools", allowed or "Bash", url=model.url)
        return model

    @property
    def home(self) -> Path:
        """Engram's home."""
        return self.folder / "user" / ".local" / "share" / "engram"

    def memory(self) -> Engram:
        """Engram's store."""
        return Engram.open(
            self.home, cache=self.folder / "user" / ".cache" / "engram", directory=self.folder / "project"
        )


@pytest.fixture(scope="module")
def claude(tmp_path_factory: pytest.TempPathFactory) -> ClaudeCode:
    return installed(PROGRAM, tmp_path_factory.mktemp("claude"))


def installed(package: str, folder: Path) -> ClaudeCode:
    """A version of the program, with the plugin installed."""
    for name in ("bin", "user", "project"):
        (folder / name).mkdir()
    program = folder / "bin" / "engram"
    source = f"import sys; sys.path.insert(0, {str(ROOT / 'src')!r}); from engram.__main__ import run; sys.exit(run())"
    program.write_text(f"#!{sys.executable}\n{source}\n")
    program.chmod(0o755)
    made = ClaudeCode(programs((package,)) / "claude", folder)
    made("plugin", "marketplace", "add", str(ROOT))
    made("plugin", "install", "engram@engram")
    return made


@pytest.mark.parametrize("place", [ROOT / "plugin", ROOT])
def test_the_program_accepts_the_plugin_and_the_marketplace(claude: ClaudeCode, place: Path) -> None:
    assert "Validation passed" in claude("plugin", "validate", "--strict", str(place))


def test_it_shows_what_the_plugin_brings(claude: ClaudeCode) -> None:
    shown = claude("plugin", "details", "engram@engram")
    assert "enrich, learn, migrate, prepare, recall, remember, review" in shown
    for event in ("SessionStart", "UserPromptSubmit", "PostToolBatch", "Stop", "PreCompact", "SessionEnd"):
        assert event in shown


def test_a_session_is_given_memories_uses_the_server_and_is_harvested(claude: ClaudeCode) -> None:
    with claude.memory() as mem:
        mem.add(
            "Deploys go through the staging cluster first", situation="deploying the payments service", scope="global"
        )
        mem.add("Never force-push to main", pinned=True, scope="global")
    commit = "git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m done"
    script = [
        tool("Bash", command=commit, description="commit"),
        tool("WaitForMcpServers"),
        tool(f"{SERVER}recall", question="how do deploys go?"),
        text("All done."),
    ]
    model = claude.session(PROMPT, script, f"Bash,{SERVER}recall")
    first, last = model.requests[0], model.requests[-1]
    assert "Never force-push to main" in json.dumps(first, ensure_ascii=False)
    assert "“Deploys go through the staging cluster first” When:" in json.dumps(first, ensure_ascii=False)
    assert session_memo.REMINDER in json.dumps(last, ensure_ascii=False)
    results = [block for message in last["messages"] for block in message["content"] if isinstance(block, dict)]
    recalled = [block for block in results if block.get("tool_use_id") == f"toolu_{SERVER}recall"]
    assert "Deploys go through the staging cluster first" in json.dumps(recalled, ensure_ascii=False)
    assert hook_files.count_waiting(claude.home) == 1
    with claude.memory() as mem:
        found = mem.harvest_spooled()
    assert [fact.outcome for fact in found.facts] == ["proposed"]
    assert "pnpm" in found.facts[0].statement


def test_a_version_that_ignores_arguments_runs_the_hooks_too(tmp_path: Path) -> None:
    claude = installed(EARLIER, tmp_path)
    with claude.memory() as mem:
        mem.add("Never force-push to main", pinned=True, scope="global")
    assert "Never force-push to main" in claude.session("Deploy it", [text("Done.")]).prompts
