"""What is worth remembering of a conversation, by rules alone: no model, the same answer every time.

Precision before recall: a sentence is taken when it says, in the first person or as a plain command, something that will
still hold in months and can be understood alone. In doubt it stays in the ledger, where search finds it.
"""

from engram.capture.extraction.clauses import clauses
from engram.capture.extraction.extractor import REDACTED, Extracted, extract

__all__ = ["REDACTED", "Extracted", "clauses", "extract"]
