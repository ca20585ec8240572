"""What every record must pass before it is written, however it came about: shape, size and secrets."""

from collections.abc import Sequence

from engram.gates.pipeline import judge_trusted
from engram.gates.proposal import GateSettings, Proposal
from engram.gates.secrets.scan import suspects
from engram.gates.shape import added_problem
from engram.model.decision import Outcome
from engram.model.errors import Refused, SecretRefused
from engram.model.memory import Memory


class _Nobody:
    """Knows no other memory: duplicates are looked up by whoever writes, under the lock."""

    def exact(self, content_hash: str, scope: str) -> Memory | None:
        """None."""
        return None

    def heads(self, conflict_key: str, scope: str) -> tuple[()]:
        """None."""
        return ()

    def near(self, proposal: Proposal) -> tuple[()]:
        """None."""
        return ()


def admit(memory: Memory, settings: GateSettings | None = None) -> Memory:
    """The memory, if it may be written; `SecretRefused` or `Refused` say why not."""
    verdict = judge_trusted(Proposal(memory, False, "", ()), _Nobody(), settings or GateSettings())
    if verdict.outcome == Outcome.REJECTED:
        raise (SecretRefused if verdict.gate == "secrets" else Refused)(verdict.reason)
    return memory


def admit_all(memories: Sequence[Memory], settings: GateSettings) -> None:
    """Raise for the first of these memories that may not be written, as `admit` does."""
    suspected = set() if settings.allow_secrets else {id(memory) for memory in suspects(memories)}
    for memory in memories:
        if id(memory) in suspected or added_problem(memory, settings):
            admit(memory, settings)
