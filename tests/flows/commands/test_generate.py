"""A generator over any input: the rows do not depend on the processes, and each caption counts once in the pool."""

import json
import subprocess
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from pairwright.datasets.colorshape.corpus import make_sample, sample_to_pair
from pairwright.datasets.readers.pairs import ReadOptions
from pairwright.flows.commands import generate
from pairwright.flows.commands.generate import GenerateRequest, read_pool, run_generator, tag_pool
from pairwright.flows.runners import ordered_pool
from pairwright.flows.runners.ordered_pool import OrderedPool

IMAGES, BATCH = 52, 64  # of four captions: several batches


@pytest.fixture(scope="module")
def captions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("captions") / "in.jsonl"
    pairs = (sample_to_pair(make_sample(5, number)) for number in range(IMAGES))
    rows = ({"id": str(at), "captions": [pair.caption, *pair.captions]} for at, pair in enumerate(pairs))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def request(captions: Path, out: Path, workers: int) -> GenerateRequest:
    read = ReadOptions(input=str(captions), explode=True, on_error="skip", verify_images="off")
    return GenerateRequest("rules-negatives", {}, 3, read, "", out, workers=workers)


def test_the_rows_are_the_same_in_batches_of_any_size(
    captions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for size in (BATCH, 10 * BATCH):
        monkeypatch.setattr(generate, "BATCH", size)
        assert run_generator(request(captions, tmp_path / f"{size}.jsonl", 1), print)["captions"] > 2 * BATCH
    assert (tmp_path / f"{BATCH}.jsonl").read_bytes() == (tmp_path / f"{10 * BATCH}.jsonl").read_bytes()


@pytest.mark.slow
def test_the_rows_are_the_same_for_one_process_and_several(
    captions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ordered_pool, "MAX_JOBS_ALONE", 0)  # so few would be done in this process
    monkeypatch.setattr(generate, "BATCH", BATCH)
    results = []
    for workers in (1, 2):
        found = run_generator(request(captions, tmp_path / f"{workers}.jsonl", workers), print)
        results.append({name: found[name] for name in ("captions", "types", "account", "broken")})
    assert (tmp_path / "1.jsonl").read_bytes() == (tmp_path / "2.jsonl").read_bytes()
    assert results[0] == results[1]
    assert results[0]["captions"] > 2 * BATCH


KILLED = """
import os, sys
from dataclasses import replace
from itertools import product
from pathlib import Path
from pairwright.datasets.atomic_files import replace_atomically
with replace_atomically(Path(sys.argv[1])) as temporary:
    temporary.write_text("half")
    os._exit(9)
"""


def test_what_a_killed_run_left_half_written_is_gone_after_the_next(tmp_path: Path) -> None:
    given, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    given.write_text(json.dumps({"id": "1", "caption": "A dog on a mat."}))
    subprocess.run([sys.executable, "-c", KILLED, str(out)], check=False)
    assert len(list(tmp_path.iterdir())) == 2
    run_generator(request(given, out, 1), print)
    assert set(tmp_path.iterdir()) == {given, out}


def test_each_caption_of_an_image_counts_once(tmp_path: Path) -> None:
    rows = [{"id": "1", "captions": ["A dog.", "A cat on a mat.", "A dog."]}, {"id": "2", "captions": ["A dog."]}]
    path = tmp_path / "in.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    with OrderedPool(1) as crew:
        captions, _ = read_pool(request(path, tmp_path / "out.jsonl", 1))
        pool = tag_pool(captions, crew)
    assert pool.counts.captions == 3
    assert pool.counts.frozen().frequency("dog", "NOUN") == 2
    assert set(pool.tokens) == {"A dog.", "A cat on a mat."}


PHOTOGRAPHS = [f"A {one} is sitting on a {place} next to a {other}." for one, place, other in product(
    ("man", "cat", "dog"), ("bench", "table", "bed"), ("woman", "plate", "window")
)]  # fmt: skip


def test_captions_of_photographs_are_edited_by_the_bundled_model_whatever_the_pool_is(tmp_path: Path) -> None:
    given, pool, notes = tmp_path / "in.jsonl", tmp_path / "pool.jsonl", list[str]()
    for path, captions in ((given, PHOTOGRAPHS), (pool, [each.replace(" is ", " was ") for each in PHOTOGRAPHS] * 9)):
        path.write_text("".join(json.dumps({"caption": each}) + "\n" for each in captions), encoding="utf-8")
    without = request(given, tmp_path / "without.jsonl", 1)
    found = run_generator(without, notes.append)
    run_generator(replace(without, pool=str(pool), out=tmp_path / "with.jsonl"), notes.append)
    assert (tmp_path / "without.jsonl").read_bytes() == (tmp_path / "with.jsonl").read_bytes()
    assert found["types"]["replace-object"]["kept"] > len(PHOTOGRAPHS) / 2
    assert not notes


def test_captions_of_a_pool_are_not_kept_if_the_bundled_model_fits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: GenerateRequest) -> None:
        raise AssertionError("the whole pool was read")

    monkeypatch.setattr(generate, "read_pool", refuse)
    given = tmp_path / "in.jsonl"
    given.write_text("".join(json.dumps({"caption": each}) + "\n" for each in PHOTOGRAPHS), encoding="utf-8")
    assert run_generator(request(given, tmp_path / "out.jsonl", 1), print)["captions"] == len(PHOTOGRAPHS)


def test_a_few_captions_of_other_words_are_edited_with_a_note(tmp_path: Path) -> None:
    given, notes = tmp_path / "in.jsonl", list[str]()
    given.write_text(json.dumps({"caption": "The mitochondrion phosphorylates an enzyme."}), encoding="utf-8")
    run_generator(request(given, tmp_path / "out.jsonl", 1), notes.append)
    assert any("Too few captions" in each for each in notes)
