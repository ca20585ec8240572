"""The OpenAI-compatible provider against a real HTTP server on loopback."""

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest

from engram.embedding import EmbedderError, load_embedder, providers
from engram.embedding.providers import OpenAIEmbedder

Answer = tuple[int, bytes]


def vector(text: str) -> list[float]:
    """Three numbers that tell texts apart."""
    return [float(len(text)), float(text.count("a")), 1.0]


def embeddings(texts: list[str]) -> Answer:
    """What a good server answers, its items in reverse to prove that the index decides."""
    items = [{"index": index, "embedding": vector(text)} for index, text in enumerate(texts)]
    return 200, json.dumps({"data": items[::-1]}).encode()


@dataclass
class Server:
    """A loopback server: each request takes the next scripted answer, then the good one."""

    url: str = ""
    script: list[Callable[[list[str]], Answer]] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    release: threading.Event = field(default_factory=threading.Event)

    def answer(self, body: dict[str, Any], key: str | None) -> Answer:
        self.requests.append(body)
        self.keys.append(key)
        reply = self.script.pop(0) if self.script else embeddings
        return reply(body["input"])

    def silence(self, texts: list[str]) -> Answer:
        self.release.wait(10)
        return embeddings(texts)

    def embedder(self, **settings: Any) -> OpenAIEmbedder:
        return OpenAIEmbedder("small", self.url, wait=lambda seconds: None, **settings)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for variable in (providers.API_KEY_VARIABLE, providers.FALLBACK_KEY_VARIABLE):
        monkeypatch.delenv(variable, raising=False)
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, answer = state.answer(body, self.headers.get("Authorization"))
            if self.path != "/v1/embeddings":
                status, answer = 404, b"no such path"
            try:
                self.send_response(status)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)
            except OSError:
                self.close_connection = True  # the client gave up, as the time-out test wants

        def log_message(self, format: str, *args: object) -> None:
            """Keep the tests' output clean."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    state.url = f"http://127.0.0.1:{http.server_port}/v1"
    yield state
    state.release.set()
    http.shutdown()
    thread.join()
    http.server_close()


def fixed(status: int, body: object) -> Callable[[list[str]], Answer]:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return lambda texts: (status, content)


def test_vectors_come_back_in_the_order_of_the_texts(server: Server) -> None:
    rows = server.embedder().embed(["banana", "x"])
    expected = np.array([vector("banana"), vector("x")])
    assert rows.dtype == np.float32
    assert np.allclose(rows, expected / np.linalg.norm(expected, axis=1, keepdims=True))


def test_the_setting_reaches_the_server(server: Server) -> None:
    embedder = load_embedder(f"openai:small@{server.url}/")
    assert embedder is not None
    assert (embedder.name, embedder.dim) == ("openai:small-3", 3)
    assert server.requests[0]["model"] == "small"


def test_blank_texts_are_zero_and_never_sent(server: Server) -> None:
    rows = server.embedder().embed(["", "a", " \n"])
    assert not rows[[0, 2]].any()
    assert rows[1].any()
    assert server.requests[-1]["input"] == ["a"]


def test_many_texts_go_in_batches(server: Server) -> None:
    texts = ["a" * (number + 1) for number in range(providers.TEXTS_PER_REQUEST + 1)]
    rows = server.embedder().embed(texts)
    assert [len(request["input"]) for request in server.requests] == [1, providers.TEXTS_PER_REQUEST, 1]
    assert np.allclose(rows[-1], server.embedder().embed([texts[-1]])[0])


def test_lone_surrogates_and_long_texts_can_be_sent(server: Server) -> None:
    server.embedder().embed(["x\ud800y", "b" * (providers.CHARACTERS_READ + 9)])
    assert server.requests[-1]["input"] == ["x?y", "b" * providers.CHARACTERS_READ]


def test_a_server_error_is_tried_again(server: Server) -> None:
    server.script = [fixed(500, b"oops"), fixed(429, b"slow down")]
    assert server.embedder().embed(["a"]).any()
    assert len(server.requests) == 4


def test_the_pauses_between_attempts_grow(server: Server) -> None:
    waited: list[float] = []
    server.script = [fixed(503, b"")] * 2
    assert OpenAIEmbedder("small", server.url, wait=waited.append).dim == 3
    assert waited == [0.5, 1.0]


def test_a_server_that_stays_broken_is_given_up(server: Server) -> None:
    server.script = [fixed(500, b"oops")] * 9
    with pytest.raises(EmbedderError, match="failed 3 times, last: HTTP 500"):
        server.embedder().embed(["a"])
    assert len(server.requests) == 3


def test_a_silent_server_is_given_up_after_the_time_out(server: Server) -> None:
    server.script = [server.silence] * 3
    with pytest.raises(EmbedderError, match=r"no answer within 0\.05 s"):
        server.embedder(timeout=0.05).embed(["a"])


def test_nobody_listening_is_a_clear_error() -> None:
    with pytest.raises(EmbedderError, match="failed 3 times"):
        OpenAIEmbedder("small", "http://127.0.0.1:9/v1", wait=lambda seconds: None).embed(["a"])


def test_a_wrong_request_is_not_tried_again(server: Server) -> None:
    server.script = [fixed(404, b"model not found")]
    with pytest.raises(EmbedderError, match="HTTP 404 for model small: model not found"):
        server.embedder().embed(["a"])
    assert len(server.requests) == 1


def test_a_refused_key_names_the_variable_to_set(server: Server) -> None:
    server.script = [fixed(401, b"no")]
    with pytest.raises(EmbedderError, match=providers.API_KEY_VARIABLE):
        server.embedder().embed(["a"])


def test_a_changed_dimension_is_refused(server: Server) -> None:
    embedder = server.embedder()
    assert embedder.dim == 3
    server.script = [fixed(200, {"data": [{"index": 0, "embedding": [1.0, 2.0]}]})]
    with pytest.raises(EmbedderError, match=r"vectors of length \[2\]; expected 3"):
        embedder.embed(["a"])


def test_an_answer_that_is_not_json_is_a_clear_error(server: Server) -> None:
    server.script = [fixed(200, b"<html>hello</html>")]
    with pytest.raises(EmbedderError, match="did not return JSON"):
        server.embedder().embed(["a"])


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        {"data": None},
        {"data": []},
        {"data": ["x"]},
        {"data": [{"index": 0}]},
        {"data": [{"index": 0, "embedding": []}]},
        {"data": [{"index": 0, "embedding": ["x"]}]},
        {"data": [{"index": 0, "embedding": [float("nan")]}]},
        {"data": [{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [1.0]}]},
    ],
    ids=str,
)
def test_json_of_another_shape_is_a_clear_error(server: Server, body: object) -> None:
    server.script = [fixed(200, body)]
    with pytest.raises(EmbedderError, match="did not return 1 embeddings"):
        server.embedder().embed(["a"])


def test_an_answer_without_index_is_taken_in_order(server: Server) -> None:
    server.script = [fixed(200, {"data": [{"embedding": [3.0, 4.0]}]})] * 2
    assert np.allclose(server.embedder().embed(["a"]), [[0.6, 0.8]])


def test_the_key_comes_from_the_environment(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(providers.API_KEY_VARIABLE, "key-of-this-server")
    assert server.embedder().dim == 3
    assert server.keys == ["Bearer key-of-this-server"]


def test_openais_key_is_not_sent_to_another_server(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(providers.FALLBACK_KEY_VARIABLE, "key-of-openai")
    assert server.embedder().dim == 3
    assert server.keys == [None]
    assert providers._openai_key("https://api.openai.com/v1") == "key-of-openai"
    assert providers._openai_key("https://api.openai.com.evil.example/v1") is None
