"""Embedding providers behind one protocol: the bundled static model, fastembed, any OpenAI-compatible server.

load_embedder("static")                                  the bundled model, no network
load_embedder("fastembed:BAAI/bge-small-en-v1.5")        pip install "engram[fastembed]"
load_embedder("openai:nomic-embed-text@http://localhost:11434/v1")   pip install "engram[openai]"
load_embedder("none")                                    None: search by keyword only
"""

from __future__ import annotations

from engram.embedding.vectors import Embedder, EmbedderError

__all__ = ["DEFAULT_EMBEDDER", "Embedder", "EmbedderError", "load_embedder"]

DEFAULT_EMBEDDER = "static"
_FORMS = '"static", "fastembed:<model>", "openai:<model>@<base_url>" or "none"'


def load_embedder(spec: str = DEFAULT_EMBEDDER) -> Embedder | None:
    """The provider a setting names; None for "none". Raises `EmbedderError` for an unknown name."""
    kind, _, rest = spec.strip().partition(":")
    match kind, rest:
        case "none", "":
            return None
        case "static", "":
            from engram.embedding.static import StaticEmbedder

            return StaticEmbedder()
        case "fastembed", model if model:
            from engram.embedding.providers import FastembedEmbedder

            return FastembedEmbedder(model)
        case "openai", target if target:
            return _openai(spec, target)
    raise EmbedderError(f"Unknown embedder {spec!r}: use {_FORMS}")


def _openai(spec: str, target: str) -> Embedder:
    from engram.embedding.providers import OpenAIEmbedder

    # A model's name may hold an "@", a base URL without credentials does not.
    model, _, base_url = target.rpartition("@")
    if not model or not base_url:
        raise EmbedderError(f"Embedder {spec!r} has no address: use openai:<model>@<base_url>")
    return OpenAIEmbedder(model, base_url)
