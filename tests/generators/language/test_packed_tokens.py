"""Packing and unpacking of tokens."""

from hypothesis import given
from hypothesis import strategies as st

from pairwright.generators.language.packed_tokens import pack, unpack
from pairwright.generators.language.tagger import load_tagger

TEXTS = ("Two dogs aren't on a walk-in bed.", "", "  ", "A man's  “TV” \U0001f600 is lying there!")


def test_tokens_of_captions_come_back_whole() -> None:
    for text, tokens in zip(TEXTS, load_tagger().tag(TEXTS), strict=True):
        assert unpack(text, pack(tokens)) == tokens


@given(st.text(max_size=60))
def test_tokens_of_any_text_come_back_whole(text: str) -> None:
    tokens = load_tagger().tag([text])[0]
    assert unpack(text, pack(tokens)) == tokens
