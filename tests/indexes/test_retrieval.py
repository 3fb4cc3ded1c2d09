"""From pairs to an index folder, and from queries to pairs."""

from pathlib import Path

import pytest

from pairwright.datasets.errors import InputError, StorageError, UsageError
from pairwright.datasets.records import Pair
from pairwright.indexes.building import EncoderOptions, IndexFolder, index_pairs, open_index_folder
from pairwright.indexes.checking import check_index
from pairwright.indexes.hnsw import build_index
from pairwright.indexes.lexical import LexicalEncoder
from pairwright.indexes.queries import class_queries, text_queries
from pairwright.indexes.retrieval import retrieve
from pairwright.indexes.sidecar import IndexOptions
from tests.indexes.corpus import ANIMALS, batches, captions, keys, mixture, pairs

POOL = pairs()
CAPTIONS = {pair.key: pair.caption for pair in POOL}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("index")
    index_pairs(lambda: batches(POOL), directory, options=IndexOptions(flat_below=50))
    return directory


@pytest.fixture(scope="module")
def opened(folder: Path) -> IndexFolder:
    return open_index_folder(folder)


def test_a_caption_finds_itself_first(opened: IndexFolder) -> None:
    found = retrieve(opened.index, opened.encoder, text_queries(captions()), 3)
    first = found.hits.filter(found.hits["rank"] == 1)
    assert [CAPTIONS[key] for key in first["key"]] == first["text"].to_list() == captions()
    assert first["score"].min() == pytest.approx(1, abs=1e-5)


def test_a_class_finds_the_captions_that_name_it(opened: IndexFolder) -> None:
    """24 captions hold each animal."""
    queries = class_queries({"classes": ANIMALS, "templates": ["{}", "a photo of a {}"]})
    found = retrieve(opened.index, opened.encoder, queries, 10)
    assert found.hits.height == len(ANIMALS) * 2 * 10
    for concept, key in found.hits.select("concept", "key").iter_rows():
        assert str(concept) in CAPTIONS[key].split()
    assert found.uncovered == []


def test_hits_of_a_pair_are_merged_over_queries(opened: IndexFolder) -> None:
    queries = text_queries(["a dog eating an apple", "a dog sleeping", "a dog eating an apple"])
    found = retrieve(opened.index, opened.encoder, queries, 20)
    assert found.pairs["key"].n_unique() == found.pairs.height == found.hits["key"].n_unique()
    assert found.pairs["queries"].sum() == found.hits.height == 60
    for key, score, rank, concepts in found.pairs.select("key", "score", "rank", "concepts").iter_rows():
        hits = found.hits.filter(found.hits["key"] == key)
        assert score == hits["score"].max()
        assert rank == hits["rank"].min()
        assert concepts == sorted(set(hits["concept"]))


def test_a_concept_that_the_pool_does_not_hold_is_uncovered_whatever_its_template(opened: IndexFolder) -> None:
    """The template's words are in every caption; the concept's are in none."""
    queries = class_queries({"classes": ["lymph node tissue", "zebra"], "templates": ["a {} sleeping on the beach"]})
    found = retrieve(opened.index, opened.encoder, queries, 5)
    assert found.coverage["best"].min() > 0.4  # type: ignore[operator]  # polars types it as any scalar
    assert found.uncovered == ["lymph node tissue"]
    assert found.coverage["concept"].to_list() == ["lymph node tissue", "zebra"]


def test_the_summary_counts_what_was_found(opened: IndexFolder) -> None:
    queries = class_queries({"classes": [["dog", "cat"], "zebra"], "templates": ["a {}", "the {}"]})
    summary = retrieve(opened.index, opened.encoder, queries, 4).summary()
    assert (summary["queries"], summary["hits"], summary["uncovered"]) == (6, 24, [])
    assert 12 <= summary["unique_pairs"] <= 24
    assert summary["seconds"] > 0


def test_an_encoder_of_another_pool_is_refused(opened: IndexFolder) -> None:
    other = LexicalEncoder.fit(["something else"])
    with pytest.raises(StorageError, match="another encoder"):
        retrieve(opened.index, other, text_queries(["a dog"]), 5)
    with pytest.raises(UsageError, match="no queries"):
        retrieve(opened.index, opened.encoder, [], 5)


def test_the_folder_holds_what_it_takes(folder: Path, opened: IndexFolder) -> None:
    assert sorted(path.name for path in folder.iterdir()) == [
        "aliases.npy",
        "encoder.npz",
        "index.json",
        "keys.npy",
        "probes.npy",
        "vectors.faiss",
    ]
    assert opened.index.info.encoder == opened.encoder.fingerprint
    assert check_index(folder).recall >= 0.95


def test_the_same_pairs_give_the_same_folder(folder: Path, tmp_path: Path) -> None:
    """Whatever the size of the batches."""
    index_pairs(lambda: batches(POOL, 7), tmp_path, options=IndexOptions(flat_below=50))
    for path in folder.iterdir():
        assert path.read_bytes() == (tmp_path / path.name).read_bytes(), path.name


def test_captions_that_count_as_the_same_are_aliases(tmp_path: Path) -> None:
    same = pairs(["A dog.", "a dog", "a  DOG ", "a cat"])
    info = index_pairs(lambda: [same], tmp_path)
    assert (info.kind, info.vectors, info.duplicates) == ("flat", 2, 2)
    opened = open_index_folder(tmp_path)
    found = retrieve(opened.index, opened.encoder, text_queries(["dog"]), 3)
    assert found.hits["key"].to_list() == [pair.key for pair in same[:3]]


def test_another_caption_of_the_image_is_the_query_that_recall_is_measured_on(tmp_path: Path) -> None:
    two = [Pair(key, text, captions=("a zebra",)) for key, text in zip(keys(9), captions(), strict=False)]
    index_pairs(lambda: [two], tmp_path)
    assert check_index(tmp_path).queries == 9


def test_an_encoder_exchanged_is_refused(folder: Path, tmp_path: Path) -> None:
    """It has the right size, but it was fitted on other captions."""
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    loaded = LexicalEncoder.load(tmp_path / "encoder.npz")
    LexicalEncoder(loaded.document_frequency, loaded.captions + 1).save(tmp_path / "encoder.npz")
    with pytest.raises(StorageError, match="not the encoder of this index"):
        open_index_folder(tmp_path)


def test_an_index_of_vectors_has_no_encoder(tmp_path: Path) -> None:
    build_index([(keys(5), mixture(5))], tmp_path)
    with pytest.raises(StorageError, match="without an encoder"):
        open_index_folder(tmp_path)


def test_input_that_changes_while_it_is_read_is_told(tmp_path: Path) -> None:
    readings = [POOL[:5], POOL[:4]]
    with pytest.raises(InputError, match="5 pairs at first and 4"):
        index_pairs(lambda: [readings.pop(0)], tmp_path)
    with pytest.raises(StorageError, match="no index here"):
        open_index_folder(tmp_path)


def test_an_empty_pool_and_an_unknown_encoder_are_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no captions"):
        index_pairs(lambda: [[]], tmp_path)
    with pytest.raises(UsageError, match="There are: lexical"):
        EncoderOptions(name="word2vec")


def test_real_captions_are_found_by_another_caption_of_their_image(real_data: Path, tmp_path: Path) -> None:
    """Of 1,000 images, at least half stand among the ten best; chance would be one in a hundred."""
    import json

    with (real_data / "coco_captions" / "captions.jsonl").open(encoding="utf-8") as lines:
        rows = [json.loads(next(lines)) for _ in range(1000)]
    pool = [Pair(f"{row['image_id']:032x}", row["captions"][0]) for row in rows]
    index_pairs(lambda: batches(pool, 300), tmp_path)
    opened = open_index_folder(tmp_path)
    found = retrieve(opened.index, opened.encoder, text_queries([row["captions"][1] for row in rows]), 10)
    wanted = {row["captions"][1].strip(): f"{row['image_id']:032x}" for row in rows}
    hit = sum(wanted[text] in keys for text, keys in found.hits.group_by("text").agg("key").iter_rows())
    assert hit / len(wanted) >= 0.5
