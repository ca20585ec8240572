"""What a caller passes is stored as it is, or refused by the name of its field; it is never changed in silence."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from engram import AsyncEngram, Engram
from engram.model.errors import EngramError, SecretRefused
from tests.backends import Backend

TOKEN = "ghp_" + "a1B2" * 9
URL = "postgres://app:sun" + "flower9@db.example.com/app"
KEY = "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIEow1BAAKCAQEAr9Xk2pQzR7mN4vB1aB3cD5eF7gH9iJ1kL3mN5oP7qR9sT1u\n"
FOREIGN: dict[str, Any] = {
    "ref": "answer_sharegpt_hn3IS1q_0#0",
    "id": 4711,
    "path": "src/code",
    "pin": 8841,
    "password": "see the vault",
    "phone": "0151 555 0199",
    "label": "zq000627",
    "etag": 'W/"Xk2p-Qz7mN4vB1aB3"',
    "nested": {"keys": ["cus_Q4x8Lm2Zt9", "A7f!kQ2z#Lp9"], "code": "4402"},
}
"""Foreign keys of applications; each of them was changed or refused as a password or a PIN."""


def _event(mem: Engram) -> Mapping[str, Any]:
    return mem.observe_batch("s", [{"role": "user", "content": "hello", "metadata": FOREIGN}])[0].metadata


def _related(mem: Engram) -> Mapping[str, Any]:
    one, other = mem.add("The office is in Berlin."), mem.add("Lunch is at noon.")
    link = mem.relate(one.id, other.id, metadata=FOREIGN).associations[0]
    data: Mapping[str, Any] = link.extra["metadata"]
    return data


STORED: dict[str, Callable[[Engram], Mapping[str, Any]]] = {
    "add": lambda mem: mem.add("The office is in Berlin.", metadata=FOREIGN).metadata,
    "learn": lambda mem: _memory(mem.learn("The office is in Berlin.", metadata=FOREIGN)).metadata,
    "add_batch": lambda mem: mem.add_batch([{"statement": "Lunch is at noon.", "metadata": FOREIGN}])[0].metadata,
    "update": lambda mem: mem.update(mem.add("Lunch is at noon.").id, metadata=FOREIGN).metadata,
    "observe_batch": _event,
    "capture": lambda mem: mem.store.events(mem.capture("s", "user", "hello", metadata=FOREIGN).session)[0].metadata,
    "payload": lambda mem: mem.observe("s", "tool", "ran", payload={"ref": FOREIGN["ref"]}).payload,
    "start_task": lambda mem: mem.start_task("ship it", metadata=FOREIGN).metadata,
    "record_event": lambda mem: mem.record_event(mem.start_task("go").id, "user", "hi", metadata=FOREIGN).metadata,
    "create_checkpoint": lambda mem: mem.create_checkpoint(mem.start_task("go").id, "ok", data=FOREIGN).data,
    "relate": _related,
}


def _memory(decision: Any) -> Any:
    assert decision.memory is not None, decision.reason
    return decision.memory


def test_foreign_keys_are_stored_as_they_are(backend: Backend) -> None:
    changed: dict[str, Any] = {}
    for verb, store in STORED.items():
        mem = backend.client()
        try:
            kept = dict(store(mem))
        except EngramError as error:
            changed[verb] = error
            continue
        wrong = {key: kept.get(key) for key in FOREIGN if key in kept and kept[key] != FOREIGN[key]}
        if wrong or not kept:
            changed[verb] = wrong
    assert not changed


def test_the_async_client_stores_them_as_they_are(tmp_path: Path) -> None:
    async def write() -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        async with await AsyncEngram.open(tmp_path) as mem:
            memory = await mem.add("The office is in Berlin.", metadata=FOREIGN)
            [event] = await mem.observe_batch("s", [{"role": "user", "content": "hi", "metadata": FOREIGN}])
            return memory.metadata, event.metadata

    assert asyncio.run(write()) == (FOREIGN, FOREIGN)


@pytest.mark.parametrize("credential", [TOKEN, URL, KEY], ids=["token", "url", "key"])
def test_a_credential_in_a_known_format_is_refused_by_the_path_of_its_key(backend: Backend, credential: str) -> None:
    data = {"safe": 1, "clouds": [{"name": "eu"}, {"login": credential}]}
    mem = backend.client()
    task = mem.start_task("go").id
    one, other = mem.add("The office is in Berlin."), mem.add("Lunch is at noon.")
    calls: dict[str, Callable[[], object]] = {
        "add": lambda: mem.add("Tea is at five.", metadata=data),
        "update": lambda: mem.update(one.id, metadata=data),
        "observe": lambda: mem.observe("s", "user", "hello", metadata=data),
        "start_task": lambda: mem.start_task("ship it", metadata=data),
        "checkpoint": lambda: mem.create_checkpoint(task, "ok", data=data),
        "relate": lambda: mem.relate(one.id, other.id, metadata=data),
    }
    for verb, call in calls.items():
        with pytest.raises(SecretRefused, match=r"(metadata|data)\.clouds\[1\]\.login contains") as refused:
            call()
        assert credential.strip() not in str(refused.value), verb
    decision = mem.learn("Tea is at five.", metadata=data)
    assert decision.gate == "secrets" and "metadata.clouds[1].login" in decision.reason
    assert "sun" + "flower9" not in backend.everything() and TOKEN not in backend.everything()


def test_in_a_batch_the_event_with_the_credential_is_named(backend: Backend) -> None:
    events: list[dict[str, Any]] = [
        {"role": "user", "content": "hi"},
        {"role": "user", "content": "hi", "metadata": {"key": TOKEN}},
    ]
    with pytest.raises(SecretRefused, match=r"^metadata of event 2\.key contains"):
        backend.client().observe_batch("s", events)


def test_who_observes_sees_how_many_secrets_were_redacted(backend: Backend) -> None:
    mem = backend.client()
    event = mem.observe("s", "user", f"the token is {TOKEN}", payload={"env": {"API_TOKEN": TOKEN}})
    assert (event.redactions, mem.observe("s", "user", "thanks").redactions) == (2, 0)
    assert "redacted" in " ".join(mem.capture("s", "user", f"the token is {TOKEN}").warnings)
