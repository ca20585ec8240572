"""A scripted Messages endpoint on loopback: what the model "says" is given by the test, and every request is kept."""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def text(words: str) -> dict[str, Any]:
    """A turn of the model that only says something."""
    return {"type": "text", "text": words}


def tool(name: str, **arguments: Any) -> dict[str, Any]:
    """A turn of the model that calls a tool."""
    return {"type": "tool_use", "id": f"toolu_{name}", "name": name, "input": arguments}


@dataclass
class Endpoint:
    """The running endpoint."""

    script: list[dict[str, Any]]
    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def said(self, body: dict[str, Any]) -> dict[str, Any]:
        """What the model answers: the next turn of the script to a request with tools, a word to everything else."""
        with self.lock:
            self.requests.append(body)
            is_main = bool(body.get("tools"))
            return self.script.pop(0) if is_main and self.script else text("done")

    @property
    def prompts(self) -> str:
        """Everything that was sent to the model, as one text."""
        return json.dumps(self.requests, ensure_ascii=False)


def _events(block: dict[str, Any], model: str) -> Iterator[tuple[str, dict[str, Any]]]:
    usage = {"input_tokens": 1, "output_tokens": 1}
    message: dict[str, Any] = {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": [], "stop_reason": None,
               "stop_sequence": None, "usage": usage}  # fmt: skip
    yield "message_start", {"message": message}
    if block["type"] == "text":
        yield "content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}}
        yield "content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": block["text"]}}
    else:
        yield "content_block_start", {"index": 0, "content_block": {**block, "input": {}}}
        partial = json.dumps(block["input"])
        yield "content_block_delta", {"index": 0, "delta": {"type": "input_json_delta", "partial_json": partial}}
    yield "content_block_stop", {"index": 0}
    reason = "end_turn" if block["type"] == "text" else "tool_use"
    yield "message_delta", {"delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage}
    yield "message_stop", {}


def _handler(endpoint: Endpoint) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
            if "count_tokens" in self.path:
                self._json({"input_tokens": 1})
                return
            if not self.path.startswith("/v1/messages"):
                self._json({})
                return
            block = endpoint.said(body)
            if not body.get("stream"):
                reason = "end_turn" if block["type"] == "text" else "tool_use"
                self._json({"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "content": [block],
                            "stop_reason": reason, "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}})  # fmt: skip
                return
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            for name, fields in _events(block, body["model"]):
                self.wfile.write(f"event: {name}\ndata: {json.dumps({'type': name, **fields})}\n\n".encode())

        def do_GET(self) -> None:
            self._json({})

        def do_HEAD(self) -> None:
            self.do_GET()

        def _json(self, data: Any) -> None:
            content = json.dumps(data).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    return Handler


@contextmanager
def endpoint(script: Sequence[dict[str, Any]]) -> Iterator[Endpoint]:
    """A running endpoint with these turns of the model."""
    made = Endpoint(list(script))
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(made))
    made.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
