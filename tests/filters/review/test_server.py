"""The review server over HTTP: what it serves, what it takes, and whom it lets in."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
from yarl import URL

from pairwright.datasets.errors import UsageError
from pairwright.filters.review.access_control import RequestGuard
from pairwright.filters.review.decisions import DecisionLog, read_decisions
from pairwright.filters.review.rows import read_rows
from pairwright.filters.review.server import PAGE, serve_session
from pairwright.filters.review.session import ReviewSession

GREEN = b"\x89PNG"
Test = Callable[["Visitor"], Awaitable[None]]
Serve = Callable[[Test], None]


class Visitor:
    """A client that has, or has not, opened the address."""

    def __init__(self, url: str, client: aiohttp.ClientSession) -> None:
        self.url, self.client = url, client
        self.origin = f"http://{urlsplit(url).netloc}"

    async def open(self) -> "Visitor":
        """Open the address that was printed."""
        async with self.client.get(self.url) as answer:
            assert answer.status == 200
        return self

    async def get(self, path: str, **options: Any) -> tuple[int, bytes]:
        """Return status and body."""
        async with self.client.get(URL(self.origin + path, encoded=True), **options) as answer:
            return answer.status, await answer.read()

    async def json(self, path: str) -> Any:
        """Return what is served as JSON."""
        status, body = await self.get(path)
        assert status == 200, body
        return json.loads(body)

    async def post(self, path: str, body: object, **headers: str) -> tuple[int, Any]:
        """Send JSON as the page does."""
        sent = {"Origin": self.origin, "Content-Type": "application/json"} | headers
        data = json.dumps(body)
        async with self.client.post(self.origin + path, data=data, headers=sent) as answer:
            text = await answer.text()
            return answer.status, json.loads(text) if answer.content_type == "application/json" else text


@pytest.fixture
def log(tmp_path: Path) -> Iterator[DecisionLog]:
    """The file of decisions."""
    log = DecisionLog(tmp_path / "d.jsonl")
    yield log
    log.close()


@pytest.fixture
def serve(rows_file: Path, log: DecisionLog) -> Serve:
    """Run a test against a server of the rows, by a client that accepts cookies of addresses."""

    def run(test: Test) -> None:
        async def both() -> None:
            session = ReviewSession(read_rows(rows_file), log, "ann")
            jar = aiohttp.CookieJar(unsafe=True)
            async with serve_session(session, RequestGuard()) as url, aiohttp.ClientSession(cookie_jar=jar) as client:
                await test(Visitor(url, client))

        asyncio.run(both())

    return run


def test_the_page_and_its_files_are_served_and_request_nothing_else(serve: Serve) -> None:
    async def test(visitor: Visitor) -> None:
        await visitor.open()
        for path in ("/", "/review.js", "/review.css"):
            status, body = await visitor.get(path)
            assert status == 200
            assert b"http" not in body.replace(b"http-equiv", b"")

    serve(test)


def test_the_page_sets_texts_as_text_and_has_no_inline_script() -> None:
    script, page = (PAGE / "review.js").read_text(), (PAGE / "review.html").read_text()
    for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "srcdoc"):
        assert way not in script
    assert page.count("<script") == 1
    assert "<style" not in page
    assert " style=" not in page
    assert " onclick" not in page


def test_a_row_is_served_with_its_texts_in_spans_and_no_path(serve: Serve, rows_file: Path) -> None:
    async def test(visitor: Visitor) -> None:
        await visitor.open()
        rows = [await visitor.json(f"/api/rows/{at}") for at in range(6)]
        by_candidate = {"".join(text for text, _ in row["candidate"]): row for row in rows}
        red = by_candidate["a blue bus"]
        assert red["caption"] == [["a ", False], ["red", True], [" bus", False]]
        assert red["type"] == "replace-attribute"
        assert red["others"] == ["a bus by a tree"]
        assert red["image"] is True
        assert by_candidate["a horse on a man"]["image"] is False
        assert str(rows_file.parent) not in json.dumps(rows)
        assert (await visitor.get("/api/rows/6"))[0] == 404

    serve(test)


def test_images_are_served_by_row_number_if_they_exist(serve: Serve) -> None:
    async def test(visitor: Visitor) -> None:
        await visitor.open()
        for at in range(6):
            row = await visitor.json(f"/api/rows/{at}")
            async with visitor.client.get(f"{visitor.origin}/images/{at}") as answer:
                assert (answer.status == 200) == row["image"]
                if row["image"]:
                    assert answer.content_type == "image/png"
                    assert (await answer.read()).startswith(GREEN)
        for path in ("/images/99", "/images/-1", "/images/../d.jsonl", "/images/1.png", "/images/%2e%2e%2frows.jsonl"):
            assert (await visitor.get(path))[0] == 404, path
        for path in ("/rows.jsonl", "/d.jsonl", "/../rows.jsonl", "/page/review.html", "/server.py"):
            assert (await visitor.get(path))[0] == 404, path

    serve(test)


def test_a_decision_is_in_the_file_before_the_response(serve: Serve, log: DecisionLog) -> None:
    async def test(visitor: Visitor) -> None:
        await visitor.open()
        for at, word in enumerate(("keep", "reject", "unsure")):
            status, standing = await visitor.post(f"/api/rows/{at}", {"decision": word})
            assert status == 200
            assert len(read_decisions(log.path).of("ann")) == at + 1
        assert standing["marks"] == "kru---"
        assert standing["next"] == 3
        assert standing["counts"] == {"keep": 1, "reject": 1, "unsure": 1, "fix": 0}
        assert (await visitor.json("/api/rows/1"))["decision"] == "reject"

    serve(test)


def test_undo_withdraws_the_last_decision_and_returns_its_row(serve: Serve) -> None:
    async def test(visitor: Visitor) -> None:
        await visitor.open()
        for at, word in ((0, "keep"), (4, "reject"), (4, "keep")):
            await visitor.post(f"/api/rows/{at}", {"decision": word})
        answers = [await visitor.post("/api/undo", {}) for _ in range(4)]
        assert [answer["at"] for _, answer in answers] == [4, 4, 0, None]
        assert [answer["standing"]["marks"] for _, answer in answers] == ["k---r-", "k-----", "------", "------"]

    serve(test)


def test_a_fix_is_written_with_its_text_or_refused_if_it_cannot_be_a_negative(serve: Serve, log: DecisionLog) -> None:
    async def test(visitor: Visitor) -> None:
        await visitor.open()
        rows = [await visitor.json(f"/api/rows/{at}") for at in range(6)]
        at = next(row["at"] for row in rows if row["candidate"][1][0] == "blue")
        for text, why in {
            "": "empty",
            " .": "empty",
            "A red bus.": "equals the caption",
            "a blue bus": "equals the candidate",
            "A bus by a tree": "another caption",
            "x" * 10_001: "longer",
        }.items():
            status, message = await visitor.post(f"/api/rows/{at}", {"decision": "fix", "text": text})
            assert status == 422
            assert why in message
        assert read_decisions(log.path).of("ann") == {}
        status, _ = await visitor.post(f"/api/rows/{at}", {"decision": "fix", "text": " a  pink\n bus "})
        assert status == 200
        assert log.decisions.of("ann")["a"].text == "a pink bus"
        assert (await visitor.json(f"/api/rows/{at}"))["text"] == "a pink bus"

    serve(test)


@pytest.mark.parametrize("body", [[], {"decision": 3}, {"decision": "keep", "text": 3}, {}, None])
def test_an_invalid_body_is_refused(serve: Serve, log: DecisionLog, body: object) -> None:
    async def test(visitor: Visitor) -> None:
        await visitor.open()
        assert (await visitor.post("/api/rows/0", body))[0] == 400
        assert (await visitor.post("/api/rows/0", {"decision": "perhaps"}))[0] == 422
        assert log.path.read_bytes() == b""

    serve(test)


def test_a_huge_body_is_refused(serve: Serve) -> None:
    async def test(visitor: Visitor) -> None:
        await visitor.open()
        assert (await visitor.post("/api/rows/0", {"decision": "fix", "text": "x" * 200_000}))[0] == 413

    serve(test)


def test_without_the_token_every_request_is_refused(serve: Serve, log: DecisionLog) -> None:
    async def test(visitor: Visitor) -> None:
        for path in (
            "/",
            "/review.js",
            "/api/standing",
            "/api/rows/0",
            "/images/0",
            "/nothing",
            "/?token=",
            "/?token=x",
        ):
            assert (await visitor.get(path))[0] == 403, path
        assert (await visitor.post("/api/rows/0", {"decision": "keep"}))[0] == 403
        assert (await visitor.get(f"/api/standing?token={visitor.url.partition('=')[2]}"))[0] == 403
        assert log.path.read_bytes() == b""

    serve(test)


def test_the_token_becomes_a_cookie_hidden_from_scripts_and_other_sites(serve: Serve) -> None:
    async def test(visitor: Visitor) -> None:
        async with visitor.client.get(visitor.url) as answer:
            cookie = answer.headers["Set-Cookie"]
            token = visitor.url.partition("token=")[2]
            assert "HttpOnly" in cookie
            assert "SameSite=Strict" in cookie
            assert token not in cookie
            assert token not in await answer.text()
            assert 'url=/"' in await answer.text()

    serve(test)


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "0.0.0.0:{port}", ""]
)
def test_another_host_name_is_refused_against_dns_rebinding(serve: Serve, host: str) -> None:
    async def test(visitor: Visitor) -> None:
        await visitor.open()
        named = host.format(port=urlsplit(visitor.url).port)
        status, _ = await visitor.get("/api/standing", headers={"Host": named})
        assert status == 421
        async with visitor.client.get(visitor.url, headers={"Host": named}) as answer:
            assert answer.status == 421
            assert "Set-Cookie" not in answer.headers

    serve(test)


def test_localhost_is_accepted_as_host(serve: Serve) -> None:
    async def test(visitor: Visitor) -> None:
        await visitor.open()
        status, _ = await visitor.get("/api/standing", headers={"Host": f"localhost:{urlsplit(visitor.url).port}"})
        assert status == 200

    serve(test)


def test_a_decision_from_another_origin_or_as_a_form_is_refused(serve: Serve, log: DecisionLog) -> None:
    async def test(visitor: Visitor) -> None:
        await visitor.open()
        for headers in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": "http://127.0.0.1:1"}):
            assert (await visitor.post("/api/rows/0", {"decision": "keep"}, **headers))[0] == 403
        async with visitor.client.post(f"{visitor.origin}/api/rows/0", json={"decision": "keep"}) as answer:
            assert answer.status == 403  # no Origin at all
        assert (await visitor.post("/api/rows/0", {"decision": "keep"}, **{"Content-Type": "text/plain"}))[0] == 415
        assert log.path.read_bytes() == b""

    serve(test)


def test_every_response_has_the_security_headers(serve: Serve) -> None:
    async def test(visitor: Visitor) -> None:
        for path in ("/api/standing", visitor.url.removeprefix(visitor.origin), "/", "/images/0", "/nothing"):
            async with visitor.client.get(visitor.origin + path) as answer:
                policy = answer.headers["Content-Security-Policy"]
                assert "default-src 'none'" in policy
                assert "unsafe" not in policy
                assert answer.headers["X-Content-Type-Options"] == "nosniff"
                assert answer.headers["Referrer-Policy"] == "no-referrer"
                assert answer.headers["Cache-Control"] == "no-store"

    serve(test)


def test_another_run_resumes_the_review_and_can_undo_its_decisions(rows_file: Path, log: DecisionLog) -> None:
    first = ReviewSession(read_rows(rows_file), log, "ann")
    for at in range(3):
        first.decide(at, "keep")
    again = DecisionLog(log.path)
    second = ReviewSession(read_rows(rows_file), again, "ann")
    assert second.progress()["next"] == 3
    assert second.undo() == 2
    again.close()


def test_a_second_reviewer_starts_without_decisions_of_the_first(rows_file: Path, log: DecisionLog) -> None:
    ReviewSession(read_rows(rows_file), log, "ann").decide(0, "reject")
    second = ReviewSession(read_rows(rows_file), log, "bob")
    assert second.progress()["marks"] == "------"
    assert second.row(0)["decision"] == ""
    assert second.undo() is None


def test_a_larger_sample_begins_with_the_smaller_one(rows_file: Path, log: DecisionLog) -> None:
    small = ReviewSession(read_rows(rows_file), log, "ann", sample=2)
    large = ReviewSession(read_rows(rows_file), log, "ann", sample=5)
    assert (len(small), small.of, len(large)) == (2, 6, 5)
    assert [small.row(at)["candidate"] for at in range(2)] == [large.row(at)["candidate"] for at in range(2)]


def test_a_decision_about_a_changed_text_does_not_count(rows_file: Path, log: DecisionLog) -> None:
    session = ReviewSession(read_rows(rows_file), log, "ann")
    for at in range(6):
        session.decide(at, "keep")
    rows_file.write_text(rows_file.read_text().replace("a blue bus", "a grey bus"))
    assert ReviewSession(read_rows(rows_file), log, "ann").progress()["decided"] == 5


def test_undo_skips_stale_decisions(rows_file: Path, log: DecisionLog) -> None:
    session = ReviewSession(read_rows(rows_file), log, "ann")
    at = next(at for at in range(6) if session.row(at)["candidate"][1] == ("blue", True))
    session.decide(1 - (at > 0), "keep")
    session.decide(at, "keep")
    rows_file.write_text(rows_file.read_text().replace("a blue bus", "a grey bus"))
    assert ReviewSession(read_rows(rows_file), log, "ann").undo() == 1 - (at > 0)


def test_no_rows_and_no_reviewer_name_are_errors(tmp_path: Path, rows_file: Path, log: DecisionLog) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.write_text("")
    with pytest.raises(UsageError, match="No rows to review"):
        ReviewSession(read_rows(empty), log, "ann")
    with pytest.raises(UsageError, match="--reviewer"):
        ReviewSession(read_rows(rows_file), log, " ")


def test_a_port_in_use_is_an_error(rows_file: Path, log: DecisionLog) -> None:
    async def test() -> None:
        session = ReviewSession(read_rows(rows_file), log, "ann")
        async with serve_session(session, RequestGuard()) as url:
            with pytest.raises(UsageError, match="cannot listen"):
                async with serve_session(session, RequestGuard(), urlsplit(url).port or 0):
                    pass

    asyncio.run(test())
