"""``pairwright generate negatives`` that gets a signal when its third batch of captions is annotated.

Its argument is the number of the signal. OUT's temporary file has rows by then.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from pairwright.__main__ import run
from pairwright.datasets.records import Annotation
from pairwright.flows.commands import generate
from pairwright.flows.commands.annotation_workers import BatchAnnotator, Waiting

_BATCH = 20  # captions
_annotate, _batches = BatchAnnotator.__call__, list[Sequence[Waiting]]()


def _stopped(self: BatchAnnotator, batch: Sequence[Waiting]) -> list[list[Annotation]]:
    _batches.append(batch)
    if len(_batches) == 3:
        assert [*Path().glob(".negatives.jsonl.tmp*")]
        os.kill(os.getpid(), _NUMBER)
    return _annotate(self, batch)


if __name__ == "__main__":
    _NUMBER = int(sys.argv.pop())
    generate.BATCH = _BATCH  # type: ignore[attr-defined]
    BatchAnnotator.__call__ = _stopped  # type: ignore[method-assign]
    sys.argv[1:1] = ["generate", "negatives", "captions.jsonl", "--out", "negatives.jsonl", "--workers", "1"]
    run()
