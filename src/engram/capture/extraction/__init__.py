"""Extracts facts from conversations by rules alone: no model, and the same result every time.

Precision before recall: a sentence is extracted if it states, in the first person or as a plain command, something that will
still be true in months and can be understood alone. Everything else stays in the ledger, where search finds it.
"""

from engram.capture.extraction.clauses import clauses
from engram.capture.extraction.extractor import REDACTED, Extracted, extract

__all__ = ["REDACTED", "Extracted", "clauses", "extract"]
