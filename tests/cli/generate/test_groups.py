"""``pairwright generate groups``: two images and two texts, each a hard negative of the other."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run

POOL = {
    "dog": ["A brown dog runs on the beach.", "a dog by the sea"],
    "horse": ["A brown horse runs on the beach.", "a horse in the sand"],
    "white": ["a man next to a white horse", "a horse stands still"],
    "black": ["a man next to a black horse", "a tall horse"],
    "both": ["a woman next to a black cat", "the woman has a white cat too"],
    "one": ["a woman next to a white cat", "a cat and a lady"],
}


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    rows = [{"image": f"{name}.jpg", "captions": captions} for name, captions in POOL.items()]
    (tmp_path / "pool.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path / "pool.jsonl"


def groups(run: Run, pool: Path, *options: object) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    printed = json.loads(run("generate", "groups", pool, "--out", "g.jsonl", "--json", *options).stdout)
    rows = [json.loads(line) for line in (pool.parent / "g.jsonl").read_text().splitlines()]
    assert printed["candidates"] == printed["groups"] + sum(printed["rejected"].values())
    assert len(rows) == printed["groups"]
    return printed, rows


def test_captions_of_two_images_that_differ_in_one_word_make_a_group(run: Run, pool: Path) -> None:
    printed, rows = groups(run, pool)
    assert printed["types"] == {"replace-attribute": 1, "replace-object": 1}
    images = [[Path(row[name]).stem for name in ("image_0", "image_1")] for row in rows]
    assert images == [["dog", "horse"], ["white", "black"]]
    assert [rows[0]["caption_0"], rows[0]["caption_1"], rows[0]["id"]] == [POOL["dog"][0], POOL["horse"][0], 0]


def test_a_text_that_another_caption_of_the_image_states_makes_no_group(run: Run, pool: Path) -> None:
    """The woman of the first image has a white cat too."""
    printed, _ = groups(run, pool)
    assert printed["rejected"] == {"true_of_image": 1}


def test_negatives_that_are_captions_of_another_image_are_candidates(run: Run, pool: Path) -> None:
    """The two texts differ in two words, so only the file of negatives brings them together."""
    pair = {"caption": "a man next to a white horse", "negative": "A Brown Dog runs on the beach", "image": "white.jpg"}
    (pool.parent / "n.jsonl").write_text(json.dumps({**pair, "status": "kept"}) + "\n")
    without, _ = groups(run, pool)
    printed, _ = groups(run, pool, "--negatives", "n.jsonl")
    assert printed["candidates"] == without["candidates"] + 1


def test_an_image_is_in_no_more_groups_than_asked(run: Run, tmp_path: Path) -> None:
    names = ["dog", "horse", "cow", "sheep"]
    rows = [{"image": f"{name}.jpg", "caption": f"A brown {name} stands on the beach."} for name in names]
    (tmp_path / "pool.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for limit, most in ((1, 1), (2, 2), (0, 3)):
        _, found = groups(run, tmp_path / "pool.jsonl", "--per-image", limit)
        used = [row[name] for row in found for name in ("image_0", "image_1")]
        assert max(map(used.count, used)) == most


def test_a_pool_without_groups_exits_with_3_and_other_extensions_are_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "pool.jsonl").write_text('{"image": "a.jpg", "caption": "a dog on a bed"}\n')
    assert run("generate", "groups", "pool.jsonl", "--out", "g.jsonl", ok=False).returncode == 3
    assert run("generate", "groups", "pool.jsonl", "--out", "g.csv", ok=False).returncode == 2
