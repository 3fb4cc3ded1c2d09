"""How often captioners use one noun of a pair where others use the other, for the table in `edit_nearness`.

    python benchmarks/exchanged_nouns.py captions.jsonl

captions.jsonl: rows with ``captions``, several an image. Of the images whose captions have the rarer noun of a pair, the
*exchange share* is the part of those where one caption has one noun, another has the other, and none has both. Looks at
the pairs of `synonyms.LOOSELY_SAME`, and prints as the table has them those that are told apart: exchanged in fewer
than `LEAST` of at least `ENOUGH` images, and fewer than `LIFT` times as often as the commoner noun is used anywhere.
"""

import argparse
import json
import textwrap
from collections import Counter, defaultdict
from itertools import combinations
from pathlib import Path

from pairwright.generators.context import plural_of, words_of
from pairwright.generators.synonyms import LOOSELY_SAME
from pairwright.generators.wordlists import word_set

LEAST, ENOUGH, LIFT = 0.1, 20, 2.5
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
    with asked.captions.open(encoding="utf-8") as lines:
        for line in lines:
            said = [{forms[word] for word in words_of(text) if word in forms} for text in json.loads(line)["captions"]]
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
    print(textwrap.fill("; ".join(f"{noun} {' '.join(others)}" for noun, others in apart.items()), 112))


if __name__ == "__main__":
    main()
