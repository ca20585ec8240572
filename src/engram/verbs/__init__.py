"""One declaration per verb: its arguments, their limits and help, what it returns, and where it is offered.

The command line, the MCP server, the library's argument checks and the docs read these. To look one up imports its family alone.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engram.verbs.declaration import Group, Verb

FAMILIES = {
    verb: family
    for family, verbs in {
        "reading": ("recall", "search", "inject", "prepare", "timeline", "show", "list", "history", "lineage"),
        "writing": (
            "learn", "remember", "add", "update", "revise", "pin", "feedback", "reinforce", "forget", "verify", "undo", "enrich",
        ),
    }.items()
    for verb in verbs
}  # fmt: skip
"""The module of this package that declares each verb of the command line."""


def find_declaration(name: str) -> "Verb | Group":
    """The declaration of a verb or group of the command line."""
    family = import_module(f"{__name__}.{FAMILIES[name]}")
    found: Verb | Group = family.COMMANDS[name]
    return found
