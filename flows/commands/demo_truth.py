"""Truth of the texts of a ColorShape build: the table in the report of the demo.

Kept negatives have to be false of their scene, kept positives and turns true. A text outside of the grammar of the oracle
counts as wrong: bad English must not count as false.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pairwright.datasets.colorshape.corpus import read_scene
from pairwright.datasets.colorshape.oracle.judge import OracleVerdict, judge, judge_turn
from pairwright.datasets.colorshape.scenes import Scene
from pairwright.datasets.record_tables import ANNOTATIONS, PAIRS
from pairwright.datasets.records import Annotation

EXPECTED_VERDICTS = {"hard_negative": OracleVerdict.FALSE, "hard_positive": OracleVerdict.TRUE}


def truth_table(root: Path) -> dict[str, Any]:
    """Return ``kept``, ``true_share`` and ``outside`` of the negatives, positives and turns of a ColorShape build.

    ``negatives`` are those in the shards, ``negatives before refinement`` all that the generator kept.
    """
    scenes = {pair.key: read_scene(pair) for path in sorted((root / "pairs").glob("*")) for pair in PAIRS.read(path)}
    final = list(_annotations(root, "annotations"))
    sets = {
        "negatives": [row for row in final if row.kind == "hard_negative"],
        "negatives before refinement": list(_annotations(root, "candidates")),
        "positives": [row for row in final if row.kind == "hard_positive"],
    }
    table = {name: _share(_judged(rows, scenes)) for name, rows in sets.items() if rows}
    table["turns"] = _share(_judged_turns(final, scenes))
    return table


def _annotations(root: Path, folder: str) -> Iterator[Annotation]:
    for path in sorted((root / folder).glob("*.parquet")):
        yield from ANNOTATIONS.read(path)


def _judged(rows: Iterable[Annotation], scenes: dict[str, Scene]) -> Iterator[tuple[bool, bool]]:
    for row in rows:
        verdict = judge(row.text, scenes[row.key])
        yield verdict is EXPECTED_VERDICTS[row.kind], verdict is OracleVerdict.OUTSIDE


def _judged_turns(rows: Iterable[Annotation], scenes: dict[str, Scene]) -> Iterator[tuple[bool, bool]]:
    for row in rows:
        for question, answer in zip(row.turns[::2], row.turns[1::2], strict=True):
            verdict = judge_turn(question.text, answer.text, scenes[row.key])
            yield verdict is OracleVerdict.TRUE, verdict is OracleVerdict.OUTSIDE


def _share(verdicts: Iterable[tuple[bool, bool]]) -> dict[str, Any]:
    judged = list(verdicts)
    correct, outside = (sum(column) for column in zip(*judged, strict=True)) if judged else (0, 0)
    return {"kept": len(judged), "true_share": correct / len(judged) if judged else 1.0, "outside": outside}
