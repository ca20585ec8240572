"""One declaration per verb: its arguments, their limits and help, and where it is offered.

The command line, the MCP server, the library's argument checks and the docs read these. Looking one up imports only its
family.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engram.verbs.declaration import Group, Verb

SECTIONS: dict[str, dict[str, str]] = {
    "Everyday": {
        "learn": "memories", "remember": "memories", "add": "memories", "recall": "retrieval", "search": "retrieval",
        "inject": "retrieval", "prepare": "retrieval", "timeline": "retrieval", "show": "retrieval", "list": "retrieval",
        "update": "memories", "revise": "memories", "pin": "memories", "feedback": "memories", "reinforce": "memories",
        "forget": "memories",
    },
    "Review": {
        "queue": "review", "review": "review", "promote": "review", "reject": "review", "edit": "review",
        "merge": "review", "separate": "review", "verify": "memories", "undo": "memories", "history": "retrieval",
        "lineage": "retrieval", "relate": "graph", "traverse": "graph", "trust": "review", "scope": "review",
        "distrust": "review",
    },
    "Tasks and documents": {
        "session": "sessions", "task": "work", "capture": "work", "harvest": "work", "ingest": "work", "cite": "work",
        "enrich": "memories", "ledger": "work",
    },
    "Store": {
        "init": "store", "status": "store", "doctor": "store", "config": "store", "index": "store", "gen-context": "store",
        "sync": "store", "prune": "store", "pause": "store", "resume": "store", "backup": "store", "restore": "store",
        "import": "store", "export": "store", "migrate": "store", "bench": "program", "demo": "program",
        "version": "program",
    },
    "Server": {"mcp": "program", "worker": "program", "hook": "program"},
}  # fmt: skip
"""Every verb of the command line and the module of this package that declares it, in the order of the help."""
FAMILIES = {verb: family for verbs in SECTIONS.values() for verb, family in verbs.items()}
"""The module that declares each verb."""


def find_declaration(name: str) -> "Verb | Group":
    """The declaration of a verb or group of the command line."""
    family = import_module(f"{__name__}.{FAMILIES[name]}")
    found: Verb | Group = family.COMMANDS[name]
    return found
