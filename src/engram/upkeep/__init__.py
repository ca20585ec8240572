"""Keeping a store healthy: doctor, backup, prune, index, pause."""
