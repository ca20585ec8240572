"""Which intent a question's wording speaks for: a linear model over its words, the rules' own reading among them.

The rules know why, and are at a loss with a frame they have not met; the model was shown some thousand questions and weighs
every word. It is small (a signed byte for each bucket of features and intent), made by scripts/train_intents.py, and the same
question is always read alike.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import pairwise

from engram.recall.asked import Asked
from engram.text.linear import SCALE, Linear
from engram.text.time_phrases import TimePhrase
from engram.text.time_words import Word

__all__ = ["INTENTS", "MARGIN", "READ", "WORDING", "features", "most_like"]

INTENTS = ("current", "historical", "event", "lineage")
WORDING = Linear("engram.recall", "intents.bin", INTENTS, 1 << 14)
READ = "read:"
"""What the features begin with that tell what the rules have read."""
MARGIN = SCALE * 6 // 10
"""By how much the wording must speak for another intent than the rules: they know why."""
_SUFFIX = 3
_MOST_WORDS = 60
"""Of a longer text only the clause that asks is looked at."""


def most_like(found: Iterable[str], read: str) -> str:
    """The intent that these features speak for; what the rules have read, unless they speak for another one clearly."""
    sums = WORDING.sums(found)
    likely = max(range(len(INTENTS)), key=sums.__getitem__)
    return INTENTS[likely] if sums[likely] - sums[INTENTS.index(read)] > MARGIN else read


def features(found: Sequence[Word], phrase: TimePhrase | None, at: datetime, ask: Asked, read: str) -> Iterator[str]:
    """What the model looks at: words alone and in rows of two and three, tense and kind of the verb, the time, what the rules read."""
    keys = ["^", *(_keys(found, phrase, at) if len(found) <= _MOST_WORDS else ask.keys[-_MOST_WORDS:]), "$"]
    yield "1"
    yield f"{READ}{read}"
    yield f"verb:{ask.tense}"
    yield f"verb:{ask.tense} {ask.kind}"
    yield f"{READ}{read} {ask.tense} {ask.kind}"
    for key in dict.fromkeys(keys):
        yield key
        yield f"-{key[-_SUFFIX:]}"
    for one, two in pairwise(keys):
        yield f"{one} {two}"
    for one, two, three in zip(keys, keys[1:], keys[2:], strict=False):
        yield f"{one} {two} {three}"
        yield f"{one} * {three}"


def _keys(found: Sequence[Word], phrase: TimePhrase | None, at: datetime) -> Iterator[str]:
    """The words; for those of the time phrase, how the time lies to the question."""
    told = False
    for word in found:
        if phrase is None or word.end <= phrase.start or word.start >= phrase.end:
            yield "#" if word.key.isdigit() else word.key
        elif not told:
            told = True
            yield _time(phrase, at)


def _time(phrase: TimePhrase, at: datetime) -> str:
    if phrase.window is None:
        return f"<{phrase.relation}>"
    since, until, now = phrase.window.since, phrase.window.until, at.timestamp()
    begun = "open" if since is None else "begun" if since.timestamp() <= now else "ahead"
    ended = "open" if until is None else "over" if until.timestamp() <= now + 1 else "on"
    return f"<{begun} {ended}>"
