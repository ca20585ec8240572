"""Data that others wrote is parsed in one package; every other use of a parser reads back what Engram itself wrote."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "engram"
PARSERS = {
    "json": {"load", "loads", "JSONDecoder"},
    "tomllib": {"load", "loads"},
    "yaml": {"load", "load_all", "safe_load", "safe_load_all", "full_load", "unsafe_load", "compose", "parse", "scan", "SafeLoader"},
    "ast": {"literal_eval"},
    "pickle": {"load", "loads"},
    "marshal": {"load", "loads"},
}  # fmt: skip
READERS = {
    "readers/json_list.py",
    "readers/data.py",
    "readers/yaml_parser.py",
    "mcp/transport.py",  # finds the id of a message that cannot be parsed, so it accepts more than a reader does
}
OWN_DATA = {
    "files of this package": {
        "capture/extraction/references.py",
        "capture/extraction/rules.py",
        "gates/policies/keys.py",
        "gates/policies/policy.py",
        "models/paraphrases.py",
        "models/remarks.py",
    },
    "what the same function has just rendered": {"capture/draft.py", "graph/graph.py", "model/arguments.py"},
    "a pipe to this program's own second process": {"recall/sources/reader.py"},
    "records of the index": {"cli/verbs/hook.py", "hooks/memory_index.py"},
    "files of the store; damage there is `MALFORMED`": {"disk.py"},
}
STORE = "store/"
"""The store reads its own files and rows; a file that came from somewhere else goes through a reader (`store/scopes.py`)."""
NOT_IN_STORE = {"store/scopes.py", "store/files/reconcile/team.py", "store/files/memories.py"}


def parser_uses(path: Path) -> Iterator[int]:
    """The lines of a module that name a parser, whether they call it or pass it on."""
    text = path.read_text("utf-8")
    if not any(module in text for module in PARSERS):
        return
    tree = ast.parse(text)
    modules: dict[str, str] = {}
    functions: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {(one.asname or one.name): one.name for one in node.names if one.name in PARSERS}
        elif isinstance(node, ast.ImportFrom) and node.module in PARSERS:
            functions |= {one.asname or one.name for one in node.names if one.name in PARSERS[node.module]}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.attr in PARSERS.get(modules.get(node.value.id, ""), ()):
                yield node.lineno
        elif isinstance(node, ast.Name) and node.id in functions:
            yield node.lineno


@cache
def uses_by_module() -> dict[str, list[int]]:
    found = {path.relative_to(SOURCE).as_posix(): list(parser_uses(path)) for path in SOURCE.rglob("*.py")}
    return {module: lines for module, lines in found.items() if lines}


def test_no_other_module_parses_what_others_wrote() -> None:
    allowed = READERS.union(*OWN_DATA.values())
    others = {
        module: lines
        for module, lines in uses_by_module().items()
        if module not in allowed and (not module.startswith(STORE) or module in NOT_IN_STORE)
    }
    assert others == {}, "use engram.readers, or list the module here with the reason"


def test_every_module_listed_here_uses_a_parser() -> None:
    assert READERS.union(*OWN_DATA.values()) - uses_by_module().keys() == set()


def test_the_scan_sees_every_way_to_name_a_parser(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(
        "import json as j\nfrom tomllib import loads as read\nimport yaml\n"
        "j.loads('1')\nread('')\nlist(map(j.loads, []))\nyaml.safe_load('')\n"
    )
    assert sorted(parser_uses(module)) == [4, 5, 6, 7]
