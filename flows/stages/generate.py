"""Stages ``negatives``, ``positives``, ``conversations`` and the user's own: a generator over the parts."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pairwright.datasets.chance import stream
from pairwright.datasets.records import Annotation
from pairwright.datasets.tables import ANNOTATIONS
from pairwright.flows.chosen import chosen_pairs
from pairwright.flows.layout import annotations_path, candidates_path, rejected_path, tokens_path
from pairwright.flows.receipts import Counts, Outcome
from pairwright.flows.stages.tag import statistics_path
from pairwright.generators.language.pool import PoolStatistics
from pairwright.generators.language.token_table import read_tokens
from pairwright.generators.language.wordnet import load_wordnet
from pairwright.generators.registry import Materials, build_generator


def generate_part(
    root: Path, stage: str, part: str, generator: str, options: Mapping[str, Any], seed: int, *, to_refine: bool
) -> Outcome:
    """Let ``generator`` annotate the chosen pairs of a part.

    Kept rows go to ``annotations/``, or to ``candidates/`` when refinement shall judge them; the others, with
    their reasons, to ``rejected/``. The counts are of attempts.
    """
    materials = Materials(load_wordnet(), PoolStatistics.load(statistics_path(root)), seed)
    maker = build_generator(generator, materials, options)
    rows: list[Annotation] = []
    pairs, chosen = chosen_pairs(root, part)
    tokens = read_tokens(tokens_path(root, part), [pair.caption for pair in pairs])
    for pair, words in zip(pairs, tokens, strict=True):
        if pair.key in chosen:
            rng = stream(seed, 0, maker.name, maker.version, pair.key)
            rows += maker.annotate(pair, words, rng)
    kept = [row for row in rows if row.status == "kept"]
    rejected = [row for row in rows if row.status == "rejected"]
    place = candidates_path if to_refine else annotations_path
    ANNOTATIONS.write(kept, place(root, stage, part))
    ANNOTATIONS.write(rejected, rejected_path(root, stage, part))
    reasons = Counter(row.reason for row in rejected)
    return Outcome(
        [place(root, stage, part), rejected_path(root, stage, part)],
        Counts("attempt", len(rows), len(kept), dict(sorted(reasons.items()))),
        {"generator": f"{maker.name}/{maker.version}", "by_type": _by_type(rows)},
    )


def _by_type(rows: list[Annotation]) -> dict[str, dict[str, int]]:
    made: Counter[str] = Counter()
    kept: Counter[str] = Counter()
    for row in rows:
        name = "-".join(filter(None, (row.form, row.target))) or row.kind
        made[name] += 1
        kept[name] += row.status == "kept"
    return {name: {"made": made[name], "kept": kept[name]} for name in sorted(made)}
