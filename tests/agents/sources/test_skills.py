"""Which skills are read: of the project, the user and plugins, of a plugin one version."""

import json

from tests.recall.sources.home import SourceHome

CACHE = ".claude/plugins/cache/market/tools"


def test_skills_of_the_project_up_the_tree_of_the_user_and_of_plugins(user: SourceHome) -> None:
    user.in_project("api/.claude/skills/a/SKILL.md", "a")
    user.in_project(".claude/skills/b/SKILL.md", "b")
    user.write(".claude/skills/c/SKILL.md", "c")
    user.write(f"{CACHE}/1.0.0/skills/d/SKILL.md", "d")
    assert user.documents("skill", user.project / "api") == [
        "code/acme/api/.claude/skills/a/SKILL.md", "code/acme/.claude/skills/b/SKILL.md", ".claude/skills/c/SKILL.md",
        f"{CACHE}/1.0.0/skills/d/SKILL.md",
    ]  # fmt: skip


def test_of_a_plugin_the_newest_version_is_read(user: SourceHome) -> None:
    for version in ("1.9.0", "1.10.0", "1.2.0"):
        user.write(f"{CACHE}/{version}/skills/d/SKILL.md", version)
    assert user.documents("skill") == [f"{CACHE}/1.10.0/skills/d/SKILL.md"]


def test_of_a_plugin_the_installed_version_is_read_where_claude_code_says_which(user: SourceHome) -> None:
    for version in ("1.9.0", "1.10.0"):
        user.write(f"{CACHE}/{version}/skills/d/SKILL.md", version)
    listed = {"version": 2, "plugins": {"tools@market": [{"installPath": str(user.home / CACHE / "1.9.0")}]}}
    user.write(".claude/plugins/installed_plugins.json", json.dumps(listed))
    assert user.documents("skill") == [f"{CACHE}/1.9.0/skills/d/SKILL.md"]
