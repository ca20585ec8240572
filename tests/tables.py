"""A table of cases as one test: it tries every case and reports all that miss, where `parametrize` makes a test of each."""

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

Test = Callable[..., None]


def table(
    names: str | Sequence[str], cases: Iterable[Any], *, ids: Iterable[Any] | None = None
) -> Callable[[Test], Test]:
    """Run the test below for each case in turn. Written as `pytest.mark.parametrize` is; the cases share their fixtures.

    Fails with every case that missed and why.
    """
    columns = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    rows = [_values(case, len(columns)) for case in cases]
    labels = [str(label) for label in ids] if ids is not None else [", ".join(map(_shown, row)) for row in rows]
    assert rows, "a table without cases tests nothing"

    def decorate(test: Test) -> Test:
        @functools.wraps(test)
        def every(**given: Any) -> None:
            missed = []
            for label, row in zip(labels, rows, strict=True):
                try:
                    test(**given, **dict(zip(columns, row, strict=True)))
                except (Exception, pytest.fail.Exception) as error:
                    missed.append(f"{label}\n    {_reason(error)}")
            assert not missed, f"{len(missed)} of {len(rows)} cases missed:\n" + "\n".join(missed)

        asked = inspect.signature(test).parameters.values()
        fixtures = [parameter for parameter in asked if parameter.name not in columns]
        setattr(every, "__signature__", inspect.Signature(fixtures))  # noqa: B010
        return every

    return decorate


def _values(case: Any, columns: int) -> Sequence[Any]:
    if isinstance(case, type(pytest.param())):
        assert not case.marks, "a case of a table cannot be marked"
        return case.values
    return (case,) if columns == 1 else case


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}…"


def _reason(error: BaseException) -> str:
    lines = f"{type(error).__name__}: {error}".splitlines()
    return "\n    ".join(lines[:6])
