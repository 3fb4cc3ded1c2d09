"""How often captioners use two words of which the lexicon says that they exclude each other for the same thing.

    python -m benchmarks.noun_substitutions captions.jsonl

captions.jsonl: rows with ``captions``, several an image. Two nouns are *exchanged* in an image if one caption has the one
and another has the other in the same role (subject of the same verb, object of the same verb or preposition, first
noun), and neither caption has both. The rate is the share of images with the rarer noun. Two adjectives are exchanged if
two captions give them to the same noun; the rate is the share of such pairs of captions with the rarer one. Pairs with a
high rate belong in ``generators/lexicon/data/noun_groups.tsv``, ``noun_compatibility.tsv`` or ``attribute_neighbours.tsv``.
"""

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path

from pairwright.generators.captions.phrases import NounPhrase, noun_phrases
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.language.tokens import Token, tag_all
from pairwright.generators.language.wordnet import load_wordnet
from pairwright.generators.lexicon.attributes import AttributeLexicon
from pairwright.generators.lexicon.nouns import NounLexicon

LEAST, SLACK = 3, 5  # exchanges of a pair that is printed; added to the images, since a few prove little
VOCABULARY = 1_500  # most frequent nouns
_BE = frozenset({"is", "are", "was", "were", "that", "which", "who"})
_Pairs = Counter[tuple[str, str]]


class Exchanges:
    """Counts of the words of images and of the pairs that are exchanged."""

    def __init__(self) -> None:
        wordnet = load_wordnet()
        self.nouns = NounLexicon(wordnet)
        self.attributes = AttributeLexicon(wordnet, self.nouns)
        self.noun_images, self.noun_pairs = Counter[str](), _Pairs()
        self.adjective_pairs, self.described = _Pairs(), Counter[str]()

    def add(self, captions: Sequence[Sequence[Token]]) -> None:
        """Count an image by its tagged captions."""
        phrases = [noun_phrases(tokens) for tokens in captions]
        self._add_nouns([dict(self._roles(*each)) for each in zip(captions, phrases, strict=True)])
        self._add_adjectives([dict(_qualities(*each)) for each in zip(captions, phrases, strict=True)])

    def _roles(self, tokens: Sequence[Token], phrases: Sequence[NounPhrase]) -> Iterator[tuple[str, set[str]]]:
        for phrase in phrases:
            if tokens[phrase.head].tag in {"NN", "NNS"}:
                head, before = tokens[phrase.head].lemma, tokens[phrase.head - 1].text.lower()
                compound = f"{before} {head}"
                known = phrase.head > phrase.start and self.nouns.is_known(compound)
                yield compound if known else head, set(_roles_of(tokens, phrase))

    def _add_nouns(self, captions: Sequence[dict[str, set[str]]]) -> None:
        self.noun_images.update(set().union(*captions))
        exchanged = set[tuple[str, str]]()
        for one, other in combinations(captions, 2):
            for first in one.keys() - other.keys():
                same = (noun for noun in other.keys() - one.keys() if not one[first].isdisjoint(other[noun]))
                exchanged.update((min(first, noun), max(first, noun)) for noun in same)
        self.noun_pairs.update(exchanged)

    def _add_adjectives(self, captions: Sequence[dict[str, set[str]]]) -> None:
        for one, other in combinations(captions, 2):
            for noun in one.keys() & other.keys():
                if one[noun] and other[noun]:
                    self.described.update(one[noun] | other[noun])
                pairs = ((a, b) for a in one[noun] - other[noun] for b in other[noun] - one[noun])
                self.adjective_pairs.update(
                    (min(a, b), max(a, b)) for a, b in pairs if self.attributes.exclusive(a, b, noun)
                )

    def of_nouns(self) -> Iterator[tuple[float, int, str, str]]:
        """Yield rate, count and nouns of the exchanged pairs of which one may replace the other."""
        vocabulary = tuple(noun for noun, _ in self.noun_images.most_common(VOCABULARY))
        for (one, other), count in self.noun_pairs.items():
            if count >= LEAST and other in vocabulary and one in self.nouns.substitutes(other, vocabulary):
                yield count / (min(self.noun_images[one], self.noun_images[other]) + SLACK), count, one, other

    def of_adjectives(self) -> Iterator[tuple[float, int, str, str]]:
        """Yield rate, count and adjectives of the exchanged pairs that exclude each other."""
        for (one, other), count in self.adjective_pairs.items():
            if count >= LEAST:
                yield count / (min(self.described[one], self.described[other]) + SLACK), count, one, other


def _roles_of(tokens: Sequence[Token], phrase: NounPhrase) -> Iterator[str]:
    """Yield the roles of a phrase in its caption."""
    if phrase.start == 0:
        yield "first"
    elif tokens[phrase.start - 1].tag[:2] in {"IN", "TO", "VB"} and tokens[phrase.start - 1].text.lower() != "of":
        yield f"object of {tokens[phrase.start - 1].lemma}"
    at = phrase.end
    while at < len(tokens) and tokens[at].text.lower() in _BE:
        at += 1
    if at < len(tokens) and tokens[at].tag.startswith("VB"):
        yield f"subject of {tokens[at].lemma}"


def _qualities(tokens: Sequence[Token], phrases: Sequence[NounPhrase]) -> Iterator[tuple[str, set[str]]]:
    """Yield the adjectives and the number of each noun of which a caption speaks once."""
    heads = Counter(tokens[phrase.head].lemma for phrase in phrases)
    for phrase in phrases:
        counted = (phrase.count,) if phrase.count >= 0 else ()
        if heads[tokens[phrase.head].lemma] == 1 and not phrase.joined:
            yield tokens[phrase.head].lemma, {tokens[at].text.lower() for at in (*phrase.adjectives, *counted)}


def main() -> None:
    """Print the pairs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("captions", type=Path)
    parser.add_argument("--top", type=int, default=40, help="pairs printed of nouns and of adjectives")
    asked = parser.parse_args()
    with asked.captions.open(encoding="utf-8") as lines:
        images = [json.loads(line)["captions"] for line in lines]
    tagged = iter(tag_all(load_tagger(), [text for captions in images for text in captions]))
    exchanges = Exchanges()
    for captions in images:
        exchanges.add([next(tagged) for _ in captions])
    for name, found in (("nouns", exchanges.of_nouns()), ("adjectives", exchanges.of_adjectives())):
        pairs = sorted(found, reverse=True)
        print(
            f"{name}: {len(pairs)} pairs exchanged {LEAST} times or more, {sum(p[0] > 0.1 for p in pairs)} at over 10%"
        )
        for rate, count, one, other in pairs[: asked.top]:
            print(f"  {rate:.2f} {count:4d} {one} / {other}")


if __name__ == "__main__":
    main()
