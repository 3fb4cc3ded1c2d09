"""``pairwright export``: conversation files, images that are missing, texts that a layout has no place for."""

import base64
import gzip
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from PIL import Image

from pairwright.datasets.shards.reading import read_shard
from pairwright.datasets.shards.sample_source import load_image, source_from_records
from pairwright.datasets.shards.writing import write_shards
from pairwright.datasets.verification.checks import verify
from pairwright.training.loading.shard_index import SampleSelection, index_shards
from tests.cli.conftest import CAPTIONS, Run
from tests.datasets.sample_builders import image_files

EMBEDDING = ["webdataset", "hf", "croissant", "hf-parquet", "trl", "llamafactory"]


def chat(name: str, question: str, answer: str = "A dog.", **row: Any) -> dict[str, Any]:
    turns = [{"from": "human", "value": question}, {"from": "gpt", "value": answer}]
    return {"id": name, "conversations": turns, **row}


@pytest.fixture
def mixture(tmp_path: Path) -> Callable[[dict[str, str]], Path]:
    """Write a file of four rows with an image, the first and every other, and four without; ``named`` changes images."""
    for n in range(4):
        data = io.BytesIO()
        Image.new("RGB", (48, 32), (40 * n, 90, 120)).save(data, "JPEG")
        (tmp_path / f"{n}.jpg").write_bytes(data.getvalue())

    def write(named: dict[str, str]) -> Path:
        rows = []
        for n in range(4):
            image = f"{n}.jpg"
            rows.append(chat(f"image {n}", f"<image>\nWhat is {n}?", image=named.get(image, image)))
            rows.append(chat(f"text {n}", f"Why is it {n}?"))
        (tmp_path / "mixture.json").write_text(json.dumps(rows))
        return tmp_path / "mixture.json"

    return write


@pytest.mark.parametrize("given", ["file", "shards"])
@pytest.mark.parametrize("to", ["webdataset", "hf", "croissant"])
def test_rows_with_and_without_images_are_exported_to_shards_and_read_back(
    run: Run, tmp_path: Path, mixture: Callable[[dict[str, str]], Path], to: str, given: str
) -> None:
    path = mixture({})
    if given == "shards":
        (tmp_path / "mix.yaml").write_text(f"sources: [{{path: {path}}}]")
        run("mix", "mix.yaml", "--out", "shards")
        path = tmp_path / "shards"
    done = json.loads(run("export", path, "--to", to, "--out", "out", "--json").stdout)
    assert done["rows"] == 8
    folder = tmp_path / "out" if to == "webdataset" else tmp_path / "out" / "data"
    images = [[bool(sample.image) for sample in read_shard(folder / f"0000{n}.tar")] for n in (0, 1)]
    assert images == [[True] * 4, [False] * 4]
    assert verify(tmp_path / "out") == []
    for members, samples in ((frozenset[str](), 8), (frozenset({"image"}), 4)):
        assert sum(index_shards(folder, SampleSelection(members=members)).counts) == samples
    run("export", "out" if to == "webdataset" else "out/data", "--to", "llava", "--out", "back.json")
    rows = json.loads((tmp_path / "back.json").read_text())
    assert [("image" in row, "<image>" in row["conversations"][0]["value"]) for row in rows] == (
        [(True, True)] * 4 + [(False, False)] * 4
    )


def test_a_table_with_embedded_images_has_null_for_a_text_only_row(
    run: Run, tmp_path: Path, mixture: Callable[[dict[str, str]], Path]
) -> None:
    run("export", mixture({}), "--to", "hf-parquet", "--out", "out")
    images = pl.read_parquet(tmp_path / "out" / "data" / "train-00000.parquet")["image"]
    assert [image is None for image in images] == [False, True] * 4


def test_shards_of_texts_follow_those_of_images_of_all_inputs(
    run: Run, tmp_path: Path, mixture: Callable[[dict[str, str]], Path]
) -> None:
    run("export", mixture({}), "--to", "webdataset", "--out", "one")
    (tmp_path / "other.json").write_text(
        json.dumps([chat("text", "And?"), chat("image", "<image>\nO?", image="0.jpg")])
    )
    run("export", "other.json", "--to", "webdataset", "--out", "two")
    for options in ((), ("--samples", 3)):
        run("export", "one", "--append", "two", "--to", "webdataset", "--out", f"all{len(options)}", *options)
        folder = tmp_path / f"all{len(options)}"
        with_image = [bool(sample.image) for tar in sorted(folder.glob("*.tar")) for sample in read_shard(tar)]
        assert with_image == [True] * 5 + [False] * 5
        assert verify(folder) == []


@pytest.mark.parametrize("to", EMBEDDING)
def test_samples_whose_image_cannot_be_embedded_are_skipped_when_asked(
    run: Run, tmp_path: Path, mixture: Callable[[dict[str, str]], Path], to: str
) -> None:
    path = mixture({"1.jpg": "gone.jpg", "2.jpg": "https://example.org/x.jpg"})
    stopped = run("export", path, "--to", to, "--out", "stopped", ok=False)
    assert stopped.returncode == 1
    assert "gone.jpg: missing_image: cannot be read" in stopped.stderr
    assert "--on-error skip" in stopped.stderr
    done = run("export", path, "--to", to, "--out", "out", "--on-error", "skip", "--json")
    counts = json.loads(done.stdout)
    assert (counts["rows"], counts["broken"]) == (6, {"missing_image": 1, "not_fetched": 1})
    if to in {"webdataset", "hf", "croissant"}:
        assert verify(tmp_path / "out") == []
    if to in {"hf", "croissant"}:
        assert "6 captions (2 with an image)" in (tmp_path / "out" / "README.md").read_text()


@pytest.mark.parametrize("to", EMBEDDING)
def test_samples_whose_image_is_cut_off_are_skipped_when_asked(
    run: Run, tmp_path: Path, mixture: Callable[[dict[str, str]], Path], to: str
) -> None:
    path = mixture({})
    (tmp_path / "1.jpg").write_bytes((tmp_path / "1.jpg").read_bytes()[:300])
    done = run("export", path, "--to", to, "--out", "out", "--on-error", "skip", "--json")
    counts = json.loads(done.stdout)
    assert (counts["rows"], counts["broken"]) == (7, {"bad_image": 1})
    if to in {"webdataset", "hf", "croissant"}:
        assert verify(tmp_path / "out") == []


def test_an_export_that_stopped_can_be_repeated_as_its_message_says(
    run: Run, tmp_path: Path, mixture: Callable[[dict[str, str]], Path]
) -> None:
    path = mixture({"3.jpg": "gone.jpg"})
    given = ("export", path, "--to", "webdataset", "--samples", 1, "--out", "out")
    assert "--on-error skip" in run(*given, ok=False).stderr
    assert list((tmp_path / "out").glob("*")) == []
    run(*given, "--on-error", "skip")
    kept = {path: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert "--on-error skip" in run(*given, ok=False).stderr
    assert {path: path.read_bytes() for path in (tmp_path / "out").iterdir()} == kept


@pytest.mark.parametrize("to", EMBEDDING)
def test_no_row_is_written_if_no_image_can_be_embedded(run: Run, tmp_path: Path, to: str) -> None:
    (tmp_path / "gone.json").write_text(json.dumps([chat("image", "<image>\nWhat?", image="gone.jpg")]))
    done = run("export", "gone.json", "--to", to, "--out", "out", "--on-error", "skip", ok=False)
    assert done.returncode == 3
    assert "No row was written" in done.stderr


@pytest.mark.parametrize("row", [{}, {"image": "0.jpg"}])
def test_rows_of_two_files_are_joined_also_if_they_are_about_one_image(
    run: Run, tmp_path: Path, mixture: Callable[[dict[str, str]], Path], row: dict[str, str]
) -> None:
    mixture({})
    for name in ("one", "two"):
        (tmp_path / f"{name}.json").write_text(json.dumps([chat("same", f"Who is {name}?", **row)]))
        run("export", f"{name}.json", "--to", "webdataset", "--out", name)
    done = run("export", "one", "--append", "two", "--to", "webdataset", "--out", "both", "--json")
    assert json.loads(done.stdout)["rows"] == 2


def test_a_build_without_its_shards_is_exported_without_the_images_that_are_gone(
    run: Run, tmp_path: Path, mixture: Callable[[dict[str, str]], Path]
) -> None:
    mixture({})
    rows = [{"image": f"{n}.jpg", "caption": f"a red dog and {n} cats on a mat"} for n in range(4)]
    (tmp_path / "c.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "b.yaml").write_text(
        "name: b\ninput: {path: c.jsonl}\nnegatives: {types: [replace-object]}\nworkers: 1\n"
    )
    run("build", "b.yaml", "--out", "b", "--no-prefect")
    shutil.rmtree(tmp_path / "b" / "shards")
    (tmp_path / "2.jpg").unlink()
    assert run("export", "b", "--to", "hf-parquet", "--out", "o", ok=False).returncode == 1
    done = json.loads(run("export", "b", "--to", "hf-parquet", "--out", "o", "--on-error", "skip", "--json").stdout)
    assert (done["rows"], done["broken"]) == (3, {"missing_image": 1})


def test_pairs_whose_image_a_build_could_not_pack_are_counted(
    run: Run, tmp_path: Path, mixture: Callable[[dict[str, str]], Path]
) -> None:
    mixture({})
    (tmp_path / "2.jpg").unlink()
    rows = [{"image": f"{n}.jpg", "caption": f"a red dog and {n} cats on a mat"} for n in range(4)]
    (tmp_path / "c.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "b.yaml").write_text(
        "name: b\ninput: {path: c.jsonl, verify_images: 'off'}\nnegatives: {types: [replace-object]}\nworkers: 1\n"
    )
    run("build", "b.yaml", "--out", "b", "--no-prefect")
    done = run("export", "b", "--to", "parquet", "--out", "o.parquet", "--json")
    counts = json.loads(done.stdout)
    assert (counts["rows"], counts["unpacked_images"]) == (3, 1)
    assert "Pairs of 1 image omitted that the build could not pack" in done.stderr


def test_questions_that_are_images_alone_go_through_every_layout(
    run: Run, tmp_path: Path, mixture: Callable[[dict[str, str]], Path]
) -> None:
    mixture({})
    turns = [{"from": "human", "value": "<image>"}, {"from": "gpt", "value": "A dog."}]
    rows = [
        {"id": "captioning", "image": "0.jpg", "conversations": turns},
        {"id": "in context", "image": ["0.jpg", "1.jpg"], "conversations": turns * 2},
    ]
    (tmp_path / "bare.json").write_text(json.dumps(rows))
    (tmp_path / "mix.yaml").write_text("sources: [{path: bare.json}]")
    run("mix", "mix.yaml", "--out", "mixed.json")
    run("mix", "mix.yaml", "--out", "shards")
    assert run("verify", "mixed.json").returncode == 0
    assert verify(tmp_path / "shards") == []
    run("export", "shards", "--to", "trl", "--out", "trl")
    run("export", "trl/data/train-00000.parquet", "--to", "llava", "--out", "llava.json")
    for name in ("mixed.json", "llava.json"):
        written = json.loads((tmp_path / name).read_text())
        assert [row["conversations"] for row in written] == [turns, turns * 2]
    run("export", "shards", "--to", "openai", "--out", "chat.jsonl")
    first, second = (json.loads(line)["messages"] for line in (tmp_path / "chat.jsonl").read_text().splitlines())
    assert [[part["type"] for part in said["content"]] for said in (first[0], *second[::2])] == [["image_url"]] * 3


def test_columns_with_other_names_are_named(run: Run, tmp_path: Path) -> None:
    (tmp_path / "qa.csv").write_text("q,a\nWho is it?,A dog.\n")
    done = run("export", "qa.csv", "--to", "llava", "--out", "o.json", ok=False)
    assert "--columns question=NAME,answer=NAME" in done.stderr
    run("export", "qa.csv", "--columns", "question=q,answer=a", "--to", "llava", "--out", "o.json")
    [row] = json.loads((tmp_path / "o.json").read_text())
    assert [turn["value"] for turn in row["conversations"]] == ["Who is it?", "A dog."]
    (tmp_path / "n.jsonl").write_text(json.dumps({"caption": "A dog.", "negative": "A cat."}))
    done = run("export", "n.jsonl", "--columns", "question=q", "--to", "sugarcrepe", "--out", "s.json", ok=False)
    assert done.returncode == 2
    assert "--columns requires a file of conversations" in done.stderr


@pytest.mark.parametrize("to", ["sugarcrepe", "negclip", "llava"])
def test_a_truncated_file_of_rows_is_reported_as_such(run: Run, tmp_path: Path, to: str) -> None:
    """It was called a conversation file, which cannot be exported so."""
    rows = {str(n): {"filename": f"{n}.jpg", "caption": f"a dog {n}", "negative_caption": "a cat"} for n in range(99)}
    (tmp_path / "swap_att.json.gz").write_bytes(gzip.compress(json.dumps(rows).encode())[:-20])
    done = run("export", "swap_att.json.gz", "--to", to, "--out", "out.json", ok=False)
    assert "swap_att.json.gz: cannot be read (Compressed file ended before" in done.stderr


def test_files_of_rows_cannot_be_joined_and_the_way_to_shards_is_told(run: Run, tmp_path: Path) -> None:
    """It was: `--columns requires a file of conversations as INPUT`, which it was."""
    (tmp_path / "chat.jsonl").write_text('{"image": "a.jpg", "q": "What is it?", "a": "A cat."}\n')
    (tmp_path / "shards").mkdir()
    columns = ("--columns", "question=q,answer=a")
    for given in (["chat.jsonl", "--append", "shards", *columns], ["shards", "--append", "chat.jsonl"]):
        done = run("export", *given, "--to", "llava", "--out", "out.json", ok=False)
        assert (
            "--append joins builds and shards, and chat.jsonl is a file of rows. Write its shards first" in done.stderr
        )


def test_the_command_names_the_layouts_that_have_the_omitted_texts(run: Run, tmp_path: Path) -> None:
    source = source_from_records(*image_files(tmp_path / "pool", 3))
    write_shards(map(load_image, source.samples()), tmp_path / "shards")
    done = run("export", "shards", "--to", "negclip", "--out", "x.tsv", "--json")
    omitted = json.loads(done.stdout)["omitted"]
    assert {kind: each["texts"] for kind, each in omitted.items()} == {"conversations": 3, "hard_positives": 3}
    assert omitted["hard_positives"]["carried_by"] == ["parquet", "hf", "hf-parquet", "croissant", "webdataset"]
    assert "3 hard positives omitted" in done.stderr
    assert all(name in done.stderr for name in omitted["hard_positives"]["carried_by"])
    assert json.loads(run("export", "shards", "--to", "hf", "--out", "hub", "--json").stdout)["omitted"] == {}


def test_a_conversation_file_gives_preferences(run: Run, tmp_path: Path) -> None:
    rows = [chat("one", "Is there a star?", "No, there is no star."), chat("two", "What is it?", "A circle.")]
    (tmp_path / "talks.json").write_text(json.dumps(rows))
    run("export", "talks.json", "--to", "trl-dpo", "--out", "dpo")
    [row] = pl.read_parquet(tmp_path / "dpo" / "data" / "train-00000.parquet").to_dicts()
    assert row["rejected"][0]["content"][0]["text"] == "Yes, there is a star."


def test_images_of_a_file_are_embedded_in_chat_messages(
    run: Run, tmp_path: Path, mixture: Callable[[dict[str, str]], Path]
) -> None:
    """They were named by relative paths, which the API does not take."""
    run("export", mixture({"1.jpg": "https://example.org/x.jpg"}), "--to", "openai", "--out", "chat.jsonl")
    rows = [json.loads(line)["messages"] for line in (tmp_path / "chat.jsonl").read_text().splitlines()]
    shown = [message["content"][0]["image_url"]["url"] for message, _ in rows if isinstance(message["content"], list)]
    assert [url.partition(",")[0] for url in shown] == [
        "data:image/jpeg;base64",
        "https://example.org/x.jpg",
        "data:image/jpeg;base64",
        "data:image/jpeg;base64",
    ]
    assert base64.b64decode(shown[0].partition(",")[2]) == (tmp_path / "0.jpg").read_bytes()


def test_images_of_a_build_are_named_from_the_folder_that_a_trainer_starts_in(run: Run, tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    rows = []
    for number, caption in enumerate(CAPTIONS):
        Image.new("RGB", (8, 8), (20 * number, 0, 0)).save(tmp_path / "photos" / f"{number}.png")
        rows.append({"image": f"photos/{number}.png", "caption": caption})
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "b.yaml").write_text("name: b\ninput: {path: rows.jsonl}\nnegatives: {}\nshards: {}\nworkers: 1\n")
    run("build", "b.yaml", "--no-prefect", "--quiet")
    run("export", "build/b", "--to", "negclip", "--image-root", ".", "--out", "n.tsv")
    names = pl.read_csv(tmp_path / "n.tsv", separator="\t")["filepath"].to_list()
    assert names
    assert all((tmp_path / name).is_file() for name in names)
    assert names[0].startswith("photos/")
    refused = run("export", "build/b", "--to", "webdataset", "--image-root", ".", "--out", "s", ok=False)
    assert refused.returncode == 2
    assert "or a format that names image files" in refused.stderr


def test_images_that_are_ids_are_noted_with_the_way_to_name_files(run: Run, tmp_path: Path) -> None:
    (tmp_path / "talks.json").write_text(json.dumps([chat("one", "<image>\nWhat is it?", image="73")]))
    done = run("export", "talks.json", "--to", "llava", "--out", "out.json")
    assert "The rows name 1 image that are not there" not in done.stderr
    assert "name the files when the texts are made: --columns image='{image_id:012}.jpg'" in done.stderr
