"""The client: opens a store, connects the facets, and has the everyday verbs."""

from engram.client.engram import PAUSED_MESSAGE, Engram

__all__ = ["PAUSED_MESSAGE", "Engram"]
