"""Mending by choice: of several negatives of one caption and type, the one that is most like the text it competes with.

Likeness is in length and in likelihood (`scorers.py`): the sum of the two gaps, signs aside, is least. So a writer
who offers five edits of a caption loses four that would tell the text that is false by its size or its oddness, and
refinement has less to drop.
"""

import numpy as np
import polars as pl

from pairwright.filters.groups import text_group
from pairwright.filters.scorers import Corpus, CrossFitted, LengthScorer, LikelihoodScorer

NOT_CHOSEN = "not_chosen"


def chosen(frame: pl.DataFrame, corpus: Corpus | None = None, seed: int = 0) -> pl.DataFrame:
    """Return candidate rows of which at most one of each image, text and type is kept; the others are `NOT_CHOSEN`.

    Rows that come in rejected stay as they are. Of equals the one with the first id is taken.

    Args:
        frame: with the columns of `candidates.py`.
        corpus: captions to train the likelihood on; without, the positives of the rows.
        seed: of the folds.
    """
    rows = frame.with_row_index("row").filter(pl.col("status") == "kept")
    positives = rows.select(pl.when(pl.col("positive") != "").then("positive").otherwise("caption")).to_series()
    groups = [text_group(*row) for row in rows.select("image", "key", "caption").iter_rows()]
    scorers = (LengthScorer(), CrossFitted("likelihood", LikelihoodScorer.train, corpus))
    gaps = [scorer.gaps(positives.to_list(), rows["negative"].to_list(), groups, seed) for scorer in scorers]
    away = np.abs(np.nan_to_num(np.stack(gaps))).sum(axis=0)
    best = (
        rows.select("row", "id", "form", "target")
        .with_columns(group=pl.Series(groups, dtype=pl.String), positive=positives, away=pl.Series(away))
        .sort("away", "id")
        .unique(["group", "positive", "form", "target"], keep="first", maintain_order=True)
    )
    goes = np.zeros(len(frame), np.bool_)
    goes[rows["row"].to_numpy()] = True
    goes[best["row"].to_numpy()] = False
    gone = pl.Series(goes)
    return frame.with_columns(
        status=pl.when(gone).then(pl.lit("rejected")).otherwise("status"),
        reason=pl.when(gone).then(pl.lit(NOT_CHOSEN)).otherwise("reason"),
    )
