"""Word orders of ARO's COCO-Order and Flickr30k-Order: four perturbations of a caption (ARO, section 2.1).

Words are the tokens of the tagger; a perturbed caption joins them by spaces, as the benchmark does.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from pairwright.generators.language.tokens import Token

_GRAM: Final = 3


def _nouns_and_adjectives(tokens: Sequence[Token], rng: random.Random) -> list[str]:
    """Exchange nouns among nouns and adjectives among adjectives."""
    words = [token.text for token in tokens]
    for tag in ("NN", "JJ"):
        _permute(words, [at for at, token in enumerate(tokens) if token.tag.startswith(tag)], rng)
    return words


def _other_words(tokens: Sequence[Token], rng: random.Random) -> list[str]:
    """Permute all words but nouns and adjectives."""
    words = [token.text for token in tokens]
    _permute(words, [at for at, token in enumerate(tokens) if not token.tag.startswith(("NN", "JJ"))], rng)
    return words


def _within_trigrams(tokens: Sequence[Token], rng: random.Random) -> list[str]:
    return [word for gram in _trigrams(tokens) for word in rng.sample(gram, len(gram))]


def _trigram_order(tokens: Sequence[Token], rng: random.Random) -> list[str]:
    grams = _trigrams(tokens)
    return [word for gram in rng.sample(grams, len(grams)) for word in gram]


def _trigrams(tokens: Sequence[Token]) -> list[list[str]]:
    words = [token.text for token in tokens]
    return [words[at : at + _GRAM] for at in range(0, len(words), _GRAM)]


def _permute(words: list[str], places: Sequence[int], rng: random.Random) -> None:
    for place, word in zip(places, rng.sample([words[at] for at in places], len(places)), strict=True):
        words[place] = word


WORD_ORDERS: Final[Mapping[str, Callable[[Sequence[Token], random.Random], list[str]]]] = {
    "nouns-and-adjectives": _nouns_and_adjectives,
    "other-words": _other_words,
    "within-trigrams": _within_trigrams,
    "trigrams": _trigram_order,
}
"""Names and functions of the perturbations: tokens and random generator to words."""


def join_words(tokens: Sequence[Token]) -> str:
    """Return the caption in its own order, in the form of the perturbed ones."""
    return " ".join(token.text for token in tokens)
