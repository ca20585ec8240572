"""Dates and times in text: `windows.time_phrase` reads the time phrase of a question or fact, `dates.date_spans` finds
full dates.
"""
