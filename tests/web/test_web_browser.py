"""The live page in a real browser. Skipped where none is installed."""

from __future__ import annotations

import threading
import time

import pytest
import webdriver
from page_base import HOSTILE, PROGRAM, campaign, finding
from webdriver import Browser

from fuzzer.labels import Label
from fuzzer.store.findings import FindingStore
from fuzzer.store.labels import LabelStore
from fuzzer.web.server import Server
from fuzzer.web.site import CampaignSite

pytestmark = pytest.mark.skipif(bool(webdriver.MISSING), reason=webdriver.MISSING or "there is a browser")

CARD = "[data-name$='-{}']"
PRESS = "document.querySelector(arguments[0]).click()"
SPACE, ENTER = " ", "\ue007"


@pytest.fixture
def directory(tmp_path):
    return campaign(tmp_path / "camp")


@pytest.fixture
def url(directory):
    with Server(CampaignSite(directory)) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server.app.url
        server.shutdown()
        thread.join()


@pytest.fixture
def browser(tmp_path, url):
    with Browser(tmp_path) as made:
        made.open("about:blank")
        made.log("browser")
        made.requests()
        made.open(url)
        yield made


def wait_for(browser, condition):
    """Waits until a condition of the page holds; it is asked of whatever page is there then."""
    deadline = time.monotonic() + 30.0
    while not browser.run(f"return Boolean({condition})"):
        assert time.monotonic() < deadline, condition
        time.sleep(0.05)


def said(browser, card):
    wait_for(browser, f'document.querySelector("{card} .said")?.textContent')
    return browser.run("return document.querySelector(arguments[0]).textContent", f"{card} .said")


def major_of(directory, browser, card):
    folder = browser.run("return document.querySelector(arguments[0]).dataset.name", card)
    return FindingStore(directory).find(folder).signature.major


def test_labels_are_stored_by_button_and_nothing_is_asked_for_elsewhere(browser, directory, url):
    """One story: looked at, labelled, refused, taken back; hostile text stays text all the while."""
    wait_for(browser, "document.querySelector('#live-text').textContent.startsWith('stopped: max-time')")
    first = ".finding[open]"
    major = major_of(directory, browser, first)
    browser.type(f"{first} input[name=why]", HOSTILE)
    browser.run(PRESS, f"{first} button[value=real]")
    assert said(browser, first) == f"Stored: real; {HOSTILE}."
    stored = LabelStore(directory).read().get(major)
    assert (stored.label, stored.why) == (Label.REAL, HOSTILE)
    assert browser.run("return document.querySelector(arguments[0]).textContent", f"{first} .meta .chip") == "real"
    assert browser.run("return document.querySelector(arguments[0]).ariaPressed", f"{first} [value=real]") == "true"

    crash = CARD.format("crash-mm")
    other = major_of(directory, browser, crash)
    browser.run("document.querySelector(arguments[0]).open = true", crash)
    wait_for(browser, f'document.querySelector("{crash} .labelling")')
    browser.run(PRESS, f"{crash} [value=ignored]")
    assert "Say why" in said(browser, crash) and LabelStore(directory).read().get(other) is None
    browser.run(PRESS, f"{crash} [value=duplicate-of]")
    choose = "const [box, other] = [...arguments].map((a) => document.querySelector(a)); box.value = other.dataset.name"
    browser.run(choose, f"{crash} select[name=of]", first)
    browser.run(PRESS, f"{crash} .save")
    wait_for(browser, f"document.querySelector(\"{crash} .said\").textContent.startsWith('Stored: duplicate of')")
    assert LabelStore(directory).read().get(other).of == major
    browser.run(PRESS, f"{crash} [value=none]")
    wait_for(browser, f"document.querySelector(\"{crash} .said\").textContent === 'Label taken back.'")
    assert LabelStore(directory).read().get(other) is None

    browser.open(url)
    assert HOSTILE in browser.run("return document.querySelector('.finding .why').textContent")
    assert browser.run("return document.querySelector('.finding pre').textContent") == PROGRAM.strip("\n")
    assert browser.run("return [document.title, document.querySelectorAll('img, script').length]") == ["camp – Eddy", 1]
    assert browser.log("browser") == []
    asked = browser.requests()
    assert f"{url}label" in asked and [address for address in asked if not address.startswith((url, "data:,"))] == []


def test_a_new_finding_comes_by_itself_and_what_is_open_stays(browser, directory):
    crash = CARD.format("crash-mm")
    browser.run(
        "document.querySelector(arguments[0]).open = true; document.querySelector('.finding').open = false", crash
    )
    browser.run("document.getElementById('state').value = 'confirmed'; window.before = true")
    FindingStore(directory).save(finding("run|wrong_value|fresh"))
    wait_for(browser, "!window.before && document.readyState === 'complete'")
    assert browser.run("return document.querySelector('.headline').textContent").startswith("3 open findings")
    wait_for(browser, f"document.querySelector(\"{crash}\").open && !document.querySelector('.finding').open")
    assert browser.run("return document.getElementById('state').value") == "confirmed"


def test_a_person_who_is_busy_is_asked_first(browser, directory):
    browser.type(".finding[open] input[name=why]", "half a sen")
    browser.run("window.before = true")
    LabelStore(directory).change(lambda labels: labels.without("x"))
    FindingStore(directory).save(finding("run|wrong_value|fresh"))
    wait_for(browser, "document.querySelector('#live-news').textContent === 'new findings or labels'")
    assert browser.run("return [window.before, document.querySelector('.finding[open] input[name=why]').value]") == [
        True, "half a sen",
    ]  # fmt: skip
    browser.run(PRESS, "#live-refresh")
    wait_for(browser, "!window.before && document.querySelector('.headline').textContent.startsWith('3 open')")


def test_everything_works_by_keyboard(browser, directory):
    first = ".finding[open]"
    browser.run("document.querySelector(arguments[0]).focus()", f"{first} [value='not-a-bug']")
    browser.type(f"{first} [value='not-a-bug']", SPACE)
    assert said(browser, first) == "Stored: not a bug."
    assert browser.run("return document.activeElement.value") == "not-a-bug"
    browser.type(f"{first} [value='duplicate-of']", ENTER)
    assert browser.run("return document.activeElement.name") == "of"
    browser.type(f"{first} input[name=why]", "same frame" + ENTER)
    wait_for(browser, f"document.querySelector(\"{first} .said\").textContent.startsWith('Stored: duplicate of')")
    judgement = LabelStore(directory).read().get(major_of(directory, browser, first))
    assert (judgement.label, judgement.why) == (Label.DUPLICATE_OF, "same frame")
    browser.type("#live-pause", SPACE)
    assert browser.run("return document.getElementById('live-pause').ariaPressed") == "true"


def test_a_server_that_ended_is_told(browser, url):
    browser.run("window.fetch = async () => { throw new TypeError('gone'); }")
    browser.run(PRESS, ".finding[open] [value=real]")
    assert "Is eddy web still running?" in said(browser, ".finding[open]")
    wait_for(browser, "document.getElementById('live').dataset.state === 'lost'")


def test_files_are_shown_as_text(browser, url):
    browser.run("document.querySelector('.links a').click()")
    wait_for(browser, "location.pathname.endsWith('report.md')")
    assert browser.run("return [document.contentType, document.querySelectorAll('img, script').length]") == [
        "text/plain",
        0,
    ]
    browser.open(url)
    browser.run("[...document.querySelectorAll('.finding[open] .links a')].at(-1).click()")
    wait_for(browser, "document.querySelector('h1') && document.querySelector('a[href=\"report.md\"]')")
    browser.run("document.querySelector('a[href=\"report.md\"]').click()")
    wait_for(browser, "location.pathname.endsWith('report.md')")


@pytest.mark.parametrize("dark", [False, True])
def test_a_phone_scrolls_down_only(url, tmp_path, dark):
    (tmp_path / "phone").mkdir()
    with Browser(tmp_path / "phone", 390, 844, phone=True, dark=dark) as phone:
        phone.open(url)
        phone.run("document.querySelectorAll('details').forEach((item) => { item.open = true; })")
        wait_for(phone, "document.querySelectorAll('.labelling').length === 5")
        phone.run("document.querySelectorAll('[value=\"duplicate-of\"]').forEach((button) => button.click())")
        assert phone.run("return [innerWidth, document.documentElement.scrollWidth]") == [390, 390]
        small = "return [...document.querySelectorAll('.choices button')].filter((b) => b.offsetHeight < 40).length"
        assert phone.run(small) == 0
