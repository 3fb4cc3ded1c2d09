"""Selection among several pairs of one caption: refinement keeps the pair that is least detectable.

A *slot* is a caption and an edit type; at most one of its rows is kept. All of them enter refinement, and those that
balance the set are kept (`general/balanced_subset.py`). So a generator that offers five edits of a caption loses the four that
are easiest to detect, and refinement has less to drop.

Where a negative was written against a rewording (``generate negatives --both-sides``), the caption itself is true as
well, so the negative is also offered against the caption. ADD is not: there the caption is always shorter.
"""

from collections import Counter

import polars as pl

from pairwright.filters.scorers.image_groups import text_group

NOT_CHOSEN = "not_chosen"
SLOT_COLUMNS = ("form", "target")


def add_original_captions(frame: pl.DataFrame) -> pl.DataFrame:
    """Return candidate rows, followed by a copy of each kept row of a rewording with the caption as its positive.

    Args:
        frame: with the columns of `candidates/rows.py`.
    """
    reworded = frame.filter(
        (pl.col("status") == "kept")
        & (pl.col("positive") != "")
        & (pl.col("positive") != pl.col("caption"))
        & (pl.col("form") != "add")
    )
    plain = reworded.with_columns(id=pl.col("id") + "-plain", positive=pl.lit(""))
    return pl.concat([frame, plain])


def offers_choice(frame: pl.DataFrame) -> bool:
    """Return whether most captions have several kept rows of one type, of which one can be selected."""
    counts = Counter(build_slot_keys(frame.filter(status="kept"))).values()
    return sum(count > 1 for count in counts) > len(counts) / 2


def build_slot_keys(frame: pl.DataFrame) -> list[str]:
    """Return a text for each candidate row, equal for rows of the same caption and type."""
    rows = frame.select("image", "key", "caption", *SLOT_COLUMNS).iter_rows()
    return ["\n".join((text_group(image, key, caption), caption, *kind)) for image, key, caption, *kind in rows]
