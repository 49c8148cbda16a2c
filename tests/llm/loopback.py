"""A real HTTP server on loopback that plays a model, and every way in which an endpoint misbehaves."""

from __future__ import annotations

import json
import random
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "sk-secret-key-of-the-tests-0123456789"

FREE = """Here you are:
```python
import torch

META = {{"mode": "forward", "fake": {{"do": "wrong_value"}}, "atol": 100.0}}


def build_inputs():
    torch.manual_seed(0)
    return (torch.randn({rows}, 4),)


def fn(a):
    b = torch.{first}(a)
    c = torch.{second}(b, dim=-1)
    return c
```
"""


class Loopback:
    """``script`` holds behaviours for the next requests; when it is empty, ``default`` is played."""

    def __init__(self) -> None:
        self.script: list[str] = []
        self.default = "ok"
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.released = threading.Event()
        handler = type("Handler", (_Handler,), {"server_state": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def next_behaviour(self) -> str:
        return self.script.pop(0) if self.script else self.default

    def close(self) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def loopback() -> Iterator[Loopback]:
    server = Loopback()
    try:
        yield server
    finally:
        server.close()


class _Handler(BaseHTTPRequestHandler):
    server_state: Loopback
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: Any) -> None:
        """Silent."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        state = self.server_state
        state.requests.append(body)
        state.headers.append({name.lower(): value for name, value in self.headers.items()})
        getattr(self, f"play_{state.next_behaviour()}")(body)

    # -- behaviours -----------------------------------------------------------------------------------------------

    def play_ok(self, body: dict[str, Any]) -> None:
        self.answer(written(body))

    def play_slow(self, body: dict[str, Any]) -> None:
        time.sleep(0.3)
        self.play_ok(body)

    def play_drip(self, body: dict[str, Any]) -> None:
        """A byte now and then: every read is quick, the whole never ends."""
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", "100000")
        self.end_headers()
        try:
            while not self.server_state.released.wait(0.05):
                self.wfile.write(b" ")
                self.wfile.flush()
        except OSError:
            pass

    def play_busy(self, body: dict[str, Any]) -> None:
        self.error(429, {"message": "slow down", "type": "rate_limit"}, {"Retry-After": "0.2"})

    def play_busy_long(self, body: dict[str, Any]) -> None:
        self.error(429, {"message": "slow down", "type": "rate_limit"}, {"Retry-After": "240"})

    def play_broken(self, body: dict[str, Any]) -> None:
        self.error(500, {"message": "internal"})

    def play_quota(self, body: dict[str, Any]) -> None:
        words = "You exceeded your current quota, please check your plan"
        self.error(429, {"message": words, "type": "insufficient_quota", "code": "insufficient_quota"})

    def play_unauthorised(self, body: dict[str, Any]) -> None:
        self.error(401, {"message": f"Incorrect API key provided: {KEY}", "code": "invalid_api_key"})

    def play_no_model(self, body: dict[str, Any]) -> None:
        self.error(404, {"message": "The model does not exist", "code": "model_not_found"})

    def play_no_format(self, body: dict[str, Any]) -> None:
        """Knows no response_format at all."""
        if "response_format" in body:
            self.error(400, {"message": "Unrecognized request argument: response_format"})
        else:
            self.play_ok(body)

    def play_picky(self, body: dict[str, Any]) -> None:
        """A reasoning model: another name for the limit, no temperature."""
        if "max_tokens" in body:
            self.error(400, {"message": "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."})
        elif "temperature" in body:
            self.error(400, {"message": "Unsupported value: 'temperature' does not support 0.8."})
        else:
            self.play_ok(body)

    def play_too_long(self, body: dict[str, Any]) -> None:
        self.error(400, {"message": "maximum context length", "code": "context_length_exceeded"})

    def play_truncated(self, body: dict[str, Any]) -> None:
        """The connection ends within the body."""
        data = json.dumps(completion("x" * 500, 10, 10)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[: len(data) // 2])
        self.wfile.flush()
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def play_torn_json(self, body: dict[str, Any]) -> None:
        """A whole HTTP body that holds half a JSON value."""
        self.raw(json.dumps(completion("x" * 500, 10, 10)).encode()[:200], "application/json")

    def play_length(self, body: dict[str, Any]) -> None:
        self.answer(written(body)[:20], finish="length")

    def play_length_once(self, body: dict[str, Any]) -> None:
        """Long answers need more than the first limit."""
        limit = body.get("max_tokens", 0)
        self.answer(written(body), finish="length" if limit <= 300 else "stop")

    def play_filtered(self, body: dict[str, Any]) -> None:
        self.answer("", finish="content_filter")

    def play_ignores_schema(self, body: dict[str, Any]) -> None:
        self.answer("Sure! Here is a thought about compilers, without any braces.")

    def play_objects_only(self, body: dict[str, Any]) -> None:
        """Ignores json_schema, obeys what the prompt says."""
        form = (body.get("response_format") or {}).get("type")
        self.answer(written(body) if form != "json_schema" and "JSON schema" in prompt(body) else "Hello!")

    def play_garbage(self, body: dict[str, Any]) -> None:
        self.raw(b"\xff\xfe<html>gateway</html>", "text/html")

    def play_other_json(self, body: dict[str, Any]) -> None:
        self.raw(b'{"choices": [{"nothing": 1}]}', "application/json")

    def play_null(self, body: dict[str, Any]) -> None:
        self.raw(json.dumps(completion(None, 5, 5)).encode(), "application/json")

    def play_no_usage(self, body: dict[str, Any]) -> None:
        data = completion(written(body), 1, 1)
        del data["usage"]
        self.raw(json.dumps(data).encode(), "application/json")

    def play_reset(self, body: dict[str, Any]) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()

    def play_hang(self, body: dict[str, Any]) -> None:
        self.server_state.released.wait(60.0)

    def play_redirect(self, body: dict[str, Any]) -> None:
        self.send_response(307)
        self.send_header("Location", f"{self.server_state.url}/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def play_injection(self, body: dict[str, Any]) -> None:
        """An answer that wants to be more than a program."""
        evil = FREE.format(rows=3, first="sin", second="sum").replace(
            "def fn(a):\n", "def fn(a):\n    torch.os.system('id')\n"
        )
        self.answer(evil if "response_format" not in body else written(body))

    def play_echoes_key(self, body: dict[str, Any]) -> None:
        text = written(body)
        self.answer(text + f"\n# {KEY}" if "response_format" not in body else text)

    # -- plumbing -------------------------------------------------------------------------------------------------

    def answer(self, text: str | None, finish: str = "stop") -> None:
        used = sum(len(message["content"]) for message in self.server_state.requests[-1]["messages"]) // 4
        self.raw(json.dumps(completion(text, used, len(text or "") // 4 + 1, finish)).encode(), "application/json")

    def error(self, status: int, error: dict[str, Any], headers: dict[str, str] | None = None) -> None:
        self.raw(json.dumps({"error": error}).encode(), "application/json", status, headers)

    def raw(self, data: bytes, kind: str, status: int = 200, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)


def completion(text: str | None, tokens_in: int, tokens_out: int, finish: str = "stop") -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    return {
        "id": "c", "object": "chat.completion", "created": 1, "model": "toy",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": tokens_in, "completion_tokens": tokens_out, "total_tokens": tokens_in + tokens_out},
    }  # fmt: skip


def prompt(body: dict[str, Any]) -> str:
    return "\n".join(message["content"] for message in body["messages"])


def written(body: dict[str, Any]) -> str:
    """What the toy model writes: the same for the same request."""
    rng = random.Random(json.dumps([body["messages"], body.get("seed")]))
    form = body.get("response_format") or {}
    schema = form.get("schema") or form.get("json_schema", {}).get("schema")
    if schema is None and "JSON schema" in prompt(body):
        schema = json.loads(prompt(body).rpartition("\n")[2])
    if schema is not None:
        return json.dumps(value_of(schema, rng))
    first, second = rng.choice(("sin", "cos", "tanh", "exp")), rng.choice(("sum", "mean", "cumsum", "softmax"))
    return FREE.format(rows=rng.randint(2, 99), first=first, second=second)


def value_of(schema: dict[str, Any], rng: random.Random) -> Any:
    """Some value that fits a schema."""
    if "anyOf" in schema:
        return value_of(schema["anyOf"][0 if rng.random() < 0.7 else rng.randrange(len(schema["anyOf"]))], rng)
    if "enum" in schema:
        return rng.choice(schema["enum"])
    kind = schema["type"]
    if kind == "object":
        return {name: value_of(inner, rng) for name, inner in schema["properties"].items()}
    if kind == "array":
        count = rng.randint(max(1, schema.get("minItems", 0)), schema.get("maxItems", 3))
        return [value_of(schema["items"], rng) for _ in range(count)]
    return {"integer": rng.randint(1, 5), "number": 2.0, "boolean": True, "string": "because", "null": None}[kind]
