"""Answers to parsed questions: the present value, a past one, events, or the lineage of a fact."""
