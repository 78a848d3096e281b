"""The status page in a browser: what it shows, how it is used, and how it looks."""

import base64
import hashlib
import json
import re
import threading
import urllib.request

import pytest
from selenium.webdriver.common.keys import Keys

from apns_standin import Answer
from browser import DESKTOP, PHONE, Page, browser
from credentials import make_signing_key
from processes import Program, find_binary, free_port
from waiting import until
from world import as_record, device_token, request

# They share what takes long to start.
pytestmark = pytest.mark.xdist_group("status page")


class Demo(Program):
    """`martlet demo`: a service with traffic."""

    def __init__(self, log, *options: str):
        self.port = free_port()
        super().__init__(
            [find_binary(), "demo", "--listen", f"127.0.0.1:{self.port}", "--duration", "10m", *options], log
        )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def status(self) -> dict:
        with urllib.request.urlopen(self.url + "status.json", timeout=10) as answer:
            return json.load(answer)

    def wait_for(self, ended: int):
        def has_ended() -> bool:
            try:
                totals = self.status()["totals"]
            except OSError:
                assert self.running, self.tail()
                return False
            return totals["delivered"] + totals["not_delivered"] >= ended

        until(f"{ended} notifications have ended", has_ended, 60)
        return self


@pytest.fixture(scope="module")
def page():
    with browser() as made:
        yield made


@pytest.fixture(scope="module")
def busy(tmp_path_factory):
    """Eight apps and an APNs that misbehaves now and then."""
    with Demo(tmp_path_factory.mktemp("demo") / "busy.log", "--apps", "8", "--rate", "300", "--faults") as demo:
        yield demo.wait_for(1000)


@pytest.fixture(scope="module")
def crowd(tmp_path_factory):
    """Five hundred apps."""
    with Demo(tmp_path_factory.mktemp("demo") / "crowd.log", "--apps", "500", "--rate", "250") as demo:
        yield demo.wait_for(500)


@pytest.fixture(autouse=True)
def fresh(page: Page):
    page.size(DESKTOP)
    page.theme("light")
    page.complaints()
    yield
    left = page.complaints()
    assert not [line for line in left if "favicon" not in line and "ERR_CONNECTION_REFUSED" not in line], left


def test_the_page_is_one_document_that_asks_for_its_own_data_alone(busy, page):
    with urllib.request.urlopen(busy.url, timeout=10) as answer:
        html = answer.read().decode()
        policy = answer.headers["Content-Security-Policy"]
        assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert "unsafe" not in policy
    for tag, rule in (("style", "style-src"), ("script", "script-src")):
        parts = re.findall(rf"<{tag}>(.*?)</{tag}>", html, re.DOTALL)
        assert len(parts) == 1
        digest = base64.b64encode(hashlib.sha256(parts[0].encode()).digest()).decode()
        assert rules[rule] == f"'sha256-{digest}'"
    assert not re.search(r"\son\w+=|\sstyle=|javascript:|<link|@import|https?://(?!www\.w3\.org/)", html)

    page.open(busy.url)
    asked = page.run("return performance.getEntriesByType('resource').map((one) => new URL(one.name).pathname)")
    assert set(asked) <= {"/status.json", "/favicon.ico"}


def test_a_busy_service(busy, page):
    page.open(busy.url)
    assert page.text("#state") == "ready"
    page.until("there is a rate", "return parseFloat(document.querySelector('.tile .value').textContent) > 0")
    page.until(
        "some history is there",
        "return document.querySelector('#chart-rate .line-good').getAttribute('d').split('L').length > 10",
        timeout=60,
    )
    shown = {app["app"]: app for app in busy.status()["apps"]}
    assert page.run("return [...document.querySelectorAll('tr.app .name')].map((one) => one.textContent)").sort() == (
        sorted(shown).sort()
    )
    assert page.run("return document.querySelectorAll('.partition').length") == 24
    assert all(text != "–" for text in page.all(".stage b"))
    page.picture("busy-light", whole=True)
    page.size(DESKTOP)
    page.picture("readme")
    page.theme("dark")
    page.picture("busy-dark", whole=True)
    ground = page.run("return getComputedStyle(document.body).backgroundColor")
    assert sum(map(int, re.findall(r"\d+", ground))) < 150


def test_what_is_over_is_one_line_until_somebody_opens_it(busy, page):
    page.open(busy.url)
    page.run(
        """
        const ask = window.fetch;
        window.fetch = async (...words) => {
          const data = await (await ask(...words)).json();
          const past = { now: false, level: "warning", code: "connection_failed", message: "a connection failed",
            meaning: "It broke.", mend: "Nothing.", first: data.time, last: data.time };
          const count = Math.round(data.time / 1000);
          data.problems = [{ ...past, now: true, app: "app-1" }, { ...past, app: "app-2", count }];
          return new Response(JSON.stringify(data));
        };
        """
    )
    page.until("both are shown", "return document.querySelectorAll('#problem-list li').length === 2")
    assert "It broke." in page.all("#problem-list li")[0]
    assert "It broke." not in page.all("#problem-list li")[1]
    assert page.run(
        "return document.getElementById('problems').getBoundingClientRect().top"
        " < document.getElementById('chart-rate').getBoundingClientRect().top"
    ), "what is wrong now comes before the charts"
    page.run("document.querySelector('summary').focus()")
    page.driver.switch_to.active_element.send_keys(Keys.ENTER)
    # It stays open, and the focus on it, while the number of times changes.
    count = page.all("#problem-list .when")[1]
    page.until("it is drawn anew", "return document.querySelectorAll('.when')[1].textContent !== arguments[0]", count)
    assert "It broke." in page.all("#problem-list li")[1]
    assert page.driver.switch_to.active_element.tag_name == "summary"


def test_texts_can_be_read_in_both_themes(busy, page):
    """Contrast of at least 4.5 to 1 (WCAG 2.2, 1.4.3)."""
    page.open(busy.url)
    for theme in ("light", "dark"):
        page.theme(theme)
        faint = page.run(
            """
            const light = (text) => {
              const [r, g, b] = text.match(/[\\d.]+/g).map(Number).map((part) => part / 255)
                .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
              return 0.2126 * r + 0.7152 * g + 0.0722 * b;
            };
            const ground = (node) => {
              for (; node; node = node.parentElement) {
                const colour = getComputedStyle(node).backgroundColor;
                if (colour !== "rgba(0, 0, 0, 0)") return colour;
              }
            };
            const found = new Set();
            for (const node of document.querySelectorAll("body *:not(svg *)")) {
              const text = [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
              if (!text || !node.checkVisibility()) continue;
              const [a, b] = [light(getComputedStyle(node).color), light(ground(node))].sort((x, y) => y - x);
              const ratio = (a + 0.05) / (b + 0.05);
              if (ratio < 4.5) found.add(`${node.tagName}.${node.className} ${ratio.toFixed(2)}`);
            }
            return [...found];
            """
        )
        assert not faint, (theme, faint)


def test_a_phone_shows_it_without_scrolling_sideways(busy, page):
    page.size(PHONE)
    page.open(busy.url)
    page.until("there is a rate", "return parseFloat(document.querySelector('.tile .value').textContent) > 0")
    assert page.run("return document.documentElement.scrollWidth") <= PHONE[0]
    small = page.run(
        "return [...document.querySelectorAll('button, select, input')].filter((one) => one.checkVisibility()"
        " && !one.closest('thead') && one.getBoundingClientRect().height < 30).map((one) => one.id || one.className)"
    )
    assert not small
    page.find("tr.app .name").click()
    assert page.run(
        "const [detail, next] = [document.querySelector('tr.detail'), document.querySelectorAll('tr.app')[1]];"
        "const facts = detail.querySelector('.facts').getBoundingClientRect();"
        "return facts.height > 100 && facts.bottom <= next.getBoundingClientRect().top"
    ), "what opens under an app covers no other"
    page.picture("phone-light", whole=True)
    page.size(PHONE)
    page.theme("dark")
    page.picture("phone-dark")


def test_five_hundred_apps_sort_and_filter(crowd, page):
    page.open(crowd.url)
    assert page.text("#app-count") == "500"
    names = "return [...document.querySelectorAll('tr.app .name')].map((one) => one.textContent)"
    assert len(page.run(names)) == 100
    page.find("th[data-id=app] button").click()
    assert page.run(names)[:3] == ["app-1", "app-2", "app-3"]
    assert page.find("th[data-id=app]").get_attribute("aria-sort") == "ascending"
    page.find("th[data-id=delivered] button").click()
    counts = page.run(
        "return [...document.querySelectorAll('tr.app td:nth-child(4)')]"
        ".map((one) => +one.textContent.replace(/,/g, ''))"
    )
    assert counts == sorted(counts, reverse=True)
    page.picture("500-apps-light")
    page.theme("dark")
    page.picture("500-apps-dark")

    # By keyboard alone: to the filter, some letters, into the table, an app's details.
    page.run("document.activeElement.blur()")
    active = page.driver.switch_to.active_element
    active.send_keys("/")
    page.driver.switch_to.active_element.send_keys("app-49")
    assert page.text("#app-count") == "11 of 500"
    assert sorted(page.run(names)) == sorted(["app-49"] + [f"app-49{digit}" for digit in range(10)])
    for _ in range(30):
        page.driver.switch_to.active_element.send_keys(Keys.TAB)
        if "name" in page.driver.switch_to.active_element.get_attribute("class"):
            break
    chosen = page.driver.switch_to.active_element
    name = chosen.text
    chosen.send_keys(Keys.ENTER)
    assert chosen.get_attribute("aria-expanded") == "true"
    assert "Provider token signed" in page.text("tr.detail")
    # The focus stays where it is while the numbers and the order change.
    updates = page.run("return performance.getEntriesByType('resource').length")
    page.until("it was drawn anew", f"return performance.getEntriesByType('resource').length > {updates + 1}")
    assert page.driver.switch_to.active_element.text == name
    work = page.run(
        """
        const start = performance.now();
        const filter = document.getElementById("filter");
        for (const text of ["", "app-1", "app-12", ""]) {
          filter.value = text;
          filter.dispatchEvent(new Event("input"));
        }
        return (performance.now() - start) / 4;
        """
    )
    print(f"500 apps: {work:.1f} ms to filter and draw")


def test_one_sick_app(world, page):
    """The app, what is wrong with it and what to do stand out; the others are well."""
    world.app("shop-ios", "com.example.shop")
    world.app("news-ios", "com.example.news")
    world.server  # noqa: B018  # It knows the keys that were made before it, and no other.
    stranger = make_signing_key(world.directory, "STRANGER99", "DEF123GHIJ")
    world.app("wallet-ios", "com.example.wallet", key=stranger)
    world.server.answer_by_default(lambda _: Answer(200))
    martlet = world.martlet().wait_ready()
    ending = threading.Event()

    def produce() -> None:
        number = 0
        while not ending.wait(0.3):
            apps = ("shop-ios", "news-ios", "wallet-ios")
            world.send([as_record(request(device_token(number + at), app=apps[at % 3])) for at in range(90)])
            number += 90

    producer = threading.Thread(target=produce)
    producer.start()
    try:
        page.open(f"http://127.0.0.1:{martlet.http_port}/")
        page.until("the app is named", "return document.querySelector('tr.app .why:not([hidden])') !== null")
        assert page.text("#state") == "ready"
        first = page.all("tr.app")[0]
        assert first.startswith("wallet-ios")
        assert "InvalidProviderToken" in first
        problem = page.all("#problem-list li")[0]
        assert "wallet-ios" in problem
        assert "NOW" in problem.upper()
        assert "key id and team id" in problem
        page.until("the others go on", "return document.querySelectorAll('tr.app .dot.good').length === 2")
        page.until(
            "some history is there",
            "return document.querySelector('#chart-rate .line-good').getAttribute('d').split('L').length > 7",
        )
        page.picture("sick-light", whole=True)
        page.theme("dark")
        page.picture("sick-dark", whole=True)
    finally:
        ending.set()
        producer.join()
    martlet.kill()
    page.until("its silence is told", "return !document.getElementById('offline').hidden", timeout=40)
    assert page.text("#state") == "not answering"
