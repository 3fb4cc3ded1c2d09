"""Mending by choice: of several pairs that a caption offers, refinement keeps the one that betrays least.

A *slot* is a caption and a type of edit; one row of it at most is kept. Which one is not decided beforehand: all of them
enter refinement, and those that balance the set are taken (`selection.py`). So a writer who offers five edits of a
caption loses four that would tell, and refinement has less to drop.

Where a negative was written against a rewording (``generate negatives --both-sides``), the caption itself is true as well,
so the same negative is offered against the caption, too. ADD is not: there the caption is shorter for good.
"""

import polars as pl

from pairwright.filters.scorers.image_groups import text_group

NOT_CHOSEN = "not_chosen"
SLOT_COLUMNS = ("form", "target")


def add_original_captions(frame: pl.DataFrame) -> pl.DataFrame:
    """Return candidate rows, and behind them each kept row of a rewording with the caption as its positive.

    Args:
        frame: with the columns of `candidates.py`.
    """
    reworded = frame.filter(
        (pl.col("status") == "kept")
        & (pl.col("positive") != "")
        & (pl.col("positive") != pl.col("caption"))
        & (pl.col("form") != "add")
    )
    plain = reworded.with_columns(id=pl.col("id") + "-plain", positive=pl.lit(""))
    return pl.concat([frame, plain])


def slot_keys(frame: pl.DataFrame) -> list[str]:
    """Return a text for each candidate row, equal where rows are of one caption and type."""
    rows = frame.select("image", "key", "caption", *SLOT_COLUMNS).iter_rows()
    return ["\n".join((text_group(image, key, caption), caption, *kind)) for image, key, caption, *kind in rows]
