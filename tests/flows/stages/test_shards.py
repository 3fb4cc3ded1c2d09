"""Which samples a shard holds is planned from their number and size, before anything is written."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairwright.datasets.colorshape.corpus import CorpusSpec, write_corpus
from pairwright.datasets.shards.reading import read_shard
from pairwright.flows.build import build
from pairwright.flows.commands.plan import estimate_build
from pairwright.flows.config.sections import ShardsSection
from pairwright.flows.stages.shards import TEXT_BYTES, Slice, plan_shards, sample_bytes
from tests.flows.conftest import checked

SIZES = st.lists(st.lists(st.integers(1, 50), max_size=12), max_size=5)


@given(SIZES, st.integers(1, 8), st.integers(1, 120))
def test_every_sample_is_in_one_shard_in_order_and_shards_are_as_full_as_they_may_be(
    sizes: list[list[int]], samples: int, most: int
) -> None:
    chosen = [(str(number), each) for number, each in enumerate(sizes)]
    shards = plan_shards(chosen, samples, most)
    packed = [[sizes[int(s.part)][at] for s in shard for at in range(s.start, s.stop)] for shard in shards]
    assert [size for shard in packed for size in shard] == [size for each in sizes for size in each]
    assert all(len(shard) == 1 or (len(shard) <= samples and sum(shard) <= most) for shard in packed)
    for shard, following in pairwise(packed):
        assert len(shard) == samples or sum(shard) + following[0] > most


def test_a_shard_goes_over_the_end_of_a_part() -> None:
    assert plan_shards([("a", [1, 1, 1]), ("b", [1])], 2) == [
        (Slice("a", 0, 2),),
        (Slice("a", 2, 3), Slice("b", 0, 1)),
    ]


def test_sizes_are_those_of_files_and_members_and_what_is_missing_has_none(tmp_path: Path) -> None:
    write_corpus(tmp_path, CorpusSpec(pairs=2))
    (tar,) = tmp_path.glob("*.tar")
    (tmp_path / "a.jpg").write_bytes(b"x" * 700)
    section = ShardsSection()
    assert sample_bytes(str(tmp_path / "a.jpg"), section) == TEXT_BYTES + 700
    assert sample_bytes(f"{tar}::000000000.jpg", section) > TEXT_BYTES
    for other in ("", "https://example.org/a.jpg", str(tmp_path / "none.jpg"), f"{tar}::none.jpg"):
        assert sample_bytes(other, section) == TEXT_BYTES
    assert sample_bytes(str(tmp_path / "a.jpg"), ShardsSection(images=False)) == TEXT_BYTES


@pytest.mark.parametrize(("shards", "number"), [({}, 1), ({"samples": 8}, 3), ({"images": False, "megabytes": 1}, 1)])
def test_a_plan_tells_pairs_parts_and_shards(shards: dict[str, object], number: int, tmp_path: Path) -> None:
    write_corpus(tmp_path / "corpus", CorpusSpec(pairs=20, images=False))
    path = tmp_path / "corpus" / "captions.jsonl"
    config = checked({"name": "t", "input": {"path": str(path)}, "shards": shards, "part_size": 6})
    work = estimate_build(config, tmp_path / "out")
    assert (work.pairs, work.parts, work.shards) == (20, 4, number)
    assert work.stages == ("pairs", "tag", "words", "shards", "sizes")
    assert not (tmp_path / "out").exists()


def test_a_shard_has_the_texts_of_its_slices_only_and_parts_of_any_size_make_the_same_shards(tmp_path: Path) -> None:
    write_corpus(tmp_path / "corpus", CorpusSpec(pairs=24, images=False))
    given = {"path": str(tmp_path / "corpus" / "captions.jsonl")}
    config = {"name": "t", "input": given, "negatives": {}, "workers": 1, "shards": {"images": False, "samples": 5}}
    for name, size in (("small", 3), ("large", 24)):
        build(checked(config | {"part_size": size}), tmp_path / name, prefect=False)
    first, second = (sorted((tmp_path / name / "shards").glob("*.tar")) for name in ("small", "large"))
    assert [path.read_bytes() for path in second] == [path.read_bytes() for path in first]
    assert [len(list(read_shard(path))) for path in first] == [5, 5, 5, 5, 4]
    assert all(sample.annotations for sample in read_shard(first[0]))
