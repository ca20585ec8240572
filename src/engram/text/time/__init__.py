"""Dates and times in text: `windows.time_phrase` reads the one of a question or a fact, `dates.date_spans` finds full dates."""
