"""The page in a real browser. Skipped where none is installed."""

from dataclasses import replace

import pytest
import webdriver
from page_base import HOSTILE, PROGRAM, campaign
from webdriver import Browser

from fuzzer.page.campaign import read_campaign
from fuzzer.page.render import page
from fuzzer.store.findings import FindingStore

pytestmark = pytest.mark.skipif(bool(webdriver.MISSING), reason=webdriver.MISSING or "there is a browser")

COUNT = "return document.querySelectorAll('.finding:not([hidden])').length"


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    directory = campaign(tmp_path_factory.mktemp("page") / "camp")
    directory.report_page.write_text(page(read_campaign(directory.path), directory.path), encoding="utf-8")
    return directory.report_page.as_uri()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("browser")) as made:
        yield made


@pytest.fixture
def opened(browser, address):
    browser.open("about:blank")
    browser.log("browser")
    browser.requests()
    browser.open(address)
    return browser


def test_no_error_and_nothing_is_asked_for(opened, address):
    assert opened.log("browser") == []
    assert [url for url in opened.requests() if not url.startswith("data:")] == [address]


def test_hostile_text_is_text(opened):
    assert opened.run("return document.title") == "camp – Eddy"
    assert opened.run("return document.querySelectorAll('img, script').length") == 1
    assert opened.run("return document.querySelector('.finding pre').textContent") == PROGRAM.strip("\n")
    assert HOSTILE in opened.run("return document.querySelector('.reason').textContent")


def test_a_script_that_got_in_would_not_run(opened):
    opened.run("document.body.insertAdjacentHTML('beforeend', arguments[0])", HOSTILE)
    opened.run("const s = document.createElement('script'); s.textContent = 'window.ran = 1'; document.body.append(s)")
    assert opened.run("return [window.ran || 0, document.title]") == [0, "camp – Eddy"]
    assert any("Content Security Policy" in entry["message"] for entry in opened.log("browser"))


def test_the_filter_shows_what_fits(opened):
    assert opened.run(COUNT) == 5
    opened.type("#q", "SIGSEGV dies")
    assert opened.run(COUNT) == 1
    assert opened.run("return document.querySelector('#shown').textContent") == "1 of 5"
    opened.run("document.querySelector('#q').value = ''")
    choose = (
        "const box = document.getElementById(arguments[0]); box.value = arguments[1];"
        "box.dispatchEvent(new Event('input', {bubbles: true}));"
    )
    for box, value, left in (("kind", "wrong_value", 3), ("state", "flaky", 1), ("word", "critical", 0)):
        opened.run(choose, box, value)
        assert opened.run(COUNT) == left


def test_other_findings_of_one_bug_are_shown_on_request(browser, tmp_path):
    directory = campaign(tmp_path / "grouped")
    store = FindingStore(directory)
    crash = store.get("run|crash|mm")
    first = store.folder(store.get("run|wrong_value|amin")).name
    store.save(replace(crash, triage={"group": [first]}))
    directory.report_page.write_text(page(read_campaign(directory.path), directory.path), encoding="utf-8")
    browser.open(directory.report_page.as_uri())
    assert browser.run(COUNT) == 4
    browser.run(
        "const box = document.getElementById('copies'); box.value = 'all';"
        "box.dispatchEvent(new Event('input', {bubbles: true}))"
    )
    assert browser.run(COUNT) == 5
    browser.run("location.reload()")
    assert browser.run(COUNT) == 4
    browser.run("location.hash = document.querySelector('[data-copy]').id")
    assert browser.run("return document.querySelector('[data-copy]').open")
    assert browser.run(COUNT) == 5


def test_findings_open_from_the_keyboard(opened):
    opened.run("document.querySelectorAll('.finding > summary')[1].focus()")
    assert opened.run("return document.querySelectorAll('.finding')[1].open") is False
    opened.type(".finding:nth-of-type(2) > summary", " ")
    assert opened.run("return document.querySelectorAll('.finding')[1].open") is True


def test_copy_gives_the_whole_script(opened):
    opened.run(
        "window.copied = []; Object.defineProperty(navigator, 'clipboard',"
        "{value: {writeText: async (text) => { window.copied.push(text); }}});"
        "document.querySelector('.copy').click()"
    )
    (text,) = opened.run("return window.copied")
    assert text.startswith("import torch") and PROGRAM.strip() in text and "__main__" in text


def test_the_theme_can_be_switched(opened):
    colour = "return getComputedStyle(document.body).backgroundColor"
    before = opened.run(colour)
    opened.run("document.getElementById('theme').click()")
    after = opened.run(colour)
    opened.run("document.getElementById('theme').click()")
    assert before != after and opened.run(colour) == before


def test_everything_is_printed_open_and_closed_again(opened):
    opened.run("dispatchEvent(new Event('beforeprint'))")
    assert opened.run("return document.querySelectorAll('.finding:not([open])').length") == 0
    opened.run("dispatchEvent(new Event('afterprint'))")
    assert opened.run("return document.querySelectorAll('.finding[open]').length") == 1


def test_a_phone_scrolls_down_only(address, tmp_path):
    with Browser(tmp_path, 390, 844, phone=True) as phone:
        phone.open(address)
        phone.run("document.querySelectorAll('details').forEach((item) => { item.open = true; })")
        assert phone.run("return [innerWidth, document.documentElement.scrollWidth]") == [390, 390]
