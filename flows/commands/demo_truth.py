"""How the texts of a ColorShape build stand before the truth: the table in the demo's report.

Every kept negative has to be false of its scene, every kept positive and every turn true. A text outside the
oracle's grammar counts as wrong: bad English must not pass as false.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pairwright.datasets.colorshape.corpus import read_scene
from pairwright.datasets.colorshape.oracle.statements import OracleVerdict, judge
from pairwright.datasets.colorshape.oracle.turns import judge_turn
from pairwright.datasets.colorshape.scenes import Scene
from pairwright.datasets.record_tables import ANNOTATIONS, PAIRS
from pairwright.datasets.records import Annotation

EXPECTED_VERDICTS = {"hard_negative": OracleVerdict.FALSE, "hard_positive": OracleVerdict.TRUE}


def truth_table(root: Path) -> dict[str, Any]:
    """Return kept, true_share and outside of the negatives, positives and turns of a build from ColorShape.

    ``negatives`` are those in the shards; ``negatives before refinement`` all that the generator kept.
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
    right, outside = sum(fine for fine, _ in judged), sum(strange for _, strange in judged)
    return {"kept": len(judged), "true_share": right / len(judged) if judged else 1.0, "outside": outside}
