"""No secret gets in: whatever kind it is of, whichever verb carries it, in whichever argument it stands."""

import contextlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from engram import Engram
from engram.gates.secrets.scan import find_secrets, redact, redact_data
from engram.model.errors import EngramError, InvalidInput, SecretRefused
from tests.backends import Backend
from tests.gates.samples import samples
from tests.tables import table

TOKEN = "ghp_" + "a1B2" * 9
PASSWORD = "tr0ub4dor" + "&3"
FACT = "The deploy runs on Fridays."
KEY = "-----BEGIN RSA " + "PRIVATE KEY-----\n"
BODY = "\n".join("MIIEow1BAAKCAQEAr9Xk2pQzR7mN4vB1aB3cD5eF7gH9iJ1kL3mN5oP7qR9sT1u" for _ in range(8))


@table("name", [f"secrets_{which}.txt" for which in "abcdefg"])
def test_at_least_97_of_100_kinds_of_secrets_are_cut_out(name: str) -> None:
    found = samples(name)
    missed = [sample.kind for sample in found if any(part in redact(sample.text)[0] for part in sample.secrets)]
    assert len(missed) <= 0.03 * len(found), missed


@table("name", [f"innocents_{which}.txt" for which in "abcdef"])
def test_at_most_1_of_100_innocent_texts_is_taken_for_a_secret(name: str) -> None:
    found = samples(name)
    mistaken = [sample.text for sample in found if find_secrets(sample.text)]
    assert len(mistaken) <= 0.01 * len(found), mistaken


def _verbs(mem: Engram) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every public verb of the client and of its facets."""
    for owner in (mem, mem.tasks, mem.sessions, mem.review, mem.graph, mem.lineages):
        for name, verb in inspect.getmembers(owner, callable):
            if not name.startswith("_") and name not in ("open", "close", "store", "clock", "recaller", "searcher"):
                yield f"{type(owner).__name__}.{name}", verb


def _usual(mem: Engram) -> dict[str, Any]:
    """An argument that each parameter takes."""
    one, other = mem.add(FACT), mem.add("The office is in Berlin.")
    task = mem.start_task("ship it")
    return {
        "statement": "Lunch is at noon.", "ref": one.id, "source": one.id, "target": other.id, "keep": one.id,
        "task": task.id, "task_id": task.id, "session_id": "S-1", "session": "S-1", "goal": "ship it",
        "role": "user", "content": "hello there", "summary": "half done", "user_message": "I live in Berlin.",
        "signal": "positive", "relation_type": "related_to", "type": "related_to", "text": "The office is in Berlin.",
        "title": "notes", "user": "hello", "items": [{"role": "user", "content": "hi"}], "state": "paused",
        "turns": [{"role": "user", "content": "hi"}], "query": "office", "scopes": ("global",), "ids": [one.id],
        "seeds": [one.id], "start": one.id, "reached": [],
    }  # fmt: skip


def _planted(verb: Callable[..., Any], usual: dict[str, Any], plant: str) -> Iterator[dict[str, Any]]:
    """Arguments for a verb, with the secret in one of them after the other."""
    takes = inspect.signature(verb).parameters
    needed = {n: usual[n] for n, p in takes.items() if p.default is p.empty and n in usual}
    texts = [n for n, p in takes.items() if "str" in str(p.annotation)]
    nested = [n for n in ("metadata", "payload", "data") if n in takes]
    for name in texts:
        yield {**needed, name: plant}
    for name in nested:
        yield {**needed, name: {"deep": [{plant: 1, "note": plant}]}}
        yield {**needed, name: {"dsn": f"postgres://app:{PASSWORD}@db.example.com/app"}}
    if "fields" in takes:
        text = {"statement": "Lunch is at one."} if "ref" not in takes else {}
        for name in ("statement", "situation", "context", "rationale", "name", "scope", "domain", "key", "task"):
            yield {**needed, **text, name: plant if name != "scope" else f"project:{plant}"}
        for name in ("tags", "entities", "aliases"):
            yield {**needed, **text, name: [plant]}
        yield {**needed, **text, "metadata": {"deep": [{plant: 1}]}}
        yield {**needed, "payload": {"env": [{"name": "DB_PASSWORD", "value": PASSWORD}]}}


def test_no_argument_of_any_verb_brings_a_secret_into_the_store(backend: Backend) -> None:
    mem = backend.client()
    usual, tried = _usual(mem), 0
    for _, verb in _verbs(mem):
        with contextlib.suppress(ValueError, TypeError):
            for arguments in _planted(verb, usual, TOKEN):
                tried += 1
                with contextlib.suppress(EngramError, TypeError, ValueError, AttributeError, KeyError):
                    verb(**arguments)
    assert tried > 200
    held = backend.everything()
    assert TOKEN not in held
    assert PASSWORD not in held


@pytest.mark.parametrize(
    "write",
    [
        lambda mem: mem.start_task("ship it", scope=f"project:{TOKEN}"),
        lambda mem: mem.start_task("ship it", session=TOKEN),
        lambda mem: mem.observe(TOKEN, "user", "hello"),
        lambda mem: mem.add(FACT, source=TOKEN),
        lambda mem: mem.pin(mem.add(FACT).id, actor=TOKEN),
        lambda mem: mem.forget(mem.add(FACT).id, actor=TOKEN),
        lambda mem: mem.recall("lunch", session=TOKEN) if mem.add("Lunch is at noon.") else None,
        lambda mem: mem.session("work", scope=f"project:{TOKEN}"),
    ],
)
def test_a_name_that_is_a_secret_is_refused(backend: Backend, write: Callable[[Engram], object]) -> None:
    with pytest.raises((InvalidInput, SecretRefused), match="secret"):
        write(backend.client())
    assert TOKEN not in backend.everything()


def test_a_reason_with_a_secret_is_refused_and_changes_nothing(backend: Backend) -> None:
    mem = backend.client()
    memory = mem.add(FACT)
    with pytest.raises(SecretRefused, match=r"^the reason contains"):
        mem.forget(memory.id, reason=f"leaked {TOKEN}")
    assert mem.get(memory.id).status == "active"
    assert TOKEN not in backend.everything()


def test_a_private_key_cut_between_two_events_is_redacted_in_both(backend: Backend) -> None:
    mem = backend.client()
    half = len(BODY) // 2
    mem.observe("S-1", "user", f"here is the key\n{KEY}{BODY[:half]}")
    mem.observe("S-1", "assistant", "go on")
    event = mem.observe("S-1", "user", f"{BODY[half:]}\n-----END RSA PRIVATE KEY-----\nthat was it")
    assert "MIIEow" not in backend.everything()
    assert event.content.endswith("that was it")


def test_a_private_key_cut_in_three_within_one_batch_is_redacted_everywhere(backend: Backend) -> None:
    mem = backend.client()
    parts = [KEY + BODY[:150], BODY[150:300], BODY[300:] + "\n-----END RSA PRIVATE KEY-----"]
    events = mem.observe_batch("S-1", [{"role": "user", "content": part} for part in parts])
    assert [event.content for event in events] == ["[redacted:private-key]"] * 3


def test_words_after_a_private_key_are_kept(backend: Backend) -> None:
    mem = backend.client()
    mem.observe("S-1", "user", f"{KEY}{BODY}\n-----END RSA PRIVATE KEY-----")
    assert mem.observe("S-1", "user", "Thanks, done").content == "Thanks, done"


@pytest.mark.parametrize(
    "data",
    [
        {"name": "password", "value": PASSWORD},
        {"password": {"value": PASSWORD}},
        {"env": [{"key": "API_TOKEN", "value": "8Xk2pQzR7mN4vB1"}]},
        {"argv": ["psql", "--password", PASSWORD]},
        {"login": {"pin": 4821}},
    ],
)
def test_what_a_sibling_names_is_redacted(data: dict[str, Any]) -> None:
    kept = str(redact_data(data))
    assert "[redacted:" in kept
    assert PASSWORD not in kept and "8Xk2" not in kept and "4821" not in kept


def test_a_memory_that_holds_a_secret_already_can_still_be_forgotten(backend: Backend) -> None:
    store = backend.store()
    mem = backend.client()
    memory = mem.add(FACT)
    with store.deciding("edit", actor="hand") as deciding:
        deciding.put(memory.replace(statement=f"The token is {TOKEN}"))
    assert mem.forget(memory.id) is not None


@table("unseen", "\u180b\u200b\u2800\u3164\ufff0\ufe0f\U00016fe4\U0001bca0\U000e01f0\U000e0200")
def test_a_character_that_cannot_be_seen_hides_no_secret(unseen: str) -> None:
    for text, secret in (
        (f"ghp_{unseen}{'a1B2' * 9}", "a1B2"),
        (f"AKIA{unseen}IOSFODNN7EXAMPLQ", "IOSF"),
        (f"the pass{unseen}word is Zq8rT5xv", "Zq8r"),
    ):
        assert secret not in redact(text)[0]


@pytest.mark.parametrize("blank", "\u200b\u2800\u3164", ids=ascii)
def test_a_blank_may_stand_for_a_space(blank: str) -> None:
    assert "Zq8r" not in redact(f"the{blank}password{blank}is{blank}Zq8rT5xv")[0]


@table(
    "word",
    [
        "pаssword", "раѕѕԝогԁ", "pαsswοrd", "PАSSWORD", "p.a.s.s.w.o.r.d", "p a s s w o r d", "P-A-S-S-W-O-R-D", "p_a_s_s_w_o_r_t",
        "пароль", "ПАРОЛЬ", "κωδικός",
    ],
)  # fmt: skip
def test_a_word_spelled_in_letters_that_look_alike_or_stand_apart_is_still_read(word: str) -> None:
    for text in (f"{word}: Zq8rT5xv", f"my {word} is Zq8rT5xv"):
        assert "Zq8r" not in redact(text)[0]


def test_cyrillic_words_of_letters_that_look_latin_stay_what_they_are() -> None:
    assert "a1B2" not in redact("ТОКЕН: a1B2c3D4e5F6g7H8i9J0")[0]
    assert "a1B2" not in redact("секрет: a1B2c3D4e5F6g7H8i9J0")[0]


NOTES = [
    "Elena has a new phone number: 07700 900456",
    "my number is 0151 555 0199",
    "The MAC of the printer is 00-1B-44-11-3A-B7",
    "Our router has the MAC address 3c:84:6a:1f:9b:02",
    "The router's serial number is FZ7590-2231-88A",
    "The password reset mail takes five minutes",
    "The Figma file key is Zk3mQ9xTb7LpV2nRw8cYdA",
    "Stripe's public test card is 4242 4242 4242 4242",
    "The boxes are labelled zq000627 to zq000690",
    "2025-03-14T09:26:53.589123+01:00 login failed for user marta, password reset sent",
    "Call the alarm company on 0800 123 4567",
    "Le code postal de Lyon 3 est 69003",
    "Teléfono del taller: 91 555 01 23",
    "Die Seriennummer vom Router ist 9C7A-22F1-0031",
]


@table("text", NOTES)
def test_a_number_that_the_words_around_it_describe_as_something_else_is_no_secret(text: str) -> None:
    assert redact(text)[0] == text


@table(
    ("text", "secret"),
    [
        ("the wifi at the cabin is called Lakeview, you get in with moonlight-harbor-42", "moonlight-harbor-42"),
        ("keytool -importkeystore -storepass n4bgT7qw -noprompt", "n4bgT7qw"),
        ("storepass n4bgT7qw", "n4bgT7qw"),
        ("my phone's unlock code is 258036", "258036"),
        ("router serial FZ7590, admin password rain" + "barrel7", "rain" + "barrel7"),
        ("the key to our flat is in the box, dial 0728 and it pops open", "0728"),
    ],
)
def test_the_same_words_do_not_hide_a_secret(text: str, secret: str) -> None:
    assert secret not in redact(text)[0]


def test_the_model_judges_each_repeated_piece_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from engram.models.credentials import TextTokens

    judged: list[int] = []
    score = TextTokens.score

    def count(tokens: TextTokens, start: int, end: int, tags: Sequence[str]) -> int:
        judged.append(start)
        return score(tokens, start, end, tags)

    monkeypatch.setattr(TextTokens, "score", count)
    find_secrets("the door code is 4471 and use CVC 123. " * 500)
    assert len(judged) < 200


def test_an_error_says_which_words_were_taken_for_what_and_masks_the_value(backend: Backend) -> None:
    decision = backend.client().learn("My card's PIN is 8841, keep it")
    assert decision.gate == "secrets"
    assert "(pin): “••••” after “My card's PIN is”" in decision.reason
    assert "8841" not in decision.reason
