"""A password in an address that JSON or a URL escapes was stored, and not redacted."""

from collections.abc import Iterator

import pytest

from engram import Engram
from engram.model.decision import Outcome
from engram.model.errors import SecretRefused

SECRETS = {
    r'PHP logs {"dsn":"mysql:\/\/root:Pa55w0rd9@db.example.com\/app"}': "Pa55w0rd9",
    "DATABASE_URL=postgres%3A%2F%2Fapp%3As3cr3tPa55%40db.example.com%2Fapp": "s3cr3tPa55",
    r'{"auth_url":"https:\/\/ana:Pa55w0rd9@git.example.com\/x.git"}': "Pa55w0rd9",
    "see https://ana:Pa55w0rd9%40git.example.com/x.git": "Pa55w0rd9",
    r'{"url":"https:\/\/hooks.slack.com\/services\/T0AB1CD2E\/B0AB1CD2E\/abcdefghij0123456789ABCD"}': "abcdefghij0123456789ABCD",
    r"token ghp\u005f0aB1cD2eF3gH4iJ5kL6mN7oP8qR9sT0uV1wX": "0aB1cD2eF3gH4iJ5kL6mN7oP8qR9sT0uV1wX",
    "token ghp%5F0aB1cD2eF3gH4iJ5kL6mN7oP8qR9sT0uV1wX": "0aB1cD2eF3gH4iJ5kL6mN7oP8qR9sT0uV1wX",
}
HARMLESS = (
    r'{"url":"https:\/\/docs.example.com\/api\/v2\/orders"}',
    "https://example.com/search?q=a%2Fb%3Ac&mail=ana%40example.com",
    r"C:\users\x40 keeps the path \u003d as it is",
)


@pytest.fixture
def mem() -> Iterator[Engram]:
    with Engram.open(ephemeral=True) as opened:
        yield opened


@pytest.mark.parametrize("text", SECRETS)
def test_an_escaped_credential_is_refused_and_redacted(mem: Engram, text: str) -> None:
    decision = mem.learn(text)
    assert (decision.outcome, decision.gate) == (Outcome.REJECTED, "secrets")
    assert SECRETS[text] not in mem.observe("log", "tool", text).content


@pytest.mark.parametrize("text", [text for text in SECRETS if "token" not in text])
def test_an_escaped_credential_is_refused_in_metadata(mem: Engram, text: str) -> None:
    with pytest.raises(SecretRefused, match="note"):
        mem.add("The job reads its settings from the environment", metadata={"note": text})


@pytest.mark.parametrize("text", HARMLESS)
def test_escapes_without_a_credential_stay_as_they_are(mem: Engram, text: str) -> None:
    assert mem.observe("log", "tool", text).content == text
