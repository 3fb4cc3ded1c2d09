"""Texts that an export format has no place for are counted, and are not in its files; all others are."""

import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from pairwright.datasets.exports.formats import EXPORTS, export, formats_with
from pairwright.datasets.records import Annotation, Example, Pair, Turn
from pairwright.datasets.shards.sample_source import source_from_records
from tests.datasets.sample_builders import conversation, negative, pair, picture, positive, rationale

TEXTS = {
    "hard_negatives": ("a blue circle", "a green circle"),
    "shuffled_negatives": ("circle red a",),
    "hard_positives": ("a crimson circle", "a scarlet circle"),
    "conversations": ("Yes, there is a circle.",),
    "rationales": ("Because it is round.",),
}


def texts_of(of: Pair) -> tuple[list[Annotation], list[Example]]:
    """Return texts of every kind; the second negative is compared with the second positive."""
    plain, compared = (replace(positive(of), id=text, text=text) for text in TEXTS["hard_positives"])
    negatives = [negative(of, text) for text in TEXTS["hard_negatives"]]
    shuffled = replace(negative(of, TEXTS["shuffled_negatives"][0]), form="shuffle", target="")
    turns = (Turn("human", "Is there a circle?"), Turn("assistant", TEXTS["conversations"][0]))
    talk = replace(conversation(of), turns=turns)
    annotations = [plain, compared, negatives[0], replace(negatives[1], positive_id=compared.id), shuffled, talk]
    return annotations, [replace(rationale(of), rationale=TEXTS["rationales"][0])]


def read_all(path: Path) -> str:
    """Return the content of a file, or of all files of a folder; tables as JSON."""
    files = [each for each in path.rglob("*") if each.is_file()] if path.is_dir() else [path]
    return "".join(
        json.dumps(pl.read_parquet(each).drop("image", "images", strict=False).to_dicts())
        if each.suffix == ".parquet"
        else each.read_bytes().decode(errors="replace")
        for each in files
    )


@pytest.mark.parametrize("to", EXPORTS.built_in)
def test_a_text_is_in_the_files_or_is_counted_as_omitted(tmp_path: Path, to: str) -> None:
    (tmp_path / "0.jpg").write_bytes(picture())
    of = pair(0, "a red circle", str(tmp_path / "0.jpg"))
    out = tmp_path / f"out{EXPORTS.get(to).suffixes[0]}"
    done = export(source_from_records([of], *texts_of(of)), to, out)
    written = read_all(out)
    counted = {kind: sum(text not in written for text in texts) for kind, texts in TEXTS.items()}
    assert {kind: count for kind, count in counted.items() if count} == done.omitted
    assert all(to not in formats_with(kind) for kind in done.omitted)
