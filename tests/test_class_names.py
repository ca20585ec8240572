"""One word, one meaning: a public class name is defined once in the whole tree."""

import ast
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "engram"
STILL_TWICE = frozenset(
    [
        "Anchor",
        "Anchored",
        "Answer",
        "Asked",
        "Asking",
        "Change",
        "Clause",
        "Conversation",
        "Decision",
        "Document",
        "Evidence",
        "Facts",
        "Feedback",
        "Found",
        "Injection",
        "Item",
        "Known",
        "Likeness",
        "Parts",
        "Placed",
        "Question",
        "Reached",
        "Reading",
        "Recall",
        "Row",
        "Section",
        "Span",
        "Standing",
        "Step",
        "Target",
        "TaskKeeping",
        "Turn",
        "Verdict",
        "Way",
        "Word",
    ]
)
"""Names that are not unique yet; take a name out when it is."""


def test_a_public_class_name_is_defined_once() -> None:
    homes: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(str(path.relative_to(SOURCE)))
    twice = {name: places for name, places in homes.items() if len(places) > 1 and name not in STILL_TWICE}
    assert twice == {}
