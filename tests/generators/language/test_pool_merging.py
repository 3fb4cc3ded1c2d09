"""Word counts of a pool merged from the files of its parts."""

from pathlib import Path

import pytest

from pairwright.generators.language import pool_merging
from pairwright.generators.language.pool_merging import merge_counts, merged_statistics
from pairwright.generators.language.pool_statistics import count_captions
from pairwright.generators.language.tagger import load_tagger

CAPTIONS = [
    *("A dog sits on the couch.", "A black dog runs in front of a house.", "A cat sits in the house."),
    *("Two dogs run on the beach.", "A man in a red hat rides a horse.", "A man sits on a bench in front of a house."),
]


@pytest.fixture
def parts(tmp_path: Path) -> list[Path]:
    """Unpruned counts of three parts."""
    paths = []
    for number in range(0, len(CAPTIONS), 2):
        paths.append(tmp_path / f"{number}.parquet")
        count_captions(load_tagger().tag(CAPTIONS[number : number + 2])).exact().save(paths[-1])
    return paths


def test_merged_files_give_the_statistics_of_the_whole_pool(parts: list[Path], tmp_path: Path) -> None:
    whole = count_captions(load_tagger().tag(CAPTIONS)).frozen()
    assert merged_statistics(parts) == whole
    merge_counts(parts[:2], tmp_path / "merged.parquet")
    assert merged_statistics([tmp_path / "merged.parquet", parts[2]]) == whole


def test_the_most_frequent_entries_are_kept_whatever_the_parts(
    parts: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_merging, "MOST_TYPES", 5)
    monkeypatch.setattr(pool_merging, "VOCABULARY", 4)
    kept = merged_statistics(parts)
    assert [len(each) for each in (kept.lemmas, kept.forms, kept.links)] == [5, 5, 5]
    words = {word for pair in kept.pairs for word in pair}
    assert len(words) == 4
    assert words >= {"dog", "house", "sit"}
    merge_counts(parts[1:], tmp_path / "merged.parquet")
    assert merged_statistics([parts[0], tmp_path / "merged.parquet"]) == kept
