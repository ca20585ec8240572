"""Nearest vectors: by an index where the question is wide, exactly where it is narrow, and online through a change of embedder."""

import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import psycopg
import pytest
from psycopg import sql

from engram.model.errors import EmbedderError, InvalidInput
from engram.store.postgres import neighbours, rebuild
from engram.store.postgres.setup import open_store
from engram.store.postgres.store import PostgresStore
from engram.store.protocol import Candidates, Filters, Query
from tests.clock import Clock
from tests.conformance.keeping import ANY, Keep, asked, texts

VECTORS, DIM, QUESTIONS = 2_000, 64, 20
NARROW = 500
RARE = "project:rare"
Ranking = list[tuple[int, float]]

FILL = """
WITH numbered AS (SELECT nextval('engram.document_numbers') AS n, i FROM generate_series(1, %(count)s) AS i),
put AS (
    INSERT INTO engram.documents (tenant, n, id, kind, scope, status, type, domain, parent, position, pinned, hash, change, tags,
        statement, about, support, length, meaning)
    SELECT %(tenant)s, n, 'ENG-2026-0101-' || i, 'memory', CASE WHEN i %% 100 = 0 THEN %(rare)s ELSE 'global' END, 'active',
        CASE WHEN i %% 100 = 1 THEN 'decision' ELSE 'factual' END, '', '', 0, false, '', 0, '{}', '', '', '', 0, '' FROM numbered
)
INSERT INTO engram.memory_vectors (tenant, generation, n, kind, scope, vector)
SELECT %(tenant)s, 1, n, 'memory', CASE WHEN i %% 100 = 0 THEN %(rare)s ELSE 'global' END,
    l2_normalize((SELECT array_agg(random() - .2 + 0 * (i + j)) FROM generate_series(1, %(dim)s) AS j)::vector::halfvec) FROM numbered
"""
"""Documents and vectors without anything else; what is nearest does not ask for more."""


class Points:
    """A space of its own: every text a direction, the same text the same."""

    def __init__(self, dim: int = DIM, name: str = "points") -> None:
        self.name, self.dim = f"{name}-{dim}", dim
        self.embedded = 0
        self.before: Callable[[], None] = lambda: None

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """One unit row per text."""
        self.before()
        self.embedded += len(texts)
        rows = [np.random.default_rng(sum(text.encode())).normal(0.5, 1, self.dim) for text in texts]
        return np.array([row / np.linalg.norm(row) for row in rows], dtype=np.float32).reshape(-1, self.dim)


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """What counts as narrow is smaller here than in earnest."""
    monkeypatch.setattr(neighbours, "MAX_EXACT_SEARCH_VECTORS", NARROW)


@pytest.fixture(scope="module")
def stores(shared_database: str) -> Iterator[list[PostgresStore]]:
    """Two tenants of two thousand vectors, each with an index of its own."""
    opened = []
    for name in (f"near-{secrets.token_hex(4)}", f"near-{secrets.token_hex(4)}"):
        store = open_store(shared_database, name, Points(), clock=Clock())
        with store.context.database.transaction() as connection:
            connection.execute(FILL, {"count": VECTORS, "dim": DIM, "tenant": name, "rare": RARE})
        store.build_nearest()
        opened.append(store)
    yield opened
    for store in opened:
        neighbours.drop_all(store.context.database)
        store.close()


@pytest.fixture
def store(stores: list[PostgresStore]) -> PostgresStore:
    """A tenant whose vectors have an index."""
    return stores[0]


def questions() -> npt.NDArray[np.float32]:
    """Some directions."""
    return Points().embed([f"question {number * 7}" for number in range(QUESTIONS)])


def exact(store: PostgresStore, filters: Filters, limit: int) -> list[set[int]]:
    """The nearest to each question by comparing with all of them here."""
    rows = store.context.database.query(
        "SELECT v.n, v.vector::text FROM engram.memory_vectors v JOIN engram.documents d ON d.tenant = v.tenant AND d.n = v.n "
        "WHERE v.tenant = %(tenant)s AND (%(scope)s = '' OR d.scope = %(scope)s) AND (%(type)s = '' OR d.type = %(type)s)",
        {"scope": (filters.scopes or ("",))[0], "type": (filters.types or ("",))[0]},
    )
    numbers = [n for n, _ in rows]
    held = np.array([[float(x) for x in text[1:-1].split(",")] for _, text in rows])
    return [{numbers[i] for i in np.argsort(-(held @ question))[:limit]} for question in questions()]


def recall(found: Sequence[Ranking], wanted: Sequence[set[int]]) -> float:
    """The share found of what was to be found."""
    return float(
        np.mean([len({n for n, _ in got} & want) / len(want) for got, want in zip(found, wanted, strict=True)])
    )


def answers(store: PostgresStore, filters: Filters, limit: int) -> list[Ranking]:
    """What a search by meaning finds."""
    return [store.candidates(Query((), question, limit), filters).semantic for question in questions()]


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """How each question was answered."""
    seen: list[str] = []

    def noting(name: str) -> Callable[..., neighbours.NeighbourSearch]:
        way: Callable[..., neighbours.NeighbourSearch] = getattr(neighbours, name)

        def noted(*asked: Any) -> neighbours.NeighbourSearch:
            seen.append(name)
            return way(*asked)

        return noted

    for name in ("index_search", "exact_search"):
        monkeypatch.setattr(neighbours, name, noting(name))
    return seen


def test_a_wide_question_is_answered_by_the_index_and_a_narrow_one_exactly(
    store: PostgresStore, ways: list[str]
) -> None:
    for filters, way in (
        (Filters(), "index_search"),
        (Filters(scopes=(RARE,)), "exact_search"),
        (Filters(scopes=("global", RARE)), "index_search"),
    ):
        store.candidates(Query((), questions()[0], 10), filters)
        assert ways.pop() == way
        assert ways == []


def test_the_planner_takes_the_index(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    name = neighbours.index_name(store.context.database.tenant, 1)
    for filters in (Filters(), Filters(scopes=("global",))):
        way = neighbours.index_search(store.context, questions()[0], filters, 60, store.context.settings.generation)
        ask = partial(neighbours.nearest, store.context, way)
        plan = plan_of(store, monkeypatch, ask)
        assert f"Index Scan using {name}" in plan
        assert "Sort" not in plan


def plan_of(store: PostgresStore, monkeypatch: pytest.MonkeyPatch, work: Callable[[], object]) -> str:
    """The plan of the last statement that some work sends, under the settings it made before it."""
    sent: list[tuple[Any, Any]] = []
    execute = psycopg.Connection.execute

    def noted(self: Any, query: Any, params: Any = None, **rest: Any) -> Any:
        sent.append((query, params))
        return execute(self, query, params, **rest)

    with monkeypatch.context() as patch:
        patch.setattr(psycopg.Connection, "execute", noted)
        work()
    at = max(i for i, (query, _) in enumerate(sent) if isinstance(query, sql.Composed))
    before = [as_bytes(query) for query, _ in sent[:at] if isinstance(query, (str, bytes))]
    with store.context.database.transaction() as connection:
        # What a table without statistics is thought to hold depends on who else wrote to it; the index is taken whatever it costs.
        connection.execute("SET LOCAL random_page_cost = 100000")
        for setting in before:
            if b"SET LOCAL" in setting:
                connection.execute(setting)
        query, params = sent[at]
        rows = connection.execute(sql.SQL("EXPLAIN ") + query, params).fetchall()
    return "\n".join(line for (line,) in rows)


def as_bytes(query: str | bytes) -> bytes:
    return query.encode() if isinstance(query, str) else query


@pytest.mark.parametrize(
    "filters",
    [Filters(), Filters(scopes=(RARE,)), Filters(types=("decision",))],
    ids=["all", "scope of 1 %", "type of 1 %"],
)
def test_with_the_index_a_filtered_search_finds_what_an_exact_one_finds(store: PostgresStore, filters: Filters) -> None:
    assert recall(answers(store, filters, 20), exact(store, filters, 20)) >= 0.98


@pytest.mark.heavy
@pytest.mark.parametrize("filters", [Filters(), Filters(scopes=(RARE,))], ids=["all", "scope of 1 %"])
def test_the_bound_that_some_vectors_set_leaves_out_none_of_the_nearest(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch, filters: Filters
) -> None:
    found = {}
    for some in (0, 19, 20, 60, 2 * VECTORS):
        monkeypatch.setattr(neighbours, "FIRST_COMPARED_VECTORS", some)
        ways = [neighbours.exact_search(store.context, question, filters, 20, 1) for question in questions()]
        found[some] = [neighbours.nearest(store.context, way) for way in ways]
    assert all(ranking == found[0] for ranking in found.values())
    assert recall(found[60], exact(store, filters, 20)) >= 0.98


def test_the_index_itself_keeps_its_recall_in_a_narrow_scope(store: PostgresStore) -> None:
    filters = Filters(scopes=(RARE,))
    found = [
        neighbours.nearest(
            store.context,
            neighbours.index_search(store.context, question, filters, 20, store.context.settings.generation),
        )
        for question in questions()
    ]
    assert recall(found, exact(store, filters, 20)) >= 0.98


@pytest.mark.heavy
def test_nothing_of_another_tenant_is_found_by_the_index(stores: list[PostgresStore]) -> None:
    text = "SELECT n FROM engram.documents WHERE tenant = %(tenant)s"
    numbers = [{n for (n,) in store.context.database.query(text, {})} for store in stores]
    assert numbers[0].isdisjoint(numbers[1])
    for store, own in zip(stores, numbers, strict=True):
        found = {n for ranking in answers(store, Filters(), 200) for n, _ in ranking}
        assert found
        assert found <= own


def test_a_store_without_vectors_has_nothing_to_index(shared_database: str, tenant: str, clock: Clock) -> None:
    empty = open_store(shared_database, tenant, None, clock=clock)
    with pytest.raises(InvalidInput, match="no vectors yet"):
        empty.build_nearest()
    empty.close()


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else searches meanwhile."""
    monkeypatch.setattr(rebuild, "CACHE_SECONDS", 0)


@pytest.fixture
def few(shared_database: str, tenant: str, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Iterator[PostgresStore]:
    """Forty memories, embedded eight at a time."""
    monkeypatch.setattr(rebuild, "EMBEDDED_AT_ONCE", 8)
    opened = open_store(shared_database, tenant, Points(), clock=clock)
    Keep(opened, clock).many([{"statement": f"Something about number {number}"} for number in range(40)])
    yield opened
    neighbours.drop_all(opened.context.database)
    opened.close()


def test_what_is_written_after_the_index_was_made_is_found_by_it(
    few: PostgresStore, clock: Clock, ways: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neighbours, "MAX_EXACT_SEARCH_VECTORS", 5)
    assert few.build_nearest() == few.build_nearest()
    assert len(neighbours.indexes_of(few.context.database)) == 1
    Keep(few, clock)("A new direction")
    assert texts(few, asked(few, "A new direction", ANY, 1).semantic) == ["A new direction"]
    assert ways == ["index_search"]


@pytest.mark.usefixtures("hurried")
def test_after_reembedding_the_old_index_is_gone_and_none_is_asked(
    few: PostgresStore, shared_database: str, clock: Clock, ways: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neighbours, "MAX_EXACT_SEARCH_VECTORS", 5)
    few.build_nearest()
    other = open_store(shared_database, few.context.database.tenant, Points(32, "others"), clock=clock)
    other.reembed()
    assert (neighbours.indexes_of(few.context.database), other.context.settings.get("hnsw")) == (set(), None)
    assert texts(other, asked(other, "Something about number 7", ANY, 1).semantic) == ["Something about number 7"]
    assert ways == ["exact_search"]
    other.close()


def test_searches_answer_from_the_old_vectors_until_the_switch_and_from_the_new_ones_after_it(
    few: PostgresStore, shared_database: str, clock: Clock
) -> None:
    before = asked(few, "Something about number 7").semantic
    begun, ended = threading.Event(), threading.Event()
    seen: list[Candidates] = []
    new = Points(32, "others")
    new.before = begun.set

    def search() -> None:
        begun.wait(120)
        while not ended.is_set():
            seen.append(asked(few, "Something about number 7"))

    other = open_store(shared_database, few.context.database.tenant, new, clock=clock)
    assert asked(other, "Something about number 7").semantic == []
    searching = threading.Thread(target=search)
    searching.start()
    assert other.reembed() == 40
    ended.set()
    searching.join(120)
    assert len(seen) > 5
    with_vectors = [found for found in seen if found.semantic]
    assert all(found.semantic == before for found in with_vectors)
    assert all("--reembed" in found.warnings[0] for found in seen if not found.semantic)
    assert seen[0].semantic == before
    after = asked(other, "Something about number 7")
    assert texts(other, after.semantic)[0] == "Something about number 7"
    assert not after.warnings
    other.close()


@pytest.mark.usefixtures("hurried")
def test_a_reembedding_that_was_killed_goes_on_where_it_was(
    few: PostgresStore, shared_database: str, clock: Clock
) -> None:
    class Killed(BaseException):
        """The process ends here."""

    dying, again = Points(32, "others"), Points(32, "others")

    def die() -> None:
        if dying.embedded >= 16:
            raise Killed

    dying.before = die
    first = open_store(shared_database, few.context.database.tenant, dying, clock=clock)
    with pytest.raises(Killed):
        first.reembed()
    first.close()
    second = open_store(shared_database, few.context.database.tenant, again, clock=clock)
    assert second.reembed() == again.embedded == 24
    assert texts(second, asked(second, "Something about number 3").semantic)[0] == "Something about number 3"
    second.close()


@pytest.mark.usefixtures("hurried")
def test_what_a_reembedding_killed_at_its_very_end_left_is_taken_away_by_the_next(
    few: PostgresStore, shared_database: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    few.build_nearest()
    other = open_store(shared_database, few.context.database.tenant, Points(32, "others"), clock=clock)
    with monkeypatch.context() as patch:
        patch.setattr(rebuild, "_drop_old", lambda *_: None)
        other.reembed()
    generations = "SELECT count(DISTINCT generation) FROM engram.memory_vectors WHERE tenant = %(tenant)s"
    assert other.context.database.query(generations, {}) == [(2,)]
    assert other.reembed() == 0
    assert other.context.database.query(generations, {}) == [(1,)]
    assert neighbours.indexes_of(other.context.database) == set()
    other.close()


def test_long_vectors_are_kept_found_and_indexed(
    shared_database: str, tenant: str, clock: Clock, ways: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(shared_database, tenant, Points(1536), clock=clock)
    Keep(store, clock).many([{"statement": f"Something about number {number}"} for number in range(40)])
    for _ in range(2):
        found = asked(store, "Something about number 7", ANY, 40)
        assert texts(store, found.semantic)[0] == "Something about number 7"
        assert found.semantic[0][1] == pytest.approx(1, abs=0.001)
        monkeypatch.setattr(neighbours, "MAX_EXACT_SEARCH_VECTORS", 5)
        store.build_nearest()
        store.context.settings.refresh()
    assert ways == ["exact_search", "index_search"]
    vectors = store.vectors([found.semantic[0][0]])
    assert vectors is not None
    assert vectors.shape == (1, 1536)
    neighbours.drop_all(store.context.database)
    store.close()


def test_an_embedder_of_the_same_name_and_another_length_is_refused(
    few: PostgresStore, shared_database: str, clock: Clock
) -> None:
    wrong = Points(32)
    wrong.name = f"points-{DIM}"
    with pytest.raises(EmbedderError, match="32"):
        open_store(shared_database, few.context.database.tenant, wrong, clock=clock)
