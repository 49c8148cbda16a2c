"""The socket, without a campaign: loopback only, sound answers to unsound requests."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Iterator

import pytest
from test_web_app import FakeSite

from fuzzer.exits import UserError
from fuzzer.web.app import MAX_BODY
from fuzzer.web.server import Server


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(FakeSite(), token="token") as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def ask(server: Server, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, bytes, str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.app.port, timeout=10)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read(), str(answer.headers)
    finally:
        connection.close()


def raw(server: Server, text: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", server.app.port), timeout=10) as sock:
        sock.sendall(text)
        return b"".join(iter(lambda: sock.recv(4096), b""))


def test_it_listens_on_loopback_only(server: Server) -> None:
    assert server.server_address[0] == "127.0.0.1" and server.app.url.startswith("http://127.0.0.1:")
    with pytest.raises(UserError, match=f"port {server.app.port} cannot be used .*; choose another --port"):
        Server(FakeSite(), server.app.port)


def test_requests_are_answered(server: Server) -> None:
    assert ask(server, "GET", "/token/")[:2] == (200, b"<p>?page")
    status, body, headers = ask(server, "HEAD", "/token/")
    assert (status, body) == (200, b"") and "Content-Length: 8" in headers and "Server: eddy" in headers
    assert ask(server, "GET", "/token/", **{"If-None-Match": '"tag1"'})[:2] == (304, b"")
    assert ask(server, "GET", "/")[0] == 403
    assert ask(server, "GET", "/token/", Host="evil.example")[0] == 403
    wish = b'{"id": "f", "label": "real"}'
    own = {"Origin": f"http://127.0.0.1:{server.app.port}", "Content-Type": "application/json"}
    assert ask(server, "POST", "/token/label", wish, **own)[0] == 200
    assert ask(server, "POST", "/token/label", wish, **{**own, "Origin": "http://evil.example"})[0] == 403


def test_a_connection_is_kept(server: Server) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.app.port, timeout=10)
    for _ in range(3):
        connection.request("GET", "/token/stats")
        assert connection.getresponse().read() == b'{"execs_done": 7}'
    connection.close()


@pytest.mark.parametrize("request_line, status", [
    (b"PUT /token/<script> HTTP/1.1", b"501"),
    (b"GET /token/<script> HTTP/9.9", b"505"),
    (b"<script> <script> <script>", b"400"),
    (b"POST /token/label HTTP/1.1", b"413"),
    (b"POST /token/label HTTP/1.1\r\nContent-Length: %d" % (MAX_BODY + 1), b"413"),
    (b"POST /token/label HTTP/1.1\r\nContent-Length: -1", b"413"),
    (b"GET /token/ HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nHost: 127.0.0.1:PORT\r\nConnection: close", b"403"),
])  # fmt: skip
def test_unsound_requests_are_refused_without_an_echo(server: Server, request_line: bytes, status: bytes) -> None:
    answer = raw(server, request_line.replace(b"PORT", b"%d" % server.app.port) + b"\r\n\r\n")
    assert answer.split(b" ")[1] == status and b"<script>" not in answer and b"text/plain" in answer


def test_an_internal_error_ends_one_request_only(server: Server, capfd: pytest.CaptureFixture[str]) -> None:
    server.app.site.page = lambda: 1 / 0  # type: ignore[assignment, return-value, method-assign]
    status, body, _headers = ask(server, "GET", "/token/")
    assert status == 500 and body == b"internal error; see where `eddy web` runs\n"
    told = capfd.readouterr().err  # printed before the answer
    assert ask(server, "GET", "/token/stats")[0] == 200
    assert "ZeroDivisionError" in told
