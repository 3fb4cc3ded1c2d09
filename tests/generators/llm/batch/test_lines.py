"""The lines of batches: what is written for a request, and what is made of any line that comes back."""

import asyncio
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairwright.datasets.errors import StorageError
from pairwright.generators.llm.batch.context import BatchRetry
from pairwright.generators.llm.batch.ledger import RETENTION_DAYS, BatchLedger
from pairwright.generators.llm.batch.lines import (
    ANSWERED,
    LineResult,
    QueuedRequest,
    format_line,
    read_line,
    read_lines,
    split_lines,
    write_batch_input,
)
from pairwright.generators.llm.client.chat_completions import build_payload
from pairwright.generators.llm.client.messages import Message, Request, Schema
from pairwright.generators.llm.client.request_errors import REQUEST_ERROR_CODES, RequestError

KEY = "ab" * 16
COMPLETION = {"model": "m", "choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]}


def line(**changes: Any) -> bytes:
    row = {"id": "x", "custom_id": KEY, "response": {"status_code": 200, "body": COMPLETION}, "error": None, **changes}
    return orjson.dumps(row)


def word(data: bytes) -> str | None:
    outcome = read_line(data)
    return None if outcome is None else outcome.code


def test_a_line_holds_what_a_direct_call_would_send() -> None:
    asked = Request((Message("user", "hé\n"),), "m", {"temperature": 0.5}, Schema("s", {"type": "object"}))
    written = format_line(KEY, "/v1/chat/completions", asked)
    assert written.count(b"\n") == 1
    assert orjson.loads(written) == {
        "custom_id": KEY,
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": build_payload(asked),
    }


def test_a_key_fits_the_64_letters_that_a_custom_id_may_have() -> None:
    assert len(Request((Message("user", "x"),), "m").key("http://x:1")) <= 64


@pytest.mark.parametrize(
    ("data", "want"),
    [
        (line(), ANSWERED),
        (line(response={"status_code": 200, "body": {}}), "wrong_shape"),
        (line(response={"status_code": 200, "body": {"choices": []}}), "no_choices"),
        (line(response={"status_code": 200}), "wrong_shape"),
        (line(response={"status_code": 200, "body": {"choices": [{"finish_reason": "error"}]}}), "server_error"),
        (line(response={"status_code": 400, "body": [{"error": {"message": "API key not valid."}}]}), "bad_key"),
        (line(response={"status_code": 429, "body": {"error": {"message": "slow"}}}), "rate_limited"),
        (line(response={"status_code": 500, "body": None}), "server_error"),
        (
            line(response={"status_code": 400, "body": {"error": {"code": "context_length_exceeded"}}}),
            "context_too_long",
        ),
        (line(response={"status_code": 401, "body": {}}), "bad_key"),
        (line(response={"status_code": "200", "body": COMPLETION}), "wrong_shape"),
        (line(response={"status_code": True, "body": COMPLETION}), "wrong_shape"),
        (line(response={"status_code": 10**12, "body": COMPLETION}), "wrong_shape"),
        (line(response=None, error={"code": "batch_expired", "message": "late"}), "timeout"),
        (line(response=None, error={"code": "batch_cancelled", "message": "no"}), "timeout"),
        (line(response=None, error={"code": "odd", "message": "no"}), "server_error"),
        (line(response=None, error={"code": "400", "message": "no"}), "bad_request"),
        (line(response=None, error={"code": "insufficient_quota", "message": "no"}), "no_quota"),
        (line(response=None, error=None), "wrong_shape"),
        (line(response=[], error="text"), "wrong_shape"),
        (line(custom_id="row-7"), "no key"),
        (line(custom_id=KEY.upper()), "no key"),
        (line(custom_id=7), "no key"),
        (line()[:-9], "not JSON"),
        (b"[]", "no key"),
        (b"\xff", "not JSON"),
    ],
)
def test_each_line_is_parsed_as_expected(data: bytes, want: str) -> None:
    assert word(data) == (want if want in REQUEST_ERROR_CODES or want == ANSWERED else None)


@given(st.one_of(st.binary(), st.recursive(st.none() | st.booleans() | st.integers(-9, 999) | st.text(), st.lists)))
def test_arbitrary_lines_belong_to_no_request(data: Any) -> None:
    if not isinstance(data, bytes):
        data = orjson.dumps({"custom_id": data, "response": data})
    assert read_line(data) is None


@given(
    st.dictionaries(
        st.sampled_from(["response", "error", "status_code", "code", "body", "message", "choices"]),
        st.recursive(
            st.none() | st.integers(-1, 700) | st.text(max_size=5) | st.just(COMPLETION),
            lambda inner: (
                st.lists(inner, max_size=2)
                | st.dictionaries(
                    st.sampled_from(["status_code", "body", "code", "message", "error"]), inner, max_size=3
                )
            ),
            max_leaves=8,
        ),
    )
)
def test_a_line_with_a_key_has_an_outcome_with_a_known_code(row: dict[str, Any]) -> None:
    outcome = read_line(orjson.dumps({"custom_id": KEY, **row}))
    assert outcome is not None
    assert outcome.key == KEY
    assert outcome.code == ANSWERED or outcome.failure().code == outcome.code


def test_secrets_that_a_line_repeats_are_hidden() -> None:
    data = line(response={"status_code": 401, "body": {"error": {"message": "key SECRET is wrong"}}})
    outcome = read_line(data, hide=lambda text: text.replace("SECRET", "***"))
    assert outcome is not None
    assert b"***" in outcome.data
    assert b"SECRET" not in outcome.data


@given(st.lists(st.binary(max_size=9).filter(lambda each: b"\n" not in each)), st.data())
def test_a_file_gives_the_same_lines_however_it_is_cut(lines: list[bytes], data: st.DataObject) -> None:
    whole, found, rest = b"\n".join(lines) + b"\n", [], b""
    while whole:
        size = data.draw(st.integers(1, len(whole)))
        new, rest = split_lines(whole[:size], rest, most=100)
        found += new
        whole = whole[size:]
    assert found == [each for each in lines if each.strip()]
    assert rest == b""


def test_lines_that_cannot_be_read_are_counted() -> None:
    outcomes, damaged = read_lines([line(), b"{", b"[]", line(custom_id="00" * 16)])
    assert [outcome.key for outcome in outcomes] == [KEY, "00" * 16]
    assert damaged == 2


@given(st.lists(st.integers(1, 120), max_size=12), st.integers(1, 5), st.integers(150, 500))
def test_a_file_takes_the_first_rows_that_fit_and_the_others_are_left(
    tmp_path_factory: pytest.TempPathFactory, lengths: list[int], most_lines: int, most_bytes: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "input"
    rows = [
        QueuedRequest(f"{n:032x}", Request((Message("user", "x" * length),), "m")) for n, length in enumerate(lengths)
    ]
    rest, sizes = rows, []
    sent: list[str] = []
    while rest:
        written = write_batch_input(path, rest, "/u", most_lines=most_lines, most_bytes=most_bytes)
        found = [orjson.loads(each)["custom_id"] for each in path.read_bytes().splitlines()]
        assert found == written.keys
        assert path.stat().st_size <= most_bytes
        assert len(found) <= most_lines
        assert written.left < len(rest)
        sizes.append(len(found))
        sent += [*written.keys, *written.unfit]
        rest = rest[len(rest) - written.left :] if written.left else []
    assert sorted(sent) == [row.key for row in rows]


# --- the ledger ----------------------------------------------------------------------------------------------


def test_the_ledger_keeps_the_first_outcome_of_a_line_and_only_for_its_own_batch(tmp_path: Path) -> None:
    one, two = "01" * 16, "02" * 16
    with BatchLedger.open(tmp_path / "ledger") as ledger:
        entry = ledger.claim("token", "http://x:1", "m", [one, two])
        assert ledger.store(entry.number + 1, [LineResult(one, ANSWERED, b"other")]) == set()
        assert ledger.store(entry.number, [LineResult(one, ANSWERED, b"a"), LineResult("03" * 16, ANSWERED, b"c")]) == {
            one
        }
        assert ledger.store(entry.number, [LineResult(one, "timeout", b"b")]) == set()
        assert ledger.key_at(entry.number, 2) == two
        ledger.end(entry.number)
        found = ledger.find([one, two])
        assert set(found) == {one}  # the key of the line that did not come back is free
        assert found[one].outcome == LineResult(one, ANSWERED, b"a")


def test_batches_unused_for_a_month_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, key = tmp_path / "ledger", "01" * 16
    with BatchLedger.open(path) as ledger:
        running = ledger.claim("running", "http://x:1", "m", ["02" * 16])
        ledger.sent(running.number, "batch_2")
        entry = ledger.claim("token", "http://x:1", "m", [key])
        ledger.store(entry.number, [LineResult(key, ANSWERED, b"a")])
        ledger.end(entry.number)
    with BatchLedger.open(path) as ledger:
        assert ledger.find([key])
        later = entry.made + (RETENTION_DAYS + 1) * 24 * 3600
    monkeypatch.setattr("pairwright.generators.llm.batch.ledger.time.time", lambda: later)
    with BatchLedger.open(path) as ledger:
        assert ledger.find([key]) == {}
        assert ledger.entry(running.number) is not None  # it may be at the server still


def test_a_ledger_of_a_newer_pairwright_is_refused(tmp_path: Path) -> None:
    import sqlite3

    path = tmp_path / "ledger"
    BatchLedger.open(path).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 9")
    connection.close()
    with pytest.raises(StorageError, match="newer"):
        BatchLedger.open(path)


def test_one_at_a_time_holds_the_turn_of_a_ledger(tmp_path: Path) -> None:
    events: list[str] = []

    async def pause(_: float) -> None:
        events.append("waits")
        await asyncio.sleep(0)

    async def hold(name: str) -> None:
        with BatchLedger.open(tmp_path / "ledger") as ledger:
            async with ledger.turn(pause):
                events.append(f"{name} begins")
                for _ in range(3):
                    await asyncio.sleep(0)
                events.append(f"{name} ends")

    async def both() -> None:
        await asyncio.gather(hold("a"), hold("b"))

    asyncio.run(both())
    order = [event for event in events if event != "waits"]
    assert order in (["a begins", "a ends", "b begins", "b ends"], ["b begins", "b ends", "a begins", "a ends"])
    assert "waits" in events


# --- patience ------------------------------------------------------------------------------------------------


def test_calls_are_retried_within_the_patience_and_after_retry_after() -> None:
    waits: list[float] = []

    async def pause(seconds: float) -> None:
        waits.append(seconds)

    async def call() -> None:
        raise RequestError("overloaded", "busy", status=503, retry_after=7.0 if len(waits) == 1 else None)

    lines: list[str] = []
    with pytest.raises(RequestError) as caught:
        asyncio.run(BatchRetry(60.0, pause, lines.append).call_with_retries(call))
    assert caught.value.code == "server_down"
    assert waits[:4] == [1.0, 7.0, 14.0, 28.0]
    assert len(lines) == 1


def test_a_batch_server_that_never_responded_is_retried_for_ten_seconds() -> None:
    waits: list[float] = []

    async def pause(seconds: float) -> None:
        waits.append(seconds)

    async def call() -> None:
        raise RequestError("unreachable", "Connection refused (localhost:8000)")

    with pytest.raises(RequestError, match="no response in 10 s; last: Connection refused") as caught:
        asyncio.run(BatchRetry(300.0, pause, print).call_with_retries(call))
    assert caught.value.code == "no_server"
    assert sum(waits) == 10
