"""Nights of a dataset on a real Prefect server with a real worker: a full build, then what was new, by cron.

    python -m benchmarks.nightly_builds [--patience 600]

A server and a worker are started on loopback, and the deployment of ``prefect.yaml`` fires every minute with
``incremental: true``. Before the second firing new rows are put into the input, before the third none. Checked are: the first
run builds all, the second appends and leaves the shards that stand alone, the third makes no version, no two runs ran at
once, and `verify` finds nothing. Prints one JSON object; exit 1 when a check fails. What was started is ended by its
process id, after ``--patience`` seconds in any case.
"""

import argparse
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

from pairwright.datasets.colorshape.corpus import CorpusSpec, write_corpus
from pairwright.datasets.verification.checks import verify
from pairwright.flows.commands.config_templates import render_deployment
from pairwright.flows.prefect.server import own_server

OLD, ALL = 200, 260


def main() -> int:
    """Run the check; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--patience", type=float, default=600.0, help="seconds for the whole")
    patience = parser.parse_args().patience
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PREFECT_HOME"] = str(Path(folder) / "prefect")
        found = _nights(Path(folder), patience)
    sys.stdout.write(json.dumps(found, indent=2) + "\n")
    return 0 if all(found["checks"].values()) else 1


def _nights(folder: Path, patience: float) -> dict[str, Any]:
    rows = _input(folder)
    out = folder / "build" / "night"
    told: list[dict[str, Any]] = []
    with own_server(0) as url:
        for arguments in (("work-pool", "create", "--type", "process", "pairwright"), ("deploy", "--all")):
            with _prefect(folder, url, patience, *arguments) as process:
                process.communicate()
        with _prefect(folder, url, patience, "worker", "start", "--pool", "pairwright") as worker:
            for night in range(3):
                lines = _said_until(worker, "Built night:")
                manifest = json.loads((out / "manifest.json").read_text())
                told.append({"lines": lines, "build": manifest["build"], "shards": _sums(out)})
                if night == 0:
                    (folder / "in.jsonl").write_text("".join(rows))
        runs = _runs(url)
    spans = sorted((run["start_time"], run["end_time"]) for run in runs if run["state_type"] == "COMPLETED")
    one, two, three = told
    checks = {
        "the first run builds all": one["build"]["kind"] == "full" and one["build"]["number"] == 1,
        "the second appends what is new": two["build"]["kind"] == "incremental" and two["build"]["number"] == 2,
        "shards that stood are the same": one["shards"].items() < two["shards"].items(),
        "the third makes no version": three["build"] == two["build"]
        and any("no new version" in line for line in three["lines"]),
        "no two runs at once": all(end <= start for (_, end), (start, _) in pairwise(spans)),
        "verify finds nothing": not verify(out),
    }
    return {"checks": checks, "runs": [f"{start} {end}" for start, end in spans], "said": two["lines"][-16:]}


def _input(folder: Path) -> list[str]:
    write_corpus(folder / "text", CorpusSpec(pairs=ALL, images=False))
    rows = (folder / "text" / "captions.jsonl").read_text().splitlines(keepends=True)
    (folder / "in.jsonl").write_text("".join(rows[:OLD]))
    config = {
        "name": "night",
        "input": {"path": "in.jsonl", "source": "scenes"},
        "negatives": {},
        "refine": {"cells": 10},
        "shards": {"samples": 80},
        "workers": 1,
    }
    (folder / "build.yaml").write_text(yaml.safe_dump(config))
    text = render_deployment((folder / "build.yaml").read_text(), folder / "build.yaml")
    text = text.replace("0 2 * * *", "* * * * *").replace("# incremental: true", "incremental: true")
    (folder / "prefect.yaml").write_text(text)
    return rows


def _sums(out: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted((out / "shards").glob("*.tar"))}


@contextmanager
def _prefect(folder: Path, url: str, patience: float, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
    environment = {**os.environ, "PREFECT_API_URL": url, "PREFECT_CLI_PROMPT": "false", "DO_NOT_TRACK": "1"}
    with subprocess.Popen(
        [sys.executable, "-m", "prefect", *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        timer = threading.Timer(patience, os.killpg, (process.pid, signal.SIGKILL))
        timer.start()
        try:
            yield process
        finally:
            timer.cancel()
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
                process.communicate()


def _said_until(process: "subprocess.Popen[str]", part: str) -> list[str]:
    lines: list[str] = []
    while process.stdout and (line := process.stdout.readline()):
        lines.append(line.rstrip())
        if part in line:
            time.sleep(1.0)  # the run reports its end to the server after this line
            return lines
    raise SystemExit("ended before its time:\n" + "\n".join(lines[-40:]))


def _runs(url: str) -> list[dict[str, Any]]:
    request = urllib.request.Request(  # noqa: S310 - loopback
        f"{url}/flow_runs/filter", data=b'{"limit": 100}', headers={"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=30) as reply:  # noqa: S310 - loopback
        found: list[dict[str, Any]] = json.loads(reply.read())
    return found


if __name__ == "__main__":
    sys.exit(main())
