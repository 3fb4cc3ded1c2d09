"""Round trips of arbitrary captions through every format, and reading of real data."""

import csv
import io
import json
import tarfile
from codecs import BOM_UTF8
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from pairwright.datasets.readers.pairs import ReadOptions, read_pairs
from pairwright.datasets.record_tables import PAIRS, REJECTS
from pairwright.datasets.records import Pair
from pairwright.datasets.rejects import EXCERPT_LENGTH, make_reject
from tests.example_counts import examples

CONTROLS = "".join(map(chr, (*range(9), *range(14, 32), 127)))  # all but whitespace are rejected
CAPTION = st.text(st.characters(codec="utf-8", exclude_characters=CONTROLS), min_size=1).filter(
    lambda text: not text.isspace()
)
CAPTIONS = st.lists(CAPTION, min_size=1, max_size=5, unique=True)


def pairs_of(path: Path, *, explode: bool = False, verify: bool = True) -> list[Pair]:
    options = ReadOptions(str(path), explode=explode, verify_images="header" if verify else "off")
    return [pair for batch in read_pairs(options) for pair in batch.pairs]


def captions_of(path: Path) -> list[str]:
    return [pair.caption for pair in pairs_of(path)]


@given(CAPTIONS)
@settings(max_examples=examples(60))
def test_any_caption_comes_back_from_every_format(captions: list[str]) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        with (folder / "a.jsonl").open("w", encoding="utf-8", newline="") as lines:
            lines.writelines(json.dumps({"caption": caption}) + "\n" for caption in captions)
        for path, delimiter in ((folder / "a.csv", ","), (folder / "a.tsv", "\t")):
            with path.open("w", encoding="utf-8", newline="") as file:
                csv.writer(file, delimiter=delimiter, quoting=csv.QUOTE_ALL).writerows([["caption"], *zip(captions)])
        pl.DataFrame({"caption": captions}).write_parquet(folder / "a.parquet")
        with tarfile.open(folder / "a.tar", "w") as archive:
            for number, caption in enumerate(captions):
                data = json.dumps({"caption": caption}).encode()
                info = tarfile.TarInfo(f"{number}.json")
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
        for ending in ("jsonl", "csv", "tsv", "parquet", "tar"):
            assert captions_of(folder / f"a.{ending}") == captions, ending


@given(CAPTIONS)
@settings(max_examples=examples(30))
def test_any_captions_of_an_image_are_kept_together_or_taken_apart(captions: list[str]) -> None:
    with TemporaryDirectory() as name:
        path = Path(name) / "a.jsonl"
        path.write_text(json.dumps({"id": 1, "captions": captions}))
        (together,) = pairs_of(path)
        apart = pairs_of(path, explode=True)
        assert (together.caption, *together.captions) == tuple(captions)
        assert [pair.caption for pair in apart] == captions
        assert all({pair.caption, *pair.captions} == set(captions) for pair in apart)
        PAIRS.write(apart, Path(name) / "pairs.parquet")
        assert pairs_of(Path(name) / "pairs.parquet") == apart


@given(st.binary(max_size=300))
@settings(max_examples=examples(200))
def test_any_bytes_as_a_line_are_a_pair_or_a_rejection(line: bytes) -> None:
    with TemporaryDirectory() as name:
        path = Path(name) / "a.jsonl"
        path.write_bytes(b'{"caption": "good"}\n' + line + b"\n")
        batches = list(read_pairs(ReadOptions(str(path), on_error="skip")))
        texts = [piece.removeprefix(BOM_UTF8) for piece in path.read_bytes().split(b"\n")]
        lines = [text for text in texts if text and not text.isspace()]
        assert sum(batch.candidates for batch in batches) == len(lines)


@given(st.text(), st.text(), st.one_of(st.text(), st.binary(), st.dictionaries(st.text(), st.floats())))
def test_any_rejection_can_be_stored(place: str, detail: str, raw: object) -> None:
    made = make_reject(place, "broken_json", detail, raw)
    assert len(made.excerpt) <= EXCERPT_LENGTH
    assert "\n" not in made.detail
    assert REJECTS.records(REJECTS.frame([made])) == [made]


def test_the_real_coco_captions_read_without_a_loss(real_data: Path) -> None:
    path = real_data / "coco_captions" / "captions.jsonl"
    pairs = pairs_of(path)
    assert len(pairs) == len({pair.key for pair in pairs}) == 20_264
    written = [json.loads(line)["captions"] for line in path.read_text().splitlines()]
    assert [[pair.caption, *pair.captions] for pair in pairs] == [list(dict.fromkeys(row)) for row in written]


def test_real_boxes_are_fractions_and_all_are_kept(real_data: Path) -> None:
    path = real_data / "llava_caps_boxes" / "caps_boxes.jsonl"
    pairs = pairs_of(path, verify=False)
    written = [json.loads(line)["instances"] for line in path.read_text().splitlines()]
    assert [[box.label for box in pair.boxes] for pair in pairs] == [
        [box["category"] for box in row] for row in written
    ]
    corners = [(box.x1, box.y1, box.x2, box.y2) for pair in pairs for box in pair.boxes]
    assert corners == [tuple(box["bbox"]) for row in written for box in row]
