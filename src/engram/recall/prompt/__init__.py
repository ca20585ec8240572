"""Builds the prompt text an agent gets before a task: memories selected, formatted and fitted into a token budget."""
