"""An answer from what a recall found, every part with its source: a model's words, else the memories' own."""

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
"""Answers a question from lines of what is known, with the ids of the lines it took."""
MOST_TOLD = 3
"""Memories an answer in their own words tells; a timeline tells all of them."""
NEAR_ENOUGH = 0.75
"""Part of the best hit's score from which another one belongs to the answer."""
UNKNOWN = "Nothing that is known answers the question."


def answering(model: "LanguageModel") -> Composer:
    """How a model is asked: the question and the lines go in as data."""
    from engram.llm.schemas import ComposedAnswer

    def answer(question: str, known: str) -> tuple[str, list[str]]:
        made = model.ask("answer", ComposedAnswer, {"question": question, "known": known})
        return " ".join(made.answer.split()), made.sources

    return answer


def composed(recall: Recall, ask: Composer | None = None) -> tuple[str, str]:
    """The answer, and a warning where there is something to say of it. A model that fails costs its words, not the answer."""
    if not recall.hits:
        return "", UNKNOWN
    if ask is None:
        return _in_own_words(recall), ""
    try:
        said, sources = ask(recall.question, lines_of(recall.hits, recall.intent))
    except ModelError as error:
        return _in_own_words(recall), f"quoted the memories: {error}"
    known = {hit.id for hit in recall.hits}
    cited = [source for source in dict.fromkeys(each.strip("[] ") for each in sources) if source in known]
    if not said or not cited:
        return _in_own_words(recall), "quoted the memories: the model named no source"
    return f"{notice(said)} {' '.join(f'[{word(source)}]' for source in cited)}", ""


def _in_own_words(recall: Recall) -> str:
    hits = recall.hits
    dated = any(word.key == "when" for word in words(recall.question))
    if recall.intent == "lineage":
        return ", then ".join(_sentence(hit, dated) for hit in hits)
    least = max(hit.score for hit in hits) * NEAR_ENOUGH
    told = [hit for hit in hits if hit.score >= least][:MOST_TOLD]
    return "; ".join(_sentence(hit, dated) for hit in told)


def _sentence(hit: Hit, dated: bool) -> str:
    when = f"{hit.event.at:%Y-%m-%d}, {word(hit.event.role)}: " if hit.event else ""
    return (
        f"{when}{quoted(hit.stretch or hit.text)}{remark_of(hit, dated=dated and hit.event is None)} [{word(hit.id)}]"
    )
