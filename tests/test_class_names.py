"""One word, one meaning: a public class name is defined once in the whole tree."""

import re
from collections import defaultdict
from pathlib import Path

PUBLIC_CLASS = re.compile(r"^class ([A-Za-z]\w*)", re.MULTILINE)
SOURCE = Path(__file__).parent.parent / "src" / "engram"


def test_a_public_class_name_is_defined_once() -> None:
    homes: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted(SOURCE.rglob("*.py")):
        for name in PUBLIC_CLASS.findall(path.read_text("utf-8")):
            homes[name].append(str(path.relative_to(SOURCE)))
    assert homes, f"no class in {SOURCE}"
    twice = {name: places for name, places in homes.items() if len(places) > 1}
    assert twice == {}


def test_modules_are_named_after_things() -> None:
    """No gerunds: a module is a noun of the field."""
    nouns = {"briefing", "ranking", "rendering"}
    gerunds = [path for path in SOURCE.rglob("*ing.py") if path.stem not in nouns]
    assert gerunds == []
