"""How often captioners use one word of a pair where others use the other, for the tables in `edit_checks.nearness`.

    python benchmarks/noun_substitutions.py captions.jsonl

captions.jsonl: rows with ``captions``, several an image. Of the images whose captions have the rarer noun of a pair, the
*exchange share* is the part of those where one caption has one noun, another has the other, and none has both. Looks at
the pairs of `synonyms.LOOSELY_SAME`, and prints as the table has them those that are told apart: exchanged in fewer
than `LEAST` of at least `ENOUGH` images, and fewer than `LIFT` times as often as the commoner noun is used anywhere.
Then, of `attributes.NEIGHBOURS`, the qualities that two captions of an image give one noun in fewer than `LEAST_QUALITY`
of at least `ENOUGH_QUALITIES` pairs of captions that have the rarer one.
"""

import argparse
import json
import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from pathlib import Path

from pairwright.generators.captions.context import plural_of, words_of
from pairwright.generators.language.word_set import word_set
from pairwright.generators.words.attributes import NEIGHBOURS, place
from pairwright.generators.words.synonyms import LOOSELY_SAME

LEAST, ENOUGH, LIFT = 0.1, 20, 2.5
LEAST_QUALITY, ENOUGH_QUALITIES = 0.05, 50
# One picture has both a street and a sidewalk, a house and a shop; a man may be a rider, and a seat a part of a chair.
SCENES = {"street", "field", "ocean", "hill", "picture", "building"}
SEVERAL_THINGS = word_set(
    "adult person people player rider surfer male female gentleman guy fellow teenager youth baby infant seat stand top "
    "surface container watch tower"
)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("captions", type=Path)
    asked = parser.parse_args()
    pairs = {pair for group in LOOSELY_SAME if group.isdisjoint(SCENES)
             for pair in combinations(sorted(group - SEVERAL_THINGS), 2)}  # fmt: skip
    nouns = {noun for pair in pairs for noun in pair}
    forms = {plural_of(noun): noun for noun in nouns} | {noun: noun for noun in nouns}
    images, exchanged, count = Counter[str](), Counter[tuple[str, str]](), 0
    described, given = Counter[str](), Counter[frozenset[str]]()
    with asked.captions.open(encoding="utf-8") as lines:
        for line in lines:
            captions = [words_of(text) for text in json.loads(line)["captions"]]
            for qualities in _of_one_noun(captions):
                described.update(qualities)
                given[frozenset(qualities)] += 1
            said = [{forms[word] for word in words if word in forms} for words in captions]
            found = sorted(set().union(*said))
            images.update(found)
            count += 1
            together = {pair for nouns in said for pair in combinations(sorted(nouns), 2)}
            exchanged.update(pair for pair in combinations(found, 2) if pair in pairs and pair not in together)
    apart: dict[str, list[str]] = defaultdict(list)
    for pair in sorted(pairs):
        seen, other = sorted(images[noun] for noun in pair)
        if seen >= ENOUGH and exchanged[pair] < seen * min(LEAST, LIFT * other / count):
            apart[pair[0]].append(pair[1])
    _show(apart)
    unlike: dict[str, list[str]] = defaultdict(list)
    for one, other in sorted(tuple(sorted(pair)) for pair in NEIGHBOURS):
        rarer, (first, second) = min(described[one], described[other]), (place(one), place(other))
        if first and second and first.group != second.group:
            continue
        if rarer >= ENOUGH_QUALITIES and given[frozenset((one, other))] < rarer * LEAST_QUALITY:
            unlike[one].append(other)
    _show(unlike)


def _of_one_noun(captions: Sequence[Sequence[str]]) -> Iterator[tuple[str, str]]:
    """Yield the two qualities of one class that two captions of an image give a noun, one each."""
    given = [_qualities(words) for words in captions]
    for one, other in combinations(given, 2):
        for noun in one.keys() & other.keys():
            if len(one[noun]) == len(other[noun]) == 1:
                yield min(one[noun]), min(other[noun])


def _qualities(words: Sequence[str]) -> Mapping[tuple[str, str], set[str]]:
    """Return, for each noun and class of qualities, the concepts right before the noun."""
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for word, noun in pairwise(words):
        known = place(word)
        if known is not None:
            found[noun.rstrip("s"), known.group].add(known.concept)
    return found


def _show(apart: Mapping[str, Sequence[str]]) -> None:
    print(textwrap.fill("; ".join(f"{word} {' '.join(others)}" for word, others in apart.items()), 112))


if __name__ == "__main__":
    main()
