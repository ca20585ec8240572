"""External embedders, each an extra: `fastembed` (ONNX, on this machine), and any server with OpenAI's `POST
/embeddings`.

Such servers include OpenAI, Ollama, vLLM and LM Studio. The key is read from the environment, never from a file of the
store; a local server needs none.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

from engram.embedding.vectors import EmbedderError, unit_rows
from engram.model.lazy import cached_property

if TYPE_CHECKING:
    import httpx
    import numpy as np
    import numpy.typing as npt


__all__ = ["FastembedEmbedder", "OpenAIEmbedder"]


class FastembedEmbedder:
    """Any text model that fastembed supports; fastembed downloads and caches its weights on first use."""

    def __init__(self, model: str) -> None:
        self._model_name = model
        self._model = _open(model)

    @property
    def name(self) -> str:
        """Model and vector length, so that vectors of different lengths are never mixed."""
        return f"fastembed:{self._model_name}-{self.dim}"

    @cached_property
    def dim(self) -> int:
        """The length of the model's vectors, determined from one embedding."""
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


API_KEY_VARIABLE = "ENGRAM_EMBEDDING_API_KEY"
FALLBACK_KEY_VARIABLE = "OPENAI_API_KEY"
TIMEOUT_SECONDS = 30.0
TEXTS_PER_REQUEST = 64
CHARACTERS_READ = 24_000  # about 8,000 tokens of English, the usual limit of these models
ATTEMPTS = 3
FIRST_WAIT_SECONDS = 0.5
LONGEST_WAIT_SECONDS = 10.0
ERROR_CHARACTERS = 200


class OpenAIEmbedder:
    """Embeds over HTTP in batches; retries temporary errors (time-out, 429, 5xx) a few times."""

    def __init__(
        self,
        model: str,
        base_url: str,
        *,
        api_key: str | None = None,
        timeout: float = TIMEOUT_SECONDS,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        if not base_url.startswith(("http://", "https://")):
            raise EmbedderError(f"The embedder's address {base_url!r} must start with http:// or https://")
        self._model = model
        self._url = base_url.rstrip("/") + "/embeddings"
        self._api_key = api_key or os.environ.get(API_KEY_VARIABLE) or _openai_key(base_url)
        self._timeout = timeout
        self._wait = wait

    @property
    def name(self) -> str:
        """Model and vector length. The address is not part of it because vectors stay the same if a server moves."""
        return f"openai:{self._model}-{self.dim}"

    @cached_property
    def dim(self) -> int:
        """The length of the model's vectors, determined from one request."""
        return len(self._request(["dimension"])[0])

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """One unit row per text; zero for a blank one, which is never sent."""
        import numpy as np

        written = [index for index, text in enumerate(texts) if text.strip()]
        out = np.zeros((len(texts), self.dim), dtype=np.float32)
        for start in range(0, len(written), TEXTS_PER_REQUEST):
            batch = written[start : start + TEXTS_PER_REQUEST]
            out[batch] = self._check_vectors(self._request([_sendable(texts[index]) for index in batch]))
        return unit_rows(out)

    def _check_vectors(self, vectors: list[list[float]]) -> list[list[float]]:
        sizes = {len(vector) for vector in vectors}
        if sizes != {self.dim}:
            raise EmbedderError(f"{self._url} returned vectors of length {sorted(sizes)}; expected {self.dim}")
        return vectors

    def _request(self, texts: list[str]) -> list[list[float]]:
        return _vectors(self._answer({"model": self._model, "input": texts}), len(texts), self._url)

    def _answer(self, body: dict[str, Any]) -> object:
        trouble = ""
        for pause in _pauses():
            if pause:
                self._wait(pause)
            response, trouble = self._post(body)
            if response is None or _is_passing(response.status_code):
                continue
            return self._read(response)
        raise EmbedderError(
            f"{self._url} failed {ATTEMPTS} times, last: {trouble}. Nothing was embedded; try again later"
        )

    def _post(self, body: dict[str, Any]) -> tuple[httpx.Response | None, str]:
        httpx = _httpx()
        headers = {"Authorization": f"Bearer {self._api_key}"} if self._api_key else {}
        try:
            response = httpx.post(self._url, json=body, headers=headers, timeout=self._timeout)
        except httpx.TimeoutException:
            return None, f"no answer within {self._timeout:g} s"
        except httpx.HTTPError as error:
            return None, str(error) or type(error).__name__
        return response, f"HTTP {response.status_code}"

    def _read(self, response: httpx.Response) -> object:
        if response.status_code in (401, 403):
            raise EmbedderError(f"{self._url} refused the key (HTTP {response.status_code}): set {API_KEY_VARIABLE}")
        if response.status_code != 200:
            shown = response.text[:ERROR_CHARACTERS]
            raise EmbedderError(f"{self._url} returned HTTP {response.status_code} for model {self._model}: {shown}")
        try:
            return response.json()
        except ValueError as error:
            raise EmbedderError(f"{self._url} did not return JSON; is it an embeddings server?") from error


def _httpx() -> Any:
    try:
        import httpx
    except ImportError as error:
        raise EmbedderError('An "openai:" embedder needs the package httpx: pip install "engram[openai]"') from error
    return httpx


def _openai_key(base_url: str) -> str | None:
    """OpenAI's own key, which is sent only to OpenAI, never to another server named in a setting."""
    host = base_url.split("//", 1)[1].split("/", 1)[0]
    return os.environ.get(FALLBACK_KEY_VARIABLE) if host == "api.openai.com" else None


def _is_passing(status: int) -> bool:
    return status == 429 or status >= 500


def _pauses() -> Iterator[float]:
    """The pauses before each attempt: none before the first, then doubling."""
    yield 0
    for retry in range(ATTEMPTS - 1):
        yield min(LONGEST_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2**retry)


def _sendable(text: str) -> str:
    return text[:CHARACTERS_READ].encode("utf-8", "replace").decode("utf-8")


def _vectors(answer: object, expected: int, url: str) -> list[list[float]]:
    """The vectors of a response in the order of the texts, with their shape checked."""
    malformed = EmbedderError(f"{url} did not return {expected} embeddings; is it an embeddings server?")
    try:
        items = answer["data"]  # type: ignore[index]
        # Some servers omit the index; they answer in order.
        placed = sorted((int(item.get("index", place)), place) for place, item in enumerate(items))
        vectors = [[float(value) for value in items[place]["embedding"]] for _, place in placed]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise malformed from error
    if len(vectors) != expected or not all(vector and all(map(isfinite, vector)) for vector in vectors):
        raise malformed
    return vectors
