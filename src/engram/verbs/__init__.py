"""One declaration per verb: its arguments, their limits and help, and where it is offered.

The command line, the MCP server, the library's argument checks and the docs read these. To look one up imports its family alone.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engram.verbs.declaration import Group, Verb

SECTIONS: dict[str, dict[str, str]] = {
    "Everyday": {
        "learn": "writing", "remember": "writing", "add": "writing", "recall": "reading", "search": "reading",
        "inject": "reading", "prepare": "reading", "timeline": "reading", "show": "reading", "list": "reading",
        "update": "writing", "revise": "writing", "pin": "writing", "feedback": "writing", "reinforce": "writing",
        "forget": "writing",
    },
    "Review": {
        "queue": "reviewing", "review": "reviewing", "promote": "reviewing", "reject": "reviewing", "edit": "reviewing",
        "merge": "reviewing", "separate": "reviewing", "verify": "writing", "undo": "writing", "history": "reading",
        "lineage": "reading", "relate": "graph", "traverse": "graph", "trust": "reviewing", "scope": "reviewing",
        "distrust": "reviewing",
    },
    "Tasks and documents": {
        "session": "sessions", "task": "work", "capture": "work", "harvest": "work", "ingest": "work", "cite": "work",
        "enrich": "writing", "ledger": "work",
    },
    "Store": {
        "init": "store", "status": "store", "doctor": "store", "config": "store", "index": "store", "gen-context": "store",
        "sync": "store", "prune": "store", "pause": "store", "resume": "store", "backup": "store", "restore": "store",
        "import": "store", "export": "store", "migrate": "store", "bench": "running", "demo": "running",
        "version": "running",
    },
    "Server": {"mcp": "running", "worker": "running", "hook": "running"},
}  # fmt: skip
"""Every verb of the command line and the module of this package that declares it, in the order of the help."""
FAMILIES = {verb: family for verbs in SECTIONS.values() for verb, family in verbs.items()}
"""The module that declares each verb."""


def find_declaration(name: str) -> "Verb | Group":
    """The declaration of a verb or group of the command line."""
    family = import_module(f"{__name__}.{FAMILIES[name]}")
    found: Verb | Group = family.COMMANDS[name]
    return found
