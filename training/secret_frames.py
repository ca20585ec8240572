"""Texts with and without credentials, generated from the frames in training/secrets/frames.txt.

A frame is a sentence: `{a|b}` are alternatives, `~slot` is a harmless word or value, `§slot` a credential, `\\n` a new
line. The words of slots are in slots.txt; values are generated here. Some texts get harmless sentences before and
after, as notes have them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from random import Random

FOLDER = Path(__file__).resolve().parent / "secrets"
VOCABULARY = FOLDER.parent.parent / "src" / "engram" / "embedding" / "data" / "vocabulary.txt"
_CHOICE = re.compile(r"\{([^{}]*\|[^{}]*)\}")
_SLOT = re.compile(r"([~§])([A-Za-z]+\d*(?:\.(?:de|es|fr|it)\b)?)")
LETTERS, CAPITALS, DIGITS, HEX = (
    "abcdefghijklmnopqrstuvwxyz",
    "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "0123456789",
    "0123456789abcdef",
)
MONTHS = ("Jan", "Feb", "March", "April", "May", "June", "July", "Aug", "Sept", "Oct", "Nov", "Dec")
Text = tuple[str, tuple[tuple[int, int], ...]]
"""A text and the spans of its credentials."""


@lru_cache(maxsize=1)
def slots() -> dict[str, list[str]]:
    """The words of each slot."""
    lines = [line for line in (FOLDER / "slots.txt").read_text("utf-8").splitlines() if line and line[0] != "#"]
    found = {
        name: [word.strip() for word in words.split(",")] for name, _, words in (ln.partition(":") for ln in lines)
    }
    known = [word.strip() for word in VOCABULARY.read_text("utf-8").splitlines()]
    found["english"] = [word for word in known if word.isascii() and word.isalpha() and 4 <= len(word) <= 9][:12_000]
    return found


def frames() -> list[str]:
    """The frames, one per line."""
    lines = (FOLDER / "frames.txt").read_text("utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def framed_texts(times: int) -> Iterator[Text]:
    """Every frame filled `times` times, half of them among harmless sentences."""
    every = frames()
    harmless = [frame for frame in every if "§" not in frame and "\\n" not in frame]
    for frame in every:
        random = Random(frame)
        for _ in range(times):
            before = [fill_frame(random.choice(harmless), random) for _ in range(random.choice((0, 0, 0, 1, 1, 2)))]
            behind = [fill_frame(random.choice(harmless), random) for _ in range(random.choice((0, 0, 0, 1, 2)))]
            yield join_texts([*before, fill_frame(frame, random), *behind], random)


def join_texts(parts: list[Text], random: Random) -> Text:
    """Sentences as one text."""
    text, spans = "", []
    joint = random.choice((". ", ". ", "; ", "\n", " - "))
    for part, places in parts:
        if text:
            text += joint if text[-1] not in ".!?" or joint == "\n" else " "
        part = part[:1].upper() + part[1:] if joint == ". " and not (places and places[0][0] == 0) else part
        spans += [(start + len(text), end + len(text)) for start, end in places]
        text += part
    return text, tuple(spans)


def fill_frame(frame: str, random: Random) -> Text:
    """A frame with its alternatives chosen and its slots filled."""
    while choice := _CHOICE.search(frame):
        frame = frame[: choice.start()] + random.choice(choice[1].split("|")) + frame[choice.end() :]
    frame = frame.replace("\\n", "\n")
    text, spans, place = "", [], 0
    for slot in _SLOT.finditer(frame):
        text += frame[place : slot.start()]
        place = slot.end()
        is_secret = slot[1] == "§"
        value = make_secret(slot[2], random) if is_secret else make_harmless(slot[2], random)
        if is_secret:
            spans.append((len(text), len(text) + len(value)))
        text += value
    return text + frame[place:], tuple(spans)


def digits(random: Random, size: int) -> str:
    """A number with this many digits."""
    return "".join(random.choices(DIGITS, k=size))


def word(random: Random) -> str:
    """A word, mostly English."""
    return random.choice(slots()["english" if random.random() < 0.6 else "words"])


def make_secret(slot: str, random: Random) -> str:
    """A made-up credential."""
    if slot == "any":
        slot = random.choices(("pw", "word", "phrase"), (6, 3, 1.5))[0]
    match slot:
        case "pin":
            return random.choices((
                digits(random, 4), digits(random, 5), digits(random, 6), digits(random, 3), random.choice(("0000", "1234", "2580", "9999", "1111", "12345", "000000")),
                "-".join(digits(random, 4)), "-".join(digits(random, 3)), "-".join(digits(random, 2) for _ in range(3)), " ".join(digits(random, 4)),
                digits(random, 4) + "#", "*" + digits(random, 4) + "#", "#" + digits(random, 4) + "*", random.choice("ABCEX") + digits(random, 4),
                digits(random, 4) + random.choice("ABCXYZ"), random.choice("CX") + digits(random, 2) + random.choice("XYZ"), digits(random, 2) + " " + digits(random, 2) + " " + digits(random, 2),
                str(random.randint(1940, 2015)), digits(random, 3) + " " + digits(random, 3), digits(random, 8),
            ), (30, 10, 10, 6, 4, 4, 3, 3, 2, 3, 2, 1, 4, 3, 2, 2, 3, 2, 1))[0]  # fmt: skip
        case "pw":
            return make_password(random)
        case "word":
            one = random.choice(
                (word(random), word(random), word(random) + word(random), random.choice(slots()["words"]))
            )
            return one.capitalize() if random.random() < 0.35 else one
        case "phrase":
            return " ".join(word(random) for _ in range(random.randint(2, 6)))
        case "answer":
            return random.choice(slots()["answers"]) if random.random() < 0.6 else word(random).capitalize()
        case "seed":
            return " ".join(random.choice(slots()["english"]) for _ in range(12))
        case "cvv":
            return digits(random, 3)
        case "uuid":
            return make_harmless("uuid", random)
        case "lic":
            return "-".join(
                "".join(random.choices(CAPITALS + DIGITS, k=random.choice((4, 5)))) for _ in range(random.randint(3, 5))
            )
        case "rec":
            return random.choice((digits(random, 5) + " " + digits(random, 5), "-".join("".join(random.choices(LETTERS + DIGITS, k=4)) for _ in range(3)), "".join(random.choices(HEX, k=5)) + "-" + "".join(random.choices(HEX, k=5)), "-".join(digits(random, 6) for _ in range(8))))  # fmt: skip
        case "hookpath":
            return (
                "".join(random.choices(CAPITALS + DIGITS, k=9))
                + "/"
                + "".join(random.choices(LETTERS + CAPITALS + DIGITS, k=24))
            )
    return make_key(random)


def make_key(random: Random) -> str:
    """A random key, as a service issues it."""
    mixed = LETTERS + CAPITALS + DIGITS
    size = random.choice((10, 12, 16, 20, 24, 32, 40))
    return random.choice((
        "".join(random.choices(HEX, k=random.choice((32, 32, 40, 64)))), "".join(random.choices(mixed, k=size)), "".join(random.choices(mixed, k=size)),
        f"{word(random)[:4]}_{random.choice(('live', 'prod', 'test', 'sk'))}_{''.join(random.choices(mixed, k=size))}",
        f"{word(random)[:3]}-{''.join(random.choices(mixed, k=8))}-{''.join(random.choices(mixed, k=8))}",
        f"{''.join(random.choices(CAPITALS, k=2))}-{''.join(random.choices(HEX, k=6))}-{''.join(random.choices(mixed, k=12))}",
        f"{word(random)}.{''.join(random.choices(mixed, k=size))}", "".join(random.choices(CAPITALS + DIGITS, k=32)),
    ))  # fmt: skip


def make_password(random: Random) -> str:
    """A password as people choose it."""
    one, two, three = word(random), word(random), word(random)
    name = random.choice(slots()["names"])
    sign, number = random.choice("!#&+*.-_@$%"), digits(random, random.choice((1, 2, 2, 2, 3, 4)))
    year = str(random.randint(1950, 2026))
    leet = str.maketrans({"o": "0", "e": "3", "i": "1", "a": random.choice("4@"), "s": random.choice("5$")})
    spelled = "".join(
        char.translate(leet) if random.random() < 0.5 else char
        for char in one.capitalize() + random.choice(("", two.capitalize()))
    )
    return random.choice((
        one + number, one.capitalize() + number, one.capitalize() + number + random.choice("!!#?*"), f"{one}-{two}-{number}", f"{one.capitalize()}-{two.capitalize()}-{number}",
        f"{one.capitalize()}{sign}{two.capitalize()}", f"{one}{sign}{two}", f"{one}.{two}.{three}", f"{one}_{two.capitalize()}{number}", one.capitalize() + two.capitalize() + number,
        one + two.capitalize(), name + year, name + number, name.lower() + sign + number, spelled, spelled + random.choice(("", "!", number)), one.capitalize() + sign + number,
        f"{one}-{number}", f"{one}-{two}", f"{one}-{two}-{three}", f"{one}{number}{two}", one.capitalize() + number + two, f"{one.capitalize()}.{number}", f"{number}{sign}{one.capitalize()}",
        "".join(random.choices(LETTERS + DIGITS, k=8)), "".join(random.choices(LETTERS + CAPITALS + DIGITS, k=random.choice((8, 10, 12)))),
        "".join(random.choices(LETTERS + CAPITALS + DIGITS + "!#$%&*?", k=random.choice((10, 12, 14)))), f"{one}/{two.capitalize()}/{number}", f"{one[:3].upper()}-{two.capitalize()}-{number}",
        "".join(random.choices(CAPITALS + DIGITS, k=8)), f"{one.capitalize()}+{two.capitalize()}{number}", f"{number}{one.capitalize()}{random.choice('X!')}",
        f"{one[:3]}{number}-{two[:4].upper()}-{three[:2]}",
    ))  # fmt: skip


def make_harmless(slot: str, random: Random) -> str:
    """A word of a list, or a generated value that opens nothing."""
    words = slots().get(slot)
    return random.choice(words) if words else _HARMLESS[slot](random)


def _of(characters: str, *sizes: int) -> Callable[[Random], str]:
    return lambda random: "".join(random.choices(characters, k=random.choice(sizes)))


def _ref(random: Random) -> str:
    letters = "".join(random.choices(CAPITALS, k=random.choice((2, 3, 4))))
    return random.choice((
        f"{letters}-{digits(random, random.choice((3, 4, 5, 6)))}", f"{letters}{digits(random, random.choice((5, 6, 8, 9)))}", f"{letters}-20{digits(random, 2)}-{digits(random, 4)}",
        f"{digits(random, 2)}-{digits(random, 4)}", f"{digits(random, 4)}/{digits(random, 2)}", digits(random, random.choice((5, 6, 7, 8, 10))), f"{letters}/{digits(random, 4)}", f"#{digits(random, 4)}",
    ))  # fmt: skip


def _model(random: Random) -> str:
    letters = "".join(random.choices(CAPITALS, k=random.choice((1, 2, 3))))
    return random.choice((f"{letters}{digits(random, 3)}", f"{letters}{digits(random, 4)}{random.choice(CAPITALS)}", f"{letters}-{digits(random, 3)}", f"{word(random).capitalize()} {digits(random, 3)}", f"{letters}{digits(random, 3)}+", f"{word(random).capitalize()}-{letters}{digits(random, 2)}", f"{digits(random, 4)}{letters}"))  # fmt: skip


def _host(random: Random) -> str:
    return random.choice((f"{word(random)[:4]}-{random.choice(('prod', 'db', 'web', 'gw', 'nas'))}-{digits(random, 2)}", f"db-{digits(random, 2)}", f"{word(random)}-{digits(random, 1)}", f"{word(random)}.corp.example", f"{word(random)}{digits(random, 1)}", f"jump-{digits(random, 1)}"))  # fmt: skip


_HARMLESS: dict[str, Callable[[Random], str]] = {
    "n": lambda random: str(random.choice((random.randint(2, 99), random.randint(100, 999), random.randint(1000, 9999)))),
    "num": _of(DIGITS, 4, 5, 6, 7, 8, 9),
    "num4": _of(DIGITS, 4),
    "num8": _of(DIGITS, 8),
    "num2": lambda random: f"{random.randint(1, 99)},{digits(random, 3)}.{digits(random, 2)}",
    "ref": _ref,
    "ref4": _of(CAPITALS + DIGITS, 4, 6),
    "part": lambda random: random.choice((_model(random), _ref(random), f"{digits(random, 3)}-{digits(random, 3)}-{digits(random, 2)}", f"M{random.randint(3, 12)}x{random.randint(10, 80)}")),
    "model": _model,
    "serial": lambda random: random.choice((_of(CAPITALS + DIGITS, 9, 11, 12)(random), _of(DIGITS, 8, 9, 10)(random), "".join(random.choices(CAPITALS, k=3)) + digits(random, 7))),
    "lot": lambda random: digits(random, 1) + random.choice(CAPITALS) + digits(random, 3),
    "ver": lambda random: ".".join(str(random.randint(0, 30)) for _ in range(random.choice((2, 3, 3)))),
    "price": lambda random: random.choice((f"£{random.randint(2, 900)}", f"{random.randint(2, 900)} €", f"{random.randint(1, 99)},{digits(random, 3)} EUR", f"${random.randint(1, 99)}.{digits(random, 2)}")),
    "date": lambda random: random.choice((f"{random.randint(1, 28)} {random.choice(MONTHS)}", f"{random.randint(1, 28)}.{random.randint(1, 12)}.", f"20{random.randint(20, 27)}-{random.randint(1, 12):02}-{random.randint(1, 28):02}", f"{random.randint(1, 28)}/{random.randint(1, 12)}")),
    "date2": lambda random: f"20{random.randint(20, 27)}-{random.randint(1, 12):02}-{random.randint(1, 28):02}",
    "time": lambda random: random.choice((f"{random.randint(0, 23)}:{random.randint(0, 59):02}", f"{random.randint(1, 12)}{random.choice(('am', 'pm'))}")),
    "time2": lambda random: f"{random.randint(0, 23):02}:{random.randint(0, 59):02}:{random.randint(0, 59):02}",
    "year": lambda random: str(random.randint(1950, 2027)),
    "phone": lambda random: random.choice((f"07{digits(random, 3)} {digits(random, 6)}", f"0{digits(random, 3)} {digits(random, 3)} {digits(random, 4)}", f"+{random.randint(1, 99)} {digits(random, 3)} {digits(random, 4)} {digits(random, 2)}", f"555-{digits(random, 4)}", f"0{digits(random, 10)}", f"6{digits(random, 2)} {digits(random, 3)} {digits(random, 3)}")),
    "flight": lambda random: f"{''.join(random.choices(CAPITALS, k=2))} {digits(random, random.choice((3, 4)))}",
    "hash": _of(HEX, 7, 8, 40),
    "hash16": _of(HEX, 16),
    "hash32": _of(HEX, 32),
    "hash64": lambda random: "sha256:" + "".join(random.choices(HEX, k=64)),
    "hex4": _of(HEX, 4),
    "hex6": _of(HEX, 6),
    "hexerr": lambda random: "0x" + "".join(random.choices("0123456789ABCDEF", k=8)),
    "uuid": lambda random: "-".join("".join(random.choices(HEX, k=size)) for size in (8, 4, 4, 4, 12)),
    "pod": lambda random: f"{word(random)}-{''.join(random.choices(HEX, k=9))}-{''.join(random.choices(LETTERS + DIGITS, k=5))}",
    "branch": lambda random: random.choice((f"feature/{word(random)}-{word(random)}", f"fix/{word(random)}-{digits(random, 3)}", f"{word(random)}-{word(random)}-{digits(random, 2)}")),
    "host": _host,
    "file": lambda random: f"{word(random)}.{random.choice(('py', 'log', 'csv', 'yml', 'pdf', 'xlsx', 'kdbx'))}",
    "mac": lambda random: ":".join("".join(random.choices(HEX, k=2)) for _ in range(6)),
    "pubkey": lambda random: "AAAAC3NzaC1lZDI1NTE5AAAAI" + "".join(random.choices(LETTERS + CAPITALS + DIGITS, k=43)),
    "long": _of(DIGITS, 10, 13, 15),
    "imei": _of(DIGITS, 15),
    "track": lambda random: random.choice((digits(random, 14), "1Z" + "".join(random.choices(CAPITALS + DIGITS, k=16)), "RR" + digits(random, 9) + "DE")),
    "b12": _of(LETTERS + CAPITALS + DIGITS, 12, 16, 24),
    "mail2": lambda random: f"{word(random)}.{word(random)}@{word(random)}.example",
    "b62": _of(LETTERS + CAPITALS + DIGITS, 22),
    "b43": _of(LETTERS + CAPITALS + DIGITS, 43),
    "cardnum": lambda random: " ".join((f"4{digits(random, 3)}", digits(random, 4), digits(random, 4), digits(random, 4))),
    "url": lambda random: f"manage.{word(random)}.example",
    "dom": lambda random: f"{word(random)}.example",
    "ssid": lambda random: random.choice((f"{word(random).capitalize()}Guest", f"{word(random)}-5G", f"{word(random).capitalize()}_House")),
    "w": word,
    "W": lambda random: word(random).capitalize(),
    "ENV": lambda random: f"{word(random).upper()}_{random.choice(('PASSWORD', 'TOKEN', 'KEY', 'SECRET'))}",
    "vault": lambda random: f"kv/{word(random)}/{word(random)}",
}  # fmt: skip
