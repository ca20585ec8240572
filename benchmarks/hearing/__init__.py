"""Measures how well Engram understands statements, through the public API, on texts that none of its models were trained on."""
