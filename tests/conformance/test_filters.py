"""Every filter alone and combined; the same ones hold for listing, counting and searching."""

from dataclasses import replace
from typing import Any

from engram.model.memory import LIVE_STATUSES
from engram.store.protocol import Filters, Store
from tests.conformance.keeping import ANY, Keep, asked, day, listed, said, texts

ZEBRA: list[dict[str, Any]] = [
    {"statement": "zebra one", "occurred_at": day(1), "scope": "project:acme", "type": "factual", "tags": ("Wild", "big"),
     "domain": "life/animals", "metadata": {"n": 1, "ok": True, "ratio": 0.5, "who": "Ann", "labels": ["x", "y"]}},
    {"statement": "zebra two", "occurred_at": day(2), "scope": "project:acme/api", "type": "preference", "tags": ("wild",),
     "domain": "life/animals/wild", "metadata": {"n": 2, "ok": False, "ratio": 1.5, "who": "Bob", "labels": ["y", 3]}},
    {"statement": "zebra three", "occurred_at": day(3), "status": "candidate", "domain": "life/animalsish",
     "metadata": {"n": "2", "who": None, "deep": {"a": [1, 2]}}, "pinned": True},
    {"statement": "zebra four", "occurred_at": day(4), "status": "superseded", "valid_from": day(1), "valid_until": day(10)},
    {"statement": "zebra five", "occurred_at": day(5), "status": "archived", "scope": "user"},
    {"statement": "zebra six", "occurred_at": day(6), "status": "retired", "domain": "life"},
    {"statement": "zebra seven", "occurred_at": day(7), "status": "dormant", "valid_from": day(10), "valid_until": day(20)},
    {"statement": "zebra eight", "occurred_at": day(8), "status": "rejected"},
]  # fmt: skip

CASES: list[tuple[str, Filters, str]] = [
    ("everything", ANY, "one two three four five six seven eight"),
    ("what is live by default", Filters(), "one two seven"),
    ("no scope", replace(ANY, scopes=()), ""),
    ("one scope, without its descendants", replace(ANY, scopes=("project:acme",)), "one"),
    ("several scopes", replace(ANY, scopes=("project:acme/api", "user", "nowhere")), "two five"),
    ("statuses", replace(ANY, statuses=("archived", "retired")), "five six"),
    ("no status", replace(ANY, statuses=()), ""),
    ("types", replace(ANY, types=("preference", "factual")), "one two"),
    ("a tag, whatever its case", replace(ANY, tags=("WILD",)), "one two"),
    ("every tag", replace(ANY, tags=("wild", "big")), "one"),
    ("a tag nobody has", replace(ANY, tags=("wil",)), ""),
    ("a domain with its descendants", replace(ANY, domain="life/animals"), "one two"),
    ("a whole domain", replace(ANY, domain="life"), "one two three six"),
    ("a domain is no pattern", replace(ANY, domain="life/anima%"), ""),
    ("since, included", replace(ANY, since=day(6)), "six seven eight"),
    ("until, excluded", replace(ANY, until=day(3)), "one two"),
    ("a window", replace(ANY, since=day(2), until=day(4)), "two three"),
    ("pinned", replace(ANY, pinned=True), "three"),
    ("valid at a moment", replace(ANY, valid_at=day(10)), "one two three five six seven eight"),
    ("valid now: what had begun when it was stored, although the clock was set back", Filters(valid_at=day(9)), "one two seven"),
    ("valid until excludes its moment", Filters(valid_at=day(20)), "one two"),
    ("as of a moment: superseded ones count", Filters(valid_at=day(9), as_of=True), "one two four five"),
    ("as of a moment before some of it was", Filters(valid_at=day(2), as_of=True), "one two four"),
    ("as of the moment a truth ends", Filters(valid_at=day(10), as_of=True), "one two five seven"),
    ("metadata: a number", replace(ANY, metadata={"n": 1}), "one"),
    ("metadata: a number is not its digits", replace(ANY, metadata={"n": 2}), "two"),
    ("metadata: digits are not a number", replace(ANY, metadata={"n": "2"}), "three"),
    ("metadata: a float", replace(ANY, metadata={"ratio": 1.5}), "two"),
    ("metadata: true", replace(ANY, metadata={"ok": True}), "one"),
    ("metadata: false", replace(ANY, metadata={"ok": False}), "two"),
    ("metadata: true is not 1", replace(ANY, metadata={"n": True}), ""),
    ("metadata: 1 is not true", replace(ANY, metadata={"ok": 1}), ""),
    ("metadata: 0.0 is not false", replace(ANY, metadata={"ok": 0.0}), ""),
    ("metadata: text", replace(ANY, metadata={"who": "Ann"}), "one"),
    ("metadata: any item of a list", replace(ANY, metadata={"labels": "y"}), "one two"),
    ("metadata: a number in a list", replace(ANY, metadata={"labels": 3}), "two"),
    ("metadata: a whole list", replace(ANY, metadata={"labels": ["x", "y"]}), "one"),
    ("metadata: a mapping", replace(ANY, metadata={"deep": {"a": [1, 2]}}), "three"),
    ("metadata: a text inside a mapping is not the mapping", replace(ANY, metadata={"deep": 1}), ""),
    ("metadata: a text that looks like a list", replace(ANY, metadata={"deep": "[1,2]"}), ""),
    ("metadata: true inside a mapping is not 1", replace(ANY, metadata={"deep": {"a": [True, 2]}}), ""),
    ("metadata: nothing", replace(ANY, metadata={"n": None}), "four five six seven eight"),
    ("metadata: more than 64 bits", replace(ANY, metadata={"n": 2**80}), ""),
    ("metadata: a text no database stores", replace(ANY, metadata={"who": "\x00"}), ""),
    ("metadata: two at once", replace(ANY, metadata={"labels": "y", "who": "Bob"}), "two"),
    ("metadata: a key nobody has", replace(ANY, metadata={"nope": 1}), ""),
    ("metadata: no pattern", replace(ANY, metadata={"who": "A%"}), ""),
    ("metadata: a hostile key", replace(ANY, metadata={"who' OR 1=1 --": "Ann", '"': "x"}), ""),
    ("many at once", Filters(scopes=("project:acme", "project:acme/api"), types=("factual", "preference"), tags=("wild",),
                             domain="life", since=day(2), until=day(9), valid_at=day(15), metadata={"n": 2}), "two"),
    ("many at once, none", Filters(scopes=("project:acme",), since=day(2)), ""),
]  # fmt: skip


def numerals(told: list[str]) -> list[str]:
    """The last word of each statement, sorted as the statements are."""
    order = [draft["statement"].split()[-1] for draft in ZEBRA]
    return sorted((text.split()[-1] for text in told), key=order.index)


def test_every_filter_lets_through_what_it_names(store: Store, keep: Keep) -> None:
    keep.many(ZEBRA)
    missed = [
        f"{name}: {told}" for name, filters, expected in CASES if (told := _passed(store, filters, expected.split()))
    ]
    assert missed == []


def _passed(store: Store, filters: Filters, wanted: list[str]) -> dict[str, object]:
    """What a listing, a page of it, a count and both searches let through, where it is not what is wanted."""
    found = asked(store, "zebra", filters)
    passed = {
        "listed": numerals(listed(store, filters)),
        "lexical": numerals(texts(store, found.lexical)),
        "semantic": numerals(texts(store, found.semantic)),
    }
    wrong: dict[str, object] = {way: told for way, told in passed.items() if told != wanted}
    page = numerals(listed(store, filters, limit=3))
    if page != [numeral for numeral in wanted if numeral in set(wanted[-3:])]:
        wrong["page"] = page
    if store.count(filters) != len(wanted):
        wrong["count"] = store.count(filters)
    return wrong


def test_what_was_known_at_a_moment_is_what_was_created_by_then(store: Store, keep: Keep) -> None:
    early, late = keep("zebra early", created=day(1)), keep("zebra late", created=day(3))
    assert listed(store, replace(ANY, known_at=day(2))) == [early.statement]
    assert listed(store, replace(ANY, known_at=day(3))) == [late.statement, early.statement]
    assert store.count(replace(ANY, known_at=day(1))) == 1


def test_a_window_means_when_it_happened_else_when_it_was_learned(store: Store, keep: Keep) -> None:
    keep("happened early, learned late", created=day(9), occurred_at=day(1))
    keep("learned early", created=day(2))
    assert listed(store, replace(ANY, until=day(3))) == ["learned early", "happened early, learned late"]


def test_events_are_a_kind_of_their_own_and_know_their_session(store: Store, keep: Keep) -> None:
    keep("zebra memory")
    store.append_events(
        "one", [said("Ann", "a zebra", metadata={"n": 1}), said("Bob", "another zebra", 5, event_type="error")]
    )
    store.append_events("two", [said("Ann", "zebra again", 9)])
    events = Filters(kinds=("event",))
    for filters, expected in (
        (events, ["a zebra", "another zebra", "zebra again"]),
        (replace(events, parents=("one",)), ["a zebra", "another zebra"]),
        (replace(events, parents=("two", "three")), ["zebra again"]),
        (replace(events, parents=()), []),
        (replace(events, types=("error",)), ["another zebra"]),
        (replace(events, metadata={"n": 1}), ["a zebra"]),
        (replace(events, since=said("x", "y", 5).at), ["another zebra", "zebra again"]),
        (replace(events, scopes=("project:acme",)), []),
        (Filters(kinds=("memory", "event")), ["a zebra", "another zebra", "zebra again", "zebra memory"]),
        (Filters(kinds=()), []),
    ):
        found = asked(store, "zebra", filters)
        assert sorted(texts(store, found.lexical)) == expected
        assert sorted(texts(store, found.semantic)) == expected
        assert store.count(filters) == len(expected)


def test_a_listing_is_newest_first_and_comes_in_pages(store: Store, keep: Keep) -> None:
    for n in (3, 1, 5, 2, 4):
        keep(f"fact {n}", occurred_at=day(n))
    everything = [f"fact {n}" for n in (5, 4, 3, 2, 1)]
    assert listed(store) == everything
    assert listed(store, limit=2) == everything[:2]
    assert listed(store, limit=2, offset=2) == everything[2:4]
    assert listed(store, limit=2, offset=4) == everything[4:]
    assert listed(store, offset=3) == everything[3:]
    assert listed(store, limit=0) == []
    assert listed(store, limit=5, offset=9) == []


def test_of_the_same_moment_the_last_put_is_listed_first(store: Store, keep: Keep) -> None:
    keep.many([{"statement": f"fact {n}", "created": day(1)} for n in range(4)])
    assert listed(store) == ["fact 3", "fact 2", "fact 1", "fact 0"]


def test_pages_of_a_filtered_listing_fit_together(store: Store, keep: Keep) -> None:
    keep.many([{"statement": f"fact {n}", "created": day(1, n), "metadata": {"even": n % 2 == 0}} for n in range(10)])
    even = replace(ANY, metadata={"even": True})
    assert listed(store, even, limit=2) + listed(store, even, limit=3, offset=2) == [
        f"fact {n}" for n in (8, 6, 4, 2, 0)
    ]


def test_a_change_moves_a_memory_from_one_filter_to_the_other(store: Store, keep: Keep) -> None:
    kept = keep("zebra", tags=("old",), domain="a/b", metadata={"k": 1})
    keep.again(
        kept, tags=("new",), domain="c", scope="user", type="factual", metadata={"k": 2}, pinned=True, status="archived"
    )
    for old in (
        {"tags": ("old",)},
        {"domain": "a"},
        {"scopes": ("global",)},
        {"metadata": {"k": 1}},
        {"statuses": LIVE_STATUSES},
    ):
        assert listed(store, replace(ANY, **old)) == []
    for new in ({"tags": ("new",)}, {"domain": "c"}, {"scopes": ("user",)}, {"metadata": {"k": 2}}, {"pinned": True}):
        assert listed(store, replace(ANY, **new)) == ["zebra"]
