"""A configured model's help with sources: which passages matter, which of their words, and a summary. Without it, or where it fails, the
deterministic order and excerpts stand.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from engram.model.errors import ModelError
from engram.model.lazy import dataclass, field
from engram.text.display import one_line

if TYPE_CHECKING:
    from engram.llm.model import LanguageModel

MAX_CONSIDERED_PASSAGES = 12
"""Passages of one phase that the model chooses from."""
_MAX_PASSAGE_CHARACTERS = 1_600


@dataclass(slots=True)
class SourceRefiner:
    """Asks the model, until it fails once."""

    model: "LanguageModel"
    warnings: list[str] = field(default_factory=list)
    _failed: bool = False

    def choose(self, question: str, passages: Sequence[str]) -> list[tuple[int, str]] | None:
        """The places of the passages that help, best first, each with its words that do; None where the model does not answer.

        A quotation that is not in its passage is "": nothing is shown that no source says.
        """
        from engram.llm.schemas import ChosenPassages

        if self._failed or not passages:
            return None
        listed = "\n".join(
            f"{number}. {one_line(text)[:_MAX_PASSAGE_CHARACTERS]}" for number, text in enumerate(passages, 1)
        )
        try:
            answer = self.model.ask("passages", ChosenPassages, {"question": question, "passages": listed})
        except ModelError as error:
            self._fail("ordered without the model", error)
            return None
        chosen: dict[int, str] = {}
        for choice in answer.choices:
            place = choice.number - 1
            if 0 <= place < len(passages) and place not in chosen:
                quote = " ".join(choice.quote.split())
                chosen[place] = quote if quote and quote in " ".join(passages[place].split()) else ""
        return list(chosen.items())

    def summarise(self, question: str, findings: str) -> str:
        """What the findings say about the question; "" where the model does not answer."""
        from engram.llm.schemas import FindingsSummary

        if self._failed or not findings:
            return ""
        try:
            answer = self.model.ask("findings", FindingsSummary, {"question": question, "findings": findings})
        except ModelError as error:
            self._fail("not summed up", error)
            return ""
        return " ".join(answer.summary.split())

    def _fail(self, what: str, error: ModelError) -> None:
        self._failed = True
        self.warnings.append(f"{what}: {error}")
