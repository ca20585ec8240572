"""Recall: retrieves candidates from the store, ranks them, follows links between memories, and formats the result."""
