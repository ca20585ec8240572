"""The verbs that store memories."""

from engram.model.fields import MemoryFields
from engram.verbs.declaration import REQUIRED, Argument, Command, Method, Option, Positional, Property, Tool, Verb
from engram.verbs.kinds import Text
from engram.verbs.shared import (
    CLAIMED_SOURCE,
    CUES,
    DOMAIN,
    FLAG,
    FORM_PARTS,
    MEMORY,
    MEMORY_SCOPE,
    NEW_MEMORY,
    NOT_A_SECRET,
    RATIONALE,
    RELATION,
    SESSION,
    SOURCE,
    STATEMENT,
    SUPERSEDES,
    TYPE,
)

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
    tool=Tool(
        "learn",
        "Learn a fact",
        "Propose a memory: a correction, convention, decision, lesson or fact that will matter again. Gates check it; the answer "
        "gives the outcome and why. related lists stored memories that it may outdate: if it replaces one, call learn again "
        "with that id in supersedes; if not, with relation different.",
        not_found="Ids come from recall, list and the related memories of learn.",
    ),
)

COMMANDS = {verb.name: verb for verb in (LEARN,)}
