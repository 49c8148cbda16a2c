"""The socket: one thread a request, on loopback only. What is answered is up to ``app``."""

from __future__ import annotations

import sys
import traceback
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any

from fuzzer.exits import UserError
from fuzzer.web.app import MAX_BODY, Answer, App, Request, Site, new_token

ADDRESS = "127.0.0.1"


class Server(ThreadingHTTPServer):
    """Serves one campaign to who knows the token; ``app.url`` is what to open.

    Raises ``UserError`` when the port cannot be had. Port 0 is any free one.
    """

    daemon_threads = True  # a browser that keeps its connection does not keep us from ending
    allow_reuse_port = False  # nobody else listens on our port

    def __init__(self, site: Site, port: int = 0, token: str | None = None) -> None:
        try:
            super().__init__((ADDRESS, port), Handler)
        except OSError as error:
            raise UserError(f"port {port} cannot be used ({error.strerror}); choose another --port") from None
        self.app = App(site, token or new_token(), int(self.server_address[1]))

    def server_bind(self) -> None:
        TCPServer.server_bind(self)  # HTTPServer's own asks the name service who 127.0.0.1 is
        self.server_name, self.server_port = ADDRESS, int(self.server_address[1])

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A reader that went away is no error; anything else is printed with its trace, and serving goes on."""
        if not isinstance(sys.exc_info()[1], (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    """Reads a request, has it answered, writes the answer."""

    server: Server
    protocol_version = "HTTP/1.1"
    timeout = 30.0  # of a connection on which nothing comes
    server_version, sys_version = "eddy", ""

    def do_GET(self) -> None:
        self._respond(Request(self.command, self.path, self._headers()))

    do_HEAD = do_GET

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not length.isascii() or not length.isdecimal() or int(length) > MAX_BODY:
            self.send_error(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body has at most {MAX_BODY} bytes, and a length")
            return
        self._respond(Request(self.command, self.path, self._headers(), self.rfile.read(int(length))))

    def _headers(self) -> dict[str, str]:
        names = {name.lower() for name in self.headers}
        values = {name: self.headers.get_all(name, []) for name in names}
        return {name: found[0] for name, found in values.items() if len(found) == 1}

    def _respond(self, request: Request) -> None:
        try:
            answer = self.server.app.answer(request)
        except Exception:
            traceback.print_exc()  # before the answer: whoever reads "see where it runs" finds it there
            self.send_error(HTTPStatus.INTERNAL_SERVER_ERROR, "internal error; see where `eddy web` runs")
            return
        self._write(answer)

    def _write(self, answer: Answer) -> None:
        self.request_version = self.protocol_version  # of a line that was not understood it is 0.9, without headers
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if answer.status != HTTPStatus.NOT_MODIFIED:
            self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD" and answer.body:
            self.wfile.write(answer.body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """As text, without a word of the request in it; ends the connection."""
        ours = code in (HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.INTERNAL_SERVER_ERROR) and message
        body = f"{ours or HTTPStatus(code).phrase}\n".encode()
        self.close_connection = True
        headers = {"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff"}
        self._write(Answer(code, {**headers, "Connection": "close"}, body))

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: addresses hold the token."""
