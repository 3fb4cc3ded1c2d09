"""A small corpus of ColorShape texts, a config over it, and a Prefect server."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from pairwright.datasets.colorshape.corpus import CorpusSpec, list_box_labels, write_corpus
from pairwright.flows.build import build
from pairwright.flows.config.build import BuildConfig, parse_config
from pairwright.flows.prefect.server import own_server
from tests.servers.warm_command_line import ROOT, warm_command_line

Run = Callable[..., subprocess.CompletedProcess[str]]

QUERIES = [f"a {colour} {shape}" for colour in ("red", "blue") for shape in ("circle", "square", "star")]


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with 80 scenes as text (`captions.jsonl`), 60 as shards with pictures, and queries.

    The texts are too few to train an edit model of, which takes half the time of a build; of those in `large` one is.
    """
    folder = tmp_path_factory.mktemp("corpus")
    write_corpus(folder / "large", CorpusSpec(pairs=80, images=False))
    rows = [json.loads(line) for line in (folder / "large" / "captions.jsonl").read_text().splitlines()]
    (folder / "text").mkdir()
    with (folder / "text" / "captions.jsonl").open("w") as file:
        file.writelines(json.dumps({**row, "captions": row["captions"][:1]}) + "\n" for row in rows)
    write_corpus(folder / "pictures", CorpusSpec(pairs=60, shard_size=40))
    (folder / "queries.txt").write_text("\n".join(QUERIES))
    return folder


@pytest.fixture(scope="session")
def built(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An undisturbed build with every stage; to change it, copy it."""
    out = tmp_path_factory.mktemp("built") / "build"
    build(checked(settings(corpus)), out, prefect=False)
    return out


@pytest.fixture(scope="session")
def with_server(prefect_database: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """An environment that names a Prefect server, for processes that need not start one of their own: seconds each."""
    home = tmp_path_factory.mktemp("server")
    shutil.copytree(os.environ["PREFECT_HOME"], home, dirs_exist_ok=True)  # with its database
    with ExitStack() as ending:
        with patch.dict(os.environ, {"PREFECT_HOME": str(home)}):
            url = ending.enter_context(own_server(0))
            environment = {**os.environ, "PREFECT_API_URL": url}
        yield environment


@pytest.fixture(scope="session")
def through_prefect(with_server: dict[str, str]) -> Iterator[Run]:
    """Run a module that runs flows with that server, in a process that need not import Prefect anew: seconds each.

    Not in this process: whoever has run a flow cannot fork any more, and data loaders in other tests do.
    """
    with ExitStack() as ending:
        with patch.dict(os.environ, with_server):
            line = ending.enter_context(warm_command_line("pairwright.flows.prefect.api"))

        def run(module: str, *arguments: object) -> subprocess.CompletedProcess[str]:
            with patch.dict(os.environ, with_server):
                return line.run([*map(str, arguments)], ROOT, module)

        yield run


def settings(corpus: Path, **changes: Any) -> dict[str, Any]:
    """Return a config with every section, over the text corpus, as a mapping to change."""
    config: dict[str, Any] = {
        "name": "test",
        "input": {"path": str(corpus / "text" / "captions.jsonl")},
        "retrieve": {"queries": str(corpus / "queries.txt"), "k": 30},
        "negatives": {},
        "positives": {},
        "conversations": {"vocabulary": list(list_box_labels())},
        "refine": {"cells": 10},
        "shards": {"samples": 20},
        "part_size": 32,
        "workers": 1,
    }
    return {**config, **changes}


def checked(data: Mapping[str, Any]) -> BuildConfig:
    return parse_config(data, where="test")
