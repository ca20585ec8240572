"""An answer in sentences, every part with its source: a model's words, or quoted memories without one."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from engram.model.errors import ModelError
from engram.model.hit import Hit
from engram.recall.recaller import Recall, lines_of, remark_of
from engram.text.quote import notice, quoted, word
from engram.text.time.words import words

if TYPE_CHECKING:
    from engram.llm.model import LanguageModel

Composer = Callable[[str, str], tuple[str, list[str]]]
"""Answers a question from lines of memories, with the ids of the lines it used."""
MOST_QUOTED = 3
"""Memories that an answer without a model quotes; a history quotes all of them."""
NEAR_ENOUGH = 0.75
"""The share of the best score from which another hit belongs to the answer."""
UNKNOWN = "Nothing that is known answers the question."


def answering(model: "LanguageModel") -> Composer:
    """A composer that asks a model; the question and the lines go in as data."""
    from engram.llm.schemas import ComposedAnswer

    def answer(question: str, known: str) -> tuple[str, list[str]]:
        made = model.ask("answer", ComposedAnswer, {"question": question, "known": known})
        return " ".join(made.answer.split()), made.sources

    return answer


def composed(recall: Recall, ask: Composer | None = None) -> tuple[str, str]:
    """The answer, and a warning or "". Where the model fails, the memories are quoted instead."""
    if not recall.hits:
        return "", UNKNOWN
    if ask is None:
        return _quoted_answer(recall), ""
    try:
        answer, sources = ask(recall.question, lines_of(recall.hits, recall.intent))
    except ModelError as error:
        return _quoted_answer(recall), f"quoted the memories: {error}"
    known = {hit.id for hit in recall.hits}
    cited = [source for source in dict.fromkeys(each.strip("[] ") for each in sources) if source in known]
    if not answer or not cited:
        return _quoted_answer(recall), "quoted the memories: the model named no source"
    return f"{notice(answer)} {' '.join(f'[{word(source)}]' for source in cited)}", ""


def _quoted_answer(recall: Recall) -> str:
    hits = recall.hits
    dated = any(word.key == "when" for word in words(recall.question))
    if recall.intent == "lineage":
        return ", then ".join(_sentence(hit, dated) for hit in hits)
    least = max(hit.score for hit in hits) * NEAR_ENOUGH
    best = [hit for hit in hits if hit.score >= least][:MOST_QUOTED]
    return "; ".join(_sentence(hit, dated) for hit in best)


def _sentence(hit: Hit, dated: bool) -> str:
    when = f"{hit.event.at:%Y-%m-%d}, {word(hit.event.role)}: " if hit.event else ""
    return (
        f"{when}{quoted(hit.stretch or hit.text)}{remark_of(hit, dated=dated and hit.event is None)} [{word(hit.id)}]"
    )
