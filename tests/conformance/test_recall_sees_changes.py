"""What a recall shares between its searches, and an index between two questions, ends with the next write."""

from engram.recall.search import SharedReads
from engram.store.protocol import Filters, Query
from tests.backends import Backend

QUESTION = "Where is the spare key of the boathouse?"
TOLD = "The spare key of the boathouse hangs in the pantry."


def crowd(count: int) -> list[dict[str, str]]:
    """Memories that have some of the question's words each."""
    said = ("Boat number {} has a spare oar in the boathouse.", "Boat number {} starts with a brass key.")
    return [{"statement": said[n % 2].format(n), "scope": "global"} for n in range(count)]


def test_a_question_asked_again_finds_what_was_changed_since(backend: Backend) -> None:
    mem = backend.client()
    memory = mem.add("Ferns grow by the northern gate.", scope="global")
    mem.add_batch(crowd(300))
    assert memory.id not in [hit.id for hit in mem.recall(QUESTION, scope="global").hits]
    mem.update(memory.id, statement=TOLD)
    assert mem.recall(QUESTION, scope="global").hits[0].text == TOLD


def test_a_question_asked_again_finds_what_another_process_changed_since(backend: Backend) -> None:
    mem, other = backend.client(), backend.client()
    memory = mem.add("Ferns grow by the northern gate.", scope="global")
    mem.add_batch(crowd(300))
    mem.recall(QUESTION, scope="global")
    other.update(memory.id, statement=TOLD)
    assert mem.recall(QUESTION, scope="global").hits[0].text == TOLD


def test_the_first_event_of_a_store_is_found(backend: Backend) -> None:
    mem = backend.client()
    mem.add_batch(crowd(40))
    question = "Which lock does the pantry need?"
    assert not mem.recall(question, scope="global").hits
    mem.observe("evening", "user", "the pantry needs a padlock with three digits", scope="global")
    assert [hit.kind for hit in mem.recall(question, scope="global").hits] == ["event"]


def test_shared_reads_are_the_reads_of_the_store(backend: Backend) -> None:
    mem = backend.client()
    mem.add_batch(crowd(5))
    store, reads = mem.store, SharedReads(mem.store)
    query = Query(("boat",), reads.vector("a spare oar"), 10)
    for filters in (Filters(), Filters(kinds=("event",)), Filters()):
        wanted, found = store.candidates(query, filters), reads.candidates(query, filters)
        assert [n for n, _ in found.lexical] == [n for n, _ in wanted.lexical]
        assert [n for n, _ in found.semantic] == [n for n, _ in wanted.semantic]
    numbers = [n for n, _ in reads.candidates(query, Filters()).lexical]
    assert list(reads.records(numbers).values()) == store.get_many(numbers)
    assert list(reads.records([*numbers, 10**9])) == numbers


def test_a_current_memory_is_found_behind_many_versions_of_another(backend: Backend) -> None:
    mem = backend.client()
    mem.learn(TOLD, scope="global")
    memory = mem.add("The spare key of the boathouse, number 0, hangs on hook 0.", scope="global")
    for hook in range(1, 45):
        memory = mem.revise(
            memory.id, statement=f"The spare key of the boathouse, number {hook}, hangs on hook {hook}."
        )
    question = "hook number spare key boathouse"
    hits = mem.recall(question, scope="global", min_relevance=0).hits
    assert {TOLD, memory.statement} == {hit.text for hit in hits}
