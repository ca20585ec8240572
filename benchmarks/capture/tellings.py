"""Measure which statements a harvest takes for the same fact told again.

    python -m benchmarks.capture.tellings [RULES.jsonl] [--show]

Each line of the file is a rule: {"topic", "rule", "again", "changed"?, "near"?}. `again` is the rule in other words, or a list of such; `changed` one
that replaces it, `near` a list of others that are easily mistaken for it. Printed for paraphrases, for different rules about one topic, for changed and for
near rules: how many are folded into the first memory as further tellings, how many are linked to it for the reviewer, and how many stay apart. A reviewer must
take anything but a paraphrase out again. The weights were trained on training/rules and on texts/rules.jsonl: judge them by other files.
"""

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

from engram import Engram
from engram.capture.stage import find_repetition
from engram.gates.proposal import Neighbour
from engram.model.memory import Memory

RULES = Path(__file__).with_name("texts") / "rules.jsonl"
KINDS = ("paraphrase", "different", "changed", "near")


def pairs(rules: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str, str]]:
    """The kind of each pair, the older statement and the newer one."""
    for one in rules:
        yield from (("paraphrase", one["rule"], again) for again in tellings(one)[1:])
        if changed := one.get("changed"):
            yield "changed", one["rule"], changed
        yield from (("near", one["rule"], near) for near in one.get("near", ()))
    for one, other in permutations(rules, 2):
        if one["topic"] == other["topic"]:
            yield from (("different", one["rule"], telling) for telling in tellings(other))


def tellings(one: Mapping[str, Any]) -> list[str]:
    """A rule, and the same rule in other words."""
    again = one["again"]
    return [one["rule"], *([again] if isinstance(again, str) else again)]


def outcome(mem: Engram, older: str, newer: str) -> str:
    """The outcome for a statement that follows another one: folded, linked or apart."""
    vectors = mem.store.embed([older, newer])
    assert vectors is not None
    near = Neighbour(Memory("", older), float(vectors[0] @ vectors[1]))
    found = find_repetition(mem.store, Memory("", newer), (), vectors[1], [near])
    return "apart" if found is None else "folded" if found.is_same else "linked"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rules", type=Path, nargs="?", default=RULES)
    parser.add_argument("--show", action="store_true", help="list what is wrongly folded or linked")
    given = parser.parse_args()
    rules = [json.loads(line) for line in given.rules.read_text("utf-8").splitlines() if line.strip()]
    counts = Counter[tuple[str, str]]()
    with Engram.open(ephemeral=True) as mem:
        for kind, older, newer in pairs(rules):
            found = outcome(mem, older, newer)
            counts[kind, found] += 1
            if given.show and found != "apart" and kind != "paraphrase":
                print(f"  {kind} {found}: {older} | {newer}")
    for kind in KINDS:
        total = sum(counts[kind, found] for found in ("folded", "linked", "apart"))
        if not total:
            continue
        print(
            f"{kind:<12} {total:>4} pairs: {counts[kind, 'folded']} folded, {counts[kind, 'linked']} linked, {counts[kind, 'apart']} apart"
        )


if __name__ == "__main__":
    main()
