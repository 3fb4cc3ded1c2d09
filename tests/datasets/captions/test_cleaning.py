"""Captions of web pages without what is no part of the sentence."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairwright.datasets.captions.cleaning import clean_caption, clean_web_caption, has_content
from tests.example_counts import examples

CLEANED = {
    "A black cat &amp; a white dog on a red sofa": "A black cat & a white dog on a red sofa",
    "Women&#39;s red dress": "Women's red dress",
    "&quot;Old&quot; table &amp;amp; two chairs": '"Old" table & two chairs',
    "<b>A brown horse</b> in a field<br>near a fence": "A brown horse in a field near a fence",
    "A small dog on a bed #dog #cute": "A small dog on a bed",
    "A #dog runs on the grass": "A dog runs on the grass",
    "Sunset over the old bridge @travel_guy": "Sunset over the old bridge",
    "RT @bbc: A large crowd": "A large crowd",
    "Red car parked near a house http://www.example.com/cars?id=12": "Red car parked near a house",
    "A cute cat \U0001f63b on a chair \u2764\ufe0f": "A cute cat on a chair",
    "Man holding an umbrella in the rain - stock photo 1234567": "Man holding an umbrella in the rain",
    "Young woman drinking coffee, stock photo - image 45231234": "Young woman drinking coffee",
    "Happy family on the beach Royalty Free Stock Photo": "Happy family on the beach",
    "Yellow flowers - stock photo - Download Image Now": "Yellow flowers",
    "Two children in the park (Shutterstock)": "Two children in the park",
    "A white cup on a table | Etsy": "A white cup on a table",
    "Blue ceramic vase | $29.99 | Free Shipping": "Blue ceramic vase",
    "Three boats on a lake - stock photo 1234567 |": "Three boats on a lake",
    "| Four cows near a tree | Flickr": "Four cows near a tree",
}
UNCHANGED = (
    "A bus #42 on the road",
    "salt & pepper",
    "A man, a woman - and a photo of them",
    "A photo of a stock car",
    "A stock photo of a cat",
    "Couple @ the beach",
    "me@home.com on a sign",
    "A flickr of light",
    "A dog on a bed - photo 2",
    "two  spaces and a trailing comma,",
    "A café — with 20° © John",
)


@pytest.mark.parametrize(("caption", "cleaned"), CLEANED.items())
def test_what_is_no_part_of_the_sentence_is_removed(caption: str, cleaned: str) -> None:
    assert clean_web_caption(caption) == cleaned


@pytest.mark.parametrize("caption", UNCHANGED)
def test_signs_and_words_of_a_sentence_stay(caption: str) -> None:
    assert clean_web_caption(caption) == caption


@pytest.mark.parametrize("caption", ["https://cdn.x.com/a/b.jpg", "IMG_2034.jpg", "@someone", "\U0001f63b", "null"])
def test_a_caption_of_remains_alone_has_no_content(caption: str) -> None:
    assert not has_content(clean_web_caption(caption))


@settings(max_examples=examples(100))
@given(st.lists(st.sampled_from([*CLEANED, *UNCHANGED, " | ", "#a", "-", "<b>", "&amp;"]), max_size=4).map(" ".join))
def test_a_cleaned_caption_is_clean(caption: str) -> None:
    once = clean_web_caption(caption)
    assert clean_web_caption(once) == once


@pytest.mark.parametrize("gap", [" ", "\n\t", " #ab"])
def test_a_long_gap_takes_no_long_time(gap: str) -> None:
    caption = f"A dog, stock {gap * 40_000}photos #1"
    begin = time.perf_counter()
    clean_web_caption(caption)
    clean_caption(caption)
    assert time.perf_counter() - begin < 10  # minutes, if patterns start again at each space
