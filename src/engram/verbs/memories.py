"""The verbs that store memories."""

from engram.model.memory import SIGNALS, ChangedFields, MemoryFields, Owner
from engram.rules.numbers import REINFORCE_RETRIEVAL
from engram.verbs.declaration import (
    REQUIRED,
    Argument,
    Command,
    Effect,
    Facet,
    InPython,
    ListsById,
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
    positional,
)
from engram.verbs.shared import (
    ACTOR,
    ANY_VERSION,
    CLAIMED_SOURCE,
    CUES,
    DOMAIN,
    FLAG,
    FORM_PARTS,
    FRACTION,
    IDS,
    MEMORY,
    MEMORY_SCOPE,
    NEW_MEMORY,
    NOT_A_SECRET,
    OPTIONAL_REF,
    OWNER_SCOPE,
    RATIONALE,
    REASON,
    REF,
    RELATION,
    SESSION,
    SOURCE,
    STATEMENT,
    SUPERSEDES,
    TEXT,
    TYPE,
    YES,
)

REMEMBERED_TYPES = (
    "preference", "tooling", "project", "infra", "identity", "fiscal", "people", "constraint", "location", "health",
)  # fmt: skip
REJECTED = {1: "the gates rejected it"}

_TOOL_ONLY = {
    MEMORY_SCOPE: Property(
        "Where it applies: `here` (this project), user, global or kind:name. Default: `here` for what is about this project, "
        "else global."
    ),
    TYPE: Property(
        "preference, correction, convention, decision, procedural, factual, behavioral …; constraint, identity, health and the "
        "like wait for a person."
    ),
    CUES: Property(
        "Up to 8 short phrases that a later question may use instead of these words: synonyms, the question it answers, the "
        'symptom. "Staging listens on 6543": ["psql connection refused", "which port does postgres use"].'
    ),
    DOMAIN: Property("Topics, such as backend/database."),
    RATIONALE: Property("Why it is so."),
}
"""What an agent reads about the fields of a new memory."""

_REMEMBERED = {
    "type": Property(
        "From identity on, a person must approve it.", name="kind", kind=Text(REMEMBERED_TYPES), default="preference"
    ),
    "scope": Property("As in learn."),
    "confidence": Property(default=0.6),
    "cues": Property("As in learn."),
}
_IN_PLACE = {
    "type": Property(),
    "tags": Property("These replace the old ones."),
    "cues": Property("As in learn; these replace the old ones."),
    "confidence": Property(default=None),
}


def _adapt_to_remember(field: Argument) -> Argument:
    return field.replace(tool=_REMEMBERED.get(field.name))


LEARN = Verb(
    "learn",
    """Propose a memory. The gates decide what happens to it, and say why.

    The forms `learn feedback --situation … --behavior … --impact … --action …` and `learn fact --situation … --subject … --predicate …
    --object …` write the statement for you and store its parts. They answer CREATED, UPDATED, DUPLICATE or CONTRADICTION with the name;
    after the latter two follows the existing memory. Learned again in another situation, the existing one covers both.

    Without --scope, what is about this repository ("we", "this repo", its name, a path in it) is stored for it alone, anything else for all.
    """,
    (
        STATEMENT.replace(
            command=Positional(
                "TEXT|feedback|fact",
                "The statement (- reads stdin), or the word feedback or fact with the options of that form.",
                default=REQUIRED,
            ),
            tool=Property(
                "The fact, in 25 to 60 words that stand on their own. Or give situation with behavior, impact, action; or with "
                "subject, predicate, object."
            ),
        ),
        *(one.replace(tool=_TOOL_ONLY[one]) if one in _TOOL_ONLY else one for one in MEMORY),
        *NEW_MEMORY,
        *FORM_PARTS,
        CLAIMED_SOURCE,
        SOURCE,
        SESSION,
        Argument(
            "autonomous",
            FLAG,
            False,
            command=Option("--autonomous", help="Nobody asked to store this: the quality gates judge it, too."),
            tool=Property("Nobody asked to store this: it is judged more strictly."),
        ),
        SUPERSEDES.replace(tool=Property("Ids of outdated memories that this replaces.")),
        RELATION.replace(
            tool=Property(
                "To those in supersedes. contradiction: a person decides; refinement: they stay; different: they only look alike.",
                default="update",
            )
        ),
        Argument(
            "on_conflict",
            Text(("update", "replace", "keep-both", "skip")),
            "",
            command=Option(
                "--on-conflict",
                metavar="CHOICE",
                help="Where it contradicts a stored memory: update that one, replace it, keep-both, or skip. At a terminal "
                "feedback and facts ask; with --autonomous they skip.",
            ),
        ),
        NOT_A_SECRET,
    ),
    library=Method("learn", rest=MemoryFields),
    command=Command("learn:learn", exits=REJECTED),
    tool=ToolOffer(
        "learn",
        "Learn a fact",
        "Propose a memory: a correction, convention, decision, lesson or fact that will matter again. Gates check it; the answer "
        "gives the outcome and why. related lists stored memories that it may outdate: if it replaces one, call learn again "
        "with that id in supersedes; if not, with relation different.",
        not_found="Ids come from recall, list and the related memories of learn.",
    ),
)

REMEMBER = Verb(
    "remember",
    "Store something a person said. It counts as a person's only when typed at a terminal. Without --scope it is placed as `learn` does.",
    (
        STATEMENT.replace(
            tool=Property("One sentence that stands on its own.", name="fact", kind=Text(least=1), default=REQUIRED)
        ),
        *(_adapt_to_remember(one) for one in MEMORY),
        *NEW_MEMORY,
        SOURCE.replace(default="human"),
        SESSION,
        SUPERSEDES,
        RELATION,
        NOT_A_SECRET,
    ),
    library=Method("remember", rest=MemoryFields),
    command=Command("learn:remember", exits=REJECTED),
    tool=ToolOffer(
        "remember",
        "Remember",
        "Store what the user asked you to remember, in their words; with supersedes if it replaces something.",
    ),
)

ADD = Verb(
    "add",
    """Store a memory without the gates of quality: at a terminal as it is, otherwise what `learn` would let wait waits for review.

    If it probably replaces an older memory, both stay current and `engram review` asks; if that is certain, it replaces it. Without
    a terminal it is an agent's word: sensitive statements, instructions and contradictions wait, and --pin is refused.
    """,
    (
        STATEMENT,
        *MEMORY,
        *NEW_MEMORY,
        SOURCE.replace(default="manual"),
        SESSION.replace(command=None),
        flag(
            "team", "--team", "Store it in this repository's .engram/, to be committed with the code.", in_library=True
        ),
        NOT_A_SECRET,
    ),
    library=Method("add", rest=MemoryFields),
    command=Command("learn:add"),
    tool=NotOffered("what an agent writes passes the gates: it learns or remembers"),
)

_CHANGED = (*(one for one in MEMORY if one is not MEMORY_SCOPE), REASON, ACTOR)
_NEW_SCOPE = Argument("new_scope", TEXT, None, command=MEMORY_SCOPE.command)
"""On the command line, --scope moves a memory."""

UPDATE = Verb(
    "update",
    """Change fields of a memory in place. `history` shows what it was, `undo` restores it.

    Tags and metadata replace the previous ones; an empty text empties a field. The statement of feedback or a fact follows its parts.
    Without an ID, --name says which memory, and the answer is `UPDATED: NAME`.
    """,
    (
        OPTIONAL_REF,
        Argument(
            "statement",
            TEXT,
            None,
            command=Option("--statement", metavar="TEXT", help="What it says; - reads stdin."),
            tool=Property("What it says now."),
        ),
        OWNER_SCOPE,
        _NEW_SCOPE,
        *(one.replace(tool=_IN_PLACE[one.name]) if one.name in _IN_PLACE else one for one in _CHANGED),
        *FORM_PARTS,
        CLAIMED_SOURCE,
        Argument(
            "status",
            TEXT,
            None,
            command=Option("--status", metavar="STATUS", help="active, dormant, archived, retired, …"),
        ),
    ),
    library=Method("update", rest=ChangedFields),
    command=Command("change:update"),
    tool=ToolOffer(
        "update",
        "Change a memory",
        "Correct a memory in place: only the fields given change. For a fact that changed in the world, learn with supersedes.",
        effect=Effect(is_destructive=True),
        not_found=IDS,
    ),
)

REVISE = Verb(
    "revise",
    """Add a new version of a fact. The previous one is superseded, stays readable and answers questions about the past.

    Fields that are not given are copied from the current version. `update` changes a memory in place instead.
    """,
    (
        ANY_VERSION,
        Argument(
            "statement",
            TEXT,
            None,
            command=Positional("[TEXT]", "What it says now; - reads it from stdin.", default=""),
        ),
        _NEW_SCOPE,
        *_CHANGED,
        *FORM_PARTS,
    ),
    library=Method("revise", rest=ChangedFields),
    command=Command("change:revise"),
    tool=NotOffered("an agent calls `learn` with supersedes"),
)

PIN = Verb(
    "pin",
    "Pin a memory: it never fades and is offered first.",
    (
        REF,
        Argument("pinned", FLAG, True, is_positional=True),
        flag("unpin", "--unpin", "Let it fade again."),
        ACTOR,
    ),
    library=Method("pin", rest=Owner),
    command=Command("change:pin"),
    tool=NotOffered("only a person decides what always steers an agent"),
)

FEEDBACK = Verb(
    "feedback",
    "Rate a memory. A positive rating ranks it higher in later answers, a negative one lower.",
    (
        REF,
        Argument(
            "signal",
            Text(SIGNALS),
            is_positional=True,
            command=Positional("SIGNAL", "positive, negative or neutral."),
            tool=Property("positive: it helped; negative: it misled; neutral: not useful here."),
        ),
        OWNER_SCOPE,
        SESSION,
        ACTOR,
    ),
    library=Method("feedback", rest=Owner),
    command=Command("change:feedback"),
    tool=ToolOffer(
        "feedback",
        "Rate a memory",
        "Rate whether a memory helped; it changes how readily it is offered again.",
        not_found=IDS,
    ),
)

REINFORCE = Verb(
    "reinforce",
    "Reinforce a memory by hand, so that it does not fade.",
    (REF, Argument("boost", FRACTION, REINFORCE_RETRIEVAL), ACTOR),
    library=Method("reinforce", rest=Owner),
    command=Command("change:reinforce"),
    tool=NotOffered("an agent rates with `feedback`"),
)

VERIFY = Verb(
    "verify",
    """Confirm that a memory is still true. This renews its freshness.

    If anyone but a person has reworded it since it was stored, a person is shown what it says and asked.
    """,
    (REF, ACTOR, Argument("shown", InPython(), ())),
    library=Method("verify", rest=Owner),
    command=Command("change:verify", exits={1: "the person did not confirm it"}),
    tool=NotOffered("a person confirms; an agent rates with `feedback`"),
)

UNDO = Verb(
    "undo",
    """Undo the last decision about a memory, or a bulk decision as a whole. That can be undone, too.

    Of a bulk decision, what was decided otherwise since stays as it is and is reported.
    """,
    (
        REF.replace(
            command=Positional(
                "[ID]", "Id, name or alias of a memory, or the id of a bulk decision (DEC-…).", default=""
            )
        ),
        flag("last", "--last", "Undo the last decision of all, whole if it was a bulk one."),
        ACTOR,
    ),
    library=Method("undo", rest=Owner),
    command=Command("change:undo"),
    tool=NotOffered("decisions are taken back by the person who reviews them"),
)

FORGET = Verb(
    "forget",
    """Retire a memory, or destroy it with --purge.

    A retired memory appears in no answer, stays readable, and `undo` restores it. Purging removes every byte of it, proves
    that, and reports what is out of reach.
    """,
    (
        REF,
        flag(
            "purge", "--purge", "Destroy every byte of it in the store, with proof. Cannot be undone.", in_library=True
        ),
        YES,
        REASON,
        ACTOR,
        OWNER_SCOPE,
    ),
    library=Method("forget", rest=Owner),
    command=Command("change:forget", exits={1: "something of a purged memory is left, or nobody confirmed the purge"}),
    tool=ToolOffer(
        "forget",
        "Forget a memory",
        "Retire a memory that is wrong or unwanted. It stays readable, and its owner can undo this.",
        # Reversible, but it does more than add. A client that asks a person first should ask here, because an agent could
        # be talked into forgetting a constraint. A second call is one more decision in the history.
        effect=Effect(is_destructive=True),
        not_found=IDS,
    ),
)

ENRICH = Verb(
    "enrich",
    """Add cues to memories that have none.

    Without FILE, prints a batch: the id and the quoted statement of each memory that lacks cues, most used first. With FILE, stores
    its cues. Declined memories are not printed again. The gates judge the cues as written by an agent.
    """,
    (
        positional(
            "file", TEXT, "[FILE]",
            'Cues as JSON, {"ID": ["cue", …], …}; [] declines a memory, - reads stdin. Default: print a batch.', default=None,
        ),
        Argument("cues", ListsById(), None, tool=Property("As in learn, by id; [] if none fit."), in_library=False),
        Argument(
            "limit",
            Whole(),
            None,
            command=Option("--limit", "-n", metavar="N", help="Size of the batch (50), or memories for the model (all)."),
            tool=Property(kind=Whole(0, 100), default=50),
            in_library=False,
        ),
        flag("with_model", "--with-model", "Let the configured model write the cues."),
        flag("undo", "--undo", "Remove the cues of the last batch."),
    ),
    library=Facet("enrichment"),
    command=Command("change:enrich", exits={1: "some cues were refused"}),
    tool=ToolOffer(
        "enrich",
        "Add cues to memories",
        "Call at a quiet moment: returns memories that lack cues; the next call stores their cues and returns more.",
    ),
)  # fmt: skip

_FOR_PROGRAMS = NotOffered("a program calls it")
ADD_BATCH = Verb(
    "add_batch",
    "",
    (
        Argument("items", InPython(), is_positional=True),
        Argument("source", TEXT, "manual"),
        Argument("on_error", InPython(), "raise"),
        Argument("progress", InPython(), None),
    ),
    library=Method("add_batch"),
    command=NotOffered("`engram import` reads many memories"),
    tool=_FOR_PROGRAMS,
)  # fmt: skip

PURGE = Verb(
    "purge",
    "",
    (
        Argument("scope", TEXT, "", is_positional=True),
        Argument("agent_id", TEXT, None),
        Argument("user_id", TEXT, None),
        Argument("actor", TEXT, "manual"),
    ),
    library=Method("purge"),
    command=NotOffered("a whole scope is destroyed by programs; `engram forget --purge` takes one memory"),
    tool=_FOR_PROGRAMS,
)  # fmt: skip

INFER_SCOPE = Verb(
    "infer_scope",
    "",
    (
        Argument("statement", TEXT, "", is_positional=True),
        Argument("type", TEXT, ""),
        Argument("situation", TEXT, ""),
        Argument("form", InPython(), None),
    ),
    library=Method("infer_scope"),
    command=NotOffered("`engram learn` does this"),
    tool=_FOR_PROGRAMS,
)  # fmt: skip

COMMANDS = {
    verb.name: verb
    for verb in (
        LEARN, REMEMBER, ADD, UPDATE, REVISE, PIN, FEEDBACK, REINFORCE, FORGET, VERIFY, UNDO, ENRICH,
    )
}  # fmt: skip
