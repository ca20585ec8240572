"""Shared by the benchmarks' command lines: common options, and printing a report."""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from engram.bench.figures import figures_text
from engram.client import Engram
from engram.model.errors import EngramError, InvalidInput

URL_HELP = "measure on this Postgres server instead of in files"


def parser(module: str, description: str) -> argparse.ArgumentParser:
    """A parser for `python -m benchmarks.MODULE` with `--json`."""
    made = argparse.ArgumentParser(prog=f"python -m benchmarks.{module}", description=description)
    made.add_argument("--json", action="store_true", help="print the report as JSON")
    return made


def whole(least: int, most: int = 10**9) -> Callable[[str], int]:
    """A reader of whole numbers within bounds, for an option's `type`."""

    def read(text: str) -> int:
        number = int(text.replace("_", ""))
        if not least <= number <= most:
            raise argparse.ArgumentTypeError(f"{text} is not between {least} and {most}")
        return number

    read.__name__ = "whole number"
    return read


def print_report(
    measure: Callable[[], dict[str, Any]],
    *,
    as_json: bool,
    text: Callable[[Mapping[str, Any]], str] = figures_text,
) -> None:
    """Measure, then print the report as text or as JSON; an error of Engram's own is one line and exit 1."""
    try:
        report = measure()
    except EngramError as error:
        sys.exit(f"{error}")
    sys.stdout.write((json.dumps(report, indent=1, ensure_ascii=False) if as_json else text(report)) + "\n")


@contextmanager
def empty_tenant(url: str | None, tenant: str) -> Iterator[None]:
    """A tenant that is empty before and removed afterwards; does nothing without a server."""
    if url is None:
        yield
        return
    from benchmarks.tenants import is_empty
    from engram.store.postgres import tenants

    with Engram.open(url=url, tenant=tenant):
        pass
    if not is_empty(url, tenant):
        raise InvalidInput(f"Tenant {tenant} is not empty: an earlier benchmark was interrupted. Remove the tenant.")
    try:
        yield
    finally:
        tenants.remove(url, tenant)
