"""A generator over any input, without a build: what ``pairwright generate`` runs.

Two passes over the input when it is its own pool: words are counted over its first `POOL_CAPTIONS` captions, then
every pair is annotated in order. Memory: a batch, and the rows when the output's format has to be written at once
(everything but JSON lines).
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from pairwright.datasets.chance import stream
from pairwright.datasets.contents import exchanges_in
from pairwright.datasets.reading import Batch, ReadOptions, read_pairs
from pairwright.datasets.records import Annotation, Pair
from pairwright.flows.annotation_files import open_writer, refuse_overwriting
from pairwright.generators.language.general import GeneralEnglish, usable_pool
from pairwright.generators.language.pool import PoolStatistics, count
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.language.tokens import Tagger
from pairwright.generators.language.wordnet import load_wordnet
from pairwright.generators.protocols import RuleGenerator
from pairwright.generators.registry import Materials, asks_pool, build_generator
from pairwright.generators.tally import Tally

POOL_CAPTIONS = 50_000
BATCH = 512


@dataclass(frozen=True)
class Request:
    """What to generate: which generator with which options, over what, into which file."""

    generator: str
    options: Mapping[str, Any]
    seed: int
    read: ReadOptions
    pool: str
    out: Path


def run_generator(request: Request, note: Callable[[str], None]) -> dict[str, Any]:
    """Annotate every pair of an input and write the rows.

    Returns:
        captions, types (made, kept, rejected by reason), turns, broken (rows of the input that were skipped, by
        reason), seconds and out.

    Raises:
        UsageError: when OUT's ending names no format that holds such rows.
    """
    refuse_overwriting(request.out, request.read.input, request.pool)
    started = time.perf_counter()
    tagger = load_tagger()
    tally, captions, turns = Tally(), 0, 0
    reasons: dict[str, int] = {}
    with open_writer(request.out, request.generator) as write:
        generator = build_generator(request.generator, _materials(request, tagger, note), request.options)
        for batch in read_pairs(replace(request.read, batch_size=BATCH)):
            for reject in batch.rejects:
                reasons[reject.reason] = reasons.get(reject.reason, 0) + 1
            for pair, rows in _annotated(batch.pairs, generator, tagger, request.seed):
                tally.add(rows)
                captions += 1
                turns += sum(map(exchanges_in, rows))
                write(pair, rows)
    return {
        "captions": captions,
        "types": tally.by_type(),
        "turns": turns,
        "broken": dict(sorted(reasons.items())),
        "seconds": round(time.perf_counter() - started, 2),
        "out": str(request.out),
    }


def _annotated(
    pairs: list[Pair], generator: RuleGenerator, tagger: Tagger, seed: int
) -> Iterator[tuple[Pair, list[Annotation]]]:
    tokens = tagger.tag([pair.caption for pair in pairs])
    for pair, words in zip(pairs, tokens, strict=True):
        rng = stream(seed, 0, generator.name, generator.version, pair.key)
        yield pair, generator.annotate(pair, words, rng)


def _materials(request: Request, tagger: Tagger, note: Callable[[str], None]) -> Materials:
    wordnet = load_wordnet()
    if not asks_pool(request.generator):
        return Materials(wordnet, GeneralEnglish(wordnet), request.seed)
    pool = usable_pool(_statistics(request, tagger), wordnet)
    if not isinstance(pool, PoolStatistics):
        note("Too few captions to tell which words go together: going by general English. --pool FILE does better.")
    return Materials(wordnet, pool, request.seed)


def _statistics(request: Request, tagger: Tagger) -> PoolStatistics:
    read = replace(request.read, input=request.pool, format="", columns={}) if request.pool else request.read
    captions = islice(_captions(read_pairs(replace(read, on_error="skip"))), POOL_CAPTIONS)
    return count(tagger.tag(list(captions))).frozen()


def _captions(batches: Iterator[Batch]) -> Iterator[str]:
    for batch in batches:
        for pair in batch.pairs:
            yield pair.caption
            yield from pair.captions
