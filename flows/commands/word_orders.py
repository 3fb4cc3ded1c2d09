"""Rows of captions and their perturbed word orders, as of ARO's COCO-Order: ``pairwright generate orders``."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Final

from pairwright.datasets.readers.pairs import ReadOptions
from pairwright.datasets.readers.skip_counts import SkipCounts
from pairwright.datasets.records import Pair
from pairwright.datasets.rng import make_rng
from pairwright.filters.candidates.files import write_candidates
from pairwright.filters.candidates.rows import candidate_frame
from pairwright.flows.commands.annotation_files import require_candidate_rows
from pairwright.flows.commands.pair_inputs import BATCH, read_counted_pairs
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.word_orders import WORD_ORDERS, join_words

FORM: Final = "order"
VERSION: Final = 1


def write_word_orders(options: ReadOptions, out: Path, seed: int) -> dict[str, Any]:
    """Write four rows per caption; a caption that its perturbation does not change is rejected as ``identical``.

    Args:
        options: of the input.
        out: file to write; its ending is the format.
        seed: of the perturbations.

    Returns:
        ``captions``, ``rows``, ``kept``, and the counts of skipped input.

    Raises:
        InputError: the input is invalid, or there are no pairs.
    """
    source, skipped = Path(str(options.input)), SkipCounts()
    pairs = read_counted_pairs(options, skipped)
    frame = candidate_frame((f"{source}: {row['id']}", row) for row in _rows(pairs, seed))
    require_candidate_rows(source, frame.height)
    write_candidates(frame, out)
    return {
        "captions": frame["key"].n_unique(),
        "rows": frame.height,
        "kept": frame.filter(status="kept").height,
        **skipped.as_json(),
    }


def _rows(pairs: Iterable[Pair], seed: int) -> Iterator[Mapping[str, Any]]:
    tagger, remaining = load_tagger(), iter(pairs)
    while batch := list(islice(remaining, BATCH)):
        for pair, tokens in zip(batch, tagger.tag([pair.caption for pair in batch]), strict=True):
            caption = join_words(tokens)
            for name, perturb in WORD_ORDERS.items():
                negative = " ".join(perturb(tokens, make_rng(seed, FORM, VERSION, pair.key, name)))
                verdict = {"status": "rejected", "reason": "identical"} if negative == caption else {}
                texts = {"image": pair.image or pair.source_id, "caption": caption, "negative": negative}
                place = {"id": f"{pair.key}-{name}", "key": pair.key, "form": FORM, "target": name}
                yield {**place, **texts, "question": {"choice": pair.key}, **verdict}
