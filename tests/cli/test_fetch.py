"""``pairwright fetch``."""

import json
import os
from importlib.util import find_spec
from pathlib import Path

import pytest

from pairwright.datasets.record_tables import PAIRS
from tests.cli.conftest import Run
from tests.servers.images import image_server

needs_img2dataset = pytest.mark.skipif(find_spec("img2dataset") is None, reason="img2dataset is not installed")


def table(path: Path, urls: list[str]) -> Path:
    rows = [json.dumps({"id": number, "url": url, "caption": f"thing {number}"}) for number, url in enumerate(urls)]
    path.write_text("\n".join(rows) + "\n")
    return path


@needs_img2dataset
def test_images_come_through_the_proxy_and_the_result_says_what_did_not(run: Run, tmp_path: Path) -> None:
    hosts = ["http://pictures.invalid/good/1.jpg", "http://pictures.invalid/status/404", "http://10.0.0.1/x.jpg"]
    pairs = table(tmp_path / "pairs.jsonl", hosts)
    with image_server() as server:
        common = ["fetch", pairs, "--out", "images", "--proxy", server.url, "--user-agent", "lab/2 (a@b.example)"]
        done = run(*common, "--min-success", 0.5, "--json", ok=False)
        assert done.returncode == 3, done.stderr
        printed = json.loads(done.stdout)
        assert sorted(path for path, _ in server.requests) == hosts[:2]
        assert server.requests[0][1]["User-Agent"] == "lab/2 (a@b.example)"
    assert printed["pairs"] == 3
    assert printed["fetched"] == 1
    assert printed["rejected"] == {"not_found": 1, "blocked_address": 1}
    (pair,) = PAIRS.read(tmp_path / "images" / "fetched.parquet")
    assert pair.caption == "thing 0"
    # A machine without the proxy goes on from what is there; the host does not resolve any more, and need not.
    again = run("fetch", pairs, "--out", "images", "--proxy", "http://127.0.0.1:1")
    assert "not_found" in again.stdout
    assert "find anoth" in again.stdout


@needs_img2dataset
def test_nothing_fetched_is_less_than_was_asked(run: Run, tmp_path: Path) -> None:
    refused = ["file:///etc/passwd", "ftp://127.0.0.1/x.jpg", "http://127.0.0.1:1/x.jpg"]  # the first is a local path
    pairs = table(tmp_path / "pairs.jsonl", refused)
    done = run("fetch", pairs, "--out", "images", "--json", ok=False)
    assert done.returncode == 3
    assert json.loads(done.stdout)["rejected"] == {"blocked_address": 2, "not_a_url": 1}
    assert "No image was fetched" in done.stderr


@needs_img2dataset
def test_where_nothing_came_there_is_nothing_to_exclude(run: Run, tmp_path: Path) -> None:
    pairs = table(tmp_path / "pairs.jsonl", ["http://127.0.0.1:1/x.jpg"])
    (tmp_path / "val.txt").write_text("a dog\n")
    done = run("fetch", pairs, "--out", "images", "--exclude", "val.txt", "--json", ok=False)
    assert (done.returncode, json.loads(done.stdout)["rejected"]) == (3, {"blocked_address": 1})


def test_impossible_options_and_foreign_folders_are_refused(run: Run, tmp_path: Path) -> None:
    pairs = table(tmp_path / "pairs.jsonl", ["http://a.example/x.jpg"])
    assert run("fetch", pairs, "--out", "images", "--quality", 400, ok=False).returncode == 2
    foreign = run("fetch", pairs, "--out", os.curdir, ok=False)
    assert foreign.returncode == 1
    assert "holds files" in foreign.stderr or "not installed" in foreign.stderr
