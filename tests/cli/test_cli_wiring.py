"""`engram init HARNESS` and the doctor's row about it, as processes of the user's meet them."""

from pathlib import Path

import pytest

from .conftest import Console


@pytest.fixture
def program(cli: Console, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The `engram` that is on the PATH of this user, whose home is empty; what it does is up to the test."""
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(cli.folder / "user"))
    program = cli.folder / "bin" / "engram"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    return program


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("#!/nonexistent\n", "cannot be started"),
        ("garbage", "cannot be started"),
        ("#!/bin/sh\necho '[1]'\n", "no answer of an MCP server"),
        ("#!/bin/sh\necho boom >&2\nexit 3\n", "with exit status 3: boom"),
    ],
)
def test_a_bad_server_is_one_row_of_the_doctors_report(cli: Console, program: Path, content: str, why: str) -> None:
    cli("init", "codex")
    program.write_text(content)
    examined = cli("doctor")
    assert examined.exit_code == 1
    rows = {line.split()[1]: line for line in examined.stdout.splitlines() if line[:1] in "✓!✗"}
    assert why in rows["wiring"]
    assert {"settings", "journal"} <= set(rows)
