"""Arguments that several verbs share, each declared and worded once."""

from engram.model.arguments import MAX_WORDINGS
from engram.rules.scopes import EVERYWHERE
from engram.verbs.declaration import (
    REQUIRED,
    Argument,
    Flag,
    Option,
    Pairs,
    Positional,
    Property,
    Real,
    Text,
    TextList,
    Whole,
    WrongValue,
    flag,
)

TEXT, TEXTS, FLAG, FRACTION = Text(), TextList(), Flag(), Real(0, 1)
MODES = ("hybrid", "semantic", "keyword")
RELATIONS = ("update", "contradiction", "refinement", "same", "different")


class OneScope(Text):
    """One scope; `everywhere` is for the store's owner, on the command line and in Python."""

    def decode(self, value: object) -> str:
        scope: str = super().decode(value)
        if scope.strip() == EVERYWHERE:
            raise WrongValue("one scope, such as project:acme")
        return scope


SEEN_FROM = Property(
    "`here` (this project), user, global or kind:name, with the wider ones. Default: all seen from here.",
    kind=OneScope(),
)
OF_OWNER = Property("Who asks, such as agent:shop/ana.", kind=TEXT)
SESSION_ID = Property("From session_start.", name="session_id")

# -- questions

QUERY = Argument(
    "query", TEXT, is_positional=True, command=Positional("QUESTION", "What to look for; - reads it from stdin.")
)
WORDINGS = Argument(
    "wordings",
    TextList(MAX_WORDINGS),
    (),
    command=Option(
        "--also", metavar="TEXT", help="The question in other words, searched together with it (repeatable, at most 8)."
    ),
    tool=Property("The same in other words: synonyms, terms, how an answer may be put."),
)
LIMIT = Argument("limit", Whole(), 10, command=Option("--limit", "-n", metavar="N", help="At most this many."))
MODE = Argument(
    "mode", Text(MODES), "hybrid", command=Option("--mode", metavar="MODE", help="hybrid, semantic or keyword.")
)
FUSION = Argument(
    "fusion", TEXT, None, command=Option("--fusion", metavar="NAME", help="rrf for reciprocal rank fusion.")
)
EXPLAIN = Argument("explain", FLAG, False, command=Option("--explain", help="Show how each score was computed."))
MIN_RELEVANCE = Argument(
    "min_relevance",
    FRACTION,
    0.0,
    command=Option(
        "--min-relevance", metavar="0–1", help="Leave out hits that are less likely to be about the question."
    ),
    tool=Property("Leave out what is less relevant; 0.5 keeps confident matches."),
)

# -- filters

SCOPES = Argument(
    "scope",
    TEXTS,
    None,
    command=Option("--scope", "-s", metavar="SCOPE", help="Only this scope (repeatable); `here` is this directory's."),
    tool=SEEN_FROM,
)
EVERYWHERE_FLAG = Argument(
    "everywhere",
    FLAG,
    False,
    command=Option("--everywhere", help="Look in every scope, not only the directory's, the user's and global."),
    in_library=False,
)
SINCE = Argument(
    "since",
    TEXT,
    None,
    command=Option("--since", metavar="TIME", help="Only from this time on (ISO 8601)."),
    tool=Property("From this time on, ISO 8601."),
)
UNTIL = Argument(
    "until",
    TEXT,
    None,
    command=Option("--until", metavar="TIME", help="Only before this time (ISO 8601)."),
    tool=Property("Before this time."),
)
MEMORY_FILTERS = (
    SCOPES,
    EVERYWHERE_FLAG,
    Argument(
        "types",
        TEXTS,
        None,
        command=Option("--type", "-t", metavar="TYPE", help="Only this type (repeatable)."),
        tool=Property(),
    ),
    Argument(
        "tags",
        TEXTS,
        None,
        command=Option("--tag", metavar="TAG", help="Only with this tag (repeatable: all)."),
    ),
    Argument(
        "domain",
        TEXT,
        None,
        command=Option("--domain", metavar="A/B", help="Only this domain and those below it."),
    ),
    SINCE,
    UNTIL,
    Argument("as_of", TEXT, None, command=Option("--as-of", metavar="TIME", help="What was true at this time.")),
    Argument(
        "known_at", TEXT, None, command=Option("--known-at", metavar="TIME", help="What Engram knew at this time.")
    ),
)
"""The memories that a question is about."""
STORE_FILTERS = (
    *MEMORY_FILTERS,
    Argument(
        "status",
        TEXTS,
        None,
        command=Option(
            "--status",
            metavar="STATUS",
            help="Only this status (repeatable); `any` for all. Default: current ones.",
        ),
    ),
    Argument(
        "metadata",
        Pairs(),
        None,
        command=Option("--meta", metavar="KEY=VALUE", help="Only with this metadata (repeatable)."),
    ),
)
"""Like the filters above, with a status and metadata."""

# -- who asks, and in which session

IDS = "Ids come from recall, list, timeline, prepare and session_start."
"""The answer to an unknown id."""
SESSION = Argument(
    "session",
    TEXT,
    "",
    command=Option("--session", metavar="ID", envvar="ENGRAM_SESSION", help="The session this belongs to."),
    tool=SESSION_ID,
)
REF = Argument(
    "ref",
    TEXT,
    is_positional=True,
    command=Positional("ID", "Id, name or alias of a memory."),
    tool=Property("Id, name or alias.", name="id", kind=Text(least=1)),
)

SCOPE_OF_READER = Argument(
    "scope",
    TEXTS,
    None,
    command=Option(
        "--scope",
        "-s",
        metavar="SCOPE",
        help="Only what is visible from this scope, such as agent:shop/ana (repeatable). Default: everything here.",
    ),
    tool=OF_OWNER,
)
OWNER_SCOPE = Argument("scope", TEXT, None, tool=OF_OWNER)
"""The owner of a change, if the command line acts as the store's operator."""
OPTIONAL_REF = REF.replace(command=Positional("[ID]", "Id, name or alias of a memory; or give --name.", default=""))
ANY_VERSION = REF.replace(command=Positional("ID", "Id, name or alias of any version of the fact."))
REASON = Argument(
    "reason",
    TEXT,
    "",
    command=Option("--reason", metavar="TEXT", help="The reason, for the journal."),
    tool=Property("Why; its owner reads it."),
)
YES = flag("yes", "--yes -y", "Do not ask for confirmation.")
TASK = Argument(
    "task",
    TEXT,
    is_positional=True,
    command=Positional("TASK", "What the agent is about to do; - reads it from stdin."),
    tool=Property("What you are about to do.", kind=Text(least=1)),
)
BYTES = Argument("budget", Whole(), None, command=Option("--bytes", metavar="N", help="Byte budget of the whole text."))

# -- a memory

STATEMENT = Argument(
    "statement",
    TEXT,
    "",
    is_positional=True,
    command=Positional("TEXT", "The statement; - reads it from stdin.", default=REQUIRED),
)
MEMORY_SCOPE = Argument(
    "scope",
    TEXT,
    None,
    command=Option("--scope", "-s", metavar="SCOPE", help="Where it applies; `here` is this directory's."),
)
TYPE = Argument(
    "type",
    TEXT,
    None,
    command=Option("--type", "-t", metavar="TYPE", help="preference, correction, convention, factual, …"),
)
TAGS = Argument(
    "tags", TEXTS, None, command=Option("--tag", metavar="TAG", help="A tag (repeatable)."), tool=Property()
)
CUES = Argument(
    "cues",
    TEXTS,
    None,
    command=Option(
        "--cue", metavar="TEXT", help="A phrase under which somebody may look for it (repeatable, up to 8)."
    ),
    tool=Property("As in learn."),
)
DOMAIN = Argument("domain", TEXT, None, command=Option("--domain", metavar="A/B", help="The domain it belongs to."))
SITUATION = Argument(
    "situation",
    TEXT,
    None,
    command=Option(
        "--when",
        "--situation",
        metavar="TEXT",
        help="The situation in which it matters: a task, such as “writing migrations”.",
    ),
    tool=Property("The task in which it matters, such as: writing a migration."),
)
RATIONALE = Argument("rationale", TEXT, None, command=Option("--why", metavar="TEXT", help="The reason behind it."))
CONFIDENCE = Argument(
    "confidence",
    FRACTION,
    0.5,
    command=Option("--confidence", metavar="0–1", help="How certain it is, from 0 to 1.", default=None),
    tool=Property(),
)
METADATA = Argument(
    "metadata", Pairs(), None, command=Option("--meta", metavar="KEY=VALUE", help="Your own metadata (repeatable).")
)
MEMORY = (
    MEMORY_SCOPE,
    TYPE,
    TAGS,
    CUES,
    DOMAIN,
    SITUATION,
    RATIONALE,
    Argument(
        "context",
        TEXT,
        None,
        command=Option("--context", metavar="TEXT", help="Where it comes from; stored, never searched."),
    ),
    CONFIDENCE,
    Argument(
        "importance",
        FRACTION,
        None,
        command=Option("--importance", metavar="0–1", help="How important it is, from 0 to 1."),
    ),
    Argument("name", TEXT, None, command=Option("--name", metavar="NAME", help="A name for it.")),
    Argument("valid_from", TEXT, None, command=Option("--valid-from", metavar="TIME", help="True from this time on.")),
    Argument("valid_until", TEXT, None, command=Option("--valid-until", metavar="TIME", help="True until this time.")),
    METADATA,
)
"""The descriptive fields of a memory."""
NEW_MEMORY = (
    Argument("pinned", FLAG, False, command=Option("--pin", help="Never let it fade; offer it first.")),
    Argument("occurred_at", TEXT, None, command=Option("--at", metavar="TIME", help="When it happened (ISO 8601).")),
)
"""Fields that only a new memory has."""
FORM_PARTS = tuple(
    Argument(name, TEXT, None, command=Option(f"--{name}", metavar="TEXT", help=line), tool=Property(short))
    for name, line, short in (
        ("behavior", "Feedback: what was done.", "Feedback: what was done."),
        ("impact", "Feedback: what it led to.", "What that led to."),
        ("action", "Feedback: what to do instead, or again.", "What to do instead."),
        ("subject", "Fact: what it is about.", "Fact: what it is about."),
        ("predicate", "Fact: what is stated of it.", "The relation, such as: uses."),
        ("object", "Fact: the value.", "The value."),
    )
)
"""The parts of feedback and of a fact."""
CLAIMED_SOURCE = Argument(
    "claimed",
    TEXT,
    None,
    command=Option(
        "--source", metavar="SOURCE", help="human or agent. Without a terminal it is an agent's word all the same."
    ),
    in_library=False,
)
"""The claimed identity of spec 3's callers."""
SOURCE = Argument("source", TEXT, "agent")
"""The source of a memory. Surfaces set it; no option and no tool does."""
ACTOR = Argument("actor", TEXT, "manual")
"""The actor in the journal for a change. Surfaces set it."""
SUPERSEDES = Argument(
    "supersedes",
    TEXTS,
    None,
    command=Option("--supersedes", metavar="ID", help="A memory this one replaces, by id or name (repeatable)."),
    tool=Property("As in learn."),
)
RELATION = Argument(
    "relation",
    Text(RELATIONS),
    "",
    command=Option(
        "--relation",
        metavar="HOW",
        help="With --supersedes: how it relates to those memories instead: update (the default), contradiction, "
        "refinement, same or different.",
    ),
)
NOT_A_SECRET = Argument(
    "not_a_secret",
    FLAG,
    False,
    command=Option(
        "--not-a-secret",
        help="What looks like a secret here is not one: allow these values from now on. Only for a person at a terminal.",
    ),
    in_library=False,
)
