"""The verbs that find and show memories."""

from engram.model.memory import AskerFilters, Owner, SearchFilters
from engram.recall.cutoff import INJECT_FLOOR, MIN_KNOWN
from engram.verbs.declaration import (
    READS,
    Argument,
    Command,
    InPython,
    Method,
    NotOffered,
    Option,
    Positional,
    Property,
    Real,
    Text,
    ToolOffer,
    Verb,
    Whole,
    flag,
    option,
)
from engram.verbs.shared import (
    ANY_VERSION,
    BYTES,
    EXPLAIN,
    FLAG,
    FUSION,
    IDS,
    LIMIT,
    MEMORY_FILTERS,
    MIN_RELEVANCE,
    MODE,
    OPTIONAL_REF,
    QUERY,
    REF,
    SCOPE_OF_READER,
    SCOPES,
    SESSION,
    SINCE,
    STORE_FILTERS,
    TASK,
    TEXT,
    TEXTS,
    UNTIL,
    WORDINGS,
)

_STATUS = Text(("current", "candidate", "any"))
_PERSONS_VIEW = NotOffered("`show` gives an agent the state, the versions and the decisions of a memory at once")

RECALL = Verb(
    "recall",
    """Answer a question from memory, and from what other tools' files say about it.

    First the memories of this directory, its user and everywhere; then, as quoted evidence with its place, what the auto memory
    of agents, the sessions of this project, skills, instruction files and rules say. --memories-only leaves these out, and so do filters,
    --answer, --explain and --trace, which are about memories. Without a query, which all of these need: what was said in
    the recent sessions of this project, the summaries of the newest sessions, and the memories from that time. None of these files is ever written.

    Recalled memories are reinforced. Questions about the current value, a past value, an event and a history are answered from
    different places, and a time such as `last week` is a strict window; stderr says how the question was interpreted. --answer
    uses the words of the memories, or a model where one is configured. What is possibly related, unconfirmed, no longer current or
    known in other projects follows under a heading of its own. --also searches other wordings together with the question.
    --trace shows how the answer was found: how the question was interpreted, each search, the parts of each score, and what
    was left out and why.
    """,
    (
        Argument(
            "question",
            TEXT,
            is_positional=True,
            command=Positional(
                "[QUERY]", "What to look for; - reads it from stdin. Without one: recent sessions.", default=""
            ),
            tool=Property("In the terms of the subject. Empty: the recent sessions here.", default=""),
        ),
        WORDINGS,
        Argument(
            "sources",
            FLAG,
            False,
            tool=Property("Search instruction files, rules, skills and past sessions, too."),
            in_library=False,
        ),
        *MEMORY_FILTERS,
        LIMIT.replace(tool=Property(kind=Whole(1, 50))),
        MODE.replace(tool=Property()),
        FUSION,
        EXPLAIN,
        flag("memories_only", "--memories-only", "Only memories; no files and sessions of other tools."),
        BYTES.replace(in_library=False),
        SESSION,
        Argument(
            "question_date",
            TEXT,
            None,
            command=Option(
                "--date", metavar="TIME", help="When the question is asked, for words like `last week`. Default: now."
            ),
        ),
        Argument(
            "compose_answer",
            FLAG,
            False,
            command=Option("--answer", help="One answer instead of a list, each part with the ids of its sources."),
        ),
        flag("trace", "--trace", "Show how the answer was found; no use is recorded."),
        option(
            "expected_terms", TEXTS, None, "--expect", "TERM",
            "With --trace: words the text must contain (repeatable); otherwise exit 1.",
        ),
        option(
            "max_tokens", Whole(), None, "--tokens", "N", "With --trace: token budget of the text. Default: 2000."
        ),
        MIN_RELEVANCE.replace(default=MIN_KNOWN),
    ),
    library=Method("recall", rest=AskerFilters),
    command=Command("recall:recall", exits={1: "the text lacks a word of --expect"}),
    tool=ToolOffer(
        "recall",
        "Recall",
        "Find memories that answer a question. Give two to four wordings with other words under which the answer may be stored, "
        'e.g. for "why is CI red on arm?" ["arm64 build failure cause", "qemu emulation timeout"]: they find what the question '
        "alone does not. possible, unconfirmed and older are hints, not answers.",
        effect=READS,
    ),
)  # fmt: skip

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
        option(
            "kinds", TEXTS, None, "--kind", "KIND",
            "memory or event (repeatable). Default: both, or memory with a filter that only memories have.",
        ),
        option("session", TEXT, None, "--in-session", "ID", "Only what was said in this session."),
        WORDINGS,
        flag("deep", "--deep", "Search several wordings of a broad question at once."),
        option("n_queries", Whole(), None, "--queries", "N", "With --deep: how many wordings. Default: 4."),
        MIN_RELEVANCE,
        Argument("min_score", Real(0), 0.0),
        Argument("include_superseded", FLAG, False),
    ),
    library=Method("search", rest=SearchFilters),
    command=Command("recall:search"),
    tool=NotOffered("an agent asks with `recall`, which also says what a hit is worth"),
)  # fmt: skip

INJECT = Verb(
    "inject",
    """Print the memories that concern a task, for an agent's prompt.

    Use it when the task of a running session changes. `session start` prints the same at the start; `prepare` also reads files.
    The text fits a token budget and gives the reason for each item. --block prints the summary of the session, then the critical
    facts that concern the task, then other relevant memories; it only quotes memories and records no use.
    """,
    (
        TASK,
        SCOPES,
        Argument(
            "budget",
            Whole(),
            None,
            command=Option("--budget", metavar="TOKENS", help="Token budget of the whole text."),
        ),
        SESSION,
        MIN_RELEVANCE.replace(default=INJECT_FLOOR),
        flag("block", "--block", "Print a block that quotes memories instead; no use is recorded."),
        option("max_tokens", Whole(), 2000, "--tokens", "N", "With --block: its token budget."),
        option("header", TEXT, "", "--header", "TEXT", "With --block: a first line of your own."),
        flag("by_type", "--by-type", "With --block: a heading for each type of memory."),
    ),
    library=Method("inject", rest=Owner),
    command=Command("recall:inject"),
    tool=NotOffered("`session_start` injects, and `prepare` covers a new task"),
)

PREPARE = Verb(
    "prepare",
    """Print a briefing before a task: what memories and the files of other tools say about it.

    Use it once before larger work; `inject` prints memories only. Splits the task into two or three questions, phrased as tasks,
    and prints each answer once, every line with its source. Sources are auto memory, the sessions of this project, skills, instruction files and rules; none of them is ever written.
    """,
    (
        TASK,
        WORDINGS,
        BYTES.replace(tool=Property("Bytes of text.", kind=Whole(500, 100_000), default=10_240)),
        Argument("directory", InPython(), None),
        Argument("progress", InPython(), None),
        Argument("cancelled", InPython(), None),
    ),
    library=Method("prepare"),
    command=Command("recall:prepare"),
    tool=ToolOffer(
        "prepare",
        "Prepare for a task",
        "Call before larger work and when the task changes: returns what memories, instruction files, rules, skills and past sessions say about it.",
        effect=READS,
    ),
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
    tool=ToolOffer(
        "timeline",
        "Timeline",
        "What was known and what happened over time, oldest first: facts with what replaced them, sessions, events.",
        effect=READS,
    ),
)

SHOW = Verb(
    "show",
    """Show everything about one memory or one ledger event. With --name, feedback or a fact is shown as labelled lines.

    Its statement, state and strength, its origin and its file. Of a memory that awaits review also the quote it was derived
    from, its duplicates, what it contradicts, and why the gates let it through. What was told later and taken for the same is listed
    in its own words, with a number; `engram separate ID N` takes one out.
    """,
    (OPTIONAL_REF, option("name", TEXT, "", "--name", "NAME", "The memory with this name."), SCOPE_OF_READER),
    library=Method("explain_memory", rest=Owner),
    command=Command("memories:show"),
    tool=ToolOffer(
        "show",
        "Show a memory",
        "Everything about one memory: its state, origin, versions and the decisions about it.",
        effect=READS,
        not_found=IDS,
    ),
)

LIST = Verb(
    "list",
    """List the memories of this directory, the user and global, newest first.

    A list of nothing but feedback and facts (--type feedback --type fact) is for a program `type | name | situation`, last changed first.
    """,
    (
        *(
            one.replace(tool=Property("candidate: those that wait for a person.", kind=_STATUS, default="current"))
            if one.name == "status"
            else one.replace(tool=Property())
            if one.name in ("tags", "domain")
            else one
            for one in STORE_FILTERS
        ),
        flag("critical", "--critical", "Only memories in a critical slot of the policy."),
        LIMIT.replace(
            default=100,
            command=Option("--limit", "-n", metavar="N", help="At most this many.", default=50),
            tool=Property(kind=Whole(1, 100), default=20),
        ),
        Argument(
            "offset",
            Whole(),
            0,
            command=Option("--offset", metavar="N", help="Skip the first N."),
            tool=Property(kind=Whole(0)),
        ),
    ),
    library=Method("list", rest=SearchFilters),
    command=Command("memories:list_"),
    tool=ToolOffer("list", "List memories", "List memories by filter, newest first.", effect=READS),
)

HISTORY = Verb(
    "history",
    "List every decision about a memory, oldest first, with what each one changed.",
    (REF, SCOPE_OF_READER),
    library=Method("history", rest=Owner),
    command=Command("memories:history"),
    tool=_PERSONS_VIEW,
)

LINEAGE = Verb(
    "lineage",
    "List every version of a fact, oldest first. The current one is marked.",
    (ANY_VERSION, SCOPE_OF_READER),
    library=Method("lineage", rest=Owner),
    command=Command("memories:lineage"),
    tool=_PERSONS_VIEW,
)

_FOR_PROGRAMS = NotOffered("a program calls it")
DEEP_SEARCH = Verb(
    "deep_search",
    "",
    (
        Argument("query", TEXT, is_positional=True),
        Argument("wordings", TEXTS, ()),
        Argument("n_queries", Whole(), 4),
        Argument("limit", Whole(), 10),
        Argument("mode", TEXT, "hybrid"),
        Argument("fusion", TEXT, None),
        Argument("explain", FLAG, False),
        Argument("min_relevance", Real(), 0.0),
        Argument("min_score", Real(), 0.0),
        Argument("include_superseded", FLAG, False),
    ),
    library=Method("deep_search", rest=SearchFilters),
    command=NotOffered("`engram search --deep` does this"),
    tool=_FOR_PROGRAMS,
)  # fmt: skip

RECALL_CRITICAL = Verb(
    "recall_critical",
    "",
    (
        Argument("types", TEXTS, None),
        Argument("limit", Whole(), 50),
    ),
    library=Method("recall_critical", rest=Owner),
    command=NotOffered("`engram list --critical` does this"),
    tool=_FOR_PROGRAMS,
)  # fmt: skip

TRACE_RECALL = Verb(
    "trace_recall",
    "",
    (
        Argument("query", TEXT, is_positional=True),
        Argument("wordings", TEXTS, ()),
        Argument("max_tokens", Whole(), 2000),
        Argument("expected_terms", TEXTS, ()),
        Argument("question_date", InPython(), None),
        Argument("scope", TEXTS, None),
        Argument("limit", Whole(), 10),
        Argument("mode", TEXT, "hybrid"),
        Argument("fusion", TEXT, None),
        Argument("compose_answer", FLAG, False),
        Argument("min_relevance", Real(), MIN_KNOWN),
    ),
    library=Method("trace_recall", rest=AskerFilters),
    command=NotOffered("`engram recall --trace` does this"),
    tool=_FOR_PROGRAMS,
)  # fmt: skip

GET_CONTEXT_BLOCK = Verb(
    "get_context_block",
    "",
    (
        Argument("query", TEXT, is_positional=True),
        Argument("max_tokens", Whole(), 2000),
        Argument("header", TEXT, ""),
        Argument("group_by_type", FLAG, False),
        Argument("session", TEXT, ""),
        Argument("scope", TEXTS, None),
        Argument("count", InPython(), None),
        Argument("min_relevance", Real(), INJECT_FLOOR),
    ),
    library=Method("get_context_block", rest=AskerFilters),
    command=NotOffered("`engram inject --block` does this"),
    tool=_FOR_PROGRAMS,
)  # fmt: skip

RECALL_CONTEXT = Verb(
    "recall_context",
    "",
    (
        Argument("query", TEXT, "", is_positional=True),
        Argument("wordings", TEXTS, ()),
        Argument("directory", InPython(), None),
        Argument("limit", Whole(), 10),
        Argument("memories_only", FLAG, False),
        Argument("budget", Whole(), None),
        Argument("memories", InPython(), None),
        Argument("progress", InPython(), None),
        Argument("cancelled", InPython(), None),
    ),
    library=Method("recall_context"),
    command=NotOffered("`engram recall` does this"),
    tool=_FOR_PROGRAMS,
)  # fmt: skip

GET_CURRENT = Verb(
    "get_current",
    "",
    (
        Argument("ref", TEXT, is_positional=True),
    ),
    library=Method("get_current", rest=Owner),
    command=NotOffered("`engram lineage` marks the current version"),
    tool=_FOR_PROGRAMS,
)  # fmt: skip

LIST_RECENT = Verb(
    "list_recent",
    "",
    (
        Argument("limit", Whole(), 10, is_positional=True),
    ),
    library=Method("list_recent", rest=SearchFilters),
    command=NotOffered("`engram list` does this"),
    tool=_FOR_PROGRAMS,
)  # fmt: skip

GET_HISTORY = Verb(
    "get_history",
    "",
    (
        Argument("scope", TEXTS, None, is_positional=True),
        Argument("agent_id", TEXT, None),
        Argument("user_id", TEXT, None),
        Argument("since", InPython(), None),
        Argument("until", InPython(), None),
        Argument("include_superseded", FLAG, True),
        Argument("types", TEXTS, None),
        Argument("limit", Whole(), 100),
    ),
    library=Method("get_history"),
    command=NotOffered("`engram list --status any` and `engram timeline` do this"),
    tool=_FOR_PROGRAMS,
)  # fmt: skip

SCOPE_FOR = Verb(
    "scope_for",
    "",
    (
        Argument("agent_id", TEXT, None, is_positional=True),
        Argument("user_id", TEXT, None, is_positional=True),
    ),
    library=Method("scope_for"),
    command=NotOffered("scopes are written out on a command line"),
    tool=_FOR_PROGRAMS,
)  # fmt: skip

GET = Verb(
    "get",
    "",
    (
        Argument("ref", TEXT, is_positional=True),
    ),
    library=Method("get", rest=Owner),
    command=NotOffered("`engram show` does this"),
    tool=_FOR_PROGRAMS,
)  # fmt: skip

SCOPES_FOR = Verb(
    "scopes_for",
    "",
    (),
    library=Method("scopes_for", rest=Owner),
    command=NotOffered("`--scope` of every verb does this"),
    tool=_FOR_PROGRAMS,
)

COMMANDS = {verb.name: verb for verb in (RECALL, SEARCH, INJECT, PREPARE, TIMELINE, SHOW, LIST, HISTORY, LINEAGE)}
