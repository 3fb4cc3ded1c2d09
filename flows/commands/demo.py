"""The demo: a corpus of ColorShape scenes in the layout of img2dataset, the config of its build, and the truth of its texts.

The truth is the table in the report of the demo. Kept negatives have to be false of their scene, kept positives and turns
true. A text outside of the grammar of the oracle counts as wrong: bad English must not count as false.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import orjson

from pairwright.datasets.atomic_files import write_bytes
from pairwright.datasets.colorshape.corpus import CorpusSpec, list_box_labels, read_scene, write_corpus
from pairwright.datasets.colorshape.oracle.statements import OracleVerdict, judge
from pairwright.datasets.colorshape.oracle.turns import judge_turn
from pairwright.datasets.colorshape.scenes import COLOURS, Scene
from pairwright.datasets.record_tables import ANNOTATIONS, PAIRS
from pairwright.datasets.records import Annotation, compact_json
from pairwright.flows.config.build import BuildConfig, parse_config

TEMPLATES = ("a {}", "a picture of a {} and another shape")
SHARD_SIZE = 1_000
EXPECTED_VERDICTS = {"hard_negative": OracleVerdict.FALSE, "hard_positive": OracleVerdict.TRUE}


def write_demo_corpus(folder: Path, pairs: int, seed: int) -> None:
    """Write the corpus and the queries into ``folder``, unless an earlier run did."""
    spec = CorpusSpec(pairs=pairs, seed=seed, shard_size=SHARD_SIZE)
    done = compact_json({"pairs": pairs, "seed": seed}).encode()
    marker = folder / "corpus.json"
    if marker.is_file() and marker.read_bytes() == done:
        return
    for old in [marker, *folder.glob("*.tar")]:
        old.unlink(missing_ok=True)
    write_corpus(folder, spec)
    concepts = [f"{colour} {shape}" for colour in COLOURS for shape in list_box_labels()]
    queries = {"colorshape": {"classes": concepts, "templates": list(TEMPLATES)}}
    write_bytes(folder / "queries.json", orjson.dumps(queries, option=orjson.OPT_INDENT_2))
    write_bytes(marker, done)


def demo_config(folder: Path, pairs: int, seed: int) -> BuildConfig:
    """Return the config that builds the dataset from the corpus in ``folder``."""
    last = -(-pairs // SHARD_SIZE) - 1
    pattern = "00000.tar" if last == 0 else f"{{00000..{last:05d}}}.tar"
    return parse_config(
        {
            "name": "colorshape-demo",
            "seed": seed,
            "input": {"path": str(folder / pattern), "source": "colorshape"},
            "retrieve": {"queries": str(folder / "queries.json"), "k": 150},
            "negatives": {},
            "positives": {},
            "conversations": {"vocabulary": list(list_box_labels())},
            "refine": {"cells": 20},
            "shards": {"samples": 500},
            "part_size": 500,
        },
        where="demo",
    )


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
