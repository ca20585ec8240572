"""The verbs of relations between memories."""

from engram.model.memory import Owner
from engram.verbs.declaration import (
    Argument,
    Command,
    InPython,
    Method,
    NotOffered,
    Option,
    Positional,
    Real,
    Verb,
    Whole,
    flag,
    option,
    positional,
)
from engram.verbs.shared import REASON, SCOPES, TEXT, TEXTS

_NO_TOOL = NotOffered("relations are for a person or a program; `show` names them")
_FOR_PROGRAMS = NotOffered("a program calls it")

RELATE = Verb(
    "relate",
    "Link one memory to another. Repeating it sets a new weight; `--remove` removes the link.",
    (
        Argument("source", TEXT, is_positional=True, command=Positional("SOURCE",
            "Id, name or alias of the memory the relation starts at.")),
        Argument("target", TEXT, is_positional=True, command=Positional("TARGET",
            "Id, name or alias of the memory it leads to.")),
        Argument("relation_type", TEXT, "related_to", is_positional=True),
        option("type_", TEXT, None, "--type -t", "RELATION", "supports, depends_on, part_of, …"),
        Argument("weight", Real(), 1.0, is_positional=True, command=Option("--weight", metavar="NUMBER",
            help="Its weight, above 0. Default: 1.", default=None)),
        Argument("metadata", InPython(), None, is_positional=True),
        option("meta", TEXTS, None, "--meta", "KEY=VALUE", "Your own metadata (repeatable)."),
        flag("remove", "--remove", "Remove the relation; without --type, every one between the two."),
        REASON,
        Argument("actor", TEXT, "manual"),
    ),
    library=Method("relate", rest=Owner),
    command=Command("memories:relate"),
    tool=_NO_TOOL,
)  # fmt: skip

TRAVERSE = Verb(
    "traverse",
    "Find memories linked to others. Nearest first, each by its shortest and then heaviest path.",
    (
        Argument("seeds", TEXTS, is_positional=True),
        positional("ref", TEXTS, "ID…", "Ids, names or aliases of memories to start from."),
        option("depth", Whole(), 3, "--depth", "N", "How many steps."),
        Argument("direction", TEXT, "outbound", command=Option("--direction", metavar="WAY",
            help="outbound, inbound or any.")),
        option("type_", TEXTS, None, "--type -t", "RELATION", "Only over this relation (repeatable)."),
        Argument("min_weight", Real(), 0.0, command=Option("--min-weight", metavar="NUMBER",
            help="Only over relations of this weight.")),
        SCOPES,
        Argument("status", TEXTS, None, command=Option("--status", metavar="STATUS",
            help="Only this status (repeatable); `any` for all. Default: current ones.")),
        option("limit", Whole(), 50, "--limit -n", "N", "At most this many."),
        flag("prompt", "--prompt", "Print lines for a prompt: memories quoted, each text once."),
        option("tokens", Whole(), None, "--tokens", "N", "With --prompt: at most this many tokens."),
        Argument("max_depth", Whole(), 2),
        Argument("relation_types", TEXTS, None),
        Argument("types", TEXTS, None),
        Argument("limit_per_seed", Whole(), 25),
        Argument("total_limit", Whole(), 100),
    ),
    library=Method("traverse_many", rest=Owner),
    command=Command("memories:traverse"),
    tool=_NO_TOOL,
)  # fmt: skip

TRAVERSE_ONE = Verb(
    "traverse",
    "",
    (
        Argument("start", TEXT, is_positional=True),
        Argument("max_depth", Whole(), 3),
        Argument("direction", TEXT, "outbound"),
        Argument("relation_types", TEXTS, None),
        Argument("types", TEXTS, None),
        Argument("min_weight", Real(), 0.0),
        Argument("limit", Whole(), 50),
        Argument("status", TEXTS, None),
    ),
    library=Method("traverse", rest=Owner),
    command=NotOffered("`engram traverse` starts from one memory or more"),
    tool=_FOR_PROGRAMS,
)  # fmt: skip

RENDER_GRAPH_CONTEXT = Verb(
    "render_graph_context",
    "",
    (
        Argument("reached", InPython(), is_positional=True),
        Argument("max_tokens", Whole(), None),
    ),
    library=Method("render_graph_context"),
    command=NotOffered("`engram traverse --prompt` does this"),
    tool=_FOR_PROGRAMS,
)  # fmt: skip

COMMANDS = {
    "relate": RELATE,
    "traverse": TRAVERSE,
}  # fmt: skip
