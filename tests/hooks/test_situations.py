"""Matching without numpy: the same vectors as the engine's, and task vectors that follow the store."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engram.embedding.static import StaticEmbedder
from engram.embedding.word_pieces import BITS, PlainTable, code_of_values
from engram.hooks import memory_index
from engram.hooks.memory_index import MemoryIndex, vectors_of
from engram.hooks.prompt import ranked_memories
from engram.model.errors import EmbedderError
from engram.model.lazy import replace
from engram.models import task_vectors
from engram.models.task_vectors import TaskTable, least_likeness, likeness, task_relevance
from engram.store.sqlite.search import TASKS
from engram.store.sqlite.stored_tasks import NO_VECTOR, StoredTasks
from tests.tables import table

from .conftest import Hooked

TEXTS = (
    "Deploys go through the staging cluster first",
    "kubectl get pods",
    "数据库的备份",
    "",
    "naïve café ☕",
    "a",
    "Wo ist der Schlüssel für den Keller?",
)


@table("text", TEXTS)
def test_a_text_has_the_vector_that_the_engine_gives_it(text: str) -> None:
    expected = StaticEmbedder().embed([text])[0]
    assert np.allclose(expected, np.array(PlainTable().embed(text)), atol=1e-5)


def test_codes_tell_which_texts_are_alike() -> None:
    texts = ("deploy the service", "deploying services to production", "a recipe for plum cake")
    one, other, strange = (code_of_values(PlainTable().embed(text)) for text in texts)
    assert (one ^ other).bit_count() < (one ^ strange).bit_count() - BITS // 10


NOTES = (
    ("upgrading a dependency", "Read the lockfile's diff before you commit"),
    ("planning a holiday", "The children cannot fly before the seventh of July"),
    ("", "Deploys go through the staging cluster first"),
    ("数据库的备份", "每天晚上"),
    ("", ""),
)


@pytest.mark.parametrize("note", NOTES)
def test_a_memory_has_the_same_task_vector_alone_and_among_many(note: tuple[str, str]) -> None:
    table = TaskTable()
    alone, among = (
        np.frombuffer(vector, dtype=np.int8)
        for vector in (table.encode_note(*note), table.encode_notes([*NOTES, note])[-1])
    )
    assert np.abs(alone.astype(int) - among).max() <= 1


@table("text", TEXTS)
def test_a_prompt_has_the_same_vector_with_and_without_numpy(text: str) -> None:
    assert TaskTable().prompt_with_numpy(text) == TaskTable().prompt(text)


def test_a_prompt_is_nearer_to_its_situation_than_to_another_one_that_shares_as_few_words() -> None:
    table = TaskTable()
    prompt = table.prompt("bump axios to the latest version and make sure nothing breaks")
    upgrading, holiday = (likeness(prompt, table.encode_note(*note)) for note in NOTES[:2])
    assert upgrading > holiday + 0.1


def test_a_prompt_without_a_known_word_is_like_nothing() -> None:
    table = TaskTable()
    assert likeness(table.prompt("☃ ☃ ☃"), table.encode_note(*NOTES[0])) == 0
    assert likeness(table.prompt("deploy it"), NO_VECTOR) == 0


def test_only_the_memory_about_a_prompt_is_like_enough() -> None:
    table = TaskTable()
    prompt = table.prompt("deploy the payments service")
    about = likeness(prompt, table.encode_note("deploying a service", "Deploys go through staging"))
    strange = likeness(prompt, table.encode_note("training image models", "Fix the seeds"))
    assert about > least_likeness(100) > strange


def test_among_more_memories_one_must_be_more_like_the_prompt() -> None:
    assert least_likeness(1) == least_likeness(100) < least_likeness(1_000) < least_likeness(10_000)
    assert task_relevance(least_likeness(1_000), 1_000) == pytest.approx(task_relevance(least_likeness(50), 50))
    assert 0 < task_relevance(-1, 10) < 0.001 < 0.999 < task_relevance(1, 10) < 1


def tasks_of(hooked: Hooked, *, all_of_them: bool = False) -> StoredTasks:
    """The task vectors as a hook that starts now reads them."""
    (database,) = hooked.cache.rglob("index.db")
    index = MemoryIndex(database.parent)
    try:
        return index.tasks(all_of_them=all_of_them)
    finally:
        index.close()


def test_task_vectors_follow_a_memory_that_changes(hooked: Hooked) -> None:
    memory = hooked.learned("Deploys go through staging", "deploying a service")
    before = tasks_of(hooked)
    with hooked.open() as mem:
        mem.update(memory, statement="Deploys go through the canary first")
    after = tasks_of(hooked)
    assert list(before.codes) == list(after.codes)
    assert {before.vector(n) for n in before.codes} != {after.vector(n) for n in after.codes}
    assert tasks_of(hooked).codes == after.codes


def test_a_prompt_embeds_the_newest_and_later_ones_the_rest(hooked: Hooked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_index, "READ_AT_A_PROMPT", 2)
    for number in range(5):
        hooked.learned(f"The bittern ledger of year {number} is closed", f"closing the books of branch {number}")
    sizes = [len(tasks_of(hooked).codes) for _ in range(4)]
    assert sizes == [2, 4, 5, 5]


def test_a_session_start_embeds_all_of_them_at_once(hooked: Hooked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_index, "READ_AT_A_PROMPT", 1)
    monkeypatch.setattr(memory_index, "AT_ONCE", 2)
    monkeypatch.setattr(memory_index, "SLICE", 2)
    monkeypatch.delattr(TaskTable, "note")
    for number in range(4):
        hooked.learned(f"The bittern ledger of year {number} is closed", f"closing the books of branch {number}")
    tasks = tasks_of(hooked, all_of_them=True)
    assert len(set(map(tasks.vector, tasks.codes))) == 4
    assert tasks_of(hooked).state == tasks.state


def shortened(data: bytes) -> bytes:
    return data[:-1]


def lengthened(data: bytes) -> bytes:
    return data + b"x"


def recounted(data: bytes) -> bytes:
    return data[:40] + bytes([data[40] + 1]) + data[41:]


def zeroed(data: bytes) -> bytes:
    return data[:60] + bytes(len(data) - 60)


def emptied(data: bytes) -> bytes:
    return b""


@pytest.mark.parametrize("damage", [emptied, shortened, lengthened, recounted, zeroed])
def test_a_damaged_file_of_task_vectors_is_made_again(hooked: Hooked, damage: Callable[[bytes], bytes]) -> None:
    hooked.learned("Deploys go through staging", "deploying a service")
    before = tasks_of(hooked)
    (file,) = hooked.cache.rglob(TASKS)
    file.write_bytes(damage(file.read_bytes()))
    after = tasks_of(hooked)
    assert (after.codes, after.state) == (before.codes, before.state)


def test_an_index_that_was_made_again_has_the_vectors_of_its_own_memories(hooked: Hooked) -> None:
    for number in range(3):
        hooked.learned(f"The bittern ledger of year {number} is closed", f"closing the books of branch {number}")
    for _ in range(2):
        with hooked.open() as mem:
            mem.forget(mem.list()[0].id)
            mem.add("Deploys go through staging", situation="deploying a service", scope="global")
        for file in hooked.cache.rglob("index.db*"):
            file.unlink()
        with hooked.open() as mem:
            mem.search("deploy")
        tasks = tasks_of(hooked)
    (database,) = hooked.cache.rglob("index.db")
    index = MemoryIndex(database.parent)
    memories = index.memories(list(tasks.codes))
    index.close()
    assert [tasks.vector(one.n) for one in memories] == [
        TaskTable().encode_note(one.situation, one.statement) for one in memories
    ]


def test_a_prompt_finds_a_memory_by_its_cues_once_it_has_some(hooked: Hooked) -> None:
    prompt = "fix this: psql says connection refused"
    memory = hooked.learned("Birch listens on 6543 since the move")
    for filler in ("Fix the seeds of image models", "Invoices are paid within fourteen days", "Ana lives in Lisbon"):
        hooked.learned(filler)
    assert memory not in hooked("prompt", prompt=prompt)
    with hooked.open() as mem:
        mem.enrichment.apply({memory: ["psql connection refused", "which port does postgres use"]})
    assert memory in hooked("prompt", prompt=prompt)


def test_a_memory_that_is_gone_has_no_task_vector(hooked: Hooked) -> None:
    gone = hooked.learned("Deploys go through staging", "deploying a service")
    hooked.learned("Fix the seeds", "training image models")
    assert len(tasks_of(hooked).codes) == 2
    with hooked.open() as mem:
        mem.forget(gone)
    assert len(tasks_of(hooked).codes) == 1


def test_a_complete_file_of_task_vectors_is_not_replaced_by_an_incomplete_one(
    hooked: Hooked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_index, "READ_AT_A_PROMPT", 1)
    for number in range(3):
        hooked.learned(f"The bittern ledger of year {number} is closed", f"closing the books of branch {number}")
    asked: list[int] = []

    def meanwhile(*given: Any, **options: Any) -> Any:
        if not asked:
            asked.append(1)
            tasks_of(hooked, all_of_them=True)
        return vectors_of(*given, **options)

    monkeypatch.setattr(memory_index, "vectors_of", meanwhile)
    tasks_of(hooked)
    (file,) = hooked.cache.rglob(TASKS)
    assert len(StoredTasks.read(file).codes) == 3


def cut_header(data: bytes) -> bytes:
    return data[:10]


@pytest.mark.parametrize("damage", [emptied, cut_header, shortened, lengthened])
def test_damaged_task_vectors_are_named_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: Callable[[bytes], bytes]
) -> None:
    file = tmp_path / "task_vectors.bin"
    file.write_bytes(damage(task_vectors.FILE.read_bytes()))
    monkeypatch.setattr(task_vectors, "FILE", file)
    with pytest.raises(EmbedderError, match="reinstall engram"):
        TaskTable().prompt("deploy the service")


def test_a_memory_without_a_vector_is_found_by_its_words(hooked: Hooked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_index, "READ_AT_A_PROMPT", 0)
    hooked.learned("Deploys go through staging", "deploying a service")
    (database,) = hooked.cache.rglob("index.db")
    index = MemoryIndex(database.parent)
    found = ranked_memories(index, "deploying the payments service", ["global"])
    assert not index.tasks().codes
    index.close()
    assert [memory.statement for _, memory in found] == ["Deploys go through staging"]


def test_vectors_by_other_task_vectors_are_not_compared(hooked: Hooked) -> None:
    hooked.learned("Deploys go through staging", "deploying a service")
    before = tasks_of(hooked)
    (file,) = hooked.cache.rglob(TASKS)
    n = next(iter(before.codes))
    other = replace(before.state, model=before.state.model + 1)
    before.merge(other, {n: bytes([1]) * 256}, before.changes).write(file)
    assert tasks_of(hooked).vector(n) == before.vector(n)


def test_a_purge_removes_the_task_vectors(hooked: Hooked) -> None:
    memory = hooked.learned("Deploys go through staging", "deploying a service")
    hooked("prompt", prompt="please start deploying the service")
    (file,) = hooked.cache.rglob(TASKS)
    with hooked.open() as mem:
        mem.forget(memory, purge=True)
    assert not file.exists()


def test_a_prompt_in_another_language_finds_an_english_memory(hooked: Hooked) -> None:
    hooked.learned("The train to Leeds leaves from platform nine")
    wanted = hooked.learned("The washing machine drum must be descaled with vinegar")
    (database,) = hooked.cache.rglob("index.db")
    index = MemoryIndex(database.parent)
    found = index.by_words("Womit entkalke ich die Waschmaschine, mit Essig?", ["global"], 1)
    assert [memory.id for memory in index.memories(found)] == [wanted]
