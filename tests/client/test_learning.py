"""What a caller can teach, and what the answer says."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest

from engram import Decision, Engram, Outcome
from engram.model.errors import InvalidInput, NotFound, SecretRefused
from engram.store.protocol import Transaction
from tests.backends import Backend

TABS = "Indent the acme sources with tabs, because the linter refuses spaces"


def test_the_first_example_of_the_contract(mem: Engram) -> None:
    decision = mem.learn("Use tabs, not spaces", type="preference", scope="project:acme", source="agent")
    assert decision.outcome == Outcome.CREATED
    assert decision.memory is not None
    assert decision.memory.id == "ENG-2026-0301-001"
    assert decision.memory.status == "active"


def test_a_repeated_fact_is_one_memory_counted_once_per_session(mem: Engram) -> None:
    first = mem.learn(TABS, session="one").memory
    again = [mem.learn(TABS + ".", session=session) for session in ("two", "two", "three")]
    assert first is not None
    assert {d.outcome for d in again} == {Outcome.DUPLICATE}
    kept = mem.get(first.id)
    assert kept.derivation_count == 3
    assert kept.activation.frequency == 2
    assert len(mem.list()) == 1


def test_a_contradiction_waits_beside_what_it_contradicts(mem: Engram) -> None:
    old = mem.learn("The api listens on port 8080 in production").memory
    answer = mem.learn("The api listens on port 9090 in production")
    assert answer.outcome == Outcome.CONTRADICTION
    assert old is not None
    assert answer.memory is not None
    assert answer.other is not None
    assert (answer.other.id, answer.memory.status) == (old.id, "candidate")
    assert [hit.id for hit in mem.search("api port")] == [old.id]
    assert [item.waits_as for item in mem.review.queue()] == ["contradiction"]


@pytest.mark.parametrize(
    ("keep", "old_status", "new_status"),
    [("new", "superseded", "active"), ("old", "active", "rejected"), ("both", "active", "active"), ("merge", "active", "superseded")],
)  # fmt: skip
def test_a_person_settles_a_contradiction(mem: Engram, keep: str, old_status: str, new_status: str) -> None:
    old = mem.learn("The api listens on port 8080 in production").memory
    new = mem.learn("The api listens on port 9090 in production").memory
    assert old is not None
    assert new is not None
    survivor = mem.review.resolve(new.id, keep, statement="The api listens on 8080, behind 9090")
    assert (mem.get(old.id).status, mem.get(new.id).status) == (old_status, new_status)
    assert survivor.consolidated
    assert survivor.activation.storage_strength == 1.0
    assert mem.review.queue() == []


class Meanwhile:
    """Lets something happen once, between what the gates said of a proposal and the lock it is written under."""

    def __init__(
        self, mem: Engram, monkeypatch: pytest.MonkeyPatch, happens: Callable[[], object], op: str = "learn"
    ) -> None:
        self._deciding, self._happens, self._op = mem.store.deciding, happens, op
        monkeypatch.setattr(mem.store, "deciding", self)

    def __call__(self, op: str, **options: Any) -> AbstractContextManager[Transaction]:
        if op == self._op:
            happens, self._happens = self._happens, lambda: None
            happens()
        return self._deciding(op, **options)


def test_what_came_meanwhile_and_is_unrelated_hides_no_contradiction(
    mem: Engram, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = mem.add("The api listens on port 8080 in production")
    Meanwhile(mem, monkeypatch, lambda: mem.add("The staging server is called nightshift"))
    answer = mem.learn("The api listens on port 9090 in production")
    assert (answer.outcome, answer.other and answer.other.id) == (Outcome.CONTRADICTION, old.id)


def test_what_came_meanwhile_and_is_unrelated_hides_nothing_that_is_superseded(
    mem: Engram, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = mem.add("The api listens on port 8080 in production", conflict_key="api-port")
    Meanwhile(mem, monkeypatch, lambda: mem.add("The staging server is called nightshift"))
    answer = mem.learn("The api listens on port 9090 in production", conflict_key="api-port", source="manual")
    assert (answer.outcome, mem.get(old.id).status) == (Outcome.SUPERSEDED, "superseded")


def test_what_came_meanwhile_and_says_the_same_makes_a_duplicate(mem: Engram, monkeypatch: pytest.MonkeyPatch) -> None:
    Meanwhile(mem, monkeypatch, lambda: mem.add(TABS))
    answer = mem.learn(TABS)
    assert (answer.outcome, len(mem.list())) == (Outcome.DUPLICATE, 1)


def test_what_an_agent_adds_waits_if_a_person_contradicted_it_meanwhile(
    mem: Engram, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[Decision] = []
    person = lambda: said.append(mem.remember("The api listens on port 8080 in production"))  # noqa: E731
    Meanwhile(mem, monkeypatch, person, "add")
    added = mem.add("The api listens on port 9090 in production", source="agent")
    assert said[0].memory is not None
    assert added.status == "candidate"
    assert [(link.target, link.type) for link in added.associations] == [(said[0].memory.id, "contradicts")]


def test_what_an_agent_adds_is_active_if_only_something_else_came_meanwhile(
    mem: Engram, monkeypatch: pytest.MonkeyPatch
) -> None:
    Meanwhile(mem, monkeypatch, lambda: mem.remember("The staging server is called nightshift"), "add")
    assert mem.add("The api listens on port 9090 in production", source="agent").status == "active"


def test_what_was_contradicted_and_left_meanwhile_is_contradicted_no_more(
    mem: Engram, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = mem.add("The api listens on port 8080 in production")
    Meanwhile(mem, monkeypatch, lambda: mem.forget(old.id))
    answer = mem.learn("The api listens on port 9090 in production")
    assert (answer.outcome, answer.other) == (Outcome.CREATED, None)


def test_a_secret_is_refused_before_anything_touches_the_disk(mem: Engram, everything: Callable[[], str]) -> None:
    secret = "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc"
    answer = mem.learn(f"The payment key is {secret}")
    assert (answer.outcome, answer.gate) == (Outcome.REJECTED, "secrets")
    with pytest.raises(SecretRefused):
        mem.add(f"The payment key is {secret}")
    assert secret not in everything()


def test_a_secret_in_the_ledger_is_redacted(mem: Engram, everything: Callable[[], str]) -> None:
    event = mem.observe("talk", "user", "my password is hunter2hunter2, keep it")
    assert "hunter2" not in event.content
    kept = everything()
    assert "hunter2" not in kept
    assert "keep it" in kept


def test_add_returns_the_existing_memory_for_an_exact_duplicate(mem: Engram) -> None:
    first = mem.add(TABS, metadata={"ticket": 7})
    assert mem.add(TABS).id == first.id
    assert mem.add(TABS, scope="project:acme").id != first.id
    assert mem.add("Use C for the kernel").id != mem.add("Use C++ for the kernel").id


def test_a_batch_is_checked_whole_before_the_first_is_written(mem: Engram) -> None:
    with pytest.raises(InvalidInput, match="unknown field 'statment'"):
        mem.add_batch([{"statement": "Something fine to keep"}, {"statment": "a slip of the pen"}])
    assert mem.list() == []


def test_other_names_for_statement_and_context_are_accepted(mem: Engram) -> None:
    kept = mem.add(fact="Nightshift is the staging server", main_content="said in the stand-up of Monday")
    assert (kept.statement, kept.context) == ("Nightshift is the staging server", "said in the stand-up of Monday")
    assert mem.search("stand-up of Monday", mode="keyword") == []


def test_a_form_renders_its_statement_and_follows_its_changes(mem: Engram) -> None:
    kept = mem.add(form={"subject": "Nightshift", "predicate": "runs on", "object": "Debian 12"})
    assert kept.statement == "Nightshift runs on Debian 12"
    changed = mem.update(kept.id, form={"subject": "Nightshift", "predicate": "runs on", "object": "Debian 13"})
    assert changed.statement == "Nightshift runs on Debian 13"


@pytest.mark.parametrize(
    "fields",
    [
        {"type": "nonsense"},
        {"scope": "../etc"},
        {"confidence": 7},
        {"emotional_weight": 0},
        {"status": "gone"},
        {"valid_from": "2026-02-01", "valid_until": "2026-01-01"},
        {"created": "yesterday"},
        {"metadata": {"a": object()}},
    ],
)
def test_bad_input_names_what_is_wrong_and_writes_nothing(mem: Engram, fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        mem.add("A perfectly good statement", **fields)
    assert mem.list() == []


def test_an_unknown_reference_says_so(mem: Engram) -> None:
    with pytest.raises(NotFound, match="ENG-2020"):
        mem.get("ENG-2020-0101-001")


def test_names_and_aliases_are_as_good_as_ids(mem: Engram) -> None:
    kept = mem.add(TABS, aliases=["mem-0001"])
    assert mem.get(kept.name).id == mem.get("mem-0001").id == kept.id
    twin = mem.add(TABS + " in every folder of it")
    assert twin.name == kept.name + "-2"


def test_no_alias_is_the_id_of_another_memory(mem: Engram) -> None:
    first, second = mem.add(TABS), mem.add("Releases are cut on Tuesdays")
    foreign = [first.id]
    for write in (
        lambda: mem.add("Invoices are sent by post", aliases=foreign),
        lambda: mem.add_batch([{"statement": "Invoices are sent by post", "aliases": foreign}]),
        lambda: mem.learn("Invoices are sent by post", aliases=foreign),
        lambda: mem.remember("Invoices are sent by post", aliases=foreign),
        lambda: mem.update(second.id, aliases=foreign),
        lambda: mem.revise(second.id, aliases=foreign),
    ):
        with pytest.raises(InvalidInput, match=f"the alias '{first.id}' is the id of another memory"):
            write()
    assert [memory.id for memory in mem.list()] == [second.id, first.id]
    assert mem.add(TABS, aliases=[first.id]).id == first.id
    assert mem.update(second.id, aliases=[second.id, "tuesdays"]).aliases == (second.id, "tuesdays")


def test_while_paused_nothing_is_learned_or_injected(mem: Engram) -> None:
    mem.add(TABS)
    mem.upkeep.pause()
    assert mem.learn("Another thing worth knowing about acme").gate == "paused"
    assert mem.inject("indent the acme sources").items == ()
    assert mem.session("indent the acme sources").injection.items == ()
    mem.upkeep.resume()
    assert mem.inject("indent the acme sources").items


def test_autonomous_captures_are_judged_and_the_doctor_reports_the_pass_rate(mem: Engram) -> None:
    rejected = mem.learn("ok thanks, sounds good", autonomous=True)
    assert rejected.outcome == Outcome.REJECTED
    for _ in range(25):
        mem.learn("ok thanks, sounds good", autonomous=True)
    gates = mem.doctor()["gates"]
    assert not gates.ok
    assert "0% of 26 captured proposals passed" in gates.message


def test_the_doctor_counts_what_agents_learned_on_request(mem: Engram) -> None:
    for statement in ("The api listens on port 8080", "Releases are cut on Tuesdays", "Invoices are sent by post"):
        assert mem.learn(statement).outcome == Outcome.CREATED
    mem.learn("Everything the crawler fetches is kept for ninety days", source="web:example.org")
    gates = mem.doctor()["gates"]
    assert gates.message == (
        "0 captured proposals in 30 days: too few to judge the pass rate; 3 explicit ones were stored"
    )


def test_what_was_said_with_a_secret_in_it_has_a_decision(mem: Engram) -> None:
    made = mem.add_conversation(
        "I prefer tea. The API key is sk-abcdefghijklmnopqrstuvwxyz0123456789ABCD.", scope="global"
    )
    assert [memory.statement for memory in made] == ["The user prefers tea."]
    told = next(decision for decision in made.decisions if "redacted" in decision.fact)
    assert (told.operation, told.applied, told.memory_id) == ("NOOP", False, "")
    assert told.fact == "The API key is [redacted:openai-key]."
    assert told.reason.startswith("secrets: the turn contains a secret")


def test_a_secret_the_assistant_repeats_is_told_when_it_is_heard(mem: Engram) -> None:
    said = "Your API key is sk-abcdefghijklmnopqrstuvwxyz0123456789ABCD."
    unheard = mem.add_conversation("Thanks", said, scope="global", session="a").decisions
    assert [decision.fact for decision in unheard] == ["Thanks"]
    heard = mem.add_conversation("Thanks", said, scope="global", session="b", extract_assistant_response=True)
    assert [decision.operation for decision in heard.decisions] == ["NOOP", "NOOP"]
    assert heard.decisions[1].reason.startswith("secrets: the turn contains a secret")


def test_the_name_made_of_a_statement_is_never_taken_for_a_secret(backend: Backend) -> None:
    mem = backend.client()
    first = mem.remember("Tokens are now hashed with sha256.").memory
    assert first is not None and first.name == "tokens-are-now-hashed-with-sha256"
    second = mem.learn("Tokens are now hashed with sha256", scope="project:quay").memory
    added = mem.add("Tokens are now hashed with sha256, and salted.")
    assert second is not None and added.name == "tokens-are-now-hashed-with-sha256-2"
    newer = mem.revise(first.id, statement="Nobody hashes them any more.")
    assert (newer.name, mem.get(first.id).name) == (first.name, "tokens-are-now-hashed-with-sha256-v1")


@pytest.mark.parametrize(
    "name", ["sk-live-4eC39HqLyjWDarjtT1zdp7dc", "api-key-9f8e7d6c5b4a39281706f5e4d3c2b1a0", "4539-5787-6362-1486"]
)
def test_a_name_with_a_secret_is_refused(backend: Backend, name: str) -> None:
    with pytest.raises(SecretRefused, match="name"):
        backend.client().add("The till takes cards.", name=name)


@pytest.mark.parametrize("verb", ["learn", "remember"])
def test_a_duplicate_names_the_fields_that_were_not_stored(mem: Engram, verb: str) -> None:
    said = "The order desk opens at nine"
    known = mem.add(said, metadata={"ref": 1}, tags=["desk", "order"])
    call = mem.learn if verb == "learn" else mem.remember
    same = call(said, metadata={"ref": 1}, tags=["desk"])
    assert (same.outcome, same.warnings) == (Outcome.DUPLICATE, ())
    other = call(said, metadata={"ref": 2}, tags=["office"])
    assert [line for line in other.warnings if line.startswith(f"{known.id} was stored before: metadata, tags")]
    assert mem.get(known.id).metadata == {"ref": 1}


@pytest.mark.parametrize("metadata", [{1: "a", "1": "b"}, {"a": {None: 1}}, {"a": [{True: 1}]}])
def test_keys_that_are_not_text_are_refused(mem: Engram, metadata: Any) -> None:
    with pytest.raises(InvalidInput, match="text for keys"):
        mem.add("The order desk opens at nine", metadata=metadata)
    with pytest.raises(InvalidInput, match="text for keys"):
        mem.observe("chat", "user", "hello", metadata=metadata)
