"""prepare: what memory holds about a question, as a block for a prompt."""

from typing import TYPE_CHECKING, Annotated

from engram.cli.declared import Argument, Option
from engram.cli.surface import Surface, text_or_stdin
from engram.cli.verbs.options import MinRelevance, Scopes, Session
from engram.model.errors import InvalidInput
from engram.recall.cutoff import HELPFUL

if TYPE_CHECKING:
    from engram.client import Engram

Query = Annotated[str, Argument("QUERY", "What the prompt is about; - reads it from stdin.")]
Tokens = Annotated[int, Option("--tokens", metavar="N", help="Room for the whole block.")]
Header = Annotated[str, Option("--header", metavar="TEXT", help="A first line of your own.")]
ByType = Annotated[bool, Option("--by-type", help="A heading for each type of memory.")]


def prepare(
    surface: Surface,
    query: Query,
    tokens: Tokens = 2000,
    header: Header = "",
    by_type: ByType = False,
    session: Session = "",
    scope: Scopes = None,
    min_relevance: MinRelevance = HELPFUL,
) -> None:
    """A block for a prompt, within a token budget.

    The summary of the session, then critical facts, which are never left out, then what the query needs. Unlike `inject` it
    notes no use and gives no directions: every memory is quoted as it is.
    """
    from engram.cli import drawing
    from engram.embedding.tokenizer import count_tokens

    if tokens < 1:
        raise InvalidInput(f"--tokens takes a number, at least 1, not {tokens}")
    query = text_or_stdin(query)
    with surface.memory() as mem:
        text = mem.get_context_block(
            query, max_tokens=tokens, header=header, group_by_type=by_type, session=_summarised(mem, session),
            scope=scope or None, min_relevance=min_relevance,
        )  # fmt: skip
        used = count_tokens(text)
        data = {"query": query, "text": text, "tokens": used, "budget": tokens}
        surface.answer(data, lambda: drawing.block(text))
        if not text:
            surface.hint("engram: nothing in memory bears on this")
        elif surface.drawn:
            surface.hint(f"engram: {used} of {tokens} tokens")


def _summarised(mem: "Engram", session: str) -> str:
    """The session to summarise: one that so far is only a ledger has no summary yet."""
    begun_by_observing = session and mem.store.session(session) is None and mem.store.events(session, last=1)
    return "" if begun_by_observing else session
