"""Models run by the `fastembed` package (ONNX, on this machine); extra `fastembed`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from engram.embedding.protocol import EmbedderError, unit_rows

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["FastembedEmbedder"]


class FastembedEmbedder:
    """Any text model fastembed knows; fastembed fetches and caches its weights at first use."""

    def __init__(self, model: str) -> None:
        self._model_name = model
        self._model = _open(model)

    @property
    def name(self) -> str:
        """Model and vector length: two dimensions of one model never mix."""
        return f"fastembed:{self._model_name}-{self.dim}"

    @cached_property
    def dim(self) -> int:
        """Length of the model's vectors, learnt from one embedding."""
        return len(self._run(["dimension"])[0])

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """One unit row per text; zero for a blank one."""
        import numpy as np

        out = np.zeros((len(texts), self.dim), dtype=np.float32)
        written = [index for index, text in enumerate(texts) if text.strip()]
        if written:
            out[written] = self._run([_encodable(texts[index]) for index in written])
        return unit_rows(out)

    def _run(self, texts: list[str]) -> npt.NDArray[np.float32]:
        import numpy as np

        try:
            return np.asarray(list(self._model.embed(texts)), dtype=np.float32)
        except Exception as error:
            raise EmbedderError(f"fastembed could not embed with {self._model_name}: {error}") from error


def _open(model: str) -> Any:
    try:
        from fastembed import TextEmbedding
    except ImportError as error:
        raise EmbedderError(
            f'The embedder "fastembed:{model}" needs the package fastembed: pip install "engram[fastembed]"'
        ) from error
    try:
        return TextEmbedding(model_name=model)
    except Exception as error:
        raise EmbedderError(
            f"fastembed could not load {model}: {error}. Check the model's name, and that its weights are cached "
            "or the network can be reached"
        ) from error


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")
