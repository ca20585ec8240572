"""The verbs of tasks, their ledgers, conversations and documents."""

from engram.model.memory import Owner
from engram.recall.cutoff import INJECT_FLOOR
from engram.verbs.declaration import (
    Argument,
    Command,
    File,
    Group,
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
from engram.verbs.shared import (
    FLAG,
    LIMIT,
    MEMORY_SCOPE,
    MODE,
    QUERY,
    SCOPE_OF_READER,
    SESSION,
    SINCE,
    TEXT,
    TEXTS,
    UNTIL,
    YES,
)

_NO_TOOL = NotOffered("a program keeps tasks and documents; `recall` finds what they say")
_FOR_PROGRAMS = NotOffered("a program calls it")

START_TASK = Verb(
    "task start",
    "Start a task. Prints its id.",
    (
        Argument("goal", TEXT, is_positional=True, command=Positional("GOAL",
            "What it should achieve; - reads it from stdin.")),
        option("scope", TEXT, "", "--scope -s", "SCOPE",
            "Its scope; `here` is this directory's. Default: this directory's, where it has one."),
        option("meta", TEXTS, None, "--meta", "KEY=VALUE", "Your own metadata (repeatable)."),
        SESSION,
        Argument("metadata", InPython(), None),
    ),
    library=Method("start_task", rest=Owner),
    command=Command("work:start_task"),
    tool=_NO_TOOL,
)  # fmt: skip

LIST_TASK = Verb(
    "task list",
    "List tasks, newest first. Deleted ones only with --status deleted.",
    (
        Argument("status", TEXTS, None, is_positional=True, command=Option("--status", metavar="STATE",
            help="Only running, paused, completed, failed, cancelled or deleted (repeatable).")),
        Argument("limit", Whole(), 50, command=Option("--limit", "-n", metavar="N",
            help="At most this many.", default=20)),
        SCOPE_OF_READER,
    ),
    library=Method("list_tasks", rest=Owner),
    command=Command("work:list_tasks"),
    tool=_NO_TOOL,
)  # fmt: skip

SHOW_TASK = Verb(
    "task show",
    """Show a task: its state, its idle time, its latest checkpoint and its latest events.

    A running task that has been idle for long has probably lost its process; `task resume` continues it.
    """,
    (
        Argument("task", TEXT, is_positional=True),
        positional("task_id", TEXT, "TASK", "The task's id. Default: $ENGRAM_TASK.", envvar="ENGRAM_TASK"),
        option("events", Whole(), 10, "--events", "N", "How many of its latest events."),
        SCOPE_OF_READER,
    ),
    library=Method("get_task", rest=Owner),
    command=Command("work:show_task"),
    tool=_NO_TOOL,
)  # fmt: skip

EVENT_TASK = Verb(
    "task event",
    """Append to a task's ledger. Secrets are redacted first; a finished task accepts nothing.

    With --batch, all events on stdin are written, or none. `engram worker` extracts the facts of messages later.
    """,
    (
        Argument("task", TEXT, is_positional=True),
        positional("task_id", TEXT, "TASK", "The task's id. Default: $ENGRAM_TASK.", envvar="ENGRAM_TASK"),
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
        flag("no_derive", "--no-derive", "Extract no facts from it."),
        Argument("payload", InPython(), None),
        Argument("metadata", InPython(), None),
        Argument("derive", FLAG, True),
    ),
    library=Method("record_event", rest=Owner),
    command=Command("work:add_task_event"),
    tool=_NO_TOOL,
)  # fmt: skip

TURN_TASK = Verb(
    "task turn",
    """Append a whole turn, at once or not at all. `engram worker` extracts its facts later.

    Without --user and --assistant, a JSON object is read from stdin: user, assistant, tool_calls (each with name, arguments and
    result or error), artifacts (each with name and content), key, derive.
    """,
    (
        Argument("task", TEXT, is_positional=True),
        positional("task_id", TEXT, "TASK", "The task's id. Default: $ENGRAM_TASK.", envvar="ENGRAM_TASK"),
        Argument("user", TEXT, "", is_positional=True, command=Option("--user", metavar="TEXT",
            help="What was asked; - reads it from stdin.")),
        Argument("assistant", TEXT, "", is_positional=True, command=Option("--assistant", metavar="TEXT",
            help="What was answered; - reads it from stdin.")),
        Argument("key", TEXT, "", command=Option("--key", metavar="KEY",
            help="Your own key; the same key is the same turn.")),
        flag("no_derive", "--no-derive", "Extract no facts from it."),
        Argument("tool_calls", InPython(), ()),
        Argument("artifacts", InPython(), ()),
        Argument("derive", FLAG, True),
    ),
    library=Method("record_turn", rest=Owner),
    command=Command("work:add_task_turn"),
    tool=_NO_TOOL,
)  # fmt: skip

CHECKPOINT_TASK = Verb(
    "task checkpoint",
    "Record the progress of a task. The latest checkpoint is part of every context.",
    (
        Argument("task", TEXT, is_positional=True),
        positional("task_id", TEXT, "TASK", "The task's id. Default: $ENGRAM_TASK.", envvar="ENGRAM_TASK"),
        Argument("summary", TEXT, is_positional=True, command=Positional("SUMMARY",
            "Its progress; - reads it from stdin.", default="")),
        option("done", TEXTS, None, "--done", "STEP", "A step that is done (repeatable)."),
        option("todo", TEXTS, None, "--todo", "STEP", "A step still to do (repeatable)."),
        option("decided", TEXTS, None, "--decided", "TEXT", "What was decided (repeatable)."),
        option("blocker", TEXTS, None, "--blocker", "TEXT", "What is in the way (repeatable)."),
        option("artifact", TEXTS, None, "--artifact", "NAME", "What was made (repeatable)."),
        option("event", TEXTS, None, "--event", "EVENT", "An event it is based on, EVT-… (repeatable)."),
        Argument("completed_steps", TEXTS, ()),
        Argument("pending_steps", TEXTS, ()),
        Argument("decisions", TEXTS, ()),
        Argument("blockers", TEXTS, ()),
        Argument("artifacts", TEXTS, ()),
        Argument("source_event_ids", TEXTS, ()),
        Argument("kind", TEXT, "progress"),
        Argument("data", InPython(), None),
    ),
    library=Method("create_checkpoint", rest=Owner),
    command=Command("work:save_checkpoint"),
    tool=_NO_TOOL,
)  # fmt: skip

CONTEXT_TASK = Verb(
    "task context",
    """Print what an agent must know to continue a task, within a token budget.

    Always includes its goal, latest checkpoint and the critical facts that concern it; then recent events, relevant facts
    and the memories linked to them. `--sources` prints the parts of its documents that answer QUERY instead, each with its place.
    """,
    (
        Argument("task", TEXT, is_positional=True),
        positional("task_id", TEXT, "TASK", "The task's id. Default: $ENGRAM_TASK.", envvar="ENGRAM_TASK"),
        Argument("query", TEXT, "", is_positional=True, command=Positional("[QUERY]",
            "What it is about to do; - reads it from stdin. Default: its goal.")),
        option("tokens", Whole(), 4000, "--tokens", "N", "Token budget of the whole block."),
        option("recent", Whole(), 40, "--recent", "N", "How many of the latest events are considered."),
        flag("no_graph", "--no-graph", "Leave out what is linked to the facts."),
        flag("sources", "--sources", "The parts of the task's documents that answer, each with its place."),
        SCOPE_OF_READER,
        Argument("min_relevance", Real(), INJECT_FLOOR, command=Option("--min-relevance", metavar="0–1",
            help="Leave out hits that are less likely to be about the question.")),
        Argument("wordings", TEXTS, ()),
        Argument("max_tokens", Whole(), 4000),
        Argument("recent_event_limit", Whole(), 40),
        Argument("memory_limit", Whole(), 25),
        Argument("checkpoint_limit", Whole(), 3),
        Argument("include_graph", FLAG, True),
        Argument("count", InPython(), None),
    ),
    library=Method("build_context", rest=Owner),
    command=Command("work:show_task_context"),
    tool=_NO_TOOL,
)  # fmt: skip

RESUME_TASK = Verb(
    "task resume",
    "Continue a task after a pause, a failure or a crash. Prints the context to continue with.",
    (
        Argument("task", TEXT, is_positional=True),
        positional("task_id", TEXT, "TASK", "The task's id. Default: $ENGRAM_TASK.", envvar="ENGRAM_TASK"),
        option("tokens", Whole(), 4000, "--tokens", "N", "Token budget of the whole block."),
        option("recent", Whole(), 40, "--recent", "N", "How many of the latest events are considered."),
        flag("no_graph", "--no-graph", "Leave out what is linked to the facts."),
    ),
    library=Method("resume_task", rest=Owner),
    command=Command("work:resume_task"),
    tool=_NO_TOOL,
)  # fmt: skip

PAUSE_TASK = Verb(
    "task pause",
    "Pause a task. `task resume` continues it.",
    (
        Argument("task", TEXT, is_positional=True),
        positional("task_id", TEXT, "TASK", "The task's id. Default: $ENGRAM_TASK.", envvar="ENGRAM_TASK"),
        Argument("reason", TEXT, "", is_positional=True, command=Positional("[REASON]",
            "Why; - reads it from stdin.")),
    ),
    library=Method("pause_task", rest=Owner),
    command=Command("work:pause_task"),
    tool=_NO_TOOL,
)  # fmt: skip

COMPLETE_TASK = Verb(
    "task complete",
    "Mark a task as completed. Its ledger is closed for good.",
    (
        Argument("task", TEXT, is_positional=True),
        positional("task_id", TEXT, "TASK", "The task's id. Default: $ENGRAM_TASK.", envvar="ENGRAM_TASK"),
        Argument("outcome", TEXT, "", is_positional=True, command=Positional("[OUTCOME]",
            "The outcome; - reads it from stdin.")),
    ),
    library=Method("complete_task", rest=Owner),
    command=Command("work:complete_task"),
    tool=_NO_TOOL,
)  # fmt: skip

FAIL_TASK = Verb(
    "task fail",
    "Mark a task as failed. It can be resumed.",
    (
        Argument("task", TEXT, is_positional=True),
        positional("task_id", TEXT, "TASK", "The task's id. Default: $ENGRAM_TASK.", envvar="ENGRAM_TASK"),
        Argument("reason", TEXT, "", is_positional=True, command=Positional("[REASON]",
            "Why; - reads it from stdin.")),
    ),
    library=Method("fail_task", rest=Owner),
    command=Command("work:fail_task"),
    tool=_NO_TOOL,
)  # fmt: skip

CANCEL_TASK = Verb(
    "task cancel",
    "Cancel a task. It can be resumed.",
    (
        Argument("task", TEXT, is_positional=True),
        positional("task_id", TEXT, "TASK", "The task's id. Default: $ENGRAM_TASK.", envvar="ENGRAM_TASK"),
        Argument("reason", TEXT, "", is_positional=True, command=Positional("[REASON]",
            "Why; - reads it from stdin.")),
    ),
    library=Method("cancel_task", rest=Owner),
    command=Command("work:cancel_task"),
    tool=_NO_TOOL,
)  # fmt: skip

DELETE_TASK = Verb(
    "task delete",
    "Remove a task from the lists for good. Its ledger stays; `ledger redact` destroys what an event said.",
    (
        Argument("task", TEXT, is_positional=True),
        positional("task_id", TEXT, "TASK", "The task's id. Default: $ENGRAM_TASK.", envvar="ENGRAM_TASK"),
    ),
    library=Method("soft_delete_task", rest=Owner),
    command=Command("work:delete_task"),
    tool=_NO_TOOL,
)  # fmt: skip

SEARCH_TASK = Verb(
    "task search",
    "Find events of one task, or of every ledger. `engram search --kind event` has more filters.",
    (
        QUERY,
        Argument("task", TEXT, "", command=Option("--task", metavar="TASK",
            help="Only this task. Default: every ledger.", envvar="ENGRAM_TASK")),
        option("event_type", TEXTS, None, "--event-type", "TYPE", "Only message, tool_call, … (repeatable)."),
        option("role", TEXTS, None, "--role", "ROLE", "Only what this role said (repeatable)."),
        SINCE,
        UNTIL,
        LIMIT,
        MODE,
        SCOPE_OF_READER,
        Argument("event_types", TEXTS, None),
        Argument("roles", TEXTS, None),
    ),
    library=Method("search_events", rest=Owner),
    command=Command("work:search_task"),
    tool=_NO_TOOL,
)  # fmt: skip

CAPTURE = Verb(
    "capture",
    """Store an exchange and remember its lasting facts. Every sentence gets a decision and its reason.

    The turns go to the session's ledger first; giving the same exchange again duplicates nothing. "Forget what I said about …"
    retires a memory, "I no longer …" ends one. Where a configured model does not answer, the facts found without it are
    stored and `engram worker` asks it again.

    With --buffer the turns wait in the session's buffer, as live turns of an agent should. Facts are extracted at once from a turn
    with a high signal ("I prefer …", "from now on …"), otherwise after `capture_turns` turns, `capture_minutes` minutes, or at
    the end of the session; `engram worker`, or --due from a timer, watches the time. Turns stay in the buffer until then.
    """,
    (
        Argument("session_id", TEXT, is_positional=True),
        Argument("role", TEXT, is_positional=True),
        Argument("content", TEXT, is_positional=True),
        option("user", TEXT, "", "--user", "TEXT", "What the user said; - reads it from stdin."),
        option("assistant", TEXT, "", "--assistant", "TEXT", "What was answered; - reads it from stdin."),
        SESSION.replace(in_library=False),
        MEMORY_SCOPE,
        flag("listen", "--listen", "Also store what the assistant says about the user; it awaits review."),
        Argument("key", TEXT, "", command=Option("--key", metavar="KEY",
            help="Your own key, to tell two identical exchanges apart.")),
        flag("dry_run", "--dry-run", "Only show what would be stored; nothing is written."),
        flag("buffer", "--buffer", "Let the turns wait in the session's buffer until their facts are extracted."),
        flag("flush", "--flush", "Only extract from the turns that wait, of --session or of all sessions."),
        flag("due", "--due", "Only extract from the turns that have waited long enough."),
        Argument("at", InPython(), None),
        Argument("metadata", InPython(), None),
        Argument("extract_assistant_response", FLAG, False),
        Argument("source", TEXT, "agent"),
    ),
    library=Method("capture", rest=Owner),
    command=Command("capture:capture"),
    tool=_NO_TOOL,
)  # fmt: skip


def _describe_harnesses() -> str:
    from engram.agents.agent import agents_with_sessions

    return f"{', '.join(agent.name for agent in agents_with_sessions())} or all."


HARVEST = Verb(
    "harvest",
    """Propose the lasting facts in what you told your coding agents.

    Reads the transcripts that these programs keep, and of those only what is new since the last harvest. Facts come only
    from what you typed; what was pasted, what tools returned and what agents told each other is left out. Every fact waits for review
    (`engram review`) with the turn it was said in as evidence. What exceeds the limit of a run per source is left for the next one.
    """,
    (
        Argument("path", TEXT, None, is_positional=True, command=Positional("PATH",
            "A transcript, or a folder of them. Default: where the harnesses keep theirs.")),
        Argument("harness", TEXT, "all", command=Option("--harness", "-H", metavar="NAME",
            help=_describe_harnesses)),
        Argument("since", TEXT, None, command=Option("--since", metavar="TIME",
            help="Only sessions active since then (ISO 8601).")),
        Argument("project", TEXT, None, command=Option("--project", metavar="DIR",
            help="Only sessions in this folder and below it.")),
        Argument("dry_run", FLAG, False, command=Option("--dry-run",
            help="Only show what would be proposed; nothing is written.")),
        flag("verbose", "--verbose -v", "Show every fact with its reason, also those not proposed."),
        Argument("progress", InPython(), None),
    ),
    library=Method("harvest"),
    command=Command("import_export:harvest"),
    tool=_NO_TOOL,
)  # fmt: skip

INGEST = Verb(
    "ingest",
    """Read documents, to answer from them with exact quotes.

    Each document becomes chunks in a task's ledger, split at its headings, facts that cite their chunk, and a checkpoint that
    lists the parts. A file that has changed is read again: facts it no longer states are superseded, and what you forgot stays
    forgotten. A folder's hidden, ignored, empty and binary files are left out and named. A file that cannot be read is exit 1,
    after the others.
    """,
    (
        Argument("path", File(), is_positional=True, command=Positional("FILE|DIR",
            "A text file, or a folder whose text files are all read.")),
        Argument("task", TEXT, "", command=Option("--task", metavar="TASK",
            help="The task they belong to. Default: a new one.", envvar="ENGRAM_TASK")),
        Argument("kind", TEXT, "", command=Option("--kind", metavar="KIND",
            help="markdown, text, code or diff. Default: by name and content.")),
        option("chunk_tokens", Whole(), 700, "--chunk-tokens", "N", "The most tokens of a chunk."),
        option("facts", Whole(), 6, "--facts", "N", "At most this many facts of each chunk; 0 for none."),
        flag("llm", "--llm", "Let the configured model read every chunk, too, and add what the rules miss."),
        option("scope", TEXT, "", "--scope -s", "SCOPE", "The scope of a new task; `here` is this directory's."),
        Argument("max_chunk_tokens", Whole(), 700),
        Argument("extract_with_llm", FLAG, False),
        Argument("max_facts_per_chunk", Whole(), 6),
        Argument("progress", InPython(), None),
    ),
    library=Method("ingest", rest=Owner),
    command=Command("capture:ingest"),
    tool=_NO_TOOL,
)  # fmt: skip

CITE = Verb(
    "cite",
    """Show a quote, and whether its source still says it.

    The quote is compared with its place in the source: verified; changed (exit 1) where the source differs or can no longer be
    read; or unchecked where it was given as a text and there is no file.
    """,
    (
        Argument("ref", TEXT, is_positional=True, command=Positional("ID",
            "A fact from a document, ENG-…, or a chunk of one, EVT-…")),
        SCOPE_OF_READER,
    ),
    library=Method("cite", rest=Owner),
    command=Command("capture:cite"),
    tool=_NO_TOOL,
)  # fmt: skip

VERIFY_LEDGER = Verb(
    "ledger verify",
    """Check every ledger for events altered, reordered or dropped.

    Each event is chained to the previous one, and the journal records where every ledger ended. Exit 1 when one is damaged.
    """,
    (),
    library=NotOffered("the ledger is read with `list_events` and `mem.store`"),
    command=Command("work:verify_ledgers"),
    tool=_NO_TOOL,
)  # fmt: skip

SHOW_LEDGER = Verb(
    "ledger show",
    "List the events of a session or a task in order, each with its number and its digest.",
    (
        positional("name", TEXT, "NAME", "The session or task whose ledger it is."),
        option("last", Whole(), None, "--last", "N", "Only the last N."),
        option("after", Whole(), 0, "--after", "N", "Only events with a higher number."),
        SCOPE_OF_READER,
    ),
    library=NotOffered("the ledger is read with `list_events` and `mem.store`"),
    command=Command("work:show_ledger"),
    tool=_NO_TOOL,
)  # fmt: skip

REDACT_LEDGER = Verb(
    "ledger redact",
    """Destroy what an event said. Its place in the chain stays, so the chain still verifies.

    Its content, payload, metadata and key are removed, with proof, and so are facts that come from it alone. Other events and
    memories with the same words stay: each is named with the command that destroys it, too, and the exit code is 1. This
    cannot be undone: without a terminal, --yes confirms it; otherwise nothing is destroyed and the exit code is 2.
    """,
    (
        positional("event", TEXT, "EVENT", "The event's id, EVT-…"),
        YES,
    ),
    library=NotOffered("the ledger is read with `list_events` and `mem.store`"),
    command=Command("work:redact_event"),
    tool=_NO_TOOL,
)  # fmt: skip

LIST_EVENTS = Verb(
    "list_events",
    "",
    (
        Argument("task", TEXT, is_positional=True),
        Argument("last", Whole(), None),
        Argument("after", Whole(), 0),
    ),
    library=Method("list_events", rest=Owner),
    command=NotOffered("`engram ledger show` does this"),
    tool=_FOR_PROGRAMS,
)  # fmt: skip

RECORD_LONG_INPUT = Verb(
    "record_long_input",
    "",
    (
        Argument("task", TEXT, is_positional=True),
        Argument("text", TEXT, is_positional=True),
        Argument("title", TEXT, ""),
        Argument("kind", TEXT, ""),
        Argument("path", TEXT, ""),
        Argument("max_chunk_tokens", Whole(), 700),
        Argument("extract_with_llm", FLAG, False),
        Argument("max_facts_per_chunk", Whole(), 6),
        Argument("progress", InPython(), None),
    ),
    library=Method("record_long_input", rest=Owner),
    command=NotOffered("`engram ingest` reads files"),
    tool=_FOR_PROGRAMS,
)  # fmt: skip

BUILD_LONG_INPUT_CONTEXT = Verb(
    "build_long_input_context",
    "",
    (
        Argument("task", TEXT, is_positional=True),
        Argument("query", TEXT, is_positional=True),
        Argument("max_tokens", Whole(), 4000),
        Argument("source_chunk_limit", Whole(), 6),
        Argument("expected_terms", TEXTS, ()),
        Argument("count", InPython(), None),
    ),
    library=Method("build_long_input_context", rest=Owner),
    command=NotOffered("`engram task context --sources` does this"),
    tool=_FOR_PROGRAMS,
)  # fmt: skip

FLUSH_CAPTURES = Verb(
    "flush_captures",
    "",
    (
        Argument("session_id", TEXT, "", is_positional=True),
    ),
    library=Method("flush_captures", rest=Owner),
    command=NotOffered("`engram capture --flush` does this"),
    tool=_FOR_PROGRAMS,
)  # fmt: skip

READ_DUE_CAPTURES = Verb(
    "read_due_captures",
    "",
    (),
    library=Method("read_due_captures", rest=Owner),
    command=NotOffered("`engram worker` does this"),
    tool=_FOR_PROGRAMS,
)  # fmt: skip

ADD_CONVERSATION = Verb(
    "add_conversation",
    "",
    (
        Argument("user_message", TEXT, is_positional=True),
        Argument("assistant_response", TEXT, "", is_positional=True),
        Argument("scope", TEXT, ""),
        Argument("agent_id", TEXT, None),
        Argument("user_id", TEXT, None),
        Argument("session", TEXT, ""),
        Argument("session_id", TEXT, ""),
        Argument("extract_assistant_response", FLAG, False),
        Argument("source", TEXT, "agent"),
        Argument("key", TEXT, ""),
    ),
    library=Method("add_conversation"),
    command=NotOffered("`engram capture` does this"),
    tool=_FOR_PROGRAMS,
)  # fmt: skip

EXTRACT = Verb(
    "extract",
    "",
    (
        Argument("turns", InPython(), is_positional=True),
        Argument("extract_assistant_response", FLAG, False),
    ),
    library=Method("extract"),
    command=NotOffered("`engram capture --dry-run` does this"),
    tool=_FOR_PROGRAMS,
)  # fmt: skip

HARVEST_SPOOLED = Verb(
    "harvest_spooled",
    "",
    (
        Argument("seconds", Real(), None),
        Argument("progress", InPython(), None),
    ),
    library=Method("harvest_spooled"),
    command=NotOffered("`engram worker` does this"),
    tool=_FOR_PROGRAMS,
)  # fmt: skip

IMPORT_CHATS = Verb(
    "import_chats",
    "",
    (
        Argument("path", InPython(), is_positional=True),
        Argument("format", InPython(), ""),
        Argument("dry_run", FLAG, False),
        Argument("progress", InPython(), None),
    ),
    library=Method("import_chats"),
    command=NotOffered("`engram import` does this"),
    tool=_FOR_PROGRAMS,
)  # fmt: skip

PROCESS_MEMORY_JOBS = Verb(
    "process_memory_jobs",
    "",
    (
        Argument("limit", Whole(), 100, is_positional=True),
    ),
    library=Method("process_memory_jobs"),
    command=NotOffered("`engram worker --once` does this"),
    tool=_FOR_PROGRAMS,
)  # fmt: skip

COMMANDS = {
    "task": Group.of(
        "Manage tasks: work that outlives a conversation. A task has a goal, a ledger and checkpoints, and can be resumed.",
        START_TASK, LIST_TASK, SHOW_TASK, EVENT_TASK, TURN_TASK, CHECKPOINT_TASK, CONTEXT_TASK, RESUME_TASK, PAUSE_TASK, COMPLETE_TASK, FAIL_TASK, CANCEL_TASK, DELETE_TASK, SEARCH_TASK,
    ),
    "capture": CAPTURE,
    "harvest": HARVEST,
    "ingest": INGEST,
    "cite": CITE,
    "ledger": Group.of(
        "Read and verify ledgers: what was said and done, chained so that any change is detected.",
        VERIFY_LEDGER, SHOW_LEDGER, REDACT_LEDGER,
    ),
}  # fmt: skip
