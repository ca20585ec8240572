"""Extracts facts from conversations: a small trained model judges every sentence, rules and a rewriting step phrase what is kept.

The same turns always give the same facts. What is skipped stays in the ledger, where search finds it.
"""

from engram.capture.extraction.extractor import END, FORGET, REDACTED, ExtractedFact, JudgedSentence, consider, extract

__all__ = ["END", "FORGET", "REDACTED", "ExtractedFact", "JudgedSentence", "consider", "extract"]
