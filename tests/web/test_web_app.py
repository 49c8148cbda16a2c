"""Who is let in, and what is answered, without a socket or a campaign."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzer.exits import UserError
from fuzzer.web.app import Answer, App, Document, Refused, Request, Wish, new_token, read_wish

TOKEN = "s3cret-token"
HOST = {"host": "127.0.0.1:8123"}
OWN = {**HOST, "origin": "http://127.0.0.1:8123", "content-type": "application/json"}


class FakeSite:
    """Remembers what it was asked for."""

    def __init__(self) -> None:
        self.wishes: list[Wish] = []
        self.asked = 0
        self.broken = ""

    def page(self) -> Document:
        self.asked += 1
        if self.broken:
            raise UserError(self.broken)
        return Document("<p>\ud800page", "default-src 'none'", "tag1")

    def stats(self) -> dict[str, Any]:
        self.asked += 1
        return {"execs_done": 7}

    def label(self, wish: Wish) -> dict[str, Any]:
        if self.broken:
            raise UserError(self.broken)
        if wish.id == "unknown":
            raise Refused("no finding 'unknown'")
        self.wishes.append(wish)
        return {"label": wish.label}

    def file(self, parts: Sequence[str]) -> bytes | None:
        self.asked += 1
        return b"<script>alert(1)</script>" if list(parts) == ["findings", "a b", "report.md"] else None

    def names(self, parts: Sequence[str]) -> list[str] | None:
        self.asked += 1
        return ["<b>.txt", "also/"] if list(parts) == ["findings", "a b"] else None


@pytest.fixture
def site() -> FakeSite:
    return FakeSite()


@pytest.fixture
def app(site: FakeSite) -> App:
    return App(site, TOKEN, 8123)


def get(app: App, path: str, method: str = "GET", **headers: str) -> Answer:
    return app.answer(
        Request(method, f"/{TOKEN}/{path}", {**HOST, **{k.replace("_", "-"): v for k, v in headers.items()}})
    )


def post(app: App, body: object = None, **headers: str) -> Answer:
    wish = {"id": "f1", "label": "real", "why": "seen"} if body is None else body
    told = {**OWN, **{name.replace("_", "-"): value for name, value in headers.items()}}
    data = wish if isinstance(wish, bytes) else json.dumps(wish).encode()
    return app.answer(Request("POST", f"/{TOKEN}/label", {k: v for k, v in told.items() if v}, data))


@pytest.mark.parametrize("target", [
    "/", "", "/s3cret-toke/", "/s3cret-token2/", "/label", "/stats", "//s3cret-token/", f"http://127.0.0.1:8123/{TOKEN}/",
    f"/x/../{TOKEN}/", f"/?{TOKEN}", "/\u00e9\ud800/", "/%ff/", "*", f"/{TOKEN.upper()}/", "//[",
])  # fmt: skip
def test_without_the_token_nobody_gets_in(app: App, site: FakeSite, target: str) -> None:
    for method in ("GET", "HEAD", "POST"):
        assert app.answer(Request(method, target, OWN, b"{}")).status == 403
    assert site.asked == 0 and site.wishes == []


@given(st.text())
def test_any_other_token_is_refused(guess: str) -> None:
    site = FakeSite()
    answer = App(site, TOKEN, 8123).answer(Request("GET", f"/{guess}/", HOST))
    assert answer.status == 403 or guess.split("/")[0].split("?")[0].split("#")[0] == TOKEN
    assert site.asked == 0 or answer.status != 403


@pytest.mark.parametrize(
    "host", ["evil.example:8123", "evil.example", "127.0.0.1", "127.0.0.1:8124", "localhost.evil:8123", ""]
)
def test_a_name_that_was_rebound_to_this_machine_is_refused(app: App, site: FakeSite, host: str) -> None:
    assert app.answer(Request("GET", f"/{TOKEN}/", {"host": host} if host else {})).status == 403
    assert post(app, host=host).status == 403
    assert site.asked == 0 and site.wishes == []


def test_the_page_comes_with_its_policy_and_only_once(app: App) -> None:
    answer = get(app, "")
    assert (answer.status, answer.body) == (200, b"<p>?page")
    assert answer.headers["Content-Security-Policy"] == "default-src 'none'"
    assert answer.headers["X-Content-Type-Options"] == "nosniff" and answer.headers["X-Frame-Options"] == "DENY"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    again = get(app, "", if_none_match=f'"other", W/{answer.headers["ETag"]}')
    assert (again.status, again.body) == (304, b"")
    assert get(app, "", if_none_match='"other"').status == 200
    assert app.answer(Request("GET", f"/{TOKEN}", HOST)).headers["Location"] == f"/{TOKEN}/"
    assert get(app, "", "HEAD").status == 200 and app.url == f"http://127.0.0.1:8123/{TOKEN}/"


def test_statistics_are_cheap_to_ask_again(app: App) -> None:
    answer = get(app, "stats")
    assert json.loads(answer.body) == {"execs_done": 7} and answer.headers["Content-Type"] == "application/json"
    assert get(app, "stats", if_none_match=answer.headers["ETag"]).status == 304


def test_files_of_findings_are_text_whatever_they_say(app: App) -> None:
    answer = get(app, "findings/a%20b/report.md")
    assert answer.body == b"<script>alert(1)</script>"
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'")
    listing = get(app, "findings/a%20b/")
    assert b'<a href="%3Cb%3E.txt">&lt;b&gt;.txt</a>' in listing.body and b"<h1>a b</h1>" in listing.body
    assert listing.headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert get(app, "findings/none").status == get(app, "nothing/").status == get(app, "report.html").status == 404


@pytest.mark.parametrize("change", [
    {"origin": "http://evil.example"}, {"origin": "null"}, {"origin": ""}, {"origin": "https://127.0.0.1:8123"},
    {"origin": "http://localhost:8123"}, {"sec_fetch_site": "cross-site"}, {"sec_fetch_site": "same-site"},
])  # fmt: skip
def test_labels_are_taken_from_the_own_page_only(app: App, site: FakeSite, change: dict[str, str]) -> None:
    assert post(app, **change).status == 403
    assert site.wishes == []


def test_a_label_is_handed_on(app: App, site: FakeSite) -> None:
    answer = post(app, sec_fetch_site="same-origin", content_type="application/json; charset=utf-8")
    assert (answer.status, json.loads(answer.body)) == (200, {"label": "real"})
    assert site.wishes == [Wish("f1", "real", "", "seen")]
    assert get(app, "label").status == get(app, "", "POST").status == get(app, "stats", "DELETE").status == 405
    assert post(app, content_type="text/plain").status == 415


@pytest.mark.parametrize(
    "body", [b"", b"\xff", b"[]", b"3", b'{"id": 3, "label": "real"}', b"[" * 9000, {"id": "unknown"}]
)
def test_what_is_no_label_is_refused_with_a_line(app: App, site: FakeSite, body: object) -> None:
    answer = post(app, body)
    assert answer.status == 400 and json.loads(answer.body)["error"]
    assert site.wishes == []


def test_a_campaign_that_is_damaged_is_told(app: App, site: FakeSite) -> None:
    site.broken = "labels.json: cannot be read; mend it"
    answer = post(app)
    assert (answer.status, json.loads(answer.body)) == (409, {"error": site.broken})
    assert (get(app, "").status, get(app, "").body.decode().strip()) == (503, site.broken)


@given(st.fixed_dictionaries({"id": st.text(), "label": st.text()}, optional={"of": st.text(), "why": st.text()}))
def test_wishes_survive_json(plain: dict[str, str]) -> None:
    assert read_wish(json.dumps(plain).encode()) == Wish(**plain)


def test_tokens_are_long_and_never_the_same() -> None:
    tokens = {new_token() for _ in range(50)}
    assert len(tokens) == 50 and min(map(len, tokens)) >= 32
