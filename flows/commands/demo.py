"""Corpus and config of the demo: ColorShape scenes in the layout of img2dataset, built like any other data."""

from pathlib import Path

import orjson

from pairwright.datasets.atomic_files import write_bytes
from pairwright.datasets.colorshape.corpus import CorpusSpec, list_box_labels, write_corpus
from pairwright.datasets.colorshape.scenes import COLOURS
from pairwright.datasets.records import compact_json
from pairwright.flows.config.build import BuildConfig, parse_config

TEMPLATES = ("a {}", "a picture of a {} and another shape")
SHARD_SIZE = 1_000


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
