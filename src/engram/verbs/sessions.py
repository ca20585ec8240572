"""The verbs of sessions."""

from engram.model.fields import Owner
from engram.verbs.declaration import (
    REQUIRED,
    Argument,
    Command,
    Effect,
    Facet,
    Method,
    Option,
    Positional,
    Property,
    Tool,
    Verb,
)
from engram.verbs.kinds import Text, Whole
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
    command=Command("session:start"),
    tool=Tool(
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
    command=Command("session:end"),
    tool=Tool(
        "session_end",
        "End a session",
        "End a session: its summary is found later, and what it used is reinforced.",
        effect=Effect(is_idempotent=True),
        not_found="session_start starts one and returns its session_id.",
    ),
)
