"""PLUR's words and limits beside Engram's, as tables."""

import hashlib
import re

from engram.model.types import type_or_default

ID_GRAMMAR = re.compile(r"(ENG|ABS|META)-[A-Za-z0-9-]+")
EPISODE_ID = re.compile(r"EP-[A-Za-z0-9-]+")

ASSOCIATION_TYPES = frozenset({"semantic", "temporal", "causal", "co_accessed"})
RELATIONS = {"broader": "broader", "narrower": "narrower", "related": "related_to", "conflicts": "contradicts"}
"""PLUR's relations that are links here, and their type."""
RELATED_STRENGTH = 0.5
"""What a relation counts where PLUR spreads over it."""
DAY = len("YYYY-MM-DD")
"""A date; PLUR's last day of validity is included."""
STRONGEST_ASSOCIATION = 0.95
LONGEST_SNIPPET = 200

OWN_KEY = "x_engram"
"""Where an entry carries what PLUR has no place for; PLUR keeps unknown keys at the top of an entry, not below."""
ORIGINALS_KEY = "plur"
"""Where a memory's `extra` carries PLUR's own wording of fields that Engram words differently."""

# PLUR's type → Engram's. `behavioral` and `procedural` are words of both.
_FROM_TYPE = {"terminological": "factual", "architectural": "convention"}
_TO_TYPE = {
    "convention": "architectural",
    "project": "architectural",
    "procedural": "procedural",
    "skill": "procedural",
    "behavioral": "behavioral",
}
_TYPE_OF_KIND = {
    "fact": "terminological",
    "event": "terminological",
    "decision": "architectural",
    "preference": "behavioral",
    "procedure": "behavioral",
}
_TO_STATUS = {"superseded": "retired", "archived": "retired", "rejected": "retired"}


def engram_type(plur_type: str) -> str:
    """Engram's word for a PLUR type; a word neither knows stays."""
    return _FROM_TYPE.get(plur_type, plur_type)


def plur_type(type_name: str) -> str:
    """The PLUR type nearest to one of Engram's: by its name, else by its kind."""
    return _TO_TYPE.get(type_name) or _TYPE_OF_KIND[type_or_default(type_name).kind]


def plur_status(status: str) -> str:
    """PLUR knows four states; what is superseded, archived or rejected is retired there."""
    return _TO_STATUS.get(status, status)


def plur_id(memory_id: str) -> str:
    """The id itself where PLUR's grammar allows it, else one derived from it, the same every time."""
    if ID_GRAMMAR.fullmatch(memory_id):
        return memory_id
    return f"ENG-X-{hashlib.sha256(memory_id.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
