"""Stages that ask a model by part: one service sends the requests of all jobs, wherever they run."""

import asyncio
import contextlib
import json
import os
import pickle
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from pairwright.datasets.errors import PairwrightError
from pairwright.flows.build import build
from pairwright.flows.config.build import BuildConfig, parse_config
from pairwright.flows.llm.answer_client import AnswerSource, ServiceModel
from pairwright.flows.llm.answer_messages import encode, request_message
from pairwright.flows.llm.answer_service import LOOPBACK, AnswerService
from pairwright.flows.llm.model_access import model_access_for_build
from pairwright.flows.progress import BuildProgress
from pairwright.flows.state.layout import ANSWERS_ADDRESS, failed_files
from pairwright.generators.llm.budget import SpendingTotals
from pairwright.generators.llm.client.messages import Image, Message, Request
from pairwright.generators.llm.client.request_errors import RequestError
from pairwright.generators.llm.testing.answers import ServerAnswer
from pairwright.generators.llm.testing.app import ServerApp
from pairwright.generators.llm.testing.chat_request import ChatRequest
from pairwright.generators.llm.testing.script import ServerScript
from pairwright.generators.llm.testing.serving import Server, serve_in_thread
from pairwright.generators.plausible_model.model import PlausibleModel

SAME = ("pairs", "tokens", "annotations", "rejected", "shards")
WORDS = ("dog", "cat", "horse", "bird", "cow", "sheep")
CAPTIONS = [f"A {colour} {what} sits on a bed." for colour in ("red", "blue", "grey") for what in WORDS[:4]]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with serve_in_thread(ServerApp(ServerScript(latency_ms=2), answer=PlausibleModel())) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "secret-key-of-the-test")
        yield server


def settings(folder: Path, **sections: Any) -> dict[str, Any]:
    path = folder / "captions.jsonl"
    path.write_text("".join(json.dumps({"caption": text}) + "\n" for text in CAPTIONS))
    return {
        "name": "x",
        "input": {"path": str(path)},
        "llm": {"model": "small", "price": "1/2"},
        "positives": {"method": "llm"},
        "part_size": 3,
        "workers": 1,
        **sections,
    }


def config_of(folder: Path, **sections: Any) -> BuildConfig:
    return parse_config(settings(folder, **sections), where="test")


def contents(out: Path) -> dict[str, bytes]:
    files = (path for folder in SAME for path in sorted((out / folder).rglob("*")) if path.is_file())
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in files}


def test_a_stage_asks_by_part_and_each_row_once(server: Server, tmp_path: Path) -> None:
    manifest = build(config_of(tmp_path), tmp_path / "out", prefect=False)
    stage = manifest["stages"]["positives"]
    assert stage["parts"] == 5  # and the job that adds up their bills
    bill = stage["facts"]["llm"]
    bodies = server.stats()["bodies"]
    assert bill["requests"] == bill["in_all"]["answers"] == bodies["answered"]
    assert bodies["answered_again"] == 0
    assert bill["cost"] > 0
    assert not (tmp_path / "out" / ".answers.json").exists()


def test_an_answer_that_several_parts_use_is_billed_once(server: Server, tmp_path: Path) -> None:
    twice = settings(tmp_path, positives={"method": "llm", "captions_per_request": 1})
    lines = (tmp_path / "captions.jsonl").read_text()
    (tmp_path / "captions.jsonl").write_text(
        lines + "".join(line.replace("{", '{"source": "other", ') for line in lines.splitlines(True))
    )
    manifest = build(parse_config(twice, where="test"), tmp_path / "out", prefect=False)
    bill = manifest["stages"]["positives"]["facts"]["llm"]
    bodies = server.stats()["bodies"]
    assert bill["requests"] == bill["in_all"]["answers"] == bodies["answered"]
    assert bill["in_all"]["shared"] > 0
    assert bill["in_all"]["cost"] == pytest.approx(bill["cost"])


def test_the_bill_of_a_build_says_which_tokens_are_estimated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server sends a usage of zeros, as some do in place of none."""
    plausible = PlausibleModel()

    def answer(request: ChatRequest) -> ServerAnswer:
        return replace(plausible(request) or ServerAnswer(), usage=(0, 0))

    monkeypatch.setenv("OPENAI_API_KEY", "any")
    with serve_in_thread(ServerApp(answer=answer)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        manifest = build(config_of(tmp_path), tmp_path / "out", prefect=False)
    bill = manifest["stages"]["positives"]["facts"]["llm"]
    assert bill["estimated"] == bill["requests"] > 0
    assert bill["prompt_tokens"] > 0


def command(config: Path, out: Path, *options: str) -> "subprocess.Popen[str]":
    given = [sys.executable, "-m", "pairwright", "build", str(config), "--out", str(out), "--no-prefect", *options]
    return subprocess.Popen(given, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)


def test_a_stage_that_was_stopped_asks_only_what_is_left(server: Server, tmp_path: Path) -> None:
    limited = config_of(tmp_path, llm={"model": "small", "price": "1/2", "max_requests": 3})
    with pytest.raises(PairwrightError, match="the budget allows no further request"):
        build(limited, tmp_path / "out", prefect=False)
    assert server.stats()["bodies"]["answered"] == 3
    build(config_of(tmp_path), tmp_path / "out", prefect=False)
    bodies = server.stats()["bodies"]
    assert bodies["answered_again"] == 0
    build(config_of(tmp_path), tmp_path / "whole", prefect=False)
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def failed_reasons(out: Path) -> Counter[str]:
    lines = (line for path in failed_files(out, "positives") for line in path.read_text().splitlines())
    return Counter(json.loads(line)["reason"] for line in lines)


def test_parts_whose_rows_all_fail_are_no_error_if_others_got_answers(server: Server, tmp_path: Path) -> None:
    config = config_of(tmp_path, llm={"model": "small", "price": "1/2", "max_retries": 0})
    server.change(faults={"500": 0.6}, seed=3)
    manifest = build(config, tmp_path / "out", prefect=False)
    failed = manifest["stages"]["positives"]["facts"]["llm"]["failed"]
    assert 0 < failed < len(CAPTIONS)
    reasons = failed_reasons(tmp_path / "out")
    assert reasons.total() == failed
    assert reasons["server_error"]
    server.change(faults={})
    retried = build(config, tmp_path / "out", prefect=False, retry_failed=True)
    assert "server_error" not in failed_reasons(tmp_path / "out")
    assert retried["stages"]["positives"]["facts"]["llm"]["failed"] == failed_reasons(tmp_path / "out").total()


def test_a_server_that_answers_nobody_ends_the_build(server: Server, tmp_path: Path) -> None:
    server.change(faults={"500": 1.0})
    config = config_of(tmp_path, llm={"model": "small", "max_retries": 0})
    with pytest.raises(PairwrightError, match="got an answer"):
        build(config, tmp_path / "out", prefect=False)


def test_nodes_get_neither_key_nor_address_of_the_model(server: Server, tmp_path: Path) -> None:
    access = model_access_for_build(config_of(tmp_path).llm, tmp_path, SpendingTotals())
    sent = pickle.dumps(access.without_address())
    assert b"secret-key-of-the-test" not in sent
    assert access.stage_identity() == access.without_address().stage_identity()


def test_a_job_without_the_secret_of_the_service_is_refused(server: Server, tmp_path: Path) -> None:
    access = model_access_for_build(config_of(tmp_path).llm, tmp_path, SpendingTotals())
    service = AnswerService(tmp_path, LOOPBACK, BuildProgress())
    service.start(access)
    try:
        address = json.loads((tmp_path / ANSWERS_ADDRESS).read_text())
        assert (tmp_path / ANSWERS_ADDRESS).stat().st_mode & 0o077 == 0
        with socket.create_connection((address["host"], address["port"])) as connection:
            connection.sendall(b'{"secret": "x", "owner": "", "stage": "s", "part": "p", "of": 1}\n')
            with contextlib.suppress(ConnectionResetError):
                assert connection.recv(1) == b""
    finally:
        service.close()


def test_a_job_that_has_died_before_its_image_is_sent_keeps_no_other_waiting(server: Server, tmp_path: Path) -> None:
    """Its request waits for its turn meanwhile; one request is sent at a time."""
    config = config_of(tmp_path, llm={"model": "small", "price": "1/2", "max_concurrency": 1})
    service = AnswerService(tmp_path, LOOPBACK, BuildProgress())
    service.start(model_access_for_build(config.llm, tmp_path, SpendingTotals()))
    address = json.loads((tmp_path / ANSWERS_ADDRESS).read_text())
    server.change(latency_ms=200)

    def connect() -> socket.socket:
        connection = socket.create_connection((address["host"], address["port"]), timeout=20)
        hello = {"secret": address["secret"], "owner": "", "stage": "s", "part": "p", "of": 1}
        connection.sendall(encode(hello))
        return connection

    def asked(number: int, *images: Image) -> bytes:
        return request_message(number, Request((Message("user", f"Caption {number}", images),), "small"), 0)

    try:
        with connect() as dying:
            dying.sendall(asked(1) + asked(2, Image("0" * 64, "edge=8", lambda: "")))
        with connect() as other:
            other.sendall(asked(3))
            assert json.loads(other.makefile().readline())["reply"]["text"]
    finally:
        service.close()


def test_an_image_whose_encoding_raises_an_unexpected_error_fails_its_request(server: Server, tmp_path: Path) -> None:
    """The service waited for the image for ever."""
    service = AnswerService(tmp_path, LOOPBACK, BuildProgress())
    service.start(model_access_for_build(config_of(tmp_path).llm, tmp_path, SpendingTotals()))

    def encode_image() -> str:
        raise ZeroDivisionError("a flaw of the codec")

    async def ask() -> None:
        shown = (Image("0" * 64, "edge=8", encode_image),)
        async with ServiceModel(AnswerSource(tmp_path, "s", "p")) as model, asyncio.timeout(20):
            await model.ask(Request((Message("user", "Caption", shown),), "small"))

    try:
        with pytest.raises(RequestError, match="ZeroDivisionError: a flaw of the codec"):
            asyncio.run(ask())
    finally:
        service.close()


@pytest.mark.slow
def test_two_processes_hold_one_rate_limit_and_a_killed_one_loses_only_what_was_in_flight(
    server: Server, tmp_path: Path
) -> None:
    """One of them sends the requests of both; when it is killed, the other one does."""
    per_minute = 240
    server.change(
        requests_per_minute=per_minute, burst_s=4.0
    )  # each of the two that serve may begin with a second's worth
    llm = {"model": "small", "price": "1/2", "requests_per_minute": per_minute, "max_concurrency": 4}
    config = tmp_path / "build.yaml"
    given = settings(tmp_path, workers=1, part_size=2, host="127.0.0.1", llm=llm)
    config.write_text(yaml.safe_dump(given))
    out = tmp_path / "out"
    build(parse_config({**given, "positives": None, "llm": None}, where="test"), out, prefect=False)
    (out / "manifest.json").unlink()
    running = [command(config, out, "--part", f"{number}/2", "--wait", "300") for number in (1, 2)]
    while len(list(out.glob("receipts/positives/*"))) < 3:
        assert all(each.poll() is None for each in running)
        time.sleep(0.02)
    with sqlite3.connect(f"file:{out}/llm-cache.sqlite?mode=ro", uri=True) as cache:
        assert cache.execute("SELECT count(*) FROM answers").fetchone()[0] > 0
    serving = serving_process(out, running)
    os.killpg(running[serving].pid, signal.SIGKILL)
    running[serving].communicate()
    running.append(command(config, out, "--part", f"{serving + 1}/2", "--wait", "300"))
    ended = [each.communicate()[0] for each in running if each.returncode is None]
    assert [each.returncode for each in running if each.returncode != -signal.SIGKILL] == [0, 0], ended
    finished = command(config, out, "--finish")
    text, _ = finished.communicate()
    assert finished.returncode == 0, text
    stats = server.stats()
    assert stats["limited"] == {}
    assert stats["bodies"]["answered_again"] <= 4
    server.change(requests_per_minute=0)
    build(parse_config({**given, "host": ""}, where="test"), tmp_path / "whole", prefect=False)
    assert contents(out) == contents(tmp_path / "whole")


def serving_process(out: Path, running: list["subprocess.Popen[str]"]) -> int:
    """Return which of the processes listens at the address of the service."""
    port = json.loads((out / ANSWERS_ADDRESS).read_text())["port"]
    inodes = {
        line.split()[9] for line in Path("/proc/net/tcp").read_text().splitlines()[1:] if f":{port:04X} " in line[:24]
    }
    for number, process in enumerate(running):
        links = [str(path.readlink()) for path in Path(f"/proc/{process.pid}/fd").iterdir()]
        if any(f"socket:[{inode}]" in links for inode in inodes):
            return number
    raise AssertionError("no process serves")
