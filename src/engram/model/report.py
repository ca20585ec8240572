"""The doctor's report on a store."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal, Self

from engram.model.lazy import dataclass, field, replace

Level = Literal["ok", "advice", "problem"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One check of the doctor: its `code`, the result (`level`, `message`) and how to `fix` a problem."""

    code: str
    level: Level
    message: str
    fix: str = ""
    count: int = 0
    """How many memories, or pairs of them, it concerns."""
    ids: tuple[str, ...] = ()
    """The memories it concerns, the first 100."""

    @classmethod
    def of(cls, code: str, ok: bool, message: str, fix: str = "") -> Self:
        """A finding with its level derived from the result: a problem, something healthy with advice, or something
        healthy.
        """
        level: Level = "problem" if not ok else "advice" if fix else "ok"
        return cls(code, level, message, fix)

    @property
    def ok(self) -> bool:
        """Whether it is healthy; advice is not a problem."""
        return self.level != "problem"

    def record(self) -> dict[str, Any]:
        """The finding as plain data, as `engram doctor --json` prints it."""
        concerned = {"count": self.count, "ids": list(self.ids)} if self.count else {}
        said = {"name": self.code, "ok": self.ok, "level": self.level, "detail": self.message, "advice": self.fix}
        return {**said, **concerned}


@dataclass(frozen=True, slots=True)
class Report:
    """The doctor's findings, and facts about the store. `report["gates"]` is the finding with that code."""

    findings: tuple[Finding, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether there are no problems."""
        return all(finding.ok for finding in self.findings)

    @property
    def problems(self) -> tuple[Finding, ...]:
        """The findings that need attention."""
        return tuple(finding for finding in self.findings if not finding.ok)

    def __getitem__(self, code: str) -> Finding:
        found = next((finding for finding in self.findings if finding.code == code), None)
        if found is None:
            raise KeyError(code)
        return found

    def __contains__(self, code: object) -> bool:
        return any(finding.code == code for finding in self.findings)

    def with_findings(self, *, first: Iterable[Finding] = (), last: Iterable[Finding] = ()) -> "Report":
        """The report with more findings, at the start or the end."""
        return replace(self, findings=(*first, *self.findings, *last))

    def record(self) -> dict[str, Any]:
        """The report as plain data, as `engram doctor --json` prints it."""
        return {"ok": self.ok, "checks": [finding.record() for finding in self.findings], "facts": dict(self.facts)}
