"""The verbs for review and for trust."""

from engram.verbs.declaration import Command, Facet, File, NotOffered, Verb, Whole, flag, option, positional
from engram.verbs.shared import REASON, REF, TEXT, TEXTS, YES

_NO_TOOL = NotOffered("a person reviews; the server asks its user where it can")

QUEUE = Verb(
    "queue",
    """List what capture, agents and imports have proposed and nobody has decided about.

    Grouped by source and topic, most worth keeping first: by confidence, importance and type. `engram review` goes through
    everything that awaits a person, contradictions and faded memories included.
    """,
    (
        option("source", TEXT, "", "--source", "SOURCE",
            "Only from this source, or below it: harness:codex, import:pack.json."),
        option("kind", TEXT, "", "--kind", "KIND", "Only of this kind: preference, tooling, …"),
        option("tier", Whole(), None, "--tier", "1–3", "Only of this risk tier."),
        option("scope", TEXT, "", "--scope -s", "SCOPE", "Only of this scope; `here` is this directory's."),
        option("group", TEXT, "", "--group", "TOPIC", "Only about this topic, as `queue` names it."),
        option("per_source", Whole(), 20, "--per-source", "N", "List at most this many of each source; 0 for all."),
    ),
    library=Facet("review.page"),
    command=Command("review:queue"),
    tool=_NO_TOOL,
)  # fmt: skip

REVIEW = Verb(
    "review",
    """Decide what awaits a person.

    Contradictions, memories that may replace an older one, requests to forget by an agent, candidates, and memories that have
    faded. Without an id it lists them; on a terminal it goes through them one by one, one key per decision: p promote, e edit,
    r reject, m merge, t take out a retelling, l later, u undo, q quit. `engram queue` lists the candidates alone, in groups.
    """,
    (
        positional("ref", TEXT, "[ID]", "The memory to decide about. Default: list what awaits review.", default=""),
        option("keep", TEXT, "", "--keep", "WHICH", "Settle a contradiction or an update: new, old, both or merge."),
        option("statement", TEXT, "", "--statement", "TEXT", "With --keep merge: the merged statement."),
        option("new_when", TEXT, "", "--new-when", "TEXT", "With --keep both: when the new one applies."),
        option("old_when", TEXT, "", "--old-when", "TEXT", "With --keep both: when the old one applies."),
        flag("approve", "--approve",
            "Activate a candidate, let an update replace the older one, or forget as requested."),
        flag("reject", "--reject", "Reject a candidate, an update or a request to forget."),
        option("waits_as", TEXT, "", "--as", "WHAT",
            "With --approve or --reject, where a memory waits as two things: update or forget."),
        flag("retire", "--retire", "Retire a faded memory."),
        flag("reinforce", "--reinforce", "Keep and reinforce a faded memory."),
        flag("list_only", "--list", "Only list, also on a terminal."),
        option("limit", Whole(), 50, "--limit -n", "N", "At most this many."),
    ),
    library=Facet("review.resolve"),
    command=Command("review:review"),
    tool=_NO_TOOL,
)  # fmt: skip

PROMOTE = Verb(
    "promote",
    """Make candidates active: those named, those the filters choose, or with --eligible those that need no person.

    Tier 3 (identity, money, health, people, …) needs --confirm and a code typed at the controlling terminal. --eligible promotes
    tier 1 as the settings autopromote_remember, autopromote_harvest and autopromote_kinds allow, and tier 2 where nothing stored
    says the same or contradicts it. What the filters choose is shown first, and promoted once confirmed (or with --yes). What anyone
    but a person has reworded is shown whole, and a person is asked about it, also with --yes.
    """,
    (
        option("source", TEXT, "", "--source", "SOURCE",
            "Only from this source, or below it: harness:codex, import:pack.json."),
        option("kind", TEXT, "", "--kind", "KIND", "Only of this kind: preference, tooling, …"),
        option("tier", Whole(), None, "--tier", "1–3", "Only of this risk tier."),
        option("scope", TEXT, "", "--scope -s", "SCOPE", "Only of this scope; `here` is this directory's."),
        option("group", TEXT, "", "--group", "TOPIC", "Only about this topic, as `queue` names it."),
        positional("refs", TEXTS, "[ID]…",
            "Ids, names or aliases of the memories. Default: what the filters choose.", default=None),
        flag("eligible", "--eligible", "Promote what the settings allow without a person."),
        flag("dry_run", "--dry-run", "Only report what would be promoted, and why the others still wait."),
        flag("confirm", "--confirm", "Promote tier 3, too: asks for a code at the controlling terminal."),
        YES,
        REASON,
    ),
    library=Facet("review.promote_all"),
    command=Command("review:promote"),
    tool=_NO_TOOL,
)  # fmt: skip

REJECT = Verb(
    "reject",
    """Reject candidates: those named, or those the filters choose. A rejected fact stays readable and is not proposed again.

    What the filters choose is shown first, and rejected once confirmed (or with --yes). `history` shows the reason.
    """,
    (
        option("source", TEXT, "", "--source", "SOURCE",
            "Only from this source, or below it: harness:codex, import:pack.json."),
        option("kind", TEXT, "", "--kind", "KIND", "Only of this kind: preference, tooling, …"),
        option("tier", Whole(), None, "--tier", "1–3", "Only of this risk tier."),
        option("scope", TEXT, "", "--scope -s", "SCOPE", "Only of this scope; `here` is this directory's."),
        option("group", TEXT, "", "--group", "TOPIC", "Only about this topic, as `queue` names it."),
        positional("refs", TEXTS, "[ID]…",
            "Ids, names or aliases of the memories. Default: what the filters choose.", default=None),
        REASON,
        YES,
    ),
    library=Facet("review.reject_all"),
    command=Command("review:reject"),
    tool=_NO_TOOL,
)  # fmt: skip

EDIT = Verb(
    "edit",
    """Reword a memory, or change its record in $EDITOR. It passes the gates again and keeps where it came from.

    A candidate still awaits review afterwards.
    """,
    (
        REF,
        option("statement", TEXT, "", "--statement", "TEXT",
            "What it says; - reads stdin. Default: $EDITOR on a terminal."),
        REASON,
    ),
    library=Facet("review.edit"),
    command=Command("review:edit"),
    tool=_NO_TOOL,
)  # fmt: skip

MERGE = Verb(
    "merge",
    """Make one memory of several, with a statement of its own.

    The most trusted current one survives, or the first where all await review; the others are superseded by it and stay
    readable. `undo` brings all of them back.
    """,
    (
        positional("refs", TEXTS, "ID…", "Ids, names or aliases of two or more memories."),
        option("statement", TEXT, "", "--statement", "TEXT", "The merged statement; - reads it from stdin."),
        REASON,
    ),
    library=Facet("review.merge"),
    command=Command("review:merge"),
    tool=_NO_TOOL,
)  # fmt: skip

SEPARATE = Verb(
    "separate",
    """Take a retelling out of a memory: it becomes a candidate of its own, and awaits review.

    A retelling is what a transcript said later and what was taken for the same as the memory, in other words. `show`, `queue` and
    `review` list them with their numbers. `undo` puts it back.
    """,
    (
        REF,
        positional("number", Whole(), "N", "The number of the retelling, as `show` lists them.", default=1),
        REASON,
    ),
    library=Facet("review.separate"),
    command=Command("review:separate"),
    tool=_NO_TOOL,
)  # fmt: skip

TRUST = Verb(
    "trust",
    """Trust a repository's own memories (.engram/).

    Before that they are not used, and nothing of them is shown to an agent. The memories of the repository are listed with
    every field, and hidden characters are made visible; once confirmed, they are used. Anything that changes later must be
    trusted again. Only a person at a terminal trusts: without one the list is printed, nothing is trusted, and the exit code is 1.
    """,
    (
        positional("directory", File(), "[DIR]", "A directory of the repository. Default: this one.", default=None),
        flag("revoke", "--revoke", "Stop trusting it."),
        YES,
    ),
    library=NotOffered("trust in a repository is given at a terminal"),
    command=Command("trust:trust"),
    tool=_NO_TOOL,
)  # fmt: skip

SCOPE = Verb(
    "scope",
    """Show the scope of a directory, and decide which older memories belong to it.

    The scope is the repository's remote with its host, such as project:github.com:acme/api. Earlier versions left the host out, so that
    project:acme/api could be a repository on any host. Memories of such a scope are used once a person has linked it, and nothing
    is rewritten. Only a person at a terminal decides: without one nothing is changed, and the exit code is 1.
    """,
    (
        positional("directory", File(), "[DIR]", "A directory of the repository. Default: this one.", default=None),
        option("link", TEXT, "", "--link", "SCOPE", "Use the memories of this older scope in the repository."),
        flag("separate", "--separate", "The older scopes that may belong to the repository do not; stop asking."),
        flag("unlink", "--unlink", "Take back --link and --separate."),
        flag("accept", "--accept", "This directory is your own clone; stop reporting it."),
        YES,
    ),
    library=NotOffered("a person decides at a terminal which scopes belong together"),
    command=Command("trust:scope"),
    tool=_NO_TOOL,
)  # fmt: skip

DISTRUST = Verb(
    "distrust",
    """Remove everything a source contributed, and refuse what it proposes from now on.

    Its candidates are rejected and its memories retired; what they had replaced is current again. What a person wrote, reworded or
    repeated stays, and what a person promoted or verified stays unless --include-confirmed takes it out as well. What would be taken out is shown first, and taken out once confirmed (or with --yes). It is
    one decision: --undo takes it back.
    """,
    (
        positional("source", TEXT, "[SOURCE]",
            "A source, with everything below it: harness:codex, import:pack.json, session:ID. Default: list them.", default=""),
        option("since", TEXT, None, "--since", "TIME", "Take out only what was stored from this time on."),
        flag("include_confirmed", "--include-confirmed", "Take out what a person promoted or verified as well."),
        flag("dry_run", "--dry-run", "Only report what would be taken out."),
        flag("undo", "--undo", "Trust it again, and put back what was taken out."),
        YES,
    ),
    library=Facet("review.distrust"),
    command=Command("trust:distrust"),
    tool=_NO_TOOL,
)  # fmt: skip

COMMANDS = {
    "queue": QUEUE,
    "review": REVIEW,
    "promote": PROMOTE,
    "reject": REJECT,
    "edit": EDIT,
    "merge": MERGE,
    "separate": SEPARATE,
    "trust": TRUST,
    "scope": SCOPE,
    "distrust": DISTRUST,
}  # fmt: skip
