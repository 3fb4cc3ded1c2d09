"""Hard negatives as published rules make them, for comparison: no pool, no truth, no agreement.

The methods as their papers tell them, in the fewest lines that do it: *swap* exchanges two nouns of a caption (NegCLIP,
Yuksekgonul et al. 2023), *object* puts a random co-hyponym of WordNet in the place of a noun (FSC-CLIP, Oh et al. 2024),
and *relation* a random preposition in the place of another (CREPE, Ma et al. 2023).
"""

import random
from collections.abc import Callable, Sequence

from pairwright.generators.language.tokens import Token

PREPOSITIONS = (
    "on", "in", "with", "at", "near", "under", "behind", "above", "below", "beside", "over", "between", "through", "around",
    "against", "inside", "outside", "across", "along", "by",
)  # fmt: skip
Edited = str | None


def plain_edits() -> dict[str, Callable[[str, Sequence[Token], random.Random], Edited]]:
    """Return the methods by the type that they are compared with; each gives a text, or None."""
    return {"swap-object": _swapped, "replace-object": _other_kind, "replace-relation": _other_preposition}


def _other_kind(caption: str, tokens: Sequence[Token], rng: random.Random) -> Edited:
    for token in rng.sample(nouns := _tagged(tokens, "NN"), len(nouns)):
        if found := _co_hyponyms(token.lemma):
            return _with(caption, (token, rng.choice(found)))
    return None


def _co_hyponyms(noun: str) -> list[str]:
    """Return what else is directly below the hypernyms of the first sense of a noun, in the order of the alphabet."""
    from nltk.corpus import wordnet  # slow to import

    senses = [
        sense for first in wordnet.synsets(noun, "n")[:1] for above in first.hypernyms() for sense in above.hyponyms()
    ]
    return sorted({name.replace("_", " ") for sense in senses for name in sense.lemma_names()} - {noun})


def _swapped(caption: str, tokens: Sequence[Token], rng: random.Random) -> Edited:
    nouns = _tagged(tokens, "NN")
    if len(nouns) < 2:
        return None
    one, other = rng.sample(nouns, 2)
    return _with(caption, (one, other.text), (other, one.text)) if one.lemma != other.lemma else None


def _other_preposition(caption: str, tokens: Sequence[Token], rng: random.Random) -> Edited:
    found = [token for token in _tagged(tokens, "IN") if token.text.lower() in PREPOSITIONS]
    if not found:
        return None
    token = rng.choice(found)
    return _with(caption, (token, rng.choice([word for word in PREPOSITIONS if word != token.text.lower()])))


def _tagged(tokens: Sequence[Token], tag: str) -> list[Token]:
    return [token for token in tokens if token.tag == tag]


def _with(caption: str, *changes: tuple[Token, str]) -> str:
    for token, new in sorted(changes, key=lambda change: -change[0].start):
        caption = caption[: token.start] + new + caption[token.end :]
    return caption
