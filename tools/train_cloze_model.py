"""Trains the small edit model and counts the words that are bundled for pools with too few captions.

    python -m tools.train_cloze_model CAPTIONS.jsonl OUTPUT_FOLDER

The captions are those of COCO (cocodataset.org), licence CC BY 4.0; each row holds the list ``captions`` of one image.
What comes out is an edit model and word statistics as a build makes them (`generators/edits/edit_model.py`), the latter
without counts below `MIN_COUNT`, a note about the licence, and a card. Equal captions give equal bytes on one machine.
Takes a quarter of an hour of CPU for 50,000 captions.
"""

import argparse
import json
from collections.abc import Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Final, TypeVar

from pairwright.datasets.records import Pair
from pairwright.generators.edits.edit_model import BUNDLED_STATISTICS, EditModel
from pairwright.generators.edits.editors import BALANCED_TYPES
from pairwright.generators.edits.learning import sample_slots, with_balance
from pairwright.generators.edits.materials import EditMaterials
from pairwright.generators.language.cloze.context import SLOT_KINDS
from pairwright.generators.language.cloze.training import train_cloze_model
from pairwright.generators.language.pool_statistics import PoolStatistics, count_captions
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.language.wordnet import load_wordnet

MIN_COUNT: Final = 2  # captions with a word, or with several words together
BALANCE_PAIRS: Final = 50_000  # pairs for the word balance: more than a build takes, since it is learned once
_Key = TypeVar("_Key")
NOTICE = """\
This model was trained on captions of COCO (Microsoft COCO: Common Objects in Context, cocodataset.org; Lin et al. 2014;
Chen et al. 2015, "Microsoft COCO Captions"), licence Creative Commons Attribution 4.0 International
(creativecommons.org/licenses/by/4.0). The files hold weights, single words and phrases of up to a few words with
their counts, and no caption.
"""


def without_rare(pool: PoolStatistics) -> PoolStatistics:
    """Return word statistics without counts below `MIN_COUNT`."""
    return replace(
        pool,
        lemmas=_frequent(pool.lemmas),
        forms=_frequent(pool.forms),
        pairs=_frequent(pool.pairs),
        adjacent=_frequent(pool.adjacent),
        runs=_frequent(pool.runs),
        links=_frequent(pool.links),
    )


def _frequent(counts: Mapping[_Key, int]) -> dict[_Key, int]:
    return {key: count for key, count in counts.items() if count >= MIN_COUNT}


def main() -> None:
    """Train and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("captions", type=Path, help="JSONL file; each row with the list `captions` of an image")
    parser.add_argument("out", type=Path, help="folder for the model")
    options = parser.parse_args()
    with options.captions.open(encoding="utf-8") as rows:
        images = [[caption for caption in json.loads(row)["captions"] if caption.strip()] for row in rows]
    captions = list(chain.from_iterable(images))
    thesaurus, tokens = load_wordnet(), load_tagger().tag(captions)
    cloze = train_cloze_model(sample_slots(captions, tokens, thesaurus))
    statistics = without_rare(count_captions(tokens).frozen())
    pairs = [
        Pair("", caption, captions=(*image[:at], *image[at + 1 :]))
        for image in images
        for at, caption in enumerate(image)
    ]
    tagged = list(zip(pairs, tokens, strict=True))[:BALANCE_PAIRS]
    materials = EditMaterials.of(thesaurus, statistics, EditModel(cloze))
    model = with_balance(materials.model, tagged, materials, tuple(BALANCED_TYPES))
    model.save(options.out)
    statistics.save(options.out / BUNDLED_STATISTICS.name)
    (options.out / "NOTICE").write_text(NOTICE, encoding="utf-8")
    facts = {
        "license": "CC BY 4.0",
        "trained_on": "captions of COCO",
        "captions": len(captions),
        "targets": {kind: len(model.cloze.targets(kind)) for kind in SLOT_KINDS},
        "digest": model.cloze.digest,
        "bytes": sum(
            path.stat().st_size for path in (*model.files(options.out), options.out / BUNDLED_STATISTICS.name)
        ),
    }
    (options.out / "card.json").write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(facts, indent=2))


if __name__ == "__main__":
    main()
