"""Audits of files, builds and shards (``pairwright audit``)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from pairwright.datasets.count_phrases import count_phrase, verb_form
from pairwright.datasets.errors import InputError
from pairwright.datasets.readers.pairs import ReadOptions
from pairwright.filters.attacks.registry import build_fixed_scorers, give_corpus
from pairwright.filters.audit.report import AuditGaps
from pairwright.filters.audit.verdict import Audit, run_audit
from pairwright.filters.candidates.attack_input import attack_frame, usable_corpus
from pairwright.filters.candidates.invalid_rows import InvalidRowPolicy
from pairwright.filters.review.rows import read_rows
from pairwright.filters.scorers.image_groups import build_corpus
from pairwright.filters.scorers.text_scorers import CaptionCorpus, GapScorer
from pairwright.flows.commands.annotation_files import require_candidate_rows
from pairwright.flows.commands.pair_inputs import read_auxiliary_pairs

MIN_POOL = 1_000  # captions, below which a warning is printed


@dataclass(frozen=True)
class AuditRequest:
    """Options of an audit.

    Attributes:
        corpus: captions to train the language models on; empty for those of the rows.
        most: maximal accuracy of an attack.
        seed: of the folds.
        with_gaps: whether to compute the gaps of all rows, for figures.
        meaning: whether to add an attack on MiniLM's sentence embeddings.
    """

    corpus: str = ""
    most: float = 0.55
    seed: int = 0
    with_gaps: bool = False
    meaning: bool = False


def rows_to_audit(
    path: Path, screening: InvalidRowPolicy | None = None, layout: str = ""
) -> tuple[pl.DataFrame, dict[str, int]]:
    """Return the candidate rows with a negative of a file, build or shards, and the number of rejected rows by reason.

    Rejected rows are not attacked, but shown in figures.

    Args:
        path: of the file or folder.
        screening: policy for invalid rows of a file; by default the first one is an error.
        layout: name of the layout of a file; empty to detect it.

    Raises:
        InputError: when it is not readable, or all rows are rejected.
    """
    rows = read_rows(path, screening=screening, layout=layout).frame
    frame = rows.filter(pl.col("negative").str.strip_chars() != "")
    require_candidate_rows(path, frame.height)
    if not (frame["status"] == "kept").any():
        raise InputError(
            "all rows are rejected", where=str(path), fix="Give rows with status kept, or without a status."
        )
    rejected = rows.filter(pl.col("status") != "kept").group_by("reason").len().sort("reason")
    return frame, dict(rejected.iter_rows())


def audit_rows(
    frame: pl.DataFrame, request: AuditRequest, also: Sequence[GapScorer], note: Callable[[str], None]
) -> tuple[Audit, AuditGaps]:
    """Audit the candidate rows that are not rejected.

    Args:
        frame: from `rows_to_audit`.
        request: options.
        also: scorers in addition to those that need captions only.
        note: receives messages.

    Returns:
        The audit, and the gaps of the scorers; empty unless requested.

    Raises:
        InputError: when the corpus is not readable.
    """
    kept = frame["status"].to_numpy() == "kept"
    pool = _caption_pool(request.corpus, frame, note) if request.corpus else None
    rows = attack_frame(frame)
    attacked = rows.filter(pl.Series(kept))
    found = run_audit(attacked, pool, limit=request.most, seed=request.seed, also=also, meaning=request.meaning)
    if not request.with_gaps:
        return found, AuditGaps({}, kept)
    positives, negatives, groups = (rows[name].to_list() for name in ("positive", "negative", "group"))
    scorers = [*build_fixed_scorers(pool), *give_corpus(also, pool)]
    gaps = {scorer.name: scorer.gaps(positives, negatives, groups, request.seed) for scorer in scorers}
    return found, AuditGaps(gaps, kept)


def _caption_pool(corpus: str, frame: pl.DataFrame, note: Callable[[str], None]) -> CaptionCorpus:
    whole = build_corpus(read_auxiliary_pairs(ReadOptions(input=corpus), note))
    pool, captions = usable_corpus(whole, frame)
    if pool.pool:
        note("Most captions of --corpus are under test: each row is scored without the captions of its image.")
    if captions < MIN_POOL:
        note(
            f"Only {count_phrase(captions, 'caption')} {verb_form(captions, 'train')} the language models, which may detect "
            "nothing. Give a larger --corpus."
        )
    return pool
