"""Stages ``negatives``, ``positives``, ``conversations`` and the user's own: a generator over the parts."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pairwright.datasets.chance import stream
from pairwright.datasets.records import Annotation
from pairwright.datasets.tables import ANNOTATIONS, PAIRS
from pairwright.flows.chosen import Choice, chosen_flags
from pairwright.flows.layout import annotations_path, candidates_path, pairs_path, rejected_path, tokens_path
from pairwright.flows.receipts import Counts, Outcome
from pairwright.flows.stages.tag import statistics_path
from pairwright.generators.language.general import usable_pool
from pairwright.generators.language.pool import PoolStatistics
from pairwright.generators.language.token_table import read_tokens
from pairwright.generators.language.wordnet import load_wordnet
from pairwright.generators.registry import Materials, build_generator
from pairwright.generators.tally import Tally


@dataclass(frozen=True)
class Generation:
    """What a generating stage does.

    Attributes:
        stage: its name, which names its files.
        generator: a name in the registry.
        options: for the generator.
        seed: of the build.
        choice: which pairs go on.
        to_refine: whether refinement judges the kept rows afterwards.
    """

    stage: str
    generator: str
    options: Mapping[str, Any]
    seed: int
    choice: Choice
    to_refine: bool


def generate_part(root: Path, part: str, this: Generation) -> Outcome:
    """Let a generator annotate the chosen pairs of a part.

    Kept rows go to ``annotations/``, or to ``candidates/`` when refinement shall judge them; the others, with
    their reasons, to ``rejected/``. The unit is an attempt.
    """
    wordnet = load_wordnet()
    pool = usable_pool(PoolStatistics.load(statistics_path(root)), wordnet)
    maker = build_generator(this.generator, Materials(wordnet, pool, this.seed), this.options)
    pairs = PAIRS.read(pairs_path(root, part))
    tokens = read_tokens(tokens_path(root, part), [pair.caption for pair in pairs])
    rows: list[Annotation] = []
    for pair, words, goes_on in zip(pairs, tokens, chosen_flags(root, pairs, this.choice), strict=True):
        if goes_on:
            rows += maker.annotate(pair, words, stream(this.seed, 0, maker.name, maker.version, pair.key))
    kept = [row for row in rows if row.status == "kept"]
    rejected = [row for row in rows if row.status == "rejected"]
    place = candidates_path if this.to_refine else annotations_path
    ANNOTATIONS.write(kept, place(root, this.stage, part))
    ANNOTATIONS.write(rejected, rejected_path(root, this.stage, part))
    tally = Tally()
    tally.add(rows)
    return Outcome(
        [place(root, this.stage, part), rejected_path(root, this.stage, part)],
        Counts("attempt", len(rows), len(kept), tally.reasons()),
        {"generator": f"{maker.name}/{maker.version}", "by_type": tally.by_type()},
    )
