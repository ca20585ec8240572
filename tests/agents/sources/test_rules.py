"""Which rules apply: up the tree, the user's, and by their globs."""

from pathlib import Path

import pytest

from engram.agents.sources.frontmatter import globs_of, matches
from tests.recall.sources.home import SourceHome
from tests.tables import table


def test_rules_are_found_in_folders_up_the_tree_and_of_the_user(user: SourceHome) -> None:
    user.in_project("api/.claude/rules/a.md", "a")
    user.in_project(".claude/rules/deep/er/b.md", "b")
    user.write("code/.claude/rules/c.md", "c")
    user.write(".claude/rules/d.md", "d")
    user.in_project(".claude/rules/readme.txt", "no rule")
    assert user.documents("rule", user.project / "api") == [
        "code/acme/api/.claude/rules/a.md", "code/acme/.claude/rules/deep/er/b.md", "code/.claude/rules/c.md",
        ".claude/rules/d.md",
    ]  # fmt: skip


def test_a_rule_with_globs_applies_where_a_file_matches(user: SourceHome) -> None:
    user.in_project("src/web/app.tsx")
    user.in_project(".claude/rules/typescript.md", "---\npaths:\n  - src/**/*.{ts,tsx}\n---\nStrict null checks.")
    user.in_project(".claude/rules/python.md", "---\npaths: **/*.py\n---\nUse ruff.")
    assert user.documents("rule") == ["code/acme/.claude/rules/typescript.md"]


@pytest.mark.parametrize("head", ["paths: [unclosed", "paths: 5", ": : ["])
def test_a_rule_whose_header_cannot_be_read_applies(user: SourceHome, head: str) -> None:
    user.in_project(".claude/rules/broken.md", f"---\n{head}\n---\nStrict null checks.")
    assert user.documents("rule") == ["code/acme/.claude/rules/broken.md"]


@table(
    ("pattern", "path", "expected"),
    [
        ("*.py", "a.py", True),
        ("*.py", "src/a.py", False),
        ("**/*.py", "a.py", True),
        ("**/*.py", "src/deep/a.py", True),
        ("src/**", "src/deep/a.py", True),
        ("src/**/*.{ts,tsx}", "src/a.tsx", True),
        ("src/**/*.{ts,tsx}", "src/a.js", False),
        ("{src,lib}/*.{a,b{c,d}}", "lib/x.bd", True),
        ("./src/?.py", "src/a.py", True),
        ("src/[ab].py", "src/b.py", True),
        ("src/[!ab].py", "src/b.py", False),
        ("a.b", "axb", False),
        ("{unclosed", "{unclosed", True),
        ("[", "[", True),
    ],
)
def test_globs(pattern: str, path: str, expected: bool) -> None:
    assert matches(pattern, path) is expected


def test_braces_that_multiply_are_bounded() -> None:
    assert not matches("{a,b}" * 40, "c")


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ('paths: "src/**/*.py"', ["src/**/*.py"]),
        ("paths: [a/*.py, 'b/*.{x,y}']", ["a/*.py", "b/*.{x,y}"]),
        ("paths: a/*.py, b/*.{x,y}", ["a/*.py", "b/*.{x,y}"]),
        ('paths:\n- **/*.ts\n- "b"\nother: 1', ["**/*.ts", "b"]),
        ("paths: src/[ab]", ["src/[ab]"]),
        ("description: none", []),
        ("paths: [unclosed", []),
        ("paths: 5", []),
        ("paths: true", []),
        ("paths:\n- 1.5\n- src/*.py", ["src/*.py"]),
        ("paths: {src: deep}", []),
        ("paths:", []),
    ],
)
def test_globs_are_read_as_people_write_them(head: str, expected: list[str]) -> None:
    assert globs_of(f"---\n{head}\n---\nText") == expected


def test_linked_folders_of_rules_are_entered_once_and_only_inside(user: SourceHome, tmp_path: Path) -> None:
    user.in_project("shared/x.md", "x")
    rules = user.project / ".claude" / "rules"
    rules.mkdir(parents=True)
    (rules / "inside").symlink_to(user.project / "shared")
    (rules / "loop").symlink_to(rules)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "y.md").write_text("y")
    (rules / "outside").symlink_to(outside)
    assert user.documents("rule") == ["code/acme/.claude/rules/inside/x.md"]


def test_a_linked_rule_that_leads_elsewhere_is_not_read(user: SourceHome, tmp_path: Path) -> None:
    rules = user.in_project(".claude/rules/own.md", "own").parent
    (tmp_path / "secret.md").write_text("not yours")
    (rules / "linked.md").symlink_to(tmp_path / "secret.md")
    assert user.documents("rule") == ["code/acme/.claude/rules/own.md"]
