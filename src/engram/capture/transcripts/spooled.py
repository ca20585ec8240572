"""Harvest of the spool: exactly the transcripts that hooks left there, oldest first, until the time is over."""

import time
from pathlib import Path

from engram.capture.harvest import HarvestReport
from engram.capture.transcripts.harvest_run import HarvestRun, HarvestSelection
from engram.store import spool

SUFFIX = ".jsonl"


def harvest_spooled(run: HarvestRun, root: Path, seconds: float | None = None) -> HarvestReport:
    """Harvest the waiting sessions of a home, at least one; what is not reached in time waits on."""
    report, started = HarvestReport(), time.monotonic()
    for claim in spool.claim_waiting(root):
        try:
            report.add(_harvest_entry(run, claim.entry))
        except BaseException:
            claim.release()
            raise
        claim.finish()
        if seconds is not None and time.monotonic() - started >= seconds:
            break
    return report


def _harvest_entry(run: HarvestRun, entry: spool.SpoolEntry) -> HarvestReport:
    transcript = Path(entry.transcript)
    if not _is_transcript(transcript):
        return HarvestReport(problems=[f"{transcript}: the transcript of a session is gone; it was not harvested"])
    return run.harvest(HarvestSelection((entry.harness,), transcript))


def _is_transcript(path: Path) -> bool:
    """Whether a path can be a transcript; one that no file can have, such as a name that is too long, is none."""
    try:
        return path.is_absolute() and path.suffix == SUFFIX and path.is_file()
    except (OSError, ValueError):
        return False
