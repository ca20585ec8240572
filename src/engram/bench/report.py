"""How a benchmark tells what it measured: progress on a terminal, figures and retrieval measures as text."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from engram.model.lazy import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured figure: its name, its value, and the floor it is compared with."""

    name: str
    value: float
    unit: str
    p95: float | None = None
    p99: float | None = None
    floor: float | None = None
    ratio: float | None = None


def progress_line(what: str, done: int, total: int) -> None:
    """Show progress on stderr where that is a terminal."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{what}: {done:,} of {total:,}" + ("\n" if done >= total else ""))
        sys.stderr.flush()


def figures_text(report: Mapping[str, Any]) -> str:
    """A report's numbers on one line, then each of its figures."""
    numbers = {name: value for name, value in report.items() if isinstance(value, (int, float))}
    heading = ", ".join(f"{value:,} {name.replace('_', ' ')}" for name, value in numbers.items())
    return "\n".join([heading, "", *(figure_text(figure) for figure in report["figures"]), ""])


def figure_text(figure: Mapping[str, Any]) -> str:
    """One figure, with its percentiles and its ratio to the floor where it has them."""
    digits = 1 if figure["unit"] else 3
    line = f"  {figure['name']:<52} {figure['value']:>10,.{digits}f} {figure['unit']}"
    for name in ("p95", "p99"):
        line += f"  {name} {figure[name]:.1f}" if figure[name] is not None else ""
    if figure["ratio"] is not None:
        line += f"  = {figure['ratio']:.2f} × {figure['floor']:.2f}"
    return line


def retrieval_text(report: Mapping[str, Any]) -> str:
    """The measures in a column for the store and, where one was requested, a column for the baseline."""
    columns = [report, report["baseline"]] if "baseline" in report else [report]
    lines = [f"{report['questions']} questions, mode {report['mode']}, fusion {report['fusion']}", ""]
    lines += [_row("", [report["mode"], report["baseline"]["name"]])] if len(columns) > 1 else []
    lines += [_row(name, [column["measures"][name] for column in columns]) for name in report["measures"]]
    lines += ["", "  by category"]
    for category, means in report["by_category"].items():
        lines += [
            _row(f"{category}, {name}", [column["by_category"][category][name] for column in columns]) for name in means
        ]
    latency = ", ".join(f"{name} {value:.1f}" for name, value in report["latency_ms"].items())
    return "\n".join([*lines, "", f"  latency in ms: {latency}; peak memory {report['rss_mb']:.0f} MB"])


def _row(name: str, values: Sequence[float | str]) -> str:
    cells = (value if isinstance(value, str) else f"{value:.3f}" for value in values)
    return f"  {name:<40}" + "".join(f"{cell:>10}" for cell in cells)
