"""A session's summary in a model's words, in the six sections that the rules use too."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from engram.sessions.summary import TITLES

if TYPE_CHECKING:
    from engram.llm.model import LanguageModel


def asking(model: "LanguageModel") -> Callable[[str], str]:
    """How a model is asked: the summary so far and the new turns go in as data, sections come out."""
    from engram.llm.answers import SessionSummary

    def ask(told: str) -> str:
        made = model.ask("summary", SessionSummary, {"turns": told})
        parts = ([made.goal], made.constraints, made.progress, made.decisions, made.next_steps, made.critical_context)
        sections = zip(TITLES.values(), parts, strict=True)
        return "\n".join(
            f"## {title}\n" + "\n".join(f"- {line}" for line in lines if line.strip())
            for title, lines in sections
            if any(line.strip() for line in lines)
        )

    return ask
