"""Engram: opens a store, holds the facets, forwards the everyday verbs. A door, not a house."""

from engram.client.engram import PAUSED, Engram

__all__ = ["PAUSED", "Engram"]
