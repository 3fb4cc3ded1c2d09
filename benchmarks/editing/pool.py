"""What rules learn of the captions that they edit, in one process."""

from collections.abc import Mapping, Sequence
from typing import Any

from pairwright.datasets.records import Pair, pair_key
from pairwright.generators.edits.edit_model import EditModel
from pairwright.generators.edits.learning import BALANCE_CAPTIONS, learn_edit_model, sample_slots
from pairwright.generators.language.pool_statistics import PoolStatistics, count_captions
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.language.wordnet import load_wordnet


def read_pairs(rows: Sequence[Mapping[str, Any]]) -> list[Pair]:
    """Return a pair for every caption of objects with ``image_id`` and ``captions``."""
    return [
        Pair(
            pair_key("benchmark", str(row["image_id"]), caption),
            caption,
            source_id=str(row["image_id"]),
            captions=tuple(other for at, other in enumerate(row["captions"]) if at != number),
        )
        for row in rows
        for number, caption in enumerate(row["captions"])
        if caption.strip()
    ]


def learn_pool(pairs: Sequence[Pair]) -> tuple[PoolStatistics, EditModel]:
    """Return the word statistics and the edit model of captions; the last pairs teach the word balance."""
    captions = [pair.caption for pair in pairs]
    tokens = load_tagger().tag(captions)
    pool = count_captions(tokens).frozen()
    sample = sample_slots(captions, tokens, load_wordnet())
    tagged = list(zip(pairs, tokens, strict=True))[-BALANCE_CAPTIONS:]
    return pool, learn_edit_model(sample, tagged, load_wordnet(), pool)
