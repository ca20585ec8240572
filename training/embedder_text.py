"""Collect the text that the bundled embedding model is trained on: documentation and word lists of Debian packages.

    mkdir debian && cd debian && xargs apt-get download < ../training/embedder_packages.txt
    for file in *.deb; do dpkg -x "$file" root; done; cd ..
    pip download --no-deps chatterbot-corpus
    python training/embedder_text.py debian/root chatterbot_corpus-*.whl text.jsonl.xz

One JSON list a line: source, title of the page, heading (for a dictionary: the word), paragraph. Everything comes from Debian main (Debian 12)
and from chatterbot-corpus (BSD); the paragraphs teach word vectors and are not shipped. No evaluation data is read.
"""

from __future__ import annotations

import gzip
import html
import json
import lzma
import os
import random
import re
import sys
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import yaml

Entry = tuple[str, str, str, str]

DICTIONARIES = ("gcide", "foldoc", "jargon")
LONGEST_FILE = 3_000_000
LONGEST_PARAGRAPH = 700
BLOCK = 250  # characters collected before a section is cut
MOST_OF_A_SOURCE = 30_000
MOST = {"wordnet": 200_000, "gcide": 60_000, "man": 45_000}

_SKIPPED_FOLDERS = re.compile(
    r"/help/(?!C(/|$))[a-z]|/HTML/(?!en)|/locale/|/_sources|/_static|/(de|fr|es|it|ja|pt|ru|zh|ko|nl|pl)(/|$|-|_)"
)
_SKIPPED_FILES = re.compile(r"changelog|copyright|NEWS|genindex|py-modindex|\.[a-z]{2}(-[a-z]{2})?\.html?$")
_SOURCE = re.compile(r"share/(?:doc/HTML/en|doc|help/C)/([^/]+)")
_MARKUP = re.compile(r"\.(html?|xhtml|page|docbook)(\.gz|\.en)?$", re.IGNORECASE)
_PLAIN = re.compile(r"\.(txt|info|rst|md|pod)(-\d+)?(\.gz)?$|^(README|FAQ|HOWTO)", re.IGNORECASE)
_HIDDEN = re.compile(r"<(script|style|pre|programlisting|screen)\b.*?</\1>", re.DOTALL | re.IGNORECASE)
_PIECES = re.compile(
    r"<(h[1-6]|title|dt|term)\b[^>]*>(.*?)</\1>"
    r"|<(p|li|dd|para|note|tip|simpara)\b[^>]*>(.*?)(?=</\3>|<p\b|<li\b|<para\b|<h[1-6]|<dt\b|<title\b)",
    re.DOTALL | re.IGNORECASE,
)
_TAG = re.compile(r"<[^>]+>")
_ROFF = re.compile(r"\\f\[?[A-Z]+\]?|\\f.|\\&|\\\||\\c")
_SPOKEN = re.compile(r'(?:message|story|description|text)\s*=\s*_\s*"(.*?)"', re.DOTALL)


def clean(text: str) -> str:
    """The text without tags, entities and runs of space."""
    return " ".join(html.unescape(_TAG.sub(" ", text)).replace("¶", "").split())


def is_prose(text: str) -> bool:
    """Whether the text has at least five words of (mostly ASCII) letters, which excludes tables and code."""
    start = text[:400]
    if len(text) < 25 or len(text.split()) < 5:
        return False
    letters = sum(character.isalpha() or character == " " for character in start) / len(start)
    return letters > 0.78 and sum(map(str.isascii, start)) / len(start) > 0.93


def read(file: Path, limit: int = LONGEST_FILE) -> str:
    """The start of a file, unpacked; empty if it cannot be read."""
    try:
        with gzip.open(file) if file.suffix in {".gz", ".dz"} else file.open("rb") as opened:
            return opened.read(limit).decode("utf-8", "replace")
    except (OSError, EOFError):
        return ""


def sections(source: str, text: str) -> Iterator[Entry]:
    """The paragraphs of an HTML, DocBook or Mallard page under their headings."""
    title, heading, gathered = "", "", ""
    for piece in _PIECES.finditer(_HIDDEN.sub(" ", text)):
        found = clean(piece[2] if piece[1] else piece[4])
        if piece[1]:
            yield source, title, heading, gathered
            title, heading, gathered = title or found, found, ""
        else:
            gathered = f"{gathered} {found}".strip()
            if len(gathered) > BLOCK:
                yield source, title, heading, gathered
                gathered = ""
    yield source, title, heading, gathered


def manual(text: str) -> Iterator[Entry]:
    """The paragraphs of a manual page."""
    name, heading, lines = "", "", []
    for line in (_ROFF.sub("", each).replace("\\-", "-") for each in text.split("\n")):
        if line.startswith((".TH", ".Dt")):
            name = " ".join(line.split()[1:2])
        elif line.startswith((".SH", ".SS", ".Sh", ".PP", ".TP", ".P", ".LP", ".IP", ".sp")):
            yield "man", name, heading, " ".join(lines)
            lines = []
            heading = line[3:].strip(' "').lower() if line[1] == "S" else heading
        elif line.startswith((".B ", ".I ", ".BR", ".IR")):
            lines.append(line[3:].replace('"', ""))
        elif not line.startswith("."):
            lines.append(line)
    yield "man", name, heading, " ".join(lines)


def paragraphs(source: str, title: str, text: str) -> Iterator[Entry]:
    """The paragraphs of a plain text; a short line by itself is a heading."""
    heading = ""
    for part in re.split(r"\n\s*\n", text):
        line = part.strip()
        if line.startswith("=head"):
            heading = line.partition(" ")[2]
        elif len(line) < 90 and "\n" not in line and len(line.split()) < 12:
            heading = line.strip("=-*_ ")
        elif not part.startswith("    "):
            yield source, title, heading, line


def definitions(source: str, text: str) -> Iterator[Entry]:
    """The entries of a dictionary in dictd's format: the word at the margin, its definition below."""
    for entry in re.split(r"\n(?=\S)", text):
        word, _, meaning = entry.partition("\n")
        if source == "gcide":
            word, meaning = word.partition("\\")[0], re.sub(r"\[.*?\]", "", meaning)
        yield source, "", word, re.sub(r"[{}]", "", meaning)


def wordnet(folder: Path) -> Iterator[Entry]:
    """Lemmas with their glosses, and glosses with their example sentences."""
    for part in ("noun", "verb", "adj", "adv"):
        for line in read(folder / f"data.{part}", 100_000_000).splitlines():
            if line.startswith(" "):
                continue
            fields, _, gloss = line.partition("|")
            numbers = fields.split()
            lemmas = [word.replace("_", " ").partition("(")[0] for word in numbers[4 : 4 + 2 * int(numbers[3], 16) : 2]]
            meaning = re.sub(r'"[^"]*"', "", gloss).strip(" ;\n")
            yield "wordnet", "", ", ".join(lemmas[:4]), meaning
            for example in re.findall(r'"(.*?)"', gloss):
                yield "examples", "", meaning[:120], example


def of_file(file: Path, root: Path) -> Iterator[Entry]:
    """The paragraphs of one unpacked file."""
    place = str(file.parent)
    named = _SOURCE.search(place)
    source = named[1] if named else file.relative_to(root).parts[min(2, len(file.relative_to(root).parts) - 1)]
    if "/man/man" in place:
        yield from manual(read(file))
    elif "/fortunes" in place and not file.suffix:
        yield from (("fortunes", "", "", said) for said in read(file).split("\n%"))
    elif file.suffix == ".cfg" and "wesnoth" in place:
        yield from (("wesnoth", "", "", said) for said in _SPOKEN.findall(read(file)))
    elif _MARKUP.search(file.name) or (file.suffix == ".xml" and "/help/C" in place):
        yield from sections(source, read(file))
    elif _PLAIN.search(file.name):
        yield from paragraphs(source, file.name.partition(".")[0], read(file))


def of_packages(root: Path) -> Iterator[Entry]:
    """The paragraphs of all unpacked Debian packages."""
    for name in DICTIONARIES:
        yield from definitions(name, read(root / f"usr/share/dictd/{name}.dict.dz", 80_000_000))
    yield from wordnet(root / "usr/share/wordnet")
    for folder, folders, files in os.walk(root):
        if _SKIPPED_FOLDERS.search(folder):
            folders.clear()
            continue
        folders.sort()
        for name in sorted(files):
            if not _SKIPPED_FILES.search(name) and not Path(folder, name).is_symlink():
                yield from of_file(Path(folder, name), root)


def talk(wheel: Path) -> Iterator[Entry]:
    """Questions and answers of chatterbot-corpus."""
    with zipfile.ZipFile(wheel) as package:
        for name in package.namelist():
            if "/english/" in name and name.endswith(".yml"):
                for said in yaml.safe_load(package.read(name)).get("conversations", []):
                    yield from (("chat", "", str(said[0]), str(answer)) for answer in said[1:])


def chosen(entries: Iterator[Entry]) -> list[Entry]:
    """Each paragraph once, prose only (glosses and talk unchanged), with sources balanced, in random order."""
    seen: set[str] = set()
    found = []
    for source, title, heading, paragraph in entries:
        text = clean(paragraph)[:LONGEST_PARAGRAPH]
        short = source in {"wordnet", "examples", "chat"}
        if not (text if short else is_prose(text)) or text[:200].lower() in seen:
            continue
        seen.add(text[:200].lower())
        found.append((source[:12], clean(title)[:80], clean(heading)[:120], text))
    random.Random(3).shuffle(found)
    counts: Counter[str] = Counter()
    kept = []
    for entry in found:
        counts[entry[0]] += 1
        if counts[entry[0]] <= MOST.get(entry[0], MOST_OF_A_SOURCE):
            kept.append(entry)
    print(f"{len(kept):,} paragraphs:", ", ".join(f"{source} {count:,}" for source, count in counts.most_common(40)))
    return kept


def main() -> None:
    """Write the file named last."""
    root, wheel, out = map(Path, sys.argv[1:])

    def everything() -> Iterator[Entry]:
        yield from of_packages(root)
        yield from talk(wheel)

    with lzma.open(out, "wt", encoding="utf-8", preset=2) as file:
        file.writelines(json.dumps(entry, ensure_ascii=False) + "\n" for entry in chosen(everything()))


if __name__ == "__main__":
    main()
