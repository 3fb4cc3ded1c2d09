"""Every caption of an image is searched, and each image is one hit."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from pairwright.datasets.records import Pair, pair_key
from pairwright.indexes.building.add import add_pairs
from pairwright.indexes.building.build import build_index_from_pairs
from pairwright.indexes.building.merge import merge_indexes
from pairwright.indexes.building.open import IndexWithEncoder, open_index_with_encoder
from pairwright.indexes.hnsw.check import check_index
from pairwright.indexes.hnsw.options import IndexOptions
from pairwright.indexes.retrieval.exclusion import ExclusionFilter, exclusion_from_lines
from pairwright.indexes.retrieval.hit_ranking import add_hit_metadata
from pairwright.indexes.retrieval.queries import queries_from_lines
from pairwright.indexes.retrieval.results import Retrieval, RetrieveOptions
from pairwright.indexes.retrieval.retrieve import retrieve
from tests.indexes.corpus import ANIMALS, DOINGS, PLACES, batches

SCENES = [(animal, place) for animal in ANIMALS for place in PLACES]
GRAPH = IndexOptions(flat_below=20)


def image(number: int, captions: Sequence[str]) -> Pair:
    return Pair(pair_key("made", str(number), captions[0]), captions[0], str(number), captions=tuple(captions[1:]))


def images() -> list[Pair]:
    """48 images of four captions; only the last ones name the place."""
    return [
        image(n, [f"a {animal}", f"a {animal} {DOINGS[0]}", f"one {animal} {DOINGS[1]}", f"a {animal} {place}"])
        for n, (animal, place) in enumerate(SCENES)
    ]


def exploded(pairs: Sequence[Pair]) -> list[Pair]:
    """One pair a caption, as the readers explode images."""
    return [
        Pair(
            pair_key("made", pair.source_id, text),
            text,
            pair.source_id,
            captions=tuple(other for other in (pair.caption, *pair.captions) if other != text),
        )
        for pair in pairs
        for text in (pair.caption, *pair.captions)
    ]


def opened(
    pairs: Sequence[Pair], folder: Path, options: IndexOptions | None = None, **more: object
) -> IndexWithEncoder:
    build_index_from_pairs(lambda: batches(pairs, 7), folder, options=options, **more)  # type: ignore[arg-type]
    return open_index_with_encoder(folder)


def asked(folder: IndexWithEncoder, text: str, k: int, guard: ExclusionFilter | None = None) -> Retrieval:
    return retrieve(folder.index, folder.encoder, queries_from_lines([text]), RetrieveOptions(k), guard)


@pytest.mark.parametrize("options", [None, GRAPH, IndexOptions(storage="ivfpq", flat_below=0)])
def test_an_image_is_found_by_any_of_its_captions_and_once(tmp_path: Path, options: IndexOptions | None) -> None:
    """Each scene is named by a last caption alone; a query for an animal finds its six images, not 24 captions."""
    pool = images() if options is None or options.storage != "ivfpq" else [*images(), *extra(100)]
    folder = opened(pool, tmp_path, options)
    assert (folder.index.info.pairs, folder.index.info.captions) == (len(pool), 4 * len(pool))
    for number, (animal, place) in enumerate(SCENES[::5]):
        found = asked(folder, f"a {animal} {place}", 3).hits
        assert found["key"][0] == images()[5 * number].key
        assert found["caption_index"][0] == 3
        assert found["key"].n_unique() == found.height == 3
    of_one = asked(folder, "zebra", 6).hits
    assert {pair.key for pair in images() if "zebra" in pair.caption} == set(of_one["key"])


def extra(count: int) -> list[Pair]:
    return [
        image(1000 + n, [f"shelf {n} {word} {n}" for word in ("red", "blue", "green", "old")]) for n in range(count)
    ]


def test_k_counts_images_however_deep_their_captions_lie(tmp_path: Path) -> None:
    """Thirty captions of one image come before the first caption of the next."""
    crowded = image(500, [f"a walrus on ice {n}" for n in range(30)])
    folder = opened([crowded, *images(), image(501, ["a bird", "a small walrus swims far away today"])], tmp_path)
    found = asked(folder, "walrus", 2).hits
    assert found["key"].to_list() == [crowded.key, image(501, ["a bird"]).key]
    assert found["caption_index"][1] == 1
    assert asked(folder, "walrus", 100).hits.height == 50


def test_every_form_of_search_gives_the_same_images(tmp_path: Path) -> None:
    """In parts, by several workers, under a graph, and added later."""
    pool = images()
    whole = opened(pool, tmp_path / "whole")
    shared = opened(pool, tmp_path / "shared", shards=3, workers=2)
    graph = opened(pool, tmp_path / "graph", GRAPH)
    opened(pool[:20], tmp_path / "grown", encoder_from=tmp_path / "whole")
    add_pairs([pool[20:]], tmp_path / "grown")
    opened(pool[:9], tmp_path / "one", encoder_from=tmp_path / "whole")
    opened(pool[9:], tmp_path / "two", encoder_from=tmp_path / "whole")
    merge_indexes([tmp_path / "one", tmp_path / "two"], tmp_path / "merged")
    grown, merged = open_index_with_encoder(tmp_path / "grown"), open_index_with_encoder(tmp_path / "merged")
    for text in ("a zebra near a bus stop", "parrot", "looking at the camera"):
        first = asked(whole, text, 12).hits.select("key", "caption_index", "score")
        for other in (shared, graph, grown, merged):
            again = asked(other, text, 12).hits
            np.testing.assert_allclose(again["score"].to_numpy(), first["score"].to_numpy(), atol=1e-6)
            assert dict(again.select("key", "caption_index").iter_rows()).items() >= {
                (key, index)
                for key, index, score in first.iter_rows()
                if score > first["score"].min() + 1e-6  # type: ignore[operator]
            }
    assert grown.index.info.captions == whole.index.info.captions == merged.index.info.captions
    for folder in ("whole", "graph", "grown", "merged"):
        assert check_index(tmp_path / folder).checksum_ok


def test_an_image_excluded_by_any_caption_is_replaced_by_another(tmp_path: Path) -> None:
    folder = opened(images(), tmp_path)
    banned = exclusion_from_lines(["A zebra in a kitchen."])

    def lookup(keys: Sequence[str]) -> object:
        return folder.pairs(keys)

    found = asked(folder, "zebra", 5, ExclusionFilter(banned, lookup))  # type: ignore[arg-type]
    assert found.excluded["by"].to_list() == ["caption"]
    assert found.hits.height == 5
    assert images()[SCENES.index(("zebra", "in a kitchen"))].key not in found.hits["key"].to_list()


def test_the_retrieved_pairs_say_which_caption_was_found(tmp_path: Path) -> None:
    folder = opened(images(), tmp_path)
    found = asked(folder, "a zebra in a kitchen", 1)
    stored = folder.pairs(found.pairs["key"].to_list())
    assert stored is not None
    (row,) = add_hit_metadata(stored, found.pairs).iter_rows(named=True)
    assert '"caption_indexes":[3]' in row["meta"]
    assert row["captions"][3 - 1] == "a zebra in a kitchen"


def test_pairs_that_were_exploded_are_indexed_by_their_own_captions(tmp_path: Path) -> None:
    """Each lists the other captions of its image, which are other pairs; so do those that come in another order."""
    pool = exploded(images())
    folder = opened(pool, tmp_path / "exploded")
    assert folder.index.info.captions == folder.index.info.pairs == 4 * len(SCENES)
    assert not list((tmp_path / "exploded").glob("*/captions.npy"))
    mixed = opened([*pool[::-3], *pool[1::3]], tmp_path / "mixed", shards=2)
    assert mixed.index.info.captions < 2 * mixed.index.info.pairs
    kept = opened(exploded(images()[:1])[:1], tmp_path / "alone")
    assert kept.index.info.captions == 4


def test_an_index_of_one_caption_a_pair_from_before_is_still_read(tmp_path: Path) -> None:
    single = [Pair(pair.key, pair.caption, pair.source_id) for pair in images()]
    opened(single, tmp_path)
    sidecar = tmp_path / "index.json"
    sidecar.write_text(sidecar.read_text().replace('"format": 3', '"format": 2'))
    folder = open_index_with_encoder(tmp_path)
    assert asked(folder, "a zebra", 3).hits["caption_index"].to_list() == [0, 0, 0]
    assert add_pairs([extra(3)], tmp_path).info.captions == len(single) + 12
    assert asked(open_index_with_encoder(tmp_path), "shelf 2 blue 2", 1).hits["caption_index"].to_list() == [1]


def test_a_text_index_that_lost_its_caption_numbers_is_refused(tmp_path: Path) -> None:
    opened(images(), tmp_path)
    next(tmp_path.glob("*/captions.npy")).unlink()
    with pytest.raises(Exception, match=r"captions\.npy: is missing"):
        open_index_with_encoder(tmp_path)
