"""The verbs that find and show memories."""

from engram.model.fields import Owner, SearchFilters
from engram.verbs.declaration import (
    READS,
    Argument,
    Command,
    Method,
    NotOffered,
    Option,
    Positional,
    Property,
    Tool,
    Verb,
)
from engram.verbs.kinds import Number, Whole
from engram.verbs.shared import (
    EXPLAIN,
    FLAG,
    FUSION,
    LIMIT,
    MIN_RELEVANCE,
    MODE,
    QUERY,
    SCOPES,
    SINCE,
    STORE_FILTERS,
    TEXT,
    TEXTS,
    UNTIL,
    WORDINGS,
)

SEARCH = Verb(
    "search",
    "Find memories or ledger events of this directory, the user and global. Searching does not reinforce them.",
    (
        QUERY,
        *STORE_FILTERS,
        LIMIT,
        MODE,
        FUSION,
        EXPLAIN,
        Argument(
            "kinds",
            TEXTS,
            None,
            command=Option(
                "--kind",
                metavar="KIND",
                help="memory or event (repeatable). Default: both, or memory with a filter that only memories have.",
            ),
        ),
        Argument(
            "session",
            TEXT,
            None,
            command=Option("--in-session", metavar="ID", help="Only what was said in this session."),
        ),
        WORDINGS,
        Argument(
            "deep",
            FLAG,
            False,
            command=Option("--deep", help="Search several wordings of a broad question at once."),
            in_library=False,
        ),
        Argument(
            "n_queries",
            Whole(),
            None,
            command=Option("--queries", metavar="N", help="With --deep: how many wordings. Default: 4."),
            in_library=False,
        ),
        MIN_RELEVANCE,
        Argument("min_score", Number(0), 0.0),
        Argument("include_superseded", FLAG, False),
    ),
    library=Method("search", rest=SearchFilters),
    command=Command("recall:search"),
    tool=NotOffered("an agent asks with `recall`, which also says what a hit is worth"),
)

TIMELINE = Verb(
    "timeline",
    """Show what was known and what happened over time, oldest first.

    Without a subject: memories with what replaced them, and sessions. With one: the memories and events about it.
    """,
    (
        Argument(
            "about",
            TEXT,
            "",
            is_positional=True,
            command=Positional("[ABOUT]", "A subject. Without one: all memories and sessions of that time."),
            tool=Property("A subject. Default: all memories and sessions of that time."),
        ),
        SINCE,
        UNTIL,
        SCOPES,
        LIMIT.replace(
            default=50,
            command=Option("--limit", "-n", metavar="N", help="The newest entries: at most this many."),
            tool=Property(kind=Whole(1, 100), default=30),
        ),
    ),
    library=Method("timeline", rest=Owner),
    command=Command("recall:timeline"),
    tool=Tool(
        "timeline",
        "Timeline",
        "What was known and what happened over time, oldest first: facts with what replaced them, sessions, events.",
        effect=READS,
    ),
)

COMMANDS = {verb.name: verb for verb in (SEARCH, TIMELINE)}
