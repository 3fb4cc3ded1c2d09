"""``pairwright dev llm-server`` as a process: first line, options, end."""

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import openai
import pytest
from openai import OpenAI

from tests.cli.conftest import Run

COMMAND = [sys.executable, "-m", "pairwright", "dev", "llm-server"]
PATIENCE = 60.0  # seconds


@contextmanager
def serving(*options: object, **env: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """Start a server and read its first line; the block ends it."""
    command = [*COMMAND, *map(str, options)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env={**os.environ, **env}) as process:
        assert process.stdout
        assert process.stderr
        try:
            line = process.stdout.readline()
            assert line, process.stderr.read()
            yield process, json.loads(line)
        finally:
            process.kill()


def get(url: str, path: str, **headers: str) -> tuple[int, Any]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=PATIENCE)
    connection.request("GET", path, headers=headers)
    response = connection.getresponse()
    found = response.status, json.loads(response.read())
    connection.close()
    return found


def say(url: str, text: str, *, model: str = "m") -> str | None:
    with OpenAI(base_url=url, api_key="x", max_retries=0, timeout=PATIENCE) as sdk:
        said = sdk.chat.completions.create(model=model, messages=[{"role": "user", "content": text}])
    return said.choices[0].message.content


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_first_line_says_where_and_a_signal_ends_it(number: signal.Signals) -> None:
    with serving() as (process, first):
        assert first == {"url": first["url"], "pid": process.pid}
        assert say(first["url"], "a dog") == "You said: a dog"
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE)
        assert (process.returncode, out, err) == (0, "", "")


def test_options_go_before_the_script(tmp_path: Path) -> None:
    script = tmp_path / "script.yaml"
    script.write_text("seed: 3\nlatency_ms: 5\nfaults: {500: 1}\nrules: [{text: scripted}]\n")
    options = [
        "--script",
        script,
        "--fault",
        "429=0",
        "--model",
        "one",
        "--latency-ms",
        1,
        "--requests-per-minute",
        600,
    ]
    with serving(*options) as (_, first):
        assert say(first["url"], "a dog", model="one") == "scripted"
        printed = get(first["url"], "/_script")[1]
    assert {name: printed[name] for name in ("seed", "latency_ms", "faults", "models", "requests_per_minute")} == {
        "seed": 3,
        "latency_ms": 1,
        "faults": {"429": 0},
        "models": ["one"],
        "requests_per_minute": 600,
    }


def test_a_key_from_the_environment_is_required_and_never_printed() -> None:
    with serving(PAIRWRIGHT_DEV_KEY="sk-quiet") as (process, first):
        with pytest.raises(openai.AuthenticationError):
            say(first["url"], "a dog")
        status, printed = get(first["url"], "/_stats", authorization="Bearer sk-quiet")
        process.terminate()
        out, err = process.communicate(timeout=PATIENCE)
    assert (status, printed["statuses"]) == (200, {"401": 1})
    assert "sk-quiet" not in json.dumps(printed) + out + err


def test_a_recording_of_one_server_is_replayed_by_the_next(tmp_path: Path) -> None:
    tape = tmp_path / "tape.jsonl"
    with serving("--record", tape) as (_, first):
        said = say(first["url"], "a dog")
    with serving("--replay", tape) as (_, first):
        assert say(first["url"], "a dog") == said
        with pytest.raises(openai.NotFoundError):
            say(first["url"], "a cat")


def test_it_ends_with_its_parent_when_asked(tmp_path: Path) -> None:
    starter = (
        "import subprocess, sys\n"
        f"child = subprocess.Popen({[*COMMAND, '--exit-with-parent']!r}, stdout=subprocess.PIPE, text=True)\n"
        "print(child.stdout.readline(), end='')\n"
    )
    done = subprocess.run([sys.executable, "-c", starter], capture_output=True, text=True, check=True, timeout=PATIENCE)
    url, ends = json.loads(done.stdout)["url"], time.monotonic() + PATIENCE
    while time.monotonic() < ends:
        try:
            get(url, "/_stats")
        except OSError:
            return
    pytest.fail("the server outlived the process that started it")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--fault", "rest=0.1"], "Did you mean reset?"),
        (["--fault", "reset"], "KIND=RATE"),
        (["--fault", "500=0.7", "--fault", "503=0.7"], "more than 1"),
        (["--script", "nowhere.yaml"], "nowhere.yaml"),
        (["--replay", "nowhere.jsonl"], "nowhere.jsonl"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(run: Run, options: list[str], message: str) -> None:
    done = run("dev", "llm-server", *options, ok=False)
    assert done.returncode in {1, 2}
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
