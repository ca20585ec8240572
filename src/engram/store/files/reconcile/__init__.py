"""Keeps the index in step with logs and memory files."""
