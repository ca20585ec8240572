"""The verbs of sessions."""

from engram.model.memory import Owner
from engram.verbs.declaration import (
    REQUIRED,
    Argument,
    Command,
    Effect,
    Facet,
    Group,
    InPython,
    Method,
    NotOffered,
    Option,
    Positional,
    Property,
    Text,
    ToolOffer,
    Verb,
    Whole,
    flag,
    option,
    positional,
)
from engram.verbs.shared import SCOPE_OF_READER, SCOPES, TEXT

START = Verb(
    "session start",
    "Start a session. Prints its id, then what memory knows about the task.",
    (
        Argument(
            "task",
            TEXT,
            "",
            is_positional=True,
            command=Positional("[TASK]", "What it is about; - reads it from stdin."),
            tool=Property("What the session is about.", kind=Text(least=1), default=REQUIRED),
        ),
        SCOPES,
        Argument(
            "budget",
            Whole(),
            None,
            command=Option("--budget", metavar="TOKENS", help="Token budget of what is injected."),
            tool=Property("Tokens of text, at least 50; 0: the owner's setting.", default=0),
        ),
    ),
    library=Method("session", rest=Owner),
    command=Command("work:start_session"),
    tool=ToolOffer(
        "session_start",
        "Start a session",
        "Call first, once per conversation: returns a session_id, the memories that concern the task, and how earlier sessions ended.",
    ),
)

END = Verb(
    "session end",
    "End a session. Its uses are recorded, and memories injected together are linked more strongly.",
    (
        Argument(
            "session_id",
            TEXT,
            command=Positional("SESSION", "The session's id.", envvar="ENGRAM_SESSION"),
            tool=Property("From session_start.", kind=Text(least=1)),
        ),
        Argument(
            "summary",
            TEXT,
            "",
            command=Option("--summary", metavar="TEXT", help="The outcome; - reads it from stdin."),
            tool=Property("What was done and what is left, in a few sentences."),
        ),
        SCOPE_OF_READER,
    ),
    library=Facet("sessions.end"),
    command=Command("work:end_session"),
    tool=ToolOffer(
        "session_end",
        "End a session",
        "End a session: its summary is found later, and what it used is reinforced.",
        effect=Effect(is_idempotent=True),
        not_found="session_start starts one and returns its session_id.",
    ),
)

_NO_TOOL = NotOffered("the harness keeps the ledger of a session")
_FOR_PROGRAMS = NotOffered("a program calls it")

OBSERVE_SESSION = Verb(
    "session observe",
    """Append to a session's ledger. Secrets are redacted first.

    A name of your own starts a session, too, which belongs to --scope. A session that has ended, or belongs to another scope,
    accepts nothing.
    """,
    (
        Argument("session_id", TEXT, is_positional=True, command=Positional("SESSION",
            "The session's id.", envvar="ENGRAM_SESSION")),
        Argument("role", TEXT, is_positional=True, command=Positional("ROLE",
            "Who speaks: user, assistant, tool, …", default="")),
        Argument("content", TEXT, is_positional=True, command=Positional("TEXT",
            "What was said; - reads it from stdin.", default="")),
        Argument("event_type", TEXT, "message", command=Option("--event-type", metavar="TYPE",
            help="message, tool_call, tool_result, observation, error, artifact.")),
        Argument("key", TEXT, "", command=Option("--key", metavar="KEY",
            help="Your own key; the same key is the same event.")),
        Argument("at", TEXT, None, command=Option("--at", metavar="TIME",
            help="When it happened (ISO 8601). Default: now.")),
        flag("batch", "--batch", "Read events from stdin, one JSON object per line: role, content, at, key, …"),
        option("scope", TEXT, "", "--scope -s", "SCOPE",
            "The owner, such as agent:shop/ana. Default: the session's."),
        Argument("payload", InPython(), None),
        Argument("metadata", InPython(), None),
        Argument("task", TEXT, ""),
    ),
    library=Method("observe", rest=Owner),
    command=Command("work:observe_session"),
    tool=_NO_TOOL,
)  # fmt: skip

SUMMARISE_SESSION = Verb(
    "session summarise",
    """Update the session's rolling summary with what was said since, and print it.

    By rules, from the session's own words, or by a model where one is configured.
    """,
    (
        positional("session_id", TEXT, "SESSION", "The session's id.", envvar="ENGRAM_SESSION"),
        option("style", TEXT, "", "--style", "STYLE",
            "plain, or structured: goal, decisions, next steps, … Default: as last time."),
        option("tokens", Whole(), 400, "--tokens", "N", "Token budget of the summary."),
        SCOPE_OF_READER,
    ),
    library=Facet("sessions.summarise"),
    command=Command("work:summarise_session"),
    tool=_NO_TOOL,
)  # fmt: skip

LIST_SESSION = Verb(
    "session list",
    "List sessions, newest first.",
    (
        option("limit", Whole(), 20, "--limit -n", "N", "At most this many."),
        SCOPE_OF_READER,
    ),
    library=Facet("sessions.list"),
    command=Command("work:list_sessions"),
    tool=_NO_TOOL,
)  # fmt: skip

SHOW_SESSION = Verb(
    "session show",
    "Show a session, what was injected in it, and its ledger.",
    (
        positional("session_id", TEXT, "SESSION", "The session's id.", envvar="ENGRAM_SESSION"),
        SCOPE_OF_READER,
    ),
    library=Facet("sessions.get"),
    command=Command("work:show_session"),
    tool=_NO_TOOL,
)  # fmt: skip

OBSERVE_BATCH = Verb(
    "observe_batch",
    "",
    (
        Argument("session_id", TEXT, is_positional=True),
        Argument("items", InPython(), is_positional=True),
    ),
    library=Method("observe_batch", rest=Owner),
    command=NotOffered("`engram session observe --batch` does this"),
    tool=_FOR_PROGRAMS,
)  # fmt: skip

COMMANDS = {
    "session": Group.of(
        "Manage sessions: pieces of work with a ledger. A session starts with what memory knows and records what was used.",
        START, OBSERVE_SESSION, SUMMARISE_SESSION, END, LIST_SESSION, SHOW_SESSION,
    ),
}  # fmt: skip
