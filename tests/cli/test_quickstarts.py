"""Quickstart pages: their commands run on small inputs of the layouts that they describe."""

import csv
import json
import re
import shlex
import shutil
import tarfile
from collections.abc import Callable, Iterator
from contextlib import chdir
from functools import partial
from pathlib import Path

import polars as pl
import pytest

from pairwright.cli.errors.exit_codes import BELOW_TARGET
from pairwright.datasets.colorshape.corpus import CorpusSpec, make_sample, sample_to_json, write_corpus
from pairwright.generators.llm.testing.app import ServerApp
from pairwright.generators.llm.testing.script import ServerScript
from pairwright.generators.llm.testing.serving import serve_in_thread
from pairwright.generators.plausible_model.model import PlausibleModel
from tests.cli.conftest import Run

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "quickstart"
PAIRS = 20


def run_code(page: str, folder: Path) -> None:
    """Run the code with which a page makes its input."""
    [code] = re.findall(r"```python\n(.*?)```", (FOLDER / f"{page}.md").read_text(encoding="utf-8"), re.DOTALL)
    with chdir(folder):
        exec(compile(code, page, "exec"), {})  # noqa: S102 - our own page


def write_tables(folder: Path) -> None:
    rows = [sample_to_json(make_sample(0, index)) for index in range(PAIRS)]
    lines = [json.dumps({"image_id": row["key"], "captions": [row["caption"], *row["captions"]]}) for row in rows]
    (folder / "captions.jsonl").write_text("\n".join(lines))
    with (folder / "captions.csv").open("w", newline="") as handle:
        csv.writer(handle).writerows([["photo_id", "human_words"], *([row["key"], row["caption"]] for row in rows)])


def write_karpathy_split(folder: Path) -> None:
    rows = [sample_to_json(make_sample(0, index)) for index in range(PAIRS)]
    images = [
        {
            "filepath": "val2014",
            "filename": f"{index}.jpg",
            "cocoid": index,
            "split": ("train", "restval", "val", "test")[index % 4],
            "sentences": [{"raw": caption} for caption in (row["caption"], *row["captions"])],
        }
        for index, row in enumerate(rows)
    ]
    (folder / "dataset_coco.json").write_text(json.dumps({"images": images, "dataset": "coco"}))


def write_tars(folder: Path) -> None:
    for path in write_corpus(folder / "corpus", CorpusSpec(pairs=PAIRS)).files:
        if path.suffix == ".tar":
            (folder / "tars").mkdir(exist_ok=True)
            shutil.copy(path, folder / "tars" / path.name)


def write_photos(folder: Path) -> None:
    write_tars(folder)
    (folder / "photos").mkdir()
    with tarfile.open(folder / "tars" / "00000.tar") as tar:
        tar.extractall(folder / "photos", filter="data")


def write_photos_without_text(folder: Path) -> None:
    write_photos(folder)
    for path in [*folder.glob("photos/*.txt"), *folder.glob("photos/*.json")]:
        path.unlink()


def write_parquet(folder: Path) -> None:
    write_photos(folder)
    rows = [
        {"image": {"bytes": path.read_bytes(), "path": path.name}, "text": path.with_suffix(".txt").read_text()}
        for path in sorted((folder / "photos").glob("*.jpg"))
    ]
    (folder / "hf" / "data").mkdir(parents=True)
    for part in range(2):
        pl.DataFrame(rows[part::2]).write_parquet(folder / "hf" / "data" / f"train-0000{part}-of-00002.parquet")


INPUTS: dict[str, Callable[[Path], None]] = {
    "coco-json": partial(run_code, "coco-json"),
    "jsonl-csv": write_tables,
    "published-datasets": write_karpathy_split,
    "folder": write_photos,
    "photos": write_photos_without_text,
    "img2dataset-tars": write_tars,
    "hf-parquet": write_parquet,
    "embeddings": partial(run_code, "embeddings"),
}


@pytest.fixture
def _server(page: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """For pages that ask a model: a server that looks at the colours of images."""
    if page != "photos":
        yield
        return
    with serve_in_thread(ServerApp(ServerScript(), answer=PlausibleModel())) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield


def commands(page: str) -> list[list[str]]:
    """Return the commands of a page without the program's name."""
    lines = re.findall(r"^\$ pairwright (.*)$", (FOLDER / f"{page}.md").read_text(encoding="utf-8"), re.MULTILINE)
    return [shlex.split(line) for line in lines]


def test_every_quickstart_has_a_test_input() -> None:
    assert {page.stem for page in FOLDER.glob("*.md")} == set(INPUTS)


@pytest.mark.slow
@pytest.mark.parametrize("page", INPUTS)
@pytest.mark.usefixtures("_server")
def test_the_commands_of_a_quickstart_run_in_their_order(page: str, run: Run, tmp_path: Path) -> None:
    """Exit code 3 (below target) is expected: the inputs are too small to be refined well."""
    INPUTS[page](tmp_path)
    shown = commands(page)
    assert len(shown) >= 2
    for command in shown:
        done = run(*command, ok=False)
        assert done.returncode in {0, BELOW_TARGET}, (command, done.stderr)
        for option in ("--out", "--pairs", "--report"):
            if option in command:
                assert (tmp_path / command[command.index(option) + 1]).exists(), (command, option)
