"""`engram bench`: read the data, measure, print."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from engram.model.errors import InvalidInput

MOST = 1_000_000


def main(kind: str, options: Mapping[str, Any]) -> None:
    """Run one benchmark and print its figures, as text or as JSON."""
    if kind == "speed":
        reports = _speed(str(options["n"]))
    elif kind == "server":
        reports = [_server(options)]
    elif kind in FIGURES:
        reports = [FIGURES[kind](options)]
    else:
        reports = [_retrieval(kind, options)]
    if options.get("json"):
        sys.stdout.write(json.dumps(reports if kind == "speed" else reports[0], indent=1, ensure_ascii=False) + "\n")
        return
    plain = dict.fromkeys(FIGURES, _figures_text)
    text = {"speed": _speed_text, "server": _server_text, **plain}.get(kind, _retrieval_text)
    for report in reports:
        sys.stdout.write(text(report) + "\n")


def _retrieval(kind: str, options: Mapping[str, Any]) -> dict[str, Any]:
    from engram.bench import beam, locomo, longmemeval
    from engram.bench.retrieval import Asking, measure

    load = {"locomo": locomo.load, "longmemeval": longmemeval.load, "beam": beam.load}[kind]
    by_turn = kind != "longmemeval"
    asking = Asking(options["mode"], options["fusion"], options["limit"], by_turn, options.get("baseline"))
    conversations = load(Path(options["file"]))
    return measure(conversations, asking, _progress, options.get("url"))


def _server(options: Mapping[str, Any]) -> dict[str, Any]:
    from engram.bench.server import Plan, measure

    (count,) = parse_sizes(str(options["n"]))
    plan = Plan(
        url=options["url"],
        admin=options["admin"] or options["url"],
        count=count,
        tenants=options["tenants"],
        rows=options["rows"],
        clients=options["clients"],
        seconds=options["seconds"],
        nearest=options["nearest"],
    )
    return measure(plan, _progress, lambda figure: sys.stderr.write(_figure_text(figure) + "\n"))


def _ledger(options: Mapping[str, Any]) -> dict[str, Any]:
    from engram.bench.ledger import measure

    return measure(
        options["events"],
        options["tasks"],
        url=options["url"],
        tenant=BENCH,
        folder=options["folder"],
        progress=_progress,
    )


def _documents(options: Mapping[str, Any]) -> dict[str, Any]:
    from engram.bench.documents import measure

    return measure(options["megabytes"], url=options["url"], tenant=BENCH, progress=_progress)


def _graph(options: Mapping[str, Any]) -> dict[str, Any]:
    from engram.bench.graph import measure

    return measure(url=options["url"], progress=_progress)


def _loop(options: Mapping[str, Any]) -> dict[str, Any]:
    from dataclasses import asdict

    from engram.bench.loop import measure
    from engram.bench.speed import Figure

    report = measure(int(options["n"]), seconds=options["seconds"], url=options["url"], progress=_progress)
    alone, lag = report.pop("baseline_ms"), report.pop("lag_ms")
    names = (("the event loop's lag while nothing works", alone), ("the same while 32 callers search and write", lag))
    figures = [asdict(Figure(name, told["p50"], "ms", told["p95"], told["p99"])) for name, told in names]
    return {**report, "figures": figures}


BENCH = "bench"
"""The tenant a benchmark on a server uses."""
FIGURES: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "ledger": _ledger,
    "documents": _documents,
    "graph": _graph,
    "loop": _loop,
}
"""Benchmarks whose answer is a list of figures."""


def _speed(sizes: str) -> list[dict[str, Any]]:
    from engram.bench.speed import measure

    return [measure(count, progress=_progress) for count in parse_sizes(sizes)]


def parse_sizes(text: str) -> list[int]:
    """`1000,10000` as numbers, or `InvalidInput`."""
    try:
        sizes = [int(part.replace("_", "")) for part in text.split(",")]
    except ValueError:
        raise InvalidInput(f"--n {text!r} is no list of numbers such as 1000,10000") from None
    if not all(100 <= size <= MOST for size in sizes):
        raise InvalidInput(f"--n takes sizes from 100 to {MOST}")
    return sizes


def _progress(what: str, done: int, total: int) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{what}: {done:,} of {total:,}" + ("\n" if done >= total else ""))
        sys.stderr.flush()


def _retrieval_text(report: Mapping[str, Any]) -> str:
    """A column for the store and, where one was asked for, a column for the baseline."""
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


def _server_text(report: Mapping[str, Any]) -> str:
    lines = [_speed_text(report)]
    if crowd := report.get("crowd"):
        lines += [
            f"  {crowd['clients']} clients, {crowd['seconds']:.0f} s: {crowd['searches']:,} searches, {crowd['writes']:,} writes, "
            f"{crowd['per_second']:.1f} a second",
            f"  search p50 {crowd['search_p50']:.0f} ms, p95 {crowd['search_p95']:.0f}; "
            f"write p50 {crowd['write_p50']:.0f} ms, p95 {crowd['write_p95']:.0f}",
            f"  {len(crowd['errors'])} errors, {crowd['lost']} lost, {crowd['doubled']} doubled, {crowd['deadlocks']} deadlocks",
            *(f"  {error}" for error in crowd["errors"][:10]),
        ]
    return "\n".join(lines)


def _figure_text(figure: Mapping[str, Any]) -> str:
    digits = 1 if figure["unit"] else 3
    line = f"  {figure['name']:<52} {figure['value']:>10,.{digits}f} {figure['unit']}"
    for name in ("p95", "p99"):
        line += f"  {name} {figure[name]:.1f}" if figure[name] is not None else ""
    if figure["ratio"] is not None:
        line += f"  = {figure['ratio']:.2f} × {figure['floor']:.2f}"
    return line


def _figures_text(report: Mapping[str, Any]) -> str:
    told = ", ".join(f"{name} {value:,}" for name, value in report.items() if isinstance(value, (int, float)))
    return "\n".join([told, "", *(_figure_text(figure) for figure in report["figures"]), ""])


def _speed_text(report: Mapping[str, Any]) -> str:
    lines = [f"{report['memories']:,} memories", ""]
    lines += [_figure_text(figure) for figure in report["figures"]]
    return "\n".join([*lines, ""])
