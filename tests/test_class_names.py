"""One word, one meaning: a public class name is defined once in the whole tree."""

import ast
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "engram"


def test_a_public_class_name_is_defined_once() -> None:
    homes: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(str(path.relative_to(SOURCE)))
    twice = {name: places for name, places in homes.items() if len(places) > 1}
    assert twice == {}


def test_modules_are_named_after_things() -> None:
    """No gerunds: a module is a noun of the field."""
    nouns = {"briefing", "ranking", "rendering"}
    gerunds = [path for path in SOURCE.rglob("*ing.py") if path.stem not in nouns]
    assert gerunds == []
