"""Measures reading a long document: seconds, memory, and whether the sentences planted in it are found again."""

import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.command import URL_HELP, empty_tenant, parser, print_report, whole
from engram.bench import figures as floors
from engram.bench.figures import Figure, progress_line
from engram.bench.speed import statements
from engram.client import Engram
from engram.model.errors import EngramError
from engram.store.protocol import Progress

PLANTED = 100
FIRST = 6
_NAMES = (
    "Aldous",
    "Brenda",
    "Cormac",
    "Delia",
    "Edmund",
    "Farida",
    "Gordon",
    "Hester",
    "Ivor",
    "Juno",
    "Kester",
    "Leonie",
)
_THINGS = (
    ("The notice period for the {what} contract is {n} days", "How long is the notice period for the {what} contract?"),
    ("{who} is responsible for the {what} inventory and signs it every {n} weeks", "Who signs the {what} inventory?"),
    ("Shipments of {what} must not exceed {n} kilograms per pallet", "How heavy may a pallet of {what} be?"),
    ("Claims about {what} shall be filed within {n} days of delivery", "By when must claims about {what} be filed?"),
    ("The agreed rate for {what} storage is {n} euros per square metre", "What does storage of {what} cost per square metre?"),
)  # fmt: skip
_GOODS = (
    "walnut", "copper", "linen", "saffron", "granite", "amber", "velvet", "cedar", "marble", "tobacco", "porcelain", "cashmere",
    "vanilla", "graphite", "cobalt", "ivory", "bamboo", "quartz", "jasmine", "pepper",
)  # fmt: skip


def measure(
    megabytes: float = 10.0,
    *,
    questions: int = PLANTED,
    url: str | None = None,
    tenant: str | None = None,
    progress: Progress = lambda *_: None,
) -> dict[str, Any]:
    """Read a document of that size and ask some questions about it, in a separate process to measure its memory alone.

    Runs on files, or on the server at `url` under a temporary tenant.
    """
    folder = Path(tempfile.mkdtemp(prefix="engram-bench-"))
    own = f"{tenant or 'bench'}-documents"
    try:
        with empty_tenant(url, own):
            return _measured(
                {"folder": str(folder), "megabytes": megabytes, "questions": questions, "url": url, "tenant": own},
                progress,
            )
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _measured(place: dict[str, Any], progress: Progress) -> dict[str, Any]:
    progress("document", 0, 1)
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.documents", "--worker"], input=json.dumps(place), capture_output=True, text=True,
        timeout=1800, check=False,
    )  # fmt: skip
    if done.returncode:
        raise EngramError(f"Reading the document failed: {done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    progress("document", 1, 1)
    return found


def document(megabytes: float, seed: int = 4, questions: int = PLANTED) -> tuple[str, list[tuple[str, str]]]:
    """A Markdown document, and questions with the sentence that answers each."""
    rng = random.Random(seed)
    planted = list(_planted(rng, questions))
    size = int(megabytes * 1_000_000)
    parts: list[str] = ["# Master agreement\n\n"]
    length, section, filler = len(parts[0]), 0, statements(10**9, seed=seed)
    each = size // (questions + 1)
    pending = list(planted)
    while length < size or pending:
        section += 1
        text = "".join(f"{next(filler).capitalize()}. " + ("\n\n" if n % 5 == 4 else "") for n in range(30))
        if pending and length >= each * (questions - len(pending) + 1):
            text += f"{pending.pop(0)[1]}. "
        part = f"## {section}. {next(filler).title()[:40]}\n\n{text}\n\n"
        parts.append(part)
        length += len(part)
    return "".join(parts), planted


def _planted(rng: random.Random, questions: int) -> Iterator[tuple[str, str]]:
    for number in range(questions):
        sentence, question = _THINGS[number % len(_THINGS)]
        what = f"{_GOODS[number % len(_GOODS)]} {_GOODS[(number // len(_GOODS) + number) % len(_GOODS)]}"
        values = {"what": what, "who": rng.choice(_NAMES), "n": rng.randint(11, 999)}
        yield question.format(**values), sentence.format(**values)


def _work(folder: Path, megabytes: float, questions: int, url: str | None, tenant: str | None) -> dict[str, Any]:
    text, planted = document(megabytes, questions=questions)
    opened = (
        Engram.open(url=url, tenant=tenant)
        if url
        else Engram.open(folder / "home", cache=folder / "cache", directory=folder)
    )
    with opened as mem:
        before = floors.peak_memory()
        task = mem.start_task("Read a long document", scope="project:bench")
        started = time.perf_counter()
        read = mem.record_long_input(task.id, text, title="agreement.md")
        seconds = time.perf_counter() - started
        peak = floors.peak_memory()
        spent: list[float] = []
        found = sum(_is_found(mem, task.id, text, question, answer, spent) for question, answer in planted)
    spent.sort()
    figures = [
        Figure(f"{len(text) / 1e6:.1f} MB read, {read.chunks} chunks, {len(read.facts)} facts", seconds, "s"),
        Figure("peak RSS", peak, "MB", floor=before),
        Figure(f"right chunk in the first {FIRST}", found / len(planted), "share"),
        Figure("build_long_input_context", spent[len(spent) // 2], "ms", spent[int(len(spent) * 0.95)]),
    ]
    return {"megabytes": megabytes, "figures": [asdict(figure) for figure in figures]}


def _is_found(mem: Engram, task: str, text: str, question: str, answer: str, spent: list[float]) -> bool:
    started = time.perf_counter()
    context = mem.build_long_input_context(task, question, max_tokens=8000, source_chunk_limit=FIRST)
    spent.append((time.perf_counter() - started) * 1000)
    # A row of random words after "unlock" may be taken for a passphrase.
    whole = [citation for citation in context.citations if not citation.redacted]
    assert all(text[slice(*citation.span)] == citation.quote for citation in whole), "a quote is not the source's"
    return any(answer in citation.quote for citation in context.citations)


def main() -> None:
    """Measure with the options of the command line; with `--worker`, run as the measured process."""
    options = parser("documents", "How long a long document takes to read, and whether what is planted in it is found.")
    options.add_argument("--megabytes", type=whole(1, 60), default=10, help="size of the document (default: 10)")
    options.add_argument("--url", help=URL_HELP)
    options.add_argument("--worker", action="store_true", help="read the work from stdin as JSON (used internally)")
    given = options.parse_args()
    if given.worker:
        order = json.loads(sys.stdin.read())
        sys.stdout.write(json.dumps(_work(Path(order.pop("folder")), **order)))
        return
    print_report(lambda: measure(given.megabytes, url=given.url, progress=progress_line), as_json=given.json)


if __name__ == "__main__":
    main()
