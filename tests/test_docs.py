"""Docs that cannot rot: every Python snippet runs, every public name and call is described."""

import inspect
import re
import tomllib
from pathlib import Path

import pytest

import engram
from engram.client import Engram
from tests.tables import table

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)#:]+)\)")
SNIPPETS = [
    pytest.param(code, id=f"{page.name}-{number}")
    for page in PAGES
    for number, code in enumerate(_PYTHON.findall(page.read_text("utf-8")), 1)
]


@pytest.mark.parametrize("code", SNIPPETS)
def test_every_python_snippet_runs(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENGRAM_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ENGRAM_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "snippet", "exec"), {"__name__": "snippet"})


def test_there_are_snippets() -> None:
    assert len(SNIPPETS) >= 6


@table("name", engram.__all__)
def test_every_public_name_is_described_and_can_be_imported(name: str) -> None:
    assert getattr(engram, name) is not None
    assert f"`{name}`" in (ROOT / "docs" / "python.md").read_text("utf-8")


def test_every_call_of_the_client_is_described_and_documented() -> None:
    page = (ROOT / "docs" / "python.md").read_text("utf-8")
    calls = [name for name, _ in inspect.getmembers(Engram, inspect.isroutine) if not name.startswith("_")]
    named = set(re.findall(r"(?<![\w.])(?:mem\.|Engram\.)?([a-z_]+)(?=[`(])", page))
    assert [name for name in calls if name not in named and name != "close"] == []
    assert [name for name in calls if not inspect.getdoc(getattr(Engram, name))] == []


@table("page", PAGES)
def test_every_link_leads_somewhere(page: Path) -> None:
    broken = [link for link in _LINK.findall(page.read_text("utf-8")) if not (page.parent / link).exists()]
    assert broken == []


def test_every_file_of_the_architecture_page_exists() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    named = set(re.findall(r"`([a-z_]+(?:/[a-z_]+)*(?:/|\.py))`", page))
    assert len(named) > 40
    assert [path for path in named if not ((ROOT / "src" / "engram" / path).exists() or (ROOT / path).exists())] == []


def test_every_public_function_of_the_package_has_a_docstring() -> None:
    missing = []
    for path in sorted((ROOT / "src" / "engram").rglob("*.py")):
        for match in re.finditer(
            r"^(?:class|def|    def) ([a-z]\w*|[A-Z]\w*)[^\n]*", path.read_text("utf-8"), re.MULTILINE
        ):
            body = path.read_text("utf-8")[match.start() :]
            signature_end = re.search(r":\n", body)
            following = body[signature_end.end() :].lstrip() if signature_end else ""
            if not following.startswith(('"""', 'r"""')) and not match.group(0).startswith("    def"):
                missing.append(f"{path.relative_to(ROOT)}: {match.group(1)}")
    assert missing == []


_INSTALL = re.compile(r"\bpipx? (?:install|upgrade|uninstall|inject) ['\"]?([\w.-]+)(?:\[([\w,-]+)\])?")
_ELSEWHERE = ("torch",)
"""What other programs than Engram need, such as the script that makes the embedder."""


def test_every_command_that_installs_engram_names_the_package_and_an_extra_that_exist() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    places = [*PAGES, *ROOT.glob("plugin/**/*"), *ROOT.glob("examples/*.py"), *ROOT.glob("src/**/*.py")]
    texts = {path: path.read_text("utf-8") for path in places if path.suffix in (".md", ".sh", ".py", ".json")}
    found = [(path, *match) for path, text in texts.items() for match in _INSTALL.findall(text)]
    named = [one for one in found if one[1] not in _ELSEWHERE]
    assert len(named) > 20
    assert [one for one in named if one[1] not in (project["name"], ".")] == []
    extras = project["optional-dependencies"]
    assert [one for one in named if not all(extra in extras for extra in filter(None, one[2].split(",")))] == []
    assert list(project["scripts"]) == ["engram"]
