"""Writes src/engram/text/data/confusables.txt: the letters and signs that look like an ASCII letter, grouped by that letter.

    pip download confusable-homoglyphs==3.3.1 --no-deps
    python training/confusable_letters.py confusable_homoglyphs-3.3.1-py2.py3-none-any.whl

The package contains Unicode's confusables.txt (UTS 39) as JSON. Characters that NFKC turns into ASCII are left out,
because folding applies NFKC anyway. Letters with a stroke or a hook, small capitals, and letters in black circles and
squares are added.
"""

import json
import sys
import unicodedata
import zipfile
from collections import defaultdict
from pathlib import Path

TABLE = Path(__file__).parents[1] / "src/engram/text/data/confusables.txt"
HEADER = (
    "# An ASCII letter and the characters that look like it: from Unicode's confusables.txt (UTS 39, Unicode License V3);"
    " training/confusable_letters.py\n"
)
# Less alike than Unicode requires, but enough for a reader, or with the intended capital (Unicode's form of it is a
# small L).
ALIKE = dict(
    zip(
        "аеорсухіјѕһԁԝԛгкАВЕКМНОРСТХІЈЅԌαορνκιτυχγεηωΑΒΕΖΗΙΚΜΝΟΡΤΥΧɡ",
        "aeopcyxijshdwqrkABEKMHOPCTXIJSGaopvkituxyenwABEZHIKMNOPTYXg",
        strict=True,
    )
)
NAMES = (
    "LATIN LETTER SMALL CAPITAL ", "NEGATIVE CIRCLED LATIN CAPITAL LETTER ", "NEGATIVE SQUARED LATIN CAPITAL LETTER ",
)  # fmt: skip


def main(package: str) -> None:
    """Write the table from the package's data."""
    with zipfile.ZipFile(package) as archive:
        data = json.loads(archive.read("confusable_homoglyphs/confusables.json"))
    found: dict[str, str] = {}
    for shape, alike in data.items():
        letter = shape[0]
        if letter.isascii() and letter.isalpha() and all(map(unicodedata.combining, shape[1:])):
            found |= {one["c"]: letter for one in alike if is_wanted(one["c"])}
    for code in range(0x80, sys.maxunicode + 1):
        name = unicodedata.name(chr(code), "")
        for prefix in NAMES:
            if name.startswith(prefix) and len(letter := name.removeprefix(prefix)) == 1 and is_wanted(chr(code)):
                found.setdefault(chr(code), letter.lower() if "SMALL" in prefix else letter)
    found |= ALIKE
    groups = defaultdict(list)
    for char, letter in sorted(found.items()):
        groups[letter].append(char)
    lines = [f"{letter} {''.join(chars)}\n" for letter, chars in sorted(groups.items())]
    TABLE.write_text(HEADER + "".join(lines), "utf-8")


def is_wanted(char: str) -> bool:
    """Whether a character is one letter or sign outside ASCII that neither NFKC nor removing its accents changes."""
    if len(char) != 1 or char.isascii() or unicodedata.category(char) in ("Mn", "Mc", "Me", "Sc", "Sm"):
        return False
    return unicodedata.normalize("NFKC", char) == char and not unicodedata.normalize("NFD", char)[0].isascii()


if __name__ == "__main__":
    main(*sys.argv[1:])
