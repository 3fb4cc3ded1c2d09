"""Audits of files, builds and shards: what ``pairwright audit`` runs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from pairwright.datasets.errors import InputError
from pairwright.datasets.readers.pairs import ReadOptions
from pairwright.filters.attacks.registry import build_fixed_scorers
from pairwright.filters.audit.hackability import Audit, run_audit
from pairwright.filters.audit.report import AuditGaps
from pairwright.filters.candidates.invalid_rows import InvalidRowPolicy
from pairwright.filters.candidates.rows import attack_frame, usable_corpus
from pairwright.filters.review.rows import read_rows
from pairwright.filters.scorers.image_groups import build_corpus
from pairwright.filters.scorers.text_scorers import CaptionCorpus, GapScorer
from pairwright.flows.commands.annotation_files import require_candidate_rows
from pairwright.flows.commands.auxiliary_inputs import read_auxiliary_pairs

FEW = 1_000


@dataclass(frozen=True)
class AuditRequest:
    """How to audit.

    Attributes:
        corpus: captions to train the language models on; empty: those of the rows.
        most: accuracy that is allowed.
        seed: of the folds.
        with_gaps: reckon the gaps of all rows as well, for figures.
        meaning: a classifier of MiniLM's sentence embeddings attacks too.
    """

    corpus: str = ""
    most: float = 0.55
    seed: int = 0
    with_gaps: bool = False
    meaning: bool = False


def rows_to_audit(path: Path, screening: InvalidRowPolicy | None = None) -> tuple[pl.DataFrame, int]:
    """Return the candidate rows of a file, a build or shards that have a negative, and how many came in rejected.

    The latter are not attacked, but figures show them; those without a negative are not even that.

    Args:
        path: of them.
        screening: what becomes of rows of a file that are none; without, the first ends the reading.

    Raises:
        InputError: it cannot be read, or holds no row that is not rejected.
    """
    given = read_rows(path, screening=screening).frame
    frame = given.filter(pl.col("negative").str.strip_chars() != "")
    require_candidate_rows(path, frame.height)
    if not (frame["status"] == "kept").any():
        raise InputError("no row that is not rejected", where=str(path), fix="Give rows with status kept, or without.")
    return frame, int((given["status"] != "kept").sum())


def audit_rows(
    frame: pl.DataFrame, request: AuditRequest, also: Sequence[GapScorer], note: Callable[[str], None]
) -> tuple[Audit, AuditGaps]:
    """Audit the candidate rows that are not rejected.

    Args:
        frame: as `rows_to_audit` gives them.
        request: how.
        also: scorers beside those that need nothing but captions.
        note: told in one line what concerns the whole run.

    Returns:
        The audit, and the gaps of the fixed scorers; empty unless asked for.

    Raises:
        InputError: the corpus cannot be read.
    """
    kept = frame["status"].to_numpy() == "kept"
    pool = _caption_pool(request.corpus, frame, note) if request.corpus else None
    rows = attack_frame(frame)
    attacked = rows.filter(pl.Series(kept))
    found = run_audit(attacked, pool, limit=request.most, seed=request.seed, also=also, meaning=request.meaning)
    if not request.with_gaps:
        return found, AuditGaps({}, kept)
    positives, negatives, groups = (rows[name].to_list() for name in ("positive", "negative", "group"))
    scorers = [*build_fixed_scorers(pool), *also]
    gaps = {scorer.name: scorer.gaps(positives, negatives, groups, request.seed) for scorer in scorers}
    return found, AuditGaps(gaps, kept)


def _caption_pool(corpus: str, frame: pl.DataFrame, note: Callable[[str], None]) -> CaptionCorpus:
    given = build_corpus(read_auxiliary_pairs(ReadOptions(input=corpus), note))
    pool, captions = usable_corpus(given, frame)
    if pool.pool:
        note("Most of --corpus is under test: each row is scored without the captions of its own image.")
    if captions < FEW:
        note(f"Only {captions:,} captions train the language models; they may see nothing. Give a larger --corpus.")
    return pool
