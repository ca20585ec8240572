"""Credentials told in prose, judged by the trained model, and what only looks like one."""

from engram.gates.secrets.scan import exact_secrets, find_secrets, redact
from tests.gates.samples import made

TOLD = {
    "the cellar door is ⟦6184⟧, then ring twice": "6184",
    "Ich habe den Code vom Tor auf ⟦7315⟧ umgestellt": "7315",
    "first pet for the security question was ⟦Gustavo⟧": "Gustavo",
    "we opened the backup disk with ⟦seven amber foxes asleep⟧": "seven amber foxes asleep",
    "Il codice del garage è ⟦2840⟧, quello del cancello ⟦2841⟧": "2841",
    "the sticker on the router says admin and ⟦k7Rw2mzQ⟧": "k7Rw2mzQ",
    "use ⟦hunter2⟧ to log in to jenkins as ci": "hunter2",
    "my sudo pw: ⟦capital T, then rout, then 71, then a hash⟧. Please install it": "then rout",
}
HARMLESS = (
    "the cellar door is 90 cm wide and was painted in 2019",
    "Der Fehlercode beim Tor ist 7315",
    "our first pet was a hamster called Gustavo",
    "Payslips open with the last four digits of your personnel number.",
    "the router runs firmware 7.57 and its model is AX3000",
    "In that film the safe word is pineapple",
    "rotate the deploy token weekly, ticket OPS-20419 has the plan",
    "Door 1043 opens slowly",
    "The lift manual says that door number 1043 opens slowly",
    "GPIO pin 1234 does not exist",
    "Our passphrase generator uses diceware",
    "The session key is derived with HKDF-SHA256",
    "The API key for the sandbox lives in 1Password!",
    "Use password123 only in the docs examples",
    "mysql: what does utf8mb4_0900_ai_ci mean",
    "the account table has the collation Latin1_General_CI_AS",
    "report the pass rate on golden_v3.jsonl",
    "We need two 48-port switches for the router rack",
    "Limits are per API key, 400 a minute, with Retry-After",
    "Secrets are SOPS-encrypted with the age key of the team",
)
TOKENS = (
    "rpa_{B36:42}",
    "pnu_{a36:36}",
    "ory_pat_{b62:32}",
    "zpka_{hex:32}_{hex:8}",
    "polar_oat_{b62:43}",
    "sk1_{hex:64}",
    "pat.{b62:22}.{hex:24}.{b62:20}",
    "secret-live-{b62:36}=",
    "api_live.{b62:11}.{b62:32}",
)


def test_a_credential_told_in_prose_is_redacted() -> None:
    missed = [text for text, secret in TOLD.items() if secret in redact(text.replace("⟦", "").replace("⟧", ""))[0]]
    assert missed == []


def test_what_only_looks_like_a_credential_is_kept() -> None:
    assert [text for text in HARMLESS if find_secrets(text)] == []


def test_only_the_sentence_with_a_credential_is_cut_from_a_long_document() -> None:
    lines = [f"The lift manual says that door number {number} opens slowly." for number in range(200, 1400)]
    told = "The door code is 7315#."
    text, found = redact("\n".join([*lines[:600], told, *lines[600:]]))
    assert [line for line in text.splitlines() if line not in lines] == ["The door code is [redacted:pin]."]
    assert len(found) == 1


def test_exact_rules_alone_leave_prose_alone() -> None:
    assert exact_secrets("the cellar door is 6184, then ring twice") == []
    assert exact_secrets("password: Tr0ub4dor&3") != []


def test_words_around_a_name_are_not_judged() -> None:
    assert find_secrets("the cellar door is 6184, then ring twice", nearby=False) == []


def test_tokens_with_a_documented_prefix_are_found_without_context() -> None:
    assert [token for token in TOKENS if not exact_secrets(f"here: {made(token)} ok")] == []
