"""``pairwright filter``: kept pairs, removed pairs with their reasons, and verbs that read the result."""

import json
from pathlib import Path

import polars as pl
import pytest
from PIL import Image

from tests.cli.conftest import Run
from tests.image_variants import as_jpeg, draw, resize

ROWS = [
    {"id": 1, "caption": "a dog", "image": "a.png"},
    {"id": 2, "caption": "a brown dog runs on the wet beach", "image": "b.png"},
    {"id": 3, "caption": "A brown dog runs on the wet beach.", "image": "b.png"},
    {"id": 4, "caption": "a red bus on a street", "image": "c.png"},
]


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    for name, size in (("a", (64, 64)), ("b", (64, 64)), ("c", (64, 8))):
        Image.new("RGB", size).save(tmp_path / f"{name}.png")
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path


def test_what_is_left_is_read_by_other_verbs_and_what_went_says_why(run: Run, rows: Path, tmp_path: Path) -> None:
    call = ["filter", rows, "--min-words", 3, "--near-duplicates", 0.9, "--max-aspect", 3, "--out", "kept.parquet"]
    printed = json.loads(run(*call, "--json").stdout)
    assert (printed["in"], printed["kept"], printed["rejected"]) == (4, 2, {"extreme_aspect_ratio": 1, "too_short": 1})
    assert sorted(pl.read_parquet(tmp_path / printed["rejected_out"])["reason"]) == [
        "extreme_aspect_ratio",
        "too_short",
    ]
    made = run("generate", "negatives", "kept.parquet", "--out", "n.jsonl", "--json")
    assert json.loads(made.stdout)["captions"] == 2


def test_a_broken_caption_of_a_row_that_is_read_is_no_pair(run: Run, tmp_path: Path) -> None:
    """It is counted separately, neither among the kept pairs nor among the removed ones."""
    lines = [
        {"id": 1, "captions": ["a dog on a bed", "", "a dog"]},
        {"id": 2, "caption": "a cat"},
        {"id": 3, "caption": ""},
    ]
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines))
    call = ["filter", "r.jsonl", "--min-words", 3, "--on-error", "skip", "--out", "k.parquet"]
    printed = json.loads(run(*call, "--json").stdout)
    assert (printed["in"], printed["kept"], printed["rejected"]) == (3, 1, {"empty_caption": 1, "too_short": 1})
    assert printed["broken_captions"] == {"empty_caption": 1}
    assert len(pl.read_parquet(tmp_path / "k.rejected.parquet")) == 3
    assert "Skipped of rows that were read: 1 caption (empty_caption 1)" in run(*call).stdout


def test_captions_in_other_languages_go(run: Run, tmp_path: Path) -> None:
    captions = [
        "a brown dog runs on the wet beach",
        "ein brauner Hund rennt am Strand",
        "un perro corre en la playa",
        "2 - 1",
    ]
    (tmp_path / "r.jsonl").write_text("".join(json.dumps({"caption": text}) + "\n" for text in captions))
    call = ["filter", "r.jsonl", "--language", "en", "--out", "k.parquet"]
    printed = json.loads(run(*call, "--json").stdout)
    assert (printed["kept"], printed["rejected"]) == (2, {"other_language": 2})
    assert list(pl.read_parquet(tmp_path / "k.parquet")["caption"]) == [captions[0], captions[3]]


def test_a_language_that_is_not_known_is_refused(run: Run, rows: Path) -> None:
    done = run("filter", rows, "--language", "english", "--out", "k.parquet", ok=False)
    assert done.returncode == 2
    assert "no such language: english. There are: ace, af, am" in done.stderr


def test_near_duplicates_of_other_images_go(run: Run, tmp_path: Path) -> None:
    lines = [{"id": at, "caption": "a brown dog runs on the wet beach"} for at in range(3)]
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines))
    printed = json.loads(run("filter", "r.jsonl", "--near-duplicates", 0.8, "--out", "k.parquet", "--json").stdout)
    assert (printed["kept"], printed["rejected"]) == (1, {"near_duplicate": 2})


def test_concepts_are_counted(run: Run, scenes: Path) -> None:
    shown = run("filter", scenes, "--concept-floor", 2, "--concept-cap", 3, "--out", "k.parquet").stdout
    assert "noun phrases" in shown
    assert "common_concepts" in shown


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--concept-floor", "3"],
        ["--clip-model", "x"],
        ["--min-words", "1", "--device", "cpu"],
        ["--min-words", "3", "--max-words", "2"],
    ],
)
def test_calls_that_cannot_work_are_refused(run: Run, captions: Path, options: list[str]) -> None:
    assert run("filter", captions, "--out", "k.parquet", *options, ok=False).returncode == 2
    assert run("filter", captions, "--min-words", "1", "--out", "k.jsonl", ok=False).returncode == 2


def test_no_kept_row_exits_with_3(run: Run, captions: Path) -> None:
    assert run("filter", captions, "--min-words", "99", "--out", "k.parquet", ok=False).returncode == 3


def test_images_of_unknown_size_are_counted_as_kept(run: Run, tmp_path: Path) -> None:
    lines = [{"id": 1, "caption": "dog"}, {"id": 2, "caption": "a brown dog on the beach"}]
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines))
    done = run("filter", "r.jsonl", "--min-words", 3, "--min-side", 64, "--out", "k.parquet", "--json")
    assert json.loads(done.stdout)["unknown_size"] == 1
    assert "1 image of unknown size kept." in done.stderr


def test_a_pair_whose_image_cannot_be_scored_goes_and_says_why(run: Run, rows: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the 'clip' extra is not installed")
    pytest.importorskip("transformers", reason="the 'clip' extra is not installed")
    from tests.indexes import tiny_clip

    model = tiny_clip.transformers_folder(tmp_path / "clip")
    (tmp_path / "cut.png").write_bytes((tmp_path / "a.png").read_bytes()[:40])
    lines = [
        {"id": 5, "caption": "a dog without a picture"},
        {"id": 6, "caption": "a dog that is gone", "image": "gone.png"},
        {"id": 7, "caption": "half a dog", "image": "cut.png"},
        {"id": 8, "caption": "a dog elsewhere", "image": "http://example.invalid/a.png"},
    ]
    rows.write_text(rows.read_text() + "".join(json.dumps(row) + "\n" for row in lines))
    call = ["filter", rows, "--min-clip-score", 1e-9, "--clip-model", model, "--device", "cpu", "--out", "k.parquet"]
    printed = json.loads(run(*call, "--json", ok=False).stdout)
    reasons = {name: printed["rejected"].get(name) for name in ("missing_image", "bad_image", "not_fetched")}
    assert reasons == {"missing_image": 2, "bad_image": 1, "not_fetched": 1}
    assert printed["in"] == printed["kept"] + sum(printed["rejected"].values())


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    """Rows of eight drawn images; images 0 and 1 are copies of evaluation images, 7 is a copy of 6."""
    (tmp_path / "val").mkdir()
    for seed in range(2):
        draw(seed).save(tmp_path / "val" / f"{seed}.png")
    drawn = [resize(draw(0), 0.5), as_jpeg(draw(1)), *map(draw, range(2, 7)), as_jpeg(draw(6))]
    for at, image in enumerate(drawn):
        image.save(tmp_path / f"{at}.png")
    rows = [{"id": at, "caption": f"picture {at}", "image": f"{at}.png"} for at in range(len(drawn))]
    rows.append({"id": "second caption", "caption": "the same picture", "image": "6.png"})
    (tmp_path / "pool.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path / "pool.jsonl"


def test_copies_of_evaluation_images_and_of_earlier_images_go(run: Run, pool: Path, tmp_path: Path) -> None:
    call = ["filter", pool, "--exclude-images", "val", "--near-duplicate-images", 31, "--out", "k.parquet"]
    printed = json.loads(run(*call, "--json").stdout)
    assert (printed["kept"], printed["rejected"]) == (
        6,
        {"copy_of_evaluation_image": 2, "near_duplicate_image": 1},
    )
    assert (printed["featureless"], printed["uncompared"]) == (0, 0)
    details = sorted(pl.read_parquet(tmp_path / "k.rejected.parquet")["detail"])
    assert [detail.split(":")[0].rpartition("/")[2] for detail in details] == ["6.png", "0.png", "1.png"]
    without = json.loads(run("filter", pool, "--near-duplicate-images", 31, "--out", "k.parquet", "--json").stdout)
    assert without["rejected"] == {"near_duplicate_image": 1}


def test_images_with_similar_embeddings_go(run: Run, pool: Path, tmp_path: Path) -> None:
    """Copies of evaluation images and of earlier images; a mirrored one, which has another hash, if the model says so."""
    pytest.importorskip("transformers", reason="the 'clip' extra is not installed")
    from tests.indexes import tiny_clip

    model = tiny_clip.transformers_folder(tmp_path / "clip")
    call = [
        "filter",
        pool,
        "--image-similarity",
        0.9999,
        "--clip-model",
        model,
        "--device",
        "cpu",
        "--out",
        "k.parquet",
    ]
    (tmp_path / "2.png").unlink()
    draw(3).save(tmp_path / "4.png")  # equal to 3.png
    printed = json.loads(run(*call, "--exclude-images", "val", "--json").stdout)
    details = dict(pl.read_parquet(tmp_path / "k.rejected.parquet").select("excerpt", "detail").iter_rows())
    assert "3.png: cosine 1.000" in details["picture 4"] or "bits differ" in details["picture 4"]
    assert printed["uncompared"] == 1
    assert printed["rejected"]["copy_of_evaluation_image"] >= 2
    alone = json.loads(run(*call, "--json").stdout)
    assert set(alone["rejected"]) == {"near_duplicate_image"}
    assert alone["uncompared"] == 1
    details = dict(pl.read_parquet(tmp_path / "k.rejected.parquet").select("excerpt", "detail").iter_rows())
    assert "the image is similar to" in details["picture 4"]
    assert "3.png: cosine 1.000" in details["picture 4"]
    assert "the same picture" not in details  # of the same file as an earlier pair


def test_images_that_cannot_be_compared_are_kept_and_counted(run: Run, rows: Path) -> None:
    """Uniform images have no hash: equal ones are not rejected as copies of each other."""
    call = ["filter", rows, "--near-duplicate-images", 31, "--out", "k.parquet"]
    (rows.parent / "c.png").unlink()
    printed = json.loads(run(*call, "--json").stdout)
    assert (printed["kept"], printed["featureless"], printed["uncompared"]) == (4, 3, 1)
    assert "3 images kept without a hash" in run(*call).stderr


def test_excluding_images_requires_images(run: Run, rows: Path, tmp_path: Path) -> None:
    (tmp_path / "val").mkdir()
    (tmp_path / "val" / "a.jpg").write_bytes(b"")
    refused = run("filter", rows, "--exclude-images", "val", "--out", "k.parquet", ok=False)
    assert (refused.returncode, "no readable image" in refused.stderr) == (1, True)


def test_rows_of_a_split_are_selected_and_the_others_removed_as_such(run: Run, tmp_path: Path) -> None:
    lines = [
        {"id": at, "caption": f"a brown dog {at}", "split": split} for at, split in enumerate(("train", "val", "test"))
    ]
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines))
    call = ["filter", "r.jsonl", "--where", "split=train,split=val", "--out", "k.parquet", "--json"]
    printed = json.loads(run(*call).stdout)
    assert (printed["in"], printed["kept"], printed["rejected"]) == (3, 2, {"not_selected": 1})
    wrong = run("filter", "r.jsonl", "--where", "split", "--out", "k.parquet", ok=False)
    assert wrong.returncode == 2
    assert "write it as split=train, or split=train,split=val" in wrong.stderr
