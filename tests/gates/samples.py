"""Samples of secrets and of innocent texts, one a line, with values made up when they are read.

`⟦…⟧` marks what must not survive, `⏎` is a line break, `{hex:32}` and its like are random characters of a kind, the same in
every run. So the files hold no credential, and no scanner of code hosts takes them for a leak.
"""

import base64
import re
import string
from dataclasses import dataclass
from pathlib import Path
from random import Random

from engram.gates.tables import rows

_DATA = Path(__file__).parent / "data"
_ALPHABETS = {
    "hex": "0123456789abcdef",
    "HEX": "0123456789ABCDEF",
    "b62": string.ascii_letters + string.digits,
    "a36": string.ascii_lowercase + string.digits,
    "B36": string.ascii_uppercase + string.digits,
    "b64": string.ascii_letters + string.digits + "+/",
    "url": string.ascii_letters + string.digits + "_-",
    "b32": string.ascii_uppercase + "234567",
    "b32l": string.ascii_lowercase + "234567",
    "b58": "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz",
    "pw": string.ascii_letters + string.digits + "!#$%&*+=?@^_~-",
    "pwx": string.ascii_lowercase + string.digits + "!#$%&*(-_=+)@^",
    "dig": string.digits,
    "abc": string.ascii_lowercase,
    "ABC": string.ascii_uppercase,
}
_WORDS = ("bip", "bip,", "bip-", "bipn", "BIP")
"""Words of a wallet: in a row, with commas or hyphens, one a line with its number, in capitals."""
_FIELD = re.compile(r"\{(\w+[,-]?)(?::([^{}]*))?\}")
_MARKED = re.compile("⟦(.*?)⟧", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Sample:
    """A text, and the parts of it that are secret; none in an innocent one."""

    kind: str
    text: str
    secrets: tuple[str, ...]


def samples(name: str) -> list[Sample]:
    """The samples of a file of `data/`: `kind :: text` where they are secrets."""
    lines = (_DATA / name).read_text("utf-8").splitlines()
    return [_sample(line, number) for number, line in enumerate(lines) if line.strip() and not line.startswith("# ")]


def made(text: str, seed: int = 0) -> str:
    """A text with its random fields filled in."""
    random = Random(seed)
    return _FIELD.sub(lambda field: _made(field[1], field[2] or "", random), text)


def _sample(line: str, number: int) -> Sample:
    kind, text = line.split(" :: ", 1) if " :: " in line else ("", line)
    filled = made(text.replace("⏎", "\n"), number)
    return Sample(kind.strip(), _MARKED.sub(r"\1", filled), tuple(_MARKED.findall(filled)))


def _made(kind: str, argument: str, random: Random) -> str:
    if kind in _ALPHABETS:
        return _random(_ALPHABETS[kind], int(argument), random)
    if kind in _WORDS:
        return _wallet(kind, random.choices(_wallet_words(), k=int(argument)))
    if kind == "card":
        return _luhn(argument, 15 if argument.startswith("3") else 16, random)
    if kind == "iban":
        country, size = argument.split(",")
        return _iban(country, int(size), random)
    if kind == "uuid":
        return "-".join(_random("0123456789abcdef", size, random) for size in (8, 4, 4, 4, 12))
    if kind == "base64":
        return base64.b64encode(argument.encode()).decode()
    if kind == "pem":
        lines = [_random(_ALPHABETS["b64"], 64, random) for _ in range(6)]
        return f"-----BEGIN {argument}PRIVATE KEY-----\n" + "\n".join(lines) + f"\n-----END {argument}PRIVATE KEY-----"
    if kind == "pem64":
        return base64.b64encode(_made("pem", argument, random).encode()).decode()
    return "{" + kind + (f":{argument}" if argument else "") + "}"


def _random(alphabet: str, size: int, random: Random) -> str:
    """Random characters; with a letter and a digit, as all but the rarest have."""
    made = [random.choice(alphabet) for _ in range(size)]
    if size >= 4 and alphabet not in (string.digits, string.ascii_lowercase, string.ascii_uppercase):
        made[1], made[2] = "7" if "7" in alphabet else made[1], random.choice([c for c in alphabet if c.isalpha()])
    return "".join(made)


def _wallet_words() -> list[str]:
    return [word for row in rows("walletwords.txt") for word in row]


def _wallet(kind: str, words: list[str]) -> str:
    if kind == "bipn":
        return "\n".join(f"{number}. {word}" for number, word in enumerate(words, 1))
    return {"bip": " ", "bip,": ", ", "bip-": "-", "BIP": " "}[kind].join(
        map(str.upper, words) if kind == "BIP" else words
    )


def _luhn(prefix: str, size: int, random: Random) -> str:
    digits = prefix + _random(string.digits, size - 1 - len(prefix), random)
    total = sum(sum(divmod(int(d) * 2, 10)) if place % 2 == 0 else int(d) for place, d in enumerate(reversed(digits)))
    return digits + str(-total % 10)


def _iban(country: str, size: int, random: Random) -> str:
    account = _random(string.digits, size - 4, random)
    number = int("".join(str(int(char, 36)) for char in account + country + "00"))
    return f"{country}{98 - number % 97:02d}{account}"
