"""Evaluation data is recognised and excluded."""

import hashlib
import json
import string
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from pairwright.datasets.errors import InputError, UsageError
from pairwright.datasets.record_tables import PAIRS, REJECTS
from pairwright.datasets.records import Pair
from pairwright.datasets.rejects import REASONS
from pairwright.indexes.retrieval.exclusion import (
    Exclusion,
    ExclusionFilter,
    MatchField,
    count_by_field,
    exclusion_from_lines,
    exclusion_from_pairs,
    make_exclusion_rejects,
    normalise_caption,
    normalise_url,
    read_exclusion,
    read_exclusions,
)
from tests.image_variants import as_jpeg, draw

KEYS = [f"{number:032x}" for number in range(16)]


def picture(path: Path, colour: str) -> Path:
    path.parent.mkdir(exist_ok=True, parents=True)
    Image.new("RGB", (4, 4), colour).save(path)
    return path


def judged(exclusion: Exclusion, *pairs: Pair) -> list[str]:
    return exclusion.judge(PAIRS.frame(pairs))["by"].to_list()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("A dog, on the beach.", "a  dog on the\tbeach"),
        ("ＡＢＣ ﬁne", "abc fine"),
        ("caf\u00e9", "cafe\u0301"),
        ("STRASSE", "straße"),
        ("a well-lit room", "A Well Lit Room!"),
        ("soft\u00adhyphen", "softhyphen"),
    ],
)
def test_captions_that_differ_in_writing_only_are_the_same(one: str, other: str) -> None:
    assert normalise_caption(one) == normalise_caption(other)


def test_captions_in_other_scripts_and_signs_keep_apart() -> None:
    texts = ["कि", "का", "犬", "猫", "C++", "C", "5 €", "5 $", "🐕", "🐈", "...", "!!!"]
    assert len({normalise_caption(text) for text in texts}) == len(texts)
    assert "" not in {normalise_caption(text) for text in texts}


@given(st.text())
def test_a_normal_caption_stays_as_it_is(text: str) -> None:
    once = normalise_caption(text)
    assert normalise_caption(once) == once


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://a.org/x.jpg", "https://A.org:443/x.jpg#top"),
        ("http://a.org", "http://a.org/"),
        ("http://a.org/a b/é.jpg", "http://a.org/a%20b/%C3%A9.jpg"),
        ("http://a.org/%7Eme/x%2ejpg", "http://a.org/~me/x.jpg"),
        ("http://a.org/b/../x.jpg", "http://a.org./x.jpg"),
        ("http://me:pw@a.org/x", "http://a.org/x"),
        ("http://bücher.org/x", "http://xn--bcher-kva.org/x"),
    ],
)
def test_ways_to_write_one_address_are_the_same(one: str, other: str) -> None:
    assert normalise_url(one) == normalise_url(other)


def test_other_addresses_stay_apart() -> None:
    urls = ["http://a.org/x", "http://a.org/X", "http://a.org/x/", "http://a.org/x?a=1", "http://a.org/x?a=2"]
    urls += ["http://a.org:8080/x", "http://b.org/x", "http://a.org/x%23", "ftp://a.org/x", "http://[::1/x"]
    assert len(set(map(normalise_url, urls))) == len(urls)


@given(st.text(string.printable))
def test_any_address_can_be_normalised_and_stays_so(rest: str) -> None:
    once = normalise_url(f"http://a.org/{rest}")
    assert normalise_url(once) == once


def test_a_pair_is_known_by_key_address_caption_and_image(tmp_path: Path) -> None:
    seen = picture(tmp_path / "seen.png", "red")
    copy = tmp_path / "copy.png"
    copy.write_bytes(seen.read_bytes())
    other = picture(tmp_path / "other.png", "blue")
    evaluation = [
        Pair(KEYS[0], "A dog runs.", image=str(seen), captions=("The puppy!",)),
        Pair(KEYS[1], "two cats", "cats", image="http://a.org/x.jpg"),
    ]
    exclusion = exclusion_from_pairs([evaluation])
    assert exclusion.sizes == {"key": 2, "url": 1, "caption": 3, "image": 1}
    assert exclusion.unread == 1
    assert judged(
        exclusion,
        Pair(KEYS[0], "whatever"),
        Pair(KEYS[2], "x", image="https://a.org:443/x.jpg"),
        Pair(KEYS[3], "x", meta='{"url":"https://a.org/x.jpg"}', image=str(other)),
        Pair(KEYS[4], "a DOG runs"),
        Pair(KEYS[5], "x", captions=("the puppy",)),
        Pair(KEYS[6], "x", image=str(copy)),
        Pair(KEYS[7], "two cats sit", "cats", image=str(other)),
    ) == ["key", "url", "url", "caption", "caption", "image", ""]


def test_an_image_is_known_by_the_hash_of_its_download(tmp_path: Path) -> None:
    """Resized copies have another file; img2dataset keeps the hash of what came."""
    seen = picture(tmp_path / "seen.png", "red")
    meta = json.dumps({"sha256": hashlib.sha256(seen.read_bytes()).hexdigest()}, separators=(",", ":"))
    other = picture(tmp_path / "other.png", "blue")
    exclusion = exclusion_from_pairs([[Pair(KEYS[0], "x", image=str(seen))]], by=["image"])
    assert judged(exclusion, Pair(KEYS[1], "y", image=str(other), meta=meta)) == ["image"]
    by_table = exclusion_from_pairs([[Pair(KEYS[0], "x", meta=meta)]], by=["image"])
    assert judged(by_table, Pair(KEYS[1], "y", image=str(seen)), Pair(KEYS[2], "y", image=str(other))) == ["image", ""]


def test_source_ids_count_only_when_asked_for() -> None:
    evaluation = [[Pair(KEYS[0], "a dog", "17")]]
    same = Pair(KEYS[1], "a cat", "17")
    assert judged(exclusion_from_pairs(evaluation), same) == [""]
    assert judged(exclusion_from_pairs(evaluation, by=["id"]), same, Pair(KEYS[2], "x")) == ["id", ""]


def test_missing_images_count_as_uncompared(tmp_path: Path) -> None:
    exclusion = exclusion_from_lines(["ab" * 32])
    pairs = [
        Pair(KEYS[0], "x", image="http://a.org/x.jpg"),
        Pair(KEYS[1], "x", image=str(tmp_path / "gone.png")),
        Pair(KEYS[2], "x", image=str(picture(tmp_path / "there.png", "red"))),
        Pair(KEYS[3], "x"),
    ]
    assert exclusion.judge(PAIRS.frame(pairs))["uncompared"].to_list() == [True, True, False, False]
    assert not exclusion_from_lines(["x y"]).judge(PAIRS.frame(pairs))["uncompared"].any()


def test_plain_lines_are_addresses_hashes_keys_or_captions(tmp_path: Path) -> None:
    path = tmp_path / "eval.txt"
    path.write_text(f"\ufeffhttp://a.org/x.jpg\n\n{'AB' * 32}\n{KEYS[3]}\nA dog.\n", encoding="utf-8")
    found = read_exclusion(str(path))
    assert found.entries == {
        "key": {KEYS[3]},
        "url": {"http://a.org/x.jpg"},
        "caption": {"a dog"},
        "image": {"ab" * 32},
    }
    assert read_exclusion(str(path), by=["id"]).entries == {"id": {"A dog."}}


def test_a_folder_of_images_is_excluded_with_and_without_captions(tmp_path: Path) -> None:
    picture(tmp_path / "bare" / "sub" / "a.png", "red")
    (tmp_path / "bare" / "broken.png").write_bytes(b"")
    assert read_exclusion(str(tmp_path / "bare")).sizes == {"image": 2}
    with pytest.raises(InputError, match="nothing to exclude by"):
        read_exclusion(str(tmp_path / "bare"), by=["caption"])
    picture(tmp_path / "set" / "a.png", "red")
    (tmp_path / "set" / "a.txt").write_text("A dog.\n")
    picture(tmp_path / "set" / "b.png", "blue")
    found = read_exclusion(str(tmp_path / "set"))
    assert found.entries["caption"] == {"a dog"}
    assert len(found.entries["image"]) == 2


def test_any_input_of_pairs_can_be_excluded(tmp_path: Path) -> None:
    """Missing images count as unread."""
    coco = {
        "images": [{"id": 7, "file_name": "7.jpg"}],
        "annotations": [{"id": 1, "image_id": 7, "caption": "A dog."}, {"id": 2, "image_id": 7, "caption": "A pup."}],
    }
    (tmp_path / "coco.json").write_text(json.dumps(coco))
    (tmp_path / "rows.csv").write_text("id,caption,image\n1,a cat,http://a.org/x.jpg\n2,,\n")
    found = read_exclusion(str(tmp_path / "coco.json"))
    assert found.entries["caption"] == {"a dog", "a pup"}
    assert found.unread == 1
    joined = found | read_exclusion(str(tmp_path / "rows.csv"))
    assert joined.entries["caption"] == {"a dog", "a pup", "a cat"}
    assert joined.entries["url"] == {"http://a.org/x.jpg"}
    assert joined.unread == 2


def test_invalid_exclusions_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_exclusion(str(tmp_path / "gone.txt"))
    with pytest.raises(InputError, match="no such file"):
        read_exclusion(str(tmp_path / "gone.csv"))
    wrong: list[MatchField] = ["name"]  # type: ignore[list-item]  # what a user may type
    with pytest.raises(UsageError, match="exclude by name"):
        exclusion_from_lines([], by=wrong)
    (tmp_path / "empty.txt").write_text("\n")
    with pytest.raises(InputError, match="nothing to exclude by"):
        read_exclusion(str(tmp_path / "empty.txt"))


def test_an_exclusion_filter_judges_each_pair_once_and_lists_the_excluded() -> None:
    pool = {pair.key: pair for pair in (Pair(KEYS[0], "A dog."), Pair(KEYS[1], "a cat"), Pair(KEYS[2], "a dog"))}
    asked: list[str] = []

    def lookup(keys: Sequence[str]) -> pl.DataFrame:
        asked.extend(keys)
        return PAIRS.frame([pool[key] for key in reversed(keys)])

    guard = ExclusionFilter(exclusion_from_lines(["a dog"]), lookup)
    guard.judge_new(pl.Series(KEYS[:2]))
    guard.judge_new(pl.Series(KEYS[:3]))
    assert asked == KEYS[:3]
    assert guard.excluded.rows() == [(KEYS[0], "caption", ""), (KEYS[2], "caption", "")]
    assert count_by_field(guard.excluded) == {"caption": 2}
    rows = make_exclusion_rejects(guard.excluded, lookup)
    assert [(row.place, row.reason, row.excerpt) for row in rows] == [
        (f"pair {KEYS[0]}", "excluded", "A dog."),
        (f"pair {KEYS[2]}", "excluded", "a dog"),
    ]
    assert "excluded" in REASONS
    assert REJECTS.records(REJECTS.frame(rows)) == rows


def test_copies_of_images_are_excluded_with_their_original_and_distance(tmp_path: Path) -> None:
    """A hash stored by the fetcher does not keep an image from being compared by its pixels."""
    (tmp_path / "val").mkdir()
    draw(5).save(tmp_path / "val" / "five.png")
    as_jpeg(draw(5)).save(tmp_path / "copy.jpg")
    draw(6).save(tmp_path / "other.png")
    meta = json.dumps({"sha256": "a" * 64}, separators=(",", ":"))
    pairs = [
        Pair(key=KEYS[0], image=str(tmp_path / "copy.jpg"), caption="a poster", meta=meta),
        Pair(key=KEYS[1], image=str(tmp_path / "other.png"), caption="a dog"),
        Pair(key=KEYS[2], image="https://a.org/x.jpg", caption="a cat", meta=meta),
    ]
    frame = PAIRS.frame(pairs)
    exclusion = read_exclusions((), images=[str(tmp_path / "val")])
    assert exclusion is not None
    assert exclusion.sizes == {"copy": 1}
    found = exclusion.judge(frame)
    assert found["by"].to_list() == ["copy", "", ""]
    assert found["uncompared"].to_list() == [False, False, True]
    (reject,) = make_exclusion_rejects(found.filter(found["by"] != ""), lambda _: frame)
    assert (reject.reason, "five.png" in reject.detail) == ("copy_of_evaluation_image", True)


def test_only_images_are_excluded_by_copy() -> None:
    with pytest.raises(UsageError, match="copy"):
        read_exclusions((), by=["copy"])
