"""Identification of languages: English captions are never taken for another language, captions in others are."""

import json
from itertools import islice
from pathlib import Path

import pytest

from pairwright.generators.language import identification
from pairwright.generators.language.identification import known_languages, other_language

FOREIGN = [
    ("Ein Hund liegt auf einem roten Sofa in einem Zimmer.", "de"),
    ("Un perro marrón está sobre un sofá rojo.", "es"),
    ("Un chien brun est sur un canapé rouge.", "fr"),
    ("De man in het water met een hand op de boot.", "nl"),
    ("Pies na czerwonej sofie.", "pl"),
    ("一只猫坐在椅子上", "zh"),
]


@pytest.mark.parametrize(("text", "language"), FOREIGN)
def test_captions_in_other_languages_are_identified(text: str, language: str) -> None:
    assert other_language(text) == language
    assert other_language(text, language) == ""


@pytest.mark.parametrize("text", ["", "!", "4:15", "IMG_2034.jpg", "TWO DOGS RUN", "red dress, size M"])
def test_texts_without_a_language_and_short_english_ones_pass(text: str) -> None:
    assert other_language(text) == ""


def test_an_english_caption_is_not_in_another_wanted_language() -> None:
    assert other_language("A brown dog is lying on the red sofa.", "de") == "en"


def test_languages_are_named_by_their_codes() -> None:
    assert {"en", "de", "zh", "pt"} <= known_languages()


def test_hardly_a_caption_of_coco_is_taken_for_another_language(real_data: Path) -> None:
    with (real_data / "coco_captions" / "captions.jsonl").open() as lines:
        captions = [caption for line in islice(lines, 600) for caption in json.loads(line)["captions"]]
    assert sum(map(bool, map(other_language, captions))) <= len(captions) / 1000


def test_english_captions_with_names_or_misspelt_words_do_not_load_the_identifier(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse() -> None:
        raise AssertionError("py3langid was loaded")

    monkeypatch.setattr(identification, "_identifier", refuse)
    assert other_language("The famous corner of Haight and Ashbury in San Francisco.") == ""
    assert other_language("there are people stsnding on thr beavh wth a surf bard") == ""
