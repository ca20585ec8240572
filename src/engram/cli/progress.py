"""Progress of long work: a bar on a terminal's stderr, silence everywhere else."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Report = Callable[[str, int, int], None]
"""Told what is being worked on, how far it is, and how far it goes."""


@contextmanager
def bar(what: str) -> Iterator[Report]:
    """Something to report progress to."""
    if not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(what, total=None)

        def report(name: str, done: int, total: int) -> None:
            shown.update(task, description=name or what, completed=done, total=total or None)

        yield report
