"""A small corpus of ColorShape texts, and a build of it that several tests look at."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pairwright.datasets.colorshape.corpus import CorpusSpec, vocabulary, write_corpus
from pairwright.flows.config import BuildConfig, parse_config

QUERIES = [f"a {colour} {shape}" for colour in ("red", "blue") for shape in ("circle", "square", "star")]


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with 160 scenes as text (`captions.jsonl`), 60 as shards with pictures, and queries."""
    folder = tmp_path_factory.mktemp("corpus")
    write_corpus(folder / "text", CorpusSpec(pairs=160, images=False))
    write_corpus(folder / "pictures", CorpusSpec(pairs=60, shard_size=40))
    (folder / "queries.txt").write_text("\n".join(QUERIES))
    return folder


def settings(corpus: Path, **changes: Any) -> dict[str, Any]:
    """Return a config with every section, over the text corpus, as a mapping to change."""
    config: dict[str, Any] = {
        "name": "test",
        "input": {"path": str(corpus / "text" / "captions.jsonl")},
        "retrieve": {"queries": str(corpus / "queries.txt"), "k": 30},
        "negatives": {},
        "positives": {},
        "conversations": {"vocabulary": list(vocabulary())},
        "refine": {"cells": 10},
        "shards": {"samples": 40},
        "part_size": 64,
        "workers": 1,
    }
    return {**config, **changes}


def checked(data: Mapping[str, Any]) -> BuildConfig:
    return parse_config(data, where="test")
