"""What the script of a peer is told, and what it tells; for any Python that a peer wants, so nothing is imported here.

    job = read_job()
    with job.timed():
        ...                       # the run proper: every answer is on disk when it ends
    job.finish(answers)           # (number of the row, answer) in the order of the peer's own output

Times are seconds; CPU is that of the process and of the children that it has waited for.
"""

import argparse
import importlib
import json
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

MODEL = "small"
MAX_TOKENS = 64
TEMPERATURE = 0.0


@dataclass(frozen=True)
class Job:
    """A run: captions to ask about, at most ``at_once`` at a time, with ``work`` for all that the peer keeps."""

    url: str
    captions: tuple[str, ...]
    system: str
    at_once: int
    work: Path
    variant: str

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Measure the run proper."""
        begun, cpu = time.perf_counter(), _cpu()
        yield
        figures = {"wall": time.perf_counter() - begun, "cpu": _cpu() - cpu}
        (self.work / "figures.json").write_text(json.dumps(figures))

    def finish(self, answers: Iterable[tuple[int, str | None]]) -> None:
        """Tell the answers; None where there is none."""
        with (self.work / "answers.jsonl").open("w", encoding="utf-8") as lines:
            lines.writelines(json.dumps(list(each)) + "\n" for each in answers)


def preload(*modules: str) -> None:
    """Import what the run proper would import only when it needs it: imports belong to the start."""
    for module in modules:
        importlib.import_module(module)


def read_job() -> Job:
    """Read the job from the command line."""
    parser = argparse.ArgumentParser()
    for name in ("url", "captions", "system", "at-once", "work", "variant"):
        parser.add_argument(f"--{name}", required=True)
    given = parser.parse_args()
    captions = tuple(json.loads(line) for line in Path(given.captions).read_text(encoding="utf-8").splitlines())
    return Job(given.url, captions, given.system, int(given.at_once), Path(given.work), given.variant)


def _cpu() -> float:
    return sum(os.times()[:4])
