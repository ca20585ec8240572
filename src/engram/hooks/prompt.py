"""UserPromptSubmit: adds the few memories that are about the task in a prompt, if any."""

from collections.abc import Sequence
from pathlib import Path

from engram.hooks import memory_index
from engram.hooks.memory_index import IndexedMemory, MemoryIndex
from engram.hooks.place import HookPayload, HookPlace
from engram.hooks.session_memo import SessionMemo
from engram.models.task_vectors import least_likeness, likeness

MAX_PROMPT_MEMORIES = 3
NEAREST, BY_WORDS = 40, 4
"""Candidates found by task vector codes, whose vectors are then compared, and candidates found by words."""
MIN_PROMPT_WORDS = 3
"""A shorter prompt ("yes, go on") does not describe a task."""
NOTE_AGAIN = 4 * 3600.0
HEADER = "Memories of earlier sessions that match this prompt (Engram), quoted as evidence; what the user says now comes first:"
NOTE = (
    "Engram is a memory across sessions. The skill /engram:prepare gathers what it and the project's rules say about a task "
    "before it starts; /engram:recall searches it."
)


def answer_prompt(place: HookPlace, payload: HookPayload) -> str:
    """The text to add to a prompt; "" if no memory matches."""
    prompt = payload.prompt.strip()
    if not prompt or prompt.startswith("/") or len(prompt.split()) < MIN_PROMPT_WORDS or payload.is_subagent:
        return ""
    memo = SessionMemo(place, payload.session)
    if place.prompt_recall:
        found = find_matching_memories(place, prompt, payload.cwd, exclude=memo.given_ids)
        if found:
            memo.give([memory.id for memory in found])
            memo.save()
            return "\n".join([HEADER, *map(memory_index.render_memory, found)])
    if memo.seconds_since("note") < NOTE_AGAIN:
        return ""
    memo.note("note")
    memo.save()
    return NOTE


def find_matching_memories(place: HookPlace, prompt: str, cwd: str, exclude: Sequence[str] = ()) -> list[IndexedMemory]:
    """The memories about a prompt, most likely first.

    On a server there are none, because its index is not on this machine.
    """
    index = None if place.is_server else place.index()
    if index is None:
        return []
    try:
        ranked = ranked_memories(index, prompt, place.scopes(Path(cwd or ".")))
        known = frozenset(exclude)
        return memory_index.select_injectable(
            [memory for _, memory in ranked if memory.id not in known], MAX_PROMPT_MEMORIES
        )
    finally:
        index.close()


def ranked_memories(index: MemoryIndex, prompt: str, scopes: Sequence[str]) -> list[tuple[float, IndexedMemory]]:
    """The memories about a prompt with their similarity, most similar first."""
    task, numbers = index.table.prompt(prompt), index.active_numbers(scopes)
    least = least_likeness(len(numbers))
    likely = {n: like for n, like in index.nearest(task, numbers, NEAREST) if like >= least}
    # Memories without a vector yet, or too many to embed now, are found by their words.
    found = index.memories([*likely, *(n for n in index.by_words(prompt, scopes, BY_WORDS) if not index.has_vector(n))])
    for memory in found:
        if memory.n not in likely:
            likely[memory.n] = likeness(task, index.table.encode_note(memory.situation, memory.statement))
    return sorted(((likely[one.n], one) for one in found if likely[one.n] >= least), key=lambda one: -one[0])
