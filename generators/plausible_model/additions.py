"""Additions to a caption from two small lists, where the rules have none: "a dog" becomes "a dusty dog", or "a dog with a kite".

The rules of `generators.rules` take what can be added from statistics of a caption pool, which a stand-in does not have.
"""

import re
from collections.abc import Iterator, Sequence

from pairwright.datasets.rng import make_rng
from pairwright.generators.captions.phrases import noun_phrases
from pairwright.generators.edits.realisation import Change, rewrite
from pairwright.generators.language.inflection import article
from pairwright.generators.language.tokens import Token
from pairwright.generators.plausible_model.edit import ModelEdit

THINGS = ("kite", "suitcase", "clock", "teddy bear", "potted plant", "skateboard", "umbrella", "cake")
ATTRIBUTES = ("dusty", "striped", "purple", "wet", "rusty")


def add_objects(caption: str, tokens: Sequence[Token]) -> Iterator[ModelEdit]:
    """Yield the caption with a thing beside the first one that it names, one after another."""
    behind = ["", *(token.lemma for token in tokens[1:]), ""]
    ends = [tokens[phrase.head].end for phrase in noun_phrases(tokens) if behind[phrase.head + 1] != "of"]
    for thing in make_rng(0, "plausible", caption).sample(THINGS, len(THINGS)) if ends else ():
        if not _names(caption, thing):
            words = f" next to {article(thing)} {thing}"
            text, _ = rewrite(caption, [Change(ends[0], ends[0], words)])
            yield ModelEdit("", words.strip(), text)


def add_attributes(caption: str, concept: str) -> Iterator[ModelEdit]:
    """Yield the caption with a word before a thing, one after another."""
    place = re.search(rf"(?<!\w){re.escape(concept)}(?!\w)", caption, re.IGNORECASE)
    for word in ATTRIBUTES if place else ():
        if place and not _names(caption, word):
            text, _ = rewrite(caption, [Change(place.start(), place.start(), f"{word} ")])
            yield ModelEdit("", word, text, described=concept)


def _names(caption: str, words: str) -> bool:
    return re.search(rf"\b{re.escape(words)}", caption, re.IGNORECASE) is not None
