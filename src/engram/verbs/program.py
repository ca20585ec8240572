"""The verbs that serve, measure and show the program."""

from engram.verbs.declaration import Command, File, Group, NotOffered, Verb, Whole, flag, option, positional
from engram.verbs.shared import FUSION, MODE, TEXT, TEXTS

_NO_TOOL = NotOffered("it is for a person at a terminal")

MCP = Verb(
    "mcp",
    """Serve this memory to agents over MCP: on stdin and stdout, or with --http.

    Over HTTP every request must carry a bearer token: the one in --token-file, or one that is made now and shown once on stderr. It
    listens at http://127.0.0.1:8377/mcp unless told otherwise; an address that other machines reach needs --token-file.
    """,
    (
        flag("http", "--http", "Serve streamable HTTP instead of stdin and stdout."),
        option("host", TEXT, "127.0.0.1", "--host", "ADDRESS",
            "With --http: where to listen; another needs --token-file."),
        option("port", Whole(), None, "--port", "N", "With --http: the port; 0 takes a free one."),
        option("token_file", File(), None, "--token-file", "FILE",
            "With --http: a file of mode 0600 with the token that clients must send."),
        option("allow_host", TEXTS, None, "--allow-host", "NAME",
            "With --http: another name by which clients address it (repeatable)."),
    ),
    library=NotOffered("it serves other programs"),
    command=Command("program:mcp"),
    tool=_NO_TOOL,
)  # fmt: skip

WORKER = Verb(
    "worker",
    """Run the jobs that follow from the ledgers.

    Extracts facts from turns, asks a model again that did not answer, and harvests the sessions that hooks reported. Runs until it is interrupted (SIGINT, SIGTERM), and
    then finishes the current job. Any number of workers may run on one store; while it is paused they wait. A job that fails
    is postponed for longer each time and abandoned after some attempts: then --once ends with exit 1. With --json each job is
    an object on its own line, and --once answers with one object for all.

    With --all-tenants one worker serves every tenant of $ENGRAM_URL's server with the settings of this machine; run it on as
    many machines as needed. A tenant's long queue delays the others by at most one round. Paused tenants are skipped; a tenant
    whose store cannot be opened is reported, tried again later, and makes --once end with exit 1.
    """,
    (
        flag("once", "--once", "Run the jobs that are due, then end."),
        flag("list_", "--list", "Only list the open jobs."),
        option("retry", TEXT, "", "--retry", "JOB", "Only schedule a failed job again."),
        flag("all_tenants", "--all-tenants", "Work for every tenant of the server in turn. Postgres only."),
    ),
    library=NotOffered("`mem.jobs.run` does this in a program"),
    command=Command("program:worker"),
    tool=_NO_TOOL,
)  # fmt: skip

HOOK = Verb(
    "hook",
    """What the hooks of a harness run; only Python's own modules are loaded.

    session-start, prompt, post-tool, stop, pre-compact, session-end and drain are Claude Code's events (docs/claude-code.md): each reads its JSON
    from stdin, answers with JSON or nothing, and exits 0; what fails is reported by `engram doctor` and the next session's start.

    recall answers with the memories that share words with TEXT. Without TEXT it reads {"prompt": …, "cwd": …} as JSON, or plain text, from
    stdin. The answer is always JSON, no use is recorded, and a missing store is an empty answer: a hook must not stop the agent.
    """,
    (
        positional("action", TEXT, "ACTION",
            "One of recall, session-start, prompt, post-tool, stop, pre-compact, session-end, drain."),
        positional("text", TEXTS, "[TEXT]", "For `recall`: the prompt; without it stdin is read.", default=None),
        option("limit", Whole(), 5, "--limit -n", "N", "At most this many."),
        option("cwd", TEXT, "", "--cwd", "DIR",
            "The directory whose scope is searched. Default: the payload's, or this one."),
    ),
    library=NotOffered("it is for the hooks of a coding agent"),
    command=Command("hook:hook"),
    tool=_NO_TOOL,
)  # fmt: skip

LOCOMO_BENCH = Verb(
    "bench locomo",
    """LoCoMo: find the turns that answer a question.

    Turns and sessions of long conversations; recall, NDCG and latency.
    """,
    (
        positional("file", File(), "FILE", "The data set's JSON file."),
        MODE,
        FUSION,
        option("baseline", TEXT, None, "--baseline", "NAME",
            "bm25 prints plain BM25 over the same turns next to it."),
        option("wordings", File(), None, "--wordings", "FILE",
            'JSON file of other wordings: {"a question": ["a wording", …]}.'),
        option("limit", Whole(), None, "--limit", "N", "Only the first N questions."),
        option("url", TEXT, None, "--url", "URL", "Measure on this Postgres server. Default: in files."),
    ),
    library=NotOffered("it measures on stores of its own"),
    command=Command("program:locomo"),
    tool=_NO_TOOL,
)  # fmt: skip

LONGMEMEVAL_BENCH = Verb(
    "bench longmemeval",
    """LongMemEval: find the sessions that answer a question.

    Takes the official JSON, the lite format, and sessions pooled in one store with many questions.
    """,
    (
        positional("file", File(), "FILE", "The data set's JSON file."),
        MODE,
        FUSION,
        option("baseline", TEXT, None, "--baseline", "NAME",
            "bm25 prints plain BM25 over the same turns next to it."),
        option("wordings", File(), None, "--wordings", "FILE",
            'JSON file of other wordings: {"a question": ["a wording", …]}.'),
        option("limit", Whole(), None, "--limit", "N", "Only the first N questions."),
        option("url", TEXT, None, "--url", "URL", "Measure on this Postgres server. Default: in files."),
        option("distractors", File(), None, "--distractors", "FILE",
            "Pooled file whose sessions, without questions, join every store."),
    ),
    library=NotOffered("it measures on stores of its own"),
    command=Command("program:longmemeval"),
    tool=_NO_TOOL,
)  # fmt: skip

BEAM_BENCH = Verb(
    "bench beam",
    """BEAM: find the turns of long chats with an assistant that answer a question.

    One chat per line, or a JSON list of chats, with any speakers.
    """,
    (
        positional("file", File(), "FILE", "The data set's JSON file."),
        MODE,
        FUSION,
        option("baseline", TEXT, None, "--baseline", "NAME",
            "bm25 prints plain BM25 over the same turns next to it."),
        option("wordings", File(), None, "--wordings", "FILE",
            'JSON file of other wordings: {"a question": ["a wording", …]}.'),
        option("limit", Whole(), None, "--limit", "N", "Only the first N questions."),
        option("url", TEXT, None, "--url", "URL", "Measure on this Postgres server. Default: in files."),
    ),
    library=NotOffered("it measures on stores of its own"),
    command=Command("program:beam"),
    tool=_NO_TOOL,
)  # fmt: skip

SPEED_BENCH = Verb(
    "bench speed",
    "Latency and throughput. Each figure is compared with its floor, measured in the same run.",
    (
        option("n", TEXT, "1000,10000", "--n", "N,N", "How many memories, separated by commas."),
    ),
    library=NotOffered("it measures on stores of its own"),
    command=Command("program:speed"),
    tool=_NO_TOOL,
)  # fmt: skip

DEMO = Verb(
    "demo",
    """Show the program at work, in a few seconds.

    Memories are learned, recalled, injected, rated, contradicted, reviewed, edited by hand, undone and purged: real calls on a
    temporary store.
    """,
    (
        flag("fast", "--fast", "Do not pause between the scenes."),
    ),
    library=NotOffered("it shows the program on a store of its own"),
    command=Command("setup:demo"),
    tool=_NO_TOOL,
)  # fmt: skip

VERSION = Verb(
    "version",
    "Print the version; `engram --version` does so, too.",
    (),
    library=NotOffered("`engram.__version__` has it"),
    command=Command("setup:version"),
    tool=_NO_TOOL,
)  # fmt: skip

COMMANDS = {
    "mcp": MCP,
    "worker": WORKER,
    "hook": HOOK,
    "bench": Group.of(
        "Measure retrieval quality and speed on this machine.",
        LOCOMO_BENCH, LONGMEMEVAL_BENCH, BEAM_BENCH, SPEED_BENCH,
    ),
    "demo": DEMO,
    "version": VERSION,
}  # fmt: skip
