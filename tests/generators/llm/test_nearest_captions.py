"""The nearest captions of an index: never the pair itself, nor what says the same."""

from pathlib import Path

import pytest

from pairwright.datasets.errors import UsageError
from pairwright.datasets.records import Pair, pair_key
from pairwright.generators.llm.nearest_captions import NearestCaptions
from pairwright.indexes.building.build import build_index_from_pairs

CAPTIONS = [
    "A red dog runs on the beach.",
    "A brown dog runs on the beach.",
    "a brown dog runs on the  beach",
    "Two dogs play in the water.",
    "A plate of pasta with tomatoes.",
    "A train stands in a station.",
]


def pair(caption: str) -> Pair:
    return Pair(pair_key("", "", caption), caption)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("index")
    build_index_from_pairs(lambda: [list(map(pair, CAPTIONS))], folder)
    return folder


def test_the_nearest_come_first_without_the_pair_itself_and_what_says_the_same(index: Path) -> None:
    captions = NearestCaptions.open(index, 2)
    [documents] = captions.near([CAPTIONS[0]], [pair(CAPTIONS[0]).key])
    assert len(documents) == 2
    assert documents[0].text in CAPTIONS[1:3]
    assert documents[1].text == CAPTIONS[3]
    assert documents[0].score >= documents[1].score
    assert documents[0].key == pair(documents[0].text).key


def test_texts_are_looked_up_together_as_alone(index: Path) -> None:
    captions = NearestCaptions.open(index, 3)
    together = captions.near(CAPTIONS, [""] * len(CAPTIONS))
    assert together == [captions.near([text], [""])[0] for text in CAPTIONS]
    assert captions.near([], []) == []


def test_an_index_without_captions_to_read_is_refused(index: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="1 or more"):
        NearestCaptions.open(index, 0)
    build_index_from_pairs(lambda: [list(map(pair, CAPTIONS))], tmp_path / "bare", keep_pairs=False)
    with pytest.raises(UsageError, match="keeps no pairs"):
        NearestCaptions.open(tmp_path / "bare", 2)
