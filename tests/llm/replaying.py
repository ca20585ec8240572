"""A model's server on loopback that answers what a test tells it to, in the shapes real ones answer in."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from engram.llm.model import LanguageModel, ModelSettings
from engram.llm.spend import SpendBook

Answer = tuple[int, bytes, dict[str, str]]
LONGEST_SILENCE = 20.0


@dataclass
class Server:
    """Each request takes the next answer of the script; the last one is repeated."""

    url: str = ""
    script: list[Answer | None] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)
    waits: list[float] = field(default_factory=list)

    def model(self, book: SpendBook | None = None, provider: str = "openai", **settings: Any) -> LanguageModel:
        """A model at this server; the pauses between attempts are noted, not waited for."""
        address = self.url if provider == "anthropic" else f"{self.url}/v1"
        wanted = ModelSettings(f"{provider}:small@{address}", **{"timeout_s": 10.0, **settings})
        return LanguageModel(wanted, book, wait=self.waits.append)

    def answer(self) -> Answer | None:
        return self.script.pop(0) if len(self.script) > 1 else self.script[0]


def said(
    content: object, *, finish: str = "stop", refusal: str | None = None, tokens: tuple[int, int] = (70, 30)
) -> Answer:
    """A chat completion; anything but text is sent as JSON."""
    text = content if isinstance(content, str) else json.dumps(content)
    message = {"role": "assistant", "content": None if refusal else text, "refusal": refusal}
    body = {
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1772600000, "model": "small",
        "choices": [{"index": 0, "finish_reason": finish, "message": message}],
        "usage": {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_tokens": sum(tokens)},
    }  # fmt: skip
    return raw(body)


def claude_said(answer: object, *, stop: str = "end_turn") -> Answer:
    """A message as Anthropic's API answers it."""
    body = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "small", "stop_reason": stop, "stop_sequence": None,
        "content": [{"type": "tool_use", "id": "toolu_1", "name": "answer", "input": answer}]
        if stop == "tool_use" else [{"type": "text", "text": json.dumps(answer)}],
        "usage": {"input_tokens": 70, "output_tokens": 30},
    }  # fmt: skip
    return raw(body)


def raw(body: object, status: int = 200, **headers: str) -> Answer:
    """Any answer at all."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return status, content, {name.replace("_", "-"): value for name, value in headers.items()}


SILENCE = None
"""An answer that does not come."""


@contextmanager
def serving() -> Iterator[Server]:
    """A server for the length of a test."""
    state = Server()
    http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(state))
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    state.url = f"http://127.0.0.1:{http.server_port}"
    try:
        yield state
    finally:
        state.released.set()
        http.shutdown()
        thread.join()
        http.server_close()


def _handler(state: Server) -> Callable[..., BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            state.requests.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            state.headers.append({name.lower(): value for name, value in self.headers.items()})
            answer = state.answer()
            if answer is None:
                state.released.wait(LONGEST_SILENCE)
                self.close_connection = True
                return
            status, content, headers = answer
            self.send_response(status)
            for name, value in {
                "Content-Type": "application/json",
                "Content-Length": str(len(content)),
                **headers,
            }.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Keep the tests' output clean."""

    return Handler
