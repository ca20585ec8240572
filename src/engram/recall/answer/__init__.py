"""Answers parsed questions with a current value, a past value, events, or the history of a fact."""
