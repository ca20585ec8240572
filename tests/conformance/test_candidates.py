"""What the retrievers find: raw scores, best first, every filter before the cut."""

from dataclasses import replace

import pytest

from engram.model.memory import Anchor
from engram.store.protocol import Filters, Query, Store
from tests.backends import Backend
from tests.conformance.keeping import ANY, Keep, asked, listed, said, texts


def test_by_words_the_rarer_and_denser_match_comes_first(store: Store, keep: Keep) -> None:
    keep("The deploy script waits for the migration")
    keep("The deploy button is green")
    keep("The deploy of the zebra service waits for a long list of other things that have nothing to do with it at all")
    keep("The zebra deploy")
    keep("Coffee is in the kitchen")
    ranking = asked(store, "zebra deploy").lexical
    assert texts(store, ranking)[0] == "The zebra deploy"
    assert texts(store, ranking)[1].startswith("The deploy of the zebra service")
    assert len(ranking) == 4
    scores = [score for _, score in ranking]
    assert scores == sorted(scores, reverse=True)
    assert all(score > 0 for score in scores)


def test_a_word_counts_by_the_field_it_stands_in(store: Store, keep: Keep) -> None:
    keep("Something else entirely", rationale="xylophone")
    keep("Something other entirely", situation="xylophone")
    keep("Something xylophone entirely")
    keep("Nothing of the kind")
    assert texts(store, asked(store, "xylophone").lexical) == [
        "Something xylophone entirely",
        "Something other entirely",
        "Something else entirely",
    ]


@pytest.mark.parametrize(
    "fields",
    [
        {"situation": "near the xylophone"},
        {"tags": ("xylophone",)},
        {"domain": "music/xylophone/wood"},
        {"entities": ("Xylophone",)},
        {"rationale": "the xylophone is loud"},
        {"anchors": (Anchor("a.py", "play(xylophone)"),)},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_the_enriched_text_is_searched(store: Store, keep: Keep, fields: dict[str, object]) -> None:
    keep("A plain fact", **fields)
    keep("Another plain fact")
    assert texts(store, asked(store, "xylophones").lexical) == ["A plain fact"]


def test_what_is_kept_for_reading_only_is_never_searched(store: Store, keep: Keep) -> None:
    keep("A plain fact", context="xylophone", metadata={"k": "xylophone"}, source="xylophone", session="xylophone")
    store.append_events(
        "talk", [said("Ann", "hi", key="xylophone", metadata={"k": "xylophone"}, payload={"k": "xylophone"})]
    )
    assert asked(store, "xylophone", replace(ANY, kinds=("memory", "event"))).lexical == []


def test_by_meaning_the_nearest_comes_first_without_a_shared_word(store: Store, keep: Keep) -> None:
    near = keep("Push the release to the live server on Tuesdays")
    keep("The coffee machine needs descaling every month")
    found = asked(store, "deploy to production")
    assert texts(store, found.semantic)[0] == near.statement
    scores = [score for _, score in found.semantic]
    assert scores == sorted(scores, reverse=True)
    assert 0 < scores[0] <= 1.001


def test_the_raw_score_of_meaning_is_the_cosine(store: Store, keep: Keep) -> None:
    keep("Push the release to the live server on Tuesdays", situation="release day")
    question, meaning = (
        store.embed(["release day"]),
        store.embed(["Push the release to the live server on Tuesdays\nrelease day"]),
    )
    assert question is not None
    assert meaning is not None
    [(_, score)] = store.candidates(Query((), question[0], 5), ANY).semantic
    assert score == pytest.approx(float(question[0] @ meaning[0]), abs=2e-3)


def test_each_retriever_returns_at_most_the_limit(store: Store, keep: Keep) -> None:
    keep.many([{"statement": f"zebra number {n}"} for n in range(30)])
    for limit in (1, 7, 100):
        found = asked(store, "zebra number", limit=limit)
        assert len(found.lexical) == len(found.semantic) == min(limit, 30)


def test_filters_apply_before_the_cut_however_deep_the_wanted_one_lies(store: Store, keep: Keep) -> None:
    keep.many([{"statement": f"zebra report {n}"} for n in range(300)])
    keep(
        "A zebra once crossed the office, long ago and for no reason at all",
        scope="user",
        tags=("rare",),
        metadata={"k": 1},
    )
    for narrow in (Filters(scopes=("user",)), Filters(tags=("rare",)), Filters(metadata={"k": 1})):
        found = asked(store, "zebra report", narrow, limit=3)
        assert len(found.lexical) == len(found.semantic) == 1, narrow


def test_frequencies_and_total_say_how_rare_a_word_is(store: Store, keep: Keep) -> None:
    keep.many(
        [{"statement": "zebra apple"}, {"statement": "zebra zebra"}, {"statement": "apple", "situation": "zebra"}]
    )
    store.append_events("talk", [said("Ann", "a zebra too")])
    found = asked(store, "zebra apples nowhere")
    assert found.frequency == {"zebra": 4, "appl": 2}
    assert found.total == 4
    assert found.pruned == ()
    assert dict(store.frequencies(["zebra", "appl", "nowher"])) == {"zebra": 4, "appl": 2}
    assert dict(store.frequencies([])) == {}


def test_frequencies_follow_changes(backend: Backend, store: Store, keep: Keep) -> None:
    kept = keep("zebra apple")
    keep("zebra pear")
    keep.again(kept, statement="quince apple")
    fresh = backend.store()
    assert dict(fresh.frequencies(["zebra", "appl", "quinc", "pear"])) == {"zebra": 1, "appl": 1, "quinc": 1, "pear": 1}
    store.purge([kept.id], actor="test")
    assert dict(backend.store().frequencies(["zebra", "quinc"])) == {"zebra": 1}


def test_a_changed_text_is_found_by_its_new_words_and_meaning_only(store: Store, keep: Keep) -> None:
    kept = keep("The office is in Berlin")
    keep("The kitchen is on the second floor")
    keep.again(kept, statement="Headquarters moved to Lisbon")
    assert asked(store, "Berlin").lexical == []
    assert texts(store, asked(store, "Lisbon").lexical) == ["Headquarters moved to Lisbon"]
    vectors = store.vectors(list(store.numbers([kept.id]).values()))
    again = store.embed(["Headquarters moved to Lisbon"])
    assert vectors is not None
    assert again is not None
    assert float(vectors[0] @ again[0]) == pytest.approx(1, abs=1e-2)


def test_a_question_without_terms_or_vector_finds_nothing(store: Store, keep: Keep) -> None:
    keep("zebra")
    found = store.candidates(Query(), ANY)
    assert (found.lexical, found.semantic) == ([], [])
    found = store.candidates(Query(("nowher",)), ANY)
    assert (found.lexical, found.frequency) == ([], {})


@pytest.mark.parametrize(
    "term", ['"', "'", "zebra' OR '1'='1", "zebra OR apple", "zebra*", "%", "a\\", "NEAR(zebra)", "🚀"]
)
def test_a_term_is_a_term_and_no_language(store: Store, keep: Keep, term: str) -> None:
    keep("zebra apple")
    assert store.candidates(Query((term.replace('"', "”"),)), ANY).lexical == []
    assert listed(store) == ["zebra apple"]


def test_an_empty_store_answers_with_nothing(store: Store) -> None:
    found = asked(store, "anything at all")
    assert (found.lexical, found.semantic, found.total, found.frequency) == ([], [], 0, {})
    assert store.listing(ANY) == []
    assert store.count(ANY) == 0


def test_without_an_embedder_it_is_searched_by_keyword(backend: Backend, keep: Keep) -> None:
    keep("zebra")
    plain = backend.store(keyword_only=True)
    assert plain.embed(["zebra"]) is None
    assert plain.vectors([1]) is None
    assert texts(plain, plain.candidates(Query(("zebra",)), ANY).lexical) == ["zebra"]


def test_what_was_written_without_an_embedder_is_embedded_when_there_is_one(backend: Backend, keep: Keep) -> None:
    plain = backend.store(keyword_only=True)
    Keep(plain, keep.clock)("The coffee machine needs descaling")
    able = backend.store()
    able.reembed()
    assert texts(able, asked(able, "clean the espresso maker").semantic) == ["The coffee machine needs descaling"]


def test_many_writers_words_are_counted_once(store: Store, keep: Keep) -> None:
    kept = keep("zebra")
    for n in range(3):
        kept = keep.again(kept, confidence=n / 10)
    found = asked(store, "zebra")
    assert len(found.lexical) == len(found.semantic) == 1
    assert (found.total, found.frequency) == (1, {"zebra": 1})
