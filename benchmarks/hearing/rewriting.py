"""Measure how a kept sentence reads as a memory, against the memory its writer wants.

    python -m benchmarks.hearing.rewriting [--held] [--show WRITER]

The labels are taken as given, so that only the rewriting is measured. Printed for each writer and for all: the mean F1 of the content words,
the share that starts with a clear subject, the share with a first person or an unresolved pronoun left, and how many people
put in the place of a pronoun are in the wanted memory.
"""

import argparse
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from benchmarks.hearing.talk import FOLDER, HELD, Labelled, Sentence, conversations, writers
from engram.capture.extraction.references import References
from engram.capture.extraction.statement import standalone
from engram.text.tokens import query_terms

AT = datetime(2026, 3, 4, 10, 0, tzinfo=UTC)
_UNCLEAR = re.compile(
    r"(?:he|she|it|they|this|that|these|those|there|him|her|his|its|their|i|me|my|and|but|so|because)\b", re.IGNORECASE
)
_LEFT = re.compile(r"\b(?:i|i'm|i've|me|my|mine|myself|he|she|him|his|her|hers)\b", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]{3,}")
_VERBS = frozenset(("has", "have", "will", "would", "the", "user", "The", "User"))
_SAME = {"mum": "mother", "mom": "mother", "dad": "father", "Dad": "father", "Mum": "mother"}


@dataclass(frozen=True)
class Rewriting:
    """A labelled sentence and its rewriting."""

    sentence: Sentence
    statement: str
    named: tuple[str, ...]
    """The people inserted in place of pronouns."""

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall of the content words."""
        wanted, got = set(query_terms(self.sentence.memory)), set(query_terms(self.statement))
        common = len(wanted & got)
        return 2 * common / (len(wanted) + len(got)) if common else 0.0

    @property
    def has_clear_subject(self) -> bool:
        """Whether it starts with something named."""
        return not _UNCLEAR.match(self.statement)

    @property
    def leaves_pronouns(self) -> bool:
        """Whether a first person, "he" or "she" is left that the wanted memory does not have."""
        return bool(_LEFT.search(self.statement)) and not re.search(r"\b(?:she|he|her|his|him)\b", self.sentence.memory)


def rewritings(talk: Labelled) -> Iterator[Rewriting]:
    """The rewriting of each kept sentence of the user."""
    references, asked = References(), ""
    for turn in talk:
        for place, said in enumerate(turn.sentences):
            if turn.role == "user" and said.worth != "skip":
                statement = standalone(said.text, references, AT, owner=said.owner, asked=asked if not place else "")
                before = references.resolve_pronouns(said.text)
                yield Rewriting(
                    said, statement, tuple(set(_WORD.findall(before)) - set(_WORD.findall(said.text)) - _VERBS)
                )
            references.add_sentence(said.text, about_a_person=said.owner == "person")
        last = turn.sentences[-1].text if turn.sentences else ""
        asked = last if turn.role == "assistant" and last.endswith("?") else ""


def _figures(name: str, found: Sequence[Rewriting]) -> str:
    count = len(found)
    f1 = sum(one.f1 for one in found) / count
    clear = sum(one.has_clear_subject for one in found) / count
    left = sum(one.leaves_pronouns for one in found) / count
    resolved = [one for one in found if one.named]
    right = sum(
        any(name in one.sentence.memory or _SAME.get(name, name) in one.sentence.memory for name in one.named)
        for one in resolved
    )
    return f"{name:<12}{count:>6}{f1:>9.3f}{clear:>9.3f}{left:>9.3f}{right:>5}/{len(resolved)}"


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--held", action="store_true", help="measure on the held-out writers; only figures are printed")
    parser.add_argument("--show", default="", help="print each rewriting of one writer")
    given = parser.parse_args()
    everything: list[Rewriting] = []
    print(f"{'writer':<12}{'kept':>6}{'F1':>9}{'subject':>9}{'pronouns':>9}  people named rightly")
    folder = HELD if given.held else FOLDER
    for writer in writers(folder):
        found = [one for talk in conversations(writer, folder) for one in rewritings(talk)]
        print(_figures(writer, found))
        everything += found
        for one in found if given.show == writer and not given.held else ():
            print(f"  {one.f1:.2f} {one.sentence.text}\n       {one.statement}\n       {one.sentence.memory}")
    print(_figures("all", everything))


if __name__ == "__main__":
    main()
