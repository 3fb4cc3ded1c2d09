"""The page in a real browser: Chromium, driven by keys and clicks. Skipped where it, or playwright, is not installed."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from itertools import product
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from pairwright.filters.review.access_control import RequestGuard
from pairwright.filters.review.decisions import DecisionLog, read_decisions
from pairwright.filters.review.rows import read_rows
from pairwright.filters.review.server import serve_session
from pairwright.filters.review.session import ReviewSession

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (extra: dev)")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed (Debian: chromium)")

HOSTILE = "a cup <img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
Start = Callable[..., dict[str, Any]]
Serve = Callable[[Path], str]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A Chromium."""
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page that must not complain, but for what a test expects."""
    context = browser.new_context(viewport={"width": 1200, "height": 800})
    page = context.new_page()
    page.set_default_timeout(10_000)
    page.complaints = []
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    page.on("console", lambda message: message.type == "error" and page.complaints.append(message.text))
    yield page
    context.close()


@pytest.fixture
def start() -> Iterator[Start]:
    """Start ``pairwright review`` and return what it announces."""
    running: list[subprocess.Popen[str]] = []

    def run(*arguments: object) -> dict[str, Any]:
        command = [sys.executable, "-m", "pairwright", "review", *map(str, arguments), "--no-browser", "--json"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        running.append(process)
        assert process.stdout
        assert process.stderr
        first = process.stdout.readline()
        assert first, process.stderr.read()
        return {**json.loads(first), "process": process}

    yield run
    for process in running:
        process.kill()
        process.communicate()


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Serve a file from this process to the reviewer "ann" and return the address; decisions go to ``d.jsonl``."""
    log = DecisionLog(tmp_path / "d.jsonl")
    stops: list[Callable[[], object]] = []

    def run(path: Path) -> str:
        ready: Future[tuple[str, Callable[[], object]]] = Future()

        async def both() -> None:
            stop, loop = asyncio.Event(), asyncio.get_running_loop()
            async with serve_session(ReviewSession(read_rows(path), log, "ann"), RequestGuard()) as url:
                ready.set_result((url, lambda: loop.call_soon_threadsafe(stop.set)))
                await stop.wait()

        thread = Thread(target=asyncio.run, args=(both(),))
        thread.start()
        url, stop = ready.result(20)
        stops.extend((stop, thread.join))
        return url

    yield run
    for stop in stops:
        stop()
    log.close()


def press(page: Any, key: str) -> None:
    """Press a key and wait for another row."""
    at = page.evaluate("document.body.dataset.at")
    page.keyboard.press(key)
    page.wait_for_selector(f"body[aria-busy=false]:not([data-at='{at}'])")


def opened(page: Any, url: str) -> None:
    """Open an address and wait for the first row."""
    page.goto(url)
    page.wait_for_selector("body[aria-busy=false][data-at]")


def test_a_reviewer_goes_through_the_rows_by_keys_alone(page: Any, serve: Serve, rows_file: Path) -> None:
    opened(page, serve(rows_file))
    assert "token" not in page.url
    assert page.inner_text("#place") == "Row 1 of 6"
    for key in "kru":
        press(page, key)
    press(page, "ArrowLeft")
    assert page.inner_text("#decision") == "unsure"
    page.keyboard.press("z")
    page.wait_for_selector("#decision", state="hidden")
    assert page.inner_text("#place") == "Row 3 of 6"
    found = read_decisions(rows_file.with_name("d.jsonl")).of("ann")
    assert Counter(each.decision for each in found.values()) == {"keep": 1, "reject": 1}
    assert page.get_attribute("#progress", "aria-valuenow") == "2"
    for key in "kkkk":
        press(page, key)
    assert page.is_visible("#done")
    assert "5\xa0kept, 1\xa0rejected" in page.inner_text("#summary")
    assert page.complaints == []


def test_a_fix_is_written_in_the_page_and_a_bad_one_is_refused_there(page: Any, serve: Serve, rows_file: Path) -> None:
    opened(page, serve(rows_file))
    caption = page.inner_text("#caption")
    page.keyboard.press("f")
    assert page.evaluate("document.activeElement.id") == "edited"
    assert page.input_value("#edited") == page.inner_text("#candidate")
    assert page.is_hidden("#keys")
    page.fill("#edited", caption)
    page.keyboard.press("Enter")
    page.wait_for_selector("#error:not([hidden])")
    assert page.inner_text("#error") == "The text equals the caption."
    page.fill("#edited", "krufz")
    page.keyboard.press("Escape")
    assert read_decisions(rows_file.with_name("d.jsonl")).reviewers == []
    page.keyboard.press("f")
    page.fill("#edited", "a bus on the moon")
    press(page, "Enter")
    (fix,) = read_decisions(rows_file.with_name("d.jsonl")).of("ann").values()
    assert (fix.decision, fix.text) == ("fix", "a bus on the moon")
    assert page.is_hidden("#error")


def test_texts_of_the_input_are_never_run_as_html(page: Any, serve: Serve, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    row = {
        "caption": HOSTILE,
        "negative": HOSTILE + " and a spoon",
        "positive": HOSTILE + " too",
        "captions": [HOSTILE + "!"],
    }
    path.write_text(json.dumps(row | {"form": "<b>add</b>", "image": HOSTILE}))
    opened(page, serve(path))
    assert page.inner_text("#caption") == HOSTILE
    assert page.inner_text("#candidate") == HOSTILE + " and a spoon"
    assert page.inner_text("#others") == HOSTILE + "!"
    assert page.title() == "Review"
    assert page.evaluate("document.images.length") == 1
    assert page.evaluate("document.scripts.length") == 1
    assert page.complaints == []


def test_everything_has_room_and_contrast_on_phones_and_screens_by_day_and_night(
    page: Any, serve: Serve, rows_file: Path
) -> None:
    opened(page, serve(rows_file))
    for scheme, (width, height) in product(("light", "dark"), ((320, 640), (390, 844), (1200, 800))):
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": height})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        for button in page.query_selector_all("nav button"):
            box = button.bounding_box()
            assert box["width"] >= 44
            assert box["height"] >= 32
            assert button.get_attribute("aria-keyshortcuts")
        assert page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches") is (scheme == "dark")
        assert page.evaluate("innerWidth") == width
        assert page.evaluate(CONTRAST) >= 4.5, (scheme, width)


# The least contrast of WCAG 2 between the text and the ground of what is shown.
CONTRAST = """() => {
  const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => {
    const part = [r, g, b].map((v) => v / 255).map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * part[0] + 0.7152 * part[1] + 0.0722 * part[2];
  };
  const ground = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const colour = rgb(getComputedStyle(each).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const shown = [...document.querySelectorAll("header p, h1, h2, .text, del, ins, li, button, .chip, .place, .hint")];
  return Math.min(...shown.filter((one) => one.offsetParent).map((one) => {
    const [a, b] = [light(rgb(getComputedStyle(one).color)), light(ground(one))].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05);
  }));
}"""


@pytest.mark.slow
def test_of_500_decisions_none_is_lost_when_the_server_is_killed_in_the_middle(
    page: Any, start: Start, tmp_path: Path
) -> None:
    path = tmp_path / "rows.jsonl"
    rows = [{"id": f"r{n}", "caption": f"{n} red cups", "negative": f"{n} blue cups"} for n in range(500)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    served = start(path, "--reviewer", "ann")
    opened(page, served["url"])
    confirmed: dict[str, str] = {}

    def decide() -> None:
        candidate = page.inner_text("#candidate")
        key = "krukk"[int(candidate.split()[0]) % 5]
        press(page, key)
        confirmed[candidate] = key

    for _ in range(237):
        decide()
    page.keyboard.press("krukk"[int(page.inner_text("#candidate").split()[0]) % 5])
    os.kill(served["pid"], signal.SIGKILL)  # while a decision may be under way
    served["process"].wait()
    if page.is_hidden("#error"):  # that one got through: the next cannot
        page.keyboard.press("k")
    page.wait_for_selector("#error:not([hidden])")
    assert "Not saved" in page.inner_text("#error")
    kept = {each.candidate: each.decision[0] for each in read_decisions(Path(served["out"])).of("ann").values()}
    assert confirmed.items() <= kept.items()
    assert len(kept) - len(confirmed) <= 1

    again = start(path, "--reviewer", "ann")
    assert again["decided"] == len(kept)
    opened(page, again["url"])
    while page.is_hidden("#done"):
        decide()
    found = read_decisions(Path(served["out"]))
    assert found.truncated == 0
    assert {each.candidate: each.decision[0] for each in found.of("ann").values()} == {
        row["negative"]: "krukk"[n % 5] for n, row in enumerate(rows)
    }
    again["process"].send_signal(signal.SIGINT)
    assert again["process"].wait(10) == 0
