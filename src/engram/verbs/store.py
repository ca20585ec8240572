"""The verbs of the store itself: setting up, health, backup, import and export."""

from engram.model.memory import Owner
from engram.verbs.declaration import (
    REQUIRED,
    Argument,
    Command,
    Facet,
    File,
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
from engram.verbs.shared import FLAG, SCOPES, TEXT, TEXTS, YES

_NO_TOOL = NotOffered("the store is looked after by its owner")
_FOR_PROGRAMS = NotOffered("a program calls it")


def _describe_harnesses() -> str:
    from engram.agents.agent import agent_names

    return f"Wire a coding agent: {', '.join(agent_names())}; for others the entry is printed."


INIT = Verb(
    "init",
    """Create a store, or report the existing one; with HARNESS, add Engram's server to its configuration.

    Other verbs create a store, too, where there is none. The harness's file keeps its comments, a copy of it is made before the first
    change, and the change is shown. On a Citus cluster `init` also distributes the tables by tenant, where it is allowed to.
    """,
    (
        positional("harness", TEXT, "[HARNESS]", _describe_harnesses, default=""),
        flag("project", "--project", "Wire it in this project's files, for everyone who works on it."),
        flag("undo", "--undo", "Remove Engram's entry from the file again."),
        flag("dry_run", "--dry-run", "Show the change without writing it."),
    ),
    library=NotOffered("it sets up a machine, not a memory"),
    command=Command("setup:init"),
    tool=_NO_TOOL,
)  # fmt: skip

STATUS = Verb(
    "status",
    """Show what the store contains, and what was injected last.

    Also shows how to stop one item from being injected again.
    """,
    (),
    library=Facet("upkeep.status"),
    command=Command("upkeep:status"),
    tool=_NO_TOOL,
)  # fmt: skip

DOCTOR = Verb(
    "doctor",
    """Check the store and its memories, and say what to do about each problem.

    Memories are read, and compared with their nearest neighbours, for a limited time. The next run continues with those that were not
    compared yet.
    """,
    (
        flag("repair", "--repair",
            "Move unreadable journal lines to quarantine, rebuild the index, and finish an interrupted purge."),
        Argument("seconds", Real(), 10, command=Option("--seconds", metavar="N",
            help="How long to look at the memories; the default is enough for most stores.")),
    ),
    library=Method("doctor"),
    command=Command("upkeep:doctor"),
    tool=_NO_TOOL,
)  # fmt: skip

CONFIG = Verb(
    "config",
    """Show the settings, one of them, or change one.

    Only a person at a terminal changes what decides which memories need no person (autopromote_*, harvest_limit,
    source_daily_limit, policy, time_zone), how long history is kept (keep_*), and where memories are sent (model, embedder).
    An invalid setting in the file is reported with its line, and its default shown; setting that key corrects it.
    """,
    (
        positional("words", TEXTS, "[KEY [VALUE]]",
            "A setting, and its new value; also `get KEY`, `set KEY VALUE`.", default=None),
    ),
    library=NotOffered("settings are a file; `Engram.settings` has them"),
    command=Command("setup:config"),
    tool=_NO_TOOL,
)  # fmt: skip

INDEX = Verb(
    "index",
    """Show what the search index contains, or build it again.

    It is derived from the files and never the only copy of anything.
    """,
    (
        Argument("progress", InPython(), None, is_positional=True),
        flag("rebuild", "--rebuild", "Build the index again from the files."),
        flag("reembed", "--reembed",
            "Compute all vectors again with the configured embedder; continues where it stopped."),
        flag("nearest", "--nearest",
            "On Postgres: build an HNSW index of this tenant's vectors; worthwhile from about 200,000."),
    ),
    library=Method("rebuild_index"),
    command=Command("upkeep:index"),
    tool=_NO_TOOL,
)  # fmt: skip

GEN_CONTEXT = Verb(
    "gen-context",
    """Keep a block of memories up to date in AGENTS.md or another instruction file.

    The block lies between <!-- engram:begin --> and <!-- engram:end -->; nothing else in the file changes. It quotes confirmed and
    fresh memories visible from the file's folder, without sensitive ones and personal plans unless --tier includes them.
    """,
    (
        Argument("path", InPython(), None, is_positional=True),
        positional("files", File(is_many=True), "[FILE…]",
            "The files; created where they do not exist. Default: the AGENTS.md or other instruction file here or at the root.", default=None),
        Argument("limit", Whole(), 30, command=Option("--limit", "-n", metavar="N",
            help="At most this many memories.")),
        Argument("tier", Whole(), 1, command=Option("--tier", metavar="1|2|3",
            help="Up to this risk tier; 3 includes identity, money, health, people, places, constraints.")),
        Argument("budget", Whole(), 2000, command=Option("--budget", metavar="TOKENS",
            help="At most this many tokens.")),
        SCOPES,
        flag("check", "--check", "Write nothing; exit 1 if a block is missing or out of date."),
        Argument("remove", FLAG, False, command=Option("--remove", help="Take the block out of the file again.")),
        Argument("dry_run", FLAG, False, command=Option("--dry-run", help="Write nothing; show what would change.")),
    ),
    library=Method("gen_context", rest=Owner),
    command=Command("upkeep:gen_context"),
    tool=_NO_TOOL,
)  # fmt: skip

SYNC = Verb(
    "sync",
    "Read every change made to the files by hand.",
    (),
    library=Facet("upkeep.sync"),
    command=Command("upkeep:sync"),
    tool=_NO_TOOL,
)  # fmt: skip

PRUNE = Verb(
    "prune",
    """Remove old history. Without --yes it only says what would be removed.

    Old history is outdated journal images, usage that has been counted, and ledgers of ended sessions. Who took a memory out of use
    is kept. The ages in the settings are a person's to choose: --days with --yes needs a terminal.
    """,
    (
        option("days", Whole(), None, "--days", "N",
            "Older than N days (at least 1), instead of the ages in the settings."),
        YES,
    ),
    library=Facet("upkeep.prune"),
    command=Command("upkeep:prune"),
    tool=_NO_TOOL,
)  # fmt: skip

PAUSE = Verb(
    "pause",
    """Stop learning and injecting until `resume`.

    Meanwhile `learn` and `capture` are refused, `worker` waits, `inject` and `session start` inject nothing and `hook recall`
    returns nothing; `remember`, `add` and `ingest` work only for a person at a terminal. Everything else continues: `recall`
    and `search` still answer.
    """,
    (),
    library=Facet("upkeep.pause"),
    command=Command("upkeep:pause"),
    tool=_NO_TOOL,
)  # fmt: skip

RESUME = Verb(
    "resume",
    "End a pause.",
    (),
    library=Facet("upkeep.resume"),
    command=Command("upkeep:resume"),
    tool=_NO_TOOL,
)  # fmt: skip

BACKUP = Verb(
    "backup",
    "Write the whole store to one archive. The index is left out: it can be rebuilt.",
    (
        positional("target", File(), "FILE", "The archive to write, such as memory.tar.gz."),
        flag("force", "--force", "Replace an existing file."),
    ),
    library=Facet("upkeep.backup"),
    command=Command("upkeep:backup"),
    tool=_NO_TOOL,
)  # fmt: skip

RESTORE = Verb(
    "restore",
    """Restore a backup. It is checked before anything is replaced.

    With --force in place of an existing store only for a person at a terminal; into an empty place for programs, too.
    """,
    (
        positional("source", File(), "FILE", "An archive that `engram backup` wrote."),
        flag("force", "--force", "Move an existing store aside, then restore."),
    ),
    library=NotOffered("a backup is restored before a store is opened"),
    command=Command("upkeep:restore"),
    tool=_NO_TOOL,
)  # fmt: skip

IMPORT = Verb(
    "import",
    """Import memories from another tool, store or format.

    The formats are plur (a PLUR directory), memory.v1 (memory.md and memory-log.md), toml (memory/feedback, memory/facts, and memories/ of the
    layout before), notes (facts/DATE/…, corrections/, …), markdown
    (notes with a description, such as Claude Code's memory), mem0 (its JSON export), csv, json and engram (YAML), and chatgpt and claude
    (the zip of an export, or its conversations.json), whose facts are proposed for review like those of `engram harvest`.

    Importing twice changes nothing; everything left out is listed with its reason. Changes made in the source since the last import
    are adopted, and your own changes are kept. Imported memories are evidence: they answer questions, give no directions and
    replace nothing you said. --trusted is for your own export, or a store you used before. Without a person at a terminal everything waits
    for review.
    """,
    (
        Argument("path", File(), is_positional=True, command=Positional("PATH", "The file or directory to import.")),
        Argument("candidates", FLAG, False, command=Option("--candidates",
            help="Let everything await review instead of keeping its status.")),
        Argument("trusted", FLAG, False, command=Option("--trusted",
            help="Vouch for the file, at a terminal: its memories count as your own.")),
        Argument("packs", FLAG, False, command=Option("--packs", help="Import the packs of a PLUR directory, too.")),
        Argument("dry_run", FLAG, False, command=Option("--dry-run", help="Only report what would be imported.")),
        option("format_", TEXT, "", "--format -f", "FORMAT", "One of the formats above. Default: detected."),
        option("map_", TEXT, "", "--map", "FIELD=COLUMN,…",
            "For csv and json: which column or key holds which field, such as statement=text,created=when."),
        flag("verbose", "--verbose -v", "Of chats, show every fact with its reason, also those not proposed."),
        Argument("format", TEXT, ""),
        Argument("mapping", InPython(), None),
        Argument("progress", InPython(), None),
        Argument("actor", TEXT, "manual"),
    ),
    library=Method("import_memories"),
    command=Command("import_export:import_"),
    tool=_NO_TOOL,
)  # fmt: skip

EXPORT = Verb(
    "export",
    """Export memories as YAML, JSON or in the format of another tool.

    Exports everything, including superseded, expired and retired memories, unless --status or --scope narrows it. A team's
    memories are not exported. For PLUR the directory must be new or empty. memory.v1 writes memory.md (tier 3) and memory-log.md (the
    others), notes one Markdown file per memory, toml the current feedback and facts as memory/feedback/NAME.toml and memory/facts/NAME.toml;
    the name a memory gets there is kept as an alias.
    """,
    (
        positional("path", File(), "PATH",
            "A directory, for plur a new one; for json, or one YAML file, a file (- for stdout)."),
        option("format_", TEXT, "engram", "--format -f", "FORMAT",
            "engram (YAML), json, plur, memory.v1, notes or toml."),
        SCOPES,
        option("status", TEXTS, None, "--status", "STATUS", "Only this status (repeatable). Default: all of them."),
        flag("force", "--force", "Replace an existing file."),
    ),
    library=NotOffered("`engram.capture.exporter` writes the files"),
    command=Command("import_export:export"),
    tool=_NO_TOOL,
)  # fmt: skip

MIGRATE = Verb(
    "migrate",
    """Copy a whole store to a server, or to files.

    Memories with their history, sessions with their ledgers, uses, tombstones and verdicts are copied unchanged; then both
    stores are compared record by record, and a difference is exit 1. The source is not changed. After an interruption the same
    command continues where it stopped.
    """,
    (
        option("to", TEXT, REQUIRED, "--to", "URL|DIR", "The target: postgresql://…, or a new or empty directory."),
        option("from_", TEXT, None, "--from", "URL|DIR", "The source. Default: the store that other verbs use."),
        option("tenant", TEXT, None, "--tenant", "NAME", "The tenant on the source server."),
        option("to_tenant", TEXT, None, "--to-tenant", "NAME",
            "The tenant on the target server. Default: the same, else $ENGRAM_TENANT."),
        flag("dry_run", "--dry-run", "Only report what would be copied."),
    ),
    library=NotOffered("it needs two stores"),
    command=Command("import_export:migrate"),
    tool=_NO_TOOL,
)  # fmt: skip

CONTEXT_TEXT = Verb(
    "context_text",
    "",
    (
        Argument("tier", Whole(), 1),
        Argument("limit", Whole(), 30),
        Argument("budget", Whole(), 2000),
    ),
    library=Method("context_text", rest=Owner),
    command=NotOffered("`engram gen-context --dry-run` does this"),
    tool=_FOR_PROGRAMS,
)  # fmt: skip

HEALTH_CHECK = Verb(
    "health_check",
    "",
    (
        Argument("skip_embedding_test", FLAG, False),
    ),
    library=Method("health_check"),
    command=NotOffered("`engram doctor` does this"),
    tool=_FOR_PROGRAMS,
)  # fmt: skip

SCOPE_HERE = Verb(
    "scope_here",
    "",
    (),
    library=Method("scope_here"),
    command=NotOffered("`engram scope` shows it"),
    tool=_FOR_PROGRAMS,
)  # fmt: skip

SCOPE_NOTICES = Verb(
    "scope_notices",
    "",
    (),
    library=Method("scope_notices"),
    command=NotOffered("every verb prints them"),
    tool=_FOR_PROGRAMS,
)  # fmt: skip

COMMANDS = {
    "init": INIT,
    "status": STATUS,
    "doctor": DOCTOR,
    "config": CONFIG,
    "index": INDEX,
    "gen-context": GEN_CONTEXT,
    "sync": SYNC,
    "prune": PRUNE,
    "pause": PAUSE,
    "resume": RESUME,
    "backup": BACKUP,
    "restore": RESTORE,
    "import": IMPORT,
    "export": EXPORT,
    "migrate": MIGRATE,
}  # fmt: skip
