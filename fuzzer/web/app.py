"""What is answered to which request. Pure: the campaign is behind ``Site``, the socket in ``server``.

Whoever may see the page may read what programs and compilers printed, and label findings; so every request is let in
by three things: the host that it names (a page of another site whose name was rebound to this machine names its own),
a secret in its path, and, where it changes anything, an origin that is this very server.
"""

from __future__ import annotations

import hashlib
import hmac
import html
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Protocol
from urllib.parse import quote, unquote, urlsplit

from fuzzer.exits import UserError

#: Bytes of a request's body. A label with a long explanation takes a few hundred.
MAX_BODY = 16 << 10

#: For everything. Nothing is shown inside another site's page, and no other site may load anything of this one.
_SAFE = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "private, no-cache",
}
#: For what is no page of ours: nothing in it runs, loads or styles, whatever it says.
_INERT = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


class Refused(Exception):
    """A request that is understood and not done; ``str(error)`` is one line for the person."""


@dataclass(frozen=True)
class Request:
    """One request. Names of ``headers`` are in lower case; one that came twice is left out."""

    method: str
    target: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True)
class Answer:
    """One answer; ``headers`` has everything but the length of ``body``."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""


@dataclass(frozen=True)
class Document:
    """A page of Eddy's own, with the content security policy that fits its style and script. ``tag`` names its state:
    equal tags, equal pages."""

    text: str
    policy: str
    tag: str


@dataclass(frozen=True)
class Wish:
    """What a person says of a finding. ``id`` and ``of`` are names of findings' folders; ``label`` may be ``none``."""

    id: str
    label: str
    of: str = ""
    why: str = ""


class Site(Protocol):
    """The campaign, as it is needed here. All but ``stats`` may raise ``UserError``."""

    def page(self) -> Document: ...

    def stats(self) -> dict[str, Any]: ...

    def label(self, wish: Wish) -> dict[str, Any]:
        """Store a label. Raises ``Refused`` where it is none."""

    def file(self, parts: Sequence[str]) -> bytes | None:
        """The content of a finding's file, or None."""

    def names(self, parts: Sequence[str]) -> list[str] | None:
        """What a finding's folder holds, folders with a slash at the end; None for what is no such folder."""


@dataclass(frozen=True)
class App:
    """Answers requests to ``port`` whose path begins with ``token``."""

    site: Site
    token: str
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/{self.token}/"

    def answer(self, request: Request) -> Answer:
        """Never raises for anything that a request may say."""
        if not self._host_is_ours(request):
            return _plain(HTTPStatus.FORBIDDEN, "this server is reached as 127.0.0.1 only")
        parts = [unquote(part, errors="replace") for part in urlsplit_path(request.target)]
        # In constant time: how long the comparison takes tells nothing about where it failed.
        if not hmac.compare_digest(parts[0].encode("utf-8", "replace"), self.token.encode()):
            return _plain(HTTPStatus.FORBIDDEN, "the address lacks the token; use the whole address that was printed")
        if len(parts) == 1:
            return Answer(HTTPStatus.MOVED_PERMANENTLY, _SAFE | {"Location": f"/{self.token}/"})
        try:
            return self._route(request, parts[1:])
        except Refused as error:
            return _data({"error": str(error)}, HTTPStatus.BAD_REQUEST)
        except UserError as error:
            return _plain(HTTPStatus.SERVICE_UNAVAILABLE, str(error))

    def _host_is_ours(self, request: Request) -> bool:
        names = [f"{name}:{self.port}" for name in ("127.0.0.1", "localhost")]
        names += ["127.0.0.1", "localhost"] if self.port == 80 else []
        return request.headers.get("host", "").lower() in names

    def _route(self, request: Request, parts: Sequence[str]) -> Answer:
        if list(parts) == ["label"]:
            return self._label(request) if request.method == "POST" else _not_allowed("POST")
        if request.method not in ("GET", "HEAD"):
            return _not_allowed("GET, HEAD")
        if list(parts) == [""]:
            document = self.site.page()
            tag = _tag(document.tag)
            headers = _SAFE | {"Content-Security-Policy": document.policy, "Content-Type": "text/html; charset=utf-8"}
            return _cached(request, tag, Answer(200, headers, document.text.encode("utf-8", "replace")))
        if list(parts) == ["stats"]:
            answer = _data(self.site.stats())
            return _cached(request, _tag(hashlib.sha256(answer.body).hexdigest()), answer)
        return self._file(parts)

    def _file(self, parts: Sequence[str]) -> Answer:
        if parts[-1] == "":
            names = self.site.names(parts[:-1])
            return _listing(parts[-2], names) if names is not None else _missing()
        content = self.site.file(parts)
        return _text(content) if content is not None else _missing()

    def _label(self, request: Request) -> Answer:
        # A browser sends the origin with every POST and lets no page forge it.
        same = request.headers.get("origin") == f"http://{request.headers['host']}"
        if not same or request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
            return _plain(HTTPStatus.FORBIDDEN, "labels are taken from this server's own page only")
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return _plain(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "a label comes as application/json")
        try:
            return _data(self.site.label(read_wish(request.body)))
        except UserError as error:
            return _data({"error": str(error)}, HTTPStatus.CONFLICT)


def new_token() -> str:
    """A secret of 192 random bits that is safe in an address."""
    return secrets.token_urlsafe(24)


def urlsplit_path(target: str) -> list[str]:
    """Parts of a request target's path, still quoted, without the leading slash: at least one, the last is empty
    where the path ends in a slash."""
    try:
        path = urlsplit(target).path if target.startswith("/") and not target.startswith("//") else ""
    except ValueError:
        path = ""
    return path.removeprefix("/").split("/")


def read_wish(body: bytes) -> Wish:
    """A label out of JSON: ``{"id", "label", "of", "why"}``, the last two optional. Raises ``Refused``."""
    try:
        plain = json.loads(body)
    except (ValueError, RecursionError):
        raise Refused("the request is not JSON") from None
    if not isinstance(plain, dict):
        raise Refused("the request is not a map")
    texts = {name: plain.get(name, "") for name in ("id", "label", "of", "why")}
    if not all(isinstance(text, str) for text in texts.values()):
        raise Refused("id, label, of and why are texts")
    return Wish(**texts)


def _tag(text: str) -> str:
    return f'"{text}"'


def _cached(request: Request, tag: str, answer: Answer) -> Answer:
    """The answer, or word that the browser has it already."""
    headers = {**answer.headers, "ETag": tag}
    known = [item.strip().removeprefix("W/") for item in request.headers.get("if-none-match", "").split(",")]
    return Answer(HTTPStatus.NOT_MODIFIED, headers) if tag in known else Answer(answer.status, headers, answer.body)


def _data(plain: Mapping[str, Any], status: int = 200) -> Answer:
    headers = _SAFE | {"Content-Security-Policy": _INERT, "Content-Type": "application/json"}
    return Answer(status, headers, json.dumps(plain).encode())


def _text(content: bytes, status: int = 200) -> Answer:
    headers = _SAFE | {"Content-Security-Policy": _INERT, "Content-Type": "text/plain; charset=utf-8"}
    return Answer(status, headers, content)


def _plain(status: int, line: str) -> Answer:
    return _text(f"{line}\n".encode("utf-8", "replace"), status)


def _missing() -> Answer:
    return _plain(HTTPStatus.NOT_FOUND, "nothing here")


def _not_allowed(allowed: str) -> Answer:
    answer = _plain(HTTPStatus.METHOD_NOT_ALLOWED, f"only {allowed} here")
    return Answer(answer.status, {**answer.headers, "Allow": allowed}, answer.body)


def _listing(title: str, names: Sequence[str]) -> Answer:
    items = "".join(f'<li><a href="{quote(name)}">{html.escape(name)}</a>\n' for name in names)
    text = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="color-scheme" content="light dark">'
        f'<meta name="viewport" content="width=device-width"><title>{html.escape(title)}</title>'
        f"<h1>{html.escape(title)}</h1>\n<ul>\n{items}</ul>\n"
    )
    headers = _SAFE | {"Content-Security-Policy": _INERT, "Content-Type": "text/html; charset=utf-8"}
    return Answer(200, headers, text.encode("utf-8", "replace"))
